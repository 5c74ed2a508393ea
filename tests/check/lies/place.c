/* SPDX-License-Identifier: MIT */
#include "place.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "alloc/zone_format.h"
#include "base/bits.h"
#include "base/hash.h"
#include "btree/packed.h"
#include "file.h"
#include "fs/core/fs_format.h"
#include "io/memory.h"
#include "log/read.h"
#include "support/log_record.h"
#include "txn/root_format.h"

#define OF_A_KIND 2u /* so many places of a kind are taken */

/* The node or log record that is searched now: the places found are in it. */
struct finder {
	struct places *places;
	uint32_t node;
	uint64_t record;
	char kind[64]; /* of the places found next */
};

/* Byte N of an image's file is byte N of its device. */
uint8_t *places_bytes(const struct places *places, uint64_t address)
{
	return places->file ? places->file->bytes + address : forge_bytes(places->forge, address);
}

/* ---- adding ---- */

static bool is_wanted(const struct finder *finder, const char *where)
{
	unsigned int same = 0;

	for (unsigned int i = 0; i < finder->places->count; i++)
		same += strcmp(finder->places->place[i].where, where) == 0;
	return same < OF_A_KIND;
}

static struct place *add(struct finder *finder, const char *structure, uint64_t address)
{
	struct places *places = finder->places;
	struct place *place = &places->place[places->count];
	bool tell_log = finder->record && strncmp(structure, "zf_disk_log_", 12) != 0;
	char where[sizeof(place->where)];

	snprintf(where, sizeof(where), "%s%s, %s", structure, tell_log ? " in the log" : "",
		 finder->kind);
	if (!is_wanted(finder, where))
		return NULL;
	assert(places->count < PLACES_MAX);
	places->count++;
	*place = (struct place){
		.address = address,
		.node = finder->node,
		.record = finder->record,
	};
	memcpy(place->where, where, sizeof(where));
	snprintf(place->structure, sizeof(place->structure), "%s%s", structure,
		 tell_log ? " in the log" : "");
	return place;
}

static struct place *add_table(struct finder *finder, const struct zf_fields *fields,
			       uint64_t address)
{
	struct place *place = add(finder, fields->name, address);

	if (place) {
		place->fields = fields->field;
		place->field_count = fields->count;
	}
	return place;
}

/* Adds bytes without a table. `name`: of the field. */
static void add_bytes(struct finder *finder, const char *structure, const char *name,
		      uint64_t address, size_t len)
{
	struct place *place = len > 0 ? add(finder, structure, address) : NULL;

	if (!place)
		return;
	place->field = (struct zf_field){.name = name, .size = (uint16_t)len};
	place->field.kind = ZF_FIELD_BYTES;
	place->fields = &place->field;
	place->field_count = 1;
}

static void add_csums(struct finder *finder, const char *structure, uint64_t address, size_t count)
{
	struct place *place = count > 0 ? add(finder, structure, address) : NULL;

	if (!place)
		return;
	place->field = (struct zf_field){.name = "checksums", .kind = ZF_FIELD_HEX64};
	place->field.size = (uint16_t)(8 * count);
	place->fields = &place->field;
	place->field_count = 1;
}

