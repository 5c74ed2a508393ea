/* SPDX-License-Identifier: MIT */
/*
 * The device over an image file: requests become io_uring operations.
 *
 * A request takes a `command` from a fixed pool, or waits in a queue until one is free. When it
 * starts, under the lock, the zone rules decide, an append gets its address, and the new pointer is
 * stored in the mapped trailer: so the pointer on record is never behind what may have been
 * written, also when the process is killed with the I/O in flight. Most requests are one operation;
 * a reset is two (make the trailer durable, punch the zone out), zeroes and short transfers are
 * as many as it takes. A request that is refused travels as a no-op, so that its error comes
 * the same way as everything else.
 *
 * Any thread submits (under the lock); one at a time reaps (under the framework's poll lock).
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "io/dev_ops.h"
#include "io/image.h"
#include "io/image_file.h"
#include "io/image_trailer.h"
#include "io/zone_rules.h"

#define IN_FLIGHT_MAX 256
/* One for every command, and no-ops that wake the poller on top. */
#define RING_ENTRIES 512
#define REAP_BATCH   64

/* Zeroes are written from one buffer, named again and again in a vector. */
#define ZERO_CHUNK  ((uint64_t)64 * 1024)
#define ZERO_CHUNKS 64

enum step {
	STEP_TRANSFER,
	STEP_FLUSH,
	STEP_RESET_SYNC,  /* the trailer, before anything is written to the zone */
	STEP_RESET_PUNCH, /* its space goes back to the host */
	STEP_RESULT,	  /* decided already */
};

struct command {
	struct zf_io *io;
	enum step step;
	int result;		     /* STEP_RESULT */
	uint64_t done;		     /* STEP_TRANSFER: bytes so far */
	struct zf_zone_state before; /* STEP_RESET_*: what a failed one goes back to */
	struct iovec *rest;	     /* what a short transfer has left, else NULL */
	unsigned int rest_count;
	struct iovec last_zeroes; /* the last, smaller piece of ZEROES */
	struct command *next_free;
};

/* What is going on in a zone that must not meet a reset. */
struct zone_busy {
	uint32_t writes;
	bool resetting;
};

struct image {
	struct zf_dev dev;
	int fd;
	bool read_only;

	struct zf_mutex lock; /* ZF_RANK_DEV: submission side of the ring, and all that follows */
	struct io_uring ring;
	struct zf_zone_rules rules;
	struct zf_image_trailer trailer;
	struct zone_busy *busy;
	struct command commands[IN_FLIGHT_MAX];
	struct command *free_commands;
	struct zf_io *waiting, **waiting_tail;
	bool raise_first; /* pointers are lower bounds, and nothing was written yet */

	void *zero_chunk;
	struct iovec zeroes[ZERO_CHUNKS];
};

static struct image *image_of(struct zf_dev *dev)
{
	return ZF_CONTAINER_OF(dev, struct image, dev);
}

static uint32_t zone_of(const struct image *image, const struct zf_io *io)
{
	return (uint32_t)(io->addr / image->dev.geometry.zone_size);
}

static int host_error(struct image *image, const char *what, uint64_t address, int error)
{
	zf_report(&image->dev.report, ZF_REPORT_ERROR, "%s: %s at %" PRIu64 ": %s", image->dev.path,
		  what, address, strerror(-error));
	return -EIO;
}

/* ---- operations on the ring ---- */

static struct io_uring_sqe *get_sqe_locked(struct image *image, struct command *command)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&image->ring);

	/* There are more entries than commands, and push_locked() leaves none behind. */
	assert(sqe);
	io_uring_sqe_set_data(sqe, command);
	return sqe;
}

/* Short of memory the kernel says EAGAIN: nothing better to do than to ask again. */
static void push_locked(struct image *image)
{
	while (io_uring_sq_ready(&image->ring) > 0) {
		int r = io_uring_submit(&image->ring);

		assert(r >= 0 || r == -EAGAIN || r == -EBUSY || r == -EINTR);
		if (r < 0)
			sched_yield();
	}
}

