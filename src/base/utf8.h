/* SPDX-License-Identifier: MIT */
#ifndef ZF_BASE_UTF8_H
#define ZF_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The length of the UTF-8 sequence (RFC 3629) at p, of `available` > 0 bytes; 0: there is none. */
size_t zf_utf8_length(const uint8_t *p, size_t available);

#endif
