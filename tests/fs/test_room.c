/* SPDX-License-Identifier: MIT */
/*
 * Operations with little free space (P5): accepted data is never lost for lack of space, no request
 * is refused while there is space, and operations that free space always work.
 *
 *      test_room [SEED [ROUNDS [FILTER]]]
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "alloc/alloc_internal.h"
#include "base/bits.h"
#include "fs/data/data.h"
#include "fs/data_rig.h"
#include "fs/core/inode.h"

#define BLOCK UINT64_C(4096)
#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)

/* Sanitizers make it ten times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHARE 10u
#else
#define SHARE 1u
#endif

static uint64_t seed = 1;
static unsigned int rounds = 1;
static uint8_t buf[1 << 20];

/* ---- the model ---- */

#define FILES		 12u
#define DIRS		 8u

#define REFUSED_IN_A_ROW 20u
#define GIVING		 50u

enum state {
	HOLE,
	DATA,
	KEPT,
};

struct file {
	bool exists;
	uint64_t ino, size;
	uint8_t *bytes;	 /* model->file_max */
	uint8_t *blocks; /* enum state, of each */
};

struct model {
	struct data_rig rig;
	struct zf_rng rng;
	struct file files[FILES];
	bool dirs[DIRS];
	uint64_t file_max, writes;
	uint64_t blocks_when_new; /* that it took */
	bool shares;		  /* copies have been made: blocks do not add up any more */
	unsigned int refused, accepted;
	unsigned int giving; /* operations that give back are more, for so many */
};

static void name_of(char name[32], const char *what, size_t number)
{
	snprintf(name, 32, "%s %zu", what, number);
}

static struct file *file_at(struct model *model)
{
	return &model->files[zf_rng_below(&model->rng, FILES)];
}

static size_t number_of(const struct model *model, const struct file *file)
{
	return (size_t)(file - model->files);
}

/* Writes until there is no room. Returns the number of bytes. */
static uint64_t fill(struct data_rig *rig, uint64_t ino, size_t piece)
{
	uint64_t at = 0;
	ssize_t r;

	for (size_t len = piece; len >= BLOCK; len /= 2)
		while ((r = zf_fs_write(rig->fs, &rig->ctx, ino, at, buf, len, 0)) > 0)
			at += (uint64_t)r;
	assert_int_equal(r, -ENOSPC);
	return at;
}

/* Of data and metadata, in blocks. */
static uint64_t fill_new(const struct data_rig_options *options)
{
	struct zf_space space;
	struct data_rig rig;

	data_rig_init(&rig, options);
	fill(&rig, data_rig_make(&rig, "file"), sizeof(buf));
	data_rig_sync(&rig);
	zf_alloc_get_space(zf_fs_alloc(rig.fs), &space);
	data_rig_deinit(&rig);
	return space.live / BLOCK;
}

static void model_init(struct model *model, const struct data_rig_options *options)
{
	*model = (struct model){0};
	zf_rng_seed(&model->rng, options->seed);
	model->blocks_when_new = fill_new(options);
	data_rig_init(&model->rig, options);
	model->file_max = zf_align_down(options->zone_count * options->zone_size / FILES, BLOCK);
	for (unsigned int i = 0; i < FILES; i++) {
		model->files[i].bytes = calloc(1, model->file_max);
		model->files[i].blocks = calloc(1, model->file_max / BLOCK);
		assert_non_null(model->files[i].bytes);
		assert_non_null(model->files[i].blocks);
	}
}

static void model_deinit(struct model *model)
{
	for (unsigned int i = 0; i < FILES; i++) {
		free(model->files[i].bytes);
		free(model->files[i].blocks);
	}
	data_rig_deinit(&model->rig);
}

static void set_blocks(struct file *file, uint64_t from, uint64_t to, enum state state)
{
	for (uint64_t at = from; at < to; at += BLOCK)
		file->blocks[at / BLOCK] = (uint8_t)state;
}

static uint64_t count_blocks(const struct model *model, enum state state)
{
	uint64_t count = 0;

	for (unsigned int i = 0; i < FILES; i++)
		for (uint64_t b = 0; b < model->file_max / BLOCK; b++)
			count += model->files[i].blocks[b] == state;
	return count;
}

/* ---- was that right? ---- */

