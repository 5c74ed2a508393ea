/* SPDX-License-Identifier: MIT */
/*
 * What all backends share. The path of a request:
 *
 *     zf_dev_submit -> ops->submit ... ops->poll -> zf_dev_complete -> deliver -> io->done
 *
 * ops->poll runs under poll_lock and only collects completed requests. They are delivered after the
 * lock was dropped, so a done() may submit, and may take any lock of its own.
 */
#include "io/dev.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/spawn.h"
#include "io/dev_ops.h"
#include "io/iov.h"
#include "io/zone_rules.h"
#include "trace/data.h"

/* ---- life ---- */

int zf_dev_init(struct zf_dev *dev, const struct zf_dev_ops *ops, const char *path,
		const struct zf_geometry *geometry, const struct zf_report *report)
{
	char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	*dev = (struct zf_dev){.ops = ops, .path = copy, .geometry = *geometry};
	if (report)
		dev->report = *report;
	STAILQ_INIT(&dev->finished);
	/* As if one flush had ended: so no mark is 0, and mark 0 is always durable. */
	atomic_init(&dev->flushing.begun, 1);
	dev->flushing.durable = 1;
	zf_mutex_init(&dev->lock, ZF_RANK_DEV);
	zf_mutex_init(&dev->poll_lock, ZF_RANK_POLL);
	zf_cond_init(&dev->progress);
	return 0;
}

void zf_dev_deinit(struct zf_dev *dev)
{
	zf_cond_deinit(&dev->progress);
	zf_mutex_deinit(&dev->poll_lock);
	zf_mutex_deinit(&dev->lock);
	free(dev->first_report);
	free(dev->path);
}

const struct zf_geometry *zf_dev_geometry(const struct zf_dev *dev)
{
	return &dev->geometry;
}

const char *zf_dev_kind(const struct zf_dev *dev)
{
	return dev->ops->kind;
}

const char *zf_dev_path(const struct zf_dev *dev)
{
	return dev->path;
}

bool zf_dev_is_foreign(const struct zf_dev *dev)
{
	return dev->foreign;
}

enum zf_append_mode zf_dev_append_mode(const struct zf_dev *dev)
{
	return dev->append;
}

bool zf_dev_is_threaded(const struct zf_dev *dev)
{
	return dev->threaded;
}

void zf_dev_set_durability(struct zf_dev *dev, enum zf_durability durability)
{
	assert(atomic_load(&dev->in_flight) == 0);
	dev->durability = durability;
}

enum zf_durability zf_dev_durability(const struct zf_dev *dev)
{
	return dev->durability;
}

/* ---- observation ---- */

#define STAT(field) (offsetof(struct zf_dev_stats, field) / sizeof(uint64_t))

static void count(struct zf_dev *dev, size_t stat, uint64_t n)
{
	atomic_fetch_add_explicit(&dev->stats[stat], n, memory_order_relaxed);
}

void zf_dev_count_read(struct zf_dev *dev, uint64_t bytes)
{
	count(dev, STAT(reads), 1);
	count(dev, STAT(read_bytes), bytes);
}

static void count_error(struct zf_dev *dev, enum zf_io_op op)
{
	count(dev, STAT(errors), 1);
	if (op == ZF_IO_READ)
		count(dev, STAT(read_errors), 1);
	if (op == ZF_IO_APPEND || op == ZF_IO_WRITE || op == ZF_IO_ZEROES)
		count(dev, STAT(write_errors), 1);
}

static void count_completion(struct zf_dev *dev, const struct zf_io *io)
{
	if (io->result < 0) {
		count_error(dev, io->op);
		return;
	}
	switch (io->op) {
	case ZF_IO_READ:
		zf_dev_count_read(dev, io->len);
		break;
	case ZF_IO_APPEND:
		count(dev, STAT(appends), 1);
		count(dev, STAT(append_bytes), io->len);
		count(dev, STAT(fua_writes), io->fua);
		break;
	case ZF_IO_WRITE:
	case ZF_IO_ZEROES:
		count(dev, STAT(writes), 1);
		count(dev, STAT(write_bytes), io->len);
		count(dev, STAT(fua_writes), io->fua);
		break;
	case ZF_IO_RESET:
		count(dev, STAT(resets), 1);
		break;
	case ZF_IO_FINISH:
		count(dev, STAT(finishes), 1);
		break;
	case ZF_IO_FLUSH:
		count(dev, STAT(flushes), 1);
		break;
	case ZF_IO_OP_COUNT:
		break;
	}
}

