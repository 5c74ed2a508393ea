/* SPDX-License-Identifier: MIT */
/* Checks the superblock record against the device, and the slots behind the record in the ring. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "check/state.h"
#include "superblock/ring.h"

static void check_number(struct zf_check *check, const char *field, uint64_t has, uint64_t device)
{
	if (has != device)
		zf_check_corrupt(check, "superblock", check->super->address,
				 "%s has %" PRIu64 ", expected %" PRIu64 ", the device's", field,
				 has, device);
}

static void check_features(struct zf_check *check)
{
	uint64_t unknown = check->super->compat_ro & ~ZF_COMPAT_RO_KNOWN;

	if (unknown)
		zf_check_corrupt(check, "superblock", check->super->address,
				 "compat_ro has 0x%" PRIx64 ", expected bits of 0x%" PRIx64
				 ": this version can only read it",
				 check->super->compat_ro, (uint64_t)ZF_COMPAT_RO_KNOWN);
}

/*
 * Counters that are higher than any filesystem can reach by counting. Near the end of a counter the
 * next commit fails, the next file cannot be made, or the next mount cannot begin a log.
 */
static void check_counters(struct zf_check *check)
{
	const struct {
		const char *field;
		uint64_t value;
	} counters[] = {
		{"generation", check->super->generation},
		{"next_ino", check->super->next_ino},
		{"next_intent", check->super->next_intent},
		{"op_number", check->super->op_number},
		{"log_sequence", check->super->log_sequence},
		{"log_epoch", check->super->log_epoch},
	};

	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(counters); i++)
		if (counters[i].value > ZF_CHECK_COUNTER_MAX)
			zf_check_corrupt(check, "superblock", check->super->address,
					 "%s has %" PRIu64 ", expected at most %" PRIu64,
					 counters[i].field, counters[i].value,
					 ZF_CHECK_COUNTER_MAX);
}

int zf_check_super(struct zf_check *check)
{
	const struct zf_super *super = check->super;
	const struct zf_geometry *geometry = check->geometry;

	check_number(check, "zone_size", super->zone_size, geometry->zone_size);
	/* The device may have grown. */
	if (geometry->zone_count < super->zone_count)
		check_number(check, "zone_count", super->zone_count, geometry->zone_count);
	check_number(check, "zone_capacity", super->zone_capacity, geometry->zone_capacity);
	check_number(check, "conventional", super->conventional, geometry->conventional);
	check_features(check);
	check_counters(check);
	return super->zone_size != geometry->zone_size || super->zone_count > geometry->zone_count;
}

/* ---- the ring ---- */

static bool is_sealed(const struct zf_disk_super *disk)
{
	const uint8_t *sealed = (const uint8_t *)disk + sizeof(disk->csum);

	return zf_le64_get(disk->csum) == zf_hash64(sealed, sizeof(*disk) - sizeof(disk->csum));
}

/*
 * A slot without a valid record for its address is taken as torn by a power cut, and a mount steps
 * over it. But a torn record has a wrong checksum, so a right one is an error.
 */
static void check_slot(struct zf_check *check, uint64_t address, const struct zf_disk_super *disk)
{
	struct zf_super_head head;

	if (is_sealed(disk) && zf_super_decode_head(disk, address, NULL, &head) < 0)
		zf_check_corrupt(check, "superblock", address,
				 "magic, address or generation has a wrong value, although the "
				 "record's checksum is right");
}

/*
 * The bytes of the zone that may hold records. A record behind the write pointer was written, but
 * not durable, at a power cut: it was never the newest.
 */
static uint64_t ring_end(const struct zf_check_zone *zone)
{
	uint64_t slots = (uint64_t)ZF_RING_CONVENTIONAL_SLOTS << ZF_BLOCK_SHIFT;

	return zf_min_u64(zone->conventional ? slots : zone->wp, zone->capacity);
}

int zf_check_ring(struct zf_check *check)
{
	uint64_t zone_size = check->geometry->zone_size, address = check->super->address;
	uint64_t start = zf_align_down(address, zone_size);
	uint64_t end = start + ring_end(&check->zones[start / zone_size]);
	struct zf_disk_super *disk = aligned_alloc(ZF_BLOCK_SIZE, sizeof(*disk));

	if (!disk)
		return -ENOMEM;
	for (address += sizeof(*disk); address < end; address += sizeof(*disk))
		if (zf_dev_read_buf(check->dev, address, disk, sizeof(*disk)) == 0)
			check_slot(check, address, disk);
	free(disk);
	return 0;
}
