/* SPDX-License-Identifier: MIT */
/* Checks the zone tree's items against the recount and against the device. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check/state.h"

#define REPORT_CHUNK 1024u

int zf_check_place(struct zf_check *check, uint64_t address, uint64_t len)
{
	uint64_t zone_no = address / check->geometry->zone_size;
	uint64_t in_zone = address % check->geometry->zone_size;

	if (!zf_is_aligned(address, ZF_BLOCK_SIZE) || !zf_is_aligned(len, ZF_BLOCK_SIZE) ||
	    len == 0)
		return 1;
	if (zone_no < ZF_SUPER_ZONES || zone_no >= check->super->zone_count)
		return 1;
	return in_zone > check->zones[zone_no].capacity ||
	       len > check->zones[zone_no].capacity - in_zone;
}

/* ---- loading ---- */

static void set_from_report(struct zf_check_zone *zone, const struct zf_zone_info *info)
{
	zone->conventional = info->type == ZF_ZONE_CONVENTIONAL;
	zone->capacity = info->capacity;
	zone->offline = info->cond == ZF_ZONE_OFFLINE;
	/* A retired zone has no pointer. */
	zone->wp = zone->conventional || info->cond == ZF_ZONE_FULL ||
				   info->cond == ZF_ZONE_READONLY || zone->offline
			   ? info->capacity
			   : info->wp - info->start;
	zone->device_resets = info->reset_count;
	zone->lost = info->lost;
	zone->guessed = info->guessed;
}

static int read_report(struct zf_check *check)
{
	struct zf_zone_info *info = malloc(REPORT_CHUNK * sizeof(*info));
	uint32_t count = check->super->zone_count;
	int r = info ? 0 : -ENOMEM;

	for (uint32_t first = 0; first < count && r == 0; first += REPORT_CHUNK) {
		uint32_t n = (uint32_t)zf_min_u64(REPORT_CHUNK, count - first);

		r = zf_dev_report(check->dev, first, n, info);
		for (uint32_t i = 0; i < n && r == 0; i++) {
			set_from_report(&check->zones[first + i], &info[i]);
			check->counts_resets |= info[i].reset_count > 0;
		}
	}
	free(info);
	return r;
}

static void check_item_generations(struct zf_check *check, uint64_t zone_no,
				   const struct zf_disk_zone *disk)
{
	uint64_t newest = check->super->generation;
	uint64_t emptied = zf_le64_get(disk->emptied_generation);

	if (zf_le64_get(disk->reset_generation) > newest)
		zf_check_corrupt(check, "zone", zone_no,
				 "reset_generation has %" PRIu64 ", expected at most %" PRIu64,
				 zf_le64_get(disk->reset_generation), newest);
	if (zf_le64_get(disk->write_generation) > newest)
		zf_check_corrupt(check, "zone", zone_no,
				 "write_generation has %" PRIu64 ", expected at most %" PRIu64,
				 zf_le64_get(disk->write_generation), newest);
	if (emptied > newest)
		zf_check_corrupt(check, "zone", zone_no,
				 "emptied_generation has %" PRIu64 ", expected at most %" PRIu64,
				 emptied, newest);
	else if (emptied && zf_le64_get(disk->live))
		zf_check_corrupt(check, "zone", zone_no,
				 "emptied_generation has %" PRIu64 ", expected 0 while %" PRIu64
				 " bytes are live",
				 emptied, zf_le64_get(disk->live));
}

