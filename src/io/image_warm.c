/* SPDX-License-Identifier: MIT */
/*
 * Writing ahead of the pointer, so that durable writes find written space.
 *
 * A durable write into a hole of the file, or into space that is only allocated, changes the
 * host's metadata: the host's filesystem commits its journal, which costs about half as much again
 * as the write. So a thread writes zeroes ahead of the pointer, where small durable writes come:
 * when zf_dev_warm() announces them, and when they have come and little written space is left. The
 * thread stays only a few MiB ahead, because this space is written twice. It serves only small
 * writes, because for a large write the zeroes would cost more than the journal commit.
 *
 *     start        wp            warm_end  piece in flight             capacity
 *     |############|0000000000000|         |0000000000000|.............|
 *       data         written       gap       being written  hole
 *
 * When the piece has landed, warm_end becomes its end. A piece in a zone in use may leave a gap of
 * at most DISTANCE unwritten before it.
 *
 * These zeroes are no write to the zone: its pointer stays. They are not recorded either: even
 * after a crash, the host knows which space is written (SEEK_HOLE). Each piece is durable when it
 * completes; otherwise the next durable write would pay for it.
 *
 * THE DANGER is a piece of zeroes that lands on data. So a write whose range reaches the piece in
 * flight waits until the piece has landed, and so do a reset and a finish; a piece begins at or
 * beyond the pointer, under the lock; and while pointers are lower bounds, nothing is written ahead
 * at all.
 *
 * Limits: the thread writes one small piece at a time and pauses after it. It writes none while the
 * host is short of space, and never again after an error. It runs only if the device has a thread.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/spawn.h"
#include "io/image_device.h"

/* How far ahead of the pointer zeroes are written, and the largest durable write that starts it. */
#define AHEAD	    ((uint64_t)8 << 20)
#define SMALL_WRITE ((uint64_t)64 << 10)

/* A host that is short of space may be so for long, and each small write would ask it. */
#define ASK_AGAIN_MS 1000

#define PIECE	     ((uint64_t)256 << 10)
#define PAUSE_MS     2

/* In a zone in use, a piece begins at least this far beyond the pointer: writes need not wait. */
#define DISTANCE PIECE

/* One part in this many of the host's filesystem must stay free, and 4 * AHEAD bytes. */
#define LEAVE_ONE_IN 16

/* ---- what the host says ---- */

/* Nothing is gained in memory, nor on a copy-on-write host, where written space is no better. */
static bool host_gains(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC &&
	       fs.f_type != BTRFS_SUPER_MAGIC;
}

static bool host_has_room(int fd)
{
	struct statvfs fs;

	return fstatvfs(fd, &fs) == 0 && fs.f_bavail >= fs.f_blocks / LEAVE_ONE_IN &&
	       fs.f_bavail * fs.f_frsize >= 4 * AHEAD;
}

