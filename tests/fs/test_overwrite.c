/* SPDX-License-Identifier: MIT */
/* Space that FALLOC_FL_WRITE_ZEROES allocates in conventional zones, and overwrites in place. */
#include <errno.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc/overwrite.h"
#include "alloc/reserve.h"
#include "alloc/zone.h"
#include "fs/core/inode.h"
#include "fs/data/data.h"
#include "fs/data/flush.h"
#include "fs/data_rig.h"

#define BLOCK 4096u
#define KIB   1024u
#define MIB   (1024u * KIB)

static uint8_t buf[8 << 20];

/* ---- helpers ---- */

struct seen {
	unsigned int writes, appends, zeroes, flushes, fua;
	uint64_t addr; /* of the last write */
};

static void see(void *arg, const struct zf_io *io)
{
	struct seen *seen = arg;

	seen->writes += io->op == ZF_IO_WRITE;
	seen->appends += io->op == ZF_IO_APPEND;
	seen->zeroes += io->op == ZF_IO_ZEROES;
	seen->flushes += io->op == ZF_IO_FLUSH;
	seen->fua += io->fua;
	if (io->op == ZF_IO_WRITE)
		seen->addr = io->addr;
}

static void begin_seeing(struct data_rig *rig, struct seen *seen)
{
	*seen = (struct seen){0};
	zf_dev_set_recorder(rig->dev, see, seen);
}

static void expect_commands(const struct seen *seen, unsigned int writes, unsigned int fua,
			    unsigned int appends, unsigned int flushes)
{
	assert_int_equal(seen->writes, writes);
	assert_int_equal(seen->fua, fua);
	assert_int_equal(seen->appends, appends);
	assert_int_equal(seen->flushes, flushes);
}

static void write_zeroes(struct data_rig *rig, uint64_t ino, uint64_t offset, uint64_t len)
{
	assert_int_equal(
		zf_fs_fallocate(rig->fs, &rig->ctx, ino, ZF_FALLOC_WRITE_ZEROES, offset, len), 0);
}

static void write_seed(struct data_rig *rig, uint64_t ino, uint64_t seed, uint64_t offset,
		       size_t len, unsigned int flags)
{
	data_rig_fill(seed, offset, buf, len);
	assert_int_equal(zf_fs_write(rig->fs, &rig->ctx, ino, offset, buf, len, flags), len);
}

static void sync_file(struct data_rig *rig, uint64_t ino)
{
	assert_int_equal(zf_fs_fsync(rig->fs, &rig->ctx, ino, true), 0);
}

/* A durable file whose blocks are all written in place. */
static uint64_t make_zeroed(struct data_rig *rig, uint64_t len)
{
	uint64_t ino = data_rig_make(rig, "file");

	write_zeroes(rig, ino, 0, len);
	data_rig_sync(rig);
	return ino;
}

static void set_mode(struct data_rig *rig, uint64_t ino, uint32_t mode)
{
	const struct zf_setattr set = {.valid = ZF_SET_MODE, .mode = mode};
	struct zf_attr attr;

	assert_int_equal(zf_fs_setattr(rig->fs, &rig->ctx, ino, &set, &attr), 0);
}

/* Bytes of [from, to) that are overwritten in place, by the extents. */
static uint64_t in_place_bytes(struct data_rig *rig, uint64_t ino, uint64_t from, uint64_t to)
{
	struct data_rig_extents extents;
	uint64_t bytes = 0;

	data_rig_extents(rig, ino, &extents);
	for (int i = 0; i < extents.count; i++) {
		const struct zf_extent_info *info = &extents.at[i];
		uint64_t at = info->offset > from ? info->offset : from;
		uint64_t end = info->offset + info->len < to ? info->offset + info->len : to;

		if ((info->flags & ZF_EXTENT_OVERWRITE) && at < end)
			bytes += end - at;
	}
	return bytes;
}

static uint64_t address_at(struct data_rig *rig, uint64_t ino, uint64_t offset)
{
	struct data_rig_extents extents;

	data_rig_extents(rig, ino, &extents);
	for (int i = 0; i < extents.count; i++)
		if (extents.at[i].offset <= offset &&
		    offset < extents.at[i].offset + extents.at[i].len)
			return extents.at[i].address + (offset - extents.at[i].offset);
	return 0;
}

static unsigned int zones_of_role(struct data_rig *rig, enum zf_role role, uint64_t *ret_live)
{
	struct zf_alloc *alloc = zf_fs_alloc(rig->fs);
	unsigned int n = 0;

	*ret_live = 0;
	for (uint32_t z = 0; z < zf_alloc_zone_count(alloc); z++) {
		struct zf_zone zone;

		zf_alloc_get_zone(alloc, z, &zone);
		if (zone.role != role)
			continue;
		n++;
		*ret_live += zone.live;
	}
	return n;
}

/* Puts old bytes everywhere in the conventional zones, so that bytes that were not zeroed show. */
static void soil(struct data_rig *rig)
{
	uint8_t dirt[BLOCK];

	memset(dirt, 0xdd, sizeof(dirt));
	for (uint64_t at = 2u * MIB; at < (uint64_t)rig->options.conventional * MIB; at += BLOCK)
		zf_sim_poke(rig->sim, at, dirt);
}

static void open_rig(struct data_rig *rig, uint32_t conventional)
{
	const struct data_rig_options options = {.seed = 7, .conventional = conventional};

	data_rig_init(rig, &options);
	soil(rig);
}

