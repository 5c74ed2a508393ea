/* SPDX-License-Identifier: MIT */
/* Reading the log: which records count, in which order, and that no others count (P1, P2, P7). */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io/memory.h"
#include "log/read.h"
#include "support/log_record.h"
#include "sim/rng.h"
#include "sim/sim.h"

#define BLOCK	  UINT64_C(4096)
#define ZONE_SIZE (256 * BLOCK)
#define CAPACITY  (200 * BLOCK)
#define S	  UINT64_C(10)	/* the superblock's log_sequence ... */
#define O	  UINT64_C(100) /* ... and op_number */
#define ROUNDS	  1500

static const struct zf_geometry geometry = {
	.zone_size = ZONE_SIZE,
	.zone_capacity = CAPACITY,
	.zone_count = 16,
	.append_limit = 256 * 1024,
};

/* A device with two log zones, and the superblock that names them. */
struct rig {
	struct zf_memory *memory;
	struct zf_dev *dev;
	struct zf_super super;
	unsigned int errors; /* reported */
	struct zf_report report;
};

static void count_error(void *arg, enum zf_report_level level, const char *message)
{
	unsigned int *errors = arg;

	*errors += level == ZF_REPORT_ERROR;
}

static void make_super(struct zf_super *super)
{
	*super = (struct zf_super){
		.generation = 50,
		.zone_size = ZONE_SIZE,
		.zone_capacity = CAPACITY,
		.zone_count = 16,
		.op_number = O,
		.log_sequence = S,
		.log_epoch = 3,
		.log_zone = {5, 6},
	};
	memset(super->fsid, 0x11, sizeof(super->fsid));
	memset(super->log_secret, 0x5e, sizeof(super->log_secret));
}

static void read_resets(struct zf_dev *dev, struct zf_super *super)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct zf_zone_info info;

		assert_int_equal(zf_dev_reset(dev, super->log_zone[i]), 0);
		assert_int_equal(zf_dev_report(dev, super->log_zone[i], 1, &info), 0);
		super->log_zone_resets[i] = info.reset_count;
	}
}

static void setup_with(struct rig *rig, const struct zf_geometry *of)
{
	*rig = (struct rig){0};
	rig->report = (struct zf_report){count_error, &rig->errors};
	make_super(&rig->super);
	assert_int_equal(zf_memory_new(of, &rig->memory), 0);
	assert_int_equal(zf_memory_open(rig->memory, NULL, NULL, &rig->dev), 0);
	read_resets(rig->dev, &rig->super);
}

static void setup(struct rig *rig)
{
	setup_with(rig, &geometry);
}

static void teardown(struct rig *rig)
{
	zf_dev_close(rig->dev);
	zf_memory_free(rig->memory);
}

static uint8_t *bytes_at(struct rig *rig, uint64_t address)
{
	uint8_t *zone = zf_memory_zone(rig->memory, (uint32_t)(address / ZONE_SIZE));

	return zone + address % ZONE_SIZE;
}

/* ---- records ---- */

static void operation_body(struct zf_log_body *body, uint64_t number)
{
	const struct zf_key key = ZF_KEY(300, 5, number);

	zf_log_body_begin(body, ZF_LOG_OPERATION);
	zf_log_body_set(body, &key, "value", 5);
}

/* The blocks of an inode's body, each filled with its number and the block's. */
static uint8_t *data_of(uint64_t number, uint32_t blocks)
{
	uint8_t *data = malloc(blocks * BLOCK);

	assert_non_null(data);
	for (uint32_t i = 0; i < blocks; i++)
		memset(data + i * BLOCK, (int)(number * 16 + i), BLOCK);
	return data;
}

static void inode_body(struct zf_log_body *body, const uint8_t *data, uint32_t blocks)
{
	uint64_t csums[64];
	struct zf_log_range range = {
		.type = ZF_LOG_RANGE_DATA,
		.riding = true,
		.len = blocks * BLOCK,
		.csums = csums,
	};

	assert_true(blocks <= ZF_ARRAY_SIZE(csums));
	for (uint32_t i = 0; i < blocks; i++)
		csums[i] = zf_hash64(data + i * BLOCK, BLOCK);
	zf_log_body_begin(body, ZF_LOG_EXTENTS);
	zf_log_body_inode(body, 300, "item", 4);
	zf_log_body_range(body, &range);
}

/* Makes a record with one operation. */
static uint8_t *make_plain(const struct zf_super *super, unsigned int which, uint64_t sequence,
			   uint64_t number, size_t *ret_len)
{
	struct zf_log_body body;
	struct log_record_body part = {.body = &body, .number = number};
	uint8_t *blocks;

	operation_body(&body, number);
	blocks = log_record_make(super, which, sequence, &part, 1, ret_len);
	zf_log_body_end(&body);
	return blocks;
}

