/* SPDX-License-Identifier: MIT */
/* What the files of the checker of items share: item_check.c, item_check_chain.c,
 * item_check_extent.c. */
#ifndef ZF_FS_ITEM_CHECK_INTERNAL_H
#define ZF_FS_ITEM_CHECK_INTERNAL_H

#include "fs/core/item_check.h"

/* The item that is being checked. */
struct zf_seen_item {
	const struct zf_item_check *check;
	const char *what;
	const struct zf_key *key;
	const uint8_t *value;
	size_t len;
};

/* One integer of a struct on disk and the values that it may have. */
struct zf_seen_field {
	const char *name;
	size_t offset, width;
	uint64_t min, max;
};

#define ZF_SEEN_FIELD(type, member, lo, hi)                                                        \
	{                                                                                          \
		.name = #member,                                                                   \
		.offset = offsetof(type, member),                                                  \
		.width = sizeof(((type *)NULL)->member),                                           \
		.min = (lo),                                                                       \
		.max = (hi),                                                                       \
	}
#define ZF_SEEN_ZERO(item, base, type, member)                                                     \
	zf_item_check_zero(item, #member, (base) + offsetof(type, member),                         \
			   sizeof(((type *)NULL)->member))

uint64_t zf_item_field_get(const struct zf_seen_field *field, const uint8_t *base);

/* The checks return 0, or -EUCLEAN with a message. */
int zf_item_out_of_range(const struct zf_seen_item *item, const char *field, uint64_t has,
			 uint64_t min, uint64_t max);
int zf_item_check_range(const struct zf_seen_item *item, const char *field, uint64_t has,
			uint64_t min, uint64_t max);
int zf_item_check_equal(const struct zf_seen_item *item, const char *field, uint64_t has,
			uint64_t expected);
int zf_item_check_fields(const struct zf_seen_item *item, const uint8_t *base,
			 const struct zf_seen_field *fields, size_t count);
int zf_item_check_zero(const struct zf_seen_item *item, const char *field, const uint8_t *bytes,
		       size_t len);
int zf_item_check_aligned(const struct zf_seen_item *item, const char *field, uint64_t has);
/* Checks that the key's objectid can be the number of an inode. */
int zf_item_check_owner(const struct zf_seen_item *item);

/* item_check_chain.c */
int zf_item_check_ref(const struct zf_seen_item *item);
int zf_item_check_xattr(const struct zf_seen_item *item);
int zf_item_check_xattr_value(const struct zf_seen_item *item);
int zf_item_check_dir_name(const struct zf_seen_item *item);
int zf_item_check_dir_cookie(const struct zf_seen_item *item);

/* item_check_extent.c */
int zf_item_check_extent(const struct zf_seen_item *item);
int zf_item_check_summary(const struct zf_seen_item *item);
int zf_item_check_share(const struct zf_seen_item *item);

#endif
