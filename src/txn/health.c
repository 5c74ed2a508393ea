/* SPDX-License-Identifier: MIT */
#include "txn/health.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "btree/node.h"
#include "btree/tree.h"
#include "txn/txn_internal.h"

static const struct zf_key faults_key = {.objectid = ZF_TREE_ROOT, .type = ZF_KEY_FAULTS};
static const struct zf_key scrub_key = {.objectid = ZF_TREE_ROOT, .type = ZF_KEY_SCRUB};

bool zf_health_has_key(const struct zf_key *key)
{
	return key->objectid == ZF_TREE_ROOT && key->offset == 0 &&
	       (key->type == ZF_KEY_FAULTS || key->type == ZF_KEY_SCRUB);
}

/* ---- to the device ---- */

/* A counter stops at the greatest number. */
static struct zf_le64 counter(uint64_t value)
{
	return zf_le64_from(zf_min_u64(value, ZF_SUPER_COUNTER_MAX));
}

static struct zf_disk_faults encode_faults(const struct zf_faults *faults)
{
	return (struct zf_disk_faults){
		.since = counter(faults->since),
		.read_errors = counter(faults->read_errors),
		.write_errors = counter(faults->write_errors),
		.other_errors = counter(faults->other_errors),
		.data_checksum = counter(faults->data_checksum),
		.damaged_nodes = counter(faults->damaged_nodes),
		.repaired_nodes = counter(faults->repaired_nodes),
		.zones_known = counter(faults->zones_known),
	};
}

static struct zf_disk_scrub encode_scrub(const struct zf_scrub_record *scrub)
{
	struct zf_disk_scrub disk = {
		.state = (uint8_t)scrub->state,
		.rate = counter(scrub->rate),
		.started = counter(scrub->started),
		.ended = counter(scrub->ended),
		.completed = counter(scrub->completed),
		.active_ms = counter(scrub->active_ms),
		.tree = zf_le32_from(scrub->place.tree),
		.height = zf_le32_from(scrub->place.height),
		.address = zf_le64_from(scrub->place.address),
		.data_bytes = counter(scrub->data_bytes),
		.node_bytes = counter(scrub->node_bytes),
		.skipped = counter(scrub->skipped),
		.errors = counter(scrub->errors),
		.repaired = counter(scrub->repaired),
	};

	zf_disk_key_put(&disk.from, &scrub->place.from);
	return disk;
}

/* ---- from the device ---- */

static int check_counter(const struct zf_report *report, const char *what, const char *field,
			 uint64_t value)
{
	if (value <= ZF_SUPER_COUNTER_MAX)
		return 0;
	return zf_report_corrupt(report, what, ZF_TREE_ROOT,
				 "%s has %" PRIu64 ", expected at most %" PRIu64, field, value,
				 ZF_SUPER_COUNTER_MAX);
}

/*
 * Checks the item's size, its reserved bytes, and its 64-bit numbers, except those that may have
 * any value.
 */
static int check_fields(const struct zf_fields *fields, const char *what, const void *disk,
			size_t len, const struct zf_report *report)
{
	const struct zf_field *zero;
	int r = 0;

	if (len != fields->size)
		return zf_report_corrupt(report, what, ZF_TREE_ROOT,
					 "size has %zu, expected %" PRIu32, len, fields->size);
	zero = zf_fields_check_zero(fields, disk);
	if (zero)
		return zf_report_corrupt(report, what, ZF_TREE_ROOT, "%s has bits set, expected 0",
					 zero->name);
	for (unsigned int i = 0; i < fields->count && r == 0; i++) {
		const struct zf_field *field = &fields->field[i];
		struct zf_le64 value;

		if (field->kind != ZF_FIELD_U64 || strncmp(field->name, "from.", 5) == 0 ||
		    strcmp(field->name, "address") == 0)
			continue;
		memcpy(&value, (const uint8_t *)disk + field->offset, sizeof(value));
		r = check_counter(report, what, field->name, zf_le64_get(value));
	}
	return r;
}

