/* SPDX-License-Identifier: MIT */
/* The one place that names xxhash. Checksum type 1 of the disk format is XXH3 with 64 bits. */
#ifndef ZF_BASE_HASH_H
#define ZF_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Checksum of a block, a node or a superblock record. */
uint64_t zf_hash64(const void *data, size_t len);

/* Keyed with a seed of the filesystem: hashes of names, which an attacker must not foresee. */
uint64_t zf_hash64_seed(const void *data, size_t len, uint64_t seed);

#endif
