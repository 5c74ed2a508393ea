/* SPDX-License-Identifier: MIT */
/* Operations that give an inode a name, or make an inode without a name. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "alloc/reserve.h"
#include "fs/core/inode_flags.h"
#include "fs/core/item_check.h"
#include "fs/ops/attr/acl.h"
#include "fs/ops/names/make.h"
#include "fs/ops/names/symlink.h"
#include "fs/ops/orphan.h"

/* The inode to be made. */
struct request {
	struct zf_name name; /* len 0: none (zf_fs_tmpfile) */
	mode_t mode;
	uint64_t rdev;
	const char *target; /* of a symbolic link */
	size_t target_len;
};

/* entry 2, inode, ref or orphan, directory */
#define MAKE_EDITS 5u

int zf_make_check_owner(const struct zf_ctx *ctx)
{
	return ctx->uid == UINT32_MAX || ctx->gid == UINT32_MAX ? -EOVERFLOW : 0;
}

static int check_request(const struct request *request)
{
	bool is_link = S_ISLNK(request->mode);

	if (is_link != (request->target != NULL))
		return -EINVAL;
	if (request->target_len > ZF_SYMLINK_MAX)
		return -ENAMETOOLONG;
	if (is_link && request->target_len == 0)
		return -ENOENT;
	return zf_item_has_type(request->mode) ? 0 : -EINVAL;
}

static bool has_name(const struct request *request)
{
	return request->name.len > 0;
}

static int check_parent(struct zf_inode *dir, const struct request *request,
			struct zf_dir_place *place)
{
	int r;

	if (!S_ISDIR(dir->item.mode))
		return -ENOTDIR;
	if (dir->item.nlink == 0)
		return -ENOENT;
	if (!has_name(request))
		return zf_inode_check_add(dir);
	if (zf_name_is_dots(&request->name))
		return -EEXIST;
	r = zf_dir_find(dir, &request->name, place);
	if (r < 0)
		return r;
	if (place->exists)
		return -EEXIST;
	r = zf_inode_check_add(dir);
	if (r < 0)
		return r;
	if (S_ISDIR(request->mode) && dir->item.nlink == UINT32_MAX)
		return -EMLINK;
	return zf_dir_check_room(place);
}

/* Fills in owner, group and all values with which a new inode of this type begins. */
static void fill_item(const struct zf_op *op, const struct zf_inode *dir,
		      const struct request *request, mode_t permissions, struct zf_inode *inode)
{
	struct zf_inode_item *item = &inode->item;
	bool is_dir = S_ISDIR(request->mode);
	bool is_device = S_ISCHR(request->mode) || S_ISBLK(request->mode);

	item->mode = (request->mode & (S_IFMT | S_ISUID | S_ISGID | S_ISVTX)) | permissions;
	item->uid = op->ctx->uid;
	item->gid = op->ctx->gid;
	if (dir->item.mode & S_ISGID) {
		item->gid = dir->item.gid;
		if (is_dir)
			item->mode |= S_ISGID;
	}
	item->nlink = is_dir ? 2 : has_name(request) ? 1 : 0;
	item->rdev = is_device ? request->rdev : 0;
	item->size = request->target_len;
	item->next_cookie = is_dir ? ZF_COOKIE_FIRST : 0;
	item->atime = item->mtime = item->ctime = item->btime = op->now;
	zf_inode_inherit_flags(dir, inode);
	inode->disk_size = item->size;
}

static int name_inode(struct zf_op *op, struct zf_dir_place *place, struct zf_inode *inode)
{
	struct zf_ref_place ref;
	int r = zf_dir_add(op, place, inode->ino, zf_dir_type_of(inode->item.mode));

	if (r < 0)
		return r;
	zf_dir_ref_of_new(inode, place->dir->ino, &place->name, &ref);
	r = zf_dir_ref_add(op, &ref, place->entry.cookie);
	return r < 0 ? r : zf_names_touch_dir(op, place->dir, S_ISDIR(inode->item.mode));
}

static int insert_items(struct zf_op *op, const struct request *request, struct zf_inode *inode,
			struct zf_dir_place *place, struct zf_acl_inherited *acls)
{
	int r = zf_op_store_new(op, inode);

	if (r == 0)
		r = has_name(request) ? name_inode(op, place, inode) : zf_orphan_add(op, inode);
	if (r == 0)
		r = zf_symlink_write(op, inode, request->target, request->target_len);
	return r < 0 ? r : zf_acl_store_inherited(op, inode, acls);
}

