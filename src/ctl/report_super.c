/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/json.h"
#include "ctl/report.h"
#include "ctl/report_hex.h"

static const char *status_name(int status)
{
	switch (status) {
	case 0:
		return "valid";
	case -EUCLEAN:
		return "damaged";
	case -ENOENT:
		return "no record";
	case -ENODATA:
		return "zeroes";
	case -EIO:
		return "unreadable";
	case -EPROTONOSUPPORT:
		return "unknown format";
	case -ESTALE:
		return "other filesystem";
	default:
		return "error";
	}
}

static const char *state_name(enum zf_ring_state state)
{
	static const char *const names[] = {
		[ZF_RING_EMPTY] = "empty",
		[ZF_RING_IN_USE] = "in use",
		[ZF_RING_FULL] = "full",
	};

	return names[state];
}

/* ---- one line a record ---- */

#define RECORDS_A_PART 512u

struct records {
	const struct zf_report_source *source;
	struct zf_report_list list;
	bool hex;
};

/* ---- a record's bytes ---- */

static bool is_to_be_dumped(const struct zf_ring_record *record, bool wins)
{
	return wins ||
	       (record->status != 0 && record->status != -ENODATA && record->status != -EIO);
}

static void keep_message(void *arg, enum zf_report_level level, const char *message)
{
	(void)level;
	zf_json_add_text(arg, "error", message);
}

/* Adds the bytes of the record, and its error. */
static void add_dump(const struct records *records, const struct zf_ring_record *record,
		     struct json_object *object)
{
	const struct zf_report report = {.fn = keep_message, .arg = object};
	struct zf_disk_super *disk = aligned_alloc(ZF_BLOCK_SIZE, sizeof(*disk));
	struct json_object *dump;
	struct zf_super super;

	if (disk &&
	    zf_dev_read_buf(records->source->dev, record->address, disk, sizeof(*disk)) == 0) {
		if (zf_super_decode(disk, record->address, &report, &super) == -ENOENT)
			zf_json_add_text(object, "error", "magic is not that of a superblock");
		dump = json_object_new_array();
		zf_annotate_super(disk, zf_report_hex_push, dump);
		zf_json_add(object, "dump", dump);
	}
	free(disk);
}

static int add_record(void *arg, const struct zf_ring_record *record)
{
	struct records *records = arg;
	const struct zf_super *winner = records->source->super;
	struct json_object *object = json_object_new_object();
	bool wins = winner && winner->address == record->address;

	zf_json_add_u64(object, "address", record->address);
	zf_json_add_u64(object, "generation", record->generation);
	zf_json_add_text(object, "status", status_name(record->status));
	zf_json_add_bool(object, "wins", wins);
	if (record->status == 0) {
		zf_json_add_bool(object, "clean", record->super.clean);
		zf_json_add_u64(object, "inode_count", record->super.inode_count);
		zf_json_add_u64(object, "kept_bytes", record->super.kept_bytes);
		zf_json_add_u64(object, "guaranteed_bytes", record->super.guaranteed_bytes);
		zf_json_add_u64(object, "kept_guaranteed_bytes",
				record->super.kept_guaranteed_bytes);
		zf_json_add_u64(object, "root", record->super.root.address[0]);
	}
	if (records->hex && is_to_be_dumped(record, wins))
		add_dump(records, record, object);
	return zf_report_list_push(&records->list, object);
}

/* ---- the winner ---- */

/*
 * The fields of the record on the device, not of the decoded struct. The secret that keys the log
 * stays out of reports.
 */
static struct json_object *winner_fields(const struct zf_report_source *source)
{
	struct zf_disk_super *disk = aligned_alloc(ZF_BLOCK_SIZE, sizeof(*disk));
	struct json_object *object = NULL;

	if (disk &&
	    zf_dev_read_buf(source->dev, source->super->address, disk, sizeof(*disk)) == 0) {
		object = zf_json_fields(&zf_super_fields, disk);
		if (object)
			json_object_object_del(object, "log_secret");
	}
	free(disk);
	return object;
}

static void add_reason(struct json_object *object, const struct zf_report_source *source)
{
	char text[160];

	if (!source->super)
		snprintf(text, sizeof(text), "no record is valid");
	else if (source->stepped_over == 0)
		snprintf(text, sizeof(text), "the newest record, at %" PRIu64 ", is valid",
			 source->super->address);
	else
		snprintf(text, sizeof(text),
			 "the newest valid record, at %" PRIu64 "; %u newer slot%s damaged",
			 source->super->address, source->stepped_over,
			 source->stepped_over == 1 ? " is" : "s are");
	zf_json_add_text(object, "reason", text);
}

int zf_report_super(const struct zf_report_source *source, struct json_object *args,
		    struct json_object **ret_result)
{
	struct json_object *zones;
	struct records records = {.source = source};
	int r = zf_json_get_bool(args, "hex", &records.hex);

	if (r < 0)
		return zf_json_fail(ret_result, r, "hex has to be true or false");
	zones = json_object_new_array();
	r = zf_report_list_begin(&records.list, source, "records", RECORDS_A_PART);
	if (r < 0) {
		json_object_put(zones);
		return r;
	}
	for (unsigned int zone = 0; zone < ZF_SUPER_ZONES; zone++)
		zf_json_push(zones, json_object_new_string(
					    state_name(zf_ring_zone_state(source->ring, zone))));
	zf_json_add(records.list.result, "zones", zones);
	r = zf_ring_walk(source->ring, add_record, &records);
	if (r < 0) {
		zf_report_list_drop(&records.list);
		return zf_json_fail(ret_result, r, "the superblock ring cannot be read");
	}
	zf_report_list_end(&records.list, ret_result);
	zf_json_add_u64(*ret_result, "stepped_over", source->stepped_over);
	add_reason(*ret_result, source);
	zf_json_add(*ret_result, "newest", source->super ? winner_fields(source) : NULL);
	return 0;
}
