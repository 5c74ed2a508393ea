/* SPDX-License-Identifier: MIT */
/*
 * zfusectl fallocate: as fallocate(1), with what that may not know yet: --write-zeroes. It works on
 * files of any filesystem.
 */
#ifndef ZF_TOOLS_FALLOCATE_H
#define ZF_TOOLS_FALLOCATE_H

#include <stdint.h>

/* argv[0] is the command. Returns the exit status. */
int zf_fallocate_main(int argc, char **argv);

/*
 * A number of bytes: with K, M, G, T, P, E (or KiB, ...) multiples of 1024, with KB, MB, ... of 1000.
 * 0, -EINVAL, -ERANGE.
 */
int zf_parse_size(const char *text, int64_t *ret_bytes);

#endif
