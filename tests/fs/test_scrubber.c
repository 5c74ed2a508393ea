/* SPDX-License-Identifier: MIT */
/* A mount's scrub across remounts (fs/mount/scrubber.h), and the fault counters
 * (fs/space/faults.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fs/core/inode.h"
#include "fs/data_rig.h"
#include "fs/mount/scrubber.h"
#include "fs/space/faults.h"

#define BLOCK	    4096u
#define FILE_BLOCKS 2000u

/* ---- helpers ---- */

/* The clock of this program. Each reading moves it on by 10 ms, so the pace does not depend on the
 * machine. */
static uint64_t now_ns = 1;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	now_ns += 10000000;
	ts->tv_sec = (time_t)(now_ns / 1000000000);
	ts->tv_nsec = (long)(now_ns % 1000000000);
	return 0;
}

static void init_rig(struct data_rig *rig, uint8_t copies)
{
	const struct data_rig_options options = {.memory = true, .copies = copies};

	data_rig_init(rig, &options);
}

/* Flips a bit of the stored bytes. */
static void flip(struct data_rig *rig, uint64_t address)
{
	uint64_t zone_size = zf_dev_geometry(rig->dev)->zone_size;
	uint8_t *zone = zf_memory_zone(rig->memory, (uint32_t)(address / zone_size));

	zone[address % zone_size] ^= 1;
}

static uint64_t make_file(struct data_rig *rig, const char *name, unsigned int blocks)
{
	uint64_t ino = data_rig_make(rig, name);

	data_rig_write_pattern(rig, ino, 1, 0, blocks * BLOCK);
	data_rig_sync(rig);
	return ino;
}

static uint64_t address_of(struct data_rig *rig, uint64_t ino)
{
	struct data_rig_extents extents;

	data_rig_extents(rig, ino, &extents);
	assert_true(extents.count > 0);
	return extents.at[0].address;
}

static struct zf_scrub_record record_of(struct data_rig *rig)
{
	struct zf_scrub_record record;

	zf_scrubber_get(rig->fs, &record);
	return record;
}

static struct zf_faults faults_of(struct data_rig *rig)
{
	struct zf_faults faults;

	zf_faults_get(rig->fs, &faults);
	return faults;
}

static int step(struct data_rig *rig)
{
	uint64_t wait_ms;

	return zf_scrubber_step(rig->fs, &wait_ms);
}

static void run(struct data_rig *rig)
{
	while (step(rig) > 0)
		;
	assert_int_equal(record_of(rig).state, ZF_SCRUB_FINISHED);
}

static bool has_item(struct data_rig *rig, uint8_t type)
{
	const struct zf_key key = ZF_KEY(ZF_TREE_ROOT, type, 0);
	int r = zf_tree_lookup(rig->fs->forest, ZF_TREE_ROOT, &key, NULL, 0, NULL);

	assert_true(r == 0 || r == -ENOENT);
	return r == 0;
}

/* Without unmounting: what no commit has stored is lost. */
static void stop_short(struct data_rig *rig)
{
	zf_fs_abandon(rig->fs);
	rig->fs = NULL;
	assert_int_equal(data_rig_mount_opened(rig), 0);
}

/* ---- the scrub ---- */

static void a_scrub_goes_from_start_to_end(void **state)
{
	struct zf_scrub_record record;
	struct data_rig rig;

	(void)state;
	init_rig(&rig, 1);
	make_file(&rig, "file", 300);
	assert_int_equal(record_of(&rig).state, ZF_SCRUB_NONE);
	assert_int_equal(step(&rig), 0);
	assert_int_equal(zf_scrubber_start(rig.fs, 0), 0);
	run(&rig);
	record = record_of(&rig);
	assert_int_equal(record.data_bytes, 300 * BLOCK);
	assert_true(record.node_bytes > 0);
	assert_int_equal(record.errors + record.repaired + record.skipped, 0);
	assert_int_equal(record.ended, record.completed);
	data_rig_remount(&rig);
	assert_int_equal(record_of(&rig).state, ZF_SCRUB_FINISHED);
	assert_int_equal(record_of(&rig).completed, record.completed);
	assert_int_equal(rig.fs->scrubbed.finished_at, record.completed);
	data_rig_deinit(&rig);
}