static int decode_faults(const void *value, size_t len, const struct zf_report *report,
			 struct zf_faults *ret_faults)
{
	struct zf_disk_faults disk;
	int r = check_fields(&zf_disk_faults_fields, "fault counters", value, len, report);

	if (r < 0)
		return r;
	memcpy(&disk, value, sizeof(disk));
	*ret_faults = (struct zf_faults){
		.since = zf_le64_get(disk.since),
		.read_errors = zf_le64_get(disk.read_errors),
		.write_errors = zf_le64_get(disk.write_errors),
		.other_errors = zf_le64_get(disk.other_errors),
		.data_checksum = zf_le64_get(disk.data_checksum),
		.damaged_nodes = zf_le64_get(disk.damaged_nodes),
		.repaired_nodes = zf_le64_get(disk.repaired_nodes),
		.zones_known = zf_le64_get(disk.zones_known),
	};
	return 0;
}

static void get_scrub(const struct zf_disk_scrub *disk, struct zf_scrub_record *ret_scrub)
{
	*ret_scrub = (struct zf_scrub_record){
		.state = (enum zf_scrub_state)disk->state,
		.rate = zf_le64_get(disk->rate),
		.started = zf_le64_get(disk->started),
		.ended = zf_le64_get(disk->ended),
		.completed = zf_le64_get(disk->completed),
		.active_ms = zf_le64_get(disk->active_ms),
		.place = {.tree = zf_le32_get(disk->tree),
			  .height = zf_le32_get(disk->height),
			  .from = zf_disk_key_get(&disk->from),
			  .address = zf_le64_get(disk->address)},
		.data_bytes = zf_le64_get(disk->data_bytes),
		.node_bytes = zf_le64_get(disk->node_bytes),
		.skipped = zf_le64_get(disk->skipped),
		.errors = zf_le64_get(disk->errors),
		.repaired = zf_le64_get(disk->repaired),
	};
}

#define SCRUB "scrub"

/* Checks the fields against each other. */
static int check_scrub(const struct zf_scrub_record *scrub, const struct zf_report *report)
{
	bool over = scrub->state == ZF_SCRUB_FINISHED || scrub->state == ZF_SCRUB_CANCELLED;

	if (scrub->state == ZF_SCRUB_NONE || scrub->state >= ZF_SCRUB_STATE_COUNT)
		return zf_report_corrupt(report, SCRUB, ZF_TREE_ROOT,
					 "state has %u, expected 1 to %u", scrub->state,
					 ZF_SCRUB_STATE_COUNT - 1);
	if (over != (scrub->ended != 0))
		return zf_report_corrupt(report, SCRUB, ZF_TREE_ROOT,
					 "ended has %" PRIu64 ", expected %s in state %u",
					 scrub->ended, over ? "a time" : "0", scrub->state);
	if (scrub->state == ZF_SCRUB_FINISHED && scrub->completed != scrub->ended)
		return zf_report_corrupt(report, SCRUB, ZF_TREE_ROOT,
					 "completed has %" PRIu64 ", expected %" PRIu64,
					 scrub->completed, scrub->ended);
	if (scrub->place.height > ZF_TREE_LEVEL_MAX)
		return zf_report_corrupt(report, SCRUB, ZF_TREE_ROOT,
					 "height has %" PRIu32 ", expected at most %u",
					 scrub->place.height, ZF_TREE_LEVEL_MAX);
	if (scrub->place.tree >= ZF_TREE_COUNT)
		return zf_report_corrupt(report, SCRUB, ZF_TREE_ROOT,
					 "tree has %" PRIu32 ", expected below %u",
					 scrub->place.tree, ZF_TREE_COUNT);
	return 0;
}

