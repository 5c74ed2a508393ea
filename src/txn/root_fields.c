/* SPDX-License-Identifier: MIT */
/* The field tables of this layer's structs on disk. */
#include "txn/root_format.h"

ZF_FIELDS_DEFINE(zf_disk_root_fields, struct zf_disk_root, ZF_DISK_ROOT_FIELDS, "zf_disk_root");
