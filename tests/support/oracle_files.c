/* SPDX-License-Identifier: MIT */
/* Operations on attributes and data, as Linux defines them. */
#include "support/oracle_impl.h"

#include <assert.h>
#include <errno.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/bits.h"

static void kill_suidgid(struct oracle_inode *inode, const struct zf_op *op)
{
	if (S_ISDIR(inode->mode))
		return;
	inode->mode &= ~(uint32_t)S_ISUID;
	if ((inode->mode & S_IXGRP) || (op->uid != 0 && op->gid != inode->gid))
		inode->mode &= ~(uint32_t)S_ISGID;
}

/* ---- attributes ---- */

static void set_times(struct oracle_inode *inode, const struct zf_setattr *set, int64_t now)
{
	if (set->valid & ZF_SET_ATIME)
		inode->atime = set->atime.seconds * 1000000000 + set->atime.nanoseconds;
	if (set->valid & ZF_SET_ATIME_NOW)
		inode->atime = now;
	if (set->valid & (ZF_SET_MTIME_NOW | ZF_SET_SIZE))
		inode->mtime = now;
	if (set->valid & ZF_SET_MTIME)
		inode->mtime = set->mtime.seconds * 1000000000 + set->mtime.nanoseconds;
	if (set->valid & (ZF_SET_ATIME | ZF_SET_ATIME_NOW))
		inode->atime_loose = false;
	if (set->valid & (ZF_SET_MTIME | ZF_SET_MTIME_NOW | ZF_SET_SIZE))
		inode->mtime_loose = false;
}

static void truncate_file(struct oracle *oracle, struct oracle_inode *inode, uint64_t size)
{
	uint64_t old = inode->data.size;

	/* A file that grows writes zeroes after its old end into the last block: unsettled data. */
	if (oracle->keep_old && size > old && old % ZF_BLOCK_SIZE != 0) {
		inode->unsettled++;
		inode->unsettled_data++;
	}
	oracle_data_truncate(&inode->data, size, oracle->keep_old && inode->unsettled > 0);
}

static int64_t check_setattr(const struct oracle_inode *inode, const struct zf_setattr *set)
{
	if (set->valid == (ZF_SET_ATIME_NOW | ZF_SET_MTIME_NOW))
		return inode->flags & ZF_INODE_IMMUTABLE ? -EPERM : 0;
	return oracle_check_change(inode);
}

int64_t oracle_setattr(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);
	const struct zf_setattr *set = &op->set;

	if ((set->valid & ZF_SET_SIZE) && set->size > ZF_FILE_SIZE_MAX)
		return -EFBIG;
	if (!inode)
		return -ESTALE;
	if (set->valid & ZF_SET_SIZE) {
		if (S_ISDIR(inode->mode))
			return -EISDIR;
		if (!S_ISREG(inode->mode))
			return -EINVAL;
	}
	if (check_setattr(inode, set) < 0)
		return -EPERM;
	if (set->valid & ZF_SET_SIZE)
		truncate_file(oracle, inode, set->size);
	if (set->valid & (ZF_SET_UID | ZF_SET_GID | ZF_SET_KILL_SUIDGID))
		kill_suidgid(inode, op);
	if (set->valid & ZF_SET_MODE)
		inode->mode = (inode->mode & S_IFMT) | (set->mode & 07777);
	if (set->valid & ZF_SET_MODE)
		oracle_acl_chmod(inode);
	if (set->valid & ZF_SET_UID)
		inode->uid = set->uid;
	if (set->valid & ZF_SET_GID)
		inode->gid = set->gid;
	set_times(inode, set, oracle->now);
	oracle_change(oracle, inode);
	if (op->durable && (set->valid & ZF_SET_SIZE))
		oracle_settle(inode);
	return 0;
}

int64_t oracle_setflags(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);
	uint32_t flags = op->flags;

	if (flags & ~(uint32_t)ZF_INODE_FLAGS_DIR)
		return -EOPNOTSUPP;
	if (!inode)
		return -ESTALE;
	if (S_ISREG(inode->mode))
		flags &= ZF_INODE_FLAGS_FILE;
	else if (!S_ISDIR(inode->mode))
		flags &= ZF_INODE_FLAGS_OTHER;
	if ((inode->flags & flags & ZF_INODE_IMMUTABLE) && inode->flags != flags)
		return -EPERM;
	inode->flags = flags;
	oracle_change(oracle, inode);
	return 0;
}

