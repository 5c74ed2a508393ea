/* SPDX-License-Identifier: MIT */
/* docs/format.md says what the code does: every table, every number, every byte of its examples. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "alloc/zone_format.h"
#include "base/bits.h"
#include "btree/node.h"
#include "fs/core/fs_format.h"
#include "image.h"
#include "io/image_format.h"
#include "log/body.h"
#include "support/format_doc.h"
#include "txn/root_format.h"

static const char *doc(void)
{
	const char *path = getenv("ZF_FORMAT_DOC");

	assert_non_null(path);
	return path;
}

static const struct zf_fields *const tables[] = {
	&zf_super_fields,	   &zf_disk_node_ptr_fields, &zf_disk_node_header_fields,
	&zf_disk_key_fields,	   &zf_disk_child_fields,    &zf_disk_item_fields,
	&zf_disk_root_fields,	   &zf_disk_zone_fields,     &zf_disk_time_fields,
	&zf_disk_inode_fields,	   &zf_disk_ref_fields,	     &zf_disk_dirent_fields,
	&zf_disk_xattr_fields,	   &zf_disk_extent_fields,   &zf_disk_intent_fields,
	&zf_disk_summary_fields,   &zf_disk_share_fields,    &zf_image_header_fields,
	&zf_image_state_fields,	   &zf_image_slot_fields,    &zf_disk_log_header_fields,
	&zf_disk_log_body_fields,  &zf_disk_log_edit_fields, &zf_disk_log_inode_fields,
	&zf_disk_log_range_fields, &zf_disk_packing_fields,  &zf_disk_faults_fields,
	&zf_disk_scrub_fields,
};

static void every_struct_has_its_table(void **state)
{
	for (size_t i = 0; i < ZF_ARRAY_SIZE(tables); i++)
		zf_format_doc_check(doc(), tables[i]);
}

/* A row that begins with a number and a name: of an enum, or of a limit. */
struct row {
	const char *heading;
	uint64_t number;
	const char *name;
};

#define ROW(heading, constant, name) {heading, constant, name}

