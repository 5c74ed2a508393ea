/* SPDX-License-Identifier: MIT */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "mkfs.h"
#include "walk.h"

/* ---- data ---- */

static int changed(const FTSENT *entry)
{
	mkfs_error("%s: changed while it was copied: try again when nobody writes to it",
		   entry->fts_path);
	return -ESTALE;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

int mkfs_source_is_unchanged(const FTSENT *entry, int fd)
{
	const struct stat *seen = entry->fts_statp;
	struct stat st;
	int r = fd >= 0 ? fstat(fd, &st) : lstat(entry->fts_accpath, &st);

	if (r < 0)
		return mkfs_entry_error(entry, "cannot be read", -errno);
	if (st.st_dev != seen->st_dev || st.st_ino != seen->st_ino || st.st_size != seen->st_size ||
	    !is_same_time(&st.st_mtim, &seen->st_mtim) ||
	    !is_same_time(&st.st_ctim, &seen->st_ctim))
		return changed(entry);
	return 0;
}

/* With O_NOATIME reading does not change the access time. Only the owner and root may use it. */
int mkfs_source_open(const FTSENT *entry, int *ret_fd)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int fd = open(entry->fts_accpath, flags | O_NOATIME);
	int r;

	if (fd < 0 && errno == EPERM)
		fd = open(entry->fts_accpath, flags);
	if (fd < 0)
		return mkfs_entry_error(entry, "cannot be opened", -errno);
	r = mkfs_source_is_unchanged(entry, fd);
	if (r < 0)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}

/*
 * Finds the next range of data at or after `from`. 1: *ret_start and *ret_end are set; 0: there is
 * none.
 */
static int next_range(int fd, uint64_t from, uint64_t size, uint64_t *ret_start, uint64_t *ret_end)
{
	off_t start, end;

	if (from >= size)
		return 0;
	start = lseek(fd, (off_t)from, SEEK_DATA);
	if (start < 0)
		return errno == ENXIO ? 0 : -errno;
	end = lseek(fd, start, SEEK_HOLE);
	if (end < 0)
		return errno == ENXIO ? 0 : -errno;
	*ret_start = (uint64_t)start;
	*ret_end = zf_min_u64((uint64_t)end, size);
	return *ret_start < *ret_end;
}

int mkfs_source_ranges(const FTSENT *entry, int fd,
		       int (*visit)(void *arg, int fd, uint64_t offset, uint64_t len), void *arg)
{
	uint64_t size = (uint64_t)entry->fts_statp->st_size, start = 0, end = 0;
	int r;

	while ((r = next_range(fd, end, size, &start, &end)) > 0) {
		r = visit(arg, fd, start, end - start);
		if (r < 0)
			return r;
	}
	return r < 0 ? mkfs_entry_error(entry, "cannot be read", r) : 0;
}

/* ---- attributes ---- */

static bool is_kept(const char *name)
{
	return strncmp(name, "user.", 5) == 0 || strncmp(name, "trusted.", 8) == 0 ||
	       strncmp(name, "security.", 9) == 0 || strcmp(name, "system.posix_acl_access") == 0 ||
	       strcmp(name, "system.posix_acl_default") == 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns the number of kept names in the list, sorted in *ret_names, or -ENOMEM. */
static ssize_t sort_names(const char *list, size_t len, const char ***ret_names)
{
	size_t count = 0;
	const char **names = calloc(len / 2 + 1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	for (size_t at = 0; at < len; at += strlen(list + at) + 1)
		if (is_kept(list + at))
			names[count++] = list + at;
	qsort(names, count, sizeof(*names), by_name);
	*ret_names = names;
	return (ssize_t)count;
}

static int attribute_error(const FTSENT *entry, const char *name, int error)
{
	mkfs_error("%s: the extended attribute %s cannot be read: %s", entry->fts_path, name,
		   strerror(-error));
	return error;
}

static int visit_names(const FTSENT *entry, const char *list, size_t len,
		       int (*visit)(void *arg, const char *name, const void *value, size_t len),
		       void *arg)
{
	_zf_free_ void *value = malloc(XATTR_SIZE_MAX);
	_zf_free_ const char **names = NULL;
	ssize_t count = value ? sort_names(list, len, &names) : -ENOMEM;
	int r = 0;

	if (count < 0)
		return mkfs_entry_error(entry, "extended attributes", (int)count);
	for (ssize_t i = 0; i < count && r == 0; i++) {
		ssize_t size = lgetxattr(entry->fts_accpath, names[i], value, XATTR_SIZE_MAX);

		r = size < 0 ? attribute_error(entry, names[i], -errno)
			     : visit(arg, names[i], value, (size_t)size);
	}
	return r;
}

int mkfs_source_attributes(const FTSENT *entry,
			   int (*visit)(void *arg, const char *name, const void *value, size_t len),
			   void *arg)
{
	char list[XATTR_LIST_MAX];
	ssize_t len = llistxattr(entry->fts_accpath, list, sizeof(list));

	if (len == 0 || (len < 0 && errno == EOPNOTSUPP))
		return 0;
	if (len < 0)
		return mkfs_entry_error(entry, "extended attributes cannot be listed", -errno);
	return visit_names(entry, list, (size_t)len, visit, arg);
}
