/* SPDX-License-Identifier: MIT */
/* Slowing down and waiting for room, with the background at work. */
#include <errno.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc/reclaim.h"
#include "base/bits.h"
#include "fs/core/inode.h"
#include "fs/data_rig.h"
#include "fs/space/reclaim.h"
#include "fs/space/room.h"

#define BLOCK	UINT64_C(4096)
#define WRITERS 4u

static const struct data_rig_options small = {
	.threads = true,
	.seed = 1,
	.zone_count = 32,
	.zone_size = 1 << 20,
	.commit_ms = 50,
	.dirty_bytes = 4 << 20,
};

static uint8_t buf[1 << 20];

/* ---- slowing down ---- */

/* Writes a third of the device, then every other block again, so that garbage is everywhere. */
static void make_garbage(struct data_rig *rig)
{
	uint64_t ino = data_rig_make(rig, "file"), len = 10 << 20;

	for (uint64_t at = 0; at < len; at += sizeof(buf))
		data_rig_write(rig, ino, at, buf, sizeof(buf));
	data_rig_sync(rig);
	for (uint64_t at = 0; at < len; at += 2 * BLOCK)
		data_rig_allocate(rig, ino, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, BLOCK);
	data_rig_sync(rig);
}

/* Sets a reclaim target that is larger than the device. */
static void want_much(struct data_rig *rig)
{
	zf_alloc_set_reclaim_target(zf_fs_alloc(rig->fs), 1000);
	zf_room_look(rig->fs);
}

static void writers_wait_only_where_reclaim_can_help(void **state)
{
	struct data_rig rig;

	(void)state;
	data_rig_init(&rig, &small);
	/* There is no garbage, so a wait would be in vain. */
	want_much(&rig);
	assert_int_equal(rig.fs->room->cost_ns, 0);
	zf_reclaim_pause(rig.fs, true);
	make_garbage(&rig);
	zf_room_look(rig.fs);
	assert_int_equal(rig.fs->room->cost_ns, 0);
	zf_reclaim_pause(rig.fs, false);
	zf_room_look(rig.fs);
	assert_true(rig.fs->room->cost_ns > 0);
	/* There are as many empty zones as the target wants. */
	zf_alloc_set_reclaim_target(zf_fs_alloc(rig.fs), 0);
	zf_room_look(rig.fs);
	assert_int_equal(rig.fs->room->cost_ns, 0);
	data_rig_deinit(&rig);
}

static void a_write_waits_a_tenth_of_a_second_at_most(void **state)
{
	struct data_rig_options options = small;
	struct zf_reclaim_stats stats;
	struct data_rig rig;
	uint64_t began, took;

	(void)state;
	options.commit_ms = 100000; /* nobody looks */
	data_rig_init(&rig, &options);
	zf_reclaim_pause(rig.fs, true);
	make_garbage(&rig);
	zf_reclaim_pause(rig.fs, false);
	want_much(&rig);
	assert_true(rig.fs->room->cost_ns > 0);
	/* A caller that may not wait is let through as long as the delay is below a millisecond. */
	atomic_store(&rig.fs->room->cost_ns, 100000);
	atomic_store(&rig.fs->room->looked_ns, UINT64_MAX / 2);
	for (unsigned int i = 0; i < 9; i++)
		assert_int_equal(zf_room_pace(rig.fs, 1, false), 0);
	while (zf_room_pace(rig.fs, 1, false) == 0)
		;
	assert_int_equal(zf_room_pace(rig.fs, 100, false), -EAGAIN);
	began = zf_room_now_ns();
	assert_int_equal(zf_room_pace(rig.fs, 1000000, true), 0);
	took = zf_room_now_ns() - began;
	assert_in_range(took, 90000000, 400000000);
	zf_reclaim_get_stats(rig.fs, &stats);
	assert_true(stats.waits > 0 && stats.wait_ns >= 90000000);
	data_rig_deinit(&rig);
}

/* ---- many writers on a nearly full device ---- */

