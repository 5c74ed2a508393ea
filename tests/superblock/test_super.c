/* SPDX-License-Identifier: MIT */
/* One record: its bytes, its documentation, and the error for each wrong field. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/hash.h"
#include "dump.h"
#include "sample.h"
#include "support/format_doc.h"

/* The last message that was reported. */
static char message[512];

static void remember(void *arg, enum zf_report_level level, const char *text)
{
	snprintf(message, sizeof(message), "%s", text);
}

static const struct zf_report report = {.fn = remember};

static void seal(struct zf_disk_super *disk)
{
	disk->csum = zf_le64_from(
		zf_hash64((const uint8_t *)disk + sizeof(disk->csum), sizeof(*disk) - 8));
}

static struct zf_disk_super sample_disk_super(void)
{
	struct zf_super super = sample_super(42);
	struct zf_disk_super disk;

	super.address = 3 * ZF_SUPER_SIZE;
	zf_super_encode(&super, &disk);
	return disk;
}

static int decode(const struct zf_disk_super *disk)
{
	struct zf_super super;

	message[0] = '\0';
	return zf_super_decode(disk, 3 * ZF_SUPER_SIZE, &report, &super);
}

static void a_record_comes_back_as_it_was(void **state)
{
	struct zf_disk_super disk = sample_disk_super(), again;
	const struct zf_super super = sample_super(42);
	struct zf_super decoded;

	assert_int_equal(zf_super_decode(&disk, 3 * ZF_SUPER_SIZE, &report, &decoded), 0);
	assert_int_equal(decoded.address, 3 * ZF_SUPER_SIZE);
	assert_int_equal(decoded.generation, 42);
	assert_int_equal(decoded.next_ino, super.next_ino);
	assert_string_equal(decoded.label, "sample");
	zf_super_encode(&decoded, &again);
	assert_memory_equal(&again, &disk, sizeof(disk));
}

static void the_sample_has_something_in_every_field(void **state)
{
	struct zf_disk_super disk = sample_disk_super();

	for (unsigned int i = 0; i < zf_super_fields.count; i++) {
		const struct zf_field *field = &zf_super_fields.field[i];
		const uint8_t *p = (const uint8_t *)&disk + field->offset;
		bool zero = true;

		for (unsigned int b = 0; b < field->size; b++)
			zero &= p[b] == 0;
		/* No conventional zone, and no feature bit that is not known. */
		if (strcmp(field->name, "conventional") == 0 ||
		    strcmp(field->name, "compat_ro") == 0)
			assert_true(zero);
		else
			assert_int_equal(zero, field->kind == ZF_FIELD_ZERO);
	}
}

static void the_documentation_has_the_fields_and_the_bytes(void **state)
{
	struct zf_disk_super disk = sample_disk_super();
	const char *path = getenv("ZF_FORMAT_DOC");
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(path);
	zf_format_doc_check(path, &zf_super_fields);
	assert_non_null(out);
	zf_annotate_super(&disk, zf_dump_annotation, out);
	fclose(out);
	zf_format_doc_check_example(path, &zf_super_fields, text);
	free(text);
}

static const struct zf_field *field_named(const char *name)
{
	for (unsigned int i = 0; i < zf_super_fields.count; i++)
		if (strcmp(zf_super_fields.field[i].name, name) == 0)
			return &zf_super_fields.field[i];
	fail_msg("no field %s", name);
	return NULL;
}

static void a_value_that_does_not_fit_the_buffer_is_cut(void **state)
{
	struct zf_disk_super disk = sample_disk_super();
	char buf[8], whole[128];

	assert_string_equal(
		zf_field_value_to_text(field_named("label"), &disk, whole, sizeof(whole)),
		"\"sample\"");
	memset(buf, 'x', sizeof(buf));
	zf_field_value_to_text(field_named("label"), &disk, buf, 5);
	assert_memory_equal(buf, "\"sam\0xxx", sizeof(buf));
	zf_field_value_to_text(field_named("log_secret"), &disk, buf, 5);
	assert_memory_equal(buf, "8081\0xxx", sizeof(buf));
}

