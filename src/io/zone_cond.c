/* SPDX-License-Identifier: MIT */
#include "io/zone_cond.h"

static const struct {
	const char *name, *abbreviation;
} cond_names[] = {
	[ZF_ZONE_NOT_WP] = {"not-write-pointer", "nw"},
	[ZF_ZONE_EMPTY] = {"empty", "em"},
	[ZF_ZONE_IMP_OPEN] = {"implicit-open", "oi"},
	[ZF_ZONE_EXP_OPEN] = {"explicit-open", "oe"},
	[ZF_ZONE_CLOSED] = {"closed", "cl"},
	[ZF_ZONE_FULL] = {"full", "fu"},
	[ZF_ZONE_READONLY] = {"read-only", "ro"},
	[ZF_ZONE_OFFLINE] = {"offline", "ol"},
};

const char *zf_zone_cond_name(enum zf_zone_cond cond)
{
	return cond_names[cond].name;
}

const char *zf_zone_cond_short(enum zf_zone_cond cond)
{
	return cond_names[cond].abbreviation;
}
