/* SPDX-License-Identifier: MIT */
/*
 * Records the requests of an image to its host, in their order: writes, syncs, holes, and stores to
 * memory that is mapped to the file.
 *
 * The linker wraps the library's calls (host.c, and link_args in meson.build), so the backend does
 * not know of the recording. One recording has one image. A command is two events: it begins before
 * the call and is done after the call; a change that is under way in between may be in the file or
 * not. Stores to mapped memory are no calls: before each event the mapping is compared with its
 * former contents, so a store is recorded before any later request of the image.
 *
 * The workload's own notes are among the events (EVENT_NOTE): each at the instant when the workload
 * made it, such as when it got an answer.
 *
 * A recording is one run of bytes, the same in memory and in the file that a failure leaves.
 */
#ifndef ZF_TESTS_HOST_RECORD_H
#define ZF_TESTS_HOST_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_type {
	EVENT_WRITE,	 /* id, offset, len, durable; the bytes follow */
	EVENT_HOLE,	 /* id, offset, len: the range reads as zeroes from then on */
	EVENT_SYNC,	 /* id, offset, len; len 0: of the whole file, its size and its attribute */
	EVENT_SIZE,	 /* id, offset: the size of the file */
	EVENT_DONE,	 /* id, result: a byte count or 0, or -errno */
	EVENT_STORE,	 /* offset, len: to mapped memory; the bytes follow */
	EVENT_ATTRIBUTE, /* the attribute has this value: the bytes follow */
	EVENT_NOTE,	 /* of the workload: the bytes follow */
};

struct event {
	uint32_t type;
	uint32_t durable; /* WRITE: the bytes are durable when the write is done */
	uint64_t id;
	uint64_t offset, len;
	int64_t result;
};

/* ---- recording: host.c ---- */

/* From here on, and until record_end(), every wrapped call counts as one of the image. */
void record_begin(void);
void record_end(void);
/* Records a note at the instant of the call. */
void record_note(const void *note, size_t len);

/* Sets whether the host has started anew since the recording, and the file's attribute. */
void host_set(bool restarted, const char *attribute);

/* ---- recordings ---- */

struct recording {
	char *bytes;
	size_t len;
	uint64_t *events; /* where each begins */
	uint64_t count;
};

/* Returns the recording until now; its bytes live until the next record_begin(). */
void recording_take(struct recording *ret_recording);
/* Finds the events among the bytes. */
void recording_index(struct recording *recording);
void recording_save(const struct recording *recording, const char *path);
void recording_load(struct recording *recording, const char *path);

static inline const struct event *recording_event(const struct recording *recording, uint64_t i)
{
	return (const void *)(recording->bytes + recording->events[i]);
}

/* Whether `len` bytes follow the event, and their address. */
bool event_has_bytes(const struct event *event);
static inline const char *event_bytes(const struct event *event)
{
	return (const char *)(event + 1);
}

#endif
