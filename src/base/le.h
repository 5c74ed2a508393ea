/* SPDX-License-Identifier: MIT */
/*
 * Little-endian integers as they lie on disk.
 *
 * The wrappers are byte arrays in a struct: they have no alignment, so an on-disk struct built
 * from them has no padding, and using one without converting it is a compile error.
 */
#ifndef ZF_BASE_LE_H
#define ZF_BASE_LE_H

#include <stdint.h>
#include <string.h>

struct zf_le16 {
	uint8_t b[2];
};
struct zf_le32 {
	uint8_t b[4];
};
struct zf_le64 {
	uint8_t b[8];
};

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#define ZF_LE_SWAP(bits, v) __builtin_bswap##bits(v)
#else
#define ZF_LE_SWAP(bits, v) (v)
#endif

#define ZF_LE_DEFINE(bits)                                                                         \
	static inline uint##bits##_t zf_le##bits##_get(struct zf_le##bits le)                      \
	{                                                                                          \
		uint##bits##_t v;                                                                  \
		memcpy(&v, le.b, sizeof(v));                                                       \
		return ZF_LE_SWAP(bits, v);                                                        \
	}                                                                                          \
	static inline struct zf_le##bits zf_le##bits##_from(uint##bits##_t v)                      \
	{                                                                                          \
		struct zf_le##bits le;                                                             \
		v = ZF_LE_SWAP(bits, v);                                                           \
		memcpy(le.b, &v, sizeof(v));                                                       \
		return le;                                                                         \
	}

ZF_LE_DEFINE(16)
ZF_LE_DEFINE(32)
ZF_LE_DEFINE(64)

#undef ZF_LE_DEFINE
#undef ZF_LE_SWAP

#endif
