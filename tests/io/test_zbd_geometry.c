/* SPDX-License-Identifier: MIT */
/* The geometry of a zoned block device: from its queue's limits, its zones and the kernel. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io/zbd_geometry.h"

#define MIB   ((uint64_t)1 << 20)
#define ZONES 8

static char directory[] = "/tmp/zf-queue-XXXXXX";
static char message[512];

static void keep_message(void *arg, enum zf_report_level level, const char *text)
{
	snprintf(message, sizeof(message), "%s", text);
}

static const struct zf_report report = {keep_message, NULL};

static const struct zbd_info info = {
	.nr_sectors = ZONES * 32 * MIB / 512,
	.zone_size = 32 * MIB,
	.nr_zones = ZONES,
	.lblock_size = 4096,
	.pblock_size = 4096,
	.max_nr_open_zones = 16,
	.max_nr_active_zones = 32,
	.model = ZBD_DM_HOST_MANAGED,
};

static const struct zf_zbd_limits limits = {.max_sectors_kb = 128, .max_segments = 128};

/* ---- limits ---- */

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static const char *const names[] = {"max_sectors_kb",
				    "max_segments",
				    "rotational",
				    "zone_write_granularity",
				    "write_cache",
				    "write_zeroes_unmap_max_bytes",
				    "fua"};

static int make_directory(void **state)
{
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	char path[256];

	for (size_t i = 0; i < ZF_ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		unlink(path);
	}
	return rmdir(directory);
}

static void test_limits_are_read(void **state)
{
	struct zf_zbd_limits l;

	assert_int_equal(zf_zbd_geometry_read_limits(directory, "/dev/x", &report, &l), -ENOENT);
	assert_non_null(strstr(message, "whole disks"));
	put("max_sectors_kb", "1280\n");
	assert_int_equal(zf_zbd_geometry_read_limits(directory, "/dev/x", &report, &l), 0);
	assert_true(l.volatile_cache); /* unknown: then rather flush */
	assert_false(l.rotational);
	assert_false(l.fua);
	put("fua", "1\n");
	put("max_segments", "65\n");
	put("rotational", "1\n");
	put("zone_write_granularity", "4096\n");
	put("write_cache", "write through\n");
	put("write_zeroes_unmap_max_bytes", "1048576\n");
	assert_int_equal(zf_zbd_geometry_read_limits(directory, "/dev/x", &report, &l), 0);
	assert_int_equal(l.max_sectors_kb, 1280);
	assert_int_equal(l.max_segments, 65);
	assert_int_equal(l.write_granularity, 4096);
	assert_int_equal(l.zeroes_unmap_max, 1048576);
	assert_true(l.rotational);
	assert_true(l.fua);
	assert_false(l.volatile_cache);
	put("write_cache", "write back\n");
	assert_int_equal(zf_zbd_geometry_read_limits(directory, "/dev/x", &report, &l), 0);
	assert_true(l.volatile_cache);
}

static void test_no_append_is_cut_by_the_kernel(void **state)
{
	static const struct {
		uint32_t max_sectors_kb, max_segments, limit;
	} cases[] = {
		{128, 128, 128 << 10}, {124, 128, 124 << 10}, {127, 128, 124 << 10},
		{1280, 65, 65 * 4096}, {1280, 0, 1 << 20}, /* an older kernel does not say */
		{8192, 4096, 1 << 20}, {2, 128, 0},
	};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(cases); i++) {
		struct zf_zbd_limits l = {.max_sectors_kb = cases[i].max_sectors_kb,
					  .max_segments = cases[i].max_segments};

		assert_int_equal(zf_zbd_geometry_append_limit(&l), cases[i].limit);
	}
}

/* ---- geometry ---- */

static void test_geometry(void **state)
{
	struct zbd_info i = info;
	struct zf_geometry g;

	i.nr_sectors += 4 * MIB / 512; /* a last, smaller zone */
	assert_int_equal(zf_zbd_geometry(&i, &limits, "/dev/x", &report, &g), 0);
	assert_int_equal(g.zone_size, 32 * MIB);
	assert_int_equal(g.zone_count, ZONES);
	assert_int_equal(g.max_open, 16);
	assert_int_equal(g.max_active, 32);
	assert_int_equal(g.append_limit, 128 << 10);
	i.max_nr_open_zones = i.max_nr_active_zones = UINT32_MAX; /* unknown */
	assert_int_equal(zf_zbd_geometry(&i, &limits, "/dev/x", &report, &g), 0);
	assert_int_equal(g.max_open + g.max_active, 0);
}

static void test_disks_that_cannot_be_used(void **state)
{
	struct zf_zbd_limits coarse = {.max_sectors_kb = 128, .write_granularity = 16384};
	struct zf_zbd_limits narrow = {.max_sectors_kb = 2};
	struct zbd_info blocks = info, odd = info, none = info;
	const struct {
		const struct zbd_info *info;
		const struct zf_zbd_limits *limits;
		const char *says;
	} cases[] = {
		{&blocks, &limits, "block size is 16384"},
		{&odd, &limits, "zone size is 31457280"},
		{&none, &limits, "number of its zones is 0"},
		{&info, &coarse, "unit of writing is 16384"},
		{&info, &narrow, "max_sectors_kb is 2"},
	};
	struct zf_geometry g;

	blocks.lblock_size = 16384;
	odd.zone_size = 30 * MIB;
	none.nr_sectors = 100;
	for (size_t i = 0; i < ZF_ARRAY_SIZE(cases); i++) {
		assert_int_equal(
			zf_zbd_geometry(cases[i].info, cases[i].limits, "/dev/x", &report, &g),
			-ENOTSUP);
		assert_non_null(strstr(message, cases[i].says));
	}
}

