/* SPDX-License-Identifier: MIT */
/*
 * A zoned device: one asynchronous interface for every backend.
 *
 * What it is. A device is an array of zones of equal size. A sequential zone is written only at
 * its write pointer, up to its *capacity* (which may be below the zone size), and a reset empties
 * it as a whole. A conventional zone may be written anywhere. Addresses are bytes from the start of
 * the device; every address and length is a multiple of ZF_BLOCK_SIZE.
 *
 * How it is used. The caller fills a struct zf_io, which it owns and keeps alive until io->done was
 * called, and submits it. Completions are delivered by zf_dev_poll(), in any order, with no lock of
 * the device held; io->result is 0 or -errno. With zf_dev_start_thread() a thread of the device
 * does the polling, and done() runs on that thread; done() must not wait for another completion.
 * Without such a thread (tests, tools) the waiting thread polls, so a run can be repeated from a
 * seed.
 *
 * Ordering. Appends to one zone may be in flight together and land in any order; only the
 * completion tells where an append landed (io->addr). Writes at the pointer (ZF_IO_WRITE to a
 * sequential zone) may be in flight together too if one caller submitted them in pointer order.
 * A flush covers exactly the writes that completed before it was submitted, whichever thread
 * submitted it: so flushes are shared (io/flush.c). Nothing else may be in flight in a zone while
 * it is reset or finished: such a write may fail (-EIO), or be carried out before or after.
 *
 * Durability. A write or append with `fua` is durable when it completes. Without it, it is durable
 * once a flush that was submitted after its completion has completed (if geometry.volatile_cache).
 *
 * Errors. After a failed write or append the zone's pointer is unknown: report the zone again.
 * -EINVAL: the request breaks a rule that the geometry states (alignment, append limit).
 * -EIO: not at the write pointer, or the medium failed. -ENOSPC: the zone is full, or the request
 * crosses its capacity. -EOVERFLOW: too many active zones. -EROFS: zone read-only. -ENXIO: offline.
 *
 * Read next: io/zone_rules.h (the state machine that every emulation enforces), io/image.h.
 */
#ifndef ZF_IO_DEV_H
#define ZF_IO_DEV_H

#include <bsd/sys/queue.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/lock.h"
#include "base/report.h"
#include "io/append_mode.h"
#include "io/geometry.h"
#include "io/zone_cond.h"
#include "trace/trace.h"

struct zf_dev;
struct zf_open_options;

enum zf_io_op {
	ZF_IO_READ,
	ZF_IO_WRITE, /* at the write pointer of a sequential zone; anywhere in a conventional one */
	ZF_IO_APPEND, /* to the zone that starts at addr; completes with the address in addr */
	ZF_IO_ZEROES, /* like WRITE of `len` zero bytes, without a buffer: see unmapping_zeroes */
	ZF_IO_RESET,  /* the zone that starts at addr */
	ZF_IO_FINISH, /* the zone that starts at addr: its pointer moves to the end */
	ZF_IO_FLUSH,
	ZF_IO_OP_COUNT,
};

/* The most segments of one request. */
#define ZF_IO_IOV_MAX 512

/*
 * A wait for a flush that blocks no thread. The caller owns it and keeps it alive until done() was
 * called.
 */
struct zf_flush_wait {
	uint64_t mark;				  /* of zf_dev_write_mark() */
	void (*done)(struct zf_flush_wait *wait); /* like zf_io.done, and under the same rules */
	int result;				  /* set before done is called: 0 or -errno */

	/* Private to the device from start to done. */
	struct zf_flush_wait *next;
	atomic_bool settled;
};

struct zf_io {
	enum zf_io_op op;
	bool fua;		 /* WRITE and APPEND: durable when completed */
	uint8_t purpose;	 /* enum zf_trace_purpose: for readers of a trace */
	uint64_t addr;		 /* bytes; see the operations above */
	uint64_t len;		 /* bytes; sum of the segments. 0 for RESET, FINISH, FLUSH */
	const struct iovec *iov; /* kept by the caller until done; base and length block-aligned */
	unsigned int iovcnt;
	void (*done)(struct zf_io *io);
	int result; /* set before done is called: 0 or -errno */