static struct oracle_xattr *find_xattr(struct oracle_inode *inode, const char *name)
{
	for (unsigned int i = 0; i < inode->xattr_count; i++) {
		if (strcmp(inode->xattrs[i].name, name) == 0)
			return &inode->xattrs[i];
	}
	return NULL;
}

int64_t oracle_setxattr(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);
	struct oracle_xattr *xattr;

	if (oracle_acl_is_name(op->name))
		return oracle_acl_set(oracle, op);
	if (op->len > ZF_XATTR_VALUE_MAX)
		return -E2BIG;
	if (!inode)
		return -ESTALE;
	if (oracle_check_change(inode) < 0)
		return -EPERM;
	xattr = find_xattr(inode, op->name);
	if (xattr && (op->flags & XATTR_CREATE))
		return -EEXIST;
	if (!xattr && (op->flags & XATTR_REPLACE))
		return -ENODATA;
	if (!xattr) {
		assert(inode->xattr_count < ORACLE_XATTRS_MAX);
		xattr = &inode->xattrs[inode->xattr_count++];
	}
	*xattr = (struct oracle_xattr){
		.name = op->name, .write = op->number, .len = (uint32_t)op->len};
	oracle_change(oracle, inode);
	return 0;
}

int64_t oracle_getxattr(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);
	const struct oracle_xattr *xattr;

	if (oracle_acl_is_name(op->name))
		return oracle_acl_get(oracle, op);
	if (!inode)
		return -ESTALE;
	xattr = find_xattr(inode, op->name);
	if (!xattr)
		return -ENODATA;
	if (op->len > 0 && op->len < xattr->len)
		return -ERANGE;
	return xattr->len;
}

int64_t oracle_removexattr(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);
	struct oracle_xattr *xattr;

	if (oracle_acl_is_name(op->name))
		return oracle_acl_remove(oracle, op);
	if (!inode)
		return -ESTALE;
	if (oracle_check_change(inode) < 0)
		return -EPERM;
	xattr = find_xattr(inode, op->name);
	if (!xattr)
		return -ENODATA;
	*xattr = inode->xattrs[--inode->xattr_count];
	oracle_change(oracle, inode);
	return 0;
}

/* ---- data ---- */

static int64_t find_file(struct oracle *oracle, uint64_t ino, struct oracle_inode **ret_inode)
{
	*ret_inode = oracle_find(oracle, ino);
	if (!*ret_inode)
		return -ESTALE;
	if (S_ISDIR((*ret_inode)->mode))
		return -EISDIR;
	return S_ISREG((*ret_inode)->mode) ? 0 : -EINVAL;
}

int64_t oracle_read(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode;
	int64_t r = find_file(oracle, op->ino, &inode);

	if (r < 0)
		return r;
	if (op->len > 0 && op->offset < ZF_FILE_SIZE_MAX)
		oracle_access(oracle, inode);
	if (op->offset >= inode->data.size)
		return 0;
	return (int64_t)(op->len < inode->data.size - op->offset ? op->len
								 : inode->data.size - op->offset);
}

static int64_t check_write(const struct oracle_inode *inode, uint64_t offset)
{
	if (inode->flags & ZF_INODE_IMMUTABLE)
		return -EPERM;
	return (inode->flags & ZF_INODE_APPEND) && offset < inode->data.size ? -EPERM : 0;
}

int64_t oracle_write(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode;
	uint64_t offset, len = op->len;
	int64_t r = find_file(oracle, op->ino, &inode);

	if (r < 0 || len == 0)
		return r;
	offset = op->flags & ZF_WRITE_APPEND ? inode->data.size : op->offset;
	/* The kernel checks the end first, except of appends, whose end it does not know. */
	if (offset >= ZF_FILE_SIZE_MAX ||
	    ((op->flags & ZF_WRITE_APPEND) && len > ZF_FILE_SIZE_MAX - offset))
		return -EFBIG;
	if (check_write(inode, offset) < 0)
		return -EPERM;
	len = zf_min_u64(len, ZF_FILE_SIZE_MAX - offset);
	/* The write ran out of room in the middle: the bytes written count. */
	if (op->result > 0 && (uint64_t)op->result < len)
		len = (uint64_t)op->result;
	oracle_data_write(&inode->data, offset, len, op->number, oracle->keep_old);
	oracle_change_content(oracle, inode, op, true);
	if (op->flags & ZF_WRITE_KILL_SUIDGID)
		kill_suidgid(inode, op);
	/* A durable write in place does not make the times durable. */
	if (op->durable && !inode->data.in_place)
		oracle_settle(inode);
	else if (op->durable || (op->flags & ZF_WRITE_DSYNC))
		oracle_settle_content(inode);
	return (int64_t)len;
}

