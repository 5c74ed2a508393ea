/* SPDX-License-Identifier: MIT */
/*
 * Extended attributes as items. A small value stands behind the name, in the entry. A larger value
 * is stored in items of its own, in chunks of zf_node_value_max() bytes; the id in the entry leads
 * to them.
 *
 * To replace a value, the new one is written under a new id before the entry changes. The inode is
 * locked as a directory is (fs/ops/names/dir.h).
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
/* Reads the value, and returns its length. -ERANGE: the value is longer than `size` bytes. */
ssize_t zf_xattr_read(const struct zf_xattr_place *place, void *buf, size_t size);

/*
 * Called before the join. *ret_edits: how many edits the put will make. -ENOSPC: the item has no
 * room for the entry.
 */
int zf_xattr_prepare_put(struct zf_xattr_place *place, size_t len, unsigned int *ret_edits);
int zf_xattr_put(struct zf_op *op, struct zf_xattr_place *place, const void *value, size_t len);

unsigned int zf_xattr_delete_edits(const struct zf_xattr_place *place);
int zf_xattr_delete(struct zf_op *op, struct zf_xattr_place *place);

/* Returns the length in bytes of one entry of a checked item. */
size_t zf_xattr_entry_len(const void *entry);

/* Removes security.capability. If the inode has none, notes that in inode->absent and returns 0. */
int zf_xattr_remove_capability(struct zf_inode *inode, const struct zf_ctx *ctx);

/*
 * A write, truncation or change of owner takes away what security.capability grants. Called without
 * locks and before the change. Costs nothing if the inode is known to have none.
 */
static inline int zf_xattr_drop_capability(struct zf_inode *inode, const struct zf_ctx *ctx)
{
	bool absent = atomic_load(&inode->absent) & ZF_ABSENT_CAPABILITY;

	return absent ? 0 : zf_xattr_remove_capability(inode, ctx);
}

#endif
