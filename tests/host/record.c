/* SPDX-License-Identifier: MIT */
#include "host/record.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"

bool event_has_bytes(const struct event *event)
{
	switch (event->type) {
	case EVENT_WRITE:
	case EVENT_STORE:
	case EVENT_ATTRIBUTE:
	case EVENT_NOTE:
		return true;
	default:
		return false;
	}
}

static size_t size_of(const struct event *event)
{
	return sizeof(*event) +
	       (event_has_bytes(event) ? zf_align_up(event->len, _Alignof(struct event)) : 0);
}

void recording_index(struct recording *recording)
{
	size_t at, n = 0;

	for (at = 0; at < recording->len; n++)
		at += size_of((const void *)(recording->bytes + at));
	recording->events = calloc(n + 1, sizeof(*recording->events));
	assert(recording->events && at == recording->len);
	recording->count = n;
	for (at = 0, n = 0; at < recording->len; n++) {
		recording->events[n] = at;
		at += size_of((const void *)(recording->bytes + at));
	}
}

void recording_save(const struct recording *recording, const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file || fwrite(recording->bytes, 1, recording->len, file) != recording->len ||
	    fclose(file) != 0)
		perror(path);
}

void recording_load(struct recording *recording, const char *path)
{
	FILE *file = fopen(path, "re");
	long len;

	if (!file || fseek(file, 0, SEEK_END) < 0 || (len = ftell(file)) < 0) {
		perror(path);
		exit(2);
	}
	rewind(file);
	*recording = (struct recording){.bytes = malloc((size_t)len), .len = (size_t)len};
	if (!recording->bytes || fread(recording->bytes, 1, recording->len, file) != recording->len)
		abort();
	fclose(file);
	recording_index(recording);
}
