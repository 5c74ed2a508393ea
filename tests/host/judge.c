/* SPDX-License-Identifier: MIT */
#include "host/judge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "check/check.h"
#include "io/image.h"
#include "superblock/ring.h"

static const struct zf_ctx ctx = {.may_wait = true};

static void tell(void *arg, enum zf_report_level level, const char *message)
{
	fprintf(stderr, "reported: %s\n", message);
}

static const struct zf_report report = {.fn = tell};

static bool wrong(const char *what, int r)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	return false;
}

/* ---- files ---- */

static bool cell_is_right(const struct promises *promises, uint32_t file, uint32_t cell,
			  const char *bytes)
{
	uint64_t durable = promises->files[file].durable[cell];
	uint64_t last = promises->files[file].last[cell], version;

	if (!cell_read(bytes, file, cell, &version)) {
		fprintf(stderr, "file %u, cell %u: not one of its own\n", file, cell);
		return false;
	}
	if (version >= durable && version <= last)
		return true;
	fprintf(stderr,
		"file %u, cell %u: of version %" PRIu64 ", expected %" PRIu64 " to %" PRIu64 "\n",
		file, cell, version, durable, last);
	return false;
}

static bool file_is_right(struct zf_fs *fs, const struct promises *promises, uint32_t file)
{
	_zf_free_ char *bytes = calloc(CELLS, CELL_BYTES);
	struct zf_attr attr;
	char name[8];
	ssize_t n;
	int r;

	file_name(name, file);
	r = zf_fs_lookup(fs, &ctx, ZF_INO_ROOT, name, &attr);
	if (r == -ENOENT && !promises->files[file].exists)
		return true;
	if (r < 0 || !bytes)
		return wrong(name, r);
	n = zf_fs_read(fs, &ctx, attr.ino, 0, bytes, (size_t)CELLS * CELL_BYTES);
	if (n < 0)
		return wrong(name, (int)n);
	for (uint32_t cell = 0; cell < CELLS; cell++) {
		if (!cell_is_right(promises, file, cell, bytes + (size_t)cell * CELL_BYTES))
			return false;
	}
	return true;
}

/* ---- the whole ---- */

static bool check(struct zf_dev *dev, bool data)
{
	const struct zf_check_options options = {.data = data};
	struct zf_check_counts counts = {};
	const struct zf_super *super;
	unsigned int stepped_over;
	struct zf_ring *ring;
	int r;

	r = zf_ring_open(dev, &report, &ring);
	if (r < 0)
		return wrong("the ring", r);
	r = zf_ring_newest(ring, &super, &stepped_over);
	if (r == 0)
		r = zf_check_run(dev, super, &options, &report, &counts);
	zf_ring_close(ring);
	return r < 0 ? wrong("the checker", r) : counts.errors == 0;
}

static bool compare(struct zf_dev *dev, const struct promises *promises)
{
	const struct zf_mount_options options = {};
	struct zf_fs *fs;
	bool right = true;
	int r;

	r = zf_fs_mount(dev, &options, &report, &fs);
	if (r < 0)
		return wrong("mounting", r);
	if (zf_fs_is_read_only(fs))
		right = wrong("mounting", -EROFS);
	for (uint32_t file = 0; file < FILES && right; file++)
		right = file_is_right(fs, promises, file);
	r = zf_fs_unmount(fs);
	return r < 0 ? wrong("unmounting", r) : right;
}

bool judge(const char *path, const struct promises *promises)
{
	const struct zf_open_options options = {.lock_wait_ms = 10000};
	struct zf_dev *dev;
	bool right;
	int r;

	r = zf_image_open(path, &options, &report, &dev);
	if (r < 0)
		return wrong("opening", r);
	right = check(dev, false) && compare(dev, promises) && check(dev, true);
	zf_dev_close(dev);
	return right;
}