static const struct row rows[] = {
	ROW("The trees", ZF_TREE_ROOT, "root"),
	ROW("The trees", ZF_TREE_FS, "fs"),
	ROW("The trees", ZF_TREE_SUMMARY, "summary"),
	ROW("The trees", ZF_TREE_SHARE, "share"),
	ROW("The trees", ZF_TREE_ZONE, "zone"),
	ROW("Keys of the fs tree", ZF_KEY_INODE, "inode"),
	ROW("Keys of the fs tree", ZF_KEY_REF, "ref"),
	ROW("Keys of the fs tree", ZF_KEY_XATTR, "xattr"),
	ROW("Keys of the fs tree", ZF_KEY_XATTR_VALUE, "xattr value"),
	ROW("Keys of the fs tree", ZF_KEY_DIR_NAME, "entry by name"),
	ROW("Keys of the fs tree", ZF_KEY_DIR_COOKIE, "entry by cookie"),
	ROW("Keys of the fs tree", ZF_KEY_EXTENT, "extent"),
	ROW("Keys of the fs tree", ZF_KEY_ORPHAN, "orphan"),
	ROW("Keys of the fs tree", ZF_KEY_INTENT, "intent"),
	ROW("Keys of the other trees", ZF_KEY_ROOT, "root"),
	ROW("Keys of the other trees", ZF_KEY_FAULTS, "faults"),
	ROW("Keys of the other trees", ZF_KEY_SCRUB, "scrub"),
	ROW("Keys of the other trees", ZF_KEY_ZONE, "zone"),
	ROW("Keys of the other trees", ZF_KEY_SUMMARY, "summary"),
	ROW("Keys of the other trees", ZF_KEY_SHARE, "share"),
	ROW("Roles", ZF_ROLE_NONE, "none"),
	ROW("Roles", ZF_ROLE_SUPER, "super"),
	ROW("Roles", ZF_ROLE_META, "metadata"),
	ROW("Roles", ZF_ROLE_LOG, "log"),
	ROW("Roles", ZF_ROLE_HOT, "hot"),
	ROW("Roles", ZF_ROLE_COLD, "cold"),
	ROW("Roles", ZF_ROLE_OVERWRITE, "overwritable"),
	ROW("Types of extents", ZF_EXTENT_INLINE, "inline"),
	ROW("Types of extents", ZF_EXTENT_DATA, "data"),
	ROW("Types of extents", ZF_EXTENT_ZERO, "zero"),
	ROW("Flags of extents", ZF_EXTENT_SHARED, "data"),
	ROW("Flags of extents", ZF_EXTENT_OVERWRITE, "data"),
	ROW("Flags of extents", ZF_EXTENT_UNWRITTEN, "zero"),
	ROW("Types of bodies", ZF_LOG_OPERATION, "operation"),
	ROW("Types of bodies", ZF_LOG_EXTENTS, "extents"),
	ROW("Kinds of edits", ZF_LOG_SET, "set"),
	ROW("Kinds of edits", ZF_LOG_DELETE, "delete"),
	ROW("Kinds of edits", ZF_LOG_RESIZE, "resize"),
	ROW("Inode numbers", ZF_INO_ROOT, "root"),
	ROW("Inode numbers", ZF_INO_ORPHANS, "orphans"),
	ROW("Inode numbers", ZF_INO_INTENTS, "intents"),
	ROW("Inode numbers", ZF_INO_FIRST, "first"),
	ROW("Limits", ZF_NAME_MAX, "name"),
	ROW("Limits", ZF_SYMLINK_MAX, "symlink"),
	ROW("Limits", ZF_LINK_MAX, "links"),
	ROW("Limits", ZF_FILE_SIZE_MAX, "file size"),
	ROW("Limits", ZF_XATTR_VALUE_MAX, "xattr value"),
	ROW("Limits", ZF_INLINE_MAX, "inline"),
	ROW("Limits", ZF_EXTENT_MAX, "extent"),
	ROW("Limits", ZF_SHARE_MAX, "shared extent"),
	ROW("Limits", ZF_LOG_RECORD_MAX, "log record"),
	ROW("Limits", ZF_LOG_BODY_MAX, "log body"),
	ROW("Limits", ZF_ZONE_COUNT_MIN, "zones, at least"),
	ROW("Limits", ZF_NODE_SIZE_MIN, "node size, at least"),
	ROW("Limits", ZF_NODE_SIZE_MAX, "node size, at most"),
	ROW("Limits", ZF_TREE_LEVEL_MAX, "levels"),
	ROW("Limits", ZF_SUPER_COUNTER_MAX, "counters"),
};

static void every_number_is_the_codes(void **state)
{
	for (size_t i = 0; i < ZF_ARRAY_SIZE(rows); i++) {
		char start[128];

		snprintf(start, sizeof(start), "| %llu | %s |", (unsigned long long)rows[i].number,
			 rows[i].name);
		zf_format_doc_check_line(doc(), rows[i].heading, start);
	}
}

static void the_largest_value_of_each_node_size_is_told(void **state)
{
	for (uint32_t size = ZF_NODE_SIZE_MIN; size <= ZF_NODE_SIZE_MAX; size *= 2) {
		char start[128];

		snprintf(start, sizeof(start), "| %u | %u | %u |", size, zf_node_value_max(size),
			 zf_node_children_max(size));
		zf_format_doc_check_line(doc(), "Node sizes", start);
	}
}

static void the_leaf_of_a_new_filesystem_is_shown(void **state)
{
	struct image image;
	char *text;

	image_make(&image);
	text = image_leaf_to_text(image_leaf(&image, ZF_TREE_FS));
	zf_format_doc_check_block(doc(), "A leaf, byte by byte", text);
	free(text);
	image_free(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_struct_has_its_table),
		cmocka_unit_test(every_number_is_the_codes),
		cmocka_unit_test(the_largest_value_of_each_node_size_is_told),
		cmocka_unit_test(the_leaf_of_a_new_filesystem_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