/* ---- what it promises ---- */

static void zeroes_are_written_and_flushed_before_anything_names_them(void **state)
{
	struct data_rig rig;
	struct seen seen;
	uint64_t ino, offset, live;

	(void)state;
	open_rig(&rig, 6);
	ino = data_rig_make(&rig, "file");
	begin_seeing(&rig, &seen);
	write_zeroes(&rig, ino, 0, 512 * KIB);
	assert_int_equal(seen.zeroes, 1);
	expect_commands(&seen, 0, 0, 0, 1);
	zf_dev_set_recorder(rig.dev, NULL, NULL);
	assert_int_equal(data_rig_size(&rig, ino), 512 * KIB);
	assert_int_equal(in_place_bytes(&rig, ino, 0, MIB), 512 * KIB);
	data_rig_expect_zeroes(&rig, ino, 0, 512 * KIB);
	assert_int_equal(zf_fs_seek(rig.fs, &rig.ctx, ino, 4096, SEEK_DATA, &offset), 0);
	assert_int_equal(offset, 4096);
	assert_int_equal(zones_of_role(&rig, ZF_ROLE_OVERWRITE, &live), 1);
	assert_int_equal(live, 128);
	data_rig_remount(&rig);
	data_rig_expect_zeroes(&rig, ino, 0, 512 * KIB);
	assert_int_equal(in_place_bytes(&rig, ino, 0, MIB), 512 * KIB);
	data_rig_deinit(&rig);
}

static void a_durable_overwrite_is_one_fua_write_where_it_was(void **state)
{
	struct data_rig rig;
	struct seen seen;
	uint64_t ino, address;

	(void)state;
	open_rig(&rig, 6);
	ino = make_zeroed(&rig, 512 * KIB);
	address = address_at(&rig, ino, 10 * BLOCK);
	begin_seeing(&rig, &seen);
	for (unsigned int i = 1; i <= 20; i++) {
		write_seed(&rig, ino, i, 10 * BLOCK, BLOCK, ZF_WRITE_DSYNC);
		expect_commands(&seen, i, i, 0, 0);
		assert_int_equal(seen.addr, address);
	}
	zf_dev_set_recorder(rig.dev, NULL, NULL);
	assert_int_equal(address_at(&rig, ino, 10 * BLOCK), address);
	assert_int_equal(in_place_bytes(&rig, ino, 0, MIB), 512 * KIB);
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 20, 10 * BLOCK, BLOCK);
	data_rig_expect_zeroes(&rig, ino, 0, 10 * BLOCK);
	data_rig_expect_zeroes(&rig, ino, 11 * BLOCK, 100 * BLOCK);
	data_rig_deinit(&rig);
}

static void part_of_a_block_is_overwritten_in_place_too(void **state)
{
	struct data_rig rig;
	struct seen seen;
	uint64_t ino;

	(void)state;
	open_rig(&rig, 6);
	ino = data_rig_make(&rig, "file");
	write_zeroes(&rig, ino, 0, 64 * KIB);
	write_seed(&rig, ino, 1, 0, 64 * KIB, 0);
	data_rig_sync(&rig);
	begin_seeing(&rig, &seen);
	write_seed(&rig, ino, 2, 5 * BLOCK + 100, 200, ZF_WRITE_DSYNC);
	expect_commands(&seen, 1, 1, 0, 0);
	zf_dev_set_recorder(rig.dev, NULL, NULL);
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 1, 0, 5 * BLOCK + 100);
	data_rig_expect(&rig, ino, 2, 5 * BLOCK + 100, 200);
	data_rig_expect(&rig, ino, 1, 5 * BLOCK + 300, 10 * BLOCK);
	data_rig_deinit(&rig);
}

static void fsync_after_writes_without_fua_is_a_flush(void **state)
{
	struct data_rig rig;
	struct seen seen;
	uint64_t ino, other;

	(void)state;
	open_rig(&rig, 6);
	ino = data_rig_make(&rig, "file");
	other = data_rig_make(&rig, "other");
	write_zeroes(&rig, ino, 0, 64 * KIB);
	write_zeroes(&rig, other, 0, 64 * KIB);
	data_rig_sync(&rig);
	write_seed(&rig, ino, 1, 0, 2 * BLOCK, 0);
	write_seed(&rig, ino, 1, 8 * BLOCK, BLOCK, 0);
	begin_seeing(&rig, &seen);
	assert_int_equal(zf_data_flush_all(rig.fs, false), 0);
	while (seen.writes < 2)
		assert_true(zf_dev_poll(rig.dev, true) > 0);
	while (zf_data_land(rig.fs) > 0)
		;
	expect_commands(&seen, 2, 0, 0, 0);
	sync_file(&rig, ino);
	expect_commands(&seen, 2, 0, 0, 1);
	/* One flush is enough, and the other file has nothing to flush. */
	sync_file(&rig, ino);
	sync_file(&rig, other);
	expect_commands(&seen, 2, 0, 0, 1);
	zf_dev_set_recorder(rig.dev, NULL, NULL);
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 1, 0, 2 * BLOCK);
	data_rig_expect(&rig, ino, 1, 8 * BLOCK, BLOCK);
	data_rig_deinit(&rig);
}

/* With lazytime only access times stay in memory: a flush stores the changes of a write in place.
 */
