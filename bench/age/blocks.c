/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "age/load.h"
#include "base/bits.h"

struct blocks {
	struct age_load load;
	struct age_blocks_options options;
	uint64_t ino, count, next;
	struct age_zipf zipf;
	struct age_permutation permutation;
	uint32_t *versions;
};

static struct blocks *blocks_of(struct age_load *load)
{
	return ZF_CONTAINER_OF(load, struct blocks, load);
}

static int write_blocks(struct blocks *blocks, uint64_t first, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		blocks->versions[first + i] = age_new_version(blocks->load.user);
	return age_write(blocks->load.user, blocks->ino, first * AGE_BLOCK, count * AGE_BLOCK,
			 blocks->versions);
}

static int fill(struct age_load *load)
{
	struct blocks *blocks = blocks_of(load);
	struct age_user *user = load->user;
	struct zf_attr attr;
	int r = zf_fs_make(user->fs, &user->ctx, ZF_INO_ROOT, "blocks", S_IFREG | 0644, 0, NULL,
			   &attr);

	blocks->ino = attr.ino;
	for (uint64_t at = 0; r == 0 && at < blocks->count; at += AGE_PIECE / AGE_BLOCK)
		r = write_blocks(blocks, at, zf_min_u64(blocks->count - at, AGE_PIECE / AGE_BLOCK));
	return r;
}

static uint64_t draw(struct blocks *blocks)
{
	struct age_random *random = &blocks->load.user->random;

	if (blocks->options.theta == 0)
		return age_below(random, blocks->count);
	return age_permute(&blocks->permutation, age_zipf_draw(&blocks->zipf, random) - 1);
}

static int step(struct age_load *load)
{
	struct blocks *blocks = blocks_of(load);
	uint64_t first, count;

	if (!blocks->options.in_order)
		return write_blocks(blocks, draw(blocks), 1);
	first = blocks->next;
	count = zf_min_u64(blocks->options.step_bytes / AGE_BLOCK, blocks->count - first);
	blocks->next = (first + count) % blocks->count;
	return write_blocks(blocks, first, count);
}

static int verify(struct age_load *load, struct age_fragments *ret_fragments)
{
	struct blocks *blocks = blocks_of(load);
	uint64_t size = blocks->count * AGE_BLOCK;
	int64_t extents;
	int r = age_verify(load->user, blocks->ino, size, blocks->versions);

	if (r < 0)
		return r;
	extents = age_count_extents(load->user, blocks->ino);
	if (extents < 0)
		return (int)extents;
	*ret_fragments = (struct age_fragments){1, (uint64_t)extents, size};
	return 0;
}

static void blocks_free(struct age_load *load)
{
	struct blocks *blocks = blocks_of(load);

	free(blocks->versions);
	free(blocks);
}

struct age_load *age_blocks_new(struct age_user *user, const struct age_blocks_options *options)
{
	static const struct age_load_ops ops = {fill, step, verify, blocks_free};
	struct blocks *blocks = calloc(1, sizeof(*blocks));

	if (!blocks)
		return NULL;
	blocks->load = (struct age_load){&ops, user};
	blocks->options = *options;
	blocks->count = options->bytes / AGE_BLOCK;
	blocks->versions = calloc(blocks->count, sizeof(*blocks->versions));
	if (!blocks->versions) {
		free(blocks);
		return NULL;
	}
	if (options->theta > 0)
		age_zipf_init(&blocks->zipf, blocks->count, options->theta);
	age_permutation_init(&blocks->permutation, blocks->count, user->seed);
	return &blocks->load;
}
