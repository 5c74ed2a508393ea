/* SPDX-License-Identifier: MIT */
#include "io/image.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/image_device.h"
#include "io/image_file.h"

int zf_image_host_error(struct zf_image *image, const char *what, uint64_t address, int error)
{
	zf_report(&image->dev.report, ZF_REPORT_ERROR, "%s: %s at %" PRIu64 ": %s", image->dev.path,
		  what, address, strerror(-error));
	return -EIO;
}

/*
 * The host reports a failed flush only once, and may have dropped data that it could not write, of
 * the zone table too.
 */
static void flush_failed_locked(struct zf_image *image, int error)
{
	zf_dev_flush_failed(&image->dev, error);
	zf_image_trailer_store_use(&image->trailer, ZF_IMAGE_UNKNOWN);
}

int zf_image_sync_error_locked(struct zf_image *image, const char *what, uint64_t address,
			       int error)
{
	if (error == -EIO)
		flush_failed_locked(image, error);
	return zf_image_host_error(image, what, address, error);
}

int zf_image_sync_error(struct zf_image *image, const char *what, uint64_t address, int error)
{
	int r;

	zf_mutex_lock(&image->lock);
	r = zf_image_sync_error_locked(image, what, address, error);
	zf_mutex_unlock(&image->lock);
	return r;
}

int zf_image_give_up_locked(struct zf_image *image, const char *why)
{
	image->warmer.off = true;
	if (!atomic_exchange(&image->read_only, true))
		zf_report(&image->dev.report, ZF_REPORT_ERROR,
			  "%s: %s: the image is read-only from now on", image->dev.path, why);
	return -EIO;
}

int zf_image_give_up_table_locked(struct zf_image *image)
{
	return zf_image_give_up_locked(image, "its zone table cannot be written, because its "
					      "host's disk is full, or the file was truncated");
}

/*
 * A file that was truncated and written again behind its new end may still have the table, but not
 * the header, without which it can never be opened again.
 */
static bool is_truncated(const struct zf_image *image)
{
	struct stat st;

	return !image->is_block_device && fstat(image->fd, &st) == 0 &&
	       (uint64_t)st.st_size < image->trailer.image_size;
}

int zf_image_flushed_locked(struct zf_image *image, int res)
{
	if (res < 0) {
		flush_failed_locked(image, res);
		return zf_image_host_error(image, "flush", 0, res);
	}
	return is_truncated(image) ? zf_image_give_up_locked(image, "the file was truncated") : 0;
}

/* ---- zones ---- */

static int image_report(struct zf_dev *dev, uint32_t first, uint32_t count,
			struct zf_zone_info *zones)
{
	struct zf_image *image = zf_image_of(dev);

	zf_mutex_lock(&image->lock);
	for (uint32_t i = 0; i < count; i++) {
		zf_zone_rules_report(&image->rules, first + i, &zones[i]);
		zones[i].warm =
			zones[i].cond == ZF_ZONE_EMPTY && image->busy[first + i].warm_end > 0;
	}
	zf_mutex_unlock(&image->lock);
	return 0;
}

/* The zone's entry was stored. In a read-only image the table is private memory: still a guess. */
static void note_stored_locked(struct zf_image *image, uint32_t zone_no)
{
	image->rules.zones[zone_no].guessed &= image->read_only;
}

static int image_raise_pointer(struct zf_dev *dev, uint32_t zone_no, uint64_t wp)
{
	struct zf_image *image = zf_image_of(dev);
	int r;

	zf_mutex_lock(&image->lock);
	r = zf_zone_rules_raise(&image->rules, zone_no, wp);
	if (r == 0 &&
	    zf_image_trailer_store_zone(&image->trailer, zone_no, &image->rules.zones[zone_no]) < 0)
		r = zf_image_give_up_table_locked(image);
	if (r == 0)
		note_stored_locked(image, zone_no);
	zf_mutex_unlock(&image->lock);
	return r;
}

static int image_set_reset_count(struct zf_dev *dev, uint32_t zone_no, uint64_t reset_count)
{
	struct zf_image *image = zf_image_of(dev);
	int r;

	zf_mutex_lock(&image->lock);
	r = zf_zone_rules_set_reset_count(&image->rules, zone_no, reset_count);
	if (r == 0 && zf_image_trailer_replace_zone(&image->trailer, zone_no,
						    &image->rules.zones[zone_no]) < 0)
		r = zf_image_give_up_table_locked(image);
	if (r == 0)
		note_stored_locked(image, zone_no);
	zf_mutex_unlock(&image->lock);
	return r;
}

