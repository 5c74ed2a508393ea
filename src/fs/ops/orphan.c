/* SPDX-License-Identifier: MIT */
#include "fs/ops/orphan.h"

#include "fs/core/inode.h"
#include "fs/ops/op.h"

int zf_orphan_add(struct zf_op *op, struct zf_inode *inode)
{
	struct zf_key key = ZF_KEY(ZF_INO_ORPHANS, ZF_KEY_ORPHAN, inode->ino);
	int r = zf_op_insert(op, &key, "", 0);

	if (r == 0)
		zf_inode_set_unlinked(inode, true);
	return r;
}

int zf_orphan_remove(struct zf_op *op, struct zf_inode *inode)
{
	struct zf_key key = ZF_KEY(ZF_INO_ORPHANS, ZF_KEY_ORPHAN, inode->ino);
	int r = zf_op_delete(op, &key);

	if (r == 0)
		zf_inode_set_unlinked(inode, false);
	return r;
}
