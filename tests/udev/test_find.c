/* SPDX-License-Identifier: MIT */
/* Which superblock record tells what zfuse is on a disk, and that no byte of the disk is trusted.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/hash.h"
#include "io/image_trailer.h"
#include "superblock/sample.h"
#include "udev/find.h"

static const uint8_t fsid[16] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
				 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};
static struct zf_image_trailer trailer;
static struct zf_found found;
static int disk;

/* An image without a superblock. */
static int setup(void **state)
{
	struct zf_geometry geometry = sample_geometry(0);

	(void)state;
	geometry.zone_size = geometry.zone_capacity = 64 * ZF_SUPER_SIZE;
	memset(&trailer, 0, sizeof(trailer));
	disk = memfd_create("disk", MFD_CLOEXEC);
	if (disk < 0 || zf_image_trailer_layout(&trailer, &geometry, 0) < 0 ||
	    zf_image_trailer_write_new(&trailer, NULL, disk) < 0)
		return -1;
	return zf_image_trailer_read(disk, trailer.image_size, NULL, &trailer);
}

static int teardown(void **state)
{
	(void)state;
	return close(disk);
}

static unsigned int slot_count(void)
{
	return (unsigned int)(trailer.geometry.zone_size / ZF_SUPER_SIZE);
}

/* So many slots of the zone are written, as the image's zone table has it. */
static void set_pointer(unsigned int zone, unsigned int slots, uint64_t resets)
{
	const struct zf_zone_state state = {
		.wp = slots * (uint64_t)ZF_SUPER_SIZE,
		.reset_count = resets,
		.cond = slots == 0 ? ZF_ZONE_EMPTY
				   : (slots == slot_count() ? ZF_ZONE_FULL : ZF_ZONE_CLOSED),
	};

	assert_int_equal(zf_image_trailer_map(&trailer, disk, true), 0);
	assert_int_equal(zf_image_trailer_store_zone(&trailer, zone, &state), 0);
	zf_image_trailer_unmap(&trailer);
}

static uint64_t slot_address(unsigned int zone, unsigned int slot)
{
	return zone * trailer.geometry.zone_size + slot * (uint64_t)ZF_SUPER_SIZE;
}

static void write_bytes(uint64_t address, const void *bytes, size_t size)
{
	assert_int_equal(pwrite(disk, bytes, size, (off_t)address), size);
}

static void write_super(unsigned int zone, unsigned int slot, const struct zf_super *super)
{
	struct zf_super here = *super;
	struct zf_disk_super record;

	here.address = slot_address(zone, slot);
	zf_super_encode(&here, &record);
	write_bytes(here.address, &record, sizeof(record));
}

static struct zf_super make_super(uint64_t generation, const char *label)
{
	struct zf_super super = sample_super(generation);

	memcpy(super.fsid, fsid, sizeof(fsid));
	memset(super.label, 0, sizeof(super.label));
	memcpy(super.label, label, strlen(label));
	return super;
}

/* Records of ascending generations; the last one has another label. */
static void write_records(unsigned int zone, unsigned int count, uint64_t generation,
			  const char *last_label)
{
	for (unsigned int i = 0; i < count; i++) {
		struct zf_super super =
			make_super(generation + i, i + 1 < count ? "old" : last_label);

		write_super(zone, i, &super);
	}
	set_pointer(zone, count, 0);
}

static struct zf_disk_super record_at(uint64_t address)
{
	struct zf_super super = make_super(5, "sample");
	struct zf_disk_super record;

	super.address = address;
	zf_super_encode(&super, &record);
	return record;
}

static void write_record(unsigned int zone, unsigned int slot)
{
	uint64_t address = slot_address(zone, slot);
	struct zf_disk_super record = record_at(address);

	write_bytes(address, &record, sizeof(record));
	set_pointer(zone, slot + 1, 0);
}

static void assert_found(const char *label)
{
	assert_int_equal(zf_find_super(disk, &found), 0);
	assert_string_equal(found.uuid, "01234567-89ab-cdef-0123-456789abcdef");
	assert_string_equal(found.label, label);
}

static void test_one_record_tells(void **state)
{
	(void)state;
	write_record(0, 0);
	assert_found("sample");
}

static void test_the_newest_record_tells(void **state)
{
	(void)state;
	for (unsigned int count = 1; count <= slot_count(); count++) {
		write_records(0, count, 10 * count, "new");
		assert_found("new");
	}
	write_records(1, 3, 100000, "newer");
	assert_found("newer");
	write_records(0, 2, 200000, "newest");
	assert_found("newest");
}

/* Behind a pointer an image may have bytes of another filesystem that had the same UUID. */
static void test_what_a_reset_has_left_does_not_count(void **state)
{
	(void)state;
	write_records(0, slot_count(), 1000, "old");
	write_records(1, slot_count(), 5000, "old");
	set_pointer(1, 0, 1);
	write_records(0, 5, 1, "new");
	set_pointer(0, 5, 1);
	assert_found("new");
}

