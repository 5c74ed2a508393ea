/* SPDX-License-Identifier: MIT */
/*
 * The checker of items: it alone knows which values an item of the fs, summary and share trees may
 * have (P7).
 *
 * btree/node.h verifies that a node's bytes are those that were written, but not that its items
 * make sense. Every function that decodes an item checks it here first; `zfusectl check` checks all
 * items. Conditions between several items (does the inode exist that an entry names?) are checked
 * in src/check/.
 */
#ifndef ZF_FS_ITEM_CHECK_H
#define ZF_FS_ITEM_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/report.h"
#include "btree/key.h"
#include "fs/core/fs_format.h"

struct zf_fs;

struct zf_item_check {
	const struct zf_report *report;
	uint32_t value_max;	 /* bytes of an item's value: zf_node_value_max() */
	uint64_t dir_hash_seed;	 /* keys of names contain hashes with this seed */
	bool any_seed;		 /* the seed is unknown: hashes are not compared */
	uint64_t generation_max; /* of the running transaction: nothing can be newer */
	uint64_t device_bytes;	 /* extents end at or below this address */
};

/*
 * Checks every field of the key and the value, in a chain of entries those of every entry. 0, or
 * -EUCLEAN with a message. `tree` is one of ZF_TREE_FS, ZF_TREE_SUMMARY and ZF_TREE_SHARE.
 */
int zf_item_check(const struct zf_item_check *check, enum zf_tree_id tree, const struct zf_key *key,
		  const void *value, size_t len);

/* Returns whether S_IFMT of the mode is one of the seven types of files. */
bool zf_item_has_type(uint32_t mode);

/* Sets *ret_check for the items of a mounted filesystem. */
void zf_fs_get_item_check(struct zf_fs *fs, struct zf_item_check *ret_check);
/*
 * zf_item_check() of an item of the filesystem's fs tree. The call takes a lock that ranks before
 * the lock of a tree, so the callback of a scan must not call it.
 */
int zf_fs_check_item(struct zf_fs *fs, const struct zf_key *key, const void *value, size_t len);

#endif