/* Live blocks of data, including those in the log's zones. */
static uint64_t live_blocks(struct model *model)
{
	struct zf_alloc *alloc = zf_fs_alloc(model->rig.fs);
	uint64_t live = 0;

	for (uint32_t z = 2; z < zf_alloc_zone_count(alloc); z++) {
		struct zf_zone zone;

		zf_alloc_get_zone(alloc, z, &zone);
		if (zone.role != ZF_ROLE_META)
			live += zone.live;
	}
	return live;
}

static uint64_t zone_blocks(const struct data_rig_options *options)
{
	return (options->zone_capacity ? options->zone_capacity : options->zone_size) / BLOCK;
}

/*
 * An aged device takes as much as a new one, except for garbage in the zones that hot and cold data
 * is being written to, and in one metadata zone: that garbage is not worth moving data.
 */
static uint64_t blocks_lost_by_age(const struct data_rig_options *options)
{
	return (2 + (options->copies ? options->copies : 1)) * zone_blocks(options);
}

/*
 * A write takes what there is, block by block (fs/ops/file/write.c): one that gets nothing found no
 * room for one block, and perhaps another to be zeroed at the file's old end, and what recording
 * them takes. So statfs says, too.
 */
static void expect_no_block(struct model *model)
{
	struct zf_space space;

	zf_alloc_get_space(zf_fs_alloc(model->rig.fs), &space);
	if (space.available > 4 * BLOCK)
		fail_msg("seed %" PRIu64 ": a write was refused, with %" PRIu64 " KiB available",
			 model->rig.options.seed, space.available >> 10);
}

/* A request for `blocks` more was refused: then the device is full, including its garbage. */
static void expect_full(struct model *model, const char *what, uint64_t blocks)
{
	const struct data_rig_options *options = &model->rig.options;
	uint64_t live = live_blocks(model), metadata, data = count_blocks(model, DATA);
	uint64_t kept = count_blocks(model, KEPT);
	struct zf_space space;

	zf_alloc_get_space(zf_fs_alloc(model->rig.fs), &space);
	metadata = space.live / BLOCK - live;
	if (model->shares) {
		data = live;
		kept = space.kept / BLOCK;
	}
	if (++model->refused % REFUSED_IN_A_ROW == 0)
		model->giving = GIVING;
	/* An extent item for each single block that is kept or wanted takes room, too. */
	if (data + (kept + blocks) / 8 * 9 + 2 * metadata + blocks_lost_by_age(options) <
	    model->blocks_when_new)
		fail_msg("seed %" PRIu64 ": %s of %" PRIu64 " blocks was refused, with %" PRIu64
			 " blocks of data, %" PRIu64 " kept, %" PRIu64
			 " of metadata; new it took %" PRIu64,
			 options->seed, what, blocks, data, kept, metadata, model->blocks_when_new);
	if (getenv("ROOM_VERBOSE"))
		print_message("%s: %" PRId64 " of a zone more than when new\n", what,
			      (int64_t)(data + (kept + blocks) / 8 * 9 + metadata -
					model->blocks_when_new) *
				      100 / (int64_t)zone_blocks(options));
}

static void expect_done(struct model *model, const char *what, int r)
{
	if (r != 0)
		fail_msg("seed %" PRIu64 ", after %u done and %u refused: %s: %s",
			 model->rig.options.seed, model->accepted, model->refused, what,
			 strerror(-r));
	model->accepted++;
}

/* Returns whether the operation was done. Fails the test if it was refused without reason. */
static bool done_or_full(struct model *model, const char *what, int r, uint64_t blocks)
{
	if (r == -ENOSPC) {
		expect_full(model, what, blocks);
		return false;
	}
	expect_done(model, what, r);
	return true;
}

static void expect_bytes(struct model *model, const struct file *file)
{
	struct data_rig *rig = &model->rig;

	assert_int_equal(data_rig_size(rig, file->ino), file->size);
	for (uint64_t at = 0; at < file->size; at += sizeof(buf)) {
		size_t len = (size_t)zf_min_u64(sizeof(buf), file->size - at);

		assert_int_equal(zf_fs_read(rig->fs, &rig->ctx, file->ino, at, buf, len), len);
		for (size_t i = 0; i < len; i++)
			if (buf[i] != file->bytes[at + i])
				fail_msg("seed %" PRIu64 ": file %zu at %" PRIu64 " is wrong",
					 rig->options.seed, number_of(model, file), at + i);
	}
}