	/* Private to the device from submit to done. */
	STAILQ_ENTRY(zf_io) link;
	atomic_bool completed;
	uint64_t traced;	    /* the event of its submission */
	bool then_flush;	    /* a flush follows and makes it durable: ZF_DURABILITY_FLUSH */
	struct zf_flush_wait flush; /* of then_flush */
	union {
		uint64_t u64;
		void *ptr;
		struct {
			uint32_t start, sent, landed; /* blocks */
			int error;
			bool retried;
		} queued; /* io/append_queue.h */
	} backend;
};

STAILQ_HEAD(zf_io_list, zf_io);

enum zf_zone_type {
	ZF_ZONE_CONVENTIONAL,
	ZF_ZONE_SEQUENTIAL,
};

struct zf_zone_info {
	uint64_t start;	      /* bytes */
	uint64_t capacity;    /* bytes that can be written, <= zone size */
	uint64_t wp;	      /* bytes from the start of the *device*; conventional: start */
	uint64_t reset_count; /* resets so far where the device counts them, else 0 */
	enum zf_zone_type type;
	enum zf_zone_cond cond;
	bool warm; /* empty, but with written space at its start: durable writes cost least here */
	/*
	 * The device no longer knows the zone: it shows it as empty, with a reset count that the
	 * zone never had. A caller that knows better calls zf_dev_set_reset_count() and then
	 * zf_dev_raise_pointer(). The first write or reset ends this state, too. Only if
	 * geometry.pointers_are_lower_bounds.
	 */
	bool lost;
	/*
	 * The zone's stored entry was damaged when the device was opened, and this information is a
	 * guess, until the entry is stored again. Set for lost zones and for conventional ones.
	 */
	bool guessed;
};

/* Since open. Bytes and counts of requests that completed without error. */
struct zf_dev_stats {
	uint64_t reads, read_bytes;
	uint64_t appends, append_bytes;
	uint64_t writes, write_bytes; /* writes at the pointer, zeroes included */
	uint64_t fua_writes;	      /* how many of the appends and writes were FUA */
	uint64_t flushes, resets, finishes;
	uint64_t ahead_bytes; /* zeroes ahead of pointers, counted nowhere else: zf_dev_warm() */
	uint64_t errors;      /* failed requests of all kinds */
	uint64_t read_errors, write_errors; /* included in `errors`; write: also appends, zeroes */
};

/* ---- life ---- */

/*
 * Opens the disk at `path`: io/open.h says with which backend. Every failure is reported in words
 * that say what to do. -ENODEV: nothing that zfuse can use (a plain block device without an image:
 * the message names `mkfs.zfuse --image`). -ENOTSUP: a partition, a zone size that is no power of
 * two, blocks that zfuse cannot write. -EBUSY: mounted, or still held by another process after the
 * wait. -EACCES, -EPERM, -ENOENT as open(2) says.
 */
int zf_dev_open(const char *path, const struct zf_open_options *options,
		const struct zf_report *report, struct zf_dev **ret_dev);

/* Waits for all requests in flight, stops the thread, closes. Takes NULL. */
void zf_dev_close(struct zf_dev *dev);

const struct zf_geometry *zf_dev_geometry(const struct zf_dev *dev);

/* "image", "memory", ... and the path or name that the device was opened with. */
const char *zf_dev_kind(const struct zf_dev *dev);
const char *zf_dev_path(const struct zf_dev *dev);

/*
 * True for an image in a regular file that users other than root can write, as its owner or by its
 * mode. This is the state when the file was opened.
 */
bool zf_dev_is_foreign(const struct zf_dev *dev);

/* The mode that zf_dev_open() has chosen: never BEST. */
enum zf_append_mode zf_dev_append_mode(const struct zf_dev *dev);