/* Makes a record with the state of one inode, and `data_blocks` blocks of its data. */
static uint8_t *make_data(const struct zf_super *super, unsigned int which, uint64_t sequence,
			  uint64_t number, uint32_t data_blocks, size_t *ret_len)
{
	uint8_t *data = data_of(number, data_blocks), *blocks;
	struct zf_log_body body;
	struct log_record_body part = {
		.body = &body,
		.number = number,
		.data = data,
		.data_blocks = data_blocks,
	};

	inode_body(&body, data, data_blocks);
	blocks = log_record_make(super, which, sequence, &part, 1, ret_len);
	zf_log_body_end(&body);
	free(data);
	return blocks;
}

static uint64_t append_and_free(struct rig *rig, unsigned int which, uint8_t *blocks, size_t len)
{
	uint64_t address = log_record_append_blocks(rig->dev, &rig->super, which, blocks, len);

	free(blocks);
	return address;
}

static uint64_t append_plain(struct rig *rig, unsigned int which, uint64_t sequence,
			     uint64_t number)
{
	size_t len;
	uint8_t *blocks = make_plain(&rig->super, which, sequence, number, &len);

	return append_and_free(rig, which, blocks, len);
}

static uint64_t append_data(struct rig *rig, unsigned int which, uint64_t sequence, uint64_t number,
			    uint32_t data_blocks)
{
	size_t len;
	uint8_t *blocks = make_data(&rig->super, which, sequence, number, data_blocks, &len);

	return append_and_free(rig, which, blocks, len);
}

/* Appends a record of make_data() that carries the first of its data blocks. */
static uint64_t append_carrying(struct rig *rig, unsigned int which, uint64_t sequence,
				uint64_t number, uint32_t data_blocks)
{
	size_t len;
	uint8_t *blocks = make_data(&rig->super, which, sequence, number, data_blocks, &len);

	log_record_carry(&rig->super, blocks, &len);
	return append_and_free(rig, which, blocks, len);
}

/* ---- what is found ---- */

static void read_log(struct rig *rig, struct zf_log_found *ret_found)
{
	assert_int_equal(zf_log_read(rig->dev, &rig->super, &rig->report, ret_found), 0);
}

