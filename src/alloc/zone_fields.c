/* SPDX-License-Identifier: MIT */
/* The field tables of this layer's structs on disk. */
#include "alloc/zone_format.h"

ZF_FIELDS_DEFINE(zf_disk_zone_fields, struct zf_disk_zone, ZF_DISK_ZONE_FIELDS, "zf_disk_zone");
