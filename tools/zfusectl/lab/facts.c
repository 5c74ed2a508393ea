/* SPDX-License-Identifier: MIT */
#include "lab/facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "ctl/json.h"
#include "lab/device.h"
#include "lab/intern.h"
#include "lab/items.h"
#include "lab/tree.h"
#include "log/record.h"
#include "superblock/super.h"
#include "sim/sim_internal.h"

#define SECTOR 512u

struct facts {
	const struct zf_lab_run *run;
	const struct zf_report *report;
	struct zf_lab_device device;
	struct zf_lab_intern blocks, sectors;
	struct zf_hash_key key;
	bool has_key; /* from a superblock */
	uint8_t fsid[16];
	struct json_object *superblocks, *records, *trees;
	struct zf_lab_tree tree; /* of the last commit that was described */
};

static void add_content(struct json_object *array, uint32_t content)
{
	zf_json_push(array, json_object_new_int64(content));
}

/* ---- superblocks ---- */

static struct json_object *pair(const uint64_t values[2])
{
	struct json_object *array = json_object_new_array();

	for (unsigned int i = 0; i < 2; i++)
		zf_json_push(array, json_object_new_uint64(values[i]));
	return array;
}

static struct json_object *super_object(const struct zf_super *super)
{
	struct json_object *object = json_object_new_object();
	const uint64_t zones[2] = {super->log_zone[0], super->log_zone[1]};

	zf_json_add_u64(object, "address", super->address);
	zf_json_add_u64(object, "generation", super->generation);
	zf_json_add_u64(object, "log_sequence", super->log_sequence);
	zf_json_add_u64(object, "log_number", super->op_number);
	zf_json_add_u64(object, "log_epoch", super->log_epoch);
	zf_json_add(object, "log_zone", pair(zones));
	zf_json_add(object, "log_zone_resets", pair(super->log_zone_resets));
	zf_json_add(object, "log_pointer", pair(super->log_pointer));
	return object;
}

static void add_by_content(struct json_object *map, uint32_t content, struct json_object *object)
{
	char name[16];

	snprintf(name, sizeof(name), "%" PRIu32, content);
	zf_json_add(map, name, object);
}

/* False: the block is no superblock record. */
static bool take_super(struct facts *facts, uint64_t address, const uint8_t *block,
		       struct zf_super *ret_super)
{
	const struct zf_disk_super *disk = (const void *)block;

	if (address / facts->run->geometry.zone_size >= ZF_SUPER_ZONES ||
	    zf_super_decode(disk, address, NULL, ret_super) < 0)
		return false;
	if (!facts->has_key) {
		zf_hash_key_init(&facts->key, ret_super->log_secret);
		memcpy(facts->fsid, ret_super->fsid, sizeof(facts->fsid));
		facts->has_key = true;
	}
	add_by_content(facts->superblocks, zf_lab_intern_add(&facts->blocks, block),
		       super_object(ret_super));
	return true;
}

/* ---- records of the log ---- */

static struct json_object *contents_of(struct facts *facts, const uint8_t *blocks, uint32_t len)
{
	struct json_object *array = json_object_new_array();

	for (uint32_t at = 0; at < len; at += ZF_BLOCK_SIZE)
		add_content(array, zf_lab_intern_add(&facts->blocks, blocks + at));
	return array;
}

static struct json_object *bodies_of(const uint8_t *blocks)
{
	struct json_object *array = json_object_new_array();
	struct zf_log_body_view body;

	for (size_t at = 0; zf_log_record_next_body(blocks, 0, &at, &body);)
		zf_json_push(array, zf_lab_body(&body));
	return array;
}

static bool is_whole(const struct facts *facts, const uint8_t *blocks,
		     const struct zf_log_record *record)
{
	struct zf_log_place place = {
		.zone_address = record->zone_address,
		.zone_resets = record->zone_resets,
		.epoch = record->epoch,
	};

	memcpy(place.fsid, facts->fsid, sizeof(place.fsid));
	return zf_log_record_open(blocks, &place, &facts->key) == 0 &&
	       zf_log_record_data_matches(
		       blocks, blocks + (zf_log_header_blocks(record->bytes) << ZF_BLOCK_SHIFT));
}

