/* SPDX-License-Identifier: MIT */
/* A zone of the ring turns read-only or offline: at every commit, also with a power cut afterwards.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <errno.h>
#include <cmocka.h>

#include "sample.h"
#include "sim/sim.h"

#define COMMITS 14u

struct disk {
	struct sample_disk sample; /* its device is the simulator's */
	struct zf_sim *sim;
	uint64_t acknowledged; /* generation */
	bool offline;	       /* a zone is */
	unsigned int cuts;
};

static void open_ring(struct disk *disk)
{
	assert_int_equal(zf_sim_open(disk->sim, NULL, &disk->sample.dev), 0);
	assert_int_equal(zf_ring_open(disk->sample.dev, NULL, &disk->sample.ring), 0);
}

static void close_ring(struct disk *disk)
{
	zf_ring_close(disk->sample.ring);
	disk->sample.ring = NULL;
	zf_dev_close(disk->sample.dev);
}

/* `records`: how many records the ring has; the next record has the next generation. */
static void disk_init(struct disk *disk, uint32_t conventional, unsigned int records, uint64_t seed)
{
	const struct zf_geometry geometry = sample_geometry(conventional);
	struct zf_super super;

	*disk = (struct disk){.sim = zf_sim_new(&geometry, seed)};
	assert_int_equal(zf_sim_open(disk->sim, NULL, &disk->sample.dev), 0);
	assert_int_equal(zf_ring_format(disk->sample.dev, NULL, &disk->sample.ring), 0);
	for (unsigned int i = 0; i < records; i++) {
		super = sample_super(++disk->acknowledged);
		assert_int_equal(zf_ring_write(disk->sample.ring, &super), 0);
	}
	close_ring(disk);
	open_ring(disk);
}

static void disk_deinit(struct disk *disk)
{
	close_ring(disk);
	zf_sim_free(disk->sim);
}

/* The record that the ring calls the newest is the newest. The ring finds it unless a zone is
 * offline. */
static void expect_newest(struct disk *disk, struct zf_sim *sim)
{
	const struct zf_super *super;
	unsigned int stepped_over;
	struct zf_ring *ring;
	struct zf_dev *dev;
	int r;

	assert_int_equal(zf_sim_open(sim, NULL, &dev), 0);
	r = zf_ring_open(dev, NULL, &ring);
	assert_true(r == 0 || disk->offline);
	if (r == 0) {
		r = zf_ring_newest(ring, &super, &stepped_over);
		assert_true(r == 0 || disk->offline);
		assert_true(disk->offline || !zf_ring_lacks_newest(ring));
		if (r == 0 && !zf_ring_lacks_newest(ring)) {
			assert_in_range(super->generation, disk->acknowledged,
					disk->acknowledged + 1);
			assert_true(stepped_over <= 1);
		}
		zf_ring_close(ring);
	}
	zf_dev_close(dev);
}

static void cut(void *arg, const struct zf_sim *sim)
{
	struct disk *disk = arg;

	for (uint64_t seed = 0; seed < 4; seed++) {
		struct zf_sim *clone = zf_sim_clone(sim);

		zf_sim_crash(clone, seed, ZF_SIM_CUT_DEVICE);
		expect_newest(disk, clone);
		zf_sim_free(clone);
		disk->cuts++;
	}
}

static int commit(struct disk *disk)
{
	struct zf_super super = sample_super(disk->acknowledged + 1);
	int r = zf_ring_write(disk->sample.ring, &super);

	if (r == 0)
		disk->acknowledged++;
	return r;
}

/* Zone `zone_no` fails. Returns how many commits still work after that, COMMITS at most. */
static unsigned int fail_and_go_on(struct disk *disk, unsigned int zone_no, enum zf_zone_cond cond)
{
	uint32_t room = UINT32_MAX;
	unsigned int n = 0;

	zf_sim_set_zone_cond(disk->sim, zone_no, cond);
	disk->offline = cond == ZF_ZONE_OFFLINE;
	zf_sim_observe(disk->sim, cut, disk);
	while (n < COMMITS && commit(disk) == 0) {
		n++;
		/* The ring says beforehand how many commits it can still take. */
		if (room != UINT32_MAX)
			assert_int_equal(zf_ring_room(disk->sample.ring), room - 1);
		room = zf_ring_room(disk->sample.ring);
	}
	zf_sim_observe(disk->sim, NULL, NULL);
	if (n < COMMITS)
		assert_int_equal(zf_ring_room(disk->sample.ring), 0);
	return n;
}

