/* SPDX-License-Identifier: MIT */
/*
 * A trace of a run: its events, in order, in a file for other programs.
 *
 * Every layer above reports its events here, at the place where they happen:
 *
 *      ZF_TRACE(extent_fixed, .inode = ino, .offset = offset, ...);
 *
 * trace/events.h is the table of the events and their fields; trace/format.h describes the file;
 * docs/trace.md describes both for readers of traces. A process has at most one trace, as a
 * tracepoint of a kernel has one switch. So the hooks need no handle, and a hook costs one load and
 * a branch while nothing is traced. The fields of an event are evaluated only while a trace runs.
 *
 *      hook --> ring of the thread --> drainer --> file         ZF_TRACE_MONOTONIC
 *      hook ---------------------------------------> file       ZF_TRACE_LOGICAL
 *
 * Invariants.
 *   - An event's sequence is taken where the event happens. So if one event came before another, in
 *     one thread or under one lock, its sequence is lower.
 *   - A hook never waits, whatever lock its thread holds (only the data waits: trace/data.h). If
 *     the thread's ring is full, the event is dropped; its sequence is missing in the file, and an
 *     event `dropped` counts it.
 *   - After zf_trace_stop() no hook writes to that trace any more.
 *   - A command, operation, ... is identified by the sequence of its first event; 0: it began
 *     before the trace.
 *
 * Locking: any thread, any locks held. Only a thread's first event takes a lock, only while a ring
 * is made, and no other lock is taken under it. With the logical clock only one thread of the
 * process may have events.
 *
 * Read next: trace/events.h, trace/ring.h; trace/read.h for the other end.
 */
#ifndef ZF_TRACE_TRACE_H
#define ZF_TRACE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "trace/format.h"

/* ---- values of the events' fields ---- */

/* Operations of fs/core/fs.h. */
#define ZF_TRACE_OPERATIONS(F)                                                                     \
	F(LOOKUP, lookup)                                                                          \
	F(MAKE, make)                                                                              \
	F(TMPFILE, tmpfile)                                                                        \
	F(LINK, link)                                                                              \
	F(UNLINK, unlink)                                                                          \
	F(RMDIR, rmdir)                                                                            \
	F(RENAME, rename)                                                                          \
	F(READLINK, readlink)                                                                      \
	F(READDIR, readdir)                                                                        \
	F(GETATTR, getattr)                                                                        \
	F(SETATTR, setattr)                                                                        \
	F(SET_FLAGS, set_flags)                                                                    \
	F(SETXATTR, setxattr)                                                                      \
	F(GETXATTR, getxattr)                                                                      \
	F(LISTXATTR, listxattr)                                                                    \
	F(REMOVEXATTR, removexattr)                                                                \
	F(READ, read)                                                                              \
	F(WRITE, write)                                                                            \
	F(CLOSE, close)                                                                            \
	F(COPY_RANGE, copy_range)                                                                  \
	F(FALLOCATE, fallocate)                                                                    \
	F(FSYNC, fsync)                                                                            \
	F(SYNCFS, syncfs)

enum zf_trace_operation {
#define ZF_TRACE_ENUM(upper, lower) ZF_OPERATION_##upper,
	ZF_TRACE_OPERATIONS(ZF_TRACE_ENUM)
#undef ZF_TRACE_ENUM
		ZF_TRACE_OPERATION_COUNT,
};

/* The purpose of a command. */
enum zf_trace_purpose {
	ZF_FOR_ITS_ZONE, /* follows from the role of its zone: reads, resets, ... */
	ZF_FOR_DATA,
	ZF_FOR_NODES, /* nodes, and holes between them; each hole has an event of its own */
	ZF_FOR_HOLES, /* holes only */
	ZF_FOR_LOG,
	ZF_FOR_SUPER,
	ZF_FOR_RECLAIM,
	ZF_FOR_COUNT,
};

extern const char *const zf_trace_operation_names[ZF_TRACE_OPERATION_COUNT];
extern const char *const zf_trace_purpose_names[ZF_FOR_COUNT];

/* ---- hooks ---- */

#define ZF_TRACE_TYPE_NUMBER	uint64_t
#define ZF_TRACE_TYPE_NUMBER32	uint32_t
#define ZF_TRACE_TYPE_NUMBER8	uint8_t
#define ZF_TRACE_TYPE_SIGNED	int64_t
#define ZF_TRACE_TYPE_ADDRESS	uint64_t
#define ZF_TRACE_TYPE_FLAG	uint8_t
#define ZF_TRACE_TYPE_TEXT	struct zf_trace_text
#define ZF_TRACE_TYPE_OPERATION uint8_t
#define ZF_TRACE_TYPE_COMMAND	uint8_t
#define ZF_TRACE_TYPE_PURPOSE	uint8_t
#define ZF_TRACE_TYPE_ROLE	uint8_t
#define ZF_TRACE_TYPE_TREE	uint8_t
#define ZF_TRACE_TYPE_EXTENT	uint8_t
#define ZF_TRACE_TYPE_BODY	uint8_t