static void check_item(struct zf_check *check, uint64_t zone_no, const struct zf_disk_zone *disk)
{
	const struct zf_check_zone *zone = &check->zones[zone_no];
	const struct zf_field *field = zf_fields_check_zero(&zf_disk_zone_fields, disk);

	if (field)
		zf_check_corrupt(check, "zone", zone_no, "%s has bits set, expected 0",
				 field->name);
	if (zone->role >= ZF_ROLE_COUNT ||
	    (zone->role == ZF_ROLE_SUPER) != (zone_no < ZF_SUPER_ZONES))
		zf_check_corrupt(check, "zone", zone_no, "role has %u (%s), expected %s",
				 zone->role, zf_zone_role_name(zone->role),
				 zone_no < ZF_SUPER_ZONES ? "1 (super)" : "0 or 2 to 6");
	if (zone->pointer > zone->capacity || !zf_is_aligned(zone->pointer, ZF_BLOCK_SIZE))
		zf_check_corrupt(check, "zone", zone_no,
				 "pointer has %" PRIu64 ", expected whole blocks up to %" PRIu64,
				 zone->pointer, zone->capacity);
	if (zone->live > zone->pointer || !zf_is_aligned(zone->live, ZF_BLOCK_SIZE))
		zf_check_corrupt(check, "zone", zone_no,
				 "live has %" PRIu64 ", expected whole blocks up to %" PRIu64
				 ", its pointer",
				 zone->live, zone->pointer);
	if (zone->role == ZF_ROLE_NONE && (zone->pointer || zone->live))
		zf_check_corrupt(check, "zone", zone_no,
				 "role has 0 (none), expected another one for %" PRIu64
				 " written bytes",
				 zone->pointer);
	if (zone->role == ZF_ROLE_OVERWRITE &&
	    (!zone->conventional || zone->pointer != zone->capacity))
		zf_check_corrupt(
			check, "zone", zone_no,
			"role has %u (overwrite), expected another one for pointer %" PRIu64
			" of a %s zone",
			zone->role, zone->pointer,
			zone->conventional ? "conventional" : "sequential");
	check_item_generations(check, zone_no, disk);
}

static int load_item(struct zf_check *check, void *arg, const struct zf_key *key, const void *value,
		     size_t len)
{
	struct zf_disk_zone disk;
	struct zf_check_zone *zone;

	(void)arg;
	if (key->type != ZF_KEY_ZONE || key->offset != 0 ||
	    key->objectid >= check->super->zone_count || len != sizeof(disk)) {
		zf_check_corrupt(check, "zone tree item", key->objectid,
				 "key has (%" PRIu64 " %u %" PRIu64
				 ") and %zu bytes, expected (zone %u 0) and %zu",
				 key->objectid, key->type, key->offset, len, ZF_KEY_ZONE,
				 sizeof(disk));
		return 0;
	}
	memcpy(&disk, value, sizeof(disk));
	zone = &check->zones[key->objectid];
	zone->has_item = true;
	zone->role = disk.role;
	zone->pointer = zf_le64_get(disk.pointer);
	zone->live = zf_le64_get(disk.live);
	zone->reset_count = zf_le64_get(disk.reset_count);
	check_item(check, key->objectid, &disk);
	return 0;
}

int zf_check_load_zones(struct zf_check *check)
{
	int r;

	check->zones = calloc(check->super->zone_count, sizeof(*check->zones));
	if (!check->zones)
		return -ENOMEM;
	r = read_report(check);
	if (r < 0)
		zf_report(&check->report, ZF_REPORT_WARNING, "cannot report zones: %s",
			  strerror(-r));
	return r;
}

int zf_check_zone_tree(struct zf_check *check)
{
	return zf_check_walk_tree(check, ZF_TREE_ZONE, load_item, NULL);
}

/* ---- comparing ---- */

static bool may_hold_data(uint8_t role)
{
	return role == ZF_ROLE_HOT || role == ZF_ROLE_COLD || role == ZF_ROLE_LOG ||
	       role == ZF_ROLE_OVERWRITE;
}

static bool is_log_zone(const struct zf_super *super, uint32_t zone_no)
{
	return super->log_zone[0] == zone_no || super->log_zone[1] == zone_no;
}

static void check_role(struct zf_check *check, uint32_t zone_no, const struct zf_check_zone *zone)
{
	if (zone->node_end && zone->role != ZF_ROLE_META)
		zf_check_corrupt(check, "zone", zone_no,
				 "role has %u (%s), expected 2 (meta) for %" PRIu64
				 " bytes of nodes",
				 zone->role, zf_zone_role_name(zone->role),
				 zone->node_bytes + zone->system_bytes);
	if (zone->data_end && !may_hold_data(zone->role))
		zf_check_corrupt(check, "zone", zone_no,
				 "role has %u (%s), expected one for %" PRIu64 " bytes of data",
				 zone->role, zf_zone_role_name(zone->role), zone->data_bytes);
	if (zone->role == ZF_ROLE_LOG && !is_log_zone(check->super, zone_no))
		zf_check_corrupt(check, "zone", zone_no,
				 "role has 3 (log), expected another one: the superblock does not "
				 "name it");
}

