/* SPDX-License-Identifier: MIT */
/*
 * Extended attributes as items. Small values stand behind the name, in the entry; larger ones in
 * chunks of their own, of zf_node_value_max() bytes each, found by the id in the entry.
 *
 * A value is replaced by writing the new one under a new id before the entry changes. The inode's
 * lock as for directories (fs/ops/names/dir.h).
 */
#ifndef ZF_FS_XATTR_H
#define ZF_FS_XATTR_H

#include "fs/ops/chain.h"
#include "fs/ops/names/dir.h"

struct zf_xattr_place {
	struct zf_inode *inode;
	struct zf_name name;
	bool exists;
	size_t at;
	uint32_t value_len, value_id; /* if it exists */
	uint32_t next_id;	      /* for a new value in chunks; see zf_xattr_prepare_put() */
	struct zf_chain chain;
};

/* -ERANGE if empty or longer than 255. */
int zf_xattr_check_name(const char *name, struct zf_name *ret_name);

int zf_xattr_find(struct zf_inode *inode, const struct zf_name *name,
		  struct zf_xattr_place *ret_place);
/* The value (at most `size` bytes: -ERANGE if that is too small). Returns its length. */
ssize_t zf_xattr_read(const struct zf_xattr_place *place, void *buf, size_t size);

/* Before the join: -ENOSPC, or how many edits the put will make. */
int zf_xattr_prepare_put(struct zf_xattr_place *place, size_t len, unsigned int *ret_edits);
int zf_xattr_put(struct zf_op *op, struct zf_xattr_place *place, const void *value, size_t len);

unsigned int zf_xattr_delete_edits(const struct zf_xattr_place *place);
int zf_xattr_delete(struct zf_op *op, struct zf_xattr_place *place);

/* Of one entry of a checked item, in bytes. */
size_t zf_xattr_entry_len(const void *entry);

/* Removes security.capability. If the inode has none, remembers that (inode->absent), and returns 0. */
int zf_xattr_remove_capability(struct zf_inode *inode, const struct zf_ctx *ctx);

/*
 * A write, truncation or change of owner takes away what security.capability grants. Called without
 * locks and before the change. Costs nothing when there is none.
 */
static inline int zf_xattr_drop_capability(struct zf_inode *inode, const struct zf_ctx *ctx)
{
	bool absent = atomic_load(&inode->absent) & ZF_ABSENT_CAPABILITY;

	return absent ? 0 : zf_xattr_remove_capability(inode, ctx);
}

#endif
