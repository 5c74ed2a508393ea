/* SPDX-License-Identifier: MIT */
/* Operations on extended attributes. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "alloc/reserve.h"
#include "fs/core/inode_flags.h"
#include "fs/core/item_check.h"
#include "fs/ops/attr/acl.h"

/* ---- set ---- */

struct request {
	struct zf_name name;
	const void *value;
	size_t len;
	int flags;
	enum zf_acl_kind acl_kind;
	struct zf_acl acl;
};

static int check_request(const char *name, struct request *request)
{
	int r = zf_xattr_check_name(name, &request->name);

	if (r < 0)
		return r;
	if (request->flags & ~(XATTR_CREATE | XATTR_REPLACE | ZF_XATTR_KILL_SGID))
		return -EINVAL;
	if (request->len > ZF_XATTR_VALUE_MAX)
		return -E2BIG;
	request->acl_kind = zf_acl_kind_of(&request->name);
	if (request->acl_kind == ZF_ACL_NONE)
		return 0;
	return zf_acl_decode(request->value, request->len, &request->acl);
}

/* Checks that this type of inode may have the list. */
static int check_acl(const struct zf_inode *inode, const struct request *request)
{
	if (request->acl_kind == ZF_ACL_NONE)
		return 0;
	if (S_ISLNK(inode->item.mode))
		return -EOPNOTSUPP;
	if (request->acl_kind == ZF_ACL_DEFAULT && !S_ISDIR(inode->item.mode) &&
	    request->acl.count > 0)
		return -EACCES;
	return 0;
}

/*
 * Applies an access list to the mode. True: the mode then says everything, so no list is kept.
 * ZF_XATTR_KILL_SGID clears setgid, as chmod does, because a caller outside the group must not gain
 * a setgid file that it may write.
 */
static bool apply_acl(const struct request *request, uint32_t *mode)
{
	if (request->acl_kind == ZF_ACL_NONE)
		return false;
	if (request->acl.count == 0)
		return true;
	if (request->acl_kind == ZF_ACL_DEFAULT)
		return false;
	if (request->flags & ZF_XATTR_KILL_SGID)
		*mode &= ~(uint32_t)S_ISGID;
	return zf_acl_to_mode(&request->acl, mode);
}

static int set_edits(struct zf_op *op, struct zf_xattr_place *place, const struct request *request,
		     bool remove)
{
	int r = 0;

	if (!remove)
		r = zf_xattr_put(op, place, request->value, request->len);
	else if (place->exists)
		r = zf_xattr_delete(op, place);
	if (r < 0)
		return r;
	place->inode->item.ctime = op->now;
	return zf_op_store(op, place->inode);
}

static int set_once(struct zf_op *op, uint64_t ino, const struct request *request)
{
	struct zf_xattr_place place;
	struct zf_inode *inode;
	unsigned int edits = 0;
	uint32_t mode;
	bool remove;
	int r = zf_op_begin(op, ino, &inode);

	if (r < 0)
		return r;
	r = zf_inode_check_change(inode);
	if (r == 0)
		r = check_acl(inode, request);
	if (r == 0)
		r = zf_xattr_find(inode, &request->name, &place);
	if (r < 0)
		return r;
	if ((request->flags & XATTR_CREATE) && place.exists)
		return -EEXIST;
	if ((request->flags & XATTR_REPLACE) && !place.exists)
		return -ENODATA;
	mode = inode->item.mode;
	remove = apply_acl(request, &mode);
	if (remove)
		edits = zf_xattr_delete_edits(&place);
	else
		r = zf_xattr_prepare_put(&place, request->len, &edits);
	if (r == 0)
		r = zf_op_join(op, remove ? ZF_RESERVE_FREEING : ZF_RESERVE_NORMAL, edits + 1);
	if (r != 0)
		return r;
	inode->item.mode = mode;
	r = set_edits(op, &place, request, remove);
	return zf_op_leave(op, r, "setting an attribute");
}

static int set_xattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, const char *name,
		     const void *value, size_t len, int flags)
{
	struct request request = {.value = value, .len = len, .flags = flags};
	struct zf_op op = ZF_OP(fs, ctx);
	int r = check_request(name, &request);

	if (r < 0)
		return r;
	do {
		r = set_once(&op, ino, &request);
	} while (zf_op_again(&op, &r));
	return r;
}

int zf_fs_setxattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, const char *name,
		   const void *value, size_t len, int flags)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_SETXATTR, ino, 0, len);
	int r = set_xattr(fs, ctx, ino, name, value, len, flags);

	return (int)zf_trace_ended(began, ZF_OPERATION_SETXATTR, ino, r);
}

/* ---- remove ---- */

/* `by_write`: the removal is part of a write, which append-only files allow. */
static int remove_once(struct zf_op *op, uint64_t ino, const struct zf_name *name, bool by_write)
{
	struct zf_xattr_place place;
	struct zf_inode *inode;
	int r = zf_op_begin(op, ino, &inode);

	if (r < 0)
		return r;
	r = by_write ? 0 : zf_inode_check_change(inode);
	if (r == 0 && zf_acl_kind_of(name) != ZF_ACL_NONE && S_ISLNK(inode->item.mode))
		r = -EOPNOTSUPP;
	if (r == 0)
		r = zf_xattr_find(inode, name, &place);
	if (r == 0 && !place.exists)
		r = -ENODATA;
	if (r == 0 && by_write)
		r = zf_inode_check_write(inode, inode->item.size);
	if (r == 0)
		r = zf_op_join(op, ZF_RESERVE_FREEING, zf_xattr_delete_edits(&place) + 1);
	if (r != 0)
		return r;
	r = zf_xattr_delete(op, &place);
	if (r == 0) {
		inode->item.ctime = op->now;
		r = zf_op_store(op, inode);
	}
	return zf_op_leave(op, r, "removing an attribute");
}