static void every_reserved_byte_is_checked(void **state)
{
	for (unsigned int i = 0; i < zf_super_fields.count; i++) {
		const struct zf_field *field = &zf_super_fields.field[i];

		if (field->kind != ZF_FIELD_ZERO)
			continue;
		for (unsigned int b = 0; b < field->size; b++) {
			struct zf_disk_super disk = sample_disk_super();

			((uint8_t *)&disk)[field->offset + b] = 0x80;
			seal(&disk);
			assert_int_equal(decode(&disk), -EUCLEAN);
			assert_non_null(strstr(message, field->name));
		}
	}
}

/* A value that the field may not have, and the answer. */
struct wrong {
	const char *field;
	unsigned int element; /* of an array */
	uint64_t value;
	int result;
};

static const struct wrong wrongs[] = {
	{"address", 0, 4096, -EUCLEAN},
	{"generation", 0, 0, -EUCLEAN},
	{"generation", 0, ZF_SUPER_COUNTER_MAX + 1, -EUCLEAN},
	{"version", 0, 2, -EPROTONOSUPPORT},
	{"csum_type", 0, 2, -EPROTONOSUPPORT},
	{"dir_hash_version", 0, 0, -EPROTONOSUPPORT},
	{"incompat", 0, 2, -EPROTONOSUPPORT},
	{"kept_guaranteed_bytes", 0, 12288, -EUCLEAN}, /* more than is guaranteed */
	{"block_size", 0, 512, -EPROTONOSUPPORT},
	{"zone_size", 0, 0, -EUCLEAN},
	{"zone_size", 0, 32769, -EUCLEAN},
	{"zone_size", 0, INT64_MAX, -EUCLEAN},
	{"zone_capacity", 0, 0, -EUCLEAN},
	{"zone_capacity", 0, 8193, -EUCLEAN},
	{"zone_capacity", 0, 32768 + 4096, -EUCLEAN},
	{"zone_count", 0, 0, -EUCLEAN},
	{"zone_count", 0, ZF_ZONE_COUNT_MIN - 1, -EUCLEAN},
	{"zone_count", 0, UINT32_MAX, -EUCLEAN},
	{"conventional", 0, 17, -EUCLEAN},
	{"node_size", 0, 0, -EUCLEAN},
	{"node_size", 0, 12288, -EUCLEAN},
	{"node_size", 0, 32768, -EUCLEAN}, /* above the capacity */
	{"metadata_copies", 0, 0, -EUCLEAN},
	{"metadata_copies", 0, 3, -EUCLEAN},
	{"mkfs_time", 0, UINT64_MAX, -EUCLEAN},
	{"root.address", 0, 0, -EUCLEAN},
	{"root.address", 0, 32768, -EUCLEAN},		  /* in the ring */
	{"root.address", 0, 2 * 32768 + 1, -EUCLEAN},	  /* not a block */
	{"root.address", 0, 2 * 32768 + 16384, -EUCLEAN}, /* beyond the capacity */
	{"root.address", 1, 2 * 32768, -EUCLEAN},	  /* both copies in one zone */
	{"root.address", 1, 16 * 32768, -EUCLEAN},	  /* beyond the device */
	{"root.generation", 0, 0, -EUCLEAN},
	{"root.generation", 0, 43, -EUCLEAN},
	{"root_level", 0, ZF_TREE_LEVEL_MAX, -EUCLEAN},
	{"clean", 0, 2, -EUCLEAN},
	{"next_ino", 0, UINT64_MAX, -EUCLEAN},
	{"next_ino", 0, 899, -EUCLEAN}, /* fewer than there are inodes */
	{"inode_count", 0, 1001, -EUCLEAN},
	{"next_intent", 0, UINT64_MAX, -EUCLEAN},
	{"op_number", 0, UINT64_MAX, -EUCLEAN},
	{"log_sequence", 0, UINT64_MAX, -EUCLEAN},
	{"log_epoch", 0, UINT64_MAX, -EUCLEAN},
	{"log_zone", 0, 0, -EUCLEAN},
	{"log_zone", 0, 16, -EUCLEAN},
	{"log_zone", 1, 4, -EUCLEAN},
	{"log_zone_resets", 0, UINT64_MAX, -EUCLEAN},
	{"log_zone_resets", 1, UINT64_MAX, -EUCLEAN},
	{"log_pointer", 0, 100, -EUCLEAN},
	{"log_pointer", 1, 16384 + 4096, -EUCLEAN}, /* beyond the capacity */
	{"log_zone", 0, UINT32_MAX, -EUCLEAN},	    /* a pointer without a zone */
	{"meta_zone", 0, 1, -EUCLEAN},
	{"meta_zone", 0, 5, -EUCLEAN}, /* a log zone */
	{"meta_zone", 1, 2, -EUCLEAN},
	{"meta_pointer", 0, 100, -EUCLEAN},
	{"meta_pointer", 1, 16384 + 4096, -EUCLEAN}, /* beyond the capacity */
	{"meta_zone", 1, UINT32_MAX, -EUCLEAN},	     /* a pointer without a zone */
};

