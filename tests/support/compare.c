/* SPDX-License-Identifier: MIT */
/* Compares the whole tree with the oracle. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "support/workload.h"

#define READ_MAX    (UINT64_C(128) << 10)
#define DIRENTS_MAX 64u

static const struct zf_ctx ctx = {.may_wait = true, .no_atime = true};

struct compare {
	struct zf_fs *fs;
	struct oracle *oracle;
	unsigned int errors;
	uint8_t buf[READ_MAX];
	uint8_t expected[ZF_XATTR_VALUE_MAX];
};

static void differ(struct compare *c, uint64_t ino, const char *what, uint64_t value)
{
	c->errors++;
	fprintf(stderr, "inode %" PRIu64 ": %s (%" PRId64 ")\n", ino, what, (int64_t)value);
}

/* ---- attributes ---- */

static bool is_time(const struct zf_time *time, int64_t ns)
{
	return time->seconds * 1000000000 + time->nanoseconds == ns &&
	       time->nanoseconds < 1000000000;
}

static bool is_older(const struct zf_time *time, int64_t ns)
{
	return time->seconds * 1000000000 + time->nanoseconds <= ns;
}

static bool is_before(const struct zf_time *time, int64_t ns)
{
	return time->seconds * 1000000000 + time->nanoseconds < ns;
}

static bool has_size(const struct oracle_inode *inode, uint64_t size)
{
	/* The size of a directory is not defined. */
	if (S_ISDIR(inode->mode) || inode->content_unknown)
		return true;
	return size >= inode->data.size_min && size <= inode->data.size_max;
}

const char *workload_compare_attr(const struct oracle_inode *inode, const struct zf_attr *attr)
{
	if (attr->ino != inode->ino)
		return "ino differs";
	if (attr->mode != inode->mode)
		return "mode differs";
	if (attr->nlink != inode->nlink)
		return "nlink differs";
	if (attr->uid != inode->uid || attr->gid != inode->gid)
		return "uid or gid differs";
	if (attr->rdev != inode->rdev)
		return "rdev differs";
	if (!has_size(inode, attr->size))
		return "size differs";
	if (!is_time(&attr->btime, inode->btime))
		return "btime differs";
	if (inode->atime_loose ? !is_older(&attr->atime, inode->atime)
			       : !is_time(&attr->atime, inode->atime))
		return "atime differs";
	if (attr->flags != inode->flags)
		return "flags differ";
	if (inode->content_unknown)
		return NULL;
	if (inode->times_loose) {
		if (!is_older(&attr->ctime, inode->ctime))
			return "ctime is too new";
		return is_before(&attr->ctime, inode->ctime_min) ? "ctime is too old" : NULL;
	}
	if (!inode->mtime_loose && !is_time(&attr->mtime, inode->mtime))
		return "mtime differs";
	return is_time(&attr->ctime, inode->ctime) ? NULL : "ctime differs";
}

/* ---- directories ---- */

static void compare_entry(struct compare *c, const struct oracle_inode *dir,
			  const struct zf_dirent *dirent)
{
	const struct oracle_entry *entry = oracle_entry(dir, dirent->name);
	const struct oracle_inode *inode;

	if (dirent->cookie <= 2) {
		if (dirent->ino != (dirent->cookie == 1 ? dir->ino : dir->parent))
			differ(c, dir->ino, "'.' or '..' differs", dirent->ino);
		return;
	}
	if (!entry || entry->ino != dirent->ino) {
		differ(c, dir->ino, dirent->name, dirent->ino);
		return;
	}
	inode = oracle_find(c->oracle, entry->ino);
	if (IFTODT(inode->mode) != dirent->type)
		differ(c, dir->ino, "the entry's type differs", dirent->type);
}

static void compare_lookups(struct compare *c, const struct oracle_inode *dir)
{
	for (unsigned int i = 0; i < dir->entry_count; i++) {
		struct zf_attr attr;
		int r = zf_fs_lookup(c->fs, &ctx, dir->ino, dir->entries[i].name, &attr);

		if (r < 0) {
			differ(c, dir->ino, "lookup of an entry fails", (uint64_t)r);
			continue;
		}
		if (attr.ino != dir->entries[i].ino)
			differ(c, dir->ino, "lookup finds another inode", attr.ino);
		zf_fs_forget(c->fs, attr.ino, 1);
	}
}

