/* SPDX-License-Identifier: MIT */
/* Finds a commit of which only the superblock record is damaged. */
#include <errno.h>

#include "salvage/salvage.h"

static int visit(void *arg, const struct zf_key *key, const void *value, size_t len, bool is_sound)
{
	bool *sound = arg;

	(void)key;
	(void)value;
	(void)len;
	*sound &= is_sound;
	return 0;
}

static int is_whole(struct zf_salvage *salvage, bool *ret_whole)
{
	bool lost, sound = true;
	int r = zf_salvage_walk(salvage, ZF_TREE_FS, visit, &sound, &lost);

	*ret_whole = r == 0 && sound && !lost;
	return r;
}

int zf_salvage_find_newer(struct zf_dev *dev, uint64_t generation, uint64_t *ret_generation)
{
	const struct zf_salvage_options options = {0};
	struct zf_salvage_state state;
	struct zf_salvage *salvage;
	bool whole = false;
	int r = zf_salvage_open(dev, &options, NULL, &salvage);

	*ret_generation = 0;
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	zf_salvage_get_state(salvage, &state);
	if (state.generation > generation)
		r = is_whole(salvage, &whole);
	if (whole)
		*ret_generation = state.generation;
	zf_salvage_close(salvage);
	return r;
}
