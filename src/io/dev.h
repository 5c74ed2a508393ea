/* SPDX-License-Identifier: MIT */
/*
 * A zoned device: one asynchronous interface for every backend.
 *
 * What it is. A device is an array of zones of equal size. A sequential zone is written only at
 * its write pointer, up to its *capacity* (which may be below the zone size), and is taken back as
 * a whole by a reset. A conventional zone may be written anywhere. Addresses are bytes from the
 * start of the device; every address and length is a multiple of ZF_BLOCK_SIZE.
 *
 * How it is used. The caller fills a struct zf_io, which it owns and keeps alive until io->done
 * was called, and submits it. Completions are delivered by zf_dev_poll(), in any order, with no
 * lock of the device held; io->result is 0 or -errno. With zf_dev_start_thread() a thread of the
 * device does the polling, and done() runs on that thread; it must not wait for another completion.
 * Without it (tests, tools) whoever waits polls: that is what makes a run repeatable from a seed.
 *
 * Ordering. Appends to one zone may be in flight together and land in any order; where one landed
 * is known from its completion only (io->addr). Writes at the pointer (ZF_IO_WRITE to a sequential
 * zone) may be in flight together too if they were submitted in pointer order by one caller.
 * A flush covers exactly the writes that completed before it was submitted, whoever submitted it:
 * so flushes are shared (io/flush.c). Nothing else may be in flight in a zone while it is reset or
 * finished: such a write may fail (-EIO) or take part.
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
 * Somebody who waits for a flush without a thread of his own. He owns it and keeps it alive until
 * done() was called.
 */
struct zf_append_wait {
	uint64_t mark;				   /* of zf_dev_write_mark() */
	void (*done)(struct zf_append_wait *wait); /* like zf_io.done, and under the same rules */
	int result;				   /* set before done is called: 0 or -errno */

	/* Private to the device from start to done. */
	struct zf_append_wait *next;
	atomic_bool settled;
};

struct zf_io {
	enum zf_io_op op;
	bool fua;		 /* WRITE and APPEND: durable when completed */
	uint8_t purpose;	 /* enum zf_trace_purpose: for whoever reads a trace */
	uint64_t addr;		 /* bytes; see the operations above */
	uint64_t len;		 /* bytes; sum of the segments. 0 for RESET, FINISH, FLUSH */
	const struct iovec *iov; /* kept by the caller until done; base and length block-aligned */
	unsigned int iovcnt;
	void (*done)(struct zf_io *io);
	int result; /* set before done is called: 0 or -errno */

	/* Private to the device from submit to done. */
	STAILQ_ENTRY(zf_io) link;
	atomic_bool completed;
	uint64_t traced;	     /* the event of its submission */
	bool then_flush;	     /* durable by a flush that follows: ZF_DURABILITY_FLUSH */
	struct zf_append_wait flush; /* that one */
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
	bool warm; /* empty, but space is written at its start: durable writes cost least here */
	/*
	 * The device no longer knows the zone: it is shown as empty, with a reset count that it
	 * never had. What is known of it from elsewhere is told by zf_dev_set_reset_count() and
	 * then zf_dev_raise_pointer(); the first write or reset does without. Only where
	 * geometry.pointers_are_lower_bounds.
	 */
	bool lost;
	/*
	 * What the device knew of the zone did not verify when it was opened, and what is shown
	 * instead is a guess: of a lost zone, and of a conventional one. Until its entry is stored
	 * again.
	 */
	bool guessed;
};

/* Since open. Bytes and counts of what completed without error. */
struct zf_dev_stats {
	uint64_t reads, read_bytes;
	uint64_t appends, append_bytes;
	uint64_t writes, write_bytes; /* writes at the pointer, zeroes included */
	uint64_t fua_writes;	      /* how many of the appends and writes were FUA */
	uint64_t flushes, resets, finishes;
	uint64_t ahead_bytes; /* zeroes ahead of pointers, counted nowhere else: zf_dev_warm() */
	uint64_t errors;      /* of all kinds */
	uint64_t read_errors, write_errors; /* of these; write: appends, writes and zeroes */
};

/* ---- life ---- */