void zf_dev_count_ahead(struct zf_dev *dev, uint64_t bytes)
{
	count(dev, STAT(ahead_bytes), bytes);
}

void zf_dev_get_stats(struct zf_dev *dev, struct zf_dev_stats *ret_stats)
{
	uint64_t stats[ZF_DEV_STATS];

	_Static_assert(sizeof(stats) == sizeof(*ret_stats), "zf_dev_stats is all uint64_t");
	for (size_t i = 0; i < ZF_DEV_STATS; i++)
		stats[i] = atomic_load_explicit(&dev->stats[i], memory_order_relaxed);
	memcpy(ret_stats, stats, sizeof(stats));
}

void zf_dev_set_recorder(struct zf_dev *dev, void (*record)(void *arg, const struct zf_io *io),
			 void *arg)
{
	dev->record = record;
	dev->record_arg = arg;
}

/* ---- for a trace ---- */

static void trace_submission(struct zf_io *io)
{
	io->traced = ZF_TRACE_SEQUENCE(command_submitted, .address = io->addr, .bytes = io->len,
				       .command = (uint8_t)io->op, .purpose = io->purpose,
				       .fua = io->fua);
	if (io->traced && zf_trace_has_data() && (io->op == ZF_IO_WRITE || io->op == ZF_IO_APPEND))
		zf_trace_data_put(io->traced, io->addr, io->iov, io->iovcnt, io->len);
}

static void trace_completion(const struct zf_io *io)
{
	ZF_TRACE(command_completed, .submitted = io->traced, .address = io->addr, .bytes = io->len,
		 .result = io->result, .command = (uint8_t)io->op, .purpose = io->purpose,
		 .fua = io->fua);
}

uint64_t zf_dev_trace_read(uint64_t addr, uint64_t bytes)
{
	return ZF_TRACE_SEQUENCE(command_submitted, .address = addr, .bytes = bytes,
				 .command = ZF_IO_READ);
}

void zf_dev_trace_read_end(uint64_t submitted, uint64_t addr, uint64_t bytes, int result)
{
	ZF_TRACE(command_completed, .submitted = submitted, .address = addr, .bytes = bytes,
		 .result = result, .command = ZF_IO_READ);
}

/* ---- handing back ---- */

void zf_dev_complete(struct zf_dev *dev, struct zf_io *io, int result)
{
	io->result = result;
	STAILQ_INSERT_TAIL(&dev->finished, io, link);
	atomic_fetch_sub(&dev->in_flight, 1);
}

/* ---- the zone report made at open ---- */

static bool changes_zones(const struct zf_io *io)
{
	return io->op != ZF_IO_READ && io->op != ZF_IO_FLUSH;
}

static void drop_first_report(struct zf_dev *dev)
{
	zf_mutex_lock(&dev->lock);
	free(dev->first_report);
	dev->first_report = NULL;
	zf_mutex_unlock(&dev->lock);
}

static bool give_first_report(struct zf_dev *dev, uint32_t first, uint32_t zone_count,
			      struct zf_zone_info *zones)
{
	const struct zf_zone_info *report;

	zf_mutex_lock(&dev->lock);
	report = dev->had_error ? NULL : dev->first_report;
	if (report)
		memcpy(zones, report + first, zone_count * sizeof(*zones));
	zf_mutex_unlock(&dev->lock);
	return report != NULL;
}

/* ---- durable by a flush ---- */

/* With then_flush the request is a plain write from here on, until written() restores its `fua`. */
static void begin(struct zf_dev *dev, struct zf_io *io)
{
	if (dev->first_report && changes_zones(io))
		drop_first_report(dev);
	io->then_flush = io->fua && dev->durability == ZF_DURABILITY_FLUSH;
	if (io->then_flush)
		io->fua = false;
	trace_submission(io);
}

/* Returns whether the completed write still has to be made durable. */
static bool written(struct zf_io *io)
{
	if (!io->then_flush)
		return false;
	io->fua = true;
	return io->result == 0;
}

static void flushed(struct zf_flush_wait *flush)
{
	struct zf_io *io = ZF_CONTAINER_OF(flush, struct zf_io, flush);

	io->result = flush->result;
	io->done(io);
}