/* ---- life ---- */

/*
 * The zone table must be durable before the state that calls it exact (ZF_IMAGE_CLEAN). An image
 * that was opened with lower bounds and never written keeps its state ZF_IMAGE_UNKNOWN.
 */
static void mark_clean(struct zf_image *image)
{
	int r;

	if (zf_dev_flush_error(&image->dev) < 0) {
		zf_image_trailer_store_use(&image->trailer, ZF_IMAGE_UNKNOWN);
		(void)!fdatasync(image->fd);
		return;
	}
	r = fdatasync(image->fd) < 0 ? -errno : 0;
	if (r == 0 && !image->raise_first) {
		r = zf_image_trailer_store_use(&image->trailer, ZF_IMAGE_CLEAN);
		if (r == 0 && fdatasync(image->fd) < 0)
			r = -errno;
	}
	if (r < 0)
		zf_image_host_error(image, "closing", image->trailer.table_offset, r);
}

static void image_free(struct zf_image *image)
{
	zf_image_warmer_deinit(image);
	zf_mutex_deinit(&image->lock);
	zf_zone_rules_deinit(&image->rules);
	zf_image_trailer_unmap(&image->trailer);
	free(image->busy);
	free(image->zero_chunk);
	if (image->fd >= 0)
		close(image->fd);
	zf_dev_deinit(&image->dev);
	free(image);
}

static void image_close(struct zf_dev *dev)
{
	struct zf_image *image = zf_image_of(dev);

	zf_image_warmer_stop(image);
	zf_ring_deinit(&image->ring);
	if (!image->read_only)
		mark_clean(image);
	image_free(image);
}

/* -1 on a host that blocks: its kernel would wake a worker thread for each read. */
static int image_read_fd(struct zf_dev *dev)
{
	const struct zf_image *image = zf_image_of(dev);

	return image->host_blocks ? -1 : image->fd;
}

static const struct zf_dev_ops image_ops = {
	.kind = "image",
	.submit = zf_image_submit,
	.poll = zf_image_poll,
	.wake = zf_image_wake,
	.run = zf_image_run,
	.read = zf_image_read,
	.read_fd = image_read_fd,
	.report = image_report,
	.warm = zf_image_warm,
	.raise_pointer = image_raise_pointer,
	.set_reset_count = image_set_reset_count,
	.grow = zf_image_grow,
	.close = image_close,
};

static int report_no_trailer(const char *path, const struct zf_image_file *file,
			     const struct zf_report *report)
{
	uint64_t noted = zf_image_file_noted_size(file);

	if (noted != 0 && noted != file->size)
		return zf_report_corrupt(report, "image", 0,
					 "the size of %s has %" PRIu64 ", expected %" PRIu64 "%s",
					 path, file->size, noted,
					 file->size < noted ? ": it was truncated" : "");
	if (file->is_block_device)
		zf_report(report, ZF_REPORT_ERROR,
			  "%s: neither a zoned disk nor one with a zoned image on it: "
			  "'mkfs.zfuse --image' makes one (if it was made larger: zfusectl grow)",
			  path);
	else
		zf_report(report, ZF_REPORT_ERROR,
			  "%s: not a zoned image, or truncated: no trailer at its end "
			  "('mkfs.zfuse --image' makes one; if it was made larger: zfusectl grow)",
			  path);
	return -ENODEV;
}

static int load_trailer(struct zf_image *image, const struct zf_image_file *file,
			const struct zf_image_trailer *trailer, const struct zf_report *report)
{
	bool lower_bounds;
	int r;

	image->trailer = *trailer;
	r = zf_image_trailer_map(&image->trailer, file->fd, !image->read_only);
	if (r < 0)
		return r;
	r = zf_zone_rules_init(&image->rules, &trailer->geometry);
	if (r < 0)
		return r;
	r = zf_image_trailer_load(&image->trailer, &image->rules, report, &lower_bounds);
	if (r < 0)
		return r;
	image->dev.geometry.pointers_are_lower_bounds = lower_bounds;
	image->dev.geometry.unmapping_zeroes = zf_image_host_unmaps(file->fd);
	image->raise_first = lower_bounds;
	if (image->read_only)
		return 0;
	/* The entries of conventional zones were made anew. */
	for (uint32_t z = 0; z < trailer->geometry.conventional; z++)
		image->rules.zones[z].guessed = false;
	/* Durable before the first write: without it, a crash of the host would look clean. */
	r = zf_image_trailer_store_use(&image->trailer,
				       lower_bounds ? ZF_IMAGE_UNKNOWN : ZF_IMAGE_IN_USE);
	if (r < 0)
		return r;
	return fdatasync(file->fd) < 0 ? -errno : 0;
}