/*
 * Opens the disk at `path`: io/open.h says with which backend. Whatever is wrong is reported in
 * words that say what to do. -ENODEV: nothing that zfuse can use (a plain block device without an
 * image: the message names `mkfs.zfuse --image`). -ENOTSUP: a partition, a zone size that is no
 * power of two, blocks that zfuse cannot write. -EBUSY: mounted, or held by another process still,
 * after the wait. -EACCES, -EPERM, -ENOENT as open(2) says.
 */
int zf_dev_open(const char *path, const struct zf_open_options *options,
		const struct zf_report *report, struct zf_dev **ret_dev);

/* Waits for everything in flight, stops the thread, closes. Takes NULL. */
void zf_dev_close(struct zf_dev *dev);

const struct zf_geometry *zf_dev_geometry(const struct zf_dev *dev);

/* "image", "memory", ... and the path or name that the device was opened with. */
const char *zf_dev_kind(const struct zf_dev *dev);
const char *zf_dev_path(const struct zf_dev *dev);

/*
 * An image in a regular file that others than root can write, because they own it or its mode lets
 * them. As it was when the file was opened.
 */
bool zf_dev_is_foreign(const struct zf_dev *dev);

/* Of what zf_dev_open() has opened: never BEST. */
enum zf_append_mode zf_dev_append_mode(const struct zf_dev *dev);

/* Completions are from now on delivered by a thread of the device. Returns 0 or -errno. */
int zf_dev_start_thread(struct zf_dev *dev);
bool zf_dev_is_threaded(const struct zf_dev *dev);

/*
 * How a write or append with `fua` becomes durable. Only to compare: with FLUSH the device makes
 * two commands of it, a plain write and a flush that begins after it (shared like every flush),
 * and counts them as these. Whoever submits it sees no difference. Not while anything is in flight.
 */
enum zf_durability {
	ZF_DURABILITY_FUA, /* by one command; the default */
	ZF_DURABILITY_FLUSH,
};

void zf_dev_set_durability(struct zf_dev *dev, enum zf_durability durability);
enum zf_durability zf_dev_durability(const struct zf_dev *dev);

/* ---- requests ---- */

/* Never fails: errors come by done(), never from inside this call. */
void zf_dev_submit(struct zf_dev *dev, struct zf_io *io);

/*
 * Without a thread: delivers what has completed; with `wait`, waits for at least one completion
 * if anything is in flight. Returns how many were delivered (0 when nothing is in flight).
 */
unsigned int zf_dev_poll(struct zf_dev *dev, bool wait);

/*
 * Carries out and waits: on this very thread where the backend can, so that nobody else has to be
 * woken. io->done is set by this call. Returns io->result. Not for done() callbacks.
 */
int zf_dev_run(struct zf_dev *dev, struct zf_io *io);

/*
 * Reads without a hand-over to another thread. Any thread, any time. Reading above the write
 * pointer is not an error on emulated devices, but what it gives is anybody's guess: zeroes, or
 * what the zone held before its last reset.
 */
int zf_dev_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov, unsigned int iovcnt);
/* The same into one buffer, of whatever alignment. */
int zf_dev_read_buf(struct zf_dev *dev, uint64_t addr, void *buf, uint64_t len);

struct zf_read {
	uint64_t addr;
	const struct iovec *iov; /* as of zf_dev_read() */
	unsigned int iovcnt;
	int result;	 /* set by the call: 0 or -errno */
	uint64_t traced; /* private to the call */
};

/*
 * One of them has its result. On the thread that reads, once for each, in any order; others may
 * still be in flight. Does not read from the device.
 */
typedef void zf_read_done_fn(void *arg, struct zf_read *read);

/*
 * Reads all of them, in flight together where the backend can, submitted in the order of the array;
 * each has its own result. A bounded number is submitted before the first is waited for, so that
 * done() works on what has come while others come. When it returns none is in flight. Any thread,
 * any time.
 */
void zf_dev_read_many(struct zf_dev *dev, struct zf_read *reads, unsigned int count,
		      zf_read_done_fn *done, void *arg);

/*
 * A read that the caller carries out itself, on a ring of its own: readv(2) at offset read->addr of
 * the file that zf_dev_read_begin() returns, whose result zf_dev_read_end() is told: bytes, or
 * -errno. That call sets read->result; if the result was no good, it reads once more, and waits for
 * that. -1: nothing has begun, the backend has no such file, or the read breaks a rule. Any thread,
 * any time.
 */