/* `room`: bytes from `blocks` on. Returns the length of the record there; 0: there is none. */
static uint64_t take_record(struct facts *facts, const uint8_t *blocks, uint64_t room)
{
	struct zf_log_record record;
	struct json_object *object;
	uint32_t len;

	if (!facts->has_key || !zf_log_record_peek(blocks, &record))
		return 0;
	len = zf_log_record_len(&record);
	if (len > room || !is_whole(facts, blocks, &record))
		return 0;
	object = json_object_new_object();
	zf_json_add_u64(object, "sequence", record.sequence);
	zf_json_add_u64(object, "epoch", record.epoch);
	zf_json_add_u64(object, "zone_address", record.zone_address);
	zf_json_add_u64(object, "zone_resets", record.zone_resets);
	zf_json_add_bool(object, "carries", record.carried > 0);
	zf_json_add(object, "contents", contents_of(facts, blocks, len));
	zf_json_add(object, "bodies", bodies_of(blocks));
	add_by_content(facts->records, zf_lab_intern_add(&facts->blocks, blocks), object);
	return len;
}

static void take_records(struct facts *facts, const uint8_t *blocks, uint64_t len)
{
	for (uint64_t at = 0; at < len;) {
		uint64_t taken = take_record(facts, blocks + at, len - at);

		at += taken > 0 ? taken : ZF_BLOCK_SIZE;
	}
}

/* ---- trees ---- */

static void take_tree(struct facts *facts, const struct zf_super *super)
{
	struct json_object *changes;

	changes = zf_lab_tree_next(&facts->tree, facts->device.sim, super, facts->report);
	if (!changes)
		return;
	zf_json_add_u64(changes, "generation", super->generation);
	zf_json_push(facts->trees, changes);
}

/* ---- what lay on the device ---- */

/* Reads whole zones, because a record may contain blocks of zeroes, which are in no piece. */
static void take_lay_zone(struct facts *facts, uint32_t zone_no, uint8_t *buf)
{
	const struct zf_lab_run *run = facts->run;
	uint64_t written = zf_le64_get(run->zones[zone_no].written);
	uint64_t start = zone_no * run->geometry.zone_size;

	for (uint64_t at = 0; at < written; at += ZF_BLOCK_SIZE)
		zf_sim_peek(facts->device.sim, start + at, buf + at);
	take_records(facts, buf, written);
}

static void take_lay_supers(struct facts *facts)
{
	struct zf_super super, newest = {0};

	for (size_t i = 0; i < facts->run->lay_count; i++) {
		const struct zf_lab_piece *piece = &facts->run->lay[i];

		for (uint64_t at = 0; at < piece->bytes; at += ZF_BLOCK_SIZE) {
			if (take_super(facts, piece->address + at, piece->data + at, &super) &&
			    super.generation > newest.generation)
				newest = super;
		}
	}
	if (newest.generation > 0)
		take_tree(facts, &newest);
}

static struct json_object *lay(struct facts *facts)
{
	const struct zf_lab_run *run = facts->run;
	struct json_object *array = json_object_new_array();
	uint8_t *buf = malloc(run->geometry.zone_capacity);

	if (!buf)
		abort();
	take_lay_supers(facts);
	for (uint32_t i = ZF_SUPER_ZONES; i < run->geometry.zone_count; i++)
		take_lay_zone(facts, i, buf);
	free(buf);
	for (size_t i = 0; i < run->lay_count; i++) {
		struct json_object *piece = json_object_new_array();

		zf_json_push(piece, json_object_new_uint64(run->lay[i].address));
		for (uint64_t at = 0; at < run->lay[i].bytes; at += ZF_BLOCK_SIZE)
			add_content(piece,
				    zf_lab_intern_add(&facts->blocks, run->lay[i].data + at));
		zf_json_push(array, piece);
	}
	return array;
}

