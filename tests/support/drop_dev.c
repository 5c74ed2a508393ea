/* SPDX-License-Identifier: MIT */
/*
 * The path of a request:
 *
 *     submit -> begin: makes the bytes for the image -> the image -> end: keeps the right bytes, or
 *     writes them to the file -> the queue `finished` -> poll
 *
 * A block that waits for a flush is in two places: `pending`, in the order of completion, where a
 * flush finds the blocks that it covers; and `blocks`, by address, where a read finds it.
 *
 * A read copies the pending blocks before it reads the image. A flush in between may write blocks
 * to the file and drop them here, but the read has the right bytes either way.
 */
#include "support/drop_dev.h"

#include <assert.h>
#include <bsd/sys/queue.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "io/dev_ops.h"
#include "sim/rng.h"

#define SECTOR_SIZE 512

struct pending {
	uint64_t block;
	uint64_t completed; /* the number of its completion */
	bool dropped;	    /* its zone was reset, or it was written again */
	uint8_t bytes[ZF_BLOCK_SIZE];
	STAILQ_ENTRY(pending) entry;
};

struct drop_dev {
	struct zf_dev dev;
	struct zf_dev *image;
	int fd; /* the image's file, opened a second time, to bypass the image device */
	unsigned int right_percent;
	uint64_t die_at;

	struct zf_mutex lock; /* ZF_RANK_DEV: everything below */
	struct zf_cond finished_some;
	struct zf_rng rng;
	bool woken;
	uint64_t completions, durable_writes, pending_count;
	STAILQ_HEAD(, pending) pending;
	struct pending **blocks; /* by block number; NULL: the file has it */
	STAILQ_HEAD(, command) finished;
};

/* Lives from begin to end. `inner`: the image's request; `cover`: the bytes that it writes. */
struct command {
	struct zf_io inner;
	struct zf_io *io;
	struct drop_dev *drop;
	struct iovec iov;
	uint8_t *cover;
	uint8_t **seen;	  /* READ: the pending blocks, as they were when it began */
	uint64_t covered; /* FLUSH: the last completion that it covers */
	STAILQ_ENTRY(command) entry;
};

static struct drop_dev *drop_of(struct zf_dev *dev)
{
	return ZF_CONTAINER_OF(dev, struct drop_dev, dev);
}

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

/* ---- buffers ---- */

/* The memory of the nth block of a request; no segment ends within a block. */
static uint8_t *block_of(const struct iovec *iov, uint64_t n)
{
	uint64_t at = n * ZF_BLOCK_SIZE;

	for (; at >= iov->iov_len; iov++)
		at -= iov->iov_len;
	return (uint8_t *)iov->iov_base + at;
}

static void write_file(const struct drop_dev *drop, uint64_t block, const uint8_t *bytes)
{
	off_t at = (off_t)(block * ZF_BLOCK_SIZE);

	if (pwrite(drop->fd, bytes, ZF_BLOCK_SIZE, at) != ZF_BLOCK_SIZE)
		abort();
}

/* ---- what is pending ---- */

static void forget_locked(struct drop_dev *drop, uint64_t block)
{
	if (!drop->blocks[block])
		return;
	drop->blocks[block]->dropped = true;
	drop->blocks[block] = NULL;
	drop->pending_count--;
}

static void add_pending_locked(struct drop_dev *drop, uint64_t block, const uint8_t *bytes)
{
	struct pending *pending = must(malloc(sizeof(*pending)));

	*pending = (struct pending){.block = block, .completed = drop->completions};
	memcpy(pending->bytes, bytes, ZF_BLOCK_SIZE);
	STAILQ_INSERT_TAIL(&drop->pending, pending, entry);
	drop->blocks[block] = pending;
	drop->pending_count++;
}

/* Writes blocks that completed up to `covered` to the file, unless they were dropped. */
static void settle_locked(struct drop_dev *drop, uint64_t covered)
{
	struct pending *pending;

	while ((pending = STAILQ_FIRST(&drop->pending)) && pending->completed <= covered) {
		if (!pending->dropped) {
			write_file(drop, pending->block, pending->bytes);
			forget_locked(drop, pending->block);
		}
		STAILQ_REMOVE_HEAD(&drop->pending, entry);
		free(pending);
	}
}

/* Copies pending blocks. An entry is NULL where the image is right; the result is NULL if it is
 * right everywhere. */