static unsigned int element_size(const struct zf_field *field)
{
	switch (field->kind) {
	case ZF_FIELD_U8:
		return 1;
	case ZF_FIELD_U16:
		return 2;
	case ZF_FIELD_U32:
		return 4;
	default:
		return 8;
	}
}

static void every_wrong_number_is_refused_and_named(void **state)
{
	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(wrongs); i++) {
		const struct wrong *wrong = &wrongs[i];
		const struct zf_field *field = field_named(wrong->field);
		unsigned int size = element_size(field);
		struct zf_disk_super disk = sample_disk_super();
		struct zf_le64 value = zf_le64_from(wrong->value);

		memcpy((uint8_t *)&disk + field->offset + wrong->element * size, &value, size);
		seal(&disk);
		if (decode(&disk) != wrong->result || message[0] == '\0')
			fail_msg("%s[%u] = %llu: %d \"%s\"", wrong->field, wrong->element,
				 (unsigned long long)wrong->value, decode(&disk), message);
	}
}

static void the_largest_counters_are_accepted(void **state)
{
	struct zf_super super = sample_super(ZF_SUPER_COUNTER_MAX);

	super.next_ino = super.inode_count = super.next_intent = ZF_SUPER_COUNTER_MAX;
	super.op_number = super.log_sequence = super.log_epoch = ZF_SUPER_COUNTER_MAX;
	assert_int_equal(zf_super_check(&super, &report), 0);
}

static void one_copy_and_no_named_zones_are_accepted(void **state)
{
	struct zf_super super = sample_super(42);

	super.metadata_copies = 1;
	super.root.address[1] = 0;
	super.meta_pointer[1] = 0;
	for (unsigned int i = 0; i < 2; i++) {
		super.log_zone[i] = ZF_SUPER_NO_ZONE;
		super.log_pointer[i] = 0;
	}
	super.meta_zone[1] = ZF_SUPER_NO_ZONE;
	assert_int_equal(zf_super_check(&super, &report), 0);

	super.root.address[1] = 3 * super.zone_size;
	assert_int_equal(zf_super_check(&super, &report), -EUCLEAN);
	super.root.address[1] = 0;
	super.meta_zone[1] = 3;
	assert_int_equal(zf_super_check(&super, &report), -EUCLEAN);
}

static void blocks_that_are_no_record_are_told_from_damaged_ones(void **state)
{
	struct zf_disk_super disk = {0};

	assert_int_equal(decode(&disk), -ENOENT);
	assert_string_equal(message, "");
	disk = sample_disk_super();
	disk.magic[7] ^= 1;
	assert_int_equal(decode(&disk), -ENOENT);
	disk = sample_disk_super();
	disk.label[5] ^= 1;
	assert_int_equal(decode(&disk), -EUCLEAN);
	assert_non_null(strstr(message, "corrupt superblock at 12288: csum has "));
}