/* Joined. On success the inode belongs to the operation, and the kernel's reference is counted. */
static int make_inode(struct zf_op *op, struct zf_inode *dir, const struct request *request,
		      struct zf_dir_place *place, struct zf_acl_inherited *acls,
		      struct zf_attr *ret_attr)
{
	struct zf_inode *inode;
	int r = zf_inode_new(op->fs, &op->trans, request->mode, &inode);

	if (r < 0)
		return r;
	zf_op_adopt(op, inode);
	fill_item(op, dir, request, acls->permissions, inode);
	r = zf_inode_kernel_ref(op->fs, inode->ino);
	if (r == 0) {
		r = insert_items(op, request, inode, place, acls);
		if (r < 0)
			zf_fs_forget(op->fs, inode->ino, 1);
	}
	if (r < 0) {
		zf_inode_bury(inode);
		return r;
	}
	atomic_fetch_add(&zf_txn_counters(op->fs->txn)->inode_count, 1);
	zf_inode_to_attr(inode, ret_attr);
	return 0;
}

static int make_once(struct zf_op *op, uint64_t parent, const struct request *request,
		     struct zf_attr *ret_attr)
{
	struct zf_acl_inherited acls;
	struct zf_dir_place place;
	struct zf_inode *dir;
	int r = zf_op_check_writable(op);

	if (r == 0)
		r = zf_op_get(op, parent, &dir);
	if (r < 0)
		return r;
	zf_op_lock(op);
	r = check_parent(dir, request, &place);
	if (r == 0)
		r = zf_acl_inherit(dir, request->mode, op->ctx->umask, &acls);
	if (r == 0)
		r = zf_op_join(op, ZF_RESERVE_NORMAL,
			       MAKE_EDITS + zf_symlink_edits(op->fs, request->target_len) +
				       acls.edits);
	if (r != 0)
		return r;
	r = make_inode(op, dir, request, &place, &acls, ret_attr);
	return zf_op_leave(op, r, "making an inode");
}

static int make(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent,
		const struct request *request, struct zf_attr *ret_attr)
{
	struct zf_op op = ZF_OP(fs, ctx);
	int r = zf_make_check_owner(ctx);

	if (r == 0)
		r = check_request(request);
	if (r < 0)
		return r;
	do {
		r = make_once(&op, parent, request, ret_attr);
	} while (zf_op_again(&op, &r));
	return r;
}

static int make_node(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name,
		     mode_t mode, uint64_t rdev, const char *target, struct zf_attr *ret_attr)
{
	struct request request = {
		.mode = mode & (S_IFMT | 07777),
		.rdev = rdev,
		.target = target,
		.target_len = target ? strlen(target) : 0,
	};
	int r = zf_name_check(name, &request.name);

	return r < 0 ? r : make(fs, ctx, parent, &request, ret_attr);
}

int zf_fs_make(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name,
	       mode_t mode, uint64_t rdev, const char *target, struct zf_attr *ret_attr)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_MAKE, parent, 0, 0);
	int r = make_node(fs, ctx, parent, name, mode, rdev, target, ret_attr);

	return (int)zf_trace_ended(began, ZF_OPERATION_MAKE, r == 0 ? ret_attr->ino : parent, r);
}

static int make_tmpfile(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, mode_t mode,
			struct zf_attr *ret_attr)
{
	struct request request = {.mode = S_IFREG | (mode & 07777)};

	return make(fs, ctx, parent, &request, ret_attr);
}

int zf_fs_tmpfile(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, mode_t mode,
		  struct zf_attr *ret_attr)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_TMPFILE, parent, 0, 0);
	int r = make_tmpfile(fs, ctx, parent, mode, ret_attr);

	return (int)zf_trace_ended(began, ZF_OPERATION_TMPFILE, r == 0 ? ret_attr->ino : parent, r);
}

/* ---- whiteout ---- */

/* Joined. The kernel gets no reference to the new inode. */
static int whiteout_edits(struct zf_op *op, struct zf_dir_place *place, struct zf_inode *inode,
			  const struct zf_acl_inherited *acls)
{
	struct zf_ref_place ref;
	int r = zf_op_store_new(op, inode);

	if (r == 0)
		r = zf_dir_replace(op, place, inode->ino, DT_CHR);
	if (r < 0)
		return r;
	zf_dir_ref_of_new(inode, place->dir->ino, &place->name, &ref);
	r = zf_dir_ref_add(op, &ref, place->entry.cookie);
	return r < 0 ? r : zf_acl_store_inherited(op, inode, acls);
}

