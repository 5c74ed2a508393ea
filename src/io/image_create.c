/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "io/image.h"
#include "io/image_file.h"
#include "io/image_trailer.h"

/* Other filesystems and partition tables leave their signatures this far in from both ends. */
#define SIGNATURE_SPAN ((uint64_t)1 << 20)

/* ---- block devices ---- */

/* Sets *used if the range has bytes other than zero. */
static int look_for_bytes(int fd, uint64_t offset, uint64_t len, bool *used)
{
	_zf_free_ uint8_t *buf = malloc(len);
	ssize_t n;

	if (!buf)
		return -ENOMEM;
	n = pread(fd, buf, len, (off_t)offset);
	if (n < 0)
		return -errno;
	for (ssize_t i = 0; i < n; i++)
		*used |= buf[i] != 0;
	return 0;
}

static int look_for_contents(const struct zf_image_file *file, bool *ret_used)
{
	uint64_t span = zf_min_u64(SIGNATURE_SPAN, file->size);
	int r;

	*ret_used = !file->is_block_device && file->size > 0;
	if (!file->is_block_device)
		return 0;
	r = look_for_bytes(file->fd, 0, span, ret_used);
	return r < 0 ? r : look_for_bytes(file->fd, file->size - span, span, ret_used);
}

static int zero(int fd, uint64_t offset, uint64_t len)
{
	_zf_free_ uint8_t *buf = calloc(1, len);
	ssize_t n;

	if (!buf)
		return -ENOMEM;
	n = pwrite(fd, buf, len, (off_t)offset);
	if (n < 0)
		return -errno;
	return (uint64_t)n == len ? 0 : -EIO;
}

/* The rest of the device may keep its old bytes: no program uses bytes above write pointers. */
static int prepare_block_device(const struct zf_image_file *file)
{
	uint64_t span = zf_min_u64(SIGNATURE_SPAN, file->size);
	int r;

	r = zero(file->fd, file->size - span, span);
	if (r < 0)
		return r;
	(void)!fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			 (off_t)zf_align_down(file->size, ZF_BLOCK_SIZE));
	return zero(file->fd, 0, span);
}

/* ---- files ---- */

static int prepare_file(const struct zf_image_file *file, const struct zf_image_trailer *trailer)
{
	uint64_t trailer_size = trailer->image_size - trailer->table_offset;
	int r;

	if (ftruncate(file->fd, 0) < 0 || ftruncate(file->fd, (off_t)trailer->image_size) < 0)
		return -errno;
	/* If the host has no room, this fails now, and not when the first zone is written. */
	r = posix_fallocate(file->fd, (off_t)trailer->table_offset, (off_t)trailer_size);
	if (r != 0)
		return -r;
	zf_image_file_note_size(file, trailer->image_size);
	return 0;
}

/* ---- creating ---- */

static int lay_out(const struct zf_image_file *file, const char *path,
		   const struct zf_geometry *geometry, const struct zf_report *report,
		   struct zf_image_trailer *ret_trailer)
{
	struct zf_image_trailer smallest;
	int r;

	zf_image_trailer_layout(&smallest, geometry, 0);
	r = zf_image_trailer_layout(ret_trailer, geometry, file->is_block_device ? file->size : 0);
	if (r < 0)
		zf_report(report, ZF_REPORT_ERROR,
			  "%s: too small: it has %" PRIu64 " bytes, but %" PRIu32
			  " zones of %" PRIu64 " bytes and their table need %" PRIu64,
			  path, file->size, geometry->zone_count, geometry->zone_size,
			  smallest.image_size);
	return r;
}

static int create(const struct zf_image_file *file, const char *path,
		  const struct zf_geometry *geometry, bool force,
		  const struct zf_open_options *options, const struct zf_report *report)
{
	struct zf_image_trailer trailer;
	bool used = false;
	int r;

	r = force ? 0 : look_for_contents(file, &used);
	if (r < 0)
		return zf_image_file_fail(report, path, r, "cannot be read");
	if (used) {
		zf_report(report, ZF_REPORT_ERROR, "%s: not empty, and overwriting was not forced",
			  path);
		return -EEXIST;
	}
	r = lay_out(file, path, geometry, report, &trailer);
	if (r < 0)
		return r;
	r = file->is_block_device ? prepare_block_device(file) : prepare_file(file, &trailer);
	if (r == 0)
		r = zf_image_trailer_write_new(&trailer, options->image_uuid, file->fd);
	if (r < 0)
		return zf_image_file_fail(report, path, r, "cannot be written");
	return 0;
}

int zf_image_create(const char *path, const struct zf_geometry *geometry, bool force,
		    const struct zf_open_options *options, const struct zf_report *report)
{
	struct zf_image_file file;
	int r;

	r = zf_geometry_check(geometry, report);
	if (r < 0)
		return r;
	r = zf_image_file_open(path, ZF_IMAGE_FILE_CREATE, false, options->lock_wait_ms, report,
			       &file);
	if (r < 0)
		return r;
	r = create(&file, path, geometry, force, options, report);
	if (r < 0 && file.created)
		unlink(path);
	close(file.fd);
	return r;
}