/* All that was accepted has landed, and is what it should be. */
static void expect_all(struct model *model)
{
	struct data_rig *rig = &model->rig;
	uint64_t live, wanted = count_blocks(model, DATA);

	expect_done(model, "sync", zf_fs_syncfs(rig->fs, &rig->ctx));
	for (unsigned int i = 0; i < FILES; i++)
		if (model->files[i].exists)
			expect_bytes(model, &model->files[i]);
	for (unsigned int i = 0; i < 4; i++)
		expect_done(model, "step", zf_fs_step(rig->fs));
	assert_int_equal(zf_fs_alloc(rig->fs)->reserved_blocks, 0);
	assert_int_equal(zf_fs_alloc(rig->fs)->reserved_items, 0);
	live = live_blocks(model);
	/* Inline data takes no block. */
	if (!model->shares && (live > wanted || live + FILES < wanted))
		fail_msg("seed %" PRIu64 ": %" PRIu64 " blocks are live, and not %" PRIu64,
			 rig->options.seed, live, wanted);
}

/* ---- operations ---- */

static uint64_t draw_len(struct model *model)
{
	uint64_t max = zf_rng_chance(&model->rng, 20) ? sizeof(buf) : 128 << 10;

	return 1 + zf_rng_below(&model->rng, max);
}

/* Draws mostly whole blocks, because these take room. */
static void draw_range(struct model *model, uint64_t limit, uint64_t *ret_from, uint64_t *ret_to)
{
	uint64_t from = zf_rng_below(&model->rng, limit), len = draw_len(model);

	if (zf_rng_chance(&model->rng, 70)) {
		from = zf_align_down(from, BLOCK);
		len = zf_align_up(len, BLOCK);
	}
	*ret_from = from;
	*ret_to = zf_min_u64(from + len, model->file_max);
}

static void make_file(struct model *model, struct file *file)
{
	struct data_rig *rig = &model->rig;
	struct zf_attr attr;
	char name[32];
	int r;

	name_of(name, "file", number_of(model, file));
	r = zf_fs_make(rig->fs, &rig->ctx, ZF_INO_ROOT, name, S_IFREG | 0644, 0, NULL, &attr);
	if (!done_or_full(model, "create", r, 0))
		return;
	zf_fs_forget(rig->fs, attr.ino, 1);
	file->exists = true;
	file->ino = attr.ino;
	file->size = 0;
	memset(file->bytes, 0, model->file_max);
	set_blocks(file, 0, model->file_max, HOLE);
}

static void remove_file(struct model *model, struct file *file)
{
	struct data_rig *rig = &model->rig;
	char name[32];

	name_of(name, "file", number_of(model, file));
	expect_done(model, "unlink", zf_fs_unlink(rig->fs, &rig->ctx, ZF_INO_ROOT, name));
	file->exists = false;
	set_blocks(file, 0, model->file_max, HOLE);
}

static void write_file(struct model *model, struct file *file, uint64_t from, uint64_t to)
{
	struct data_rig *rig = &model->rig;
	unsigned int flags = zf_rng_chance(&model->rng, 5) ? ZF_WRITE_DSYNC : 0;
	uint64_t len = to - from;
	ssize_t r;

	if (len == 0)
		return;
	data_rig_fill(model->writes++, from, buf, len);
	r = zf_fs_write(rig->fs, &rig->ctx, file->ino, from, buf, len, flags);
	if (r < 0) {
		if (!done_or_full(model, "write", (int)r, 2))
			expect_no_block(model);
		return;
	}
	assert_true(r > 0 && (uint64_t)r <= len);
	model->accepted++;
	memcpy(file->bytes + from, buf, (size_t)r);
	to = from + (uint64_t)r;
	set_blocks(file, zf_align_down(from, BLOCK), zf_align_up(to, BLOCK), DATA);
	file->size = zf_max_u64(file->size, to);
}

static void write_somewhere(struct model *model, struct file *file)
{
	uint64_t from, to;

	draw_range(model, model->file_max, &from, &to);
	write_file(model, file, from, to);
}

static void overwrite(struct model *model, struct file *file)
{
	uint64_t from, to;

	if (file->size < 2 * BLOCK)
		return;
	draw_range(model, file->size, &from, &to);
	write_file(model, file, from, zf_min_u64(to, file->size));
}