static void a_write_in_place_is_not_as_lazy_as_a_read(void **state)
{
	const struct data_rig_options options = {.seed = 7, .conventional = 6, .lazy_time = true};
	struct data_rig rig;
	struct zf_attr attr;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = make_zeroed(&rig, BLOCK);
	set_mode(&rig, ino, 06777);
	data_rig_sync(&rig);
	rig.now_ns += INT64_C(10000000000);
	assert_int_equal(zf_fs_read(rig.fs, &rig.ctx, ino, 0, buf, BLOCK), BLOCK);
	write_seed(&rig, ino, 1, 0, BLOCK, ZF_WRITE_KILL_SUIDGID);
	for (int i = 0; i < 10; i++)
		assert_int_equal(zf_fs_step(rig.fs), 0);
	data_rig_crash(&rig);
	assert_int_equal(zf_fs_getattr(rig.fs, &rig.ctx, ino, &attr), 0);
	assert_int_equal(attr.mode & 07777, 0777);
	assert_int_equal(attr.mtime.seconds, attr.atime.seconds);
	data_rig_deinit(&rig);
}

static void expect_name(struct data_rig *rig, const char *name)
{
	struct zf_attr attr;

	assert_int_equal(zf_fs_lookup(rig->fs, &rig->ctx, ZF_INO_ROOT, name, &attr), 0);
	zf_fs_forget(rig->fs, attr.ino, 1);
}

/* P2: the file itself has no change that a record would have to describe. */
static void what_was_done_before_is_durable_with_a_write_in_place(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	open_rig(&rig, 6);
	ino = make_zeroed(&rig, 10 * BLOCK);
	data_rig_make(&rig, "before the write");
	write_seed(&rig, ino, 1, 0, BLOCK, ZF_WRITE_DSYNC);
	data_rig_make(&rig, "before the fsync");
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 1, 0, BLOCK);
	expect_name(&rig, "before the write");
	expect_name(&rig, "before the fsync");
	data_rig_deinit(&rig);
}

static void what_was_done_before_is_durable_with_an_fsync_of_nothing(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	open_rig(&rig, 6);
	ino = make_zeroed(&rig, 10 * BLOCK);
	data_rig_make(&rig, "before the fsync");
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
	data_rig_crash(&rig);
	expect_name(&rig, "before the fsync");
	data_rig_deinit(&rig);
}

static void what_is_not_durable_of_the_file_itself_takes_a_commit(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	open_rig(&rig, 6);
	ino = data_rig_make(&rig, "file");
	write_zeroes(&rig, ino, 0, 10 * BLOCK + 100);
	/* Its extents are in no superblock yet. */
	write_seed(&rig, ino, 1, 0, BLOCK, ZF_WRITE_DSYNC);
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 1, 0, BLOCK);
	assert_int_equal(data_rig_size(&rig, ino), 10 * BLOCK + 100);
	/* The file grows within its last block, then another block is made durable. */
	write_seed(&rig, ino, 2, 10 * BLOCK + 100, 200, 0);
	write_seed(&rig, ino, 2, BLOCK, BLOCK, ZF_WRITE_DSYNC);
	data_rig_crash(&rig);
	assert_int_equal(data_rig_size(&rig, ino), 10 * BLOCK + 300);
	data_rig_expect(&rig, ino, 2, 10 * BLOCK + 100, 200);
	data_rig_expect(&rig, ino, 2, BLOCK, BLOCK);
	data_rig_deinit(&rig);
}

/* Another operation stores the size, but its own record does not contain the size. */
static void growth_in_place_is_told_though_another_operation_stored_it(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	open_rig(&rig, 6);
	ino = make_zeroed(&rig, 10 * BLOCK + 100);
	write_seed(&rig, ino, 1, 10 * BLOCK + 100, 200, 0);
	assert_int_equal(zf_data_flush_all(rig.fs, false), 0);
	while (zf_dev_poll(rig.dev, true) > 0)
		zf_data_land(rig.fs);
	set_mode(&rig, ino, 0600);
	write_seed(&rig, ino, 2, 0, BLOCK, ZF_WRITE_DSYNC);
	data_rig_crash(&rig);
	assert_int_equal(data_rig_size(&rig, ino), 10 * BLOCK + 300);
	data_rig_expect(&rig, ino, 1, 10 * BLOCK + 100, 200);
	data_rig_deinit(&rig);
}

/* An inode leaves memory with its last use. */
static void open_forgetful_rig(struct data_rig *rig)
{
	const struct data_rig_options options = {.seed = 7, .conventional = 6, .cache_bytes = 1};

	data_rig_init(rig, &options);
	soil(rig);
}

/* The inode's times are durable before its data has landed, so nothing else shows that the file has
 * data to be flushed. */
static void an_inode_that_left_memory_is_flushed_all_the_same(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	open_forgetful_rig(&rig);
	ino = make_zeroed(&rig, 10 * BLOCK);
	write_seed(&rig, ino, 1, 4 * BLOCK, BLOCK, 0);
	set_mode(&rig, ino, 0640);
	assert_int_equal(zf_txn_commit(rig.fs->txn, true), 0);
	assert_int_equal(zf_data_flush_all(rig.fs, true), 0);
	sync_file(&rig, ino);
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 1, 4 * BLOCK, BLOCK);
	data_rig_deinit(&rig);
}