static void expect_numbers(const struct zf_log_found *found, const uint64_t *numbers, size_t n)
{
	assert_int_equal(found->body_count, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(found->bodies[i].number, numbers[i]);
}

/* Reads, and expects these bodies, out of so many records, with so many others ignored. */
static void expect_log(struct rig *rig, uint64_t records, uint64_t ignored, size_t n, ...)
{
	struct zf_log_found found;
	uint64_t numbers[16];
	va_list ap;

	va_start(ap, n);
	for (size_t i = 0; i < n; i++)
		numbers[i] = va_arg(ap, uint64_t);
	va_end(ap);
	read_log(rig, &found);
	expect_numbers(&found, numbers, n);
	assert_int_equal(found.records, records);
	assert_int_equal(found.ignored, ignored);
	zf_log_found_free(&found);
}

static void an_empty_log_is_read(void **state)
{
	struct zf_log_found found;
	struct rig rig;

	setup(&rig);
	read_log(&rig, &found);
	assert_int_equal(found.body_count, 0);
	assert_int_equal(found.list_count, 0);
	assert_int_equal(found.highest_sequence, S);
	assert_int_equal(found.highest_number, O);
	assert_int_equal(found.end[0], 0);
	zf_log_found_free(&found);
	rig.super.log_zone[0] = rig.super.log_zone[1] = ZF_SUPER_NO_ZONE;
	expect_log(&rig, 0, 0, 0);
	teardown(&rig);
}

static void sequence_numbers_count_and_not_addresses(void **state)
{
	struct zf_log_found found;
	struct rig rig;

	setup(&rig);
	append_plain(&rig, 0, S + 2, 102);
	append_plain(&rig, 0, S + 4, 104);
	append_data(&rig, 1, S + 3, 103, 3);
	append_plain(&rig, 1, S + 1, 101);
	expect_log(&rig, 4, 0, 4, O + 1, O + 2, O + 3, O + 4);
	read_log(&rig, &found);
	assert_int_equal(found.highest_sequence, S + 4);
	assert_int_equal(found.highest_number, O + 4);
	assert_int_equal(found.end[0], 2 * BLOCK);
	assert_int_equal(found.end[1], 5 * BLOCK);
	zf_log_found_free(&found);
	teardown(&rig);
}

static void bodies_come_in_the_order_of_their_numbers(void **state)
{
	struct zf_log_body body[3];
	struct log_record_body parts[3];
	struct rig rig;

	setup(&rig);
	for (unsigned int i = 0; i < 3; i++) {
		operation_body(&body[i], i);
		parts[i] = (struct log_record_body){.body = &body[i], .number = O + 5 - 2 * i};
	}
	log_record_append(rig.dev, &rig.super, 0, S + 1, parts, 3);
	append_plain(&rig, 0, S + 2, O + 2);
	expect_log(&rig, 2, 0, 4, O + 1, O + 2, O + 3, O + 5);
	teardown(&rig);
}

static void what_is_in_the_trees_is_left_out(void **state)
{
	struct rig rig;

	setup(&rig);
	append_plain(&rig, 0, S - 1, O - 1);
	append_plain(&rig, 0, S, O + 7); /* its number does not matter */
	append_plain(&rig, 0, S + 1, O);
	append_plain(&rig, 0, S + 2, O + 1);
	expect_log(&rig, 2, 0, 1, O + 1);
	teardown(&rig);
}

static void reading_begins_where_the_superblock_says(void **state)
{
	struct rig rig;

	setup(&rig);
	append_plain(&rig, 0, S + 1, O + 1);
	append_plain(&rig, 0, S + 2, O + 2);
	rig.super.log_pointer[0] = BLOCK;
	expect_log(&rig, 0, 1, 0);
	teardown(&rig);
}

static void a_gap_ends_the_log(void **state)
{
	struct zf_log_found found;
	struct rig rig;

	setup(&rig);
	append_plain(&rig, 0, S + 1, O + 1);
	append_plain(&rig, 0, S + 3, O + 3);
	append_plain(&rig, 1, S + 4, O + 4);
	expect_log(&rig, 1, 2, 1, O + 1);
	read_log(&rig, &found);
	assert_int_equal(found.highest_sequence, S + 4);
	assert_int_equal(found.highest_number, O + 4);
	zf_log_found_free(&found);
	teardown(&rig);
}

/* The record in the middle of three, S + 2, lies at `address`. */
static void expect_gap_wherever_torn(struct rig *rig, uint64_t address, uint64_t len)
{
	expect_log(rig, 3, 0, 3, O + 1, O + 2, O + 3);
	for (uint64_t at = 0; at < len; at += 41) {
		bytes_at(rig, address)[at] ^= 0x10;
		expect_log(rig, 1, 1, 1, O + 1);
		bytes_at(rig, address)[at] ^= 0x10;
	}
	expect_log(rig, 3, 0, 3, O + 1, O + 2, O + 3);
}

/* Every byte of a record counts: torn anywhere, in its header, its bodies or its data, it is a gap.
 */
static void a_torn_record_is_a_gap(void **state)
{
	struct rig rig;
	uint64_t address;

	setup(&rig);
	append_plain(&rig, 0, S + 1, O + 1);
	address = append_data(&rig, 0, S + 2, O + 2, 3);
	append_plain(&rig, 0, S + 3, O + 3);
	expect_gap_wherever_torn(&rig, address, 4 * BLOCK);
	teardown(&rig);
}

static void a_torn_record_that_carries_is_a_gap(void **state)
{
	struct rig rig;
	uint64_t address;

	setup(&rig);
	append_plain(&rig, 0, S + 1, O + 1);
	address = append_carrying(&rig, 0, S + 2, O + 2, 3);
	assert_int_equal(append_plain(&rig, 0, S + 3, O + 3), address + 3 * BLOCK);
	expect_gap_wherever_torn(&rig, address, 3 * BLOCK);
	teardown(&rig);
}

/* A record does not count if one of the values that identify its place is wrong. */
static void a_record_of_another_life_does_not_count(void **state)
{
	struct rig rig;
	struct zf_super other[5];

	setup(&rig);
	for (size_t i = 0; i < ZF_ARRAY_SIZE(other); i++)
		other[i] = rig.super;
	other[0].log_epoch--;
	other[1].log_zone_resets[0]++;
	other[2].fsid[3] ^= 1;
	other[3].log_zone[0] = 7;
	other[4].log_secret[31] ^= 1;
	for (size_t i = 0; i < ZF_ARRAY_SIZE(other); i++) {
		size_t len;
		uint8_t *blocks = make_plain(&other[i], 0, S + 1, O + 1, &len);

		append_and_free(&rig, 0, blocks, len);
		expect_log(&rig, 0, 0, 0);
	}
	append_plain(&rig, 0, S + 1, O + 1);
	expect_log(&rig, 1, 0, 1, O + 1);
	teardown(&rig);
}

static void a_record_in_the_wrong_zone_does_not_count(void **state)
{
	struct rig rig;
	size_t len;
	uint8_t *blocks;

	setup(&rig);
	blocks = make_plain(&rig.super, 1, S + 1, O + 1, &len);
	append_and_free(&rig, 0, blocks, len);
	expect_log(&rig, 0, 0, 0);
	teardown(&rig);
}

/* No power cut causes this damage: without an error it would count as the end of the log. */
static void a_zone_that_was_reset_since_holds_nothing_and_is_an_error(void **state)
{
	struct zf_log_found found;
	struct rig rig;

	setup(&rig);
	append_plain(&rig, 0, S + 1, O + 1);
	append_plain(&rig, 1, S + 2, O + 2);
	assert_int_equal(zf_dev_reset(rig.dev, rig.super.log_zone[0]), 0);
	append_plain(&rig, 0, S + 1, O + 1);
	assert_int_equal(rig.errors, 0);
	expect_log(&rig, 0, 1, 0);
	assert_int_equal(rig.errors, 1);
	read_log(&rig, &found);
	assert_true(found.unreadable > 0);
	zf_log_found_free(&found);
	teardown(&rig);
}

/* ---- copies and doubles ---- */

/* A user who can read the device may copy a record from the device into a file. */
static void the_content_of_a_file_does_not_pose_as_a_record(void **state)
{
	struct zf_log_body body;
	struct log_record_body part = {.body = &body, .number = O + 2, .data_blocks = 1};
	struct rig rig;
	size_t len;
	uint8_t *copy;

	setup(&rig);
	copy = make_plain(&rig.super, 0, S + 3, O + 3, &len);
	part.data = copy;
	append_plain(&rig, 0, S + 1, O + 1);
	inode_body(&body, copy, 1);
	log_record_append(rig.dev, &rig.super, 0, S + 2, &part, 1);
	zf_log_body_end(&body);
	free(copy);
	expect_log(&rig, 2, 0, 2, O + 1, O + 2);
	teardown(&rig);
}

static void a_copy_of_a_record_changes_nothing(void **state)
{
	struct zf_log_found found;
	struct rig rig;
	size_t len;
	uint8_t *blocks;
	uint64_t address;

	setup(&rig);
	blocks = make_data(&rig.super, 0, S + 1, O + 1, 1, &len);
	address = log_record_append_blocks(rig.dev, &rig.super, 0, blocks, len);
	append_and_free(&rig, 0, blocks, len);
	append_plain(&rig, 0, S + 2, O + 2);
	expect_log(&rig, 2, 0, 2, O + 1, O + 2);
	read_log(&rig, &found);
	assert_int_equal(found.bodies[0].data_address, address + BLOCK);
	assert_int_equal(found.list[0].fate, ZF_LOG_TO_REPLAY);
	assert_int_equal(found.list[1].fate, ZF_LOG_COPY);
	zf_log_found_free(&found);
	assert_int_equal(rig.errors, 0);
	teardown(&rig);
}

static void of_two_records_with_one_sequence_number_neither_counts(void **state)
{
	struct rig rig;

	setup(&rig);
	append_plain(&rig, 0, S + 1, O + 1);
	append_plain(&rig, 0, S + 2, O + 2);
	append_plain(&rig, 1, S + 2, O + 3);
	append_plain(&rig, 0, S + 3, O + 4);
	expect_log(&rig, 1, 3, 1, O + 1);
	assert_int_equal(rig.errors, 1);
	teardown(&rig);
}

static void before_two_bodies_with_one_number_the_log_ends(void **state)
{
	struct rig rig;

	setup(&rig);
	append_plain(&rig, 0, S + 1, O + 1);
	append_plain(&rig, 0, S + 2, O + 2);
	append_plain(&rig, 0, S + 3, O + 2);
	append_plain(&rig, 0, S + 4, O + 3);
	expect_log(&rig, 4, 0, 1, O + 1);
	assert_int_equal(rig.errors, 1);
	teardown(&rig);
}

/* ---- the device ---- */

static void behind_a_pointer_that_is_a_lower_bound_records_are_found(void **state)
{
	struct zf_geometry unclean = geometry;
	struct zf_log_found found;
	struct rig rig;
	size_t len;
	uint8_t *blocks;

	unclean.pointers_are_lower_bounds = true;
	for (unsigned int i = 0; i < 2; i++) {
		setup_with(&rig, i == 0 ? &geometry : &unclean);
		append_plain(&rig, 0, S + 1, O + 1);
		blocks = make_data(&rig.super, 0, S + 2, O + 2, 9, &len);
		memcpy(bytes_at(&rig, 5 * ZONE_SIZE + CAPACITY - len), blocks, len);
		free(blocks);
		read_log(&rig, &found);
		assert_int_equal(found.records, i == 0 ? 1 : 2);
		assert_int_equal(found.end[0], i == 0 ? BLOCK : CAPACITY);
		zf_log_found_free(&found);
		teardown(&rig);
	}
}

static void a_record_that_would_end_behind_the_pointer_does_not_count(void **state)
{
	struct rig rig;
	size_t len;
	uint8_t *blocks;

	setup(&rig);
	blocks = make_data(&rig.super, 0, S + 1, O + 1, 2, &len);
	append_and_free(&rig, 0, blocks, len - BLOCK);
	expect_log(&rig, 0, 0, 0);
	teardown(&rig);
}

/* A zone's end, and the end of a large read, fall anywhere into records. */
static void a_zone_full_of_records_is_read(void **state)
{
	struct zf_geometry large = geometry;
	struct zf_log_found found;
	struct rig rig;
	uint64_t sequence = S, at = 0;

	large.zone_size = large.zone_capacity = 16 * ZONE_SIZE;
	setup_with(&rig, &large);
	rig.super.zone_size = large.zone_size;
	for (uint32_t data = 1; at + (1 + data) * BLOCK <= large.zone_capacity;
	     data = data % 50 + 3) {
		sequence++;
		append_data(&rig, 0, sequence, O + sequence, data);
		at += (1 + data) * BLOCK;
	}
	read_log(&rig, &found);
	assert_int_equal(found.records, sequence - S);
	assert_int_equal(found.body_count, sequence - S);
	assert_int_equal(found.end[0], at);
	zf_log_found_free(&found);
	teardown(&rig);
}

/* The simulator's reads can be made to fail. */
struct sim_rig {
	struct zf_sim *sim;
	struct zf_dev *dev;
	struct zf_super super;
};

static void sim_setup_with(struct sim_rig *rig, const struct zf_geometry *of)
{
	make_super(&rig->super);
	rig->super.zone_size = of->zone_size;
	rig->sim = zf_sim_new(of, 1);
	assert_int_equal(zf_sim_open(rig->sim, NULL, &rig->dev), 0);
	read_resets(rig->dev, &rig->super);
	for (uint64_t i = 1; i <= 3; i++) {
		size_t len;
		uint8_t *blocks = make_plain(&rig->super, 0, S + i, O + i, &len);

		log_record_append_blocks(rig->dev, &rig->super, 0, blocks, len);
		free(blocks);
	}
}

static void sim_setup(struct sim_rig *rig)
{
	sim_setup_with(rig, &geometry);
}

static void sim_teardown(struct sim_rig *rig)
{
	zf_dev_close(rig->dev);
	zf_sim_free(rig->sim);
}

static void fail_reads(struct sim_rig *rig, uint64_t first, uint64_t last)
{
	for (uint64_t nth = first; nth <= last; nth++) {
		struct zf_sim_fault fault = {.op = ZF_IO_READ, .nth = nth, .error = -EIO};

		zf_sim_add_fault(rig->sim, &fault);
	}
}

static uint64_t records_read(struct sim_rig *rig, uint64_t unreadable)
{
	struct zf_log_found found;
	uint64_t records;

	assert_int_equal(zf_log_read(rig->dev, &rig->super, NULL, &found), 0);
	records = found.records;
	assert_int_equal(found.unreadable, unreadable);
	zf_log_found_free(&found);
	return records;
}

static void a_block_that_cannot_be_read_is_a_gap(void **state)
{
	struct sim_rig rig;

	sim_setup(&rig);
	assert_int_equal(records_read(&rig, 0), 3);
	/* The large read fails, and all of its blocks can be read one by one. */
	fail_reads(&rig, 1, 1);
	assert_int_equal(records_read(&rig, 0), 3);
	/* The large one, and the second block. */
	fail_reads(&rig, 1, 1);
	fail_reads(&rig, 3, 3);
	assert_int_equal(records_read(&rig, 1), 1);
	assert_int_equal(zf_sim_faults_left(rig.sim), 0);
	sim_teardown(&rig);
}

/* Block after block would take a dead disk hours. */
static void where_nothing_can_be_read_the_rest_is_not_tried(void **state)
{
	struct sim_rig rig;

	sim_setup(&rig);
	fail_reads(&rig, 1, 4);
	assert_int_equal(records_read(&rig, 3), 0);
	assert_int_equal(zf_sim_faults_left(rig.sim), 0);
	assert_int_equal(records_read(&rig, 0), 3);
	sim_teardown(&rig);
}

/* The first MiB is tried block by block; what lies behind it may hold records all the same. */
static void what_is_not_tried_counts_as_unreadable(void **state)
{
	struct zf_geometry large = geometry;
	struct sim_rig rig;

	large.zone_size = large.zone_capacity = 1000 * BLOCK;
	sim_setup_with(&rig, &large);
	zf_sim_set_zone_cond(rig.sim, rig.super.log_zone[0], ZF_ZONE_READONLY);
	fail_reads(&rig, 1, 1 + 256);
	assert_int_equal(records_read(&rig, 1000), 0);
	assert_int_equal(zf_sim_faults_left(rig.sim), 0);
	sim_teardown(&rig);
}

/* ---- versions to come ---- */

/* Returns 1 if the record was reported as one that cannot be understood. */
static int read_with_unknown_body(uint64_t sequence, size_t at, uint8_t value)
{
	struct zf_log_found found;
	struct rig rig;
	size_t len;
	uint8_t *blocks;
	int r;

	setup(&rig);
	blocks = make_plain(&rig.super, 0, sequence, O + 1, &len);
	blocks[sizeof(struct zf_disk_log_header) + at] = value;
	log_record_seal_again(&rig.super, blocks);
	append_and_free(&rig, 0, blocks, len);
	r = zf_log_read(rig.dev, &rig.super, &rig.report, &found);
	if (r == 0) {
		assert_int_equal(found.records, 0);
		r = found.unreadable > 0;
		zf_log_found_free(&found);
	}
	assert_int_equal(rig.errors, r != 0);
	teardown(&rig);
	return r;
}

static void a_body_of_an_unknown_kind_is_not_passed_over(void **state)
{
	const size_t type = offsetof(struct zf_disk_log_body, type);
	const size_t version = offsetof(struct zf_disk_log_body, version);

	assert_int_equal(read_with_unknown_body(S + 1, type, 3), -EPROTONOSUPPORT);
	assert_int_equal(read_with_unknown_body(S + 1, version, 2), -EPROTONOSUPPORT);
	/* A record that is in the trees already may have any body. */
	assert_int_equal(read_with_unknown_body(S, type, 3), 0);
	/* A body of a known kind that is wrong: no power cut causes that. */
	assert_int_equal(read_with_unknown_body(S + 1, type, ZF_LOG_EXTENTS), 1);
	assert_int_equal(read_with_unknown_body(S, type, ZF_LOG_EXTENTS), 0);
}

/* ---- wrong, with the right hash ---- */

struct forgery {
	const char *what;
	size_t at;
	unsigned int size; /* bytes */
	uint64_t value;
};

#define HEADER	sizeof(struct zf_disk_log_header)
#define H(f)	offsetof(struct zf_disk_log_header, f)
#define BODY(f) (HEADER + offsetof(struct zf_disk_log_body, f))

/* Two inodes' states, each with two blocks. The second body begins at *ret_second. */
static uint8_t *make_two(const struct zf_super *super, size_t *ret_second, size_t *ret_len)
{
	/* All blocks are equal, so checksums do not tell which body a block belongs to. */
	uint8_t *data = calloc(2, BLOCK), *blocks;
	struct zf_log_body body;
	struct log_record_body parts[2];

	assert_non_null(data);
	inode_body(&body, data, 2);
	for (unsigned int i = 0; i < 2; i++)
		parts[i] = (struct log_record_body){&body, O + 1 + i, data, 2};
	blocks = log_record_make(super, 0, S + 1, parts, 2, ret_len);
	*ret_second = body.len;
	zf_log_body_end(&body);
	free(data);
	return blocks;
}

static void expect_forgery(const struct forgery *forgery, uint64_t expected)
{
	struct zf_le64 le = zf_le64_from(forgery->value);
	struct zf_log_found found;
	struct rig rig;
	size_t second, len;
	uint8_t *blocks;

	setup(&rig);
	blocks = make_two(&rig.super, &second, &len);
	memcpy(blocks + forgery->at, &le, forgery->size);
	log_record_seal_again(&rig.super, blocks);
	append_and_free(&rig, 0, blocks, len);
	read_log(&rig, &found);
	if (found.records != expected)
		fail_msg("%s: %" PRIu64 " records", forgery->what, found.records);
	zf_log_found_free(&found);
	teardown(&rig);
}

static void every_field_of_a_record_is_checked(void **state)
{
	struct zf_super super;
	size_t second, len;

	make_super(&super);
	free(make_two(&super, &second, &len));
	const struct forgery forgeries[] = {
		{"no sequence number", H(sequence), 8, 0},
		{"a sequence number that overflows", H(sequence), 8, UINT64_MAX},
		{"no generation", H(generation), 8, 0},
		{"a body more", H(body_count), 4, 3},
		{"a body less", H(body_count), 4, 1},
		{"very many bodies", H(body_count), 4, UINT32_MAX},
		{"a header less", H(bytes), 4, HEADER},
		{"less than a header", H(bytes), 4, HEADER - 8},
		{"reserved bytes", H(reserved) + 7, 1, 1},
		{"a packed block that is none", H(carried), 4, 1},
		{"a packed block longer than the header's", H(carried), 4, BLOCK},
		{"a packed block without end", H(carried), 4, UINT32_MAX},
		{"bytes behind the bodies", BLOCK - 1, 1, 1},
		{"a number 0", BODY(number), 8, 0},
		{"a number that overflows", BODY(number), 8, ZF_SUPER_COUNTER_MAX + 1},
		{"data behind the record's", second + BODY(data_first), 4, 3},
		{"data far behind it", second + BODY(data_first), 4, UINT32_MAX},
		{"more data than the record's", second + BODY(data_count), 4, 3},
		{"data of the body before", second + BODY(data_first), 4, 1},
	};
	expect_forgery(&(struct forgery){"as it is", H(body_count), 4, 2}, 1);
	for (size_t i = 0; i < ZF_ARRAY_SIZE(forgeries); i++)
		expect_forgery(&forgeries[i], 0);
}

/* The record's hash is right, but the block that it carries has other data than its ranges say, or
 * the ranges have no data, or bytes follow. */
static void what_a_record_carries_is_checked(void **state)
{
	static const char *const cases[] = {"as it is", "other data", "no data blocks", "padding"};

	(void)state;
	for (size_t i = 0; i < ZF_ARRAY_SIZE(cases); i++) {
		struct zf_log_found found;
		struct rig rig;
		uint8_t *blocks;
		size_t len;

		setup(&rig);
		blocks = make_data(&rig.super, 0, S + 1, O + 1, 1, &len);
		if (i == 1)
			blocks[BLOCK + 5] ^= 1;
		log_record_carry(&rig.super, blocks, &len);
		if (i == 2)
			((struct zf_disk_log_header *)(void *)blocks)->data_blocks =
				zf_le32_from(0);
		if (i == 3)
			blocks[BLOCK - 1] = 1;
		log_record_seal_again(&rig.super, blocks);
		append_and_free(&rig, 0, blocks, len);
		read_log(&rig, &found);
		if (found.records != (i == 0))
			fail_msg("%s: %" PRIu64 " records", cases[i], found.records);
		zf_log_found_free(&found);
		teardown(&rig);
	}
}

/* ---- what the bodies name ---- */

struct range_list {
	uint64_t address[8], len[8];
	unsigned int count;
	int error;
};

static int note_range(void *arg, const struct zf_log_range *range)
{
	struct range_list *list = arg;

	assert_true(list->count < ZF_ARRAY_SIZE(list->address));
	list->address[list->count] = range->address;
	list->len[list->count++] = range->len;
	return list->error;
}

static void the_device_ranges_of_the_log_are_listed(void **state)
{
	static const struct zf_log_range there = {
		.type = ZF_LOG_RANGE_DATA, .len = 3 * BLOCK, .address = 77 * BLOCK};
	static const struct zf_log_range zero = {.type = ZF_LOG_RANGE_ZERO, .len = BLOCK};
	struct range_list list = {0};
	struct zf_log_body body;
	struct log_record_body part = {.body = &body, .number = O + 3};
	struct zf_log_found found;
	struct rig rig;
	uint64_t address;

	setup(&rig);
	append_plain(&rig, 0, S + 1, O + 1);
	address = append_data(&rig, 0, S + 2, O + 2, 2);
	zf_log_body_begin(&body, ZF_LOG_EXTENTS);
	zf_log_body_inode(&body, 301, "item", 4);
	zf_log_body_range(&body, &there);
	zf_log_body_range(&body, &zero);
	log_record_append(rig.dev, &rig.super, 0, S + 3, &part, 1);
	zf_log_body_end(&body);
	read_log(&rig, &found);
	assert_int_equal(zf_log_found_ranges(&found, note_range, &list), 0);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.address[0], address + BLOCK);
	assert_int_equal(list.len[0], 2 * BLOCK);
	assert_int_equal(list.address[1], there.address);
	assert_int_equal(list.len[1], there.len);
	list = (struct range_list){.error = -ENOSPC};
	assert_int_equal(zf_log_found_ranges(&found, note_range, &list), -ENOSPC);
	assert_int_equal(list.count, 1);
	zf_log_found_free(&found);
	teardown(&rig);
}