static uint8_t **see_locked(struct drop_dev *drop, uint64_t addr, uint64_t len)
{
	uint64_t first = addr / ZF_BLOCK_SIZE, count = len / ZF_BLOCK_SIZE;
	uint8_t **seen = NULL;

	for (uint64_t i = 0; drop->pending_count > 0 && i < count; i++) {
		const struct pending *pending = drop->blocks[first + i];

		if (!pending)
			continue;
		if (!seen)
			seen = must(calloc(count, sizeof(*seen)));
		seen[i] = memcpy(must(malloc(ZF_BLOCK_SIZE)), pending->bytes, ZF_BLOCK_SIZE);
	}
	return seen;
}

/* Puts the copies into the bytes read, if the read succeeded, and frees them. */
static void show(uint8_t **seen, const struct iovec *iov, uint64_t len, int result)
{
	for (uint64_t i = 0; seen && i < len / ZF_BLOCK_SIZE; i++) {
		if (seen[i] && result == 0)
			memcpy(block_of(iov, i), seen[i], ZF_BLOCK_SIZE);
		free(seen[i]);
	}
	free(seen);
}

/* ---- the bytes that the image gets ---- */

static void cover_block_locked(struct drop_dev *drop, const uint8_t *right, uint8_t *ret_cover)
{
	size_t torn;

	if (zf_rng_chance(&drop->rng, drop->right_percent)) {
		memcpy(ret_cover, right, ZF_BLOCK_SIZE);
		return;
	}
	memset(ret_cover, 0, ZF_BLOCK_SIZE);
	switch (zf_rng_below(&drop->rng, 3)) {
	case 0:
		break;
	case 1:
		zf_rng_fill(&drop->rng, ret_cover, ZF_BLOCK_SIZE);
		break;
	default:
		torn = zf_rng_below(&drop->rng, ZF_BLOCK_SIZE / SECTOR_SIZE) * SECTOR_SIZE;
		memcpy(ret_cover, right, torn);
	}
}

/* Written in place: until the write is durable, the block may have its former bytes. */
static void cover_conventional_locked(struct drop_dev *drop, uint64_t addr, const uint8_t *right,
				      uint8_t *ret_cover)
{
	if (zf_rng_chance(&drop->rng, drop->right_percent))
		memcpy(ret_cover, right, ZF_BLOCK_SIZE);
	else if (pread(drop->fd, ret_cover, ZF_BLOCK_SIZE, (off_t)addr) != ZF_BLOCK_SIZE)
		abort();
}

static void cover_locked(struct drop_dev *drop, struct command *command)
{
	const struct zf_geometry *g = &drop->dev.geometry;
	const struct zf_io *io = command->io;
	bool conventional = io->addr / g->zone_size < g->conventional;

	command->cover = must(aligned_alloc(ZF_BLOCK_SIZE, io->len));
	for (uint64_t at = 0; at < io->len; at += ZF_BLOCK_SIZE) {
		const uint8_t *right = block_of(io->iov, at / ZF_BLOCK_SIZE);

		if (conventional)
			cover_conventional_locked(drop, io->addr + at, right, command->cover + at);
		else
			cover_block_locked(drop, right, command->cover + at);
	}
	command->iov = (struct iovec){.iov_base = command->cover, .iov_len = io->len};
	command->inner.iov = &command->iov;
	command->inner.iovcnt = 1;
}

/* ---- beginning and ending ---- */

/* A request that breaks the rules goes unchanged to the image, which returns the error. */
static bool is_covered(const struct zf_io *io)
{
	uint64_t len = 0;

	if (io->op != ZF_IO_WRITE && io->op != ZF_IO_APPEND)
		return false;
	for (unsigned int i = 0; i < io->iovcnt; i++) {
		if (!zf_is_aligned(io->iov[i].iov_len, ZF_BLOCK_SIZE))
			return false;
		len += io->iov[i].iov_len;
	}
	return io->len > 0 && len == io->len;
}

static bool is_inside(const struct drop_dev *drop, uint64_t addr, uint64_t len)
{
	uint64_t end = drop->dev.geometry.zone_size * drop->dev.geometry.zone_count;

	return addr <= end && len <= end - addr;
}

static void begin(struct drop_dev *drop, struct zf_io *io, struct command *ret_command)
{
	*ret_command = (struct command){
		.inner = {.op = io->op,
			  .addr = io->addr,
			  .len = io->len,
			  .iov = io->iov,
			  .iovcnt = io->iovcnt},
		.io = io,
		.drop = drop,
	};
	zf_mutex_lock(&drop->lock);
	if (io->op == ZF_IO_FLUSH)
		ret_command->covered = drop->completions;
	else if (io->op == ZF_IO_READ && is_inside(drop, io->addr, io->len))
		ret_command->seen = see_locked(drop, io->addr, io->len);
	else if (is_covered(io) && is_inside(drop, io->addr, io->len))
		cover_locked(drop, ret_command);
	zf_mutex_unlock(&drop->lock);
}

