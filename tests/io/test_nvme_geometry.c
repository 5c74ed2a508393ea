/* SPDX-License-Identifier: MIT */
/* The geometry that zfuse computes from the answers of a drive (bytes as in the specification) and
 * of the kernel. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io/nvme_geometry.h"
#include "io/zone_rules.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

/* Offsets of the fields in the data of Identify. */
#define CTRL_MDTS    77
#define CTRL_ONCS    520
#define CTRL_VWC     525
#define NS_NSZE	     0
#define NS_FLBAS     26
#define NS_LBAF(n)   (128 + 4 * (n)) /* metadata size, 16 bits; log2 of the block */
#define ZNS_MAR	     4
#define ZNS_MOR	     8
#define ZNS_LBAFE(n) (2816 + 16 * (n))

static struct zf_nvme_identity identity;
static struct zf_nvme_drive drive;
static char message[512];

static void keep_message(void *arg, enum zf_report_level level, const char *text)
{
	snprintf(message, sizeof(message), "%s", text);
}

static const struct zf_report report = {.fn = keep_message};

static void set_u32(void *data, size_t at, uint32_t value)
{
	for (size_t i = 0; i < 4; i++)
		((uint8_t *)data)[at + i] = (uint8_t)(value >> 8 * i);
}

static void set_u64(void *data, size_t at, uint64_t value)
{
	set_u32(data, at, (uint32_t)value);
	set_u32(data, at + 4, (uint32_t)(value >> 32));
}

static uint8_t *byte(void *data, size_t at)
{
	return (uint8_t *)data + at;
}

/* 64 zones of 16 MiB in format 2; 512 KiB a transfer, 128 KiB an append. */
static int setup(void **state)
{
	memset(&identity, 0, sizeof(identity));
	message[0] = '\0';
	*byte(&identity.ctrl, CTRL_MDTS) = 7;
	*byte(&identity.ctrl, CTRL_ONCS) = 1 << 3;
	*byte(&identity.ctrl, CTRL_VWC) = 1;
	set_u64(&identity.ns, NS_NSZE, 64 * 4096);
	*byte(&identity.ns, NS_FLBAS) = 2;
	set_u32(&identity.ns, NS_LBAF(0), 9 << 16);
	set_u32(&identity.ns, NS_LBAF(2), 12 << 16);
	*byte(&identity.zns_ctrl, 0) = 5;
	set_u32(&identity.zns_ns, ZNS_MAR, 31);
	set_u32(&identity.zns_ns, ZNS_MOR, 15);
	set_u64(&identity.zns_ns, ZNS_LBAFE(2), 4096);
	identity.kernel = (struct zf_nvme_kernel_limits){
		.transfer = 1024 * KIB,
		.append = 1024 * KIB,
		.zeroes = 2 * MIB,
		.segments = 256,
	};
	return 0;
}

static void describe(void)
{
	assert_int_equal(zf_nvme_geometry_describe(&identity, "ng", &report, &drive), 0);
}

static void a_drive_is_described_in_bytes_and_zones(void **state)
{
	describe();
	assert_int_equal(drive.geometry.zone_size, 16 * MIB);
	assert_int_equal(drive.geometry.zone_count, 64);
	assert_int_equal(drive.geometry.conventional, 0);
	assert_int_equal(drive.geometry.max_active, 32);
	assert_int_equal(drive.geometry.max_open, 16);
	assert_int_equal(drive.geometry.append_limit, 128 * KIB);
	assert_int_equal(drive.transfer_max, 512 * KIB);
	assert_int_equal(drive.zeroes_max, 2 * MIB);
	assert_true(drive.geometry.volatile_cache);
	drive.geometry.zone_capacity = drive.geometry.zone_size;
	assert_int_equal(zf_geometry_check(&drive.geometry, NULL), 0);
}

static void all_bits_set_is_no_limit(void **state)
{
	set_u32(&identity.zns_ns, ZNS_MAR, UINT32_MAX);
	set_u32(&identity.zns_ns, ZNS_MOR, UINT32_MAX);
	*byte(&identity.ctrl, CTRL_MDTS) = 0;
	*byte(&identity.zns_ctrl, 0) = 0;
	describe();
	assert_int_equal(drive.geometry.max_active, 0);
	assert_int_equal(drive.geometry.max_open, 0);
	assert_int_equal(drive.transfer_max, 1024 * KIB); /* the kernel's */
	assert_int_equal(drive.geometry.append_limit, 1024 * KIB);
}

