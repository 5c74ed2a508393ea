/* SPDX-License-Identifier: MIT */
/*
 * Names that share a hash with another one, made by inverting XXH3 for inputs of 8 and of 16 bytes:
 * possible for whoever knows the seed. Without it, nobody can; with it, chains in directories can
 * be tested.
 */
#ifndef ZF_TESTS_FS_COLLIDE_H
#define ZF_TESTS_FS_COLLIDE_H

#include <stdbool.h>
#include <stdint.h>

/* A name of 8 (16) bytes with the hash of `name`, terminated. False: it has a byte that names have
 * not. */
bool collide_8(uint64_t seed, const char *name, char ret_name[32]);
bool collide_16(uint64_t seed, const char *name, char ret_name[32]);

#endif