static void compare_dir(struct compare *c, const struct oracle_inode *dir)
{
	struct zf_dirent entries[DIRENTS_MAX];
	uint64_t cookie = 0;
	unsigned int count = 0;
	int n;

	while ((n = zf_fs_readdir(c->fs, &ctx, dir->ino, cookie, entries, DIRENTS_MAX)) > 0) {
		for (int i = 0; i < n; i++) {
			if (entries[i].cookie <= cookie)
				differ(c, dir->ino, "cookies do not ascend", cookie);
			cookie = entries[i].cookie;
			compare_entry(c, dir, &entries[i]);
		}
		count += (unsigned int)n;
	}
	if (n < 0)
		differ(c, dir->ino, "readdir fails", (uint64_t)n);
	else if (count != (dir->nlink == 0 ? 0 : dir->entry_count + 2))
		differ(c, dir->ino, "the number of entries differs", count);
	compare_lookups(c, dir);
}

/* ---- content ---- */

static void compare_range(struct compare *c, const struct oracle_inode *file, uint64_t from,
			  uint64_t to)
{
	while (from < to) {
		uint64_t n = zf_min_u64(to - from, READ_MAX);
		ssize_t r = zf_fs_read(c->fs, &ctx, file->ino, from, c->buf, n);
		size_t good;

		if (r != (ssize_t)n) {
			differ(c, file->ino, "read fails", (uint64_t)r);
			return;
		}
		good = oracle_data_check(&file->data, from, c->buf, n);
		if (good < n) {
			differ(c, file->ino, "a byte is none of those written there", from + good);
			return;
		}
		from += n;
	}
}

/* A hole is not read, so at least one candidate of each span must be a hole. */
static void compare_hole(struct compare *c, const struct oracle_inode *file, uint64_t from,
			 uint64_t to)
{
	while (from < to) {
		uint64_t end;
		const struct oracle_span *span = oracle_data_find(&file->data, from, &end);
		bool may_be_zero = false;

		for (uint32_t i = 0; i < span->count; i++)
			may_be_zero |= span->candidate[i].write == 0;
		if (!may_be_zero) {
			differ(c, file->ino, "what was written is a hole", from);
			return;
		}
		from = end;
	}
}

static void compare_data(struct compare *c, const struct oracle_inode *file, uint64_t size)
{
	uint64_t at = 0;

	while (at < size) {
		uint64_t data, hole;
		int r = zf_fs_seek(c->fs, &ctx, file->ino, at, SEEK_DATA, &data);

		if (r == -ENXIO)
			data = size;
		else if (r == 0)
			r = zf_fs_seek(c->fs, &ctx, file->ino, data, SEEK_HOLE, &hole);
		if (r < 0 && r != -ENXIO) {
			differ(c, file->ino, "seek fails", (uint64_t)r);
			return;
		}
		compare_hole(c, file, at, data);
		if (data >= size)
			return;
		if (hole <= data || hole > size) {
			differ(c, file->ino, "seek finds no end of the data", hole);
			return;
		}
		compare_range(c, file, data, hole);
		at = hole;
	}
}

static void compare_acl(struct compare *c, const struct oracle_inode *inode, const char *name,
			const struct oracle_acl *acl)
{
	ssize_t n = zf_fs_getxattr(c->fs, &ctx, inode->ino, name, c->buf, sizeof(c->buf));

	if (acl->count == 0) {
		if (n != -ENODATA)
			differ(c, inode->ino, name, (uint64_t)n);
		return;
	}
	if (n != (ssize_t)oracle_acl_encode(acl, c->expected) ||
	    memcmp(c->buf, c->expected, (size_t)n) != 0)
		differ(c, inode->ino, name, (uint64_t)n);
}

static void compare_xattrs(struct compare *c, const struct oracle_inode *inode)
{
	ssize_t len = zf_fs_listxattr(c->fs, &ctx, inode->ino, (char *)c->buf, sizeof(c->buf));
	unsigned int count = 0, lists = (inode->access.count > 0) + (inode->by_default.count > 0);

	for (ssize_t i = 0; i < len; i++)
		count += c->buf[i] == '\0';
	if (len < 0 || count != inode->xattr_count + lists)
		differ(c, inode->ino, "the number of attributes differs", (uint64_t)len);
	for (unsigned int i = 0; i < inode->xattr_count; i++) {
		const struct oracle_xattr *xattr = &inode->xattrs[i];
		ssize_t n = zf_fs_getxattr(c->fs, &ctx, inode->ino, xattr->name, c->buf,
					   sizeof(c->buf));

		oracle_fill(xattr->write, 0, c->expected, xattr->len);
		if (n != (ssize_t)xattr->len || memcmp(c->buf, c->expected, xattr->len) != 0)
			differ(c, inode->ino, xattr->name, (uint64_t)n);
	}
	compare_acl(c, inode, ORACLE_ACL_ACCESS, &inode->access);
	compare_acl(c, inode, ORACLE_ACL_DEFAULT, &inode->by_default);
}