/* ---- zones ---- */

static void make_zones(struct zbd_zone *zones, uint32_t conventional, uint64_t capacity)
{
	for (uint32_t z = 0; z < ZONES; z++) {
		bool cnv = z < conventional;

		zones[z] = (struct zbd_zone){
			.start = z * 32 * MIB,
			.len = 32 * MIB,
			.capacity = cnv ? 32 * MIB : capacity,
			.wp = z * 32 * MIB,
			.type = cnv ? ZBD_ZONE_TYPE_CNV : ZBD_ZONE_TYPE_SWR,
			.cond = cnv ? ZBD_ZONE_COND_NOT_WP : ZBD_ZONE_COND_EMPTY,
		};
	}
}

static struct zf_geometry start_geometry(void)
{
	struct zf_geometry g;

	assert_int_equal(zf_zbd_geometry(&info, &limits, "/dev/x", &report, &g), 0);
	return g;
}

static void test_zones_are_alike(void **state)
{
	struct zf_geometry g = start_geometry();
	struct zbd_zone zones[ZONES];
	struct zf_zone_info zone;

	make_zones(zones, 2, 24 * MIB);
	assert_int_equal(zf_zbd_geometry_add_zones(zones, "/dev/x", &report, &g), 0);
	assert_int_equal(g.conventional, 2);
	assert_int_equal(g.zone_capacity, 24 * MIB);
	zf_zbd_geometry_zone_info(&g, &zones[0], &zone);
	assert_int_equal(zone.type, ZF_ZONE_CONVENTIONAL);
	assert_int_equal(zone.capacity, 24 * MIB);
	make_zones(zones, ZONES, 0);
	assert_int_equal(zf_zbd_geometry_add_zones(zones, "/dev/x", &report, &g), 0);
	assert_int_equal(g.conventional, ZONES);
	assert_int_equal(g.zone_capacity, 32 * MIB);
}

static void test_zones_that_are_not_alike(void **state)
{
	struct zf_geometry g = start_geometry();
	struct zbd_zone zones[ZONES];

	make_zones(zones, 2, 24 * MIB);
	zones[5].capacity = 20 * MIB;
	assert_int_equal(zf_zbd_geometry_add_zones(zones, "/dev/x", &report, &g), -ENOTSUP);
	assert_non_null(strstr(message, "capacity of a zone"));
	zones[5].cond = ZBD_ZONE_COND_OFFLINE; /* has none */
	assert_int_equal(zf_zbd_geometry_add_zones(zones, "/dev/x", &report, &g), 0);
	make_zones(zones, 0, 24 * MIB);
	zones[3].type = ZBD_ZONE_TYPE_CNV;
	assert_int_equal(zf_zbd_geometry_add_zones(zones, "/dev/x", &report, &g), -ENOTSUP);
	assert_non_null(strstr(message, "conventional zone is 3"));
	make_zones(zones, 0, 24 * MIB + 512);
	assert_int_equal(zf_zbd_geometry_add_zones(zones, "/dev/x", &report, &g), -ENOTSUP);
}

static void test_pointers(void **state)
{
	static const struct {
		unsigned int cond;
		uint64_t wp; /* from the zone's start, as the disk says */
		enum zf_zone_cond is;
		uint64_t pointer;
	} cases[] = {
		{ZBD_ZONE_COND_EMPTY, 0, ZF_ZONE_EMPTY, 0},
		{ZBD_ZONE_COND_IMP_OPEN, 8192, ZF_ZONE_IMP_OPEN, 8192},
		{ZBD_ZONE_COND_EXP_OPEN, 512, ZF_ZONE_EXP_OPEN, 4096},
		{ZBD_ZONE_COND_CLOSED, 4096, ZF_ZONE_CLOSED, 4096},
		{ZBD_ZONE_COND_FULL, 32 * MIB, ZF_ZONE_FULL, 24 * MIB},
		{ZBD_ZONE_COND_FULL, 0, ZF_ZONE_FULL, 24 * MIB},
		{ZBD_ZONE_COND_READONLY, (uint64_t)-1 << 40, ZF_ZONE_READONLY, 24 * MIB},
		{ZBD_ZONE_COND_OFFLINE, 32 * MIB, ZF_ZONE_OFFLINE, 24 * MIB},
		{0x7, 0, ZF_ZONE_OFFLINE, 0},
	};
	struct zf_geometry g = start_geometry();
	struct zbd_zone zones[ZONES];

	make_zones(zones, 0, 24 * MIB);
	assert_int_equal(zf_zbd_geometry_add_zones(zones, "/dev/x", &report, &g), 0);
	for (size_t i = 0; i < ZF_ARRAY_SIZE(cases); i++) {
		struct zf_zone_info zone;

		zones[1].cond = cases[i].cond;
		zones[1].wp = zones[1].start + cases[i].wp;
		zf_zbd_geometry_zone_info(&g, &zones[1], &zone);
		assert_int_equal(zone.cond, cases[i].is);
		assert_int_equal(zone.wp - zone.start, cases[i].pointer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits_are_read),
		cmocka_unit_test(test_no_append_is_cut_by_the_kernel),
		cmocka_unit_test(test_geometry),
		cmocka_unit_test(test_disks_that_cannot_be_used),
		cmocka_unit_test(test_zones_are_alike),
		cmocka_unit_test(test_zones_that_are_not_alike),
		cmocka_unit_test(test_pointers),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
