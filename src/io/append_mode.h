/* SPDX-License-Identifier: MIT */
/* The option append=. */
#ifndef ZF_IO_APPEND_MODE_H
#define ZF_IO_APPEND_MODE_H

/* How appends reach a disk. The image backend has only one way, and accepts any of these modes. */
enum zf_append_mode {
	ZF_APPEND_BEST,	    /* native if the disk has Zone Append, else emulated: the default */
	ZF_APPEND_NATIVE,   /* NVMe Zone Append. -EOPNOTSUPP: the disk has none */
	ZF_APPEND_EMULATED, /* writes at a cached pointer: waiting appends are merged */
	ZF_APPEND_LOCKED,   /* for comparisons: one write at a time in each zone, as with a lock */
};

/* "best", "native", "emulated", "locked". -EINVAL: none of them. */
int zf_append_mode_parse(const char *text, enum zf_append_mode *ret_mode);
const char *zf_append_mode_name(enum zf_append_mode mode);

#endif
