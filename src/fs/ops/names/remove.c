/* SPDX-License-Identifier: MIT */
/* Operations that take a name away: unlink and rmdir. */
#include <errno.h>
#include <sys/stat.h>

#include "alloc/reserve.h"
#include "fs/core/inode_flags.h"
#include "fs/ops/names/names.h"

/* entry 2, ref, orphan, inode, directory */
#define REMOVE_EDITS 6u

static int check_dots(const struct zf_name *name, bool is_rmdir)
{
	if (!zf_name_is_dots(name))
		return 0;
	if (!is_rmdir)
		return -EISDIR;
	return name->len == 1 ? -EINVAL : -ENOTEMPTY;
}

static int check_child(const struct zf_inode *dir, struct zf_inode *child, bool is_rmdir)
{
	bool is_dir = S_ISDIR(child->item.mode);
	int r = zf_inode_check_remove(dir, child);

	if (r < 0)
		return r;
	if (is_rmdir && !is_dir)
		return -ENOTDIR;
	if (!is_rmdir && is_dir)
		return -EISDIR;
	return is_dir ? zf_dir_check_empty(child) : 0;
}

static int remove_edits(struct zf_op *op, struct zf_inode *child, struct zf_dir_place *place,
			struct zf_ref_place *ref)
{
	int r = zf_dir_remove(op, place);

	if (r == 0)
		r = zf_dir_ref_remove(op, ref);
	if (r == 0)
		r = zf_names_drop_link(op, child);
	return r < 0 ? r : zf_names_touch_dir(op, place->dir, -S_ISDIR(child->item.mode));
}

static int remove_once(struct zf_op *op, uint64_t parent, const struct zf_name *name, bool is_rmdir)
{
	struct zf_dir_place place;
	struct zf_ref_place ref;
	struct zf_inode *dir, *child;
	int r = zf_op_check_writable(op);

	if (r == 0)
		r = zf_op_get(op, parent, &dir);
	if (r == 0)
		r = zf_names_get_child(op, dir, name, &child, NULL);
	if (r < 0)
		return r;
	zf_op_lock(op);
	r = zf_names_find_same(dir, name, child, &place);
	if (r == 0)
		r = check_child(dir, child, is_rmdir);
	if (r == 0)
		r = zf_names_find_ref(child, &place, &ref);
	if (r == 0)
		r = zf_op_join(op, ZF_RESERVE_FREEING, REMOVE_EDITS);
	if (r != 0)
		return r;
	r = remove_edits(op, child, &place, &ref);
	return zf_op_leave(op, r, "removing a name");
}

static int remove_name(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent,
		       const char *name, bool is_rmdir)
{
	struct zf_op op = ZF_OP(fs, ctx);
	struct zf_name checked;
	int r = zf_name_check(name, &checked);

	if (r == 0)
		r = check_dots(&checked, is_rmdir);
	if (r < 0)
		return r;
	do {
		r = remove_once(&op, parent, &checked, is_rmdir);
	} while (zf_op_again(&op, &r));
	return r;
}

int zf_fs_unlink(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_UNLINK, parent, 0, 0);
	int r = remove_name(fs, ctx, parent, name, false);

	return (int)zf_trace_ended(began, ZF_OPERATION_UNLINK, parent, r);
}

int zf_fs_rmdir(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_RMDIR, parent, 0, 0);
	int r = remove_name(fs, ctx, parent, name, true);

	return (int)zf_trace_ended(began, ZF_OPERATION_RMDIR, parent, r);
}
