/* SPDX-License-Identifier: MIT */
/* The field tables of this layer's structs on disk, and checks of the room reserved for items. */
#include "fs/core/fs_format.h"

#include "alloc/reserve.h"
#include "btree/node_format.h"

/* The bytes of an item with this value in a leaf, twice, because the leaf may be half empty. */
#define ITEM_BYTES(value_bytes) (2 * (sizeof(struct zf_disk_item) + (value_bytes)))
#define SUMMARY_OF_BLOCK	(sizeof(struct zf_disk_summary) + sizeof(struct zf_le64))

_Static_assert(ITEM_BYTES(sizeof(struct zf_disk_extent)) <= ZF_RESERVE_ITEM_BYTES, "an extent");
_Static_assert(ITEM_BYTES(SUMMARY_OF_BLOCK) <= ZF_RESERVE_ITEM_BYTES, "a block's summary entry");
_Static_assert(ITEM_BYTES(sizeof(struct zf_disk_share)) <= ZF_RESERVE_ITEM_BYTES, "a share");
_Static_assert(ITEM_BYTES(sizeof(struct zf_disk_extent)) + ITEM_BYTES(SUMMARY_OF_BLOCK) <=
		       ZF_RESERVE_KEPT_BYTES,
	       "a kept block's extent and summary entry");

ZF_FIELDS_DEFINE(zf_disk_time_fields, struct zf_disk_time, ZF_DISK_TIME_FIELDS, "zf_disk_time");
ZF_FIELDS_DEFINE(zf_disk_inode_fields, struct zf_disk_inode, ZF_DISK_INODE_FIELDS, "zf_disk_inode");
ZF_FIELDS_DEFINE(zf_disk_ref_fields, struct zf_disk_ref, ZF_DISK_REF_FIELDS, "zf_disk_ref");
ZF_FIELDS_DEFINE(zf_disk_dirent_fields, struct zf_disk_dirent, ZF_DISK_DIRENT_FIELDS,
		 "zf_disk_dirent");
ZF_FIELDS_DEFINE(zf_disk_xattr_fields, struct zf_disk_xattr, ZF_DISK_XATTR_FIELDS, "zf_disk_xattr");
ZF_FIELDS_DEFINE(zf_disk_extent_fields, struct zf_disk_extent, ZF_DISK_EXTENT_FIELDS,
		 "zf_disk_extent");
ZF_FIELDS_DEFINE(zf_disk_intent_fields, struct zf_disk_intent, ZF_DISK_INTENT_FIELDS,
		 "zf_disk_intent");
ZF_FIELDS_DEFINE(zf_disk_summary_fields, struct zf_disk_summary, ZF_DISK_SUMMARY_FIELDS,
		 "zf_disk_summary");
ZF_FIELDS_DEFINE(zf_disk_share_fields, struct zf_disk_share, ZF_DISK_SHARE_FIELDS, "zf_disk_share");