/* ---- chance ---- */

#define RECORDS 8u

struct placed {
	uint64_t address, len;
};

static void append_some(struct rig *rig, struct zf_rng *rng, struct placed *placed)
{
	for (unsigned int i = 0; i < RECORDS; i++) {
		unsigned int which = (unsigned int)zf_rng_below(rng, 2);
		uint32_t data = (uint32_t)zf_rng_below(rng, 5);
		size_t len;
		uint8_t *blocks =
			data > 0 ? make_data(&rig->super, which, S + 1 + i, O + 1 + i, data, &len)
				 : make_plain(&rig->super, which, S + 1 + i, O + 1 + i, &len);

		placed[i].address = append_and_free(rig, which, blocks, len);
		placed[i].len = len;
	}
}

/* Damages some records. Returns how many records, from the first on, are as they were written. */
static uint64_t damage(struct rig *rig, struct zf_rng *rng, const struct placed *placed)
{
	uint64_t whole = RECORDS;

	for (uint64_t n = zf_rng_below(rng, 4); n > 0; n--) {
		uint64_t i = zf_rng_below(rng, RECORDS);
		uint8_t *bytes = bytes_at(rig, placed[i].address);

		if (zf_rng_chance(rng, 50))
			zf_rng_fill(rng, bytes + zf_rng_below(rng, placed[i].len / 512) * 512, 512);
		else
			bytes[zf_rng_below(rng, placed[i].len)] ^= (uint8_t)(1 + n);
		whole = zf_min_u64(whole, i);
	}
	return whole;
}

