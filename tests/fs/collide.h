/* SPDX-License-Identifier: MIT */
/*
 * Names that have the same hash as another name, for tests of hash chains in directories. They are
 * made by inverting XXH3 for inputs of 8 and of 16 bytes, which only a caller who knows the seed
 * can do.
 */
#ifndef ZF_TESTS_FS_COLLIDE_H
#define ZF_TESTS_FS_COLLIDE_H

#include <stdbool.h>
#include <stdint.h>

/* A terminated name of 8 (16) bytes with the hash of `name`. False: the result has a byte that is
 * not allowed in a name. */
bool collide_8(uint64_t seed, const char *name, char ret_name[32]);
bool collide_16(uint64_t seed, const char *name, char ret_name[32]);

#endif