static void set_kind(struct finder *finder, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void set_kind(struct finder *finder, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(finder->kind, sizeof(finder->kind), format, args);
	va_end(args);
}

/* ---- values of items ---- */

struct value {
	struct zf_key key;
	enum zf_tree_id tree;
	uint64_t address;
	const uint8_t *bytes;
	size_t len;
};

/* A chain of entries up to the end of the value: a struct, a name, and for attributes a value. */
static void find_chain(struct finder *finder, const struct value *value,
		       const struct zf_fields *fields, size_t name_len_offset)
{
	for (size_t at = 0; at < value->len;) {
		const uint8_t *entry = value->bytes + at;
		size_t name_len =
			(size_t)(entry[name_len_offset] | entry[name_len_offset + 1] << 8);
		struct zf_disk_xattr xattr;

		add_table(finder, fields, value->address + at);
		at += fields->size;
		add_bytes(finder, "name", "name", value->address + at, name_len);
		at += name_len;
		if (value->key.type != ZF_KEY_XATTR)
			continue;
		memcpy(&xattr, entry, sizeof(xattr));
		if (zf_le32_get(xattr.value_id) != 0)
			continue;
		add_bytes(finder, "attribute", "value", value->address + at,
			  zf_le32_get(xattr.value_len));
		at += zf_le32_get(xattr.value_len);
	}
}

static void find_inode(struct finder *finder, const struct value *value)
{
	struct zf_disk_inode disk;
	uint32_t mode;

	memcpy(&disk, value->bytes, sizeof(disk));
	mode = zf_le32_get(disk.mode);
	set_kind(finder, "of type %#o%s%s", mode & S_IFMT,
		 zf_le32_get(disk.nlink) == 0 ? ", an orphan" : "",
		 zf_le64_get(disk.bytes) > 0 ? ", with blocks" : "");
	add_table(finder, &zf_disk_inode_fields, value->address);
}

static void find_extent(struct finder *finder, const struct value *value)
{
	struct zf_disk_extent disk;

	memcpy(&disk, value->bytes, sizeof(disk));
	set_kind(finder, "of type %u, flags %#x", disk.type, disk.flags);
	add_table(finder, &zf_disk_extent_fields, value->address);
	if (disk.type == ZF_EXTENT_INLINE)
		add_bytes(finder, "inline extent", "bytes", value->address + sizeof(disk),
			  zf_le32_get(disk.count));
}

static void find_summary(struct finder *finder, const struct value *value)
{
	struct zf_disk_summary disk;

	memcpy(&disk, value->bytes, sizeof(disk));
	set_kind(finder, "flags %u", zf_le16_get(disk.flags));
	add_table(finder, &zf_disk_summary_fields, value->address);
	add_csums(finder, "zf_disk_summary", value->address + sizeof(disk),
		  (value->len - sizeof(disk)) / 8);
}

static void find_zone(struct finder *finder, const struct value *value)
{
	const struct zf_disk_zone *disk = (const void *)value->bytes;

	set_kind(finder, "of a zone of role %s%s", zf_zone_role_name(disk->role),
		 zf_le64_get(disk->live) > 0 ? ", with live bytes" : "");
	add_table(finder, &zf_disk_zone_fields, value->address);
}

static void find_value_of_fs(struct finder *finder, const struct value *value)
{
	switch (value->key.type) {
	case ZF_KEY_INODE:
		find_inode(finder, value);
		break;
	case ZF_KEY_REF:
		set_kind(finder, "of a ref");
		find_chain(finder, value, &zf_disk_ref_fields,
			   offsetof(struct zf_disk_ref, name_len));
		break;
	case ZF_KEY_XATTR:
		set_kind(finder, "of an attribute of %zu bytes", value->len);
		find_chain(finder, value, &zf_disk_xattr_fields,
			   offsetof(struct zf_disk_xattr, name_len));
		break;
	case ZF_KEY_XATTR_VALUE:
		set_kind(finder, "of an attribute, apart");
		add_bytes(finder, "attribute", "value", value->address, value->len);
		break;
	case ZF_KEY_DIR_NAME:
	case ZF_KEY_DIR_COOKIE:
		set_kind(finder, "by %s", value->key.type == ZF_KEY_DIR_NAME ? "name" : "age");
		find_chain(finder, value, &zf_disk_dirent_fields,
			   offsetof(struct zf_disk_dirent, name_len));
		break;
	case ZF_KEY_EXTENT:
		find_extent(finder, value);
		break;
	case ZF_KEY_INTENT:
		set_kind(finder, "the one");
		add_table(finder, &zf_disk_intent_fields, value->address);
		break;
	}
}

static void find_value_of_root(struct finder *finder, const struct value *value)
{
	set_kind(finder, "of tree %" PRIu64, value->key.objectid);
	if (value->key.type == ZF_KEY_FAULTS)
		add_table(finder, &zf_disk_faults_fields, value->address);
	else if (value->key.type == ZF_KEY_SCRUB)
		add_table(finder, &zf_disk_scrub_fields, value->address);
	else
		add_table(finder, &zf_disk_root_fields, value->address);
}

static void find_value(struct finder *finder, const struct value *value)
{
	switch (value->tree) {
	case ZF_TREE_ROOT:
		find_value_of_root(finder, value);
		break;
	case ZF_TREE_FS:
		find_value_of_fs(finder, value);
		break;
	case ZF_TREE_SUMMARY:
		find_summary(finder, value);
		break;
	case ZF_TREE_SHARE:
		set_kind(finder, "any");
		add_table(finder, &zf_disk_share_fields, value->address);
		break;
	case ZF_TREE_ZONE:
		find_zone(finder, value);
		break;
	default:
		break;
	}
}

/* ---- nodes ---- */

static void find_node(struct finder *finder, enum zf_tree_id tree, const struct zf_node_ptr *ptr,
		      uint64_t csum_at);

/* A tree whose root an item of the root tree names. */
static void find_tree(struct finder *finder, const struct zf_key *key, uint64_t address,
		      const void *value)
{
	const struct zf_disk_root *disk = value;
	const struct zf_node_ptr ptr = {
		.address = {zf_le64_get(disk->ptr.address[0]), zf_le64_get(disk->ptr.address[1])},
	};

	find_node(finder, (enum zf_tree_id)key->objectid, &ptr,
		  address + offsetof(struct zf_disk_root, ptr.csum));
}

static void find_children(struct finder *finder, enum zf_tree_id tree, uint64_t address,
			  const void *node)
{
	uint64_t at = address + sizeof(struct zf_disk_node_header);
	unsigned int count = zf_node_count(node);

	for (unsigned int i = 0; i < count; i++, at += sizeof(struct zf_disk_child)) {
		struct zf_node_ptr child = zf_node_child(node, i);

		set_kind(finder, "%s of tree %u", i == 0 ? "the first" : "a later one", tree);
		add_table(finder, &zf_disk_child_fields, at);
		find_node(finder, tree, &child, at + offsetof(struct zf_disk_child, ptr.csum));
	}
	set_kind(finder, "of tree %u, internal", tree);
	add_bytes(finder, "node", "free bytes", at,
		  address + finder->places->forge->super.node_size - at);
}

static void find_packed(struct finder *finder, uint64_t address, const void *node)
{
	uint64_t at = address + sizeof(struct zf_disk_node_header);
	struct zf_packing packing;
	size_t record_len, width;

	zf_packed_get(node, &packing);
	width = packing.width;
	record_len = sizeof(struct zf_disk_key) + packing.value_size;
	set_kind(finder, "of a packed leaf");
	add_table(finder, &zf_disk_packing_fields, at);
	at += sizeof(struct zf_disk_packing);
	add_bytes(finder, "packed leaf", "base", at, record_len);
	add_bytes(finder, "packed leaf", "columns", at + record_len, width);
	add_bytes(finder, "packed leaf", "rows", at + record_len + width,
		  width * zf_node_count(node));
}

static void find_items(struct finder *finder, enum zf_tree_id tree, uint64_t address,
		       const void *node)
{
	uint64_t at = address + sizeof(struct zf_disk_node_header);
	uint32_t size = finder->places->forge->super.node_size;

	for (unsigned int i = 0; i < zf_node_count(node); i++) {
		struct value value = {.tree = tree, .key = zf_node_key(node, i)};
		const struct zf_disk_item *item = (const void *)places_bytes(finder->places, at);

		set_kind(finder, "of tree %u, type %u", tree, value.key.type);
		add_table(finder, &zf_disk_item_fields, at);
		value.bytes = zf_node_value(node, i, &value.len, NULL);
		value.address = address + zf_le16_get(item->offset);
		find_value(finder, &value);
		if (tree == ZF_TREE_ROOT && value.key.type == ZF_KEY_ROOT)
			find_tree(finder, &value.key, value.address, value.bytes);
		at += sizeof(*item);
	}
	set_kind(finder, "of tree %u, a leaf", tree);
	add_bytes(finder, "node", "free bytes", at,
		  zf_node_capacity(size) - zf_node_used(node, size));
}

static void find_packed_values(struct finder *finder, const void *node)
{
	struct place *place;

	set_kind(finder, "in a packed leaf");
	for (unsigned int i = 0; i < zf_node_count(node); i++) {
		place = add_table(finder, &zf_disk_extent_fields, 0);
		if (!place)
			return;
		place->packed = true;
		place->slot = i;
	}
}

static void find_node(struct finder *finder, enum zf_tree_id tree, const struct zf_node_ptr *ptr,
		      uint64_t csum_at)
{
	struct places *places = finder->places;
	uint32_t parent = finder->node;
	const void *node = places_bytes(places, ptr->address[0]);
	bool packed = zf_node_is_packed(node);

	assert(places->node_count < NODES_MAX);
	finder->node = places->node_count++;
	places->node[finder->node] = (struct place_node){
		.address = {ptr->address[0], ptr->address[1]},
		.csum_at = csum_at,
		.parent = parent,
	};
	set_kind(finder, "of tree %u, level %u%s", tree, zf_node_level(node),
		 packed ? ", packed" : "");
	add_table(finder, &zf_disk_node_header_fields, ptr->address[0]);
	if (zf_node_level(node) > 0) {
		find_children(finder, tree, ptr->address[0], node);
	} else if (packed) {
		find_packed(finder, ptr->address[0], node);
		find_packed_values(finder, node);
	} else {
		find_items(finder, tree, ptr->address[0], node);
	}
	finder->node = parent;
}

/* ---- records of the log ---- */

static void find_edits(struct finder *finder, const struct zf_log_body_view *view, uint64_t address)
{
	struct zf_log_edit edit;
	size_t at = 0, before = 0;

	while (zf_log_next_edit(view, &at, &edit)) {
		uint64_t value_at = address + before + sizeof(struct zf_disk_log_edit);
		const struct value value = {
			.key = edit.key,
			.tree = ZF_TREE_FS,
			.address = value_at,
			.bytes = edit.value,
			.len = edit.len,
		};

		set_kind(finder, "of kind %u, key type %u", edit.kind, edit.key.type);
		add_table(finder, &zf_disk_log_edit_fields, address + before);
		if (edit.len > 0)
			find_value(finder, &value);
		before = at;
	}
}

static void find_ranges(struct finder *finder, const struct zf_log_body_view *view,
			uint64_t address, size_t first)
{
	struct zf_log_range_view view_of_range;
	size_t at = 0, before = first;

	while (zf_log_next_range(view, &at, &view_of_range)) {
		const struct zf_log_range *range = &view_of_range.range;
		uint64_t tail = address + before + sizeof(struct zf_disk_log_range);

		set_kind(finder, "of type %u, flags %#x%s", range->type, range->flags,
			 range->riding ? ", riding" : "");
		add_table(finder, &zf_disk_log_range_fields, address + before);
		if (view_of_range.csums)
			add_csums(finder, "zf_disk_log_range", tail, range->len >> ZF_BLOCK_SHIFT);
		if (range->bytes)
			add_bytes(finder, "inline extent", "bytes", tail, range->inline_len);
		if (range->riding)
			add_bytes(finder, "file", "data", range->address, ZF_BLOCK_SIZE);
		before = at;
	}
}

static void find_state(struct finder *finder, const struct zf_log_body_view *view, uint64_t address)
{
	struct zf_log_inode inode;
	struct value value = {.tree = ZF_TREE_FS};

	zf_log_view_inode(view, &inode);
	set_kind(finder, "any");
	add_table(finder, &zf_disk_log_inode_fields, address);
	value.key = ZF_KEY(inode.ino, ZF_KEY_INODE, 0);
	value.address = address + sizeof(struct zf_disk_log_inode);
	value.bytes = inode.item;
	value.len = inode.item_len;
	find_value(finder, &value);
	find_ranges(finder, view, address,
		    sizeof(struct zf_disk_log_inode) + zf_align_up(inode.item_len, ZF_LOG_ALIGN));
}

static void find_record(struct finder *finder, const struct zf_log_found_record *found)
{
	struct zf_log_body_view body;

	finder->record = found->address;
	set_kind(finder, "%s", found->record.carried ? "carrying" : "not carrying");
	add_table(finder, &zf_disk_log_header_fields, found->address);
	for (size_t at = 0; zf_log_record_next_body(found->blocks, found->address, &at, &body);) {
		uint64_t address = found->address + (uint64_t)(body.bytes - found->blocks);

		set_kind(finder, "of type %u", body.type);
		add_table(finder, &zf_disk_log_body_fields, address);
		address += sizeof(struct zf_disk_log_body);
		if (body.type == ZF_LOG_OPERATION)
			find_edits(finder, &body, address);
		else
			find_state(finder, &body, address);
	}
	finder->record = 0;
}

static void find_records(struct finder *finder)
{
	struct forge *forge = finder->places->forge;
	struct zf_log_found found;
	struct zf_dev *dev;
	int r = zf_memory_open(forge->memory, NULL, NULL, &dev);

	assert(r == 0);
	r = zf_log_read(dev, &forge->super, NULL, &found);
	assert(r == 0);
	for (size_t i = 0; i < found.list_count; i++)
		if (found.list[i].fate == ZF_LOG_TO_REPLAY)
			find_record(finder, &found.list[i]);
	zf_log_found_free(&found);
	zf_dev_close(dev);
}

/* ---- the whole ---- */

void places_find(struct places *places, struct forge *forge)
{
	struct finder finder = {.places = places, .node = NO_NODE};
	const struct zf_super *super = &forge->super;

	*places = (struct places){.forge = forge};
	set_kind(&finder, "the newest");
	add_table(&finder, &zf_super_fields, super->address);
	find_node(&finder, ZF_TREE_ROOT, &super->root,
		  super->address + offsetof(struct zf_disk_super, root.csum));
	find_records(&finder);
}

/* ---- the trailer of an image ---- */

#define ENTRY_FIELD(name, field_kind)                                                              \
	{#name, offsetof(struct zf_zone_state, name), sizeof(((struct zf_zone_state *)0)->name),   \
	 field_kind}

/* The fields of a slot of the table, whose check is made right. */
static const struct zf_field entry_fields[] = {
	ENTRY_FIELD(wp, ZF_FIELD_U64),
	ENTRY_FIELD(reset_count, ZF_FIELD_U64),
	ENTRY_FIELD(cond, ZF_FIELD_U32),
};

static void find_entry(struct finder *finder, uint32_t zone_no)
{
	const struct file *file = finder->places->file;
	const struct zf_zone_state *zone = &file->rules.zones[zone_no];
	uint64_t table = file->trailer.table_offset;
	struct place *place;

	set_kind(finder, "of a zone that is %s%s", zf_zone_cond_name(zone->cond),
		 zone_no < ZF_SUPER_ZONES ? ", the superblock's" : "");
	for (unsigned int i = 0; i < 2; i++) {
		place = add_table(finder, &zf_image_slot_fields,
				  table + zone_no * sizeof(struct zf_image_zone) +
					  i * sizeof(struct zf_image_slot));
		if (place)
			place->in_trailer = true;
	}
	place = add(finder, "entry of the zone table", 0);
	if (!place)
		return;
	place->is_entry = true;
	place->slot = zone_no;
	place->fields = entry_fields;
	place->field_count = ZF_ARRAY_SIZE(entry_fields);
}

void places_find_trailer(struct places *places, struct file *file)
{
	struct finder finder = {.places = places, .node = NO_NODE};
	unsigned int first = places->count;

	places->file = file;
	set_kind(&finder, "the one");
	add_table(&finder, &zf_image_header_fields, file->size - sizeof(struct zf_image_header));
	add_table(&finder, &zf_image_state_fields, file->trailer.state_offset);
	for (unsigned int i = first; i < places->count; i++)
		places->place[i].in_trailer = true;
	for (uint32_t z = 0; z < file->trailer.geometry.zone_count; z++)
		find_entry(&finder, z);
}

/* ---- lies ---- */

static uint8_t *bytes_of(const struct places *places, const struct place *place)
{
	if (place->is_entry)
		return (uint8_t *)&places->file->rules.zones[place->slot];
	return places_bytes(places, place->address);
}

/* The bytes of a value in a packed leaf are spread over base, columns and rows. */
static void write_packed(const struct places *places, const struct place *place, size_t offset,
			 const void *buf, size_t len)
{
	uint8_t scratch[ZF_PACKED_VALUE_MAX], value[ZF_PACKED_VALUE_MAX];
	void *node = places_bytes(places, places->node[place->node].address[0]);
	size_t value_len;

	memcpy(value, zf_node_value(node, place->slot, &value_len, scratch), sizeof(value));
	assert(offset + len <= value_len && value_len <= sizeof(value));
	memcpy(value + offset, buf, len);
	zf_node_set_value(node, places->forge->super.node_size, place->slot, value, value_len);
}

void place_read(const struct places *places, const struct place *place, size_t offset, void *buf,
		size_t len)
{
	uint8_t scratch[ZF_PACKED_VALUE_MAX];
	const uint8_t *bytes;
	size_t value_len;

	if (place->packed)
		bytes = zf_node_value(places_bytes(places, places->node[place->node].address[0]),
				      place->slot, &value_len, scratch);
	else
		bytes = bytes_of(places, place);
	memcpy(buf, bytes + offset, len);
}

void place_write(const struct places *places, const struct place *place, size_t offset,
		 const void *buf, size_t len)
{
	if (place->packed)
		write_packed(places, place, offset, buf, len);
	else
		memcpy(bytes_of(places, place) + offset, buf, len);
}

static void seal_super(const struct places *places)
{
	struct zf_disk_super *disk = (void *)places_bytes(places, places->forge->super.address);
	const uint8_t *sealed = (const uint8_t *)disk + sizeof(disk->csum);

	disk->csum = zf_le64_from(zf_hash64(sealed, sizeof(*disk) - sizeof(disk->csum)));
}

/* Makes right the node's second copy, the checksum in its parent, and so on up the tree. */
static void seal_node(const struct places *places, uint32_t node_no)
{
	uint32_t size = places->forge->super.node_size;

	while (node_no != NO_NODE) {
		const struct place_node *node = &places->node[node_no];
		uint8_t *bytes = places_bytes(places, node->address[0]);
		struct zf_le64 csum = zf_le64_from(zf_node_csum(bytes, size));

		zf_node_set_csum(bytes, zf_le64_get(csum));
		if (node->address[1])
			memcpy(places_bytes(places, node->address[1]), bytes, size);
		memcpy(places_bytes(places, node->csum_at), &csum, sizeof(csum));
		node_no = node->parent;
	}
	seal_super(places);
}

static void seal_record(const struct places *places, uint64_t address)
{
	const struct zf_disk_log_header *header = (const void *)places_bytes(places, address);

	uint32_t bytes = zf_le32_get(header->bytes);

	/* A record cannot have another length, and then no hash can be made right. */
	if (bytes >= sizeof(*header) && bytes <= ZF_LOG_RECORD_MAX)
		log_record_seal_again(&places->forge->super, places_bytes(places, address));
}

static void seal_trailer(struct file *file, const struct place *place)
{
	int r = 0;

	if (place->is_entry)
		r = zf_image_trailer_replace_zone(&file->trailer, place->slot,
						  &file->rules.zones[place->slot]);
	else if (place->fields == zf_image_header_fields.field)
		file_seal_header(file);
	else if (place->fields == zf_image_state_fields.field)
		file_seal_state(file);
	assert(r == 0);
}

void place_seal(const struct places *places, const struct place *place)
{
	if (place->in_trailer || place->is_entry)
		seal_trailer(places->file, place);
	else if (place->record)
		seal_record(places, place->record);
	else
		seal_node(places, place->node);
}