struct zf_trace_text {
	char text[16];
};

/* struct zf_trace_extent_fixed, ...: the fields that a hook fills in. */
#define ZF_TRACE_EVENT(number, event, sentence) struct zf_trace_##event {
#define ZF_TRACE_FIELD(kind, field)		ZF_TRACE_TYPE_##kind field;
#define ZF_TRACE_END                                                                               \
	}                                                                                          \
	__attribute__((packed));
#include "trace/events.h"

/* ZF_TRACE_extent_fixed, ...: the numbers of the events. */
enum zf_trace_number {
#define ZF_TRACE_EVENT(number, event, sentence) ZF_TRACE_##event = (number),
#define ZF_TRACE_FIELD(kind, field)
#define ZF_TRACE_END
#include "trace/events.h"
};

#define ZF_TRACE_EVENT(number, event, sentence)                                                    \
	_Static_assert(sizeof(struct zf_trace_##event) <= ZF_TRACE_PAYLOAD && (number) > 0 &&      \
			       (number) < ZF_TRACE_EVENT_MAX,                                      \
		       #event);
#define ZF_TRACE_FIELD(kind, field)
#define ZF_TRACE_END
#include "trace/events.h"

extern atomic_bool zf_trace_switch; /* private to the next function */

static inline bool zf_trace_is_on(void)
{
	return __builtin_expect(atomic_load_explicit(&zf_trace_switch, memory_order_relaxed), 0);
}

/* Returns the event's sequence, or 0: the trace was stopped meanwhile. */
uint64_t zf_trace_put(enum zf_trace_number number, const void *event, size_t len);

/* The event's sequence, 0 if nothing is traced. */
#define ZF_TRACE_SEQUENCE(event, ...)                                                              \
	(zf_trace_is_on()                                                                          \
		 ? zf_trace_put(ZF_TRACE_##event, &(struct zf_trace_##event){__VA_ARGS__},         \
				sizeof(struct zf_trace_##event))                                   \
		 : 0)
#define ZF_TRACE(event, ...) ((void)ZF_TRACE_SEQUENCE(event, __VA_ARGS__))

/*
 * The two events of an operation. The result of the first function is `began` of the second, which
 * returns `result`. `ino` of the second: the inode that the operation found or made, else the same.
 */
static inline uint64_t zf_trace_began(enum zf_trace_operation operation, uint64_t ino,
				      uint64_t offset, uint64_t bytes)
{
	return ZF_TRACE_SEQUENCE(operation_began, .inode = ino, .offset = offset, .bytes = bytes,
				 .operation = (uint8_t)operation);
}

static inline int64_t zf_trace_ended(uint64_t began, enum zf_trace_operation operation,
				     uint64_t ino, int64_t result)
{
	ZF_TRACE(operation_ended, .began = began, .inode = ino, .result = result,
		 .operation = (uint8_t)operation);
	return result;
}

/* ---- the trace ---- */

/* A description of the run and the filesystem. Text is cut to its room in the header. */
struct zf_trace_about {
	enum zf_trace_clock clock;
	const char *program;  /* the version of zfuse */
	const char *workload; /* workload and seed say how to repeat the run; NULL: unknown */
	uint64_t seed;

	uint8_t fsid[16];
	uint64_t zone_size, zone_capacity;	       /* bytes */
	uint32_t zone_count, conventional, active_max; /* zones */
	uint32_t block_size, node_size;		       /* bytes */
	uint8_t copies;

	/* The file of the trace's data (trace/data.h), which the caller has begun. */
	bool has_data; /* false: there is none */
	int data_fd;
};

/*
 * Makes a trace in the file `fd`, from the descriptor's position on. The end of the trace closes
 * `fd` and data_fd. With the monotonic clock this starts a thread. -EBUSY: a trace exists already.
 * -errno: the header could not be written, or the thread not started. After an error both
 * descriptors stay the caller's.
 */
int zf_trace_start(int fd, const struct zf_trace_about *about);
/*
 * Turns the hooks on. Called once after zf_trace_start(), under the locks of the objects that the
 * first events describe.
 */
void zf_trace_begin(void);

struct zf_trace_totals {
	uint64_t events;  /* events that happened */
	uint64_t dropped; /* of these: not in the file */
};

/*
 * Ends the trace: all earlier events are in the file, but not made durable. -ESRCH: there is no
 * trace. Any other error is the file's: events after it are not traced, and the file has no
 * `ended`. ret_totals may be NULL; it is set unless the result is -ESRCH.
 */
int zf_trace_stop(struct zf_trace_totals *ret_totals);

/* Ends the trace early; also called if the file of the data could not be written. */
void zf_trace_give_up(int error);

#endif