static void expect_same(const struct zf_scrub_record *a, const struct zf_scrub_record *b)
{
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->rate, b->rate);
	assert_int_equal(a->started, b->started);
	assert_int_equal(a->active_ms, b->active_ms);
	assert_int_equal(a->place.tree, b->place.tree);
	assert_int_equal(a->place.height, b->place.height);
	assert_int_equal(zf_key_cmp(&a->place.from, &b->place.from), 0);
	assert_int_equal(a->place.address, b->place.address);
	assert_int_equal(a->data_bytes, b->data_bytes);
	assert_int_equal(a->node_bytes, b->node_bytes);
	assert_int_equal(a->skipped, b->skipped);
}

/* The checker reads the device between any two steps, too. */
static void a_scrub_goes_on_after_a_remount_at_each_step(void **state)
{
	struct zf_scrub_record before, after;
	struct data_rig rig;
	unsigned int steps = 0;

	(void)state;
	init_rig(&rig, 1);
	make_file(&rig, "file", 700);
	assert_int_equal(zf_scrubber_start(rig.fs, 1 << 20), 0);
	while (step(&rig) > 0) {
		before = record_of(&rig);
		data_rig_remount(&rig);
		after = record_of(&rig);
		expect_same(&after, &before);
		steps++;
	}
	assert_true(steps > 10);
	assert_int_equal(record_of(&rig).state, ZF_SCRUB_FINISHED);
	assert_int_equal(record_of(&rig).data_bytes, 700 * BLOCK);
	assert_int_equal(record_of(&rig).rate, 1 << 20);
	data_rig_deinit(&rig);
}

static void after_a_cut_a_scrub_goes_on_from_the_last_commit(void **state)
{
	struct zf_scrub_record stored;
	struct data_rig rig;

	(void)state;
	init_rig(&rig, 1);
	make_file(&rig, "file", 700);
	assert_int_equal(zf_scrubber_start(rig.fs, 0), 0);
	while (record_of(&rig).data_bytes == 0)
		assert_int_equal(step(&rig), 1);
	assert_int_equal(zf_txn_commit(rig.fs->txn, true), 0);
	stored = record_of(&rig);
	assert_int_equal(step(&rig), 1);
	stop_short(&rig);
	assert_int_equal(record_of(&rig).place.address, stored.place.address);
	assert_int_equal(record_of(&rig).data_bytes, stored.data_bytes);
	run(&rig);
	assert_int_equal(record_of(&rig).data_bytes, 700 * BLOCK);
	data_rig_deinit(&rig);
}

/*
 * How many times as long as its steps the pauses of a scrub are, once it has seen in its first pause who
 * else is there. A scrub that ends is started anew; its last step has no pause. `between` is called in
 * each pause.
 */
static double pauses(struct data_rig *rig, void (*between)(struct data_rig *rig, unsigned int i))
{
	uint64_t step_ns = 0, pause_ns = 0;
	bool has_paused = false;

	for (unsigned int i = 0; i < 2000; i++) {
		uint64_t wait_ms = 0, began = now_ns;

		if (record_of(rig).state != ZF_SCRUB_RUNNING) {
			assert_int_equal(zf_scrubber_start(rig->fs, 0), 0);
			has_paused = false;
			began = now_ns;
		}
		if (zf_scrubber_step(rig->fs, &wait_ms) > 0 && has_paused) {
			step_ns += now_ns - began;
			pause_ns += wait_ms * 1000000;
		}
		has_paused |= wait_ms > 0;
		between(rig, i % FILE_BLOCKS);
	}
	return (double)pause_ns / (double)step_ns;
}

static void do_nothing(struct data_rig *rig, unsigned int i)
{
	(void)rig;
	(void)i;
}

static uint64_t written_ino;

/* The write is answered from memory, and nothing reaches the device. */
static void write_a_block(struct data_rig *rig, unsigned int i)
{
	data_rig_write_pattern(rig, written_ino, i, i * BLOCK, BLOCK);
}

