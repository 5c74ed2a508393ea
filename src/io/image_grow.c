/* SPDX-License-Identifier: MIT */
/*
 * Makes an image larger while it is in use.
 *
 * The trailer has to move. Its header, which says where the table is, is the last block of the
 * file. So at every step the last block is a header that is true:
 *
 *     | zones            | table | state | header |
 *  1. | zones            | table | state | header |                            | header |
 *  2. | zones            | table | state |                  | table' | state' | header |
 *  3. | zones            | table | state |                  | table' | state' | header' |
 *  4. | zones            |                 new zones        | table' | state' | header' |
 *
 *  1. The file is made longer by writing a header at its new end, which names the present table.
 *  2. The new table and state are written behind the new zones; they overlap neither the former
 *     table nor the former state.
 *  3. The contents of the former table and state are copied to the new ones, and the header is
 *     replaced by one that names them: *** the image has its new size ***. The two headers differ
 *     within one sector only, so a torn write leaves one of the two.
 *  4. The former trailer is punched out: it lies in new zones, which are empty.
 *
 * Step 3 is under the image's lock: no pointer moves between the copying of the table and the
 * instant at which the new table is valid. A command that has begun is in both tables.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/image_device.h"
#include "io/image_file.h"

struct growth {
	struct zf_image_trailer trailer; /* the new one; after the switch the former one */
	struct zf_image_zone_busy *busy;
	struct zf_zone_state *zones;
	uint64_t host_size; /* bytes, when the growth began */
};

static void tell(const struct zf_image *image, int error, const char *what)
{
	zf_report(&image->dev.report, ZF_REPORT_ERROR, "%s: %s: %s", image->dev.path, what,
		  strerror(-error));
}

/* ---- how large ---- */

