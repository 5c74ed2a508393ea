/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "btree/key.h"
#include "ctl/json.h"
#include "ctl/report.h"
#include "ctl/report_hex.h"
#include "log/read.h"

#define RECORDS_A_PART	   16u
#define RECORDS_A_PART_HEX 1u

static const char *fate_name(enum zf_log_fate fate)
{
	static const char *const names[] = {
		[ZF_LOG_COMMITTED] = "committed",
		[ZF_LOG_TO_REPLAY] = "to replay",
		[ZF_LOG_COPY] = "copy",
		[ZF_LOG_BEHIND_GAP] = "behind a gap",
	};

	return names[fate];
}

static const char *edit_name(enum zf_log_edit_kind kind)
{
	static const char *const names[] = {
		[ZF_LOG_SET] = "set",
		[ZF_LOG_DELETE] = "delete",
		[ZF_LOG_RESIZE] = "resize",
	};

	return names[kind];
}

static const char *range_name(enum zf_log_range_type type)
{
	static const char *const names[] = {
		[ZF_LOG_RANGE_HOLE] = "hole",
		[ZF_LOG_RANGE_INLINE] = "inline",
		[ZF_LOG_RANGE_DATA] = "data",
		[ZF_LOG_RANGE_ZERO] = "zero",
	};

	return names[type];
}

/* ---- one body ---- */

static struct json_object *edit_object(const struct zf_log_edit *edit)
{
	struct json_object *object = json_object_new_object();

	zf_json_add_text(object, "kind", edit_name(edit->kind));
	if (edit->kind == ZF_LOG_RESIZE) {
		zf_json_add_u64(object, "inode", edit->key.objectid);
		zf_json_add_u64(object, "size", edit->key.offset);
		return object;
	}
	zf_json_add(object, "key", zf_json_key(&edit->key));
	zf_json_add_text(object, "type", zf_report_key_type_name(ZF_TREE_FS, edit->key.type));
	if (edit->kind == ZF_LOG_SET)
		zf_json_add_u64(object, "value_bytes", edit->len);
	return object;
}

static struct json_object *edits_array(const struct zf_log_body_view *body)
{
	struct json_object *array = json_object_new_array();
	struct zf_log_edit edit;

	for (size_t at = 0; zf_log_next_edit(body, &at, &edit);)
		zf_json_push(array, edit_object(&edit));
	return array;
}

static struct json_object *range_object(const struct zf_log_range *range)
{
	struct json_object *object = json_object_new_object();

	zf_json_add_text(object, "type", range_name(range->type));
	zf_json_add_u64(object, "flags", range->flags);
	zf_json_add_u64(object, "offset", range->offset);
	zf_json_add_u64(object, "length", range->len);
	if (range->type == ZF_LOG_RANGE_DATA) {
		zf_json_add_u64(object, "address", range->address);
		zf_json_add_bool(object, "riding", range->riding);
	}
	if (range->type == ZF_LOG_RANGE_INLINE)
		zf_json_add_u64(object, "inline_bytes", range->inline_len);
	return object;
}

static struct json_object *ranges_array(const struct zf_log_body_view *body)
{
	struct json_object *array = json_object_new_array();
	struct zf_log_range_view range;

	for (size_t at = 0; zf_log_next_range(body, &at, &range);)
		zf_json_push(array, range_object(&range.range));
	return array;
}

static struct json_object *body_object(const struct zf_log_body_view *body)
{
	struct json_object *object = json_object_new_object();
	struct zf_log_inode inode;

	zf_json_add_u64(object, "number", body->number);
	if (body->type == ZF_LOG_OPERATION) {
		zf_json_add_text(object, "type", "operation");
		zf_json_add(object, "edits", edits_array(body));
		return object;
	}
	zf_log_view_inode(body, &inode);
	zf_json_add_text(object, "type", "extents");
	zf_json_add_u64(object, "inode", inode.ino);
	zf_json_add_u64(object, "data_blocks", body->data_count);
	zf_json_add(object, "ranges", ranges_array(body));
	return object;
}

