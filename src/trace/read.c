/* SPDX-License-Identifier: MIT */
#include "trace/read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/trace.h"

#define FIRST_RECORDS ((size_t)1024)

/* Returns how many bytes were read, at most `len`; or -errno. */
static ssize_t read_up_to(int fd, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, (uint8_t *)buf + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int fail(const struct zf_report *report, const char *name, int error)
{
	zf_report(report, ZF_REPORT_ERROR, "%s: %s", name, strerror(-error));
	return error;
}

static int check_header(const struct zf_disk_trace_header *header, const char *name,
			const struct zf_report *report)
{
	uint32_t version = zf_le32_get(header->version);

	if (memcmp(header->magic, ZF_TRACE_MAGIC, sizeof(header->magic)) != 0) {
		zf_report(report, ZF_REPORT_ERROR, "%s is no trace of zfuse", name);
		return -EUCLEAN;
	}
	if (version != ZF_TRACE_VERSION) {
		zf_report(report, ZF_REPORT_ERROR,
			  "%s is a trace of version %" PRIu32
			  ", and this zfusectl reads version %u: "
			  "read it with the zfusectl that belongs to the zfuse which wrote it",
			  name, version, ZF_TRACE_VERSION);
		return -EPROTONOSUPPORT;
	}
	if (zf_le32_get(header->header_size) != sizeof(*header) ||
	    zf_le32_get(header->record_size) != sizeof(struct zf_disk_trace_record) ||
	    zf_le64_get(header->zone_size) == 0) {
		zf_report(report, ZF_REPORT_ERROR, "%s: the header of the trace is damaged", name);
		return -EUCLEAN;
	}
	return 0;
}

static int read_header(int fd, const char *name, const struct zf_report *report,
		       struct zf_disk_trace_header *ret_header)
{
	ssize_t n = read_up_to(fd, ret_header, sizeof(*ret_header));

	if (n < 0)
		return fail(report, name, (int)n);
	/* A file shorter than the header counts as one without the magic. */
	memset((uint8_t *)ret_header + n, 0, sizeof(*ret_header) - (size_t)n);
	if ((size_t)n < sizeof(*ret_header))
		memset(ret_header->magic, 0, sizeof(ret_header->magic));
	return check_header(ret_header, name, report);
}

/* A partial record at the end was not written completely: it is left out. */
static int read_records(int fd, const char *name, const struct zf_report *report,
			struct zf_trace_file *file)
{
	size_t room = 0, want;
	ssize_t n;

	do {
		struct zf_disk_trace_record *grown;

		room = room == 0 ? FIRST_RECORDS : room * 2;
		grown = reallocarray(file->records, room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		file->records = grown;
		want = (room - file->count) * sizeof(*grown);
		n = read_up_to(fd, &grown[file->count], want);
		if (n < 0)
			return fail(report, name, (int)n);
		file->count += (size_t)n / sizeof(*grown);
	} while ((size_t)n == want);
	return 0;
}

static int by_sequence(const void *a, const void *b)
{
	const struct zf_disk_trace_record *left = a, *right = b;
	uint64_t x = zf_le64_get(left->sequence), y = zf_le64_get(right->sequence);

	return x < y ? -1 : x > y;
}

int zf_trace_read(int fd, const char *name, const struct zf_report *report,
		  struct zf_trace_file *ret_file)
{
	struct zf_trace_file file = {0};
	int r = read_header(fd, name, report, &file.header);

	if (r == 0)
		r = read_records(fd, name, report, &file);
	if (r < 0) {
		zf_trace_file_free(&file);
		return r;
	}
	qsort(file.records, file.count, sizeof(file.records[0]), by_sequence);
	*ret_file = file;
	return 0;
}

void zf_trace_file_free(struct zf_trace_file *file)
{
	free(file->records);
	file->records = NULL;
}

const struct zf_trace_event *zf_trace_event_of(const struct zf_disk_trace_record *record)
{
	uint16_t number = zf_le16_get(record->event);

	if (number >= ZF_TRACE_EVENT_MAX || !zf_trace_events[number].name)
		return NULL;
	return &zf_trace_events[number];
}