static int read_host_size(const struct zf_image *image, uint64_t *ret_size)
{
	struct stat st;

	if (image->is_block_device)
		return ioctl(image->fd, BLKGETSIZE64, ret_size) < 0 ? -errno : 0;
	if (fstat(image->fd, &st) < 0)
		return -errno;
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

static int check_count(const struct zf_image *image, uint32_t zone_count)
{
	struct zf_geometry geometry = image->dev.geometry;

	if (zone_count < geometry.zone_count) {
		zf_report(&image->dev.report, ZF_REPORT_ERROR,
			  "%s has %" PRIu32 " zones: they cannot become fewer", image->dev.path,
			  geometry.zone_count);
		return -EINVAL;
	}
	geometry.zone_count = zone_count;
	return zf_geometry_check(&geometry, &image->dev.report);
}

/* Lays out a trailer for so many zones in a file of sufficient size. */
static int lay_out_file(const struct zf_image *image, uint32_t zone_count, uint64_t host_size,
			struct zf_image_trailer *ret_trailer)
{
	struct zf_image_trailer *t = ret_trailer;
	int r = zf_image_trailer_layout_grown(&image->trailer, zone_count, INT64_MAX, t);

	if (r == 0)
		t->image_size = zf_max_u64(t->state_offset + 2 * ZF_BLOCK_SIZE,
					   zf_align_down(host_size, ZF_BLOCK_SIZE));
	return r;
}

static int lay_out_device(const struct zf_image *image, uint32_t zone_count, uint64_t host_size,
			  struct zf_image_trailer *ret_trailer)
{
	int r = zf_image_trailer_layout_grown(&image->trailer, zone_count, host_size, ret_trailer);

	if (r == -ENOSPC)
		zf_report(&image->dev.report, ZF_REPORT_ERROR,
			  "%s has %" PRIu64 " bytes, too few for %" PRIu32 " zones of %" PRIu64
			  " bytes and their table: make the device larger first",
			  image->dev.path, host_size, zone_count, image->dev.geometry.zone_size);
	return r;
}

/* The number of zones that fit, at least the present number. */
static uint32_t largest_count(const struct zf_image *image, uint64_t host_size)
{
	const struct zf_geometry *g = &image->dev.geometry;
	uint64_t count = host_size / (g->zone_size + sizeof(struct zf_image_zone));
	struct zf_image_trailer ignored;

	count = zf_min_u64(count, ZF_ZONE_COUNT_MAX);
	while (count > g->zone_count &&
	       zf_image_trailer_layout_grown(&image->trailer, (uint32_t)count, host_size,
					     &ignored) < 0)
		count--;
	return (uint32_t)zf_max_u64(count, g->zone_count);
}

/* ---- memory ---- */

static int allocate(struct growth *growth)
{
	uint32_t count = growth->trailer.geometry.zone_count;

	growth->busy = calloc(count, sizeof(*growth->busy));
	growth->zones = calloc(count, sizeof(*growth->zones));
	return growth->busy && growth->zones ? 0 : -ENOMEM;
}

static void release(struct growth *growth)
{
	zf_image_trailer_unmap(&growth->trailer);
	free(growth->busy);
	free(growth->zones);
}

/* ---- the steps ---- */

static void note_size(const struct zf_image *image, uint64_t size)
{
	const struct zf_image_file file = {.fd = image->fd};

	zf_image_file_note_size(&file, size);
}

/*
 * On a block device a search for the header (struct zf_open_options) could find the former one, so
 * the former header is erased while it is still true. In a file only the header at the end or at
 * the noted size is used; the former header stays, because a failed growth returns to it.
 */
static int leave_former_end(const struct zf_image *image, uint64_t new_size)
{
	uint64_t end = image->trailer.image_size;
	struct iovec block = {image->zero_chunk, ZF_BLOCK_SIZE};
	ssize_t n;

	if (!image->is_block_device) {
		note_size(image, new_size);
		return 0;
	}
	n = pwritev2(image->fd, &block, 1, (off_t)(end - ZF_BLOCK_SIZE), RWF_DSYNC);
	if (n < 0)
		return -errno;
	return n == ZF_BLOCK_SIZE ? 0 : -EIO;
}

/* Step 1. */
static int move_header(const struct zf_image *image, const struct growth *growth)
{
	struct zf_image_trailer t = image->trailer;
	int r;

	if (t.image_size == growth->trailer.image_size)
		return 0;
	t.image_size = growth->trailer.image_size;
	r = zf_image_trailer_write_header(&t, image->fd);
	return r < 0 ? r : leave_former_end(image, t.image_size);
}

static bool shorten(const struct zf_image *image, const struct growth *growth)
{
	return !image->is_block_device && growth->trailer.image_size > growth->host_size &&
	       ftruncate(image->fd, (off_t)growth->host_size) == 0;
}

/*
 * The former header still stands at the former end, unless the new table lies on it. In that case
 * the header at the new end stays; it is just as true.
 */
static void move_header_back(struct zf_image *image, const struct growth *growth)
{
	const struct zf_image_trailer *t = &growth->trailer;

	if (image->trailer.image_size <= t->table_offset && shorten(image, growth))
		note_size(image, image->trailer.image_size);
	else
		image->trailer.image_size = t->image_size;
}

/* Step 3 in memory. Commands in flight find their zones in the new tables as in the old ones. */
static void take_over_locked(struct zf_image *image, struct growth *growth)
{
	struct zf_image_trailer former = image->trailer;
	struct zf_image_zone_busy *busy = image->busy;
	uint32_t count = growth->trailer.geometry.zone_count;

	image->trailer = growth->trailer;
	growth->trailer = former;
	memcpy(growth->busy, busy, former.geometry.zone_count * sizeof(*busy));
	image->busy = growth->busy;
	growth->busy = busy;
	growth->zones = zf_zone_rules_grow(&image->rules, growth->zones, count);
	image->dev.geometry.zone_count = count;
}

/* Step 3. */
static int switch_over(struct zf_image *image, struct growth *growth)
{
	int r;

	zf_mutex_lock(&image->lock);
	r = zf_image_trailer_take_over(&growth->trailer, &image->trailer);
	if (r == 0) {
		r = zf_image_trailer_write_header(&growth->trailer, image->fd);
		/*
		 * Which of the two headers is on disk is unknown. Both are true as long as no
		 * pointer moves, so the image becomes read-only.
		 */
		if (r < 0)
			image->read_only = true;
	}
	if (r == 0)
		take_over_locked(image, growth);
	zf_mutex_unlock(&image->lock);
	return r;
}

static void punch(const struct zf_image *image, uint64_t from, uint64_t to)
{
	(void)!fallocate(image->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
			 (off_t)(to - from));
}

/* Step 4. It only gives back space: a crash before it leaves an empty zone with old bytes. */
static void remove_former(const struct zf_image *image, const struct zf_image_trailer *former)
{
	punch(image, former->table_offset, former->state_offset + ZF_BLOCK_SIZE);
	if (!image->is_block_device && former->image_size <= image->trailer.table_offset)
		punch(image, former->image_size - ZF_BLOCK_SIZE, former->image_size);
}

/*
 * There is no room for another zone. But if the block device is larger by less than a zone, the
 * header moves to its new end, where it will be found.
 */
static int stay(struct zf_image *image, struct growth *growth)
{
	int r;

	growth->trailer.image_size = zf_align_down(growth->host_size, ZF_BLOCK_SIZE);
	if (!image->is_block_device || growth->trailer.image_size <= image->trailer.image_size)
		return 0;
	r = move_header(image, growth);
	if (r == 0)
		image->trailer.image_size = growth->trailer.image_size;
	else
		tell(image, r, "its header cannot be written");
	return r;
}

static int grow(struct zf_image *image, struct growth *growth)
{
	uint32_t former_count = image->dev.geometry.zone_count;
	int r = allocate(growth);

	if (r < 0)
		return r;
	r = move_header(image, growth);
	if (r < 0) {
		shorten(image, growth);
		return r;
	}
	r = zf_image_trailer_prepare(&growth->trailer, former_count, image->fd);
	if (r == 0)
		r = switch_over(image, growth);
	if (r == 0) {
		remove_former(image, &growth->trailer);
		return 0;
	}
	if (image->read_only)
		tell(image, r, "its header cannot be written; the image is read-only from now on");
	else
		move_header_back(image, growth);
	return r;
}

int zf_image_grow(struct zf_dev *dev, uint32_t zone_count)
{
	struct zf_image *image = zf_image_of(dev);
	struct growth growth = {0};
	int r;

	if (image->read_only) {
		tell(image, -EROFS, "it cannot be grown");
		return -EROFS;
	}
	r = read_host_size(image, &growth.host_size);
	if (r < 0) {
		tell(image, r, "its size cannot be read");
		return r;
	}
	if (zone_count == 0)
		zone_count = largest_count(image, growth.host_size);
	r = check_count(image, zone_count);
	if (r < 0)
		return r;
	if (zone_count == dev->geometry.zone_count)
		return stay(image, &growth);
	r = image->is_block_device
		    ? lay_out_device(image, zone_count, growth.host_size, &growth.trailer)
		    : lay_out_file(image, zone_count, growth.host_size, &growth.trailer);
	if (r < 0)
		return r;
	r = grow(image, &growth);
	/* The host has reported this error here, and will not report it to the next flush. */
	if (r == -EIO)
		zf_image_sync_error(image, "growing", growth.trailer.table_offset, r);
	if (r < 0 && !image->read_only)
		tell(image, r, "it cannot be grown");
	release(&growth);
	return r;
}