/* ---- one record ---- */

static struct json_object *record_object(const struct zf_super *super,
					 const struct zf_log_found_record *item)
{
	struct json_object *object = json_object_new_object();

	zf_json_add_u64(object, "sequence", item->record.sequence);
	zf_json_add_u64(object, "zone", super->log_zone[item->which]);
	zf_json_add_u64(object, "offset", item->address - item->record.zone_address);
	zf_json_add_u64(object, "address", item->address);
	zf_json_add_u64(object, "generation", item->record.generation);
	zf_json_add_u64(object, "header_blocks", zf_log_header_blocks(item->record.bytes));
	zf_json_add_u64(object, "data_blocks", item->record.data_blocks);
	zf_json_add_u64(object, "carried_bytes", item->record.carried);
	zf_json_add_text(object, "fate", fate_name(item->fate));
	return object;
}

static struct json_object *bodies_array(const struct zf_log_found_record *item)
{
	struct json_object *array = json_object_new_array();
	struct zf_log_body_view body;

	for (size_t at = 0; zf_log_record_next_body(item->blocks, item->address, &at, &body);)
		zf_json_push(array, body_object(&body));
	return array;
}

static int push_record(const struct zf_report_source *source,
		       const struct zf_log_found_record *item, bool hex,
		       struct zf_report_list *list)
{
	struct json_object *object = record_object(source->super, item);
	int r = 0;

	if (hex)
		r = zf_report_log_dump(source, item->address, &item->record, object);
	else
		zf_json_add(object, "bodies", bodies_array(item));
	if (r == 0)
		return zf_report_list_push(list, object);
	json_object_put(object);
	return r;
}

/* ---- all ---- */

static struct json_object *zones_array(const struct zf_super *super,
				       const struct zf_log_found *found)
{
	struct json_object *array = json_object_new_array();

	for (unsigned int i = 0; i < 2; i++) {
		struct json_object *object;

		if (super->log_zone[i] == ZF_SUPER_NO_ZONE)
			continue;
		object = json_object_new_object();
		zf_json_add_u64(object, "zone", super->log_zone[i]);
		zf_json_add_u64(object, "resets", super->log_zone_resets[i]);
		zf_json_add_u64(object, "from", super->log_pointer[i]);
		zf_json_add_u64(object, "end", found->end[i]);
		zf_json_push(array, object);
	}
	return array;
}

static int add_records(const struct zf_report_source *source, const struct zf_log_found *found,
		       bool hex, struct zf_report_list *list)
{
	const struct zf_super *super = source->super;
	int r = 0;

	zf_json_add_u64(list->result, "epoch", super->log_epoch);
	zf_json_add_u64(list->result, "sequence", super->log_sequence);
	zf_json_add_u64(list->result, "number", super->op_number);
	zf_json_add_u64(list->result, "to_replay", found->body_count);
	zf_json_add(list->result, "zones", zones_array(super, found));
	for (size_t i = 0; i < found->list_count && r == 0; i++)
		r = push_record(source, &found->list[i], hex, list);
	return r == 0 && hex ? zf_report_log_damaged(source, found, list) : r;
}

int zf_report_log(const struct zf_report_source *source, struct json_object *args,
		  struct json_object **ret_result)
{
	struct zf_report_list list;
	struct zf_log_found found;
	bool hex = false;
	int r = zf_json_get_bool(args, "hex", &hex);

	if (r < 0)
		return zf_json_fail(ret_result, r, "hex has to be true or false");
	r = zf_log_read(source->dev, source->super, source->report, &found);
	if (r < 0)
		return zf_json_fail(ret_result, r, "the log cannot be read: %s", strerror(-r));
	r = zf_report_list_begin(&list, source, "records",
				 hex ? RECORDS_A_PART_HEX : RECORDS_A_PART);
	if (r == 0) {
		r = add_records(source, &found, hex, &list);
		if (r < 0)
			zf_report_list_drop(&list);
		else
			zf_report_list_end(&list, ret_result);
	}
	zf_log_found_free(&found);
	return r;
}