/* The inode item is stored while the bytes behind the old end are in flight. */
static void a_size_that_grew_in_place_is_stored(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	for (unsigned int synced = 0; synced < 2; synced++) {
		open_forgetful_rig(&rig);
		ino = make_zeroed(&rig, BLOCK + 100);
		write_seed(&rig, ino, 1, BLOCK + 100, 100, 0);
		set_mode(&rig, ino, 0640);
		assert_int_equal(zf_txn_commit(rig.fs->txn, true), 0);
		if (synced) {
			sync_file(&rig, ino);
			data_rig_crash(&rig);
		} else {
			assert_int_equal(zf_data_flush_all(rig.fs, true), 0);
		}
		assert_int_equal(data_rig_size(&rig, ino), BLOCK + 200);
		data_rig_expect(&rig, ino, 1, BLOCK + 100, 100);
		data_rig_deinit(&rig);
	}
}

/* The inode item is stored and committed while the block that the file grew by is in memory. */
static void growth_in_place_is_stored_once_it_has_landed(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	open_rig(&rig, 6);
	ino = make_zeroed(&rig, 10 * BLOCK + 100);
	for (unsigned int round = 1; round <= 2; round++) {
		write_seed(&rig, ino, round, 10 * BLOCK + round * 100, 100, 0);
		set_mode(&rig, ino, 0600);
		assert_int_equal(zf_txn_sync(zf_fs_txn(rig.fs)), 0);
		if (round == 1) {
			sync_file(&rig, ino);
			data_rig_crash(&rig);
		} else {
			data_rig_remount(&rig);
		}
		assert_int_equal(data_rig_size(&rig, ino), 10 * BLOCK + 100 + round * 100);
		data_rig_expect(&rig, ino, round, 10 * BLOCK + round * 100, 100);
	}
	data_rig_deinit(&rig);
}

static void a_rename_over_a_file_takes_along_what_was_written_in_place(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	open_rig(&rig, 6);
	ino = data_rig_make(&rig, "new");
	write_zeroes(&rig, ino, 0, 10 * BLOCK);
	data_rig_make(&rig, "file");
	data_rig_sync(&rig);
	write_seed(&rig, ino, 1, 0, 10 * BLOCK, 0);
	set_mode(&rig, ino, 0640);
	assert_int_equal(zf_txn_commit(rig.fs->txn, true), 0);
	assert_int_equal(
		zf_fs_rename(rig.fs, &rig.ctx, ZF_INO_ROOT, "new", ZF_INO_ROOT, "file", 0, NULL),
		0);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ZF_INO_ROOT, false), 0);
	data_rig_crash(&rig);
	assert_int_equal(zf_fs_unlink(rig.fs, &rig.ctx, ZF_INO_ROOT, "new"), -ENOENT);
	data_rig_expect(&rig, ino, 1, 0, 10 * BLOCK);
	data_rig_deinit(&rig);
}

/* A replay of the growth would zero bytes behind the old end that were written since. */
static void replaying_a_growth_leaves_what_was_written_in_place_since(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	open_rig(&rig, 6);
	ino = data_rig_make(&rig, "file");
	write_zeroes(&rig, ino, 0, 2 * BLOCK);
	write_seed(&rig, ino, 1, 0, 2 * BLOCK, 0);
	data_rig_sync(&rig);
	data_rig_truncate(&rig, ino, 1000);
	data_rig_truncate(&rig, ino, 8 * BLOCK);
	write_seed(&rig, ino, 2, 500, 2000, 0);
	sync_file(&rig, ino);
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 1, 0, 500);
	data_rig_expect(&rig, ino, 2, 500, 2000);
	data_rig_expect_zeroes(&rig, ino, 2500, 8 * BLOCK - 2500);
	data_rig_deinit(&rig);
}

static void the_zeroes_of_a_growth_are_as_durable_as_the_growth(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	open_rig(&rig, 6);
	ino = data_rig_make(&rig, "file");
	write_zeroes(&rig, ino, 0, 2 * BLOCK);
	write_seed(&rig, ino, 1, 0, 2 * BLOCK, 0);
	data_rig_sync(&rig);
	data_rig_truncate(&rig, ino, 1000);
	data_rig_truncate(&rig, ino, 8 * BLOCK);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ZF_INO_ROOT, false), 0);
	data_rig_crash(&rig);
	assert_int_equal(data_rig_size(&rig, ino), 8 * BLOCK);
	data_rig_expect(&rig, ino, 1, 0, 1000);
	data_rig_expect_zeroes(&rig, ino, 1000, 8 * BLOCK - 1000);
	data_rig_deinit(&rig);
}

/* P2: a file is truncated to nothing, written again in place, and closed. */
static void what_a_truncated_file_got_in_place_follows_when_it_is_closed(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	open_rig(&rig, 6);
	ino = data_rig_make(&rig, "file");
	write_seed(&rig, ino, 1, 0, 4 * BLOCK, 0);
	data_rig_sync(&rig);
	data_rig_truncate(&rig, ino, 0);
	write_zeroes(&rig, ino, 0, 4 * BLOCK);
	write_seed(&rig, ino, 2, 0, 4 * BLOCK, 0);
	assert_int_equal(zf_fs_close(rig.fs, &rig.ctx, ino), 0);
	assert_int_equal(zf_data_flush_all(rig.fs, true), 0);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ZF_INO_ROOT, false), 0);
	data_rig_crash(&rig);
	assert_int_equal(data_rig_size(&rig, ino), 4 * BLOCK);
	data_rig_expect(&rig, ino, 2, 0, 4 * BLOCK);
	data_rig_deinit(&rig);
}

