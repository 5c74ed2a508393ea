/* SPDX-License-Identifier: MIT */
/*
 * Bodies of log records: building and decoding them. A body is what a record contains of one
 * operation or of one inode.
 *
 * Building. A struct zf_log_body is a buffer that grows. The caller begins it, adds to it, and
 * gives it to zf_log_add() (an operation, or a state that goes with operations) or to
 * zf_log_append() (the state of an inode that is synced, with data). These two set its number. If
 * memory or the size limit fails, zf_log_body_error() says so at the end, and the body must not be
 * used.
 *
 * Decoding. zf_log_body_check() has checked the sizes and bounds in a body before any iterator
 * runs, so an iterator cannot leave the body. The replay checks the values themselves.
 */
#ifndef ZF_LOG_BODY_H
#define ZF_LOG_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btree/key.h"
#include "log/log_format.h"

/* A body larger than this is not logged; a sync that needs it commits. Bytes. */
#define ZF_LOG_BODY_MAX 32768u

struct zf_log_body {
	uint8_t *bytes; /* a struct zf_disk_log_body, and what was added */
	size_t len, room;
	int error;	     /* -ENOMEM; -E2BIG: larger than ZF_LOG_BODY_MAX */
	uint8_t first[1024]; /* most bodies need no memory of their own */
};

void zf_log_body_begin(struct zf_log_body *body, enum zf_log_body_type type);
void zf_log_body_end(struct zf_log_body *body); /* frees the memory of a body that was begun */
static inline int zf_log_body_error(const struct zf_log_body *body)
{
	return body->error;
}

/* ---- an operation ---- */

void zf_log_body_set(struct zf_log_body *body, const struct zf_key *key, const void *value,
		     size_t len);
void zf_log_body_delete(struct zf_log_body *body, const struct zf_key *key);
void zf_log_body_resize(struct zf_log_body *body, uint64_t ino, uint64_t size);

/* ---- the state of an inode ---- */

void zf_log_body_inode(struct zf_log_body *body, uint64_t ino, const void *item, size_t item_len);
/*
 * Ranges are added after the inode, in the order in which they are to be applied: a later range
 * overrules an earlier one.
 */
struct zf_log_range {
	enum zf_log_range_type type;
	uint8_t flags; /* ZF_EXTENT_* */
	bool riding;
	uint64_t offset, len, address; /* as in struct zf_disk_log_range */
	const uint64_t *csums;	       /* one for each block of DATA, host order; NULL: none */
	const uint8_t *bytes;	       /* content of INLINE */
	uint32_t inline_len;	       /* number of `bytes` */
};
void zf_log_body_range(struct zf_log_body *body, const struct zf_log_range *range);

/* ---- taking apart ---- */

/* A body in memory, numbers decoded. */
struct zf_log_body_view {
	const uint8_t *bytes; /* struct zf_disk_log_body and what follows */
	size_t len;
	enum zf_log_body_type type;
	uint64_t number;
	uint64_t data_address; /* of the body's own data blocks, on the device */
	uint32_t data_count;
};

/*
 * Checks whether a body is well formed. `bytes` may have any content. -EUCLEAN; -EPROTONOSUPPORT: a
 * version or type that this program does not know.
 */
int zf_log_body_check(const uint8_t *bytes, size_t len, size_t *ret_len);

struct zf_log_edit {
	enum zf_log_edit_kind kind;
	struct zf_key key;
	const void *value;
	size_t len;
};
/* *at begins as 0. False: that was the last. */
bool zf_log_next_edit(const struct zf_log_body_view *view, size_t *at,
		      struct zf_log_edit *ret_edit);

struct zf_log_inode {
	uint64_t ino;
	const void *item;
	size_t item_len;
	unsigned int range_count;
};
void zf_log_view_inode(const struct zf_log_body_view *view, struct zf_log_inode *ret_inode);
/*
 * *at begins as 0. False: that was the last. range.address is an address on the device, also for a
 * riding range. range.csums is NULL: zf_log_range_csums() gives the checksums in host order.
 */
struct zf_log_range_view {
	struct zf_log_range range;
	const struct zf_le64 *csums; /* NULL: none */
};
bool zf_log_next_range(const struct zf_log_body_view *view, size_t *at,
		       struct zf_log_range_view *ret_range);
/* Gives `count` of the range's checksums, from its block `first` on. */
void zf_log_range_csums(const struct zf_log_range_view *range, unsigned int first,
			unsigned int count, uint64_t *ret_csums);

#endif
