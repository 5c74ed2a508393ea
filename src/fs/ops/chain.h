/* SPDX-License-Identifier: MIT */
/*
 * Chains: items of several entries. Entries with the same hash are in one item, one after the
 * other.
 *
 * An entry is a fixed part, a name and (attributes) a value. A chain is the item's bytes, loaded
 * and checked; edits change the bytes, and zf_chain_store() writes them back, or deletes the item
 * when nothing is left. The inode's lock keeps the item unchanged in between.
 */
#ifndef ZF_FS_CHAIN_H
#define ZF_FS_CHAIN_H

#include "fs/ops/op.h"

struct zf_chain {
	struct zf_key key;
	size_t len; /* 0: no item */
	uint8_t bytes[ZF_NODE_SIZE_MAX / 4];
};

/* If there is no item, the chain is empty, and the call succeeds. -EUCLEAN: the item is damaged. */
int zf_chain_load(struct zf_fs *fs, const struct zf_key *key, struct zf_chain *ret_chain);
/* One edit. */
int zf_chain_store(struct zf_op *op, const struct zf_chain *chain);

/* Returns whether the chain has room for an entry of so many bytes. */
bool zf_chain_has_room(const struct zf_fs *fs, const struct zf_chain *chain, size_t entry_len);
/* Appends an entry, and returns it for the caller to fill in. The chain must have room for it. */
void *zf_chain_append(struct zf_chain *chain, size_t entry_len);
void zf_chain_remove(struct zf_chain *chain, size_t at, size_t entry_len);

/* How entries of one kind are laid out; the name follows the fixed part. */
struct zf_chain_kind {
	size_t fixed_size;
	size_t prefix_size; /* how much of the fixed part zf_chain_find() compares */
	size_t (*name_len)(const void *entry);
	size_t (*entry_len)(const void *entry);
};
/* Finds the entry with this prefix and name. *ret_at: its offset in the chain. -ENOENT. */
int zf_chain_find(const struct zf_chain *chain, const struct zf_chain_kind *kind,
		  const void *prefix, const char *name, size_t name_len, size_t *ret_at);

#endif