/* The file's extents are only in a log record. The next mount takes their space before any other
 * file can get it. */
static void what_only_the_log_names_is_replayed(void **state)
{
	struct data_rig rig;
	uint64_t ino, other, address;

	(void)state;
	open_rig(&rig, 4);
	ino = data_rig_make(&rig, "file");
	other = data_rig_make(&rig, "other");
	data_rig_sync(&rig);
	for (unsigned int round = 1; round < 4; round++) {
		write_zeroes(&rig, ino, 0, 128 * KIB);
		write_seed(&rig, ino, round, 8 * BLOCK, BLOCK, ZF_WRITE_DSYNC);
		sync_file(&rig, ino);
		address = address_at(&rig, ino, 0);
		data_rig_crash(&rig);
		assert_int_equal(address_at(&rig, ino, 0), address);
		assert_int_equal(in_place_bytes(&rig, ino, 0, MIB), 128 * KIB);
		data_rig_expect(&rig, ino, round, 8 * BLOCK, BLOCK);
		data_rig_expect_zeroes(&rig, ino, 0, 8 * BLOCK);
		write_zeroes(&rig, other, 0, 512 * KIB);
		data_rig_expect(&rig, ino, round, 8 * BLOCK, BLOCK);
		data_rig_truncate(&rig, other, 0);
	}
	data_rig_deinit(&rig);
}

static void full_fsync_keeps_the_times_too(void **state)
{
	struct data_rig rig;
	struct zf_attr before, after;
	uint64_t ino;

	(void)state;
	open_rig(&rig, 6);
	ino = make_zeroed(&rig, 10 * BLOCK);
	write_seed(&rig, ino, 1, 0, BLOCK, ZF_WRITE_DSYNC);
	assert_int_equal(zf_fs_getattr(rig.fs, &rig.ctx, ino, &before), 0);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
	data_rig_crash(&rig);
	assert_int_equal(zf_fs_getattr(rig.fs, &rig.ctx, ino, &after), 0);
	assert_int_equal(after.mtime.seconds, before.mtime.seconds);
	assert_int_equal(after.mtime.nanoseconds, before.mtime.nanoseconds);
	data_rig_deinit(&rig);
}

/* With chattr +S an fsync follows every write, not an fdatasync. */
static void a_file_that_is_sync_keeps_the_times_of_a_write(void **state)
{
	const struct zf_set_flags sync = {.mask = ZF_INODE_SYNC, .flags = ZF_INODE_SYNC};
	struct zf_attr before, after;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	open_rig(&rig, 6);
	ino = data_rig_make(&rig, "file");
	write_zeroes(&rig, ino, 0, 10 * BLOCK);
	assert_int_equal(zf_fs_set_flags(rig.fs, &rig.ctx, ino, &sync), 0);
	data_rig_sync(&rig);
	rig.now_ns += 1000000000;
	write_seed(&rig, ino, 1, 0, BLOCK, 0);
	assert_int_equal(zf_fs_getattr(rig.fs, &rig.ctx, ino, &before), 0);
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 1, 0, BLOCK);
	assert_int_equal(zf_fs_getattr(rig.fs, &rig.ctx, ino, &after), 0);
	assert_int_equal(after.mtime.seconds, before.mtime.seconds);
	data_rig_deinit(&rig);
}

static void overwriting_never_fails_for_space(void **state)
{
	struct data_rig rig;
	uint64_t ino, other;
	ssize_t r;

	(void)state;
	open_rig(&rig, 6);
	ino = data_rig_make(&rig, "file");
	other = data_rig_make(&rig, "other");
	write_zeroes(&rig, ino, 0, 2 * MIB);
	data_rig_sync(&rig);
	data_rig_fill(3, 0, buf, MIB);
	for (uint64_t at = 0; (r = zf_fs_write(rig.fs, &rig.ctx, other, at, buf, MIB, 0)) > 0;)
		at += (uint64_t)r;
	assert_int_equal(r, -ENOSPC);
	for (unsigned int i = 1; i <= 6; i++) {
		write_seed(&rig, ino, i, 0, 2 * MIB, 0);
		write_seed(&rig, ino, i, 5 * BLOCK + 7, 100, ZF_WRITE_DSYNC);
	}
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 6, 5 * BLOCK, BLOCK);
	data_rig_unlink(&rig, "other", other);
	data_rig_deinit(&rig);
}

/* ---- what it falls back to ---- */

static void where_there_is_no_such_zone_space_is_kept(void **state)
{
	struct data_rig rig;
	struct data_rig_extents extents;
	uint64_t ino, live;

	(void)state;
	for (uint32_t conventional = 0; conventional <= 4; conventional += 2) {
		open_rig(&rig, conventional);
		ino = data_rig_make(&rig, "file");
		write_zeroes(&rig, ino, 100, 4 * MIB);
		data_rig_expect_zeroes(&rig, ino, 0, 4 * MIB + 100);
		assert_int_equal(data_rig_size(&rig, ino), 4 * MIB + 100);
		assert_int_equal(in_place_bytes(&rig, ino, 0, 8 * MIB),
				 conventional == 4 ? 2 * MIB : 0);
		assert_int_equal(zones_of_role(&rig, ZF_ROLE_OVERWRITE, &live),
				 conventional == 4 ? 2 : 0);
		data_rig_extents(&rig, ino, &extents);
		assert_int_equal(extents.at[extents.count - 1].type, ZF_EXTENT_ZERO);
		data_rig_remount(&rig);
		data_rig_expect_zeroes(&rig, ino, 0, 4 * MIB + 100);
		data_rig_deinit(&rig);
	}
}

