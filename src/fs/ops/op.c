/* SPDX-License-Identifier: MIT */
#include "fs/data/durable.h"
#include "fs/ops/op.h"

#include <assert.h>
#include <errno.h>

#include "alloc/reserve.h"
#include "fs/core/inode_flags.h"
#include "fs/core/inode_item.h"
#include "fs/data/data.h"
#include "fs/space/room.h"
#include "log/log.h"

/*
 * After so many waits without its locks an operation waits with them held, or others could always
 * take the room first.
 */
#define WAITS_MAX 4u
/* If others take the room even then, the operation fails after so many waits. */
#define WAITS_LAST 64u

int zf_op_check_writable(const struct zf_op *op)
{
	/* After a failed commit, joining fails with -EROFS, too. */
	return op->fs->read_only ? -EROFS : 0;
}

int zf_op_get(struct zf_op *op, uint64_t ino, struct zf_inode **ret_inode)
{
	struct zf_inode *inode;
	int r;

	assert(op->inode_count < ZF_OP_INODES && !op->locked);
	r = zf_inode_get(op->fs, ino, &inode);
	if (r < 0)
		return r;
	op->inodes[op->inode_count++] = inode;
	*ret_inode = inode;
	return 0;
}

void zf_op_lock(struct zf_op *op)
{
	assert(!op->locked);
	zf_inode_lock_many(op->inodes, op->inode_count);
	op->locked = true;
}

int zf_op_begin(struct zf_op *op, uint64_t ino, struct zf_inode **ret_inode)
{
	int r = zf_op_check_writable(op);

	if (r == 0)
		r = zf_op_get(op, ino, ret_inode);
	if (r == 0)
		zf_op_lock(op);
	return r;
}

void zf_op_adopt(struct zf_op *op, struct zf_inode *inode)
{
	assert(op->inode_count < ZF_OP_INODES && op->locked);
	op->inodes[op->inode_count++] = inode;
}

static bool must_be_durable(const struct zf_op *op)
{
	for (unsigned int i = 0; i < op->inode_count; i++) {
		if (zf_inode_is_sync(op->inodes[i]))
			return true;
	}
	return false;
}

static void begin_body(struct zf_op *op)
{
	op->logs = !op->content && zf_log_wants_operations(op->fs->log);
	if (op->logs)
		zf_log_body_begin(&op->body, ZF_LOG_OPERATION);
}

/* The operation is over. The log gets it before the inodes are unlocked. */
static void end_body(struct zf_op *op, bool done)
{
	/* An edit that bypasses the functions of this file would be missing in the log. */
	assert(!op->logs || op->captured == op->edits);
	if (done && !op->content && op->edits > 0)
		zf_log_add(op->fs->log, op->logs ? &op->body : NULL, op->mark);
	if (op->logs)
		zf_log_body_end(&op->body);
	op->logs = false;
}

int zf_op_join(struct zf_op *op, enum zf_reserve_class class, unsigned int items)
{
	bool wait = op->ctx->may_wait && op->waits >= WAITS_MAX;
	int r;

	op->durable = must_be_durable(op);
	if (op->durable && !op->ctx->may_wait)
		return -EAGAIN;
	if (!op->slowed && zf_txn_is_crowded(op->fs->txn))
		return op->ctx->may_wait ? ZF_OP_WAIT_TURN : -EAGAIN;
	r = zf_trans_join(op->fs->txn, class, items, wait, &op->trans);
	/* After -ENOSPC the operation waits, too, because others may have taken the room. */
	if ((r == -EAGAIN || (r == -ENOSPC && op->waits < WAITS_LAST)) && op->ctx->may_wait) {
		op->class = class;
		op->items = items;
		return ZF_OP_WAIT_ROOM;
	}
	if (r < 0)
		return r;
	op->edits = op->captured = 0;
	op->mark = 0;
	begin_body(op);
	op->unlinked_ino = 0;
	op->now = zf_fs_now(op->fs);
	op->saved_count = op->inode_count;
	for (unsigned int i = 0; i < op->inode_count; i++)
		op->saved[i] = op->inodes[i]->item;
	return 0;
}

static int count_edit(struct zf_op *op, int result)
{
	if (result == 0)
		op->edits++;
	return result;
}

static void capture_set(struct zf_op *op, const struct zf_key *key, const void *value, size_t len)
{
	if (!op->logs)
		return;
	zf_log_body_set(&op->body, key, value, len);
	op->captured++;
}

static int count_set(struct zf_op *op, int result, const struct zf_key *key, const void *value,
		     size_t len)
{
	if (result == 0)
		capture_set(op, key, value, len);
	return count_edit(op, result);
}

