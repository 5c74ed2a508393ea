/* SPDX-License-Identifier: MIT */
/* The names of numbers in the disk format. */
#include "alloc/zone_format.h"
#include "ctl/report.h"
#include "txn/root_format.h"

const char *zf_report_tree_name(uint64_t tree)
{
	static const char *const names[ZF_TREE_COUNT] = {
		[0] = "unknown",	   [ZF_TREE_ROOT] = "root",
		[ZF_TREE_FS] = "fs",	   [ZF_TREE_SUMMARY] = "summary",
		[ZF_TREE_SHARE] = "share", [ZF_TREE_ZONE] = "zone",
	};

	return tree < ZF_TREE_COUNT ? names[tree] : "unknown";
}

const char *zf_report_key_type_name(uint64_t tree, uint8_t type)
{
	static const char *const names[] = {
		[ZF_KEY_INODE] = "inode",	[ZF_KEY_REF] = "ref",
		[ZF_KEY_XATTR] = "xattr",	[ZF_KEY_XATTR_VALUE] = "xattr-value",
		[ZF_KEY_DIR_NAME] = "dir-name", [ZF_KEY_DIR_COOKIE] = "dir-cookie",
		[ZF_KEY_EXTENT] = "extent",	[ZF_KEY_ORPHAN] = "orphan",
		[ZF_KEY_INTENT] = "intent",	[ZF_KEY_SUMMARY] = "summary",
		[ZF_KEY_SHARE] = "share",
	};
	static const char *const root_names[] = {
		[ZF_KEY_ROOT] = "root",
		[ZF_KEY_FAULTS] = "faults",
		[ZF_KEY_SCRUB] = "scrub",
	};

	if (tree == ZF_TREE_ROOT)
		return type > 0 && type < ZF_ARRAY_SIZE(root_names) ? root_names[type] : "unknown";
	if (tree == ZF_TREE_ZONE)
		return type == ZF_KEY_ZONE ? "zone" : "unknown";
	return type > 0 && type < ZF_ARRAY_SIZE(names) ? names[type] : "unknown";
}