static void compare_symlink(struct compare *c, const struct oracle_inode *inode)
{
	ssize_t n = zf_fs_readlink(c->fs, &ctx, inode->ino, (char *)c->buf, sizeof(c->buf));

	if (n != (ssize_t)strlen(inode->target) || memcmp(c->buf, inode->target, (size_t)n) != 0)
		differ(c, inode->ino, "the link's target differs", (uint64_t)n);
}

static void compare_inode(struct compare *c, const struct oracle_inode *inode)
{
	struct zf_attr attr;
	const char *what;
	int r = zf_fs_getattr(c->fs, &ctx, inode->ino, &attr);

	if (r < 0) {
		differ(c, inode->ino, "getattr fails", (uint64_t)r);
		return;
	}
	what = workload_compare_attr(inode, &attr);
	if (what)
		differ(c, inode->ino, what, attr.size);
	if (S_ISDIR(inode->mode))
		compare_dir(c, inode);
	else if (S_ISREG(inode->mode) && !inode->content_unknown)
		compare_data(c, inode, attr.size);
	else if (S_ISLNK(inode->mode))
		compare_symlink(c, inode);
	compare_xattrs(c, inode);
}

static void compare_content(struct compare *c, const struct oracle_inode *inode)
{
	struct zf_attr attr;
	int r;

	if (!S_ISREG(inode->mode) || inode->content_unknown)
		return;
	r = zf_fs_getattr(c->fs, &ctx, inode->ino, &attr);
	if (r < 0)
		differ(c, inode->ino, "getattr fails", (uint64_t)r);
	else if (!has_size(inode, attr.size))
		differ(c, inode->ino, "size differs", attr.size);
	else
		compare_data(c, inode, attr.size);
}

static bool compare_each(struct zf_fs *fs, struct oracle *oracle,
			 void (*compare)(struct compare *c, const struct oracle_inode *inode))
{
	_zf_free_ struct compare *c = malloc(sizeof(*c));

	if (!c)
		abort();
	c->fs = fs;
	c->oracle = oracle;
	c->errors = 0;
	for (unsigned int i = 0; i < oracle->count; i++)
		compare(c, oracle->all[i]);
	return c->errors == 0;
}

bool workload_compare(struct zf_fs *fs, struct oracle *oracle)
{
	return compare_each(fs, oracle, compare_inode);
}

bool workload_compare_statfs(struct zf_fs *fs, struct oracle *oracle, bool exact)
{
	struct zf_statfs statfs;
	uint64_t used;

	if (zf_fs_statfs(fs, &statfs) < 0)
		return false;
	used = statfs.files - statfs.files_free;
	if (exact ? used == oracle->count : used >= oracle->count)
		return statfs.blocks_available <= statfs.blocks_free &&
		       statfs.blocks_free <= statfs.blocks && statfs.name_max == ZF_NAME_MAX;
	fprintf(stderr, "statfs counts %" PRIu64 " inodes, the oracle %u\n", used, oracle->count);
	return false;
}

bool workload_compare_content(struct zf_fs *fs, struct oracle *oracle)
{
	return compare_each(fs, oracle, compare_content);
}

/* ---- how far it got ---- */

static int newest_below(struct zf_fs *fs, uint64_t ino, unsigned int depth, uint32_t *newest)
{
	struct zf_dirent entries[DIRENTS_MAX];
	struct zf_attr attr;
	uint64_t cookie = 2;
	int n, r = zf_fs_getattr(fs, &ctx, ino, &attr);
	uint32_t number = 0;

	/* A read's time is never stored in a transaction before those of earlier changes. */
	if (r == 0)
		number = (uint32_t)zf_max_u64(workload_op_of_time(&attr.ctime),
					      workload_op_of_time(&attr.atime));
	if (number > *newest)
		*newest = number;
	if (r < 0 || !S_ISDIR(attr.mode))
		return r;
	if (depth > 64)
		return -ELOOP;
	while ((n = zf_fs_readdir(fs, &ctx, ino, cookie, entries, DIRENTS_MAX)) > 0) {
		for (int i = 0; i < n && r == 0; i++)
			r = newest_below(fs, entries[i].ino, depth + 1, newest);
		if (r < 0)
			return r;
		cookie = entries[n - 1].cookie;
	}
	return n;
}

int workload_newest(struct zf_fs *fs, uint32_t *ret_number)
{
	uint32_t newest = 0;
	int r = newest_below(fs, ZF_INO_ROOT, 0, &newest);

	if (r == 0)
		*ret_number = newest;
	return r;
}