static void a_device_that_cannot_zero_is_no_reason_to_fail(void **state)
{
	const struct zf_sim_fault fault = {.op = ZF_IO_ZEROES, .nth = 1, .error = -EIO};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	open_rig(&rig, 6);
	ino = data_rig_make(&rig, "file");
	zf_sim_add_fault(rig.sim, &fault);
	write_zeroes(&rig, ino, 0, 512 * KIB);
	assert_int_equal(zf_sim_faults_left(rig.sim), 0);
	assert_int_equal(in_place_bytes(&rig, ino, 0, MIB), 0);
	data_rig_expect_zeroes(&rig, ino, 0, 512 * KIB);
	/* The space in place that could not be zeroed was given back. */
	write_zeroes(&rig, ino, 0, 4 * MIB);
	assert_int_equal(in_place_bytes(&rig, ino, 0, 8 * MIB), 4 * MIB);
	data_rig_deinit(&rig);
}

static void a_failed_write_in_place_is_told_once_and_leaves_what_was_there(void **state)
{
	const struct zf_sim_fault fault = {.op = ZF_IO_WRITE, .nth = 1, .error = -EIO};
	struct zf_error_cursor errors;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	open_rig(&rig, 6);
	ino = make_zeroed(&rig, 512 * KIB);
	rig.errors_expected = true;
	zf_fs_begin_errors(rig.fs, ino, &errors);
	write_seed(&rig, ino, 1, 3 * BLOCK, 2 * BLOCK, 0);
	zf_sim_add_fault(rig.sim, &fault);
	assert_int_equal(zf_data_flush_all(rig.fs, false), 0);
	while (rig.errors == 0) {
		zf_dev_poll(rig.dev, true);
		zf_data_land(rig.fs);
	}
	data_rig_expect_zeroes(&rig, ino, 3 * BLOCK, 2 * BLOCK);
	write_seed(&rig, ino, 2, 4 * BLOCK, BLOCK, 0);
	assert_int_equal(data_rig_fsync(&rig, ino, &errors), -EIO);
	assert_int_equal(data_rig_fsync(&rig, ino, &errors), 0);
	data_rig_expect(&rig, ino, 2, 4 * BLOCK, BLOCK);
	data_rig_expect_zeroes(&rig, ino, 3 * BLOCK, BLOCK);
	assert_int_equal(rig.fs->flush.used_bytes, 0);
	data_rig_deinit(&rig);
}

/* ---- giving up what was allocated ---- */

static void what_is_punched_comes_back_when_that_is_durable(void **state)
{
	struct data_rig rig;
	uint64_t ino, other, address, live;

	(void)state;
	open_rig(&rig, 3); /* one zone */
	ino = data_rig_make(&rig, "file");
	other = data_rig_make(&rig, "other");
	write_zeroes(&rig, ino, 0, MIB);
	write_seed(&rig, ino, 1, 0, MIB, 0);
	data_rig_sync(&rig);
	address = address_at(&rig, ino, 64 * KIB);
	assert_int_equal(zf_fs_fallocate(rig.fs, &rig.ctx, ino,
					 FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 64 * KIB,
					 64 * KIB),
			 0);
	assert_int_equal(in_place_bytes(&rig, ino, 0, MIB), MIB - 64 * KIB);
	data_rig_expect_zeroes(&rig, ino, 64 * KIB, 64 * KIB);
	zones_of_role(&rig, ZF_ROLE_OVERWRITE, &live);
	assert_int_equal(live, 256 - 16);
	/* The allocation waits for a commit, and zeroes the space after the commit, not before. */
	write_zeroes(&rig, other, 0, 64 * KIB);
	assert_int_equal(in_place_bytes(&rig, other, 0, MIB), 64 * KIB);
	assert_int_equal(address_at(&rig, other, 0), address);
	data_rig_expect_zeroes(&rig, other, 0, 64 * KIB);
	data_rig_expect(&rig, ino, 1, 128 * KIB, 64 * KIB);
	data_rig_crash(&rig);
	data_rig_expect_zeroes(&rig, ino, 64 * KIB, 64 * KIB);
	data_rig_expect(&rig, ino, 1, 0, 64 * KIB);
	data_rig_expect(&rig, ino, 1, 128 * KIB, 64 * KIB);
	data_rig_deinit(&rig);
}

static void truncated_unlinked_and_zeroed_ranges_come_back(void **state)
{
	struct data_rig rig;
	uint64_t ino, live;

	(void)state;
	open_rig(&rig, 4);
	for (unsigned int round = 0; round < 12; round++) {
		ino = data_rig_make(&rig, "file");
		write_zeroes(&rig, ino, 0, 2 * MIB);
		assert_int_equal(in_place_bytes(&rig, ino, 0, 2 * MIB), 2 * MIB);
		data_rig_expect_zeroes(&rig, ino, 0, 2 * MIB);
		write_seed(&rig, ino, round, 0, 2 * MIB, 0);
		if (round % 3 == 0)
			data_rig_truncate(&rig, ino, 100);
		if (round % 3 == 1)
			assert_int_equal(zf_fs_fallocate(rig.fs, &rig.ctx, ino,
							 FALLOC_FL_ZERO_RANGE, 0, 2 * MIB),
					 0);
		data_rig_unlink(&rig, "file", ino);
		if (round % 4 == 3)
			data_rig_remount(&rig);
	}
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(zf_txn_commit(zf_fs_txn(rig.fs), true), 0);
	while (zf_txn_tidy(zf_fs_txn(rig.fs), false) == ZF_TIDY_DID)
		;
	/* The zones have no role any more. */
	assert_int_equal(zones_of_role(&rig, ZF_ROLE_OVERWRITE, &live), 0);
	data_rig_deinit(&rig);
}