static void truncate_file(struct model *model, struct file *file, uint64_t size)
{
	struct data_rig *rig = &model->rig;
	const struct zf_setattr set = {.valid = ZF_SET_SIZE, .size = size};
	bool grows = size > file->size;
	struct zf_attr attr;
	int r = zf_fs_setattr(rig->fs, &rig->ctx, file->ino, &set, &attr);

	if (grows && !done_or_full(model, "growth", r, 1))
		return;
	if (!grows)
		expect_done(model, "truncate", r);
	if (!grows)
		memset(file->bytes + size, 0, file->size - size);
	set_blocks(file, zf_align_up(size, BLOCK), model->file_max, HOLE);
	file->size = size;
}

static int fallocate(struct model *model, struct file *file, int mode, uint64_t from, uint64_t to)
{
	struct data_rig *rig = &model->rig;

	return zf_fs_fallocate(rig->fs, &rig->ctx, file->ino, mode, from, to - from);
}

/* The blocks that lie wholly within the range. In the file's last block, bytes behind the file's end
 * do not count. */
static void whole_blocks(const struct file *file, uint64_t *from, uint64_t *to)
{
	uint64_t end = zf_align_down(*to, BLOCK);

	if (end < file->size && *to >= file->size)
		end = zf_align_up(*to, BLOCK);
	*from = zf_align_up(*from, BLOCK);
	*to = zf_max_u64(end, *from);
}

static void zero_bytes(struct file *file, uint64_t from, uint64_t to)
{
	memset(file->bytes + from, 0, to - from);
}

static void punch(struct model *model, struct file *file)
{
	uint64_t from, to;

	draw_range(model, model->file_max, &from, &to);
	if (from == to)
		return;
	expect_done(model, "punch", fallocate(model, file, PUNCH, from, to));
	zero_bytes(file, from, to);
	whole_blocks(file, &from, &to);
	set_blocks(file, from, to, HOLE);
}

static void allocate(struct model *model, struct file *file, bool zero)
{
	int mode = zero ? FALLOC_FL_ZERO_RANGE : 0;
	uint64_t from, to, outer_from, outer_to, end;

	draw_range(model, model->file_max, &from, &to);
	end = to;
	if (from == to ||
	    !done_or_full(model, zero ? "zero-range" : "fallocate",
			  fallocate(model, file, mode, from, to), (to - from) / BLOCK + 2))
		return;
	outer_from = zf_align_down(from, BLOCK);
	outer_to = zf_align_up(to, BLOCK);
	if (zero) {
		zero_bytes(file, from, to);
		whole_blocks(file, &from, &to);
		set_blocks(file, from, to, KEPT);
	}
	for (uint64_t at = outer_from; at < outer_to; at += BLOCK)
		if (file->blocks[at / BLOCK] == HOLE)
			file->blocks[at / BLOCK] = KEPT;
	file->size = zf_max_u64(file->size, end);
}

static void copy(struct model *model, struct file *in, struct file *out)
{
	struct data_rig *rig = &model->rig;
	uint64_t from, to, at = zf_align_down(zf_rng_below(&model->rng, model->file_max), BLOCK);
	ssize_t r;

	if (in == out || !in->exists || in->size < 2 * BLOCK)
		return;
	draw_range(model, in->size, &from, &to);
	to = zf_min_u64(zf_min_u64(to, in->size), from + model->file_max - at);
	r = zf_fs_copy_range(rig->fs, &rig->ctx, in->ino, from, out->ino, at, to - from);
	if (r < 0) {
		done_or_full(model, "copy", (int)r, (to - from) / BLOCK + 2);
		return;
	}
	model->accepted++;
	model->shares = true;
	memcpy(out->bytes + at, in->bytes + from, (size_t)r);
	out->size = zf_max_u64(out->size, at + (uint64_t)r);
}

/* Now and then; always during the GIVING operations after REFUSED_IN_A_ROW refusals. */
static bool gives_back(struct model *model)
{
	if (model->giving > 0)
		model->giving--;
	return model->giving > 0 || zf_rng_chance(&model->rng, 10);
}

/* Renames over another file, or to a free name. The rename may take no more room than a full device
 * has. */
