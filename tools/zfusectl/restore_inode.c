/* SPDX-License-Identifier: MIT */
/*
 * One inode: its items are read in the order of their keys, and a file's data is written on the
 * way.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "fs/core/item.h"
#include "interrupt.h"
#include "restore_internal.h"

static uint32_t type_of(const struct restore_inode *inode)
{
	if (inode->has_inode)
		return inode->item.mode & S_IFMT;
	return inode->entries.count > 0 ? S_IFDIR : DTTOIF(inode->type);
}

bool restore_is_dir(const struct restore_inode *inode)
{
	return S_ISDIR(type_of(inode));
}

/* ---- names ---- */

static int take_ref(struct restore_inode *inode, const void *value)
{
	const struct zf_disk_ref *ref = value;

	if (inode->name)
		return 0;
	inode->parent = zf_le64_get(ref->parent);
	inode->name = strndup((const char *)(ref + 1), zf_le16_get(ref->name_len));
	return inode->name ? 0 : -ENOMEM;
}

/* Each name has an entry by name and an entry by cookie: either one is sufficient. */
static int take_entries(struct restore_inode *inode, const void *value, size_t len)
{
	const uint8_t *bytes = value;

	for (size_t at = 0; at < len;) {
		const struct zf_disk_dirent *disk = (const void *)(bytes + at);
		size_t name_len = zf_le16_get(disk->name_len);
		struct restore_entry entry = {
			.ino = zf_le64_get(disk->ino),
			.cookie = zf_le64_get(disk->cookie),
			.name = strndup((const char *)(disk + 1), name_len),
			.type = disk->type,
		};

		if (!entry.name || zf_vector_push(&inode->entries, &entry) < 0) {
			free(entry.name);
			return -ENOMEM;
		}
		at += sizeof(*disk) + name_len;
	}
	return 0;
}

/* ---- data ---- */

static const char *const verdicts[] = {
	[ZF_SALVAGE_UNREADABLE] = "the device cannot read them",
	[ZF_SALVAGE_WRONG] = "they do not match their checksums",
};

static bool is_usable(enum zf_salvage_verdict verdict)
{
	return verdict == ZF_SALVAGE_GOOD || verdict == ZF_SALVAGE_UNVERIFIED;
}

