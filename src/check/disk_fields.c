/* SPDX-License-Identifier: MIT */
#include "check/disk_fields.h"

#include "alloc/zone_format.h"
#include "btree/node_format.h"
#include "fs/fs_format.h"
#include "txn/root_format.h"

#define DEFINE(name, LIST)                                                                         \
	ZF_FIELDS_DEFINE(zf_disk_##name##_fields, struct zf_disk_##name, LIST, "zf_disk_" #name)

DEFINE(node_header, ZF_DISK_NODE_HEADER_FIELDS);
DEFINE(root, ZF_DISK_ROOT_FIELDS);
DEFINE(zone, ZF_DISK_ZONE_FIELDS);
DEFINE(inode, ZF_DISK_INODE_FIELDS);
DEFINE(ref, ZF_DISK_REF_FIELDS);
DEFINE(dirent, ZF_DISK_DIRENT_FIELDS);
DEFINE(xattr, ZF_DISK_XATTR_FIELDS);
DEFINE(extent, ZF_DISK_EXTENT_FIELDS);
DEFINE(intent, ZF_DISK_INTENT_FIELDS);
DEFINE(summary, ZF_DISK_SUMMARY_FIELDS);
DEFINE(share, ZF_DISK_SHARE_FIELDS);