static void it_makes_way_for_writers_whose_data_is_still_in_memory(void **state)
{
	struct data_rig rig;
	double beside, alone;

	(void)state;
	init_rig(&rig, 1);
	make_file(&rig, "file", FILE_BLOCKS);
	written_ino = data_rig_make(&rig, "written");
	alone = pauses(&rig, do_nothing);
	beside = pauses(&rig, write_a_block);
	print_message("pauses %.2f times as long as steps, beside a writer %.2f\n", alone, beside);
	assert_true(alone > 0 && alone <= 0.25);
	assert_true(beside > 10 && beside <= 31);
	data_rig_deinit(&rig);
}

static void a_paused_scrub_rests_until_it_is_resumed(void **state)
{
	struct zf_scrub_place place;
	struct data_rig rig;

	(void)state;
	init_rig(&rig, 1);
	make_file(&rig, "file", 300);
	assert_int_equal(zf_scrubber_pause(rig.fs), -ENOENT);
	assert_int_equal(zf_scrubber_resume(rig.fs), -ENOENT);
	assert_int_equal(zf_scrubber_cancel(rig.fs), -ENOENT);
	assert_int_equal(zf_scrubber_start(rig.fs, 0), 0);
	assert_int_equal(zf_scrubber_start(rig.fs, 0), -EBUSY);
	assert_int_equal(step(&rig), 1);
	assert_int_equal(zf_scrubber_pause(rig.fs), 0);
	place = record_of(&rig).place;
	stop_short(&rig);
	assert_int_equal(record_of(&rig).state, ZF_SCRUB_PAUSED);
	assert_int_equal(step(&rig), 0);
	assert_int_equal(zf_scrubber_start(rig.fs, 0), -EEXIST);
	assert_int_equal(record_of(&rig).place.tree, place.tree);
	assert_int_equal(zf_scrubber_resume(rig.fs), 0);
	run(&rig);
	assert_int_equal(record_of(&rig).data_bytes, 300 * BLOCK);
	data_rig_deinit(&rig);
}

static void a_cancelled_scrub_is_over(void **state)
{
	struct data_rig rig;

	(void)state;
	init_rig(&rig, 1);
	make_file(&rig, "file", 300);
	assert_int_equal(zf_scrubber_start(rig.fs, 0), 0);
	assert_int_equal(step(&rig), 1);
	assert_int_equal(zf_scrubber_cancel(rig.fs), 0);
	assert_int_equal(step(&rig), 0);
	data_rig_remount(&rig);
	assert_int_equal(record_of(&rig).state, ZF_SCRUB_CANCELLED);
	assert_int_equal(record_of(&rig).completed, 0);
	assert_int_equal(zf_scrubber_resume(rig.fs), -ENOENT);
	assert_int_equal(zf_scrubber_start(rig.fs, 0), 0);
	run(&rig);
	assert_int_equal(record_of(&rig).data_bytes, 300 * BLOCK);
	data_rig_deinit(&rig);
}

/* ---- what it finds ---- */

static void damage_is_told_by_path_and_counted_over_remounts(void **state)
{
	struct zf_scrub_error error;
	struct data_rig rig;
	uint64_t ino;
	char *path;

	(void)state;
	init_rig(&rig, 1);
	ino = make_file(&rig, "fi\nle", 300);
	flip(&rig, address_of(&rig, ino) + 7 * BLOCK);
	rig.errors_expected = true;
	assert_int_equal(zf_scrubber_start(rig.fs, 0), 0);
	run(&rig);
	assert_int_equal(record_of(&rig).errors, 1);
	assert_int_equal(zf_scrubber_get_damage(rig.fs, 0, &error, &path), 0);
	assert_string_equal(path, "/fi\nle");
	free(path);
	assert_int_equal(error.offset, 7 * BLOCK);
	assert_int_equal(zf_scrubber_get_damage(rig.fs, 1, &error, &path), -ENOENT);
	assert_non_null(strstr(rig.message, "(/fi\\x0ale)"));
	assert_int_equal(faults_of(&rig).data_checksum, 1);
	stop_short(&rig);
	assert_int_equal(record_of(&rig).errors, 1);
	assert_int_equal(faults_of(&rig).data_checksum, 1);
	/* The next scrub has damage of its own. */
	data_rig_write_pattern(&rig, ino, 1, 0, 300 * BLOCK);
	data_rig_sync(&rig);
	assert_int_equal(zf_scrubber_start(rig.fs, 0), 0);
	run(&rig);
	assert_int_equal(record_of(&rig).errors, 0);
	assert_int_equal(faults_of(&rig).data_checksum, 1);
	rig.errors_expected = false;
	rig.errors = 0;
	data_rig_deinit(&rig);
}

