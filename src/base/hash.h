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

/* ---- keyed, 128 bits: cannot be made without the secret ---- */

#define ZF_HASH_SECRET_SIZE 32
#define ZF_HASH_KEY_SIZE    192 /* bytes: as long as XXH3's own secret */
#define ZF_HASH128_SIZE	    16

struct zf_hash_key {
	uint8_t bytes[ZF_HASH_KEY_SIZE];
};

/*
 * Bytes 16i .. 16i + 15 of the key are the 128-bit XXH3 of the secret with seed i. (Not
 * XXH3_generateSecret(): it is no part of xxhash's stable interface, and the disk format rests on
 * this.)
 */
void zf_hash_key_init(struct zf_hash_key *key, const uint8_t secret[ZF_HASH_SECRET_SIZE]);

/* XXH3 with the key as its secret, in the form of the disk: xxhash's canonical form, big-endian. */
void zf_hash128_keyed(const struct zf_hash_key *key, const void *data, size_t len,
		      uint8_t ret_hash[ZF_HASH128_SIZE]);

#endif
