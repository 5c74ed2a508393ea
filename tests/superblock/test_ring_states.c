/* SPDX-License-Identifier: MIT */
/* What the nine combinations of {empty, in use, full} mean, on every mix of zone types. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <errno.h>
#include <cmocka.h>

#include "sample.h"

/* How many of a zone's slots are written. */
static const uint32_t filled[] = {
	[ZF_RING_EMPTY] = 0,
	[ZF_RING_IN_USE] = SAMPLE_SLOTS - 1,
	[ZF_RING_FULL] = SAMPLE_SLOTS,
};

struct combination {
	enum zf_ring_state state[2];
	unsigned int newer; /* which zone's records have the greater generations */

	unsigned int newest; /* the zone where the newest record is */
	unsigned int next;   /* the zone where the next record goes */
};

#define E ZF_RING_EMPTY
#define U ZF_RING_IN_USE
#define F ZF_RING_FULL

static const struct combination combinations[] = {
	{{U, E}, 0, .newest = 0, .next = 0}, {{F, E}, 0, .newest = 0, .next = 1},
	{{E, U}, 1, .newest = 1, .next = 1}, {{E, F}, 1, .newest = 1, .next = 0},
	{{F, U}, 1, .newest = 1, .next = 1}, {{F, U}, 0, .newest = 0, .next = 1},
	{{U, F}, 0, .newest = 0, .next = 0}, {{U, F}, 1, .newest = 1, .next = 0},
	{{F, F}, 0, .newest = 0, .next = 1}, {{F, F}, 1, .newest = 1, .next = 0},
	{{U, U}, 0, .newest = 0, .next = 0}, {{U, U}, 1, .newest = 1, .next = 1},
};

static void fill(struct sample_disk *disk, unsigned int zone_no, uint32_t count, uint64_t first)
{
	for (uint32_t slot = 0; slot < count; slot++)
		sample_put(disk, zone_no, slot, first + slot);
}

/* The next record goes behind the last record of a zone in use, or to the start of a zone. */
static uint32_t next_slot(const struct combination *c)
{
	if (c->state[c->next] == ZF_RING_IN_USE && c->next == c->newest)
		return filled[ZF_RING_IN_USE];
	return 0;
}

static void check(const struct combination *c, uint32_t conventional)
{
	const struct zf_geometry geometry = sample_geometry(conventional);
	const uint64_t older = 10, newer = 20;
	uint64_t last = newer + filled[c->state[c->newest]] - 1;
	struct sample_disk disk;
	uint64_t address;

	sample_disk_new(&disk, &geometry);
	fill(&disk, c->newer, filled[c->state[c->newer]], newer);
	fill(&disk, 1 - c->newer, filled[c->state[1 - c->newer]], older);

	sample_expect(&disk, last, 0);
	assert_int_equal(zf_ring_zone_state(disk.ring, 0), c->state[0]);
	assert_int_equal(zf_ring_zone_state(disk.ring, 1), c->state[1]);
	assert_int_equal(zf_ring_highest_generation(disk.ring), last);

	assert_int_equal(sample_commit(&disk, last + 1, &address), 0);
	assert_int_equal(address, sample_address(&disk, c->next, next_slot(c)));
	sample_expect(&disk, last + 1, 0);
	sample_disk_free(&disk);
}

static void every_combination_on(uint32_t conventional)
{
	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(combinations); i++) {
		print_message("combination %u\n", i);
		check(&combinations[i], conventional);
	}
}

static void every_combination_on_sequential_zones(void **state)
{
	every_combination_on(0);
}

static void every_combination_on_conventional_zones(void **state)
{
	every_combination_on(2);
}

static void every_combination_on_one_zone_of_each_type(void **state)
{
	every_combination_on(1);
}

static void two_empty_zones_are_no_filesystem(void **state)
{
	for (uint32_t conventional = 0; conventional <= 2; conventional++) {
		const struct zf_geometry geometry = sample_geometry(conventional);
		struct sample_disk disk;

		sample_disk_new(&disk, &geometry);
		assert_int_equal(sample_reopen(&disk), -ENODEV);
		sample_disk_free(&disk);
	}
}

static void zones_full_of_something_else_are_no_filesystem(void **state)
{
	for (uint32_t conventional = 0; conventional <= 2; conventional++) {
		const struct zf_geometry geometry = sample_geometry(conventional);
		struct sample_disk disk;

		sample_disk_new(&disk, &geometry);
		for (uint32_t slot = 0; slot < SAMPLE_SLOTS; slot++) {
			sample_put_garbage(&disk, 0, slot);
			sample_put_garbage(&disk, 1, slot);
		}
		assert_int_equal(sample_reopen(&disk), -ENODEV);
		sample_disk_free(&disk);
	}
}

static void a_zone_that_the_device_finished_is_full(void **state)
{
	const struct zf_geometry geometry = sample_geometry(0);
	struct sample_disk disk;
	uint64_t address;

	sample_disk_new(&disk, &geometry);
	sample_put(&disk, 0, 0, 5);
	assert_int_equal(zf_dev_finish(disk.dev, 0), 0);

	/* The ring cannot tell the slots that were never written from torn records. */
	sample_expect(&disk, 5, SAMPLE_SLOTS - 1);
	assert_int_equal(zf_ring_zone_state(disk.ring, 0), ZF_RING_FULL);
	assert_int_equal(zf_ring_highest_generation(disk.ring), 5 + SAMPLE_SLOTS - 1);
	assert_int_equal(sample_commit(&disk, 20, &address), 0);
	assert_int_equal(address, sample_address(&disk, 1, 0));
	sample_expect(&disk, 20, 0);
	sample_disk_free(&disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_combination_on_sequential_zones),
		cmocka_unit_test(every_combination_on_conventional_zones),
		cmocka_unit_test(every_combination_on_one_zone_of_each_type),
		cmocka_unit_test(two_empty_zones_are_no_filesystem),
		cmocka_unit_test(zones_full_of_something_else_are_no_filesystem),
		cmocka_unit_test(a_zone_that_the_device_finished_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
