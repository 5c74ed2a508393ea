/* SPDX-License-Identifier: MIT */
/* An inode's item with values that cannot be. */
#ifndef ZF_REPAIR_MEND_H
#define ZF_REPAIR_MEND_H

#include "repair/state.h"

/*
 * Makes an item that can be of one that cannot: each field that is out of its range gets the nearest
 * value that is not, and what has but one value gets that. False: there is no telling what it was.
 */
bool zf_repair_mend_inode(const struct zf_repair *repair, const struct zf_key *key,
			  const void *value, size_t len, struct zf_disk_inode *ret_disk);

/* The fields that the type of the file decides, after that has changed. */
void zf_repair_fit_type(struct zf_inode_item *item);

#endif