static void the_log_ends_at_the_first_record_that_is_not_whole(void **state)
{
	for (unsigned int seed = 0; seed < ROUNDS; seed++) {
		struct placed placed[RECORDS];
		struct zf_log_found found;
		struct zf_rng rng;
		struct rig rig;
		uint64_t whole;

		setup(&rig);
		zf_rng_seed(&rng, seed);
		append_some(&rig, &rng, placed);
		whole = damage(&rig, &rng, placed);
		read_log(&rig, &found);
		if (found.records != whole)
			fail_msg("seed %u: %" PRIu64 " records, expected %" PRIu64, seed,
				 found.records, whole);
		assert_int_equal(found.body_count, whole);
		zf_log_found_free(&found);
		teardown(&rig);
	}
}

static uint64_t sum(const void *bytes, size_t len)
{
	uint64_t total = 0;

	for (size_t i = 0; i < len; i++)
		total += ((const uint8_t *)bytes)[i];
	return total;
}

static uint64_t visit_ranges(const struct zf_log_body_view *body)
{
	struct zf_log_range_view range;
	uint64_t total = 0, csum;

	for (size_t at = 0; zf_log_next_range(body, &at, &range);) {
		total += sum(range.range.bytes, range.range.inline_len);
		for (unsigned int i = 0; range.csums && i < range.range.len / BLOCK; i++) {
			zf_log_range_csums(&range, i, 1, &csum);
			total += csum;
		}
	}
	return total;
}

