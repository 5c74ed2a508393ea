/* SPDX-License-Identifier: MIT */
/* The field tables of this layer's structs on disk, and the names of roles. */
#include "alloc/zone_format.h"

ZF_FIELDS_DEFINE(zf_disk_zone_fields, struct zf_disk_zone, ZF_DISK_ZONE_FIELDS, "zf_disk_zone");

const char *zf_zone_role_name(uint8_t role)
{
	static const char *const names[ZF_ROLE_COUNT] = {
		[ZF_ROLE_NONE] = "none",
		[ZF_ROLE_SUPER] = "super",
		[ZF_ROLE_META] = "meta",
		[ZF_ROLE_LOG] = "log",
		[ZF_ROLE_HOT] = "hot",
		[ZF_ROLE_COLD] = "cold",
		[ZF_ROLE_OVERWRITE] = "overwrite",
	};

	return role < ZF_ROLE_COUNT ? names[role] : "unknown";
}
