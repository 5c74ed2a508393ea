/* SPDX-License-Identifier: MIT */
/*
 * How many references the kernel holds to each inode number: an open hash table, linear probing.
 *
 * Every shard of the inode table has one, under the shard's lock. Millions of entries are normal,
 * because the kernel caches the inodes that it has looked up; most have a count of 1. The table
 * grows with the entries, and gives memory back when the kernel has forgotten most of them.
 */
#ifndef ZF_FS_KERNEL_REFS_H
#define ZF_FS_KERNEL_REFS_H

#include "fs/core/inode.h"

void zf_kernel_refs_deinit(struct zf_kernel_refs *refs);
int zf_kernel_refs_add(struct zf_kernel_refs *refs, uint64_t ino); /* -ENOMEM */
/* Takes back `count` references. Returns how many are left. If `count` is more than there are, 0
 * are left: the kernel is not trusted to count. */
uint64_t zf_kernel_refs_sub(struct zf_kernel_refs *refs, uint64_t ino, uint64_t count);
bool zf_kernel_refs_has(const struct zf_kernel_refs *refs, uint64_t ino);

#endif