#define FILE_BYTES (UINT64_C(4) << 20)
#define WRITES	   3000u

struct writer {
	struct data_rig *rig;
	uint64_t ino;
	struct zf_rng rng;
	uint64_t longest_ns, over_200_ms;
	int error;
	uint8_t bytes[FILE_BYTES / BLOCK]; /* what each block is full of */
};

static void write_block(struct writer *writer, uint64_t block, uint8_t value)
{
	const struct zf_ctx ctx = {.may_wait = true};
	uint64_t began = zf_room_now_ns(), took;
	uint8_t bytes[BLOCK];
	ssize_t r;

	memset(bytes, value, sizeof(bytes));
	r = zf_fs_write(writer->rig->fs, &ctx, writer->ino, block * BLOCK, bytes, BLOCK, 0);
	took = zf_room_now_ns() - began;
	writer->longest_ns = zf_max_u64(writer->longest_ns, took);
	writer->over_200_ms += took > 200000000;
	if (r != (ssize_t)BLOCK)
		writer->error = (int)r;
	writer->bytes[block] = value;
}

static void *run_writer(void *arg)
{
	struct writer *writer = arg;
	uint64_t blocks = FILE_BYTES / BLOCK;

	for (uint64_t i = 0; i < blocks; i++)
		write_block(writer, i, 1);
	for (unsigned int i = 0; i < WRITES && !writer->error; i++)
		write_block(writer, zf_rng_below(&writer->rng, blocks),
			    (uint8_t)zf_rng_below(&writer->rng, 256));
	return NULL;
}

static void expect_written(struct writer *writer)
{
	uint8_t bytes[BLOCK];

	for (uint64_t i = 0; i < FILE_BYTES / BLOCK; i++) {
		assert_int_equal(zf_fs_read(writer->rig->fs, &writer->rig->ctx, writer->ino,
					    i * BLOCK, bytes, BLOCK),
				 BLOCK);
		for (unsigned int b = 0; b < BLOCK; b++)
			assert_int_equal(bytes[b], writer->bytes[i]);
	}
}

/* Four files take all but a few zones, and are overwritten three times, at random. */
static void writers_go_on_when_it_is_nearly_full(void **state)
{
	struct writer *writers = calloc(WRITERS, sizeof(*writers));
	struct data_rig_options options = small;
	struct zf_reclaim_stats stats;
	pthread_t threads[WRITERS];
	struct data_rig rig;
	char name[16];

	(void)state;
	assert_non_null(writers);
	data_rig_init(&rig, &options);
	for (unsigned int i = 0; i < WRITERS; i++) {
		snprintf(name, sizeof(name), "file %u", i);
		writers[i] = (struct writer){.rig = &rig, .ino = data_rig_make(&rig, name)};
		zf_rng_seed(&writers[i].rng, i);
		assert_int_equal(pthread_create(&threads[i], NULL, run_writer, &writers[i]), 0);
	}
	for (unsigned int i = 0; i < WRITERS; i++) {
		pthread_join(threads[i], NULL);
		if (writers[i].error)
			fail_msg("writer %u: %s", i, strerror(-writers[i].error));
		print_message("longest %" PRIu64 " ms, %" PRIu64 " over 200 ms\n",
			      writers[i].longest_ns / 1000000, writers[i].over_200_ms);
	}
	zf_reclaim_get_stats(rig.fs, &stats);
	print_message("%" PRIu64 " waits, %" PRIu64 " ms, %" PRIu64 " victims\n", stats.waits,
		      stats.wait_ns / 1000000, stats.victims);
	assert_true(stats.victims > 0);
	data_rig_sync(&rig);
	for (unsigned int i = 0; i < WRITERS; i++)
		expect_written(&writers[i]);
	data_rig_deinit(&rig);
	free(writers);
}

/* ---- files without a name on a full device ---- */

