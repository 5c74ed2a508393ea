/* SPDX-License-Identifier: MIT */
/*
 * One table of fields per on-disk struct, and everything that must agree with it.
 *
 * A *_format.h gives, beside the struct, a list macro with one line per field (reserved ones too):
 *
 *      #define ZF_DISK_THING_FIELDS(F, T) \
 *              F(T, csum, 0, 8, HEX64)    \
 *              F(T, count, 8, 4, U32)     \
 *              F(T, reserved, 12, 4, ZERO)
 *      ZF_FIELDS_ASSERT(struct zf_disk_thing, ZF_DISK_THING_FIELDS);
 *
 * The assertion proves at compile time that the compiler's layout is the table's, and that no byte
 * is left out. One .c file makes the table a constant with ZF_FIELDS_DEFINE(); from it come the
 * check of the reserved bytes, the dump of the tools, and the test that compares docs/format.md. A
 * member of a nested struct is named with a dot: F(T, root.csum, 256, 8, HEX64).
 */
#ifndef ZF_BASE_FIELDS_H
#define ZF_BASE_FIELDS_H

#include <stddef.h>
#include <stdint.h>

enum zf_field_kind {
	ZF_FIELD_U8,
	ZF_FIELD_U16,
	ZF_FIELD_U32,
	ZF_FIELD_U64,
	ZF_FIELD_HEX64, /* a 64-bit number that people compare, not count: checksums, feature words
			 */
	ZF_FIELD_BYTES,
	ZF_FIELD_UUID,
	ZF_FIELD_TEXT,
	ZF_FIELD_ZERO, /* reserved */
	ZF_FIELD_KIND_COUNT,
};

struct zf_field {
	const char *name;
	uint16_t offset; /* bytes from the start of the struct */
	uint16_t size;	 /* bytes, of all elements together */
	enum zf_field_kind kind;
};

struct zf_fields {
	const char *name; /* "zf_disk_super" */
	const struct zf_field *field;
	unsigned int count;
	uint32_t size; /* bytes, of the struct */
};

#define ZF_FIELD_ASSERT(T, n, off, len, k)                                                         \
	_Static_assert(offsetof(T, n) == (off), #n ": offset on disk");                            \
	_Static_assert(sizeof(((T *)NULL)->n) == (len), #n ": size on disk");
#define ZF_FIELD_SIZE(T, n, off, len, k) +(len)
#define ZF_FIELD_ENTRY(T, n, off, len, k)                                                          \
	{.name = #n, .offset = (off), .size = (len), .kind = ZF_FIELD_##k},

#define ZF_FIELDS_ASSERT(T, LIST)                                                                  \
	LIST(ZF_FIELD_ASSERT, T)                                                                   \
	_Static_assert(0 LIST(ZF_FIELD_SIZE, T) == sizeof(T), "a byte without a field")

#define ZF_FIELDS_DEFINE(var, T, LIST, NAME)                                                       \
	static const struct zf_field var##_table[] = {LIST(ZF_FIELD_ENTRY, T)};                    \
	const struct zf_fields var = {                                                             \
		.name = (NAME),                                                                    \
		.field = var##_table,                                                              \
		.count = sizeof(var##_table) / sizeof(var##_table[0]),                             \
		.size = sizeof(T),                                                                 \
	}

/* The first reserved field with a byte that is not zero in `data` (fields->size long), or NULL. */
const struct zf_field *zf_fields_check_zero(const struct zf_fields *fields, const void *data);

/* "le64", "le32[2]", "uuid", ... as docs/format.md calls them. Returns buf. */
const char *zf_field_type_to_text(const struct zf_field *field, char *buf, size_t size);

/*
 * The value of the field in `data` (the whole struct): numbers in decimal, HEX64 as 0x..., text
 * quoted and escaped, nothing for reserved bytes. Never more than size bytes, always terminated.
 * Returns buf.
 */
const char *zf_field_value_to_text(const struct zf_field *field, const void *data, char *buf,
				   size_t size);

#endif
