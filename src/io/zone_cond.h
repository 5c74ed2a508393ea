/* SPDX-License-Identifier: MIT */
/* The condition of a zone. */
#ifndef ZF_IO_ZONE_COND_H
#define ZF_IO_ZONE_COND_H

/* The conditions of ZBC, ZAC and ZNS, under the names that libzbd and nvme-cli print. */
enum zf_zone_cond {
	ZF_ZONE_NOT_WP,	  /* nw: conventional, no pointer */
	ZF_ZONE_EMPTY,	  /* em */
	ZF_ZONE_IMP_OPEN, /* oi */
	ZF_ZONE_EXP_OPEN, /* oe */
	ZF_ZONE_CLOSED,	  /* cl */
	ZF_ZONE_FULL,	  /* fu */
	ZF_ZONE_READONLY, /* ro */
	ZF_ZONE_OFFLINE,  /* ol */
};

const char *zf_zone_cond_name(enum zf_zone_cond cond);	/* "empty", "implicit-open", ... */
const char *zf_zone_cond_short(enum zf_zone_cond cond); /* "em", "oi", ... as zbd prints them */

#endif
