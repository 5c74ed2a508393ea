/* SPDX-License-Identifier: MIT */
#include "age/pairs.h"

#include <time.h>

#include "alloc/reclaim.h"
#include "fs/space/reclaim.h"
#include "fs/space/room.h"

#define SETTLE_MS      20000u
#define SETTLE_STEP_MS 10u

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Waits until reclaim has nothing to do, so that both halves begin alike, or until SETTLE_MS are
 * over: reclaim may be unable to reach its target. */
static void settle(struct zf_fs *fs)
{
	struct zf_reclaim_room room;
	unsigned int ms = 0;

	zf_room_look(fs);
	do {
		nanosleep(&(struct timespec){0, SETTLE_STEP_MS * 1000000}, NULL);
		ms += SETTLE_STEP_MS;
		zf_alloc_reclaim_room(zf_fs_alloc(fs), &room);
	} while (room.empty + room.coming < room.target && ms < SETTLE_MS);
}

static int work(struct age_load *load, uint64_t bytes, bool reclaims, double *ret_s)
{
	struct age_user *user = load->user;
	uint64_t end = user->bytes + bytes;
	double began;
	int r = 0;

	settle(user->fs);
	zf_reclaim_pause(user->fs, !reclaims);
	began = now_s();
	while (r == 0 && user->bytes < end)
		r = load->ops->step(load);
	*ret_s = now_s() - began;
	zf_reclaim_pause(user->fs, false);
	return r;
}

int age_pair_run(struct age_load *load, uint64_t bytes, bool on_first, struct age_pair *ret_pair)
{
	int r = 0;

	if (on_first)
		r = work(load, bytes, true, &ret_pair->on_s);
	if (r == 0)
		r = work(load, bytes, false, &ret_pair->off_s);
	if (r == 0 && !on_first)
		r = work(load, bytes, true, &ret_pair->on_s);
	return r;
}