/* A file of 8 MiB that the kernel holds: that is open, for all that the daemon knows. */
static uint64_t make_nameless(struct data_rig *rig)
{
	uint64_t ino = data_rig_make(rig, "nameless");
	struct zf_attr attr;

	for (uint64_t at = 0; at < 8 << 20; at += sizeof(buf))
		data_rig_write(rig, ino, at, buf, sizeof(buf));
	assert_int_equal(zf_fs_lookup(rig->fs, &rig->ctx, ZF_INO_ROOT, "nameless", &attr), 0);
	data_rig_unlink(rig, "nameless", ino);
	data_rig_sync(rig);
	return ino;
}

/* Appends until nothing fits any more: how many blocks did? */
static uint64_t append_all(struct data_rig *rig, uint64_t ino)
{
	uint64_t blocks = 0;
	ssize_t r;

	while ((r = zf_fs_write(rig->fs, &rig->ctx, ino, blocks * BLOCK, buf, BLOCK, 0)) > 0)
		blocks++;
	assert_int_equal(r, -ENOSPC);
	return blocks;
}

struct closer {
	struct data_rig *rig;
	uint64_t ino;
	bool deletes; /* as if it had been deleting all the time */
	unsigned int after_ms;
};

static void *close_later(void *arg)
{
	struct closer *closer = arg;

	usleep(closer->after_ms * 1000);
	zf_fs_forget(closer->rig->fs, closer->ino, 1);
	if (closer->deletes)
		atomic_fetch_sub(&closer->rig->fs->deleting, 1);
	return NULL;
}

/* Writes to a full device while another thread closes a file without a name. */
static ssize_t write_while_closing(bool deletes, unsigned int after_ms)
{
	struct closer closer = {.deletes = deletes, .after_ms = after_ms};
	struct data_rig rig;
	uint64_t file, blocks;
	pthread_t thread;
	ssize_t r;

	data_rig_init(&rig, &small);
	closer.rig = &rig;
	closer.ino = make_nameless(&rig);
	file = data_rig_make(&rig, "file");
	blocks = append_all(&rig, file);
	atomic_fetch_add(&rig.fs->deleting, deletes);
	assert_int_equal(pthread_create(&thread, NULL, close_later, &closer), 0);
	r = zf_fs_write(rig.fs, &rig.ctx, file, blocks * BLOCK, buf, sizeof(buf), 0);
	pthread_join(thread, NULL);
	data_rig_deinit(&rig);
	return r;
}

/* close() returns before the daemon hears of it. */
static void a_request_for_room_waits_for_a_close_under_way(void **state)
{
	(void)state;
	assert_int_equal(write_while_closing(false, 30), sizeof(buf));
}

static void a_request_for_room_waits_as_long_as_something_is_deleted(void **state)
{
	(void)state;
	assert_int_equal(write_while_closing(true, 300), sizeof(buf));
}

static void a_request_for_room_does_not_wait_long_for_open_files(void **state)
{
	(void)state;
	assert_int_equal(write_while_closing(false, 1000), -ENOSPC);
}

struct seeker {
	struct data_rig *rig;
	_Atomic uint64_t began_ns;
	atomic_bool done;
	int result;
};

static void *seek_room(void *arg)
{
	struct seeker *seeker = arg;
	struct zf_room_search search = {0};

	atomic_store(&seeker->began_ns, zf_room_now_ns());
	seeker->result = zf_room_reserve(seeker->rig->fs, ZF_RESERVE_NORMAL, 256, 0, &search);
	atomic_store(&seeker->done, true);
	return NULL;
}

/* A request for nothing is granted unless another thread has, or wants, the turn. */
static bool is_no_turn(struct data_rig *rig)
{
	return zf_room_reserve(rig->fs, ZF_RESERVE_NORMAL, 0, 0, NULL) == 0;
}