static void prepare_transfer(struct image *image, struct command *command, struct io_uring_sqe *sqe)
{
	const struct zf_io *io = command->io;
	const struct iovec *iov = command->rest ? command->rest : io->iov;
	unsigned int iovcnt = command->rest ? command->rest_count : io->iovcnt;
	uint64_t left = io->len - command->done;

	if (io->op == ZF_IO_ZEROES && left >= ZERO_CHUNK) {
		iov = image->zeroes;
		iovcnt = (unsigned int)zf_min_u64(left / ZERO_CHUNK, ZERO_CHUNKS);
	} else if (io->op == ZF_IO_ZEROES) {
		command->last_zeroes = (struct iovec){image->zero_chunk, left};
		iov = &command->last_zeroes;
		iovcnt = 1;
	}
	if (io->op == ZF_IO_READ)
		io_uring_prep_readv(sqe, image->fd, iov, iovcnt, io->addr + command->done);
	else
		io_uring_prep_writev2(sqe, image->fd, iov, iovcnt, io->addr + command->done,
				      io->fua ? RWF_DSYNC : 0);
}

static void prepare_trailer_sync(struct image *image, uint32_t zone_no, struct io_uring_sqe *sqe)
{
	io_uring_prep_fsync(sqe, image->fd, IORING_FSYNC_DATASYNC);
	sqe->off = zf_image_trailer_zone_block(&image->trailer, zone_no);
	sqe->len = ZF_BLOCK_SIZE;
}

static void launch_locked(struct image *image, struct command *command)
{
	struct io_uring_sqe *sqe = get_sqe_locked(image, command);
	const struct zf_io *io = command->io;

	switch (command->step) {
	case STEP_TRANSFER:
		prepare_transfer(image, command, sqe);
		break;
	case STEP_FLUSH:
		io_uring_prep_fsync(sqe, image->fd, IORING_FSYNC_DATASYNC);
		break;
	case STEP_RESET_SYNC:
		prepare_trailer_sync(image, zone_of(image, io), sqe);
		break;
	case STEP_RESET_PUNCH:
		io_uring_prep_fallocate(sqe, image->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					(off_t)io->addr, (off_t)image->dev.geometry.zone_size);
		break;
	case STEP_RESULT:
		io_uring_prep_nop(sqe);
		break;
	}
	/* The prep functions of older liburing clear the data. */
	io_uring_sqe_set_data(sqe, command);
}

/* ---- starting a request ---- */

static bool is_write(const struct zf_io *io)
{
	return io->op == ZF_IO_WRITE || io->op == ZF_IO_APPEND || io->op == ZF_IO_ZEROES;
}

static int start_read(struct image *image, struct command *command)
{
	const struct zf_io *io = command->io;
	int r;

	r = zf_zone_rules_check_iov(io->iov, io->iovcnt, io->len);
	if (r == 0)
		r = zf_zone_rules_check_read(&image->rules, io->addr, io->len);
	command->step = STEP_TRANSFER;
	return r;
}

/*
 * A device leaves open which of two commands on one zone goes first. Here a reset punches the zone
 * out while later writes could already be on their way, so the later one fails.
 */
static bool is_in_the_way(const struct image *image, const struct zf_io *io)
{
	const struct zone_busy *busy = &image->busy[zone_of(image, io)];

	return busy->resetting || (!is_write(io) && busy->writes > 0);
}

static int start_change_locked(struct image *image, struct command *command)
{
	struct zf_io *io = command->io;
	struct zf_zone_state *zone;
	uint32_t zone_no;
	uint64_t addr;
	int r;

	if (image->read_only)
		return -EROFS;
	if (io->addr / image->dev.geometry.zone_size >= image->dev.geometry.zone_count)
		return -EINVAL;
	if (is_in_the_way(image, io))
		return -EIO;
	zone_no = zone_of(image, io);
	zone = &image->rules.zones[zone_no];
	command->before = *zone;
	r = zf_zone_rules_apply(&image->rules, io, &addr);
	if (r < 0)
		return r;
	/* Whoever writes has raised the pointers: from now on those in the trailer are exact. */
	if (image->raise_first)
		zf_image_trailer_store_use(&image->trailer, ZF_IMAGE_IN_USE);
	image->raise_first = false;
	zf_image_trailer_store_zone(&image->trailer, zone_no, zone);

	io->addr = addr;
	image->busy[zone_no].writes += is_write(io);
	image->busy[zone_no].resetting = io->op == ZF_IO_RESET;
	if (is_write(io))
		command->step = STEP_TRANSFER;
	else if (io->op == ZF_IO_RESET)
		command->step = STEP_RESET_SYNC;
	else
		command->step = STEP_RESULT;
	return 0;
}

