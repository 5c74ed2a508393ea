/* SPDX-License-Identifier: MIT */
/* The field tables of this layer's structs on disk. */
#include "btree/node_format.h"

ZF_FIELDS_DEFINE(zf_disk_node_header_fields, struct zf_disk_node_header, ZF_DISK_NODE_HEADER_FIELDS,
		 "zf_disk_node_header");
ZF_FIELDS_DEFINE(zf_disk_key_fields, struct zf_disk_key, ZF_DISK_KEY_FIELDS, "zf_disk_key");
ZF_FIELDS_DEFINE(zf_disk_child_fields, struct zf_disk_child, ZF_DISK_CHILD_FIELDS, "zf_disk_child");
ZF_FIELDS_DEFINE(zf_disk_item_fields, struct zf_disk_item, ZF_DISK_ITEM_FIELDS, "zf_disk_item");
ZF_FIELDS_DEFINE(zf_disk_packing_fields, struct zf_disk_packing, ZF_DISK_PACKING_FIELDS,
		 "zf_disk_packing");