static void test_a_torn_record_may_read_as_an_older_one(void **state)
{
	struct zf_super older = make_super(3, "older");

	(void)state;
	write_records(0, slot_count(), 10, "new");
	write_super(0, slot_count() / 2, &older);
	write_super(0, slot_count() / 2 + 2, &older);
	assert_found("new");
}

static void test_without_a_zone_table_the_first_slots_tell(void **state)
{
	static const uint8_t damage[64];

	(void)state;
	write_records(0, 9, 10, "new");
	write_bytes(trailer.table_offset, damage, sizeof(damage));
	assert_found("old");
}

static void test_a_torn_record_is_passed_over(void **state)
{
	(void)state;
	write_records(0, slot_count() - 1, 10, "new");
	set_pointer(0, slot_count(), 0);
	write_bytes(slot_address(0, slot_count() / 2) + 2048, "torn", 4);
	write_bytes(slot_address(0, slot_count() - 1), "torn", 4);
	assert_found("new");
}

static void test_of_another_filesystem_nothing_is_newer(void **state)
{
	struct zf_super other = make_super(99, "other");

	(void)state;
	other.fsid[0] ^= 1;
	write_records(0, 3, 10, "new");
	write_super(0, 3, &other);
	set_pointer(0, 4, 0);
	write_super(1, 0, &other);
	set_pointer(1, 1, 0);
	assert_found("new");
}

static void test_behind_a_torn_record_is_another(void **state)
{
	(void)state;
	write_record(0, 0);
	write_record(0, 1);
	write_bytes(slot_address(0, 0) + 2048, "torn", 4);
	assert_found("sample");
}

/* The moment between the reset of one zone and its first record. */
static void test_an_empty_zone_leaves_the_other(void **state)
{
	(void)state;
	write_record(1, 0);
	assert_found("sample");
}

static void test_without_a_trailer_there_is_no_second_zone(void **state)
{
	(void)state;
	write_record(1, 0);
	write_bytes(trailer.image_size - ZF_BLOCK_SIZE +
			    offsetof(struct zf_image_header, zone_size),
		    "other", 5);
	assert_int_equal(zf_find_super(disk, &found), -ENODEV);
}

static void test_a_record_from_elsewhere_is_none(void **state)
{
	struct zf_disk_super record = record_at(slot_address(0, 1));

	(void)state;
	write_bytes(slot_address(0, 0), &record, sizeof(record));
	assert_int_equal(zf_find_super(disk, &found), -ENODEV);
}

static void test_of_a_newer_format_the_uuid_is_told(void **state)
{
	struct zf_disk_super record = record_at(0);

	(void)state;
	record.version = zf_le32_from(ZF_SUPER_VERSION + 1);
	record.csum = zf_le64_from(zf_hash64((const uint8_t *)&record + sizeof(record.csum),
					     sizeof(record) - sizeof(record.csum)));
	write_bytes(0, &record, sizeof(record));
	assert_found("");
}

static void test_an_empty_file_is_no_disk(void **state)
{
	(void)state;
	assert_int_equal(ftruncate(disk, 0), 0);
	assert_int_equal(zf_find_super(disk, &found), -ENODEV);
}

/* The record is the only one, so a changed byte of it leaves nothing; of the trailer, maybe the
 * record. */
static void test_no_byte_is_trusted(void **state)
{
	uint64_t record = slot_address(1, 0), header = trailer.image_size - ZF_BLOCK_SIZE;

	(void)state;
	write_record(1, 0);
	for (uint64_t i = 0; i < ZF_BLOCK_SIZE; i++) {
		uint8_t byte, wrong;

		assert_int_equal(pread(disk, &byte, 1, (off_t)(record + i)), 1);
		wrong = byte ^ (uint8_t)(1 + i % 255);
		write_bytes(record + i, &wrong, 1);
		assert_int_equal(zf_find_super(disk, &found), -ENODEV);
		write_bytes(record + i, &byte, 1);

		assert_int_equal(pread(disk, &byte, 1, (off_t)(header + i)), 1);
		wrong = byte ^ (uint8_t)(1 + i % 255);
		write_bytes(header + i, &wrong, 1);
		assert_int_equal(zf_find_super(disk, &found), -ENODEV);
		write_bytes(header + i, &byte, 1);
	}
	assert_found("sample");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_record_tells, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_newest_record_tells, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_a_reset_has_left_does_not_count, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_torn_record_may_read_as_an_older_one, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_without_a_zone_table_the_first_slots_tell,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_torn_record_is_passed_over, setup, teardown),
		cmocka_unit_test_setup_teardown(test_of_another_filesystem_nothing_is_newer, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_behind_a_torn_record_is_another, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_an_empty_zone_leaves_the_other, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_without_a_trailer_there_is_no_second_zone,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_record_from_elsewhere_is_none, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_of_a_newer_format_the_uuid_is_told, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_an_empty_file_is_no_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_byte_is_trusted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