static void rename_file(struct model *model, struct file *from, struct file *to)
{
	struct data_rig *rig = &model->rig;
	struct file was = *to;
	char old[32], new[32];
	int r;

	if (from == to || (to->exists && !gives_back(model)))
		return;
	name_of(old, "file", number_of(model, from));
	name_of(new, "file", number_of(model, to));
	r = zf_fs_rename(rig->fs, &rig->ctx, ZF_INO_ROOT, old, ZF_INO_ROOT, new, 0, NULL);
	if (!done_or_full(model, "rename", r, 0))
		return;
	*to = *from;
	*from = was;
	from->exists = false;
	set_blocks(from, 0, model->file_max, HOLE);
}

static void sync_file(struct model *model, struct file *file)
{
	struct data_rig *rig = &model->rig;

	expect_done(model, "fsync", zf_fs_fsync(rig->fs, &rig->ctx, file->ino, false));
}

static void make_or_remove_dir(struct model *model)
{
	size_t number = zf_rng_below(&model->rng, DIRS);
	struct data_rig *rig = &model->rig;
	struct zf_attr attr;
	char name[32];
	int r;

	name_of(name, "dir", number);
	if (model->dirs[number]) {
		expect_done(model, "rmdir", zf_fs_rmdir(rig->fs, &rig->ctx, ZF_INO_ROOT, name));
		model->dirs[number] = false;
		return;
	}
	r = zf_fs_make(rig->fs, &rig->ctx, ZF_INO_ROOT, name, S_IFDIR | 0755, 0, NULL, &attr);
	if (!done_or_full(model, "mkdir", r, 0))
		return;
	zf_fs_forget(rig->fs, attr.ino, 1);
	model->dirs[number] = true;
}

static void change_file(struct model *model, struct file *file, uint64_t dice)
{
	if (dice < 40)
		write_somewhere(model, file);
	else if (dice < 70)
		overwrite(model, file);
	else if (dice < 75)
		allocate(model, file, dice % 2);
	else if (dice < 80 && model->rig.options.seed % 2 == 0)
		copy(model, file_at(model), file);
	else if (!gives_back(model))
		write_somewhere(model, file);
	else if (dice < 94)
		punch(model, file);
	else if (dice < 98)
		truncate_file(model, file, zf_rng_below(&model->rng, model->file_max));
	else
		remove_file(model, file);
}

static void do_something(struct model *model)
{
	uint64_t dice = zf_rng_below(&model->rng, 100);
	struct file *file = file_at(model);

	if (dice < 4)
		make_or_remove_dir(model);
	else if (dice < 8)
		expect_done(model, "step", zf_fs_step(model->rig.fs));
	else if (!file->exists)
		make_file(model, file);
	else if (dice < 10)
		rename_file(model, file, file_at(model));
	else if (dice < 12)
		sync_file(model, file);
	else
		change_file(model, file, zf_rng_below(&model->rng, 100));
}

/* ---- at random ---- */

static const struct data_rig_options shapes[] = {
	{.zone_count = 16, .zone_size = 4 << 20},
	{.zone_count = 16, .zone_size = 4 << 20, .zone_capacity = 3 << 20, .max_active = 6},
	{.zone_count = 16, .zone_size = 4 << 20, .node_size = 4096, .dirty_bytes = 1 << 20},
	{.zone_count = 40, .zone_size = 1 << 20, .node_size = 4096, .max_active = 6},
	{.zone_count = 32, .zone_size = 4 << 20, .copies = 2, .max_active = 7},
	{.zone_count = 64, .zone_size = 2 << 20, .zone_capacity = 3 << 19},
};

/* As many operations as fill the device and fill it again. */
static unsigned int draw_count(const struct data_rig_options *shape)
{
	return (unsigned int)(shape->zone_count * shape->zone_size >> 14) / SHARE;
}

static void at_random(const struct data_rig_options *shape, uint64_t number)
{
	unsigned int count = draw_count(shape);
	struct model *model = malloc(sizeof(*model));
	struct data_rig_options options = *shape;

	assert_non_null(model);
	options.seed = number;
	options.memory = number % 2;
	model_init(model, &options);
	for (unsigned int i = 0; i < count; i++) {
		do_something(model);
		if (model->rig.errors > 0)
			fail_msg("seed %" PRIu64 ", after %u done: %s", number, model->accepted,
				 model->rig.message);
		if (i % (count / 4) == count / 4 - 1) {
			expect_all(model);
			data_rig_remount(&model->rig);
		}
	}
	print_message("seed %" PRIu64 ": %u done, %u refused\n", number, model->accepted,
		      model->refused);
	model_deinit(model);
	free(model);
}

