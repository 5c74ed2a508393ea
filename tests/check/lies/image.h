/* SPDX-License-Identifier: MIT */
/* The filesystems about which lies are told: small, with every structure of the format in them. */
#ifndef ZF_TESTS_LIES_IMAGE_H
#define ZF_TESTS_LIES_IMAGE_H

#include "forge.h"

#define IMAGE_ZONE_SIZE (UINT64_C(256) << 10)

enum image_kind {
	IMAGE_SEQUENTIAL, /* two copies of metadata */
	IMAGE_IN_PLACE,	  /* conventional zones, and extents that are overwritten in place */
	IMAGE_KINDS,	  /* every field is tried on the kinds before this one */
	IMAGE_LARGE_NODES = IMAGE_KINDS, /* as mkfs.zfuse makes them */
	IMAGE_ALL_KINDS,
};

/*
 * Makes a filesystem whose daemon was killed: it has orphans, an intent, and a log to be replayed,
 * and nothing is wrong with it. The forge has its newest superblock.
 */
void image_make(enum image_kind kind, struct forge *ret_forge);
void image_free(struct forge *forge);

const char *image_kind_name(enum image_kind kind);

#endif
