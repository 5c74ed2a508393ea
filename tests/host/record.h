/* SPDX-License-Identifier: MIT */
/*
 * What an image asks of its host, in the order in which it asks: writes, syncs, holes, and stores
 * to memory that is mapped to the file.
 *
 * The library's calls are wrapped by the linker (host.c, and link_args in meson.build), so nothing
 * of the backend knows of it. One recording has one image. A command is two events: it begins
 * before the call and is done after it; what happens in between may be in the file or not. Stores
 * to mapped memory are no calls: the mapping is compared with what it was before each event, so a
 * store is recorded before whatever the image asks for after it.
 *
 * The workload's own notes stand among them (EVENT_NOTE): what it was told, when it was told.
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
	EVENT_HOLE,	 /* id, offset, len: reads as zeroes from then on */
	EVENT_SYNC,	 /* id, offset, len; len 0: of the whole file, its size and its attribute */
	EVENT_SIZE,	 /* id, offset: the size of the file */
	EVENT_DONE,	 /* id, result: a byte count or 0, or -errno */
	EVENT_STORE,	 /* offset, len: to mapped memory; the bytes follow */
	EVENT_ATTRIBUTE, /* the attribute has this value: the bytes follow */
	EVENT_NOTE,	 /* of the workload: the bytes follow */
};

struct event {
	uint32_t type;
	uint32_t durable; /* WRITE: when it is done, these bytes are */
	uint64_t id;
	uint64_t offset, len;
	int64_t result;
};

/* ---- recording: host.c ---- */

/* From here on, and until record_end(), every call of this kind is one of the image. */
void record_begin(void);
void record_end(void);
/* The instant is that of the call. */
void record_note(const void *note, size_t len);

/* What a host says that has started anew since, or not; and what it has as the file's attribute. */
void host_set(bool restarted, const char *attribute);

/* ---- recordings ---- */

struct recording {
	char *bytes;
	size_t len;
	uint64_t *events; /* where each begins */
	uint64_t count;
};

/* What has been recorded until now: its bytes live until the next record_begin(). */
void recording_take(struct recording *ret_recording);
/* Finds the events among the bytes. */
void recording_index(struct recording *recording);
void recording_save(const struct recording *recording, const char *path);
void recording_load(struct recording *recording, const char *path);

static inline const struct event *recording_event(const struct recording *recording, uint64_t i)
{
	return (const void *)(recording->bytes + recording->events[i]);
}

/* Whether `len` bytes follow the event, and where. */
bool event_has_bytes(const struct event *event);
static inline const char *event_bytes(const struct event *event)
{
	return (const char *)(event + 1);
}

#endif
