/* SPDX-License-Identifier: MIT */
/* A trace as JSON objects, one for the header and one for each record. */
#ifndef ZF_CTL_TRACE_JSON_H
#define ZF_CTL_TRACE_JSON_H

#include <json-c/json.h>

#include "trace/format.h"

/* {"trace": {...}}: the fields of the header. NULL: no memory. */
struct json_object *zf_trace_json_header(const struct zf_disk_trace_header *header);

/*
 * {"sequence", "time", "thread", "event": name, ...}, with the fields that the event's table
 * (trace/events.h) names. The zone of an address "address" is added as "address_zone". For an event
 * that this version does not know: "event": "unknown 99", and the "payload" in hexadecimal.
 */
struct json_object *zf_trace_json_record(const struct zf_disk_trace_header *header,
					 const struct zf_disk_trace_record *record);

/*
 * {"header": {...}, "events": [{"number", "name", "text", "fields": [{"name", "kind", "size"}]}],
 * "names": {kind: [name of 0, name of 1, ...]}}: all that a program needs to read the records from
 * the file of this trace.
 */
struct json_object *zf_trace_json_tables(const struct zf_disk_trace_header *header);

#endif