static int remove_xattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
			const struct zf_name *name, bool by_write)
{
	struct zf_op op = ZF_OP(fs, ctx);
	int r;

	do {
		r = remove_once(&op, ino, name, by_write);
	} while (zf_op_again(&op, &r));
	return r;
}

static int remove_named(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, const char *name)
{
	struct zf_name checked;
	int r = zf_xattr_check_name(name, &checked);

	if (r == 0)
		r = remove_xattr(fs, ctx, ino, &checked, false);
	/*
	 * On Linux it is no error to remove a list that does not exist, and setfacl relies on that.
	 */
	if (r == -ENODATA && zf_acl_kind_of(&checked) != ZF_ACL_NONE)
		r = 0;
	return r;
}

int zf_fs_removexattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, const char *name)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_REMOVEXATTR, ino, 0, 0);
	int r = remove_named(fs, ctx, ino, name);

	return (int)zf_trace_ended(began, ZF_OPERATION_REMOVEXATTR, ino, r);
}

int zf_xattr_remove_capability(struct zf_inode *inode, const struct zf_ctx *ctx)
{
	static const struct zf_name name = {"security.capability", 19};
	int r;

	/* If there is none, zf_xattr_find() has set the bit in inode->absent. */
	r = remove_xattr(inode->fs, ctx, inode->ino, &name, true);
	return r == -ENODATA ? 0 : r;
}

/* ---- get ---- */

static ssize_t get_locked(struct zf_inode *inode, const struct zf_name *name, void *value,
			  size_t size)
{
	struct zf_xattr_place place;
	int r = zf_xattr_find(inode, name, &place);

	if (r < 0)
		return r;
	if (!place.exists)
		return -ENODATA;
	return size == 0 ? (ssize_t)place.value_len : zf_xattr_read(&place, value, size);
}

static ssize_t get_xattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, const char *name,
			 void *value, size_t size)
{
	struct zf_name checked;
	struct zf_inode *inode;
	ssize_t r = zf_xattr_check_name(name, &checked);

	if (r == 0)
		r = zf_inode_get_read(fs, ino, &inode);
	if (r < 0)
		return r;
	r = get_locked(inode, &checked, value, size);
	zf_inode_put_read(inode);
	return r;
}

ssize_t zf_fs_getxattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, const char *name,
		       void *value, size_t size)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_GETXATTR, ino, 0, size);
	ssize_t r = get_xattr(fs, ctx, ino, name, value, size);

	return (ssize_t)zf_trace_ended(began, ZF_OPERATION_GETXATTR, ino, r);
}

/* ---- list ---- */

struct listing {
	struct zf_item_check check;
	char *list;
	size_t size; /* 0: only count */
	size_t len;
	bool trusted; /* lists names of "trusted.", too */
};

static bool is_hidden(const struct listing *listing, const char *name, size_t len)
{
	return !listing->trusted && len > 8 && memcmp(name, "trusted.", 8) == 0;
}

static int list_name(struct listing *listing, const char *name, size_t len)
{
	if (is_hidden(listing, name, len))
		return 0;
	if (listing->size > 0) {
		if (listing->size - listing->len < len + 1)
			return -ERANGE;
		memcpy(listing->list + listing->len, name, len);
		listing->list[listing->len + len] = '\0';
	}
	listing->len += len + 1;
	return 0;
}

static int list_item(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	struct listing *listing = arg;
	const uint8_t *bytes = value;
	int r = zf_item_check(&listing->check, ZF_TREE_FS, key, value, len);

	for (size_t at = 0; r == 0 && at < len; at += zf_xattr_entry_len(bytes + at)) {
		const struct zf_disk_xattr *xattr = (const void *)(bytes + at);

		r = list_name(listing, (const char *)(xattr + 1), zf_le16_get(xattr->name_len));
	}
	return r;
}

static ssize_t list_xattrs(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, char *list,
			   size_t size)
{
	struct zf_key from = ZF_KEY(ino, ZF_KEY_XATTR, 0);
	struct zf_key to = ZF_KEY(ino, ZF_KEY_XATTR, UINT64_MAX);
	/*
	 * The kernel lets only a process with CAP_SYS_ADMIN read attributes of "trusted.", but
	 * leaves it to the filesystem to hide their names.
	 */
	struct listing listing = {.list = list, .size = size, .trusted = ctx->uid == 0};
	struct zf_inode *inode;
	int r = zf_inode_get_read(fs, ino, &inode);

	if (r < 0)
		return r;
	zf_fs_get_item_check(fs, &listing.check);
	r = zf_tree_scan(fs->forest, ZF_TREE_FS, &from, &to, list_item, &listing);
	zf_inode_put_read(inode);
	return r < 0 ? r : (ssize_t)listing.len;
}

ssize_t zf_fs_listxattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, char *list,
			size_t size)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_LISTXATTR, ino, 0, size);
	ssize_t r = list_xattrs(fs, ctx, ino, list, size);

	return (ssize_t)zf_trace_ended(began, ZF_OPERATION_LISTXATTR, ino, r);
}