static void a_filesystem_without_an_id_is_refused(void **state)
{
	struct zf_disk_super disk = sample_disk_super();

	memset(disk.fsid, 0, sizeof(disk.fsid));
	seal(&disk);
	assert_int_equal(decode(&disk), -EUCLEAN);
}

static void unknown_optional_features_are_read(void **state)
{
	struct zf_disk_super disk = sample_disk_super();

	disk.compat = zf_le64_from(UINT64_MAX);
	disk.compat_ro = zf_le64_from(UINT64_MAX);
	seal(&disk);
	assert_int_equal(decode(&disk), 0);
}

static void labels_are_text(void **state)
{
	static const struct {
		char label[ZF_SUPER_LABEL_SIZE];
		bool valid;
	} labels[] = {
		{"", true},
		{"data", true},
		{"Gr\xc3\xbc\xc3\x9f\x65 \xe2\x82\xac \xf0\x9f\x92\xbe", true},
		{"123456789012345678901234567890123456789012345678901234567890123", true},
		{"\xff", false},
		{"\xc3", false},	     /* cut off */
		{"\xc0\xaf", false},	     /* overlong */
		{"\xe0\x80\xaf", false},     /* overlong */
		{"\xed\xa0\x80", false},     /* surrogate */
		{"\xf4\x90\x80\x80", false}, /* beyond Unicode */
		{"\x1b[31mred", false},	     /* an escape sequence */
		{"\xc2\x9b", false},	     /* CSI, the same in one character */
		{"a\nb", false},
		{"a\x7f", false},
		{{'a', 0, 'b'}, false}, /* something behind the end */
	};
	char unterminated[ZF_SUPER_LABEL_SIZE];

	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(labels); i++)
		if (zf_super_label_is_valid(labels[i].label) != labels[i].valid)
			fail_msg("label %u", i);
	memset(unterminated, 'a', sizeof(unterminated));
	assert_false(zf_super_label_is_valid(unterminated));
}

static void another_device_is_recognised(void **state)
{
	const struct zf_super super = sample_super(42);
	struct zf_geometry geometry = sample_geometry(0);

	assert_int_equal(zf_super_check_geometry(&super, &geometry, &report), 0);
	geometry.zone_count = 17;
	assert_int_equal(zf_super_check_geometry(&super, &geometry, &report), 0);
	geometry.zone_count = 15;
	assert_int_equal(zf_super_check_geometry(&super, &geometry, &report), -EUCLEAN);
	assert_non_null(strstr(message, "zone_count 16"));
	geometry = sample_geometry(0);
	geometry.zone_size *= 2;
	assert_int_equal(zf_super_check_geometry(&super, &geometry, &report), -EUCLEAN);
	geometry = sample_geometry(0);
	geometry.zone_capacity -= 4096;
	assert_int_equal(zf_super_check_geometry(&super, &geometry, &report), -EUCLEAN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_comes_back_as_it_was),
		cmocka_unit_test(the_sample_has_something_in_every_field),
		cmocka_unit_test(the_documentation_has_the_fields_and_the_bytes),
		cmocka_unit_test(a_value_that_does_not_fit_the_buffer_is_cut),
		cmocka_unit_test(every_reserved_byte_is_checked),
		cmocka_unit_test(every_wrong_number_is_refused_and_named),
		cmocka_unit_test(the_largest_counters_are_accepted),
		cmocka_unit_test(one_copy_and_no_named_zones_are_accepted),
		cmocka_unit_test(blocks_that_are_no_record_are_told_from_damaged_ones),
		cmocka_unit_test(a_filesystem_without_an_id_is_refused),
		cmocka_unit_test(unknown_optional_features_are_read),
		cmocka_unit_test(labels_are_text),
		cmocka_unit_test(another_device_is_recognised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
