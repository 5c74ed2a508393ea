/* SPDX-License-Identifier: MIT */
/* The field tables of this layer's structs on disk. */
#include "txn/root_format.h"

ZF_FIELDS_DEFINE(zf_disk_root_fields, struct zf_disk_root, ZF_DISK_ROOT_FIELDS, "zf_disk_root");
ZF_FIELDS_DEFINE(zf_disk_faults_fields, struct zf_disk_faults, ZF_DISK_FAULTS_FIELDS,
		 "zf_disk_faults");
ZF_FIELDS_DEFINE(zf_disk_scrub_fields, struct zf_disk_scrub, ZF_DISK_SCRUB_FIELDS, "zf_disk_scrub");