static int write_all(struct restore_inode *inode, const uint8_t *bytes, uint64_t len,
		     uint64_t offset)
{
	struct restore *restore = inode->restore;

	while (inode->fd >= 0 && len > 0) {
		ssize_t n = pwrite(inode->fd, bytes, len, (off_t)offset);

		if (n < 0)
			return restore_fail(restore, inode->place, "cannot be written");
		bytes += n;
		offset += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

/*
 * Writes or reports blocks of one verdict. Bytes of the last block behind the file's size are cut
 * off.
 */
static int use_run(struct restore_inode *inode, enum zf_salvage_verdict verdict,
		   const uint8_t *bytes, uint64_t offset, uint64_t len)
{
	struct restore *restore = inode->restore;

	if (inode->has_inode && offset + len > inode->item.size)
		len = inode->item.size > offset ? inode->item.size - offset : 0;
	if (len == 0)
		return 0;
	if (!is_usable(verdict)) {
		restore_tell(restore, inode->place,
			     "%" PRIu64 " bytes at offset %" PRIu64 " are lost: %s", len, offset,
			     verdicts[verdict]);
		return 0;
	}
	restore->bytes += len;
	inode->unverified += verdict == ZF_SALVAGE_UNVERIFIED ? len : 0;
	return write_all(inode, bytes, len, offset);
}

static int copy_chunk(struct restore_inode *inode, uint64_t address, uint32_t blocks,
		      uint64_t offset)
{
	enum zf_salvage_verdict verdict[RESTORE_CHUNK / ZF_BLOCK_SIZE];
	struct restore *restore = inode->restore;
	int r = 0;

	zf_salvage_read(restore->salvage, address, blocks, restore->buf, verdict);
	for (uint32_t first = 0, i = 1; i <= blocks && r == 0; i++) {
		uint64_t at = (uint64_t)first << ZF_BLOCK_SHIFT;

		if (i < blocks && verdict[i] == verdict[first])
			continue;
		r = use_run(inode, verdict[first], restore->buf + at, offset + at,
			    (uint64_t)(i - first) << ZF_BLOCK_SHIFT);
		first = i;
	}
	zf_meter_update(&restore->meter, restore->bytes, 0);
	return r == 0 && zf_interrupted() ? -EINTR : r;
}

static int copy_data(struct restore_inode *inode, const struct zf_disk_extent *extent,
		     uint64_t offset)
{
	uint64_t address = zf_le64_get(extent->address), len = zf_item_extent_len(extent);
	int r = 0;

	for (uint64_t at = 0; at < len && r == 0; at += RESTORE_CHUNK)
		r = copy_chunk(inode, address + at,
			       (uint32_t)(zf_min_u64(RESTORE_CHUNK, len - at) >> ZF_BLOCK_SHIFT),
			       offset + at);
	return r;
}

static int copy_inline(struct restore_inode *inode, const struct zf_disk_extent *extent,
		       uint64_t offset)
{
	uint64_t len = zf_item_extent_len(extent);

	if (!S_ISLNK(type_of(inode)))
		return use_run(inode, ZF_SALVAGE_GOOD, (const uint8_t *)(extent + 1), offset, len);
	if (offset + len <= ZF_SYMLINK_MAX) {
		memcpy(inode->target + offset, extent + 1, len);
		inode->target_len += len;
	}
	return 0;
}

/* A ZERO extent, which only keeps space for zeroes, becomes a hole. */
static int take_extent(struct restore_inode *inode, uint64_t offset, const void *value)
{
	const struct zf_disk_extent *extent = value;
	uint64_t len = zf_item_extent_len(extent);

	if (extent->type == ZF_EXTENT_INLINE)
		inode->end = zf_max_u64(inode->end, offset + len);
	else
		inode->bytes += len;
	if (extent->type == ZF_EXTENT_INLINE)
		return copy_inline(inode, extent, offset);
	if (extent->type != ZF_EXTENT_DATA)
		return 0;
	inode->end = zf_max_u64(inode->end, offset + len);
	return copy_data(inode, extent, offset);
}

/* ---- all items ---- */

static int make_file(struct restore_inode *inode)
{
	struct restore *restore = inode->restore;
	int dir, r;

	if (!S_ISREG(type_of(inode)) || restore->base < 0 || inode->fd >= 0)
		return 0;
	r = restore_open_dir(restore, inode->place->dir, &dir);
	if (r < 0)
		return r;
	inode->fd = openat(dir, inode->place->name,
			   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return inode->fd < 0 ? restore_fail(restore, inode->place, "cannot be made") : 0;
}

static int take_content(struct restore_inode *inode, const struct zf_key *key, const void *value,
			size_t len)
{
	int r;

	switch (key->type) {
	case ZF_KEY_XATTR:
	case ZF_KEY_XATTR_VALUE:
		return restore_take_xattr(inode->restore, &inode->xattrs, key, value, len);
	case ZF_KEY_DIR_NAME:
	case ZF_KEY_DIR_COOKIE:
		return take_entries(inode, value, len);
	case ZF_KEY_EXTENT:
		r = make_file(inode);
		return r < 0 ? r : take_extent(inode, key->offset, value);
	}
	return 0;
}

static int take_item(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	struct restore_inode *inode = arg;

	if (key->type == ZF_KEY_INODE) {
		zf_item_decode_inode(value, &inode->item);
		inode->has_inode = true;
		return 0;
	}
	if (key->type == ZF_KEY_REF)
		return take_ref(inode, value);
	return inode->place ? take_content(inode, key, value, len) : 0;
}

int restore_read_inode(struct restore_inode *inode)
{
	inode->fd = -1;
	inode->xattrs = ZF_VECTOR(struct restore_xattr);
	inode->entries = ZF_VECTOR(struct restore_entry);
	return zf_salvage_items(inode->restore->salvage, inode->ino, take_item, inode,
				&inode->lost);
}

void restore_free_inode(struct restore_inode *inode)
{
	if (inode->fd >= 0)
		close(inode->fd);
	restore_free_xattrs(&inode->xattrs);
	ZF_VECTOR_FOREACH (&inode->entries, struct restore_entry, entry)
		free(entry->name);
	zf_vector_deinit(&inode->entries);
	free(inode->name);
}

/* ---- the end ---- */

/* Missing extents are noticed, because the inode has their sum of bytes. */
static void tell_losses(struct restore_inode *inode)
{
	struct restore *restore = inode->restore;
	const struct zf_inode_item *item = &inode->item;

	if (!inode->has_inode)
		restore_tell(restore, inode->place,
			     "its inode is lost: owner, mode, times and size are not as they were");
	else if (S_ISREG(item->mode) && inode->bytes != item->bytes)
		restore_tell(restore, inode->place,
			     "extents of %" PRIu64 " bytes were found, expected %" PRIu64,
			     inode->bytes, item->bytes);
	else if (inode->lost)
		restore_tell(restore, inode->place, "a part of its metadata is lost");
	if (inode->unverified > 0)
		restore_tell(restore, inode->place,
			     "%" PRIu64 " bytes are restored, but their checksums are lost",
			     inode->unverified);
	restore->unverified += inode->unverified;
}

static int end_file(struct restore_inode *inode)
{
	uint64_t size = inode->has_inode ? inode->item.size : inode->end;
	int r = make_file(inode);

	if (r < 0 || inode->fd < 0)
		return r;
	return ftruncate(inode->fd, (off_t)size) < 0
		       ? restore_fail(inode->restore, inode->place, "cannot get its size")
		       : 0;
}

static int make_link(struct restore_inode *inode, int dir)
{
	struct restore *restore = inode->restore;

	inode->target[zf_min_u64(inode->target_len, ZF_SYMLINK_MAX)] = '\0';
	if (!inode->has_inode || inode->target_len != inode->item.size) {
		restore_tell(restore, inode->place, "its target is lost");
		return 0;
	}
	return symlinkat(inode->target, dir, inode->place->name);
}

/* Only root makes devices. */
static int make_special(struct restore_inode *inode, int dir)
{
	if (mknodat(dir, inode->place->name, (inode->item.mode & S_IFMT) | 0600,
		    (dev_t)inode->item.rdev) == 0)
		return 0;
	if (errno != EPERM)
		return -1;
	restore_tell(inode->restore, inode->place, "only root can make it again");
	return 0;
}

static int make_other(struct restore_inode *inode)
{
	struct restore *restore = inode->restore;
	int dir, r;

	if (restore->base < 0)
		return 0;
	r = restore_open_dir(restore, inode->place->dir, &dir);
	if (r < 0)
		return r;
	if (restore_is_dir(inode))
		r = mkdirat(dir, inode->place->name, 0700);
	else if (S_ISLNK(type_of(inode)))
		r = make_link(inode, dir);
	else
		r = make_special(inode, dir);
	return r < 0 ? restore_fail(restore, inode->place, "cannot be made") : 0;
}

static void set_attrs(struct restore_inode *inode)
{
	struct restore *restore = inode->restore;
	struct stat st;
	int dir;

	if (restore->base < 0 || !inode->has_inode || restore_is_dir(inode))
		return;
	if (restore_open_dir(restore, inode->place->dir, &dir) == 0 &&
	    fstatat(dir, inode->place->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		restore_set_attrs(restore, dir, inode->place, &inode->item, &inode->xattrs);
}

int restore_end_inode(struct restore_inode *inode)
{
	int r = S_ISREG(type_of(inode)) ? end_file(inode) : make_other(inode);

	if (r < 0)
		return r;
	inode->restore->files++;
	set_attrs(inode);
	tell_losses(inode);
	return 0;
}