/* The zone's reset count that a mount would use. */
static uint64_t resets_of(struct zf_check *check, const struct zf_check_zone *zone)
{
	bool device = check->counts_resets && !zone->conventional;

	return device ? zone->device_resets : zone->reset_count;
}

/* A recovery reads the log zones that the superblock names, if they were not reset since. */
static void check_log_zone(struct zf_check *check, unsigned int which)
{
	const struct zf_super *super = check->super;
	uint32_t zone_no = super->log_zone[which];
	uint64_t pointer = super->log_pointer[which];
	const struct zf_check_zone *zone = &check->zones[zone_no];

	if (zone->role != ZF_ROLE_LOG)
		zf_check_corrupt(check, "zone", zone_no,
				 "role has %u (%s), expected 3 (log) for log_zone[%u]", zone->role,
				 zf_zone_role_name(zone->role), which);
	if (pointer > zone->wp && !check->geometry->pointers_are_lower_bounds)
		zf_check_corrupt(check, "superblock", super->address,
				 "log_pointer[%u] has %" PRIu64 ", expected at most %" PRIu64
				 ", the pointer of zone %u",
				 which, pointer, zone->wp, zone_no);
	if (!zone->lost && super->log_zone_resets[which] != resets_of(check, zone))
		zf_check_corrupt(check, "superblock", super->address,
				 "log_zone_resets[%u] has %" PRIu64 ", expected %" PRIu64
				 ", those of zone %u",
				 which, super->log_zone_resets[which], resets_of(check, zone),
				 zone_no);
}

/*
 * Checks where the copy's stream of nodes ended. A zone that received only unused slots of a
 * commit's tail holds no node, and may have been reset since.
 */
static void check_meta_zone(struct zf_check *check, unsigned int copy)
{
	const struct zf_super *super = check->super;
	uint32_t zone_no = super->meta_zone[copy];
	uint64_t pointer = super->meta_pointer[copy];
	const struct zf_check_zone *zone = &check->zones[zone_no];

	if (zone->role != ZF_ROLE_META)
		zf_check_corrupt(check, "zone", zone_no,
				 "role has %u (%s), expected 2 (meta) for meta_zone[%u]",
				 zone->role, zf_zone_role_name(zone->role), copy);
	if (pointer < zone->pointer ||
	    (pointer > zone->wp && zone->node_end && !check->geometry->pointers_are_lower_bounds))
		zf_check_corrupt(check, "superblock", super->address,
				 "meta_pointer[%u] has %" PRIu64 ", expected %" PRIu64
				 " to %" PRIu64 ", by the item and the pointer of zone %u",
				 copy, pointer, zone->pointer, zone->wp, zone_no);
}

/*
 * The zone item has the pointer at the freeze. The nodes of the commit's tail lie behind it, up to
 * the superblock's meta_pointer.
 */
static uint64_t node_limit(struct zf_check *check, uint32_t zone_no,
			   const struct zf_check_zone *zone)
{
	const struct zf_super *super = check->super;
	uint64_t limit = zone->pointer;

	for (unsigned int c = 0; c < super->metadata_copies; c++)
		if (super->meta_zone[c] == zone_no)
			limit = zf_max_u64(limit, super->meta_pointer[c]);
	return limit;
}

static void check_pointers(struct zf_check *check, uint32_t zone_no,
			   const struct zf_check_zone *zone)
{
	uint64_t limit = node_limit(check, zone_no, zone);

	if (zone->data_end > zone->pointer)
		zf_check_corrupt(check, "zone", zone_no,
				 "pointer has %" PRIu64 ", expected at least %" PRIu64
				 ", where its data ends",
				 zone->pointer, zone->data_end);
	if (zone->node_end > limit)
		zf_check_corrupt(check, "zone", zone_no,
				 "pointer has %" PRIu64 ", expected at least %" PRIu64
				 ", where its nodes end",
				 limit, zone->node_end);
}