static void what_is_accepted_stays_and_nothing_is_refused_while_there_is_room(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(shapes) * rounds; i++)
		at_random(&shapes[i % ZF_ARRAY_SIZE(shapes)], seed + i);
}

/* ---- full ---- */

static const struct data_rig_options smallest = {
	.seed = 1,
	.zone_count = 16,
	.zone_size = 4 << 20,
	.max_active = 6,
	.memory = true,
	.dirty_bytes = 8 << 20,
};

static void a_device_takes_as_much_each_time_that_it_is_filled(void **state)
{
	uint64_t least = UINT64_MAX, most = 0;
	struct data_rig rig;

	(void)state;
	data_rig_init(&rig, &smallest);
	memset(buf, 7, sizeof(buf));
	for (unsigned int i = 0; i < 100 / SHARE; i++) {
		uint64_t ino = data_rig_make(&rig, "file"), len = fill(&rig, ino, sizeof(buf));

		least = zf_min_u64(least, len);
		most = zf_max_u64(most, len);
		if (getenv("DBG")) {
			struct zf_space sp;
			struct zf_alloc *al = zf_fs_alloc(rig.fs);
			zf_alloc_get_space(al, &sp);
			print_message("fill %u: %lu MiB/16: avail %lu res %lu free %lu recl %lu "
				      "dead %lu live %lu\n",
				      i, len >> 16, sp.available >> 16, sp.reserved >> 16,
				      sp.free >> 16, sp.reclaimable >> 16, sp.unusable >> 16,
				      sp.live >> 16);
			for (uint32_t z = 2; z < 16; z++) {
				struct zf_zone q;
				zf_alloc_get_zone(al, z, &q);
				print_message(" %u:%u/%u/%u", z, q.role, q.pointer,
					      q.live + q.system_live);
			}
			print_message("\n");
		}
		data_rig_unlink(&rig, "file", ino);
	}
	print_message("%" PRIu64 " to %" PRIu64 " bytes\n", least, most);
	assert_true(most - least <= most / 100);
	data_rig_deinit(&rig);
}

static void a_file_of_four_times_the_free_space_can_be_rewritten(void **state)
{
	struct data_rig rig;
	uint64_t ino, room, len;

	(void)state;
	data_rig_init(&rig, &smallest);
	ino = data_rig_make(&rig, "probe");
	room = fill(&rig, ino, sizeof(buf));
	data_rig_unlink(&rig, "probe", ino);
	len = zf_align_down(room / 5 * 4, sizeof(buf));
	ino = data_rig_make(&rig, "file");
	for (uint64_t round = 0; round < 6; round++) {
		/* Every other round writes small pieces with fsyncs, which makes much metadata. */
		size_t piece = round % 2 ? 64 << 10 : sizeof(buf);

		for (uint64_t at = 0; at < len; at += piece) {
			data_rig_write_pattern(&rig, ino, round, at, piece);
			if (round % 2)
				assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, true), 0);
		}
	}
	for (uint64_t at = 0; at < len; at += sizeof(buf))
		data_rig_expect(&rig, ino, 5, at, sizeof(buf));
	data_rig_deinit(&rig);
}

/* Every fourth block of a full device is given up, so that garbage is everywhere. How many bytes.
 */
static uint64_t fill_and_scatter(struct data_rig *rig)
{
	uint64_t ino, room, freed = 0;

	memset(buf, 7, sizeof(buf));
	ino = data_rig_make(rig, "file");
	room = fill(rig, ino, sizeof(buf));
	data_rig_sync(rig);
	for (uint64_t at = 0; at < room; at += 4 * BLOCK, freed += BLOCK)
		data_rig_allocate(rig, ino, PUNCH, at, BLOCK);
	return freed;
}

static void scattered_garbage_comes_back(void **state)
{
	struct data_rig rig;
	uint64_t freed;

	(void)state;
	data_rig_init(&rig, &smallest);
	freed = fill_and_scatter(&rig);
	/* The rest of the freed space is used by the many extents. */
	assert_true(fill(&rig, data_rig_make(&rig, "other"), sizeof(buf)) > freed / 10 * 7);
	data_rig_deinit(&rig);
}