/* Makes some blocks of the write durable, as in a power cut, and kills the process. */
static void die_locked(struct drop_dev *drop, const struct zf_io *io)
{
	for (uint64_t at = 0; at < io->len; at += ZF_BLOCK_SIZE)
		if (zf_rng_chance(&drop->rng, 50))
			write_file(drop, (io->addr + at) / ZF_BLOCK_SIZE,
				   block_of(io->iov, at / ZF_BLOCK_SIZE));
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

static void written_locked(struct drop_dev *drop, const struct zf_io *io)
{
	drop->completions++;
	if (io->fua && ++drop->durable_writes == drop->die_at)
		die_locked(drop, io);
	for (uint64_t at = 0; at < io->len; at += ZF_BLOCK_SIZE) {
		uint64_t block = (io->addr + at) / ZF_BLOCK_SIZE;
		const uint8_t *bytes = block_of(io->iov, at / ZF_BLOCK_SIZE);

		forget_locked(drop, block);
		if (io->fua)
			write_file(drop, block, bytes);
		else
			add_pending_locked(drop, block, bytes);
	}
}

static void forget_range_locked(struct drop_dev *drop, uint64_t addr, uint64_t len)
{
	for (uint64_t at = 0; at < len; at += ZF_BLOCK_SIZE)
		forget_locked(drop, (addr + at) / ZF_BLOCK_SIZE);
}

static void end(struct command *command)
{
	struct drop_dev *drop = command->drop;
	struct zf_io *io = command->io;
	int result = command->inner.result;

	io->addr = command->inner.addr;
	zf_mutex_lock(&drop->lock);
	if (result == 0 && command->cover)
		written_locked(drop, io);
	else if (result == 0 && io->op == ZF_IO_ZEROES)
		forget_range_locked(drop, io->addr, io->len);
	else if (result == 0 && io->op == ZF_IO_RESET)
		forget_range_locked(drop, io->addr, drop->dev.geometry.zone_size);
	else if (io->op == ZF_IO_FLUSH)
		settle_locked(drop, command->covered);
	zf_mutex_unlock(&drop->lock);
	show(command->seen, io->iov, io->len, result);
	free(command->cover);
}

/* ---- the device ---- */

/* Runs on the image's thread. */
static void image_done(struct zf_io *inner)
{
	struct command *command = ZF_CONTAINER_OF(inner, struct command, inner);
	struct drop_dev *drop = command->drop;

	end(command);
	zf_mutex_lock(&drop->lock);
	STAILQ_INSERT_TAIL(&drop->finished, command, entry);
	zf_cond_signal(&drop->finished_some);
	zf_mutex_unlock(&drop->lock);
}

/* The image is not asked to flush its file: see the header. */
static void drop_submit(struct zf_dev *dev, struct zf_io *io)
{
	struct drop_dev *drop = drop_of(dev);
	struct command *command = must(malloc(sizeof(*command)));

	begin(drop, io, command);
	command->inner.done = image_done;
	if (io->op == ZF_IO_FLUSH)
		image_done(&command->inner);
	else
		zf_dev_submit(drop->image, &command->inner);
}

static int drop_run(struct zf_dev *dev, struct zf_io *io)
{
	struct drop_dev *drop = drop_of(dev);
	struct command command;

	begin(drop, io, &command);
	if (io->op != ZF_IO_FLUSH)
		zf_dev_run(drop->image, &command.inner);
	end(&command);
	return command.inner.result;
}

static void drop_poll(struct zf_dev *dev, bool wait)
{
	struct drop_dev *drop = drop_of(dev);
	STAILQ_HEAD(, command) finished = STAILQ_HEAD_INITIALIZER(finished);
	struct command *command;

	zf_mutex_lock(&drop->lock);
	while (wait && !drop->woken && STAILQ_EMPTY(&drop->finished))
		zf_cond_wait(&drop->finished_some, &drop->lock);
	drop->woken = false;
	STAILQ_CONCAT(&finished, &drop->finished);
	zf_mutex_unlock(&drop->lock);
	while ((command = STAILQ_FIRST(&finished))) {
		STAILQ_REMOVE_HEAD(&finished, entry);
		zf_dev_complete(dev, command->io, command->inner.result);
		free(command);
	}
}

static void drop_wake(struct zf_dev *dev)
{
	struct drop_dev *drop = drop_of(dev);

	zf_mutex_lock(&drop->lock);
	drop->woken = true;
	zf_cond_signal(&drop->finished_some);
	zf_mutex_unlock(&drop->lock);
}

static int drop_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
		     unsigned int iovcnt)
{
	struct drop_dev *drop = drop_of(dev);
	uint8_t **seen = NULL;
	uint64_t len = 0;
	int r;

	for (unsigned int i = 0; i < iovcnt; i++)
		len += iov[i].iov_len;
	zf_mutex_lock(&drop->lock);
	if (is_inside(drop, addr, len))
		seen = see_locked(drop, addr, len);
	zf_mutex_unlock(&drop->lock);
	r = zf_dev_read(drop->image, addr, iov, iovcnt);
	show(seen, iov, len, r);
	return r;
}