static void without_a_limit_of_its_own_an_append_has_that_of_transfers(void **state)
{
	*byte(&identity.zns_ctrl, 0) = 0;
	describe();
	assert_int_equal(drive.geometry.append_limit, 512 * KIB);
}

static void an_append_is_no_larger_than_a_transfer(void **state)
{
	*byte(&identity.zns_ctrl, 0) = 9;
	describe();
	assert_int_equal(drive.geometry.append_limit, 512 * KIB);
	identity.kernel.append = 64 * KIB;
	describe();
	assert_int_equal(drive.geometry.append_limit, 64 * KIB);
	identity.kernel.transfer = 16 * KIB;
	describe();
	assert_int_equal(drive.geometry.append_limit, 16 * KIB);
	assert_int_equal(drive.transfer_max, 16 * KIB);
}

/* A request may lie in as many places as it has blocks. */
static void a_transfer_has_no_more_blocks_than_the_kernel_takes_segments(void **state)
{
	identity.kernel.segments = 17;
	describe();
	assert_int_equal(drive.transfer_max, 17 * 4096);
	assert_int_equal(drive.geometry.append_limit, 17 * 4096);
}

static void zeroes_need_the_drive_and_the_kernel(void **state)
{
	*byte(&identity.ctrl, CTRL_ONCS) = 0;
	describe();
	assert_int_equal(drive.zeroes_max, 0);
	*byte(&identity.ctrl, CTRL_ONCS) = 1 << 3;
	identity.kernel.zeroes = 0;
	describe();
	assert_int_equal(drive.zeroes_max, 0);
	identity.kernel.zeroes = 1024 * MIB;
	describe();
	assert_int_equal(drive.zeroes_max, 256 * MIB);
}

static void without_a_cache_nothing_is_to_be_flushed(void **state)
{
	*byte(&identity.ctrl, CTRL_VWC) = 6; /* how flush behaves, and no cache */
	describe();
	assert_false(drive.geometry.volatile_cache);
}

static void a_format_beyond_the_sixteenth_is_found(void **state)
{
	*byte(&identity.ns, NS_FLBAS) = 1 << 5 | 1; /* 17 */
	set_u32(&identity.ns, NS_LBAF(17), 12 << 16);
	set_u64(&identity.zns_ns, ZNS_LBAFE(17), 8192);
	describe();
	assert_int_equal(drive.geometry.zone_size, 32 * MIB);
	assert_int_equal(drive.geometry.zone_count, 32);
}

static void small_blocks_are_refused_in_words(void **state)
{
	*byte(&identity.ns, NS_FLBAS) = 0;
	assert_int_equal(zf_nvme_geometry_describe(&identity, "/dev/ng7n1", &report, &drive),
			 -ENOTSUP);
	assert_non_null(strstr(message, "/dev/ng7n1: its blocks have 512 bytes"));
	assert_non_null(strstr(message, "4096"));
}

static void metadata_beside_the_blocks_is_refused_in_words(void **state)
{
	set_u32(&identity.ns, NS_LBAF(2), 12 << 16 | 8);
	assert_int_equal(zf_nvme_geometry_describe(&identity, "ng", &report, &drive), -ENOTSUP);
	assert_non_null(strstr(message, "8 bytes of metadata"));
}

static void zones_that_make_no_sense_are_refused(void **state)
{
	set_u64(&identity.zns_ns, ZNS_LBAFE(2), 0);
	assert_int_equal(zf_nvme_geometry_describe(&identity, "ng", &report, &drive), -ENOTSUP);
	set_u64(&identity.zns_ns, ZNS_LBAFE(2), UINT64_C(1) << 60);
	assert_int_equal(zf_nvme_geometry_describe(&identity, "ng", &report, &drive), -ENOTSUP);
	set_u64(&identity.zns_ns, ZNS_LBAFE(2), 1);
	set_u64(&identity.ns, NS_NSZE, UINT64_C(1) << 40);
	assert_int_equal(zf_nvme_geometry_describe(&identity, "ng", &report, &drive), -ENOTSUP);
	set_u64(&identity.ns, NS_NSZE, 0);
	assert_int_equal(zf_nvme_geometry_describe(&identity, "ng", &report, &drive), -ENOTSUP);
}

