/* SPDX-License-Identifier: MIT */
/* Operations that read names: lookup, readdir, readlink. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/core/access.h"
#include "fs/core/item_check.h"
#include "fs/ops/names/names.h"
#include "fs/ops/names/symlink.h"

/*
 * The kernel looks up "." when it knows only an inode's number, as from a file handle. The inode
 * may be of any type. An inode without a name is not found, because it will be deleted.
 */
static int find_dots(struct zf_inode *inode, const struct zf_name *name, uint64_t *ret_ino)
{
	*ret_ino = inode->ino;
	if (name->len == 1)
		return inode->item.nlink > 0 ? 0 : -ESTALE;
	return S_ISDIR(inode->item.mode) ? zf_dir_ref_parent(inode, ret_ino) : -ENOTDIR;
}

/* Finds the inode number of a name. Directory locked. */
static int find_ino(struct zf_inode *dir, const struct zf_name *name, uint64_t *ret_ino)
{
	struct zf_dir_place place;
	int r;

	if (zf_name_is_dots(name))
		return find_dots(dir, name, ret_ino);
	r = zf_dir_find(dir, name, &place);
	if (r < 0)
		return r;
	if (!place.exists)
		return -ENOENT;
	*ret_ino = place.entry.ino;
	return 0;
}

static int look_up(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name,
		   struct zf_attr *ret_attr)
{
	struct zf_name checked;
	struct zf_inode *dir, *child;
	uint64_t ino;
	int r = zf_name_check(name, &checked);

	if (r == 0)
		r = zf_inode_get(fs, parent, &dir);
	if (r < 0)
		return r;
	zf_rwlock_rdlock(&dir->lock);
	r = find_ino(dir, &checked, &ino);
	/*
	 * The reference is counted while the name still exists, so the inode cannot be deleted from
	 * now on.
	 */
	if (r == 0)
		r = zf_inode_kernel_ref(fs, ino);
	zf_rwlock_unlock(&dir->lock);
	if (r == 0) {
		r = zf_inode_get(fs, ino, &child);
		if (r == -ESTALE)
			r = zf_names_corrupt(fs, dir,
					     "ino names no inode, expected one that exists");
		if (r < 0)
			zf_fs_forget(fs, ino, 1);
	}
	zf_inode_put(dir);
	if (r < 0)
		return r;
	zf_rwlock_rdlock(&child->lock);
	zf_inode_to_attr(child, ret_attr);
	zf_rwlock_unlock(&child->lock);
	zf_inode_put(child);
	return 0;
}

int zf_fs_lookup(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name,
		 struct zf_attr *ret_attr)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_LOOKUP, parent, 0, 0);
	int r = look_up(fs, ctx, parent, name, ret_attr);

	return (int)zf_trace_ended(began, ZF_OPERATION_LOOKUP, r == 0 ? ret_attr->ino : parent, r);
}

static void fill_dots(struct zf_dirent *dirent, uint64_t ino, uint8_t dots)
{
	*dirent = (struct zf_dirent){.ino = ino, .cookie = dots, .type = DT_DIR, .name_len = dots};
	memset(dirent->name, '.', dots);
}

static int list(struct zf_inode *dir, uint64_t cookie, struct zf_dirent *entries, unsigned int max)
{
	unsigned int count = 0;
	uint64_t parent;
	int r;

	if (!S_ISDIR(dir->item.mode))
		return -ENOTDIR;
	if (dir->item.nlink == 0)
		return 0;
	if (cookie < 1 && count < max)
		fill_dots(&entries[count++], dir->ino, 1);
	if (cookie < 2 && count < max) {
		r = zf_dir_ref_parent(dir, &parent);
		if (r == -ENOENT)
			r = zf_report_corrupt(
				&dir->fs->report, "inode", dir->ino,
				"the directory has no ref to its parent, expected one");
		if (r < 0)
			return r;
		fill_dots(&entries[count++], parent, 2);
	}
	r = zf_dir_list(dir, cookie < 2 ? 2 : cookie, entries + count, max - count);
	return r < 0 ? r : (int)count + r;
}

static int read_dir(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t cookie,
		    struct zf_dirent *entries, unsigned int max)
{
	struct zf_inode *dir;
	bool counts;
	int r = zf_inode_get(fs, ino, &dir);

	if (r < 0)
		return r;
	zf_rwlock_rdlock(&dir->lock);
	r = list(dir, cookie, entries, max);
	counts = r >= 0 && zf_access_counts(dir, ctx);
	zf_rwlock_unlock(&dir->lock);
	if (counts)
		zf_access_note(dir, ctx);
	zf_inode_put(dir);
	return r;
}

int zf_fs_readdir(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t cookie,
		  struct zf_dirent *entries, unsigned int max)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_READDIR, ino, cookie, max);
	int r = read_dir(fs, ctx, ino, cookie, entries, max);

	return (int)zf_trace_ended(began, ZF_OPERATION_READDIR, ino, r);
}

static ssize_t read_link(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, char *buf,
			 size_t size)
{
	struct zf_inode *inode;
	bool counts;
	ssize_t r = zf_inode_get(fs, ino, &inode);

	if (r < 0)
		return r;
	zf_rwlock_rdlock(&inode->lock);
	r = S_ISLNK(inode->item.mode) ? zf_symlink_read(inode, buf, size) : -EINVAL;
	counts = r >= 0 && zf_access_counts(inode, ctx);
	zf_rwlock_unlock(&inode->lock);
	if (counts)
		zf_access_note(inode, ctx);
	zf_inode_put(inode);
	return r;
}

ssize_t zf_fs_readlink(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, char *buf,
		       size_t size)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_READLINK, ino, 0, size);
	ssize_t r = read_link(fs, ctx, ino, buf, size);

	return (ssize_t)zf_trace_ended(began, ZF_OPERATION_READLINK, ino, r);
}
