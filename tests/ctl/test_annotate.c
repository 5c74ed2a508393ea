/* SPDX-License-Identifier: MIT */
/*
 * Annotated dumps: each byte of a structure is named exactly once, whatever its value, and by the
 * names of docs/format.md. That document shows what a dump looks like, and the document's own tests
 * compare its examples with dumps. This test covers the forms that have no example there.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "btree/node.h"
#include "check/sample.h"
#include "ctl/annotate.h"
#include "dump.h"
#include "fs/core/fs_format.h"
#include "support/log_record.h"
#include "sim/rng.h"

#define NODE_SIZE 4096u
#define SEED	  20261127u

/* ---- coverage ---- */

struct cover {
	const uint8_t *bytes;
	uint32_t end;	      /* of what was named so far */
	unsigned int unknown; /* bytes that are named "bytes" */
};

static void expect_field(const struct zf_annotation *annotation)
{
	const struct zf_fields *fields = annotation->fields;

	for (unsigned int i = 0; i < fields->count; i++)
		if (strcmp(fields->field[i].name, annotation->name) == 0) {
			assert_int_equal(fields->field[i].size, annotation->size);
			return;
		}
	fail_msg("%s has no field %s", fields->name, annotation->name);
}

static void cover(void *arg, const struct zf_annotation *annotation)
{
	struct cover *cover = arg;

	assert_int_equal(annotation->offset, cover->end);
	assert_true(annotation->size > 0);
	assert_ptr_equal(annotation->bytes, cover->bytes + annotation->offset);
	cover->end += annotation->size;
	if (annotation->fields)
		expect_field(annotation);
	else if (strcmp(annotation->name, "bytes") == 0)
		cover->unknown += annotation->size;
}

/* Returns how many bytes have no form. */
static unsigned int cover_node(const void *node, uint32_t size)
{
	struct cover covered = {.bytes = node};

	zf_annotate_node(node, size, cover, &covered);
	assert_int_equal(covered.end, size);
	return covered.unknown;
}

/* Calls fn for every block of the sample's device that begins as a node does. */
static unsigned int each_node(struct sample *sample, void (*fn)(const void *node, uint32_t size))
{
	const struct zf_super *super = &sample->forge.super;
	unsigned int count = 0;

	for (uint64_t at = 2 * super->zone_size; at < super->zone_count * super->zone_size;
	     at += ZF_BLOCK_SIZE) {
		const uint8_t *block = forge_bytes(&sample->forge, at);

		if (memcmp(block + 8, ZF_NODE_MAGIC, 4) == 0) {
			fn(block, super->node_size);
			count++;
		}
	}
	return count;
}

static void expect_whole(const void *node, uint32_t size)
{
	assert_int_equal(cover_node(node, size), 0);
}

static void every_byte_of_every_node_has_one_name(void **state)
{
	static const struct sample_options kinds[] = {{.node_size = NODE_SIZE, .copies = 2}, {0}};

	for (unsigned int i = 0; i < 2; i++) {
		struct sample sample;

		sample_make(&sample, &kinds[i]);
		assert_true(each_node(&sample, expect_whole) > 5);
		sample_free(&sample);
	}
}

static struct zf_rng rng;

/* The copy is of its own size, so that the sanitizers see a byte beyond it. */
static void damage(const void *node, uint32_t size)
{
	uint8_t *copy = malloc(size);

	assert_non_null(copy);
	for (unsigned int round = 0; round < 50; round++) {
		memcpy(copy, node, size);
		for (unsigned int i = 0; i < 4; i++)
			copy[zf_rng_below(&rng, i < 2 ? 120 : size)] = (uint8_t)zf_rng_next(&rng);
		memcpy(copy + 8, ZF_NODE_MAGIC, 4);
		cover_node(copy, size);
	}
	free(copy);
}

static void a_damaged_node_is_named_to_its_last_byte(void **state)
{
	struct sample sample;

	zf_rng_seed(&rng, SEED);
	sample_make(&sample, &(struct sample_options){.node_size = NODE_SIZE});
	each_node(&sample, damage);
	sample_free(&sample);
}

