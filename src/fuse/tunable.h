/* SPDX-License-Identifier: MIT */
/*
 * The mount options that can change while the filesystem is mounted: commit=, gc= and gc_target=.
 * The daemon reads these options when it starts, and mount.fuse.zfuse reads them for `mount -o
 * remount`.
 */
#ifndef ZF_FUSE_TUNABLE_H
#define ZF_FUSE_TUNABLE_H

#include <stdbool.h>
#include <stdint.h>

struct zf_tunables {
	uint64_t commit_ms;	       /* 0: not given */
	uint64_t gc_zones, gc_percent; /* one of these two, or none */
	bool gc_given, gc_off;
};

/* Is `option`, "NAME=VALUE", one of these options? */
bool zf_tunable_is(const char *option);

/*
 * -EINVAL: the value is not allowed. *ret_allowed describes the allowed values, in a constant
 * string.
 */
int zf_tunable_set(const char *option, struct zf_tunables *tunables, const char **ret_allowed);

#endif