/* ---- what was written ---- */

static struct json_object *write_of(struct facts *facts, const struct zf_lab_command *command)
{
	struct json_object *array = json_object_new_array();
	struct zf_super super;

	zf_json_push(array, json_object_new_uint64(command->submitted));
	for (uint64_t at = 0; at < command->bytes; at += ZF_BLOCK_SIZE)
		add_content(array, zf_lab_intern_add(&facts->blocks, command->data + at));
	take_records(facts, command->data, command->bytes);
	if (take_super(facts, command->address, command->data, &super)) {
		zf_lab_device_play(&facts->device, command->submitted);
		take_tree(facts, &super);
	}
	return array;
}

static struct json_object *writes(struct facts *facts)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < facts->run->command_count; i++)
		if (facts->run->commands[i].data)
			zf_json_push(array, write_of(facts, &facts->run->commands[i]));
	return array;
}

/* ---- the rest ---- */

static struct json_object *device(const struct zf_geometry *geometry)
{
	struct json_object *object = json_object_new_object();

	zf_json_add_bool(object, "volatile_cache", geometry->volatile_cache);
	zf_json_add_u64(object, "append_limit", geometry->append_limit);
	zf_json_add_u64(object, "max_active", geometry->max_active);
	return object;
}

static struct json_object *zones(const struct zf_lab_run *run)
{
	struct json_object *array = json_object_new_array();

	for (uint32_t i = 0; i < run->geometry.zone_count; i++) {
		const uint64_t zone[2] = {zf_le64_get(run->zones[i].written),
					  zf_le64_get(run->zones[i].resets)};

		zf_json_push(array, pair(zone));
	}
	return array;
}

static struct json_object *contents(struct facts *facts)
{
	struct json_object *array = json_object_new_array();

	for (uint32_t i = 0; i < facts->blocks.count; i++) {
		struct json_object *block = json_object_new_array();

		for (uint32_t at = 0; at < ZF_BLOCK_SIZE; at += SECTOR)
			add_content(block, zf_lab_intern_add(&facts->sectors,
							     facts->blocks.items[i] + at));
		zf_json_push(array, block);
	}
	return array;
}

static void begin(struct facts *facts)
{
	struct zf_sim_block *zero = zf_sim_block_zero(), *garbage = zf_sim_block_garbage();

	zf_lab_intern_add(&facts->blocks, zero->bytes);
	zf_lab_intern_add(&facts->blocks, garbage->bytes);
	zf_sim_block_unref(zero);
	zf_sim_block_unref(garbage);
	zf_lab_device_init(&facts->device, facts->run);
}

struct json_object *zf_lab_facts(const struct zf_lab_run *run, const struct zf_report *report)
{
	struct facts facts = {
		.run = run,
		.report = report,
		.blocks.len = ZF_BLOCK_SIZE,
		.sectors.len = SECTOR,
		.superblocks = json_object_new_object(),
		.records = json_object_new_object(),
		.trees = json_object_new_array(),
	};
	struct json_object *object = json_object_new_object();

	begin(&facts);
	zf_json_add(object, "device", device(&run->geometry));
	zf_json_add(object, "zones", zones(run));
	zf_json_add(object, "lay", lay(&facts));
	zf_json_add(object, "writes", writes(&facts));
	zf_json_add(object, "contents", contents(&facts));
	zf_json_add(object, "superblocks", facts.superblocks);
	zf_json_add(object, "records", facts.records);
	zf_json_add(object, "trees", facts.trees);
	zf_lab_tree_deinit(&facts.tree);
	zf_lab_device_deinit(&facts.device);
	zf_lab_intern_free(&facts.blocks);
	zf_lab_intern_free(&facts.sectors);
	return object;
}
