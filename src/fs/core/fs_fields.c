/* SPDX-License-Identifier: MIT */
/* The field tables of this layer's structs on disk. */
#include "fs/core/fs_format.h"

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
