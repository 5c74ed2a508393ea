/* SPDX-License-Identifier: MIT */
/* The option append=. */
#ifndef ZF_IO_APPEND_MODE_H
#define ZF_IO_APPEND_MODE_H

/* How appends reach a disk. The image backend has one way, and takes any of these for it. */
enum zf_append_mode {
	ZF_APPEND_BEST,	    /* native where the disk has it, else emulated: the default */
	ZF_APPEND_NATIVE,   /* NVMe Zone Append. -EOPNOTSUPP where there is none */
	ZF_APPEND_EMULATED, /* writes at a cached pointer: those that wait are merged */
	ZF_APPEND_LOCKED, /* to compare: one write at a time in each zone, as a lock would do it */
};

/* "best", "native", "emulated", "locked". -EINVAL: none of them. */
int zf_append_mode_parse(const char *text, enum zf_append_mode *ret_mode);
const char *zf_append_mode_name(enum zf_append_mode mode);

#endif