int zf_dev_read_begin(struct zf_dev *dev, struct zf_read *read);
void zf_dev_read_end(struct zf_dev *dev, struct zf_read *read, int64_t result);

/* One request each, waited for: mkfs, superblock and tests. */
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
 * A mark says what has completed until now: whatever did before it was taken is durable once a
 * flush that began after it has ended. Costs one load. Any thread; may be taken in done(). Never 0:
 * that is a mark for nothing to wait for.
 */
uint64_t zf_dev_write_mark(struct zf_dev *dev);

/*
 * Makes durable what completed before the mark was taken. All who ask share: a flush that began
 * after my mark serves me too, and while one runs that began before it, only one more is wanted.
 * Nothing is issued if it is durable already, or the device has no volatile cache. On the calling
 * thread where the backend can. Not for done() callbacks.
 *
 * The error of a flush is returned to all whom it was to serve, and to everybody whom a later one
 * would have served: what the device's cache held may be lost, so that nothing that completed since
 * the last good flush can ever be called durable.
 */
int zf_dev_flush_upto(struct zf_dev *dev, uint64_t mark);

/* The same with the mark of now. */
int zf_dev_flush(struct zf_dev *dev);

/*
 * The same without waiting: true, and wait->done() comes from a completion, never from inside this
 * call; or false, done() is not called: it is durable. Any thread, done() callbacks too.
 */
bool zf_dev_flush_start(struct zf_dev *dev, struct zf_append_wait *wait);

/* ---- zones ---- */

/* Fills zones[0..count) from zone `first` on. Returns 0 or -errno. */
int zf_dev_report(struct zf_dev *dev, uint32_t first, uint32_t count, struct zf_zone_info *zones);

/*
 * Only after an unclean stop of the host (geometry.pointers_are_lower_bounds), before anything is
 * written: bytes below `wp` (an address in the zone or its end) are in use. A no-op if not above
 * the current pointer. Real zoned devices know their pointers and return -EOPNOTSUPP.
 */
int zf_dev_raise_pointer(struct zf_dev *dev, uint32_t zone_no, uint64_t wp);

/*
 * The zone, which is empty, was reset so often: for a copy of another device, zone by zone, and for
 * a zone that is lost. Durable with the next flush. -EOPNOTSUPP: this device does not count resets.
 * -EBUSY: it is not empty.
 */
int zf_dev_set_reset_count(struct zf_dev *dev, uint32_t zone_no, uint64_t reset_count);

/*
 * Makes the device larger: to `zone_count` zones, or, with 0, to as many as there is room for now
 * (of a file, up to its end). The new zones are sequential and empty; the others, and whatever is
 * in flight, are not touched. Durable when it returns 0. Power may be cut, or the process killed,
 * at any instant: then the device has the old size or the new one. One caller at a time; waits.
 *
 * -EINVAL: fewer zones than there are, or more than a device may have. -ENOSPC: no room where it
 * lies; nothing has changed. -EROFS: opened for reading. -EOPNOTSUPP: devices that have the size
 * that they have. Each but the last is reported in words.
 */
int zf_dev_grow(struct zf_dev *dev, uint32_t zone_count);

/*
 * Says that small durable writes are to come to this zone, empty or not. A device that is quicker
 * where space is written already writes some zeroes ahead of its pointer, in the background and as
 * far as that disturbs nobody (the image backend, with a thread); it goes on by itself as long as
 * such writes come. No promise, no write that anybody sees: the pointer stays. Any thread.
 */
void zf_dev_warm(struct zf_dev *dev, uint32_t zone_no);

/* ---- observation ---- */

void zf_dev_get_stats(struct zf_dev *dev, struct zf_dev_stats *ret_stats);

/*
 * Sees every command as it completes (result and final address included), on the thread that
 * delivers it, before io->done. Reads by zf_dev_read() are not shown. NULL turns it off. Not
 * while anything is in flight.
 */
void zf_dev_set_recorder(struct zf_dev *dev, void (*record)(void *arg, const struct zf_io *io),
			 void *arg);

#endif