static bool start_flush(struct zf_dev *dev, struct zf_io *io)
{
	io->flush = (struct zf_flush_wait){.mark = zf_dev_write_mark(dev), .done = flushed};
	return zf_dev_flush_start(dev, &io->flush);
}

/* ---- completion ---- */

/*
 * A request without `done` is one of zf_dev_run(): its thread waits with the device's lock and
 * condition, and flushes by itself.
 */
static void deliver(struct zf_dev *dev, struct zf_io *io)
{
	trace_completion(io);
	count_completion(dev, io);
	if (dev->record)
		dev->record(dev->record_arg, io);
	if (io->done) {
		if (!written(io) || !start_flush(dev, io))
			io->done(io);
		return;
	}
	zf_mutex_lock(&dev->lock);
	atomic_store(&io->completed, true);
	zf_cond_broadcast(&dev->progress);
	zf_mutex_unlock(&dev->lock);
}

static unsigned int collect_and_deliver(struct zf_dev *dev, bool wait)
{
	struct zf_io_list finished = STAILQ_HEAD_INITIALIZER(finished);
	struct zf_io *io;
	unsigned int n = 0;

	zf_mutex_lock(&dev->poll_lock);
	if (dev->threaded || atomic_load(&dev->in_flight) > 0)
		dev->ops->poll(dev, wait);
	STAILQ_CONCAT(&finished, &dev->finished);
	zf_mutex_unlock(&dev->poll_lock);

	for (; (io = STAILQ_FIRST(&finished)); n++) {
		STAILQ_REMOVE_HEAD(&finished, link);
		deliver(dev, io);
	}
	return n;
}

unsigned int zf_dev_poll(struct zf_dev *dev, bool wait)
{
	assert(!dev->threaded);
	return collect_and_deliver(dev, wait);
}

static void *thread_main(void *arg)
{
	struct zf_dev *dev = arg;

	while (!atomic_load(&dev->stopping) || atomic_load(&dev->in_flight) > 0)
		collect_and_deliver(dev, true);
	return NULL;
}

int zf_dev_start_thread(struct zf_dev *dev)
{
	int r;

	assert(!dev->threaded && atomic_load(&dev->in_flight) == 0);
	dev->threaded = true;
	r = zf_spawn(&dev->thread, "zfuse-io", thread_main, dev);
	if (r < 0)
		dev->threaded = false;
	return r;
}

void zf_dev_close(struct zf_dev *dev)
{
	if (!dev)
		return;
	if (dev->threaded) {
		atomic_store(&dev->stopping, true);
		dev->ops->wake(dev);
		pthread_join(dev->thread, NULL);
	} else {
		while (atomic_load(&dev->in_flight) > 0)
			collect_and_deliver(dev, true);
	}
	dev->ops->close(dev);
}

/* ---- requests ---- */

static void submit(struct zf_dev *dev, struct zf_io *io)
{
	io->result = 0;
	atomic_fetch_add(&dev->in_flight, 1);
	dev->ops->submit(dev, io);
}

void zf_dev_submit(struct zf_dev *dev, struct zf_io *io)
{
	assert(io->done);
	begin(dev, io);
	submit(dev, io);
}

/* Not while there is a recorder, because it is promised calls on the delivering thread only. */
static bool ran_here(struct zf_dev *dev, struct zf_io *io)
{
	int r = dev->ops->run && !dev->record ? dev->ops->run(dev, io) : ZF_DEV_NOT_HERE;

	if (r == ZF_DEV_NOT_HERE)
		return false;
	io->result = r;
	trace_completion(io);
	count_completion(dev, io);
	return true;
}

void zf_dev_wait_until(struct zf_dev *dev, atomic_bool *flag)
{
	if (dev->threaded) {
		zf_mutex_lock(&dev->lock);
		while (!atomic_load(flag))
			zf_cond_wait(&dev->progress, &dev->lock);
		zf_mutex_unlock(&dev->lock);
	} else {
		while (!atomic_load(flag))
			collect_and_deliver(dev, true);
	}
}

int zf_dev_run(struct zf_dev *dev, struct zf_io *io)
{
	begin(dev, io);
	if (!ran_here(dev, io)) {
		io->done = NULL;
		atomic_store(&io->completed, false);
		submit(dev, io);
		zf_dev_wait_until(dev, &io->completed);
	}
	if (written(io))
		io->result = zf_dev_flush(dev);
	return io->result;
}

