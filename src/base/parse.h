/* SPDX-License-Identifier: MIT */
/* Numbers, sizes and names as users write them: on command lines, and among mount options. */
#ifndef ZF_BASE_PARSE_H
#define ZF_BASE_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* The forms that zf_parse_size() takes, for messages. */
#define ZF_SIZE_FORMS "a number of bytes, with K, M, G, T (1024, ...) or KB, MB, GB, TB (1000, ...)"

/* Decimal digits and nothing else. -EINVAL: anything else; -ERANGE: above `max`. */
int zf_parse_number(const char *text, uint64_t max, uint64_t *ret_number);

/*
 * A number of bytes: 4096, 64M, 3.5G, 64MiB, 4GB. K, M, G, T, P, E, also with iB behind them, are
 * powers of 1024; KB, MB, ... are powers of 1000; case does not matter. A fraction needs a unit;
 * the result is rounded down to a byte. -EINVAL, -ERANGE as above.
 */
int zf_parse_size(const char *text, uint64_t max, uint64_t *ret_bytes);

#define ZF_SIZE_TEXT_MAX 24

/* The shortest text that zf_parse_size() reads as exactly this: 64M. Returns `buf`. */
const char *zf_parse_size_text(uint64_t bytes, char buf[ZF_SIZE_TEXT_MAX]);

/*
 * Finds the one of `count` names that a user who wrote `word` may have meant; NULL: none is near.
 * name(arg, i) returns a text whose name ends at '=' or at the end of the text.
 */
const char *zf_parse_nearest_name(const char *word, size_t count,
				  const char *(*name)(const void *arg, size_t i), const void *arg);

#endif
