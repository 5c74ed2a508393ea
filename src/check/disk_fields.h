/* SPDX-License-Identifier: MIT */
/* The field tables of everything that stands in the trees, for checks of reserved bytes and dumps.
 */
#ifndef ZF_CHECK_DISK_FIELDS_H
#define ZF_CHECK_DISK_FIELDS_H

#include "base/fields.h"

extern const struct zf_fields zf_disk_node_header_fields;
extern const struct zf_fields zf_disk_root_fields;
extern const struct zf_fields zf_disk_zone_fields;
extern const struct zf_fields zf_disk_inode_fields;
extern const struct zf_fields zf_disk_ref_fields;
extern const struct zf_fields zf_disk_dirent_fields;
extern const struct zf_fields zf_disk_xattr_fields;
extern const struct zf_fields zf_disk_extent_fields;
extern const struct zf_fields zf_disk_intent_fields;
extern const struct zf_fields zf_disk_summary_fields;
extern const struct zf_fields zf_disk_share_fields;

#endif