int zf_make_whiteout(struct zf_op *op, struct zf_dir_place *place,
		     const struct zf_acl_inherited *acls)
{
	const struct request request = {.name = place->name, .mode = ZF_WHITEOUT_MODE};
	struct zf_inode *inode;
	int r = zf_inode_new(op->fs, &op->trans, request.mode, &inode);

	if (r < 0)
		return r;
	zf_op_adopt(op, inode);
	fill_item(op, place->dir, &request, acls->permissions, inode);
	r = whiteout_edits(op, place, inode, acls);
	if (r < 0) {
		zf_inode_bury(inode);
		return r;
	}
	atomic_fetch_add(&zf_txn_counters(op->fs->txn)->inode_count, 1);
	return 0;
}

/* ---- link ---- */

/* entry 2, ref, orphan, inode, directory */
#define LINK_EDITS 6u

static int check_link(struct zf_inode *dir, const struct zf_inode *inode,
		      const struct zf_name *name, struct zf_dir_place *place)
{
	int r;

	if (S_ISDIR(inode->item.mode))
		return -EPERM;
	if (dir->item.nlink == 0 && S_ISDIR(dir->item.mode))
		return -ENOENT;
	if (zf_name_is_dots(name))
		return -EEXIST;
	r = zf_dir_find(dir, name, place);
	if (r < 0)
		return r;
	if (place->exists)
		return -EEXIST;
	r = zf_inode_check_add(dir);
	if (r == 0)
		r = zf_inode_check_change(inode);
	if (r == 0)
		r = zf_inode_check_project(dir, inode);
	if (r < 0)
		return r;
	if (inode->item.nlink >= ZF_LINK_MAX)
		return -EMLINK;
	return zf_dir_check_room(place);
}

static int find_ref_room(struct zf_inode *dir, struct zf_inode *inode, const struct zf_name *name,
			 struct zf_ref_place *ref)
{
	int r = zf_dir_ref_find(inode, dir->ino, name, ref);

	if (r == 0 && ref->exists)
		return zf_names_corrupt(inode->fs, dir,
					"an inode has a ref for a name that does not exist");
	return r < 0 ? r : zf_dir_ref_check_room(ref);
}

static int link_edits(struct zf_op *op, struct zf_inode *inode, struct zf_dir_place *place,
		      struct zf_ref_place *ref)
{
	int r = zf_dir_add(op, place, inode->ino, zf_dir_type_of(inode->item.mode));

	if (r == 0)
		r = zf_dir_ref_add(op, ref, place->entry.cookie);
	if (r == 0 && inode->item.nlink == 0)
		r = zf_orphan_remove(op, inode);
	if (r < 0)
		return r;
	inode->item.nlink++;
	inode->item.ctime = op->now;
	r = zf_op_store(op, inode);
	return r < 0 ? r : zf_names_touch_dir(op, place->dir, 0);
}

static int link_once(struct zf_op *op, uint64_t ino, uint64_t parent, const struct zf_name *name,
		     struct zf_attr *ret_attr)
{
	struct zf_dir_place place;
	struct zf_ref_place ref;
	struct zf_inode *dir, *inode;
	int r = zf_op_check_writable(op);

	if (r == 0)
		r = zf_op_get(op, parent, &dir);
	if (r == 0)
		r = zf_op_get(op, ino, &inode);
	if (r < 0)
		return r;
	zf_op_lock(op);
	r = check_link(dir, inode, name, &place);
	if (r == 0)
		r = find_ref_room(dir, inode, name, &ref);
	if (r == 0)
		r = zf_op_join(op, ZF_RESERVE_NORMAL, LINK_EDITS);
	if (r != 0)
		return r;
	r = zf_inode_kernel_ref(op->fs, ino);
	if (r == 0) {
		r = link_edits(op, inode, &place, &ref);
		if (r < 0)
			zf_fs_forget(op->fs, ino, 1);
	}
	if (r == 0)
		zf_inode_to_attr(inode, ret_attr);
	return zf_op_leave(op, r, "linking an inode");
}

static int link_inode(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t parent,
		      const char *name, struct zf_attr *ret_attr)
{
	struct zf_op op = ZF_OP(fs, ctx);
	struct zf_name checked;
	int r = zf_name_check(name, &checked);

	if (r < 0)
		return r;
	do {
		r = link_once(&op, ino, parent, &checked, ret_attr);
	} while (zf_op_again(&op, &r));
	return r;
}

int zf_fs_link(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t parent,
	       const char *name, struct zf_attr *ret_attr)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_LINK, ino, 0, 0);
	int r = link_inode(fs, ctx, ino, parent, name, ret_attr);

	return (int)zf_trace_ended(began, ZF_OPERATION_LINK, ino, r);
}