static void zeroing_again_is_in_place_again(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	open_rig(&rig, 6);
	ino = data_rig_make(&rig, "file");
	write_seed(&rig, ino, 1, 0, MIB, 0);
	write_zeroes(&rig, ino, 100, 512 * KIB); /* over what is dirty */
	assert_int_equal(in_place_bytes(&rig, ino, 0, MIB), 512 * KIB - BLOCK);
	data_rig_expect(&rig, ino, 1, 0, 100);
	data_rig_expect_zeroes(&rig, ino, 100, 512 * KIB);
	data_rig_expect(&rig, ino, 1, 512 * KIB + 100, 512 * KIB - 100);
	write_seed(&rig, ino, 2, 0, MIB, 0);
	write_zeroes(&rig, ino, 0, MIB); /* over what is on its way in place */
	data_rig_expect_zeroes(&rig, ino, 0, MIB);
	assert_int_equal(in_place_bytes(&rig, ino, 0, MIB), MIB);
	data_rig_crash(&rig);
	data_rig_deinit(&rig);
}

static void a_reader_keeps_what_it_looked_up(void **state)
{
	struct data_rig rig;
	struct zf_alloc *alloc;
	uint64_t ino, other;
	unsigned int hold;

	(void)state;
	open_rig(&rig, 3);
	alloc = zf_fs_alloc(rig.fs);
	ino = data_rig_make(&rig, "file");
	other = data_rig_make(&rig, "other");
	write_zeroes(&rig, ino, 0, MIB);
	data_rig_sync(&rig);
	hold = zf_alloc_overwrite_hold(alloc);
	data_rig_truncate(&rig, ino, 0);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(zf_txn_commit(zf_fs_txn(rig.fs), true), 0);
	/* Holds that begin later do not keep the space. */
	for (unsigned int i = 0; i < 4; i++)
		zf_alloc_overwrite_let_go(alloc, zf_alloc_overwrite_hold(alloc));
	write_zeroes(&rig, other, 0, 64 * KIB);
	assert_int_equal(in_place_bytes(&rig, other, 0, MIB), 0);
	zf_alloc_overwrite_let_go(alloc, hold);
	write_zeroes(&rig, other, 0, 64 * KIB);
	assert_int_equal(in_place_bytes(&rig, other, 0, MIB), 64 * KIB);
	data_rig_deinit(&rig);
}

static void a_copy_is_a_copy(void **state)
{
	struct data_rig rig;
	uint64_t ino, copy;

	(void)state;
	open_rig(&rig, 6);
	ino = data_rig_make(&rig, "file");
	copy = data_rig_make(&rig, "copy");
	write_zeroes(&rig, ino, 0, 256 * KIB);
	write_seed(&rig, ino, 1, 0, 256 * KIB, 0);
	assert_int_equal(zf_fs_copy_range(rig.fs, &rig.ctx, ino, 0, copy, 0, 256 * KIB), 256 * KIB);
	write_seed(&rig, ino, 2, 0, 256 * KIB, 0);
	data_rig_expect(&rig, copy, 1, 0, 256 * KIB);
	assert_int_equal(in_place_bytes(&rig, copy, 0, MIB), 0);
	assert_int_equal(in_place_bytes(&rig, ino, 0, MIB), 256 * KIB);
	/* Shared data that is copied onto data in place replaces that data. */
	assert_int_equal(zf_fs_copy_range(rig.fs, &rig.ctx, copy, 0, ino, 0, 128 * KIB), 128 * KIB);
	data_rig_expect(&rig, ino, 1, 0, 128 * KIB);
	data_rig_expect(&rig, ino, 2, 128 * KIB, 128 * KIB);
	data_rig_deinit(&rig);
}

static void the_space_is_counted(void **state)
{
	struct data_rig rig;
	struct zf_space before, after;
	uint64_t ino;

	(void)state;
	open_rig(&rig, 6);
	ino = data_rig_make(&rig, "file");
	zf_alloc_get_space(zf_fs_alloc(rig.fs), &before);
	write_zeroes(&rig, ino, 0, 64 * KIB);
	zf_alloc_get_space(zf_fs_alloc(rig.fs), &after);
	assert_int_equal(after.total, before.total);
	assert_int_equal(after.in_place, MIB - 64 * KIB);
	assert_true(after.live >= before.live + 64 * KIB);
	assert_int_equal(before.available - after.available, MIB);
	data_rig_deinit(&rig);
}

/* ---- against a model ---- */

#define MODEL_BYTES (600u * KIB)

struct model {
	struct data_rig rig;
	struct zf_rng rng;
	uint64_t ino, size;
	uint8_t bytes[MODEL_BYTES];
};

