/* SPDX-License-Identifier: MIT */
/* Annotated bytes (ctl/annotate.h) as JSON. */
#include <string.h>

#include "ctl/json.h"
#include "ctl/report_hex.h"
#include "superblock/super.h"

/*
 * With the secret, a user can write bytes into a file that pass for a log record (docs/format.md).
 */
static bool is_secret(const struct zf_annotation *annotation)
{
	return annotation->fields == &zf_super_fields &&
	       strcmp(annotation->name, "log_secret") == 0;
}

struct json_object *zf_report_hex_entry(const struct zf_annotation *annotation)
{
	struct json_object *entry = json_object_new_object();

	zf_json_add_u64(entry, "offset", annotation->offset);
	zf_json_add_u64(entry, "size", annotation->size);
	if (annotation->part[0])
		zf_json_add_text(entry, "part", annotation->part);
	if (annotation->fields)
		zf_json_add_text(entry, "struct", annotation->fields->name);
	zf_json_add_text(entry, "field", annotation->name);
	if (annotation->value[0])
		zf_json_add_text(entry, "value", annotation->value);
	if (is_secret(annotation))
		zf_json_add_bool(entry, "withheld", true);
	else
		zf_json_add_hex(entry, "bytes", annotation->bytes, annotation->size);
	return entry;
}

void zf_report_hex_push(void *array, const struct zf_annotation *annotation)
{
	zf_json_push(array, zf_report_hex_entry(annotation));
}
