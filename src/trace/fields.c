/* SPDX-License-Identifier: MIT */
#include "trace/data_format.h"
#include "trace/trace.h"

ZF_FIELDS_DEFINE(zf_trace_header_fields, struct zf_disk_trace_header, ZF_DISK_TRACE_HEADER_FIELDS,
		 "zf_disk_trace_header");
ZF_FIELDS_DEFINE(zf_trace_record_fields, struct zf_disk_trace_record, ZF_DISK_TRACE_RECORD_FIELDS,
		 "zf_disk_trace_record");
ZF_FIELDS_DEFINE(zf_trace_data_header_fields, struct zf_disk_trace_data_header,
		 ZF_DISK_TRACE_DATA_HEADER_FIELDS, "zf_disk_trace_data_header");
ZF_FIELDS_DEFINE(zf_trace_data_zone_fields, struct zf_disk_trace_data_zone,
		 ZF_DISK_TRACE_DATA_ZONE_FIELDS, "zf_disk_trace_data_zone");
ZF_FIELDS_DEFINE(zf_trace_data_piece_fields, struct zf_disk_trace_data_piece,
		 ZF_DISK_TRACE_DATA_PIECE_FIELDS, "zf_disk_trace_data_piece");

const struct zf_trace_event zf_trace_events[ZF_TRACE_EVENT_MAX] = {
#define ZF_TRACE_EVENT(number, event, sentence)                                                    \
	[number] = {.name = #event, .text = (sentence), .field = {
#define ZF_TRACE_FIELD(kind, field) {#field, ZF_TRACE_##kind},
#define ZF_TRACE_END                                                                               \
	}                                                                                          \
	}                                                                                          \
	,
#include "trace/events.h"
};

static const struct {
	const char *name;
	unsigned int size;
} kinds[ZF_TRACE_KIND_COUNT] = {
	[ZF_TRACE_NUMBER] = {"number", 8},   [ZF_TRACE_NUMBER32] = {"number", 4},
	[ZF_TRACE_NUMBER8] = {"number", 1},  [ZF_TRACE_SIGNED] = {"signed", 8},
	[ZF_TRACE_ADDRESS] = {"address", 8}, [ZF_TRACE_FLAG] = {"flag", 1},
	[ZF_TRACE_TEXT] = {"text", 16},	     [ZF_TRACE_OPERATION] = {"operation", 1},
	[ZF_TRACE_COMMAND] = {"command", 1}, [ZF_TRACE_PURPOSE] = {"purpose", 1},
	[ZF_TRACE_ROLE] = {"role", 1},	     [ZF_TRACE_TREE] = {"tree", 1},
	[ZF_TRACE_EXTENT] = {"extent", 1},   [ZF_TRACE_BODY] = {"body", 1},
};

unsigned int zf_trace_kind_size(enum zf_trace_kind kind)
{
	return kinds[kind].size;
}

const char *zf_trace_kind_name(enum zf_trace_kind kind)
{
	return kinds[kind].name;
}

uint64_t zf_trace_value(enum zf_trace_kind kind, const uint8_t *at)
{
	uint64_t value = 0;

	for (unsigned int i = kinds[kind].size; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

const char *const zf_trace_operation_names[ZF_TRACE_OPERATION_COUNT] = {
#define ZF_TRACE_NAME(upper, lower) [ZF_OPERATION_##upper] = #lower,
	ZF_TRACE_OPERATIONS(ZF_TRACE_NAME)
#undef ZF_TRACE_NAME
};

const char *const zf_trace_purpose_names[ZF_FOR_COUNT] = {
	[ZF_FOR_ITS_ZONE] = "zone",   [ZF_FOR_DATA] = "data", [ZF_FOR_NODES] = "nodes",
	[ZF_FOR_HOLES] = "holes",     [ZF_FOR_LOG] = "log",   [ZF_FOR_SUPER] = "superblock",
	[ZF_FOR_RECLAIM] = "reclaim",
};