static int allocate(struct zf_image *image)
{
	image->busy = calloc(image->dev.geometry.zone_count, sizeof(*image->busy));
	image->zero_chunk = aligned_alloc(ZF_BLOCK_SIZE, ZF_IMAGE_ZERO_CHUNK);
	if (!image->busy || !image->zero_chunk)
		return -ENOMEM;
	memset(image->zero_chunk, 0, ZF_IMAGE_ZERO_CHUNK);
	for (unsigned int i = 0; i < ZF_IMAGE_ZERO_CHUNKS; i++)
		image->zeroes[i] = (struct iovec){image->zero_chunk, ZF_IMAGE_ZERO_CHUNK};
	return 0;
}

/* tmpfs and some others have no non-blocking I/O, and refuse RWF_NOWAIT with EOPNOTSUPP. */
static bool host_blocks(int fd)
{
	_Alignas(ZF_BLOCK_SIZE) uint8_t block[ZF_BLOCK_SIZE];
	struct iovec iov = {.iov_base = block, .iov_len = sizeof(block)};

	return preadv2(fd, &iov, 1, 0, RWF_NOWAIT) < 0 && errno == EOPNOTSUPP;
}

/* With an access control list, the group's bits are the mask of the list. */
static bool others_can_write(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Owns `file` from here on, whatever happens. */
static int image_new(const char *path, const struct zf_image_file *file, bool read_only,
		     const struct zf_image_trailer *trailer, const struct zf_report *report,
		     struct zf_dev **ret_dev)
{
	struct zf_image *image = calloc(1, sizeof(*image));
	int r = -ENOMEM;

	if (image)
		r = zf_dev_init(&image->dev, &image_ops, path, &trailer->geometry, report);
	if (r < 0) {
		free(image);
		close(file->fd);
		return r;
	}
	zf_mutex_init(&image->lock, ZF_RANK_DEV);
	image->fd = file->fd;
	image->read_only = read_only;
	image->is_block_device = file->is_block_device;
	image->dev.foreign = !file->is_block_device && others_can_write(file->fd);
	zf_image_warmer_init(image, file->is_block_device);
	r = allocate(image);
	if (r == 0)
		r = load_trailer(image, file, trailer, report);
	if (r == 0 && !file->is_block_device) {
		image->runs_here = true;
		image->host_blocks = host_blocks(file->fd);
		zf_image_find_kept(image);
	}
	if (r < 0)
		zf_report(report, ZF_REPORT_ERROR, "%s: cannot be opened: %s", path, strerror(-r));
	if (r == 0)
		r = zf_image_ring_init(image);
	if (r < 0) {
		image_free(image);
		return r;
	}
	*ret_dev = &image->dev;
	return 0;
}

/*
 * The trailer is at the end of the file. If the file has become longer, the trailer is at the noted
 * former end; a copy of the file lacks this note, so the trailer is searched for behind the zones.
 * Growing begins by making the file longer: a crash of the host may leave this change alone.
 */
static int find_trailer(const struct zf_image_file *file, uint64_t search_from,
			const struct zf_report *report, struct zf_image_trailer *ret_trailer)
{
	uint64_t noted = zf_image_file_noted_size(file);
	int r = zf_image_trailer_read(file->fd, file->size, report, ret_trailer);

	if (r == -ENODEV && noted != 0 && noted < file->size)
		r = zf_image_trailer_read(file->fd, noted, report, ret_trailer);
	if (r == -ENODEV && search_from != 0)
		r = zf_image_trailer_search(file->fd, search_from, file->size,
					    !file->is_block_device, ret_trailer);
	return r;
}

int zf_image_open(const char *path, const struct zf_open_options *options,
		  const struct zf_report *report, struct zf_dev **ret_dev)
{
	struct zf_image_trailer trailer;
	struct zf_image_file file;
	int r;

	r = zf_image_file_open_for(path, options, true, report, &file);
	if (r < 0)
		return r;
	r = find_trailer(&file, options->image_search_from, report, &trailer);
	if (r == 0)
		return image_new(path, &file, options->read_only, &trailer, report, ret_dev);
	if (r == -ENODEV)
		r = report_no_trailer(path, &file, report);
	else if (r != -EUCLEAN)
		zf_report(report, ZF_REPORT_ERROR, "%s: cannot be read: %s", path, strerror(-r));
	close(file.fd);
	return r;
}