static int decode_scrub(const void *value, size_t len, const struct zf_report *report,
			struct zf_scrub_record *ret_scrub)
{
	struct zf_scrub_record scrub;
	struct zf_disk_scrub disk;
	int r = check_fields(&zf_disk_scrub_fields, SCRUB, value, len, report);

	if (r < 0)
		return r;
	memcpy(&disk, value, sizeof(disk));
	get_scrub(&disk, &scrub);
	r = check_scrub(&scrub, report);
	if (r == 0)
		*ret_scrub = scrub;
	return r;
}

int zf_health_decode(const struct zf_key *key, const void *value, size_t len,
		     const struct zf_report *report, struct zf_health *health)
{
	return key->type == ZF_KEY_FAULTS ? decode_faults(value, len, report, &health->faults)
					  : decode_scrub(value, len, report, &health->scrub);
}

static int load_item(struct zf_forest *forest, const struct zf_key *key,
		     const struct zf_report *report, struct zf_health *health)
{
	union {
		struct zf_disk_faults faults;
		struct zf_disk_scrub scrub;
	} value;
	size_t len;
	int r = zf_tree_lookup(forest, ZF_TREE_ROOT, key, &value, sizeof(value), &len);

	if (r == 0)
		r = zf_health_decode(key, &value, len, report, health);
	return r == -ENOENT || r == -EUCLEAN ? 0 : r;
}

int zf_health_load(struct zf_forest *forest, const struct zf_report *report,
		   struct zf_health *ret_health)
{
	struct zf_health health = {0};
	int r = load_item(forest, &faults_key, report, &health);

	if (r == 0)
		r = load_item(forest, &scrub_key, report, &health);
	if (r == 0)
		*ret_health = health;
	return r;
}

/* ---- storing ---- */

static bool faults_differ(const struct zf_health *health, const struct zf_health *stored)
{
	struct zf_disk_faults now = encode_faults(&health->faults);
	struct zf_disk_faults then = encode_faults(&stored->faults);

	return memcmp(&now, &then, sizeof(now)) != 0;
}

static bool scrub_differs(const struct zf_health *health, const struct zf_health *stored)
{
	struct zf_disk_scrub now = encode_scrub(&health->scrub);
	struct zf_disk_scrub then = encode_scrub(&stored->scrub);

	return memcmp(&now, &then, sizeof(now)) != 0;
}

bool zf_health_differs(const struct zf_health *health, const struct zf_health *stored)
{
	return faults_differ(health, stored) || scrub_differs(health, stored);
}

int zf_health_store(struct zf_forest *forest, struct zf_writer *writer,
		    const struct zf_health *health, struct zf_health *stored)
{
	struct zf_disk_faults faults = encode_faults(&health->faults);
	struct zf_disk_scrub scrub = encode_scrub(&health->scrub);
	bool with_faults = faults_differ(health, stored);
	bool with_scrub = scrub_differs(health, stored);
	int r = 0;

	if (with_faults)
		r = zf_tree_set(forest, writer, ZF_TREE_ROOT, &faults_key, &faults, sizeof(faults));
	if (r == 0 && with_scrub)
		r = zf_tree_set(forest, writer, ZF_TREE_ROOT, &scrub_key, &scrub, sizeof(scrub));
	if (r < 0)
		return r;
	*stored = *health;
	return with_faults || with_scrub;
}

/* ---- what a commit stores ---- */

void zf_txn_set_health(struct zf_txn *txn, const struct zf_txn_health *source,
		       const struct zf_health *stored)
{
	txn->health = *source;
	txn->health_stored = *stored;
}

bool zf_txn_health_is_dirty(struct zf_txn *txn)
{
	struct zf_health now;
	bool differs = false;

	if (!txn->health.collect)
		return false;
	zf_mutex_lock(&txn->commit_lock);
	txn->health.collect(txn->health.arg, &now);
	differs = zf_health_differs(&now, &txn->health_stored);
	zf_mutex_unlock(&txn->commit_lock);
	return differs;
}