static void start_locked(struct image *image, struct zf_io *io)
{
	struct command *command = image->free_commands;
	int r;

	image->free_commands = command->next_free;
	*command = (struct command){.io = io};
	switch (io->op) {
	case ZF_IO_READ:
		r = start_read(image, command);
		break;
	case ZF_IO_FLUSH:
		command->step = STEP_FLUSH;
		r = 0;
		break;
	default:
		r = start_change_locked(image, command);
	}
	if (r < 0) {
		command->step = STEP_RESULT;
		command->result = r;
	}
	launch_locked(image, command);
}

static void image_submit(struct zf_dev *dev, struct zf_io *io)
{
	struct image *image = image_of(dev);

	zf_mutex_lock(&image->lock);
	if (image->free_commands && !image->waiting) {
		start_locked(image, io);
		push_locked(image);
	} else {
		*image->waiting_tail = io;
		image->waiting_tail = &io->next;
	}
	zf_mutex_unlock(&image->lock);
}

static void start_waiting_locked(struct image *image)
{
	while (image->waiting && image->free_commands) {
		struct zf_io *io = image->waiting;

		image->waiting = io->next;
		if (!image->waiting)
			image->waiting_tail = &image->waiting;
		io->next = NULL;
		start_locked(image, io);
	}
}

/* ---- completions ---- */

/* What is left of the request's segments after command->done bytes. */
static int set_rest(struct command *command)
{
	const struct zf_io *io = command->io;
	uint64_t skip = command->done;
	unsigned int first = 0;
	struct iovec *rest;

	if (io->op == ZF_IO_ZEROES)
		return 0;
	rest = command->rest ? command->rest : calloc(io->iovcnt, sizeof(*rest));
	if (!rest)
		return -ENOMEM;
	while (skip >= io->iov[first].iov_len)
		skip -= io->iov[first++].iov_len;
	command->rest = rest;
	command->rest_count = io->iovcnt - first;
	memcpy(rest, io->iov + first, command->rest_count * sizeof(*rest));
	rest[0].iov_base = (char *)rest[0].iov_base + skip;
	rest[0].iov_len -= skip;
	return 0;
}

/* Returns 1 when there is more to transfer. */
static int transferred(struct image *image, struct command *command, int res)
{
	const struct zf_io *io = command->io;
	const char *what = io->op == ZF_IO_READ ? "read" : "write";

	if (res < 0)
		return host_error(image, what, io->addr, res);
	/* Part of a block does not count: direct I/O could not go on from there. */
	res -= res % (int)ZF_BLOCK_SIZE;
	if (res == 0)
		return host_error(image, what, io->addr, -EIO);
	command->done += (uint64_t)res;
	if (command->done == io->len)
		return 0;
	return set_rest(command) < 0 ? -EIO : 1;
}

static int reset_synced_locked(struct image *image, struct command *command, int res)
{
	uint32_t zone_no = zone_of(image, command->io);
	struct zf_zone_state *zone = &image->rules.zones[zone_no];

	if (res >= 0) {
		command->step = STEP_RESET_PUNCH;
		return 1;
	}
	zf_image_trailer_revoke_reset(&image->trailer, zone_no, zone->reset_count);
	*zone = command->before;
	zf_zone_rules_recount(&image->rules);
	return host_error(image, "reset", command->io->addr, res);
}

/* Returns the request's result, or 1 when another operation has to follow. */
static int advance_locked(struct image *image, struct command *command, int res)
{
	switch (command->step) {
	case STEP_TRANSFER:
		return transferred(image, command, res);
	case STEP_FLUSH:
		return res < 0 ? host_error(image, "flush", 0, res) : 0;
	case STEP_RESET_SYNC:
		return reset_synced_locked(image, command, res);
	case STEP_RESET_PUNCH:
		return 0; /* a host that cannot punch keeps the space, and nothing else is lost */
	case STEP_RESULT:
		return command->result;
	}
	return -EIO;
}

static void finish_locked(struct image *image, struct command *command, int result)
{
	struct zf_io *io = command->io;

	if (io->op != ZF_IO_READ && command->step != STEP_RESULT && command->step != STEP_FLUSH) {
		struct zone_busy *busy = &image->busy[zone_of(image, io)];

		busy->writes -= is_write(io);
		busy->resetting = false;
	}
	free(command->rest);
	command->next_free = image->free_commands;
	image->free_commands = command;
	zf_dev_complete(&image->dev, io, result);
}