static void bytes_of_no_node_are_named_too(void **state)
{
	uint8_t *bytes = malloc(NODE_SIZE);

	assert_non_null(bytes);
	memset(bytes, 0xa5, NODE_SIZE);
	assert_int_equal(cover_node(bytes, NODE_SIZE),
			 NODE_SIZE - sizeof(struct zf_disk_node_header));
	free(bytes);
}

static void every_byte_of_a_superblock_has_one_name(void **state)
{
	struct zf_disk_super disk = {0};
	struct cover covered = {.bytes = (const uint8_t *)&disk};

	zf_annotate_super(&disk, cover, &covered);
	assert_int_equal(covered.end, ZF_BLOCK_SIZE);
}

/* ---- a packed leaf ---- */

static void make_packed(uint8_t node[NODE_SIZE])
{
	static const struct zf_geometry geometry = {
		.zone_size = 1u << 20, .zone_capacity = 1u << 20, .zone_count = 16};
	const struct zf_node_shape shape = {
		.geometry = &geometry, .node_size = NODE_SIZE, .copies = 1};
	const uint64_t address[ZF_COPIES_MAX] = {2u << 20, 0};

	zf_node_init(node, &shape, ZF_TREE_FS, 0, address, 7);
	for (unsigned int i = 0; !zf_node_is_packed(node); i++) {
		struct zf_key key = ZF_KEY(256, ZF_KEY_EXTENT, (uint64_t)i * 2 * ZF_BLOCK_SIZE);
		struct zf_disk_extent extent = {
			.type = ZF_EXTENT_DATA,
			.count = zf_le32_from(1),
			.generation = zf_le64_from(7),
			.address = zf_le64_from((3u << 20) + (uint64_t)i * ZF_BLOCK_SIZE),
		};

		zf_node_insert_item(node, NODE_SIZE, i, &key, &extent, sizeof(extent));
	}
}

static char *dump_node(const void *node)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	zf_annotate_node(node, NODE_SIZE, zf_dump_annotation, out);
	fclose(out);
	return text;
}

static void a_packed_leaf_tells_what_its_rows_stand_for(void **state)
{
	static const char expected[] =
		"0048  18                                               value_size 24\n"
		"0049  04                                               width 4\n"
		"004a  00 01 00 00 00 00 00 00                          base key objectid 256\n"
		"0052  07                                               base key type 7\n"
		"0053  00 00 00 00 00 00 00 00                          base key offset 0\n"
		"005b  02                                               base value type 2\n"
		"005c  00                                               base value flags 0\n"
		"005d  00                                               base value compression 0\n"
		"005e  00                                               base value encryption 0\n"
		"005f  01 00 00 00                                      base value count 1\n"
		"0063  07 00 00 00 00 00 00 00                          base value generation 7\n"
		"006b  00 00 00 00 00 00 00 00                          base value address 0\n"
		"0073  0a 0b 22 23                                      columns\n"
		"0077  00 00 00 30                                      row 0 key.offset 0, "
		"address 3145728\n"
		"007b  20 00 10 30                                      row 1 key.offset 8192, "
		"address 3149824\n";
	uint8_t *node = calloc(1, NODE_SIZE);
	char *text;

	assert_non_null(node);
	make_packed(node);
	assert_int_equal(cover_node(node, NODE_SIZE), 0);
	text = dump_node(node);
	if (!strstr(text, expected))
		fail_msg("not as expected:\n%.800s", strstr(text, "0048"));
	free(text);
	damage(node, NODE_SIZE);
	free(node);
}

/* ---- the log ---- */

