/* SPDX-License-Identifier: MIT */
#include "alloc/vain.h"

#include "alloc/alloc_internal.h"

/* Rounds in a row that leave as much garbage as before: the first may have begun a zone. */
#define IDLE_MAX 2u

static void count_garbage_locked(const struct zf_alloc *alloc, struct zf_vain_trial *trial)
{
	for (uint32_t z = 2; z < alloc->zone_count; z++) {
		const struct zf_zone *zone = &alloc->zones[z];
		uint64_t used = (uint64_t)zone->live + zone->system_live + zone->pending;

		if (zone->pointer <= used)
			continue;
		trial->garbage += zone->pointer - used;
		if (!zf_alloc_holds_nothing_locked(alloc, z))
			trial->stuck += zone->pointer - used;
	}
}

/* Does not visit the zones, because each failed attempt calls this. */
static struct zf_vain_trial glance_locked(struct zf_alloc *alloc)
{
	return (struct zf_vain_trial){
		.freed = alloc->freed,
		.node_blocks = alloc->node_live_blocks,
		.coming = zf_alloc_coming_locked(alloc),
		.committed = alloc->committed,
	};
}

static struct zf_vain_trial look_locked(struct zf_alloc *alloc)
{
	struct zf_vain_trial trial = glance_locked(alloc);

	count_garbage_locked(alloc, &trial);
	return trial;
}

/* Has something been freed between `then` and `now`? */
static bool is_freed(const struct zf_vain_trial *then, const struct zf_vain_trial *now)
{
	return now->freed != then->freed || now->node_blocks < then->node_blocks ||
	       now->coming > then->coming;
}

bool zf_vain_is_known(const struct zf_vain *vain, struct zf_alloc *alloc)
{
	struct zf_vain_trial now;
	bool known;

	zf_mutex_lock(&alloc->lock);
	now = glance_locked(alloc);
	known = vain->known && now.committed == vain->trial.committed &&
		!is_freed(&vain->trial, &now);
	zf_mutex_unlock(&alloc->lock);
	return known;
}

void zf_vain_begin(struct zf_vain_trial *ret_trial, struct zf_alloc *alloc)
{
	zf_mutex_lock(&alloc->lock);
	*ret_trial = look_locked(alloc);
	zf_mutex_unlock(&alloc->lock);
}

bool zf_vain_goes_on(struct zf_vain_trial *trial, struct zf_alloc *alloc)
{
	struct zf_vain_trial now;
	bool gained;

	zf_mutex_lock(&alloc->lock);
	now = look_locked(alloc);
	zf_mutex_unlock(&alloc->lock);
	gained = now.garbage < trial->garbage || now.stuck < trial->stuck || is_freed(trial, &now);
	trial->idle = gained ? 0 : trial->idle + 1;
	trial->garbage = zf_min_u64(trial->garbage, now.garbage);
	trial->stuck = zf_min_u64(trial->stuck, now.stuck);
	return trial->idle < IDLE_MAX;
}

void zf_vain_end(struct zf_vain *vain, struct zf_alloc *alloc, const struct zf_vain_trial *trial)
{
	zf_mutex_lock(&alloc->lock);
	vain->trial = look_locked(alloc);
	vain->known = !is_freed(trial, &vain->trial);
	zf_mutex_unlock(&alloc->lock);
}
