/* SPDX-License-Identifier: MIT */
/* The field tables of this layer's structs on disk. */
#include "log/log_format.h"

ZF_FIELDS_DEFINE(zf_disk_log_header_fields, struct zf_disk_log_header, ZF_DISK_LOG_HEADER_FIELDS,
		 "zf_disk_log_header");
ZF_FIELDS_DEFINE(zf_disk_log_body_fields, struct zf_disk_log_body, ZF_DISK_LOG_BODY_FIELDS,
		 "zf_disk_log_body");
ZF_FIELDS_DEFINE(zf_disk_log_edit_fields, struct zf_disk_log_edit, ZF_DISK_LOG_EDIT_FIELDS,
		 "zf_disk_log_edit");
ZF_FIELDS_DEFINE(zf_disk_log_inode_fields, struct zf_disk_log_inode, ZF_DISK_LOG_INODE_FIELDS,
		 "zf_disk_log_inode");
ZF_FIELDS_DEFINE(zf_disk_log_range_fields, struct zf_disk_log_range, ZF_DISK_LOG_RANGE_FIELDS,
		 "zf_disk_log_range");
