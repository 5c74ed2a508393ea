/* SPDX-License-Identifier: MIT */
#include "ctl/trace_json.h"

#include <stdio.h>
#include <string.h>

#include "alloc/zone_format.h"
#include "base/bits.h"
#include "ctl/json.h"
#include "ctl/report.h"
#include "log/log_format.h"
#include "trace/read.h"
#include "trace/trace.h"

static const char *command_name(uint64_t command)
{
	static const char *const names[ZF_IO_OP_COUNT] = {
		[ZF_IO_READ] = "read",	   [ZF_IO_WRITE] = "write", [ZF_IO_APPEND] = "append",
		[ZF_IO_ZEROES] = "zeroes", [ZF_IO_RESET] = "reset", [ZF_IO_FINISH] = "finish",
		[ZF_IO_FLUSH] = "flush",
	};

	return command < ZF_IO_OP_COUNT ? names[command] : "unknown";
}

static const char *extent_name(uint64_t type)
{
	static const char *const names[] = {
		[0] = "unknown",
		[ZF_EXTENT_INLINE] = "inline",
		[ZF_EXTENT_DATA] = "data",
		[ZF_EXTENT_ZERO] = "zero",
	};

	return type < ZF_ARRAY_SIZE(names) ? names[type] : "unknown";
}

static const char *body_name(uint64_t type)
{
	static const char *const names[] = {
		[0] = "unknown",
		[ZF_LOG_OPERATION] = "operation",
		[ZF_LOG_EXTENTS] = "extents",
	};

	return type < ZF_ARRAY_SIZE(names) ? names[type] : "unknown";
}

/* NULL: values of this kind have no names. */
static const char *name_of(enum zf_trace_kind kind, uint64_t value)
{
	switch (kind) {
	case ZF_TRACE_OPERATION:
		return value < ZF_TRACE_OPERATION_COUNT ? zf_trace_operation_names[value]
							: "unknown";
	case ZF_TRACE_PURPOSE:
		return value < ZF_FOR_COUNT ? zf_trace_purpose_names[value] : "unknown";
	case ZF_TRACE_COMMAND:
		return command_name(value);
	case ZF_TRACE_ROLE:
		return zf_zone_role_name((uint8_t)value);
	case ZF_TRACE_TREE:
		return zf_report_tree_name(value);
	case ZF_TRACE_EXTENT:
		return extent_name(value);
	case ZF_TRACE_BODY:
		return body_name(value);
	default:
		return NULL;
	}
}

static void add_address(struct json_object *object, const char *name, uint64_t address,
			uint64_t zone_size)
{
	char zone[32];

	snprintf(zone, sizeof(zone), "%s_zone", name);
	zf_json_add_u64(object, name, address);
	zf_json_add_u64(object, zone, address / zone_size);
}

static void add_field(struct json_object *object, const struct zf_trace_field *field,
		      const uint8_t *at, uint64_t zone_size)
{
	unsigned int size = zf_trace_kind_size(field->kind);
	uint64_t value;

	if (field->kind == ZF_TRACE_TEXT) {
		zf_json_add_bytes(object, field->name, at, strnlen((const char *)at, size));
		return;
	}
	value = zf_trace_value(field->kind, at);
	if (name_of(field->kind, value))
		zf_json_add_text(object, field->name, name_of(field->kind, value));
	else if (field->kind == ZF_TRACE_ADDRESS)
		add_address(object, field->name, value, zone_size);
	else if (field->kind == ZF_TRACE_SIGNED)
		zf_json_add(object, field->name, json_object_new_int64((int64_t)value));
	else if (field->kind == ZF_TRACE_FLAG)
		zf_json_add_bool(object, field->name, value != 0);
	else
		zf_json_add_u64(object, field->name, value);
}

static void add_unknown(struct json_object *object, const struct zf_disk_trace_record *record)
{
	char name[32];

	snprintf(name, sizeof(name), "unknown %u", zf_le16_get(record->event));
	zf_json_add_text(object, "event", name);
	zf_json_add_hex(object, "payload", record->payload, sizeof(record->payload));
}

struct json_object *zf_trace_json_header(const struct zf_disk_trace_header *header)
{
	struct json_object *object = json_object_new_object();

	zf_json_add(object, "trace", zf_json_fields(&zf_trace_header_fields, header));
	return object;
}

struct json_object *zf_trace_json_record(const struct zf_disk_trace_header *header,
					 const struct zf_disk_trace_record *record)
{
	const struct zf_trace_event *event = zf_trace_event_of(record);
	struct json_object *object = json_object_new_object();
	const uint8_t *at = record->payload;

	zf_json_add_u64(object, "sequence", zf_le64_get(record->sequence));
	zf_json_add_u64(object, "time", zf_le64_get(record->time));
	zf_json_add_u64(object, "thread", zf_le32_get(record->thread));
	if (!event) {
		add_unknown(object, record);
		return object;
	}
	zf_json_add_text(object, "event", event->name);
	for (const struct zf_trace_field *field = event->field; field->name; field++) {
		add_field(object, field, at, zf_le64_get(header->zone_size));
		at += zf_trace_kind_size(field->kind);
	}
	return object;
}

/* ---- the tables ---- */

static struct json_object *fields_of(const struct zf_trace_event *event)
{
	struct json_object *fields = json_object_new_array();

	for (const struct zf_trace_field *field = event->field; field->name; field++) {
		struct json_object *object = json_object_new_object();

		zf_json_add_text(object, "name", field->name);
		zf_json_add_text(object, "kind", zf_trace_kind_name(field->kind));
		zf_json_add_u64(object, "size", zf_trace_kind_size(field->kind));
		zf_json_push(fields, object);
	}
	return fields;
}

static struct json_object *all_events(void)
{
	struct json_object *events = json_object_new_array();

	for (unsigned int i = 0; i < ZF_TRACE_EVENT_MAX; i++) {
		struct json_object *object;

		if (!zf_trace_events[i].name)
			continue;
		object = json_object_new_object();
		zf_json_add_u64(object, "number", i);
		zf_json_add_text(object, "name", zf_trace_events[i].name);
		zf_json_add_text(object, "text", zf_trace_events[i].text);
		zf_json_add(object, "fields", fields_of(&zf_trace_events[i]));
		zf_json_push(events, object);
	}
	return events;
}

/* Fields of these kinds are one byte. */
static struct json_object *all_names(void)
{
	struct json_object *names = json_object_new_object();

	for (enum zf_trace_kind kind = 0; kind < ZF_TRACE_KIND_COUNT; kind++) {
		struct json_object *of_kind;

		if (!name_of(kind, 0))
			continue;
		of_kind = json_object_new_array();
		for (unsigned int value = 0; value <= UINT8_MAX; value++)
			zf_json_push(of_kind, json_object_new_string(name_of(kind, value)));
		zf_json_add(names, zf_trace_kind_name(kind), of_kind);
	}
	return names;
}

struct json_object *zf_trace_json_tables(const struct zf_disk_trace_header *header)
{
	struct json_object *tables = json_object_new_object();

	zf_json_add(tables, "header", zf_json_fields(&zf_trace_header_fields, header));
	zf_json_add(tables, "events", all_events());
	zf_json_add(tables, "names", all_names());
	return tables;
}