static int take_leaf(void *arg, const struct zf_node_expect *expect)
{
	*(struct zf_node_expect *)arg = *expect;
	return 0;
}

static struct zf_node_expect a_leaf(struct data_rig *rig)
{
	struct zf_node_expect leaf = {0};
	struct zf_key from = {0};

	assert_true(zf_tree_children(rig->fs->forest, ZF_TREE_FS, 0, &from, take_leaf, &leaf) >= 0);
	return leaf;
}

/* A repair that was reported survives a power cut, although no commit follows. */
static void a_repair_is_durable_when_it_is_told(void **state)
{
	struct zf_node_expect leaf;
	struct data_rig rig;

	(void)state;
	init_rig(&rig, 2);
	make_file(&rig, "file", 10);
	leaf = a_leaf(&rig);
	flip(&rig, leaf.ptr.address[1] + 100);
	rig.errors_expected = true;
	assert_int_equal(zf_scrubber_start(rig.fs, 0), 0);
	while (record_of(&rig).repaired == 0)
		assert_int_equal(step(&rig), 1);
	stop_short(&rig);
	assert_int_not_equal(a_leaf(&rig).ptr.address[1], leaf.ptr.address[1]);
	rig.errors = 0;
	rig.errors_expected = false;
	data_rig_check(&rig);
	data_rig_deinit(&rig);
}

/* ---- counters ---- */

static void a_sound_filesystem_stores_nothing(void **state)
{
	struct data_rig rig;

	(void)state;
	init_rig(&rig, 1);
	make_file(&rig, "file", 10);
	data_rig_remount(&rig);
	assert_false(has_item(&rig, ZF_KEY_FAULTS));
	assert_false(has_item(&rig, ZF_KEY_SCRUB));
	assert_int_equal(rig.fs->super.compat & ZF_COMPAT_HEALTH, 0);
	data_rig_deinit(&rig);
}

static void read_damaged(struct data_rig *rig, uint64_t ino)
{
	uint8_t bytes[BLOCK];

	assert_int_equal(zf_fs_read(rig->fs, &rig->ctx, ino, 0, bytes, sizeof(bytes)), -EIO);
}

/* The fault is the only change to store, and the unmount makes a commit for it. */
static void what_a_reader_meets_survives_an_unmount(void **state)
{
	struct data_rig rig;
	uint64_t ino, met;

	(void)state;
	init_rig(&rig, 1);
	ino = make_file(&rig, "file", 10);
	data_rig_remount(&rig);
	flip(&rig, address_of(&rig, ino));
	rig.errors_expected = true;
	read_damaged(&rig, ino);
	met = faults_of(&rig).data_checksum;
	assert_true(met > 0);
	assert_int_equal(zf_fs_unmount(rig.fs), 0);
	assert_int_equal(data_rig_mount_opened(&rig), 0);
	assert_int_equal(faults_of(&rig).data_checksum, met);
	assert_true(has_item(&rig, ZF_KEY_FAULTS));
	assert_true(rig.fs->super.compat & ZF_COMPAT_HEALTH);
	read_damaged(&rig, ino);
	assert_int_equal(faults_of(&rig).data_checksum, 2 * met);
	/* No commit was made since. */
	stop_short(&rig);
	assert_int_equal(faults_of(&rig).data_checksum, met);
	data_rig_drop(&rig);
}