/* The search takes at least 100 ms, and its turn a small part of these. */
static bool others_have_their_turn(struct data_rig *rig)
{
	struct seeker seeker = {.rig = rig};
	bool had = false;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, seek_room, &seeker), 0);
	while (!atomic_load(&seeker.done)) {
		bool free = is_no_turn(rig);
		uint64_t began = atomic_load(&seeker.began_ns);

		had |= free && began > 0 && zf_room_now_ns() > began + 20000000 &&
		       !atomic_load(&seeker.done);
		usleep(1000);
	}
	pthread_join(thread, NULL);
	assert_int_equal(seeker.result, -ENOSPC);
	return had;
}

static void others_have_their_turn_while_one_waits_for_a_close(void **state)
{
	bool had = false;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &small);
	ino = make_nameless(&rig);
	append_all(&rig, data_rig_make(&rig, "file"));
	/* On a busy machine this thread may sleep through one search. */
	for (unsigned int i = 0; i < 20 && !had; i++)
		had = others_have_their_turn(&rig);
	assert_true(had);
	zf_fs_forget(rig.fs, ino, 1);
	data_rig_deinit(&rig);
}

/*
 * A write that finds no room is halved again and again, down to a block. If each of the nine tries
 * waited by itself, every write would take at least 900 ms on any machine.
 */
static void a_write_waits_for_a_close_once(void **state)
{
	uint64_t took = UINT64_MAX;
	struct data_rig rig;
	uint64_t ino, file, blocks;

	(void)state;
	data_rig_init(&rig, &small);
	ino = make_nameless(&rig);
	file = data_rig_make(&rig, "file");
	blocks = append_all(&rig, file);
	for (unsigned int i = 0; i < 10 && took >= 900000000; i++) {
		uint64_t began = zf_room_now_ns();

		assert_int_equal(
			zf_fs_write(rig.fs, &rig.ctx, file, blocks * BLOCK, buf, sizeof(buf), 0),
			-ENOSPC);
		took = zf_room_now_ns() - began;
	}
	assert_in_range(took, 100000000, 900000000);
	zf_fs_forget(rig.fs, ino, 1);
	data_rig_deinit(&rig);
}

/* Other threads delete something each time that the search for room begins again. */
static atomic_bool others_delete;

int __real_zf_flush_land_all(struct zf_fs *fs);
int __wrap_zf_flush_land_all(struct zf_fs *fs);
int __wrap_zf_flush_land_all(struct zf_fs *fs)
{
	if (atomic_load(&others_delete))
		atomic_fetch_add(&fs->deletions, 1);
	return __real_zf_flush_land_all(fs);
}

/* Without a bound of the search this test hangs. */
static void a_request_for_room_does_not_wait_for_ever_beside_deletions(void **state)
{
	struct data_rig rig;
	uint64_t ino, file;

	(void)state;
	data_rig_init(&rig, &small);
	ino = make_nameless(&rig);
	file = data_rig_make(&rig, "file");
	append_all(&rig, file);
	atomic_store(&others_delete, true);
	assert_int_equal(zf_fs_write(rig.fs, &rig.ctx, file, UINT64_C(1) << 30, buf, BLOCK, 0),
			 -ENOSPC);
	assert_int_equal(zf_fs_fallocate(rig.fs, &rig.ctx, file, 0, 0, UINT64_C(1) << 30), -ENOSPC);
	atomic_store(&others_delete, false);
	zf_fs_forget(rig.fs, ino, 1);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_for_room_waits_for_a_close_under_way),
		cmocka_unit_test(a_request_for_room_waits_as_long_as_something_is_deleted),
		cmocka_unit_test(a_request_for_room_does_not_wait_long_for_open_files),
		cmocka_unit_test(others_have_their_turn_while_one_waits_for_a_close),
		cmocka_unit_test(a_write_waits_for_a_close_once),
		cmocka_unit_test(a_request_for_room_does_not_wait_for_ever_beside_deletions),
		cmocka_unit_test(writers_wait_only_where_reclaim_can_help),
		cmocka_unit_test(a_write_waits_a_tenth_of_a_second_at_most),
		cmocka_unit_test(writers_go_on_when_it_is_nearly_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