static uint64_t visit(const struct zf_log_body_view *body)
{
	struct zf_log_edit edit;
	uint64_t total = 0;

	if (body->type == ZF_LOG_EXTENTS)
		return visit_ranges(body);
	for (size_t at = 0; zf_log_next_edit(body, &at, &edit);)
		total += sum(edit.value, edit.len);
	return total;
}

/* The maker of an image knows its secret, so the hash of a forged record is right. */
static void forge(struct rig *rig, struct zf_rng *rng, uint64_t address)
{
	static const uint8_t values[] = {0, 1, 2, 3, 8, 16, 127, 128, 255};
	uint8_t *record = bytes_at(rig, address);
	struct zf_log_record header;

	for (uint64_t n = 1 + zf_rng_below(rng, 3); n > 0; n--)
		record[72 + zf_rng_below(rng, 160)] = values[zf_rng_below(rng, sizeof(values))];
	if (zf_log_record_peek(record, &header) &&
	    address % ZONE_SIZE + header.bytes + BLOCK < ZONE_SIZE)
		log_record_seal_again(&rig->super, record);
}

static void a_forged_record_leads_nowhere(void **state)
{
	volatile uint64_t total = 0;
	uint64_t records = 0;

	for (unsigned int seed = 0; seed < ROUNDS; seed++) {
		struct placed placed[RECORDS];
		struct zf_log_found found;
		struct zf_rng rng;
		struct rig rig;

		setup(&rig);
		zf_rng_seed(&rng, seed);
		append_some(&rig, &rng, placed);
		for (unsigned int i = 0; i < RECORDS; i++)
			if (zf_rng_chance(&rng, 30))
				forge(&rig, &rng, placed[i].address);
		if (zf_log_read(rig.dev, &rig.super, &rig.report, &found) == 0) {
			records += found.records;
			for (size_t i = 0; i < found.body_count; i++)
				total += visit(&found.bodies[i]);
			zf_log_found_free(&found);
		}
		teardown(&rig);
	}
	assert_in_range(records, ROUNDS, ROUNDS * RECORDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_log_is_read),
		cmocka_unit_test(sequence_numbers_count_and_not_addresses),
		cmocka_unit_test(bodies_come_in_the_order_of_their_numbers),
		cmocka_unit_test(what_is_in_the_trees_is_left_out),
		cmocka_unit_test(reading_begins_where_the_superblock_says),
		cmocka_unit_test(a_gap_ends_the_log),
		cmocka_unit_test(a_torn_record_is_a_gap),
		cmocka_unit_test(a_torn_record_that_carries_is_a_gap),
		cmocka_unit_test(what_a_record_carries_is_checked),
		cmocka_unit_test(a_record_of_another_life_does_not_count),
		cmocka_unit_test(a_record_in_the_wrong_zone_does_not_count),
		cmocka_unit_test(a_zone_that_was_reset_since_holds_nothing_and_is_an_error),
		cmocka_unit_test(the_content_of_a_file_does_not_pose_as_a_record),
		cmocka_unit_test(a_copy_of_a_record_changes_nothing),
		cmocka_unit_test(of_two_records_with_one_sequence_number_neither_counts),
		cmocka_unit_test(before_two_bodies_with_one_number_the_log_ends),
		cmocka_unit_test(behind_a_pointer_that_is_a_lower_bound_records_are_found),
		cmocka_unit_test(a_record_that_would_end_behind_the_pointer_does_not_count),
		cmocka_unit_test(a_zone_full_of_records_is_read),
		cmocka_unit_test(a_block_that_cannot_be_read_is_a_gap),
		cmocka_unit_test(where_nothing_can_be_read_the_rest_is_not_tried),
		cmocka_unit_test(what_is_not_tried_counts_as_unreadable),
		cmocka_unit_test(a_body_of_an_unknown_kind_is_not_passed_over),
		cmocka_unit_test(every_field_of_a_record_is_checked),
		cmocka_unit_test(the_device_ranges_of_the_log_are_listed),
		cmocka_unit_test(the_log_ends_at_the_first_record_that_is_not_whole),
		cmocka_unit_test(a_forged_record_leads_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