static void step(struct model *model)
{
	struct data_rig *rig = &model->rig;
	uint64_t from = zf_rng_below(&model->rng, MODEL_BYTES - 1);
	uint64_t len =
		1 + zf_rng_below(&model->rng,
				 zf_rng_chance(&model->rng, 50) ? 3 * BLOCK : MODEL_BYTES - from);
	uint64_t what = zf_rng_below(&model->rng, 12);
	int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	if (len > MODEL_BYTES - from)
		len = MODEL_BYTES - from;
	if (what < 5) {
		zf_rng_fill(&model->rng, buf, len);
		memcpy(model->bytes + from, buf, len);
		assert_int_equal(zf_fs_write(rig->fs, &rig->ctx, model->ino, from, buf, len,
					     what == 0 ? ZF_WRITE_DSYNC : 0),
				 len);
	} else if (what < 9) {
		if (what > 6)
			mode = what == 7 ? ZF_FALLOC_WRITE_ZEROES : FALLOC_FL_ZERO_RANGE;
		if (what == 6)
			mode = ZF_FALLOC_WRITE_ZEROES;
		assert_int_equal(zf_fs_fallocate(rig->fs, &rig->ctx, model->ino, mode, from, len),
				 0);
		memset(model->bytes + from, 0, len);
		if (mode & FALLOC_FL_KEEP_SIZE)
			len = 0;
	} else if (what == 9) {
		data_rig_truncate(rig, model->ino, from);
		memset(model->bytes + from, 0, MODEL_BYTES - from);
		model->size = from;
		len = 0;
	} else {
		zf_data_flush_all(rig->fs, false);
		zf_data_land(rig->fs);
		len = 0;
	}
	if (len > 0 && from + len > model->size)
		model->size = from + len;
	if (what == 11 && zf_rng_chance(&model->rng, 20))
		data_rig_remount(rig);
}

static void a_file_holds_what_was_written_to_it(void **state)
{
	static struct model model;
	static uint8_t got[MODEL_BYTES];

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		const struct data_rig_options options = {
			.seed = seed,
			.conventional = 3 + (uint32_t)seed % 3,
			.node_size = 4096,
			.dirty_bytes = 256 * KIB,
		};

		memset(&model, 0, sizeof(model));
		zf_rng_seed(&model.rng, seed);
		data_rig_init(&model.rig, &options);
		soil(&model.rig);
		model.ino = data_rig_make(&model.rig, "file");
		for (unsigned int i = 0; i < 150; i++) {
			step(&model);
			assert_int_equal(data_rig_size(&model.rig, model.ino), model.size);
			assert_int_equal(zf_fs_read(model.rig.fs, &model.rig.ctx, model.ino, 0, got,
						    sizeof(got)),
					 model.size);
			if (memcmp(got, model.bytes, model.size) != 0)
				fail_msg("seed %lu, step %u: other bytes than were written",
					 (unsigned long)seed, i);
		}
		data_rig_deinit(&model.rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zeroes_are_written_and_flushed_before_anything_names_them),
		cmocka_unit_test(a_durable_overwrite_is_one_fua_write_where_it_was),
		cmocka_unit_test(part_of_a_block_is_overwritten_in_place_too),
		cmocka_unit_test(fsync_after_writes_without_fua_is_a_flush),
		cmocka_unit_test(a_write_in_place_is_not_as_lazy_as_a_read),
		cmocka_unit_test(what_was_done_before_is_durable_with_a_write_in_place),
		cmocka_unit_test(what_was_done_before_is_durable_with_an_fsync_of_nothing),
		cmocka_unit_test(what_is_not_durable_of_the_file_itself_takes_a_commit),
		cmocka_unit_test(growth_in_place_is_told_though_another_operation_stored_it),
		cmocka_unit_test(growth_in_place_is_stored_once_it_has_landed),
		cmocka_unit_test(a_rename_over_a_file_takes_along_what_was_written_in_place),
		cmocka_unit_test(what_a_truncated_file_got_in_place_follows_when_it_is_closed),
		cmocka_unit_test(replaying_a_growth_leaves_what_was_written_in_place_since),
		cmocka_unit_test(the_zeroes_of_a_growth_are_as_durable_as_the_growth),
		cmocka_unit_test(what_only_the_log_names_is_replayed),
		cmocka_unit_test(full_fsync_keeps_the_times_too),
		cmocka_unit_test(a_file_that_is_sync_keeps_the_times_of_a_write),
		cmocka_unit_test(overwriting_never_fails_for_space),
		cmocka_unit_test(where_there_is_no_such_zone_space_is_kept),
		cmocka_unit_test(a_device_that_cannot_zero_is_no_reason_to_fail),
		cmocka_unit_test(a_failed_write_in_place_is_told_once_and_leaves_what_was_there),
		cmocka_unit_test(what_is_punched_comes_back_when_that_is_durable),
		cmocka_unit_test(truncated_unlinked_and_zeroed_ranges_come_back),
		cmocka_unit_test(zeroing_again_is_in_place_again),
		cmocka_unit_test(a_reader_keeps_what_it_looked_up),
		cmocka_unit_test(a_copy_is_a_copy),
		cmocka_unit_test(the_space_is_counted),
		cmocka_unit_test(an_inode_that_left_memory_is_flushed_all_the_same),
		cmocka_unit_test(a_size_that_grew_in_place_is_stored),
		cmocka_unit_test(a_file_holds_what_was_written_to_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