/* Starts a thread of the device, which delivers completions from now on. Returns 0 or -errno. */
int zf_dev_start_thread(struct zf_dev *dev);
bool zf_dev_is_threaded(const struct zf_dev *dev);

/*
 * How a write or append with `fua` becomes durable. With FLUSH, which is for comparisons, the
 * device sends two commands instead: a plain write, and a flush that begins after it (shared like
 * every flush); statistics count these two. The submitter sees no difference. Must not be changed
 * while a request is in flight.
 */
enum zf_durability {
	ZF_DURABILITY_FUA, /* one command; the default */
	ZF_DURABILITY_FLUSH,
};

void zf_dev_set_durability(struct zf_dev *dev, enum zf_durability durability);
enum zf_durability zf_dev_durability(const struct zf_dev *dev);

/* ---- requests ---- */

/* Never fails: done() gets the error, and is never called from inside this call. */
void zf_dev_submit(struct zf_dev *dev, struct zf_io *io);

/*
 * Without a thread: delivers completed requests; with `wait`, waits for at least one completion if
 * a request is in flight. Returns how many were delivered (0 when nothing is in flight).
 */
unsigned int zf_dev_poll(struct zf_dev *dev, bool wait);

/*
 * Carries the request out and waits for its end: on the calling thread if the backend can, so that
 * no other thread has to be woken. This call sets io->done. Returns io->result. Not for done()
 * callbacks.
 */
int zf_dev_run(struct zf_dev *dev, struct zf_io *io);

/*
 * Reads without a hand-over to another thread. Any thread, any time. Reading above the write
 * pointer is no error on emulated devices, but gives zeroes or the bytes that the zone held before
 * its last reset.
 */
int zf_dev_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov, unsigned int iovcnt);
/* The same into one buffer of any alignment. */
int zf_dev_read_buf(struct zf_dev *dev, uint64_t addr, void *buf, uint64_t len);

struct zf_read {
	uint64_t addr;
	const struct iovec *iov; /* as of zf_dev_read() */
	unsigned int iovcnt;
	int result;	 /* set by the call: 0 or -errno */
	uint64_t traced; /* private to the call */
};

/*
 * Called when a read has its result: on the thread that called, once for each read, in any order.
 * Other reads may still be in flight. The function must not read from the device.
 */
typedef void zf_read_done_fn(void *arg, struct zf_read *read);

/*
 * Makes all reads of the array, submitted in its order; each has its own result. If the backend
 * can, they are in flight together, a bounded number at a time; done() works on completed reads
 * while others are in flight. When the call returns, none is in flight. Any thread, any time.
 */
void zf_dev_read_many(struct zf_dev *dev, struct zf_read *reads, unsigned int count,
		      zf_read_done_fn *done, void *arg);

/*
 * A read that the caller makes itself, on a ring of its own. zf_dev_read_begin() returns the file
 * for a readv(2) at offset read->addr; or -1, and nothing has begun, if the backend has no such
 * file or the read breaks a rule. zf_dev_read_end() gets the result of the readv (bytes or -errno),
 * and sets read->result to 0; or to -EAGAIN if the readv failed or was short: then the caller uses
 * zf_dev_read(), which tries again and reports the error. Any thread, any time.
 */
int zf_dev_read_begin(struct zf_dev *dev, struct zf_read *read);
void zf_dev_read_end(struct zf_dev *dev, struct zf_read *read, int64_t result);

/* Each makes one request and waits for it: for mkfs, the superblock and tests. */
int zf_dev_write_sync(struct zf_dev *dev, uint64_t addr, const void *buf, uint64_t len, bool fua);
int zf_dev_reset(struct zf_dev *dev, uint32_t zone_no);
int zf_dev_finish(struct zf_dev *dev, uint32_t zone_no);

/*
 * Waits for progress: with a thread, zf_cond_wait(); without one, drops the mutex, polls for a
 * completion, and takes it again. So `while (!done) zf_dev_wait_progress(...)` is right in both.
 */
void zf_dev_wait_progress(struct zf_dev *dev, struct zf_cond *cond, struct zf_mutex *mutex);