uint64_t zf_image_warm_end(struct zf_image *image, uint32_t zone_no, uint64_t wp)
{
	const struct zf_geometry *g = &image->dev.geometry;
	uint64_t start = zone_no * g->zone_size;
	off_t hole = lseek(image->fd, (off_t)(start + wp), SEEK_HOLE);

	if (hole < 0)
		return 0;
	return zf_min_u64((uint64_t)hole - start, g->zone_capacity);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Is nothing to be written ahead now? */
static bool rests_locked(const struct zf_image *image)
{
	return image->warmer.off || (image->warmer.ask_ms > 0 && now_ms() < image->warmer.ask_ms);
}

/* ---- the thread ---- */

struct warm_piece {
	uint64_t from, to; /* bytes from the start of the zone */
};

/*
 * How far one round goes. The end is fixed when the round begins, so that it does not chase a
 * pointer that other writes move fast.
 */
static uint64_t target_locked(const struct zf_image *image, uint32_t zone_no)
{
	const struct zf_zone_state *zone = &image->rules.zones[zone_no];

	switch (zone->cond) {
	case ZF_ZONE_EMPTY:
	case ZF_ZONE_IMP_OPEN:
	case ZF_ZONE_EXP_OPEN:
	case ZF_ZONE_CLOSED:
		return zf_min_u64(zone->wp + AHEAD, image->dev.geometry.zone_capacity);
	default:
		return 0;
	}
}

/* Takes the next piece of the zone, which is in flight from now on; false: the round is over. */
static bool next_piece_locked(struct zf_image *image, uint32_t zone_no, uint64_t to,
			      struct warm_piece *ret)
{
	const struct zf_image_zone_busy *busy = &image->busy[zone_no];
	uint64_t wp = image->rules.zones[zone_no].wp;
	uint64_t from = zf_max_u64(busy->warm_end, wp > 0 ? wp + DISTANCE : 0);

	if (image->warmer.stopping || image->warmer.off || busy->resetting || from >= to)
		return false;
	*ret = (struct warm_piece){.from = from, .to = zf_min_u64(from + PIECE, to)};
	image->warmer.zone_no = zone_no;
	image->warmer.from = ret->from;
	image->warmer.to = ret->to;
	return true;
}

static void piece_landed_locked(struct zf_image *image, uint32_t zone_no,
				const struct warm_piece *piece, int r)
{
	image->warmer.from = image->warmer.to = 0;
	zf_cond_broadcast(&image->warmer.landed);
	if (r == -ENOSPC)
		image->warmer.ask_ms = now_ms() + ASK_AGAIN_MS;
	else if (r < 0)
		image->warmer.off = true;
	if (r < 0)
		return;
	image->busy[zone_no].warm_end = piece->to;
	zf_dev_count_ahead(&image->dev, piece->to - piece->from);
}

static int write_piece(struct zf_image *image, uint32_t zone_no, const struct warm_piece *piece)
{
	uint64_t addr = zone_no * image->dev.geometry.zone_size + piece->from;
	uint64_t len = piece->to - piece->from;
	int iovcnt = (int)(len / ZF_IMAGE_ZERO_CHUNK);
	struct iovec iov[PIECE / ZF_IMAGE_ZERO_CHUNK + 1];
	ssize_t n;

	for (int i = 0; i < iovcnt; i++)
		iov[i] = (struct iovec){image->zero_chunk, ZF_IMAGE_ZERO_CHUNK};
	if (len % ZF_IMAGE_ZERO_CHUNK != 0)
		iov[iovcnt++] = (struct iovec){image->zero_chunk, len % ZF_IMAGE_ZERO_CHUNK};
	n = pwritev2(image->fd, iov, iovcnt, (off_t)addr, RWF_DSYNC);
	if (n < 0 && errno == EIO)
		return zf_image_sync_error(image, "write ahead", addr, -errno);
	/* A host, or a quota on it, may become full within the piece. */
	if ((n >= 0 && n < (ssize_t)len) || (n < 0 && errno == EDQUOT))
		return -ENOSPC;
	return n < 0 ? -errno : 0;
}

/* Allocates the range as a whole, so that it becomes one extent on the host. Its data stay. */
static void allocate_on_host(struct zf_image *image, uint32_t zone_no, uint64_t from, uint64_t to)
{
	uint64_t start = zone_no * image->dev.geometry.zone_size;

	(void)!fallocate(image->fd, FALLOC_FL_KEEP_SIZE, (off_t)(start + from), (off_t)(to - from));
}

static void look_locked(struct zf_image *image, uint32_t zone_no)
{
	struct zf_image_zone_busy *busy = &image->busy[zone_no];

	if (busy->looked)
		return;
	busy->looked = true;
	busy->warm_end = zf_image_warm_end(image, zone_no, image->rules.zones[zone_no].wp);
}

static void warm_zone_locked(struct zf_image *image, uint32_t zone_no)
{
	struct warm_piece piece;
	bool first = true;
	uint64_t to;
	int r = 0;

	look_locked(image, zone_no);
	to = target_locked(image, zone_no);
	while (r == 0 && next_piece_locked(image, zone_no, to, &piece)) {
		zf_mutex_unlock(&image->lock);
		r = host_has_room(image->fd) ? 0 : -ENOSPC;
		if (r == 0 && first)
			allocate_on_host(image, zone_no, piece.from, to);
		if (r == 0)
			r = write_piece(image, zone_no, &piece);
		zf_mutex_lock(&image->lock);
		piece_landed_locked(image, zone_no, &piece, r);
		first = false;
		if (!image->warmer.stopping)
			zf_cond_wait_ms(&image->warmer.wanted, &image->lock, PAUSE_MS);
	}
}

static void *warmer_main(void *arg)
{
	struct zf_image *image = arg;
	struct zf_image_warmer *warmer = &image->warmer;

	zf_mutex_lock(&image->lock);
	while (!warmer->stopping) {
		uint32_t zone_no;

		if (warmer->queued == 0) {
			zf_cond_wait(&warmer->wanted, &image->lock);
			continue;
		}
		zone_no = warmer->queue[0];
		do {
			image->busy[zone_no].again = false;
			warm_zone_locked(image, zone_no);
		} while (image->busy[zone_no].again && !warmer->stopping && !rests_locked(image));
		image->busy[zone_no].warming = false;
		warmer->queued--;
		for (unsigned int i = 0; i < warmer->queued; i++)
			warmer->queue[i] = warmer->queue[i + 1];
	}
	zf_mutex_unlock(&image->lock);
	return NULL;
}

static bool start_locked(struct zf_image *image)
{
	struct zf_image_warmer *warmer = &image->warmer;

	if (warmer->started)
		return true;
	warmer->started = zf_spawn(&warmer->thread, "zfuse-ahead", warmer_main, image) == 0;
	warmer->off = !warmer->started;
	return warmer->started;
}

static void want_locked(struct zf_image *image, uint32_t zone_no)
{
	struct zf_image_warmer *warmer = &image->warmer;

	if (image->busy[zone_no].warming) {
		image->busy[zone_no].again = true;
		return;
	}
	if (rests_locked(image) || !image->dev.threaded || image->raise_first ||
	    warmer->queued == ZF_IMAGE_WARM_QUEUE || !start_locked(image))
		return;
	image->busy[zone_no].warming = true;
	warmer->queue[warmer->queued++] = zone_no;
	zf_cond_signal(&warmer->wanted);
}

/* ---- for the rest of the image ---- */

void zf_image_warmer_init(struct zf_image *image, bool is_block_device)
{
	zf_cond_init(&image->warmer.wanted);
	zf_cond_init(&image->warmer.landed);
	image->warmer.off = image->read_only || is_block_device || !host_gains(image->fd);
}

void zf_image_warmer_stop(struct zf_image *image)
{
	if (!image->warmer.started)
		return;
	zf_mutex_lock(&image->lock);
	image->warmer.stopping = true;
	zf_cond_signal(&image->warmer.wanted);
	zf_mutex_unlock(&image->lock);
	pthread_join(image->warmer.thread, NULL);
}

void zf_image_warmer_deinit(struct zf_image *image)
{
	zf_cond_deinit(&image->warmer.landed);
	zf_cond_deinit(&image->warmer.wanted);
}

void zf_image_warm(struct zf_dev *dev, uint32_t zone_no)
{
	struct zf_image *image = zf_image_of(dev);

	zf_mutex_lock(&image->lock);
	if (zone_no >= dev->geometry.conventional && zone_no < dev->geometry.zone_count)
		want_locked(image, zone_no);
	zf_mutex_unlock(&image->lock);
}

void zf_image_warm_after_locked(struct zf_image *image, const struct zf_io *io, uint32_t zone_no)
{
	uint64_t wp = image->rules.zones[zone_no].wp;

	if (io->fua && io->len <= SMALL_WRITE && zone_no >= image->dev.geometry.conventional &&
	    image->busy[zone_no].warm_end < wp + AHEAD / 2 &&
	    image->busy[zone_no].warm_end < image->dev.geometry.zone_capacity)
		want_locked(image, zone_no);
}

/* Whether the request must not begin while the piece is in flight. */
static bool meets_piece(const struct zf_image *image, const struct zf_io *io)
{
	const struct zf_image_warmer *warmer = &image->warmer;

	if (warmer->to == 0 || io->op == ZF_IO_READ || io->op == ZF_IO_FLUSH ||
	    io->addr / image->dev.geometry.zone_size != warmer->zone_no)
		return false;
	if (io->op == ZF_IO_RESET || io->op == ZF_IO_FINISH)
		return true;
	return image->rules.zones[warmer->zone_no].wp + io->len > warmer->from;
}

void zf_image_await_piece_locked(struct zf_image *image, const struct zf_io *io)
{
	while (meets_piece(image, io))
		zf_cond_wait(&image->warmer.landed, &image->lock);
}