/*
 * Each write takes two blocks, and one more for what is to be zeroed at the file's old end, which
 * has landed. So sometimes there is room for the two and not for the third.
 */
static void grow_over_old_end(unsigned int blocks_before)
{
	uint64_t freed, ino, done = 0;
	struct data_rig rig;
	ssize_t r = BLOCK;

	data_rig_init(&rig, &smallest);
	freed = fill_and_scatter(&rig);
	ino = data_rig_make(&rig, "other");
	data_rig_write(&rig, ino, 0, buf, blocks_before * BLOCK);
	for (uint64_t at = 8 * BLOCK + 100; r == BLOCK; at += 4 * BLOCK, done += 2 * BLOCK) {
		r = zf_fs_write(rig.fs, &rig.ctx, ino, at, buf, BLOCK, 0);
		assert_int_equal(zf_data_flush_all(rig.fs, true), 0);
		if (r == BLOCK)
			data_rig_truncate(&rig, ino, at + BLOCK - 1);
	}
	assert_int_equal(r, -ENOSPC);
	print_message("%" PRIu64 " of %" PRIu64 " KiB\n", done >> 10, freed >> 10);
	assert_true(done > freed / 10 * 6);
	data_rig_deinit(&rig);
}

static void files_grow_over_their_old_end_as_long_as_there_is_garbage(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		grow_over_old_end(i);
}

static uint64_t metadata_bytes(struct data_rig *rig)
{
	struct zf_space space;

	zf_alloc_get_space(zf_fs_alloc(rig->fs), &space);
	return space.live - data_rig_live_blocks(rig) * BLOCK;
}

/* Names need room, too, and wait for room as data does. */
static void names_take_the_place_of_garbage(void **state)
{
	struct data_rig rig;
	uint64_t freed, before;
	struct zf_attr attr;
	char name[200];
	int r = 0;

	(void)state;
	data_rig_init(&rig, &smallest);
	freed = fill_and_scatter(&rig);
	before = metadata_bytes(&rig);
	for (unsigned int i = 0; r == 0; i++) {
		snprintf(name, sizeof(name), "%0190u", i);
		r = zf_fs_make(rig.fs, &rig.ctx, ZF_INO_ROOT, name, S_IFREG | 0644, 0, NULL, &attr);
		if (r == 0)
			zf_fs_forget(rig.fs, attr.ino, 1);
	}
	assert_int_equal(r, -ENOSPC);
	print_message("%" PRIu64 " of %" PRIu64 " KiB\n", (metadata_bytes(&rig) - before) >> 10,
		      freed >> 10);
	assert_true(metadata_bytes(&rig) - before > freed);
	data_rig_unlink(&rig, "file", 0);
	data_rig_deinit(&rig);
}

/* On a full device, with as much dirty data as possible, operations that free space work. */
static void what_gives_back_works_when_all_is_full(void **state)
{
	struct data_rig_options options = smallest;
	struct zf_attr attr;
	struct data_rig rig;
	uint64_t ino, other, len;

	(void)state;
	for (unsigned int way = 0; way < 2; way++) {
		options.memory = way == 0;
		options.dirty_bytes = 0;
		data_rig_init(&rig, &options);
		memset(buf, 7, sizeof(buf));
		ino = data_rig_make(&rig, "file");
		other = data_rig_make(&rig, "other");
		assert_int_equal(zf_fs_make(rig.fs, &rig.ctx, ZF_INO_ROOT, "dir", S_IFDIR | 0755, 0,
					    NULL, &attr),
				 0);
		zf_fs_forget(rig.fs, attr.ino, 1);
		data_rig_write(&rig, other, 0, buf, sizeof(buf));
		len = fill(&rig, ino, 3 * BLOCK);
		/* Dirty over and over. */
		for (unsigned int i = 0; i < 3000; i++)
			(void)zf_fs_write(rig.fs, &rig.ctx, ino, i * 7 % (len / BLOCK) * BLOCK, buf,
					  BLOCK, 0);
		assert_int_equal(zf_fs_rmdir(rig.fs, &rig.ctx, ZF_INO_ROOT, "dir"), 0);
		for (uint64_t at = 0; at < len / 2; at += 5 * BLOCK)
			data_rig_allocate(&rig, ino, PUNCH, at + 5, BLOCK);
		data_rig_allocate(&rig, ino, PUNCH, 5, len / 4);
		data_rig_truncate(&rig, ino, len / 2 + 5);
		data_rig_unlink(&rig, "other", other);
		data_rig_sync(&rig);
		data_rig_unlink(&rig, "file", ino);
		data_rig_deinit(&rig);
	}
}

