/* SPDX-License-Identifier: MIT */
/* Corrects an inode item that has impossible values. */
#ifndef ZF_REPAIR_MEND_H
#define ZF_REPAIR_MEND_H

#include "repair/state.h"

/*
 * Makes a valid item of an invalid one: a field out of its range gets a valid value, mostly the
 * nearest. False: the item is unusable, because its length, key or type of file is wrong.
 */
bool zf_repair_mend_inode(const struct zf_repair *repair, const struct zf_key *key,
			  const void *value, size_t len, struct zf_disk_inode *ret_disk);

/* After a change of the type of the file: corrects the fields that depend on the type. */
void zf_repair_fit_type(struct zf_inode_item *item);

#endif