static uint8_t *make_record(size_t *ret_len)
{
	static uint8_t data[ZF_BLOCK_SIZE];
	const uint64_t csum = zf_hash64(data, sizeof(data));
	const struct zf_key key = ZF_KEY(300, ZF_KEY_INODE, 0);
	const struct zf_super super = {.log_zone = {3, 4}, .zone_size = 1u << 20};
	const struct zf_disk_inode inode = {.nlink = zf_le32_from(1)};
	struct zf_log_body operation, extents;
	const struct log_record_body bodies[] = {
		{.body = &operation, .number = 1},
		{.body = &extents, .number = 2, .data = data, .data_blocks = 1},
	};
	const struct zf_log_range ranges[] = {
		{.type = ZF_LOG_RANGE_DATA, .riding = true, .len = ZF_BLOCK_SIZE, .csums = &csum},
		{.type = ZF_LOG_RANGE_INLINE,
		 .len = ZF_BLOCK_SIZE,
		 .bytes = (const uint8_t *)"small",
		 .inline_len = 5},
	};
	uint8_t *record;

	zf_log_body_begin(&operation, ZF_LOG_OPERATION);
	zf_log_body_set(&operation, &key, &inode, sizeof(inode));
	zf_log_body_set(&operation, &key, "odd", 3);
	zf_log_body_begin(&extents, ZF_LOG_EXTENTS);
	zf_log_body_inode(&extents, 300, &inode, sizeof(inode));
	zf_log_body_range(&extents, &ranges[0]);
	zf_log_body_range(&extents, &ranges[1]);
	record = log_record_make(&super, 0, 1, bodies, 2, ret_len);
	zf_log_body_end(&operation);
	zf_log_body_end(&extents);
	return record;
}

static void every_byte_of_a_log_record_has_one_name(void **state)
{
	size_t len;
	uint8_t *record = make_record(&len);
	struct cover covered = {.bytes = record};

	zf_annotate_log_record(record, (uint32_t)len, cover, &covered);
	assert_int_equal(covered.end, len);
	assert_int_equal(covered.unknown, 3); /* what is no inode's item */
	free(record);
}

static void a_damaged_log_record_is_named_to_its_last_byte(void **state)
{
	size_t len, rounds = 0;
	uint8_t *record = make_record(&len), *copy = malloc(ZF_BLOCK_SIZE);

	assert_non_null(copy);
	zf_rng_seed(&rng, SEED);
	for (unsigned int i = 0; i < 2000; i++) {
		struct cover covered = {.bytes = copy};
		struct zf_log_record header;

		memcpy(copy, record, ZF_BLOCK_SIZE);
		for (unsigned int byte = 0; byte < 3; byte++)
			copy[80 + zf_rng_below(&rng, 500)] = (uint8_t)zf_rng_below(&rng, 12);
		if (!zf_log_record_peek(copy, &header) || header.bytes > ZF_BLOCK_SIZE)
			continue;
		zf_annotate_log_record(copy, ZF_BLOCK_SIZE, cover, &covered);
		assert_int_equal(covered.end, ZF_BLOCK_SIZE);
		rounds++;
	}
	assert_true(rounds > 100);
	free(copy);
	free(record);
}

/* ---- the lines ---- */

static void a_line_has_at_most_100_columns(void **state)
{
	char note[ZF_DUMP_NOTE_MAX], *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	memset(note, 'x', 300);
	memcpy(note + 300, " y", 3);
	zf_dump_bytes(out, 0x20000, "0123456789abcdefg", 17, note);
	zf_dump_withheld(out, 0x20000, 5, note);
	fclose(out);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= ZF_DUMP_COLUMNS);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_of_every_node_has_one_name),
		cmocka_unit_test(a_damaged_node_is_named_to_its_last_byte),
		cmocka_unit_test(bytes_of_no_node_are_named_too),
		cmocka_unit_test(every_byte_of_a_superblock_has_one_name),
		cmocka_unit_test(a_packed_leaf_tells_what_its_rows_stand_for),
		cmocka_unit_test(every_byte_of_a_log_record_has_one_name),
		cmocka_unit_test(a_damaged_log_record_is_named_to_its_last_byte),
		cmocka_unit_test(a_line_has_at_most_100_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