/* The file's old blocks make room for the new ones, though perhaps not in one step. */
static void write_again(struct data_rig *rig, uint64_t ino, uint64_t len)
{
	ssize_t r;

	data_rig_truncate(rig, ino, 0);
	for (uint64_t at = 0; at < len; at += (uint64_t)r) {
		r = zf_fs_write(rig->fs, &rig->ctx, ino, at, buf, len - at, 0);
		assert_true(r > 0);
	}
}

/*
 * Data that is truncated while it is in flight leaves garbage in the zone that is written. That
 * zone is reclaimed only when no append to it is in flight any more, and a writer that needs the
 * room waits for that.
 */
static void what_was_truncated_in_flight_comes_back(void **state)
{
	const struct data_rig_options options = {
		.seed = seed, .zone_count = 24, .zone_size = 4 << 20, .memory = true};
	uint64_t files[8], filler, len = sizeof(buf);
	struct data_rig rig;
	char name[32];

	(void)state;
	data_rig_init(&rig, &options);
	for (unsigned int i = 0; i < 8; i++) {
		name_of(name, "file", i);
		files[i] = data_rig_make(&rig, name);
		data_rig_write(&rig, files[i], 0, buf, len);
	}
	filler = data_rig_make(&rig, "filler");
	/* Metadata may need a little more room than before. */
	data_rig_truncate(&rig, filler, fill(&rig, filler, sizeof(buf)) - sizeof(buf) / 4);
	for (unsigned int i = 0; i < 200; i++) {
		uint64_t file = files[i * 5 % 8];

		write_again(&rig, file, len);
		assert_int_equal(zf_data_flush_all(rig.fs, false), 0);
		write_again(&rig, file, len);
	}
	data_rig_deinit(&rig);
}

/* A writer that waits for room lands the data of other files; errors stay with those files. */
static void an_error_is_told_to_the_file_that_lost_data(void **state)
{
	struct data_rig_options options = smallest;
	struct zf_error_cursor errors;
	struct data_rig rig;
	uint64_t ino, other;

	(void)state;
	options.memory = false;
	options.dirty_bytes = 0;
	data_rig_init(&rig, &options);
	memset(buf, 7, sizeof(buf));
	ino = data_rig_make(&rig, "file");
	other = data_rig_make(&rig, "other");
	data_rig_sync(&rig);
	rig.errors_expected = true;
	data_rig_write(&rig, ino, 0, buf, 4 * BLOCK);
	for (unsigned int i = 1; i <= 2; i++)
		zf_sim_add_fault(rig.sim, &(struct zf_sim_fault){
						  .op = ZF_IO_APPEND, .nth = i, .error = -EIO});
	assert_int_equal(zf_data_flush_all(rig.fs, false), 0);
	zf_fs_step(rig.fs);
	fill(&rig, other, sizeof(buf));
	zf_fs_begin_errors(rig.fs, ino, &errors);
	assert_int_equal(data_rig_fsync(&rig, ino, &errors), -EIO);
	assert_int_equal(data_rig_fsync(&rig, ino, &errors), 0);
	data_rig_drop(&rig);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_takes_as_much_each_time_that_it_is_filled),
		cmocka_unit_test(a_file_of_four_times_the_free_space_can_be_rewritten),
		cmocka_unit_test(scattered_garbage_comes_back),
		cmocka_unit_test(files_grow_over_their_old_end_as_long_as_there_is_garbage),
		cmocka_unit_test(names_take_the_place_of_garbage),
		cmocka_unit_test(what_gives_back_works_when_all_is_full),
		cmocka_unit_test(what_was_truncated_in_flight_comes_back),
		cmocka_unit_test(an_error_is_told_to_the_file_that_lost_data),
		cmocka_unit_test(what_is_accepted_stays_and_nothing_is_refused_while_there_is_room),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		rounds = (unsigned int)strtoul(argv[2], NULL, 0);
	if (argc > 3)
		cmocka_set_test_filter(argv[3]);
	print_message("seed %" PRIu64 "\n", seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