static void the_other_zone_goes_on_until_it_is_full(void **state)
{
	static const enum zf_zone_cond conds[] = {ZF_ZONE_READONLY, ZF_ZONE_OFFLINE};

	(void)state;
	for (unsigned int records = 1; records <= 2 * SAMPLE_SLOTS + 2; records++) {
		for (unsigned int i = 0; i < 4; i++) {
			unsigned int current = (records - 1) / SAMPLE_SLOTS % 2, n;
			bool in_use = records % SAMPLE_SLOTS != 0, failed_current;
			struct disk disk;

			disk_init(&disk, 0, records, 1 + records);
			failed_current = i / 2 == current;
			n = fail_and_go_on(&disk, i / 2, conds[i % 2]);
			/* The commits fill the whole other zone, or what is left of the current
			 * one. */
			if (failed_current)
				assert_int_equal(n, SAMPLE_SLOTS);
			else
				assert_int_equal(n, in_use ? SAMPLE_SLOTS - records % SAMPLE_SLOTS
							   : 0);
			assert_true(n == 0 || disk.cuts > 0);
			close_ring(&disk);
			expect_newest(&disk, disk.sim);
			if (zf_sim_open(disk.sim, NULL, &disk.sample.dev) == 0)
				(void)zf_ring_open(disk.sample.dev, NULL, &disk.sample.ring);
			disk_deinit(&disk);
		}
	}
}

static void conventional_zones_have_no_end(void **state)
{
	struct disk disk;

	(void)state;
	for (unsigned int records = 1; records <= 2 * SAMPLE_SLOTS; records++) {
		for (unsigned int zone = 0; zone < 2; zone++) {
			disk_init(&disk, 2, records, 1 + records);
			assert_int_equal(fail_and_go_on(&disk, zone, ZF_ZONE_READONLY), COMMITS);
			disk_deinit(&disk);
		}
	}
}

/* A ring that is opened after the failure of a zone goes on in the same way. */
static void a_zone_that_has_failed_when_the_ring_is_opened(void **state)
{
	(void)state;
	for (unsigned int records = 1; records <= 2 * SAMPLE_SLOTS + 2; records++) {
		unsigned int current = (records - 1) / SAMPLE_SLOTS % 2;
		const struct zf_super *super;
		unsigned int stepped_over;
		struct disk disk;

		disk_init(&disk, 0, records, 50 + records);
		close_ring(&disk);
		zf_sim_set_zone_cond(disk.sim, current, ZF_ZONE_READONLY);
		open_ring(&disk);
		assert_int_equal(zf_ring_newest(disk.sample.ring, &super, &stepped_over), 0);
		assert_int_equal(super->generation, records);
		assert_int_equal(stepped_over, 0);
		assert_int_equal(zf_ring_highest_generation(disk.sample.ring), records);
		assert_int_equal(zf_ring_room(disk.sample.ring), SAMPLE_SLOTS);
		for (unsigned int i = 0; i < SAMPLE_SLOTS; i++)
			assert_int_equal(commit(&disk), 0);
		assert_true(commit(&disk) < 0);
		disk_deinit(&disk);
	}
}

/* The offline zone had the newest record. The ring does not take a record of the other zone for
 * it. */
static void beside_an_offline_zone_a_full_one_may_be_old(void **state)
{
	const struct zf_super *super;
	unsigned int stepped_over;
	struct disk disk;

	(void)state;
	disk_init(&disk, 0, SAMPLE_SLOTS + 2, 7);
	close_ring(&disk);
	zf_sim_set_zone_cond(disk.sim, 1, ZF_ZONE_OFFLINE);
	open_ring(&disk);
	assert_true(zf_ring_lacks_newest(disk.sample.ring));
	/* The older record can still be read. */
	assert_int_equal(zf_ring_newest(disk.sample.ring, &super, &stepped_over), 0);
	assert_int_equal(super->generation, SAMPLE_SLOTS);
	close_ring(&disk);
	/* A zone in use is written only when the other zone is full or gone, so it has the
	 * newest. */
	zf_sim_free(disk.sim);
	disk_init(&disk, 0, SAMPLE_SLOTS + 2, 7);
	close_ring(&disk);
	zf_sim_set_zone_cond(disk.sim, 0, ZF_ZONE_OFFLINE);
	open_ring(&disk);
	assert_false(zf_ring_lacks_newest(disk.sample.ring));
	assert_int_equal(zf_ring_newest(disk.sample.ring, &super, &stepped_over), 0);
	assert_int_equal(super->generation, SAMPLE_SLOTS + 2);
	disk_deinit(&disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_other_zone_goes_on_until_it_is_full),
		cmocka_unit_test(conventional_zones_have_no_end),
		cmocka_unit_test(a_zone_that_has_failed_when_the_ring_is_opened),
		cmocka_unit_test(beside_an_offline_zone_a_full_one_may_be_old),
	};

	return cmocka_run_group_tests_name("ring_fail", tests, NULL, NULL);
}