static bool overlap(uint64_t a, uint64_t b, uint64_t len)
{
	return a < b + len && b < a + len;
}

int64_t oracle_copy(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *from, *to;
	uint64_t len = op->len, end;
	int64_t r = find_file(oracle, op->from_ino, &from);

	if (r == 0)
		r = find_file(oracle, op->ino, &to);
	if (r < 0 || op->from_offset >= from->data.size)
		return r;
	len = zf_min_u64(len, from->data.size - op->from_offset);
	if (len == 0)
		return 0;
	if (op->offset >= ZF_FILE_SIZE_MAX)
		return -EFBIG;
	len = zf_min_u64(len, ZF_FILE_SIZE_MAX - op->offset);
	if (from == to && overlap(op->from_offset, op->offset, len))
		return -EINVAL;
	if (check_write(to, op->offset) < 0)
		return -EPERM;
	if (op->result > 0 && (uint64_t)op->result < len)
		len = (uint64_t)op->result;
	oracle_data_copy(&to->data, op->offset, &from->data, op->from_offset, len,
			 oracle->keep_old);
	end = op->offset + len;
	/* The last block may be shared whole: what was allocated after the end in it is lost. */
	if (end == to->data.size)
		oracle_data_zero(&to->data, end, zf_align_up(end, ZF_BLOCK_SIZE), 0,
				 oracle->keep_old);
	oracle_change_content(oracle, to, op, true);
	if (op->uid != 0)
		kill_suidgid(to, op);
	if (op->durable)
		oracle_settle(to);
	return (int64_t)len;
}

/* ---- fallocate ---- */

#define WRITES_ZEROES (FALLOC_FL_ZERO_RANGE | ZF_FALLOC_WRITE_ZEROES)

static int64_t check_fallocate(struct oracle *oracle, const struct zf_op *op,
			       struct oracle_inode **ret_inode)
{
	int mode = (int)op->flags & ~FALLOC_FL_KEEP_SIZE;

	if (op->len == 0)
		return -EINVAL;
	if (op->len > ZF_FILE_SIZE_MAX - op->offset)
		return -EFBIG;
	if (mode != 0 && mode != FALLOC_FL_ZERO_RANGE && op->flags != ZF_FALLOC_WRITE_ZEROES &&
	    op->flags != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE))
		return -EOPNOTSUPP;
	*ret_inode = oracle_find(oracle, op->ino);
	if (!*ret_inode)
		return -ESTALE;
	if (S_ISDIR((*ret_inode)->mode))
		return -EISDIR;
	if (!S_ISREG((*ret_inode)->mode))
		return -ENODEV;
	/* Allocation alone does not change content. */
	if (mode != 0)
		return oracle_check_change(*ret_inode);
	return check_write(*ret_inode, (*ret_inode)->data.size);
}

/* In partial blocks at the edges zeroes are written like other data. */
static bool writes_edges(const struct zf_op *op)
{
	return !zf_is_aligned(op->offset | (op->offset + op->len), ZF_BLOCK_SIZE);
}

/* A punch that reaches the end of the file may free all of its last block, with zeroes written
 * after the end. */
static void zero(struct oracle *oracle, struct oracle_inode *inode, const struct zf_op *op)
{
	uint32_t write = op->flags & WRITES_ZEROES ? ORACLE_ZEROES : 0;
	uint64_t end = op->offset + op->len;

	if (write == 0 && end >= inode->data.size)
		end = zf_align_up(end, ZF_BLOCK_SIZE);
	oracle_data_zero(&inode->data, op->offset, end, write, oracle->keep_old);
}

static void grow(struct oracle *oracle, struct oracle_inode *inode, uint64_t size)
{
	struct oracle_data *data = &inode->data;

	data->size = size;
	data->size_max = oracle->keep_old ? zf_max_u64(data->size_max, size) : size;
	if (!oracle->keep_old)
		data->size_min = size;
}

