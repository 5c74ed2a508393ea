/* SPDX-License-Identifier: MIT */
#include "listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "fs/core/fs.h"
#include "io/overlay.h"

#define DEPTH_MAX   16u
#define READ_MAX    (UINT64_C(4) << 20) /* of one file */
#define OVERLAY_MAX (UINT64_C(256) << 20)
#define VALUE_MAX   65536u
#define NAMES_MAX   4096u
#define BUF_BYTES   (64u << 10)

static const struct zf_ctx ctx = {.may_wait = true};

struct lister {
	struct zf_fs *fs;
	struct zf_vector *list;
	uint8_t *buf;
};

static uint64_t mix(uint64_t digest, const void *bytes, size_t len)
{
	const uint64_t both[] = {digest, zf_hash64(bytes, len)};

	return zf_hash64(both, sizeof(both));
}

static void read_content(struct lister *lister, const struct zf_attr *attr, struct listed *listed)
{
	uint64_t end = attr->size < READ_MAX ? attr->size : READ_MAX;
	ssize_t n = 1;

	for (uint64_t at = 0; at < end && n > 0; at += (uint64_t)n) {
		n = zf_fs_read(lister->fs, &ctx, attr->ino, at, lister->buf, BUF_BYTES);
		if (n < 0)
			listed->error = (int)n;
		else
			listed->digest = mix(listed->digest, lister->buf, (size_t)n);
	}
}

static void read_target(struct lister *lister, uint64_t ino, struct listed *listed)
{
	ssize_t n = zf_fs_readlink(lister->fs, &ctx, ino, (char *)lister->buf, BUF_BYTES);

	if (n < 0)
		listed->error = (int)n;
	else
		listed->digest = mix(listed->digest, lister->buf, (size_t)n);
}

static void read_attributes(struct lister *lister, uint64_t ino, struct listed *listed)
{
	char names[NAMES_MAX];
	ssize_t len = zf_fs_listxattr(lister->fs, &ctx, ino, names, sizeof(names));
	uint64_t sum = 0;

	if (len < 0)
		listed->error = (int)len;
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1) {
		ssize_t n =
			zf_fs_getxattr(lister->fs, &ctx, ino, names + at, lister->buf, VALUE_MAX);

		if (n < 0)
			listed->error = (int)n;
		else /* summed up, as their order depends on a hash that a repair may change */
			sum += mix(zf_hash64(names + at, strlen(names + at)), lister->buf,
				   (size_t)n);
	}
	listed->digest = mix(listed->digest, &sum, sizeof(sum));
}

static void digest_attr(const struct zf_attr *attr, struct listed *listed)
{
	const uint64_t own[] = {
		attr->ino,  attr->mode,	 attr->uid,	attr->gid,
		attr->rdev, attr->flags, attr->project, (uint64_t)attr->btime.seconds};
	const uint64_t more[] = {attr->size,
				 attr->blocks,
				 attr->nlink,
				 (uint64_t)attr->mtime.seconds,
				 attr->mtime.nanoseconds,
				 (uint64_t)attr->ctime.seconds,
				 attr->ctime.nanoseconds};

	listed->digest = zf_hash64(own, sizeof(own));
	if (!S_ISDIR(attr->mode))
		listed->digest = mix(listed->digest, more, sizeof(more));
}

static int list_directory(struct lister *lister, const char *path, uint64_t dir,
			  unsigned int depth);

static int list_entry(struct lister *lister, const char *path, uint64_t dir,
		      const struct zf_dirent *entry, unsigned int depth)
{
	struct listed listed = {.ino = entry->ino};
	struct zf_attr attr;
	int r;

	snprintf(listed.path, sizeof(listed.path), "%.60s/%.255s", path, entry->name);
	listed.error = zf_fs_lookup(lister->fs, &ctx, dir, entry->name, &attr);
	if (listed.error < 0)
		return zf_vector_push(lister->list, &listed);
	digest_attr(&attr, &listed);
	read_attributes(lister, attr.ino, &listed);
	if (S_ISREG(attr.mode))
		read_content(lister, &attr, &listed);
	if (S_ISLNK(attr.mode))
		read_target(lister, attr.ino, &listed);
	r = zf_vector_push(lister->list, &listed);
	if (r == 0 && S_ISDIR(attr.mode) && depth < DEPTH_MAX)
		r = list_directory(lister, listed.path, attr.ino, depth + 1);
	zf_fs_forget(lister->fs, attr.ino, 1);
	return r;
}

static int list_directory(struct lister *lister, const char *path, uint64_t dir, unsigned int depth)
{
	struct zf_dirent *entry = malloc(sizeof(*entry));
	uint64_t cookie = 0;
	int n = 0, r = 0;

	while (entry && r == 0 &&
	       (n = zf_fs_readdir(lister->fs, &ctx, dir, cookie, entry, 1)) > 0) {
		cookie = entry->cookie;
		if (strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0)
			r = list_entry(lister, path, dir, entry, depth);
	}
	free(entry);
	return r < 0 ? r : n;
}

static int cmp_path(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static int list_mounted(struct zf_fs *fs, struct zf_vector *ret_list)
{
	struct lister lister = {.fs = fs, .list = ret_list, .buf = malloc(VALUE_MAX)};
	int r = lister.buf ? list_directory(&lister, "", 1, 0) : -1;

	free(lister.buf);
	zf_vector_sort(ret_list, 0, cmp_path);
	return r;
}

int listing_make(struct zf_dev *dev, struct zf_vector *ret_list)
{
	const struct zf_mount_options options = {0};
	struct zf_dev *overlay;
	struct zf_fs *fs;
	int r = zf_overlay_open(dev, OVERLAY_MAX, NULL, &overlay);

	*ret_list = ZF_VECTOR(struct listed);
	if (r < 0)
		return r;
	r = zf_fs_mount(overlay, &options, NULL, &fs);
	if (r == 0) {
		r = list_mounted(fs, ret_list);
		zf_fs_abandon(fs);
	}
	zf_dev_close(overlay);
	return r;
}

const struct listed *listing_find(const struct zf_vector *list, const char *path)
{
	struct listed key;

	snprintf(key.path, sizeof(key.path), "%s", path);
	return zf_vector_find(list, &key, cmp_path);
}

unsigned int listing_compare(const struct zf_vector *before, const struct zf_vector *after,
			     bool verbose)
{
	unsigned int differ = 0;

	ZF_VECTOR_FOREACH (before, struct listed, listed) {
		const struct listed *now = listing_find(after, listed->path);

		if (now && now->digest == listed->digest && now->error == listed->error)
			continue;
		differ++;
		if (verbose)
			fprintf(stderr, "    %s is %s\n", listed->path, now ? "another" : "gone");
	}
	ZF_VECTOR_FOREACH (after, struct listed, listed)
		if (verbose && !listing_find(before, listed->path))
			fprintf(stderr, "    %s is new\n", listed->path);
	return differ;
}
