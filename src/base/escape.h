/* SPDX-License-Identifier: MIT */
/* Bytes from a disk, such as a file's name, as text that is safe on a terminal and in JSON. */
#ifndef ZF_BASE_ESCAPE_H
#define ZF_BASE_ESCAPE_H

#include <stddef.h>

/* The most bytes of text, with its terminating zero, that `len` bytes may become. */
#define ZF_ESCAPE_SIZE(len) (4 * (len) + 1)

/*
 * Printable ASCII stays; every other byte, and the backslash, becomes "\xNN". `ret_text` has room
 * for ZF_ESCAPE_SIZE(len). Returns the text's length.
 */
size_t zf_escape(const void *bytes, size_t len, char *ret_text);

#endif