/* The operation writes zeroes at an edge, or, like a truncation, after the old end. */
static bool has_data(const struct oracle_inode *inode, const struct zf_op *op)
{
	return writes_edges(op) || inode->data.size % ZF_BLOCK_SIZE != 0;
}

int64_t oracle_fallocate(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode;
	int64_t r = check_fallocate(oracle, op, &inode);
	bool data;

	if (r < 0)
		return r;
	data = has_data(inode, op);
	if (op->flags & (FALLOC_FL_PUNCH_HOLE | WRITES_ZEROES))
		zero(oracle, inode, op);
	inode->data.in_place |= oracle->in_place && (op->flags & ZF_FALLOC_WRITE_ZEROES);
	if (!(op->flags & FALLOC_FL_KEEP_SIZE) && op->offset + op->len > inode->data.size)
		grow(oracle, inode, op->offset + op->len);
	if (op->uid != 0)
		kill_suidgid(inode, op);
	oracle_change_content(oracle, inode, op, data);
	inode->times_loose = oracle->keep_old;
	if (op->durable)
		oracle_settle(inode);
	return 0;
}

void oracle_apply_in_place(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);
	uint64_t end = op->offset + op->len;

	if (!inode || !inode->data.in_place)
		return;
	if (op->kind == OP_WRITE && !(op->flags & ZF_WRITE_APPEND))
		oracle_data_maybe(&inode->data, op->offset, end, op->number);
	else if (op->kind == OP_FALLOCATE && (op->flags & (FALLOC_FL_PUNCH_HOLE | WRITES_ZEROES)))
		oracle_data_maybe(&inode->data, op->offset, end, 0);
}

void oracle_copy_in_place(struct oracle *oracle, struct oracle *then, const struct zf_op *op)
{
	struct oracle_inode *to = oracle_find(oracle, op->ino);
	const struct oracle_inode *from = oracle_find(then, op->from_ino);
	uint64_t len = op->len;

	if (!to || !to->data.in_place || !from || op->from_offset >= from->data.size)
		return;
	len = zf_min_u64(len, from->data.size - op->from_offset);
	oracle_data_maybe_copied(&to->data, op->offset, &from->data, op->from_offset, len);
}

/* A seek may report data in units of blocks, but must not report data as a hole. */
static bool seek_is_right(const struct oracle_data *data, const struct zf_op *op)
{
	uint64_t found = (uint64_t)op->result;

	if (op->result < 0)
		return op->result == -ENXIO && op->flags == SEEK_DATA &&
		       oracle_data_is_zero(data, op->offset, data->size);
	if (found < op->offset || found > data->size)
		return false;
	if (op->flags == SEEK_DATA)
		return found < data->size && oracle_data_is_zero(data, op->offset, found);
	return found == data->size || oracle_data_next(data, found) > found;
}

int64_t oracle_seek(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode;
	int64_t r = find_file(oracle, op->ino, &inode);

	if (r < 0)
		return r;
	if (op->offset >= inode->data.size)
		return -ENXIO;
	return seek_is_right(&inode->data, op) ? op->result : (int64_t)op->offset;
}

int64_t oracle_fsync(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);

	if (!inode)
		return -ESTALE;
	/* fdatasync(2) may leave the times behind. */
	if (op->flags)
		oracle_settle_content(inode);
	else
		oracle_settle(inode);
	return 0;
}

int64_t oracle_syncfs(struct oracle *oracle, const struct zf_op *op)
{
	oracle_settle_all(oracle);
	return 0;
}

/* ---- the steps of a commit ---- */

int64_t oracle_freeze(struct oracle *oracle, const struct zf_op *op)
{
	oracle->frozen = op->number;
	return 0;
}

/* A change without data was in the transaction at once. It is not known when data landed. */
int64_t oracle_commit(struct oracle *oracle, const struct zf_op *op)
{
	for (unsigned int i = 0; i < oracle->count; i++) {
		struct oracle_inode *inode = oracle->all[i];

		if (inode->unsettled > 0 && inode->unsettled_data == 0 &&
		    inode->last_content < oracle->frozen)
			oracle_settle(inode);
	}
	return 0;
}