static int read_checked(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
			unsigned int iovcnt, uint64_t len)
{
	int r = zf_zone_rules_check_iov(iov, iovcnt, len);

	return r < 0 ? r : dev->ops->read(dev, addr, iov, iovcnt);
}

int zf_dev_read_request(struct zf_dev *dev, const struct zf_io *io)
{
	return read_checked(dev, io->addr, io->iov, io->iovcnt, io->len);
}

int zf_dev_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov, unsigned int iovcnt)
{
	uint64_t len = zf_iov_len(iov, iovcnt), submitted = zf_dev_trace_read(addr, len);
	int r = read_checked(dev, addr, iov, iovcnt, len);

	zf_dev_trace_read_end(submitted, addr, len, r);
	if (r < 0) {
		count_error(dev, ZF_IO_READ);
		return r;
	}
	zf_dev_count_read(dev, len);
	return 0;
}

int zf_dev_read_buf(struct zf_dev *dev, uint64_t addr, void *buf, uint64_t len)
{
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	int r;

	if (zf_is_aligned((uintptr_t)buf, ZF_BLOCK_SIZE) || !zf_is_aligned(len, ZF_BLOCK_SIZE))
		return zf_dev_read(dev, addr, &iov, 1);
	iov.iov_base = aligned_alloc(ZF_BLOCK_SIZE, len);
	if (!iov.iov_base)
		return -ENOMEM;
	r = zf_dev_read(dev, addr, &iov, 1);
	if (r == 0)
		memcpy(buf, iov.iov_base, len);
	free(iov.iov_base);
	return r;
}

int zf_dev_write_sync(struct zf_dev *dev, uint64_t addr, const void *buf, uint64_t len, bool fua)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
	struct zf_io io = {
		.op = ZF_IO_WRITE,
		.fua = fua,
		.addr = addr,
		.len = len,
		.iov = &iov,
		.iovcnt = 1,
	};

	return zf_dev_run(dev, &io);
}

static int run_on_zone(struct zf_dev *dev, enum zf_io_op op, uint32_t zone_no)
{
	struct zf_io io = {.op = op, .addr = zone_no * dev->geometry.zone_size};

	return zf_dev_run(dev, &io);
}

int zf_dev_reset(struct zf_dev *dev, uint32_t zone_no)
{
	return run_on_zone(dev, ZF_IO_RESET, zone_no);
}

int zf_dev_finish(struct zf_dev *dev, uint32_t zone_no)
{
	return run_on_zone(dev, ZF_IO_FINISH, zone_no);
}

void zf_dev_wait_progress(struct zf_dev *dev, struct zf_cond *cond, struct zf_mutex *mutex)
{
	if (dev->threaded) {
		zf_cond_wait(cond, mutex);
		return;
	}
	zf_mutex_unlock(mutex);
	collect_and_deliver(dev, true);
	zf_mutex_lock(mutex);
}

/* ---- zones ---- */

int zf_dev_report(struct zf_dev *dev, uint32_t first, uint32_t zone_count,
		  struct zf_zone_info *zones)
{
	if (first > dev->geometry.zone_count || zone_count > dev->geometry.zone_count - first)
		return -EINVAL;
	if (give_first_report(dev, first, zone_count, zones))
		return 0;
	return dev->ops->report(dev, first, zone_count, zones);
}

int zf_dev_raise_pointer(struct zf_dev *dev, uint32_t zone_no, uint64_t wp)
{
	return dev->ops->raise_pointer ? dev->ops->raise_pointer(dev, zone_no, wp) : -EOPNOTSUPP;
}

int zf_dev_set_reset_count(struct zf_dev *dev, uint32_t zone_no, uint64_t reset_count)
{
	return dev->ops->set_reset_count ? dev->ops->set_reset_count(dev, zone_no, reset_count)
					 : -EOPNOTSUPP;
}

int zf_dev_grow(struct zf_dev *dev, uint32_t zone_count)
{
	return dev->ops->grow ? dev->ops->grow(dev, zone_count) : -EOPNOTSUPP;
}

void zf_dev_warm(struct zf_dev *dev, uint32_t zone_no)
{
	if (dev->ops->warm)
		dev->ops->warm(dev, zone_no);
}