/*
 * No zone is reset so often. Above ZF_SUPER_COUNTER_MAX the superblock could not hold the count
 * when the zone becomes a log zone.
 */
static void check_resets(struct zf_check *check, uint32_t zone_no, const struct zf_check_zone *zone)
{
	if (zone->reset_count > ZF_CHECK_COUNTER_MAX)
		zf_check_corrupt(check, "zone", zone_no,
				 "reset_count has %" PRIu64 ", expected at most %" PRIu64,
				 zone->reset_count, ZF_CHECK_COUNTER_MAX);
}

/* A zone in which nothing is live may have been reset since. */
static void check_device(struct zf_check *check, uint32_t zone_no, const struct zf_check_zone *zone)
{
	uint64_t end = zf_max_u64(zone->data_end, zone->node_end);

	if (zone->live)
		end = zf_max_u64(end, zone->pointer);
	/* Pointers are lower bounds after an unclean stop of the host. */
	if (end > zone->wp && !check->geometry->pointers_are_lower_bounds)
		zf_check_corrupt(check, "zone", zone_no,
				 "the device's write pointer has %" PRIu64
				 ", expected at least %" PRIu64,
				 zone->wp, end);
	if (zone->live && !zone->conventional && check->counts_resets && !zone->lost &&
	    zone->reset_count != zone->device_resets)
		zf_check_corrupt(check, "zone", zone_no,
				 "reset_count has %" PRIu64 ", expected %" PRIu64 ", the device's",
				 zone->reset_count, zone->device_resets);
	else if (!zone->conventional && check->counts_resets && !zone->lost &&
		 zone->reset_count > zone->device_resets)
		zf_check_corrupt(check, "zone", zone_no,
				 "reset_count has %" PRIu64 ", expected at most %" PRIu64
				 ", the device's",
				 zone->reset_count, zone->device_resets);
}

/* The next writable mount makes the entry anew, from the zone's items and records. */
static void check_known(struct zf_check *check, uint32_t zone_no)
{
	if (check->zones[zone_no].guessed)
		zf_check_corrupt(check, "zone", zone_no,
				 "the device's entry has a wrong checksum, expected one that "
				 "verifies: the next writable mount restores it");
}

void zf_check_zones(struct zf_check *check)
{
	bool exact = true;

	for (unsigned int tree = ZF_TREE_ROOT; tree < ZF_TREE_COUNT; tree++)
		exact = exact && !check->trees[tree].lost;
	for (uint32_t z = 0; z < check->super->zone_count; z++)
		check_known(check, z);
	if (check->trees[ZF_TREE_ZONE].lost) {
		zf_report(&check->report, ZF_REPORT_WARNING,
			  "zones were not checked: the zone tree cannot be read");
		return;
	}
	if (!exact)
		zf_report(&check->report, ZF_REPORT_WARNING,
			  "live bytes were not compared: part of a tree cannot be read");
	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(check->super->log_zone); i++)
		if (check->super->log_zone[i] < check->super->zone_count)
			check_log_zone(check, i);
	for (unsigned int c = 0; c < check->super->metadata_copies; c++)
		if (check->super->meta_zone[c] < check->super->zone_count)
			check_meta_zone(check, c);
	for (uint32_t z = ZF_SUPER_ZONES; z < check->super->zone_count; z++) {
		const struct zf_check_zone *zone = &check->zones[z];
		uint64_t live = zone->data_bytes + zone->node_bytes;

		if (!zone->has_item)
			zf_check_corrupt(check, "zone", z, "item is missing, expected one");
		check_role(check, z, zone);
		check_pointers(check, z, zone);
		check_resets(check, z, zone);
		check_device(check, z, zone);
		if (exact && live != zone->live)
			zf_check_corrupt(check, "zone", z,
					 "live has %" PRIu64 ", expected %" PRIu64 " by recount",
					 zone->live, live);
	}
}