static void a_reset_begins_anew(void **state)
{
	struct zf_faults faults;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	init_rig(&rig, 1);
	ino = make_file(&rig, "file", 10);
	flip(&rig, address_of(&rig, ino));
	rig.errors_expected = true;
	read_damaged(&rig, ino);
	zf_faults_reset(rig.fs);
	assert_int_equal(zf_txn_commit(rig.fs->txn, true), 0);
	faults = faults_of(&rig);
	assert_int_equal(faults.data_checksum, 0);
	assert_int_not_equal(faults.since, 0);
	read_damaged(&rig, ino);
	assert_int_not_equal(faults_of(&rig).data_checksum, 0);
	stop_short(&rig);
	assert_int_equal(faults_of(&rig).data_checksum, 0);
	assert_int_equal(faults_of(&rig).since, faults.since);
	data_rig_drop(&rig);
}

/* ---- hostile items ---- */

static int decode(uint8_t type, const void *value, size_t len)
{
	const struct zf_key key = ZF_KEY(ZF_TREE_ROOT, type, 0);
	struct zf_health health = {0};

	return zf_health_decode(&key, value, len, NULL, &health);
}

static void wrong_fields_are_refused(void **state)
{
	struct zf_disk_scrub scrub = {.state = ZF_SCRUB_RUNNING}, wrong;
	struct zf_disk_faults faults = {0};

	(void)state;
	assert_int_equal(decode(ZF_KEY_FAULTS, &faults, sizeof(faults)), 0);
	assert_int_equal(decode(ZF_KEY_FAULTS, &faults, sizeof(faults) - 1), -EUCLEAN);
	faults.damaged_nodes = zf_le64_from(ZF_SUPER_COUNTER_MAX + 1);
	assert_int_equal(decode(ZF_KEY_FAULTS, &faults, sizeof(faults)), -EUCLEAN);
	faults = (struct zf_disk_faults){.reserved = {[63] = 1}};
	assert_int_equal(decode(ZF_KEY_FAULTS, &faults, sizeof(faults)), -EUCLEAN);

	assert_int_equal(decode(ZF_KEY_SCRUB, &scrub, sizeof(scrub)), 0);
	for (unsigned int bad = 0; bad < 7; bad++) {
		wrong = scrub;
		switch (bad) {
		case 0:
			wrong.state = ZF_SCRUB_NONE;
			break;
		case 1:
			wrong.state = ZF_SCRUB_STATE_COUNT;
			break;
		case 2:
			wrong.state = ZF_SCRUB_FINISHED;
			break;
		case 3:
			wrong.ended = zf_le64_from(1);
			break;
		case 4:
			wrong.tree = zf_le32_from(ZF_TREE_COUNT);
			break;
		case 5:
			wrong.height = zf_le32_from(ZF_TREE_LEVEL_MAX + 1);
			break;
		default:
			wrong.state = ZF_SCRUB_FINISHED;
			wrong.ended = zf_le64_from(2);
			wrong.completed = zf_le64_from(1);
		}
		assert_int_equal(decode(ZF_KEY_SCRUB, &wrong, sizeof(wrong)), -EUCLEAN);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_scrub_goes_from_start_to_end),
		cmocka_unit_test(a_scrub_goes_on_after_a_remount_at_each_step),
		cmocka_unit_test(after_a_cut_a_scrub_goes_on_from_the_last_commit),
		cmocka_unit_test(it_makes_way_for_writers_whose_data_is_still_in_memory),
		cmocka_unit_test(a_paused_scrub_rests_until_it_is_resumed),
		cmocka_unit_test(a_cancelled_scrub_is_over),
		cmocka_unit_test(damage_is_told_by_path_and_counted_over_remounts),
		cmocka_unit_test(a_repair_is_durable_when_it_is_told),
		cmocka_unit_test(a_sound_filesystem_stores_nothing),
		cmocka_unit_test(what_a_reader_meets_survives_an_unmount),
		cmocka_unit_test(a_reset_begins_anew),
		cmocka_unit_test(wrong_fields_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