static int drop_report(struct zf_dev *dev, uint32_t first, uint32_t count,
		       struct zf_zone_info *zones)
{
	return zf_dev_report(drop_of(dev)->image, first, count, zones);
}

static void drop_warm(struct zf_dev *dev, uint32_t zone_no)
{
	zf_dev_warm(drop_of(dev)->image, zone_no);
}

static int drop_raise_pointer(struct zf_dev *dev, uint32_t zone_no, uint64_t wp)
{
	return zf_dev_raise_pointer(drop_of(dev)->image, zone_no, wp);
}

static int drop_grow(struct zf_dev *dev, uint32_t zone_count)
{
	struct drop_dev *drop = drop_of(dev);
	uint64_t per_zone = dev->geometry.zone_size / ZF_BLOCK_SIZE, former;
	int r = zf_dev_grow(drop->image, zone_count);

	if (r < 0)
		return r;
	zf_mutex_lock(&drop->lock);
	former = dev->geometry.zone_count * per_zone;
	zone_count = zf_dev_geometry(drop->image)->zone_count;
	drop->blocks = must(realloc(drop->blocks, zone_count * per_zone * sizeof(*drop->blocks)));
	memset(drop->blocks + former, 0, (zone_count * per_zone - former) * sizeof(*drop->blocks));
	dev->geometry.zone_count = zone_count;
	zf_mutex_unlock(&drop->lock);
	return 0;
}

static void drop_close(struct zf_dev *dev)
{
	struct drop_dev *drop = drop_of(dev);
	struct pending *pending;

	zf_dev_close(drop->image);
	while ((pending = STAILQ_FIRST(&drop->pending))) {
		STAILQ_REMOVE_HEAD(&drop->pending, entry);
		free(pending);
	}
	close(drop->fd);
	zf_cond_deinit(&drop->finished_some);
	zf_mutex_deinit(&drop->lock);
	free(drop->blocks);
	zf_dev_deinit(&drop->dev);
	free(drop);
}

static const struct zf_dev_ops drop_ops = {
	.kind = "dropping image",
	.submit = drop_submit,
	.poll = drop_poll,
	.wake = drop_wake,
	.run = drop_run,
	.read = drop_read,
	.report = drop_report,
	.warm = drop_warm,
	.raise_pointer = drop_raise_pointer,
	.grow = drop_grow,
	.close = drop_close,
};

uint64_t zf_drop_dev_pending(struct zf_dev *dev)
{
	struct drop_dev *drop = drop_of(dev);
	uint64_t count;

	assert(dev->ops == &drop_ops);
	zf_mutex_lock(&drop->lock);
	count = drop->pending_count;
	zf_mutex_unlock(&drop->lock);
	return count;
}

int zf_drop_dev_new(struct zf_dev *image, uint64_t seed, uint64_t die_at,
		    const struct zf_report *report, struct zf_dev **ret_dev)
{
	static const unsigned int right_percents[] = {0, 0, 15, 50, 85};
	const struct zf_geometry *g = zf_dev_geometry(image);
	struct drop_dev *drop = must(calloc(1, sizeof(*drop)));
	int r;

	drop->fd = open(zf_dev_path(image), O_RDWR | O_CLOEXEC);
	r = drop->fd < 0 ? -errno : zf_dev_start_thread(image);
	if (r < 0) {
		if (drop->fd >= 0)
			close(drop->fd);
		free(drop);
		return r;
	}
	if (zf_dev_init(&drop->dev, &drop_ops, zf_dev_path(image), g, report) < 0)
		abort();
	drop->image = image;
	drop->die_at = die_at;
	drop->blocks = must(
		calloc(g->zone_count, g->zone_size / ZF_BLOCK_SIZE * sizeof(struct pending *)));
	STAILQ_INIT(&drop->pending);
	STAILQ_INIT(&drop->finished);
	zf_mutex_init(&drop->lock, ZF_RANK_DEV);
	zf_cond_init(&drop->finished_some);
	zf_rng_seed(&drop->rng, seed);
	drop->right_percent =
		right_percents[zf_rng_below(&drop->rng, ZF_ARRAY_SIZE(right_percents))];
	*ret_dev = &drop->dev;
	return 0;
}
