/* SPDX-License-Identifier: MIT */
/* Restores owner, mode, extended attributes and times of an inode. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/bits.h"
#include "fs/core/fs_format.h"
#include "restore_internal.h"

/* ---- reading ---- */

static size_t entry_len(const struct zf_disk_xattr *xattr)
{
	size_t len = sizeof(*xattr) + zf_le16_get(xattr->name_len);

	return zf_le32_get(xattr->value_id) ? len : len + zf_le32_get(xattr->value_len);
}

static int push_xattr(struct zf_vector *xattrs, const struct zf_disk_xattr *disk)
{
	const char *name = (const char *)(disk + 1);
	size_t name_len = zf_le16_get(disk->name_len);
	struct restore_xattr xattr = {
		.name = strndup(name, name_len),
		.len = zf_le32_get(disk->value_len),
		.id = zf_le32_get(disk->value_id),
	};
	int r;

	xattr.value = calloc(1, xattr.len + 1);
	if (xattr.value && xattr.id == 0) {
		memcpy(xattr.value, name + name_len, xattr.len);
		xattr.there = xattr.len;
	}
	r = xattr.name && xattr.value ? zf_vector_push(xattrs, &xattr) : -ENOMEM;
	if (r < 0) {
		free(xattr.name);
		free(xattr.value);
	}
	return r;
}

static void take_chunk(const struct restore *restore, struct zf_vector *xattrs, uint64_t offset,
		       const void *value, size_t len)
{
	uint64_t at = (offset & 0xffff) * restore->chunk_size;

	ZF_VECTOR_FOREACH (xattrs, struct restore_xattr, xattr) {
		if (xattr->id == 0 || xattr->id != offset >> 16 || at + len > xattr->len)
			continue;
		memcpy(xattr->value + at, value, len);
		xattr->there += len;
	}
}

int restore_take_xattr(struct restore *restore, struct zf_vector *xattrs, const struct zf_key *key,
		       const void *value, size_t len)
{
	const uint8_t *bytes = value;
	int r = 0;

	if (key->type == ZF_KEY_XATTR_VALUE) {
		take_chunk(restore, xattrs, key->offset, value, len);
		return 0;
	}
	for (size_t at = 0; at < len && r == 0;) {
		const struct zf_disk_xattr *disk = (const void *)(bytes + at);

		r = push_xattr(xattrs, disk);
		at += entry_len(disk);
	}
	return r;
}

void restore_free_xattrs(struct zf_vector *xattrs)
{
	ZF_VECTOR_FOREACH (xattrs, struct restore_xattr, xattr) {
		free(xattr->name);
		free(xattr->value);
	}
	zf_vector_deinit(xattrs);
}

/* ---- setting ---- */

static void note(struct restore *restore, int result)
{
	restore->refused += result < 0;
}

/* The attributes are set by a path, because a symbolic link cannot be opened. */
static void set_xattrs(struct restore *restore, int fd, const struct restore_place *place,
		       const struct zf_vector *xattrs)
{
	char path[64 + ZF_NAME_MAX];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", fd, place->name);
	ZF_VECTOR_FOREACH (xattrs, struct restore_xattr, xattr) {
		if (xattr->there != xattr->len)
			restore_tell(restore, place, "the value of its attribute %s is lost",
				     xattr->name);
		else if (lsetxattr(path, xattr->name, xattr->value, xattr->len, 0) < 0)
			restore_tell(restore, place, "its attribute %s cannot be set: %s",
				     xattr->name, strerror(errno));
	}
}

static struct timespec time_of(struct zf_time time)
{
	return (struct timespec){.tv_sec = time.seconds, .tv_nsec = time.nanoseconds};
}

void restore_set_attrs(struct restore *restore, int fd, const struct restore_place *place,
		       const struct zf_inode_item *item, const struct zf_vector *xattrs)
{
	const struct timespec times[2] = {time_of(item->atime), time_of(item->mtime)};

	/* Only root can give files away. */
	if (geteuid() == 0)
		note(restore, fchownat(fd, place->name, item->uid, item->gid, AT_SYMLINK_NOFOLLOW));
	set_xattrs(restore, fd, place, xattrs);
	if (!S_ISLNK(item->mode))
		note(restore, fchmodat(fd, place->name, item->mode & 07777, 0));
	note(restore, utimensat(fd, place->name, times, AT_SYMLINK_NOFOLLOW));
}