/* ---- zones ---- */

static struct zf_zone_info zone_in(uint8_t state)
{
	uint8_t desc[64] = {[0] = 2, [1] = (uint8_t)(state << 4)};
	struct zf_zone_info info;

	set_u64(desc, 8, 3072);
	set_u64(desc, 16, 3 * 4096);
	/* UINT64_MAX is what a drive reports if the pointer is not valid. */
	set_u64(desc, 24, state >= 2 && state <= 4 ? 3 * 4096 + 5 : UINT64_MAX);
	zf_nvme_geometry_zone_info((const void *)desc, &info);
	assert_int_equal(info.start, 48 * MIB);
	assert_int_equal(info.capacity, 12 * MIB);
	assert_int_equal(info.type, ZF_ZONE_SEQUENTIAL);
	return info;
}

static void zones_are_told_by_condition_and_pointer(void **state)
{
	static const struct {
		uint8_t state;
		enum zf_zone_cond cond;
		uint64_t wp; /* from the start */
	} expected[] = {
		{0x1, ZF_ZONE_EMPTY, 0},
		{0x2, ZF_ZONE_IMP_OPEN, 5 * 4096},
		{0x3, ZF_ZONE_EXP_OPEN, 5 * 4096},
		{0x4, ZF_ZONE_CLOSED, 5 * 4096},
		{0xd, ZF_ZONE_READONLY, 12 * MIB},
		{0xe, ZF_ZONE_FULL, 12 * MIB},
		{0xf, ZF_ZONE_OFFLINE, 12 * MIB},
		{0x7, ZF_ZONE_OFFLINE, 12 * MIB}, /* in no specification */
	};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(expected); i++) {
		struct zf_zone_info info = zone_in(expected[i].state);

		assert_int_equal(info.cond, expected[i].cond);
		assert_int_equal(info.wp - info.start, expected[i].wp);
	}
}

static void a_zoned_namespace_is_told_by_its_command_set(void **state)
{
	uint8_t list[4096] = {[0] = 1, 8, [12] = 4, 1, [16] = 2};

	assert_true(zf_nvme_geometry_is_zoned(list));
	list[16] = 0;
	assert_false(zf_nvme_geometry_is_zoned(list));
	list[16] = 2;
	list[13] = 0; /* the list ends before it */
	assert_false(zf_nvme_geometry_is_zoned(list));
	/* A list without an end, whose entries have an unknown type. */
	memset(list, 9, sizeof(list));
	assert_false(zf_nvme_geometry_is_zoned(list));
	memset(list, 0xff, sizeof(list));
	assert_false(zf_nvme_geometry_is_zoned(list));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_drive_is_described_in_bytes_and_zones, setup),
		cmocka_unit_test_setup(all_bits_set_is_no_limit, setup),
		cmocka_unit_test_setup(without_a_limit_of_its_own_an_append_has_that_of_transfers,
				       setup),
		cmocka_unit_test_setup(an_append_is_no_larger_than_a_transfer, setup),
		cmocka_unit_test_setup(a_transfer_has_no_more_blocks_than_the_kernel_takes_segments,
				       setup),
		cmocka_unit_test_setup(zeroes_need_the_drive_and_the_kernel, setup),
		cmocka_unit_test_setup(without_a_cache_nothing_is_to_be_flushed, setup),
		cmocka_unit_test_setup(a_format_beyond_the_sixteenth_is_found, setup),
		cmocka_unit_test_setup(small_blocks_are_refused_in_words, setup),
		cmocka_unit_test_setup(metadata_beside_the_blocks_is_refused_in_words, setup),
		cmocka_unit_test_setup(zones_that_make_no_sense_are_refused, setup),
		cmocka_unit_test(zones_are_told_by_condition_and_pointer),
		cmocka_unit_test(a_zoned_namespace_is_told_by_its_command_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