/*
 * When a thread ends, the kernel cancels what it has submitted and not begun. Every step may be
 * repeated, and this time it belongs to the poller.
 */
static bool is_to_be_repeated(int res)
{
	return res == -ECANCELED || res == -EINTR || res == -EAGAIN;
}

static void reaped_locked(struct image *image, struct command *command, int res)
{
	int r = is_to_be_repeated(res) ? 1 : advance_locked(image, command, res);

	if (r > 0)
		launch_locked(image, command);
	else
		finish_locked(image, command, r);
}

/* Returns true if something was handed back, or somebody wants the poller to return. */
static bool reap(struct image *image)
{
	struct io_uring_cqe *cqes[REAP_BATCH];
	unsigned int n = io_uring_peek_batch_cqe(&image->ring, cqes, REAP_BATCH);
	bool woken = false;

	if (n == 0)
		return false;
	zf_mutex_lock(&image->lock);
	for (unsigned int i = 0; i < n; i++) {
		struct command *command = io_uring_cqe_get_data(cqes[i]);

		if (command)
			reaped_locked(image, command, cqes[i]->res);
		else
			woken = true;
	}
	io_uring_cq_advance(&image->ring, n);
	start_waiting_locked(image);
	push_locked(image);
	zf_mutex_unlock(&image->lock);
	return woken || image->dev.finished;
}

static void image_poll(struct zf_dev *dev, bool wait)
{
	struct image *image = image_of(dev);
	struct io_uring_cqe *cqe;

	while (!reap(image) && wait)
		io_uring_wait_cqe(&image->ring, &cqe);
}

static void image_wake(struct zf_dev *dev)
{
	struct image *image = image_of(dev);

	zf_mutex_lock(&image->lock);
	io_uring_prep_nop(get_sqe_locked(image, NULL));
	push_locked(image);
	zf_mutex_unlock(&image->lock);
}

/* ---- what goes past the ring ---- */

