/* SPDX-License-Identifier: MIT */
/* Records of the log as bytes, and blocks in its zones that begin as a record but are none. */
#include <errno.h>
#include <stdlib.h>

#include "ctl/json.h"
#include "ctl/report_hex.h"

int zf_report_log_dump(const struct zf_report_source *source, uint64_t address,
		       const struct zf_log_record *record, struct json_object *object)
{
	uint32_t len = zf_log_header_blocks(record->bytes) << ZF_BLOCK_SHIFT;
	uint8_t *blocks = aligned_alloc(ZF_BLOCK_SIZE, len);
	struct json_object *dump;
	int r;

	if (!blocks)
		return -ENOMEM;
	r = zf_dev_read_buf(source->dev, address, blocks, len);
	if (r == 0) {
		dump = json_object_new_array();
		zf_annotate_log_record(blocks, len, zf_report_hex_push, dump);
		zf_json_add(object, "dump", dump);
	}
	free(blocks);
	return r;
}

/* One of the two log zones, while it is searched. */
struct damaged {
	const struct zf_report_source *source;
	const struct zf_log_found *found;
	struct zf_report_list *list;
	struct zf_log_place place;
	struct zf_hash_key key;
	uint32_t zone;
	uint64_t end;	 /* a device address: no record lies behind it */
	uint8_t *blocks; /* ZF_LOG_RECORD_MAX */
	size_t next;	 /* where to search in found->list: mostly records are in order */
};

/* The length of the record at this address that counts; 0: there is none. */
static uint64_t valid_len(struct damaged *damaged, uint64_t address)
{
	size_t count = damaged->found->list_count;

	for (size_t i = 0; i < count; i++) {
		size_t at = (damaged->next + i) % count;

		if (damaged->found->list[at].address != address)
			continue;
		damaged->next = at + 1;
		return zf_log_record_len(&damaged->found->list[at].record);
	}
	return 0;
}

/* The fault of the record in damaged->blocks, which has been read completely; NULL: none. */
static const char *fault_of(const struct damaged *damaged, const struct zf_log_record *record)
{
	size_t header = (size_t)zf_log_header_blocks(record->bytes) << ZF_BLOCK_SHIFT;

	switch (zf_log_record_open(damaged->blocks, &damaged->place, &damaged->key)) {
	case 0:
		return zf_log_record_data_matches(damaged->blocks, damaged->blocks + header)
			       ? NULL
			       : "torn: its data does not match its checksums";
	case -EBADMSG:
		return "torn: its hash does not match its bytes";
	case -ESTALE:
		return "of another filesystem, zone or epoch, or from before the zone's reset";
	case -EPROTONOSUPPORT:
		return "the record has a body of an unknown kind";
	default:
		return "some fields have impossible values, although the record's hash is right";
	}
}

static int push(const struct damaged *damaged, uint64_t address, const struct zf_log_record *record,
		const char *fault)
{
	struct json_object *object = json_object_new_object();
	int r;

	zf_json_add_u64(object, "sequence", record->sequence);
	zf_json_add_u64(object, "zone", damaged->zone);
	zf_json_add_u64(object, "offset", address - damaged->place.zone_address);
	zf_json_add_u64(object, "address", address);
	zf_json_add_u64(object, "generation", record->generation);
	zf_json_add_u64(object, "header_blocks", zf_log_header_blocks(record->bytes));
	zf_json_add_u64(object, "data_blocks", record->data_blocks);
	zf_json_add_u64(object, "carried_bytes", record->carried);
	zf_json_add_text(object, "error", fault);
	r = zf_report_log_dump(damaged->source, address, record, object);
	if (r < 0) {
		json_object_put(object);
		return r;
	}
	return zf_report_list_push(damaged->list, object);
}

static int look_at(const struct damaged *damaged, uint64_t address)
{
	struct zf_log_record record;
	const char *fault;
	uint32_t len;

	/* A read error was reported when the log was read. */
	if (zf_dev_read_buf(damaged->source->dev, address, damaged->blocks, ZF_BLOCK_SIZE) < 0 ||
	    !zf_log_record_peek(damaged->blocks, &record))
		return 0;
	len = zf_log_record_len(&record);
	if (len > damaged->end - address)
		return 0;
	if (zf_dev_read_buf(damaged->source->dev, address, damaged->blocks, len) < 0)
		return 0;
	fault = fault_of(damaged, &record);
	return fault ? push(damaged, address, &record, fault) : 0;
}

static int look_through(struct damaged *damaged, uint64_t from)
{
	int r = 0;

	for (uint64_t at = from, len; at < damaged->end && r == 0;
	     at += len > 0 ? len : ZF_BLOCK_SIZE) {
		len = valid_len(damaged, at);
		if (len == 0)
			r = look_at(damaged, at);
	}
	return r;
}

/* Returns where records of the zone end at the latest, in bytes from its start. */
static uint64_t written(const struct zf_report_source *source, const struct zf_zone_info *info)
{
	if (info->lost)
		return info->capacity;
	switch (info->cond) {
	case ZF_ZONE_NOT_WP:
	case ZF_ZONE_FULL:
	case ZF_ZONE_READONLY:
		return info->capacity;
	case ZF_ZONE_OFFLINE:
		return 0;
	default:
		return zf_dev_geometry(source->dev)->pointers_are_lower_bounds
			       ? info->capacity
			       : info->wp - info->start;
	}
}

static int look_into(struct damaged *damaged, unsigned int which)
{
	const struct zf_super *super = damaged->source->super;
	struct zf_zone_info info;
	int r;

	damaged->zone = super->log_zone[which];
	if (damaged->zone == ZF_SUPER_NO_ZONE)
		return 0;
	r = zf_dev_report(damaged->source->dev, damaged->zone, 1, &info);
	if (r < 0)
		return r;
	zf_log_place_init(&damaged->place, super, which);
	damaged->end = info.start + zf_align_down(written(damaged->source, &info), ZF_BLOCK_SIZE);
	return look_through(damaged, info.start + super->log_pointer[which]);
}

int zf_report_log_damaged(const struct zf_report_source *source, const struct zf_log_found *found,
			  struct zf_report_list *list)
{
	struct damaged damaged = {.source = source, .found = found, .list = list};
	int r = 0;

	damaged.blocks = aligned_alloc(ZF_BLOCK_SIZE, ZF_LOG_RECORD_MAX);
	if (!damaged.blocks)
		return -ENOMEM;
	zf_hash_key_init(&damaged.key, source->super->log_secret);
	for (unsigned int which = 0; which < 2 && r == 0; which++)
		r = look_into(&damaged, which);
	free(damaged.blocks);
	return r;
}
