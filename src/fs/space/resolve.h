/* SPDX-License-Identifier: MIT */
/*
 * Finds the files whose bytes lie at a device address, because messages about damage name
 * addresses.
 */
#ifndef ZF_FS_RESOLVE_H
#define ZF_FS_RESOLVE_H

#include <stdint.h>

struct zf_fs;

/*
 * Called with a file and an offset whose byte lies at the address. A result other than 0 ends the
 * search.
 */
typedef int zf_resolve_fn(void *arg, uint64_t ino, uint64_t offset);

/*
 * Calls fn for each place in a file whose bytes lie at `address`, in bytes: none for metadata and
 * for garbage, several where files share them. Data that has not landed has no address yet. 0, what
 * fn returned, -EINVAL (the address lies beyond the zones), -ENOMEM, -EIO, -EUCLEAN. No lock and no
 * join held.
 */
int zf_resolve(struct zf_fs *fs, uint64_t address, zf_resolve_fn *fn, void *arg);

#endif