int zf_op_insert(struct zf_op *op, const struct zf_key *key, const void *value, size_t len)
{
	int r = zf_tree_insert(op->fs->forest, op->trans.writer, ZF_TREE_FS, key, value, len);

	return count_set(op, r, key, value, len);
}

int zf_op_set(struct zf_op *op, const struct zf_key *key, const void *value, size_t len)
{
	int r = zf_tree_set(op->fs->forest, op->trans.writer, ZF_TREE_FS, key, value, len);

	return count_set(op, r, key, value, len);
}

int zf_op_delete(struct zf_op *op, const struct zf_key *key)
{
	int r = zf_tree_delete(op->fs->forest, op->trans.writer, ZF_TREE_FS, key);

	if (r == 0 && op->logs) {
		zf_log_body_delete(&op->body, key);
		op->captured++;
	}
	return count_edit(op, r);
}

static int count_inode(struct zf_op *op, int result, const struct zf_inode *inode)
{
	struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_INODE, 0);
	struct zf_disk_inode disk;

	if (result == 0) {
		zf_inode_item_describe(inode, &disk);
		capture_set(op, &key, &disk, sizeof(disk));
	}
	return count_edit(op, result);
}

int zf_op_store(struct zf_op *op, struct zf_inode *inode)
{
	/*
	 * The log's operation has the item, but not a size that the file's content gave it. In that
	 * case the item stays noted as changed.
	 */
	bool content = op->content || inode->essential_dirty;
	uint64_t noted = inode->data.changes.item;
	int r = zf_inode_store(inode, &op->trans);

	if (r == 0 && !content)
		inode->data.changes.item = noted;
	return count_inode(op, r, inode);
}

int zf_op_store_new(struct zf_op *op, struct zf_inode *inode)
{
	return count_inode(op, zf_inode_store_new(inode, &op->trans), inode);
}

int zf_op_leave(struct zf_op *op, int result, const char *what)
{
	if (result < 0) {
		for (unsigned int i = 0; i < op->saved_count; i++)
			op->inodes[i]->item = op->saved[i];
		if (op->edits > 0)
			zf_trans_abort(&op->trans, result, what);
	}
	end_body(op, result >= 0);
	zf_trans_leave(&op->trans);
	return result;
}

static void release(struct zf_op *op)
{
	if (op->locked)
		zf_inode_unlock_many(op->inodes, op->inode_count);
	if (op->rename_locked)
		zf_mutex_unlock(&op->fs->rename_lock);
	op->locked = op->rename_locked = false;
	while (op->inode_count > 0)
		zf_inode_put(op->inodes[--op->inode_count]);
}

/*
 * Commits, and then tries everything else that makes room. If nothing helps, a removal may make
 * kept blocks short (zf_trans_join()).
 */
static int wait_for_room(struct zf_op *op)
{
	int r;

	op->waits++;
	do {
		r = zf_txn_wait_for_room(op->fs->txn, op->class, op->items);
	} while (r == -ENOSPC && zf_room_wait(op->fs, op->class, &op->room_search));
	if (r != -ENOSPC || op->class != ZF_RESERVE_FREEING)
		return r;
	r = zf_trans_join(op->fs->txn, op->class, op->items, true, &op->trans);
	if (r == 0)
		zf_trans_leave(&op->trans);
	return r;
}

static int wait_for_turn(struct zf_op *op)
{
	zf_txn_slow_down(op->fs->txn);
	op->slowed = true;
	return 0;
}

static int wait_for_flush(struct zf_op *op)
{
	struct zf_inode *inode;
	int r = zf_inode_get(op->fs, op->flush_ino, &inode);

	if (r == -ESTALE)
		return 0;
	if (r < 0)
		return r;
	r = zf_data_flush(inode, true);
	zf_inode_put(inode);
	op->flushed_ino = op->flush_ino;
	return r;
}

bool zf_op_again(struct zf_op *op, int *result)
{
	int r = *result;

	release(op);
	if (r == ZF_OP_WAIT_ROOM)
		r = wait_for_room(op);
	else if (r == ZF_OP_WAIT_TURN)
		r = wait_for_turn(op);
	else if (r == ZF_OP_WAIT_FLUSH)
		r = op->ctx->may_wait ? wait_for_flush(op) : -EAGAIN;
	else if (r == ZF_OP_CHANGED)
		r = 0;
	else {
		/*
		 * If the kernel has no reference to the inode, only its dirty data keeps it, and is
		 * discarded.
		 */
		if (r == 0 && op->unlinked_ino)
			zf_fs_forget(op->fs, op->unlinked_ino, 0);
		if (r == 0 && op->durable)
			*result = zf_durable_names(op->fs);
		return false;
	}
	if (r == 0)
		return true;
	*result = r;
	return false;
}