/* ---- flushes, shared ---- */

/*
 * Takes a *mark*, a point in the sequence of completed writes: all writes that completed before it
 * are durable once a flush that began after it has ended. Costs one load. Any thread; may be taken
 * in done(). A mark is never 0: callers use 0 for "no write to wait for".
 */
uint64_t zf_dev_write_mark(struct zf_dev *dev);

/*
 * Makes all writes durable that completed before the mark was taken. Callers share flushes: a flush
 * that began after a caller's mark serves that caller. While a flush runs that began before the
 * mark, all callers share the next one. No command is sent if the writes are durable already, or
 * the device has no volatile cache. Runs on the calling thread if the backend can. Not for done()
 * callbacks.
 *
 * If a flush fails, all callers that share it, and all later callers, get its error: the content of
 * the device's cache may be lost, so no write that completed since the last good flush can ever
 * count as durable.
 */
int zf_dev_flush_upto(struct zf_dev *dev, uint64_t mark);

/* The same with the current mark. */
int zf_dev_flush(struct zf_dev *dev);

/*
 * The same without waiting. True: wait->done() will be called from a completion, never from inside
 * this call. False: the writes are durable already, and done() is not called. Any thread, also in
 * done() callbacks.
 */
bool zf_dev_flush_start(struct zf_dev *dev, struct zf_flush_wait *wait);

/* ---- zones ---- */

/* Fills zones[0..count) from zone `first` on. Returns 0 or -errno. */
int zf_dev_report(struct zf_dev *dev, uint32_t first, uint32_t count, struct zf_zone_info *zones);

/*
 * Raises a zone's write pointer to `wp` (an address in the zone, or its end), because the bytes
 * below are in use. Does nothing if the pointer is already at or past `wp`. Only after an unclean
 * stop of the host (geometry.pointers_are_lower_bounds), before anything is written. Real zoned
 * devices know their pointers and return -EOPNOTSUPP.
 */
int zf_dev_raise_pointer(struct zf_dev *dev, uint32_t zone_no, uint64_t wp);

/*
 * Sets the reset count of an empty zone: for a copy of another device, zone by zone, and for a lost
 * zone. Durable with the next flush. -EOPNOTSUPP: this device does not count resets. -EBUSY: the
 * zone is not empty.
 */
int zf_dev_set_reset_count(struct zf_dev *dev, uint32_t zone_no, uint64_t reset_count);

/*
 * Makes the device larger: to `zone_count` zones, or, with 0, to as many as there is room for now
 * (a file: up to its end). The new zones are sequential and empty. Other zones and requests in
 * flight are not affected. Durable when it returns 0. If the power is cut or the process killed
 * meanwhile, the device has the old size or the new one. One caller at a time; waits.
 *
 * -EINVAL: fewer zones than there are, or more than a device may have. -ENOSPC: its file or block
 * device has no room; nothing has changed. -EROFS: opened for reading. -EOPNOTSUPP: this device
 * cannot grow. Each error but the last is reported in words.
 */
int zf_dev_grow(struct zf_dev *dev, uint32_t zone_count);

/*
 * A hint that small durable writes will come to this zone, empty or not. The image backend, with a
 * thread, is faster if the space is already written, so it writes some zeroes ahead of the zone's
 * write pointer, in the background, while no request waits. It goes on as long as such writes come.
 * The write pointer does not move. Any thread.
 */
void zf_dev_warm(struct zf_dev *dev, uint32_t zone_no);

/* ---- observation ---- */

void zf_dev_get_stats(struct zf_dev *dev, struct zf_dev_stats *ret_stats);

/*
 * record() is called for every command as it completes (result and final address included), on the
 * thread that delivers it, before io->done; not for reads by zf_dev_read(). NULL turns it off. Not
 * while a request is in flight.
 */
void zf_dev_set_recorder(struct zf_dev *dev, void (*record)(void *arg, const struct zf_io *io),
			 void *arg);

#endif