static int read_exactly(struct image *image, uint64_t addr, void *buf, uint64_t len)
{
	while (len > 0) {
		ssize_t n = pread(image->fd, buf, len, (off_t)addr);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return host_error(image, "read", addr, n < 0 ? -errno : -EIO);
		buf = (char *)buf + n;
		addr += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

static int image_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
		      unsigned int iovcnt)
{
	struct image *image = image_of(dev);
	uint64_t len = 0;
	int r;

	for (unsigned int i = 0; i < iovcnt; i++)
		len += iov[i].iov_len;
	r = zf_zone_rules_check_read(&image->rules, addr, len);
	if (r < 0)
		return r;
	if (preadv(image->fd, iov, (int)iovcnt, (off_t)addr) == (ssize_t)len)
		return 0;
	/* Interrupted, short or failed: once more, segment by segment. */
	for (unsigned int i = 0; i < iovcnt; i++) {
		r = read_exactly(image, addr, iov[i].iov_base, iov[i].iov_len);
		if (r < 0)
			return r;
		addr += iov[i].iov_len;
	}
	return 0;
}

static int image_report(struct zf_dev *dev, uint32_t first, uint32_t count,
			struct zf_zone_info *zones)
{
	struct image *image = image_of(dev);

	zf_mutex_lock(&image->lock);
	for (uint32_t i = 0; i < count; i++)
		zf_zone_rules_report(&image->rules, first + i, &zones[i]);
	zf_mutex_unlock(&image->lock);
	return 0;
}

static int image_raise_pointer(struct zf_dev *dev, uint32_t zone_no, uint64_t wp)
{
	struct image *image = image_of(dev);
	int r;

	zf_mutex_lock(&image->lock);
	r = zf_zone_rules_raise(&image->rules, zone_no, wp);
	if (r == 0)
		zf_image_trailer_store_zone(&image->trailer, zone_no, &image->rules.zones[zone_no]);
	zf_mutex_unlock(&image->lock);
	return r;
}

/* ---- life ---- */

/*
 * The zone table must be durable before the mark that calls it exact. An image that was opened with
 * lower bounds and never written keeps saying so.
 */
static void mark_clean(struct image *image)
{
	int r = fdatasync(image->fd);

	if (r == 0 && !image->raise_first) {
		zf_image_trailer_store_use(&image->trailer, ZF_IMAGE_CLEAN);
		r = fdatasync(image->fd);
	}
	if (r < 0)
		host_error(image, "closing", image->trailer.table_offset, -errno);
}

static void image_free(struct image *image)
{
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
	struct image *image = image_of(dev);

	io_uring_queue_exit(&image->ring);
	if (!image->read_only)
		mark_clean(image);
	image_free(image);
}

static const struct zf_dev_ops image_ops = {
	.kind = "image",
	.submit = image_submit,
	.poll = image_poll,
	.wake = image_wake,
	.read = image_read,
	.report = image_report,
	.raise_pointer = image_raise_pointer,
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
	zf_report(report, ZF_REPORT_ERROR,
		  "%s: not a zoned image, or truncated: no trailer at its end "
		  "(mkfs.zfuse makes one)",
		  path);
	return -ENODEV;
}

static int load_trailer(struct image *image, const struct zf_image_file *file,
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
	zf_image_trailer_load(&image->trailer, &image->rules, report, &lower_bounds);
	image->dev.geometry.pointers_are_lower_bounds = lower_bounds;
	image->raise_first = lower_bounds;
	if (image->read_only)
		return 0;
	/* Durable before the first write: without it, a crash of the host would look clean. */
	zf_image_trailer_store_use(&image->trailer,
				   lower_bounds ? ZF_IMAGE_UNKNOWN : ZF_IMAGE_IN_USE);
	return fdatasync(file->fd) < 0 ? -errno : 0;
}

static int allocate(struct image *image)
{
	image->busy = calloc(image->dev.geometry.zone_count, sizeof(*image->busy));
	image->zero_chunk = aligned_alloc(ZF_BLOCK_SIZE, ZERO_CHUNK);
	if (!image->busy || !image->zero_chunk)
		return -ENOMEM;
	memset(image->zero_chunk, 0, ZERO_CHUNK);
	for (unsigned int i = 0; i < ZERO_CHUNKS; i++)
		image->zeroes[i] = (struct iovec){image->zero_chunk, ZERO_CHUNK};
	for (unsigned int i = 0; i < IN_FLIGHT_MAX; i++) {
		image->commands[i].next_free = image->free_commands;
		image->free_commands = &image->commands[i];
	}
	image->waiting_tail = &image->waiting;
	return 0;
}

static int start_ring(struct image *image, const struct zf_report *report)
{
	int r = io_uring_queue_init(RING_ENTRIES, &image->ring, 0);

	if (r < 0)
		zf_report(report, ZF_REPORT_ERROR,
			  "io_uring is not available (see sysctl kernel.io_uring_disabled, or the "
			  "container's seccomp profile): %s",
			  strerror(-r));
	return r;
}

/* Owns `file` from here on, whatever happens. */
static int image_new(const char *path, const struct zf_image_file *file, bool read_only,
		     const struct zf_image_trailer *trailer, const struct zf_report *report,
		     struct zf_dev **ret_dev)
{
	struct image *image = calloc(1, sizeof(*image));
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
	r = allocate(image);
	if (r == 0)
		r = load_trailer(image, file, trailer, report);
	if (r < 0)
		zf_report(report, ZF_REPORT_ERROR, "%s: cannot be opened: %s", path, strerror(-r));
	if (r == 0)
		r = start_ring(image, report);
	if (r < 0) {
		image_free(image);
		return r;
	}
	*ret_dev = &image->dev;
	return 0;
}

int zf_image_open(const char *path, const struct zf_image_options *options,
		  const struct zf_report *report, struct zf_dev **ret_dev)
{
	enum zf_image_file_mode mode =
		options->read_only ? ZF_IMAGE_FILE_READ : ZF_IMAGE_FILE_WRITE;
	struct zf_image_trailer trailer;
	struct zf_image_file file;
	int r;

	r = zf_image_file_open(path, mode, true, options->lock_wait_ms, report, &file);
	if (r < 0)
		return r;
	r = zf_image_trailer_read(file.fd, file.size, report, &trailer);
	if (r == 0)
		return image_new(path, &file, options->read_only, &trailer, report, ret_dev);
	if (r == -ENODEV)
		r = report_no_trailer(path, &file, report);
	else if (r != -EUCLEAN)
		zf_report(report, ZF_REPORT_ERROR, "%s: cannot be read: %s", path, strerror(-r));
	close(file.fd);
	return r;
}
