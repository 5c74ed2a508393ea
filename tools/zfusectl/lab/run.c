/* SPDX-License-Identifier: MIT */
#include "lab/run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "io/geometry.h"
#include "io/zone_rules.h"
#include "trace.h"
#include "trace/trace.h"

/* The largest device, because it is rebuilt in memory. */
#define DEVICE_MAX (UINT64_C(64) << 30)

/* ---- the file of the data ---- */

static int fail(const struct zf_report *report, const char *path, int error)
{
	zf_report(report, ZF_REPORT_ERROR, "%s: %s", path, strerror(-error));
	return error;
}

static int damaged(const struct zf_report *report, const char *path, const char *what)
{
	zf_report(report, ZF_REPORT_ERROR, "%s: %s", path, what);
	return -EUCLEAN;
}

static int read_all(int fd, uint8_t *buf, size_t len)
{
	while (len > 0) {
		ssize_t n = read(fd, buf, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EUCLEAN;
		buf += n;
		len -= (size_t)n;
	}
	return 0;
}

static int load_bytes(const char *path, const struct zf_report *report, uint8_t **ret_bytes,
		      size_t *ret_len)
{
	_zf_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail(report, path, -errno);
	*ret_len = (size_t)st.st_size;
	*ret_bytes = malloc(*ret_len + 1);
	if (!*ret_bytes)
		return fail(report, path, -ENOMEM);
	r = read_all(fd, *ret_bytes, *ret_len);
	if (r < 0) {
		free(*ret_bytes);
		return fail(report, path, r);
	}
	return 0;
}

/* ---- its header and zones ---- */

static struct zf_geometry geometry_of(const struct zf_disk_trace_data_header *header)
{
	struct zf_geometry geometry = ZF_GEOMETRY_OF(header);

	geometry.volatile_cache = header->volatile_cache != 0;
	return geometry;
}

static bool is_of_trace(const struct zf_disk_trace_data_header *header,
			const struct zf_disk_trace_header *trace)
{
	return memcmp(header->fsid, trace->fsid, sizeof(header->fsid)) == 0 &&
	       zf_le64_get(header->zone_size) == zf_le64_get(trace->zone_size) &&
	       zf_le64_get(header->zone_capacity) == zf_le64_get(trace->zone_capacity) &&
	       zf_le32_get(header->conventional) == zf_le32_get(trace->conventional);
}

static bool is_zone(const struct zf_geometry *geometry, const struct zf_disk_trace_data_zone *zone)
{
	uint64_t written = zf_le64_get(zone->written);

	return written <= geometry->zone_capacity && zf_is_aligned(written, ZF_BLOCK_SIZE);
}

static bool is_usable(const struct zf_disk_trace_data_zone *zone)
{
	return zone->condition != ZF_ZONE_READONLY && zone->condition != ZF_ZONE_OFFLINE;
}

static int check_zones(const struct zf_lab_run *run, const char *path,
		       const struct zf_report *report)
{
	for (uint32_t i = 0; i < run->geometry.zone_count; i++) {
		if (!is_zone(&run->geometry, &run->zones[i]))
			return damaged(report, path, "the state of a zone is damaged");
		if (!is_usable(&run->zones[i]))
			return damaged(report, path,
				       "a zone was read-only or offline, which a zone of an image "
				       "cannot be");
	}
	return 0;
}

static int take_header(struct zf_lab_run *run, size_t len, const char *path,
		       const struct zf_report *report, size_t *ret_at)
{
	struct zf_disk_trace_data_header header;
	uint64_t zones_len;

	if (len < sizeof(header) ||
	    memcmp(run->bytes, ZF_TRACE_DATA_MAGIC, sizeof(header.magic)) != 0)
		return damaged(report, path, "this is not the data of a trace");
	memcpy(&header, run->bytes, sizeof(header));
	if (zf_le32_get(header.version) != ZF_TRACE_DATA_VERSION ||
	    zf_le32_get(header.header_size) != sizeof(header))
		return damaged(report, path,
			       "the data of a trace, but of another version: use the zfusectl that "
			       "belongs to the zfuse which wrote it");
	if (!is_of_trace(&header, &run->trace.header))
		return damaged(report, path, "this is the data of another trace");
	run->geometry = geometry_of(&header);
	zones_len = run->geometry.zone_count * (uint64_t)sizeof(*run->zones);
	if (run->geometry.zone_count > ZF_ZONE_COUNT_MAX ||
	    zf_geometry_check(&run->geometry, report) < 0 || len - sizeof(header) < zones_len)
		return damaged(report, path, "the header is damaged");
	run->zones = (const void *)(run->bytes + sizeof(header));
	if (run->geometry.zone_size > DEVICE_MAX / run->geometry.zone_count)
		return damaged(report, path,
			       "the device has more than 64 GiB: record a run on a smaller image");
	*ret_at = sizeof(header) + zones_len;
	return check_zones(run, path, report);
}

/* ---- pieces ---- */

/* Blocks of one zone, within its capacity. */
static bool is_in_zone(const struct zf_lab_run *run, uint64_t address, uint64_t bytes)
{
	const struct zf_geometry *g = &run->geometry;
	uint64_t offset = address % g->zone_size;

	return bytes > 0 && zf_is_aligned(address | bytes, ZF_BLOCK_SIZE) &&
	       address / g->zone_size < g->zone_count && bytes <= g->zone_capacity &&
	       offset <= g->zone_capacity - bytes;
}

static struct zf_lab_command *find_command(const struct zf_lab_run *run, uint64_t submitted)
{
	size_t low = 0, high = run->command_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (run->commands[middle].submitted < submitted)
			low = middle + 1;
		else
			high = middle;
	}
	return low < run->command_count && run->commands[low].submitted == submitted
		       ? &run->commands[low]
		       : NULL;
}

static int add_lay(struct zf_lab_run *run, uint64_t address, uint64_t bytes, const uint8_t *data)
{
	size_t n = run->lay_count;

	/* The array's room doubles, so it is full when `n` is a power of two. */
	if ((n & (n - 1)) == 0) {
		void *grown = reallocarray(run->lay, n ? 2 * n : 1, sizeof(*run->lay));

		if (!grown)
			return -ENOMEM;
		run->lay = grown;
	}
	run->lay[run->lay_count++] =
		(struct zf_lab_piece){.address = address, .bytes = bytes, .data = data};
	return 0;
}

static int take_lay(struct zf_lab_run *run, uint64_t address, uint64_t bytes, const uint8_t *data)
{
	uint64_t zone_size = run->geometry.zone_size;

	if (!is_in_zone(run, address, bytes) ||
	    address % zone_size + bytes > zf_le64_get(run->zones[address / zone_size].written))
		return -EUCLEAN;
	return add_lay(run, address, bytes, data);
}

static int take_piece(struct zf_lab_run *run, const struct zf_disk_trace_data_piece *piece,
		      const uint8_t *data)
{
	uint64_t submitted = zf_le64_get(piece->submitted), bytes = zf_le64_get(piece->bytes);
	struct zf_lab_command *command;

	if (submitted == 0)
		return take_lay(run, zf_le64_get(piece->address), bytes, data);
	command = find_command(run, submitted);
	if (!command)
		return 0;
	if (command->bytes != bytes || command->address != zf_le64_get(piece->address))
		return -EUCLEAN;
	command->data = data;
	return 0;
}

/* The file's last piece may be incomplete. */
static int take_pieces(struct zf_lab_run *run, size_t at, size_t len, const char *path,
		       const struct zf_report *report)
{
	struct zf_disk_trace_data_piece piece;

	while (len - at >= sizeof(piece)) {
		uint64_t bytes;
		int r;

		memcpy(&piece, run->bytes + at, sizeof(piece));
		at += sizeof(piece);
		bytes = zf_le64_get(piece.bytes);
		if (bytes > len - at)
			return 0;
		r = take_piece(run, &piece, run->bytes + at);
		if (r < 0)
			return r == -ENOMEM ? fail(report, path, r)
					    : damaged(report, path,
						      "it contradicts the trace about a write");
		at += bytes;
	}
	return 0;
}

/* ---- the trace's commands ---- */

/* A field of an event, read from the record. */
#define FIELD(record, event, kind, name)                                                           \
	zf_trace_value(ZF_TRACE_##kind, (record)->payload + offsetof(struct zf_trace_##event, name))

static bool is_write(enum zf_io_op op)
{
	return op == ZF_IO_WRITE || op == ZF_IO_APPEND || op == ZF_IO_ZEROES;
}

static bool is_command(const struct zf_lab_run *run, const struct zf_lab_command *command)
{
	const struct zf_geometry *g = &run->geometry;
	uint64_t zone_no = command->address / g->zone_size;

	switch (command->op) {
	case ZF_IO_FLUSH:
		return true;
	case ZF_IO_APPEND:
		return zone_no >= g->conventional &&
		       is_in_zone(run, command->address, command->bytes);
	case ZF_IO_WRITE:
	case ZF_IO_ZEROES:
		return is_in_zone(run, command->address, command->bytes);
	case ZF_IO_RESET:
	case ZF_IO_FINISH:
		return command->address % g->zone_size == 0 && zone_no >= g->conventional &&
		       zone_no < g->zone_count;
	default:
		return false;
	}
}

static void take_submission(struct zf_lab_run *run, const struct zf_disk_trace_record *record)
{
	struct zf_lab_command *command = &run->commands[run->command_count];
	enum zf_io_op op = (enum zf_io_op)FIELD(record, command_submitted, COMMAND, command);

	if (op == ZF_IO_READ)
		return;
	*command = (struct zf_lab_command){
		.submitted = zf_le64_get(record->sequence),
		.op = op,
		.fua = FIELD(record, command_submitted, FLAG, fua) != 0,
		.address = FIELD(record, command_submitted, ADDRESS, address),
		.bytes = FIELD(record, command_submitted, NUMBER, bytes),
		.completed = UINT64_MAX,
	};
	run->command_count++;
}

/* Is `landed` a place where the command can land? */
static bool can_land(const struct zf_lab_run *run, const struct zf_lab_command *command,
		     uint64_t landed)
{
	uint64_t zone_size = run->geometry.zone_size;

	if (!is_write(command->op))
		return true;
	if (command->op != ZF_IO_APPEND)
		return landed == command->address;
	return is_in_zone(run, landed, command->bytes) &&
	       landed / zone_size == command->address / zone_size;
}

static bool take_completion(struct zf_lab_run *run, const struct zf_disk_trace_record *record)
{
	struct zf_lab_command *command =
		find_command(run, FIELD(record, command_completed, NUMBER, submitted));
	int64_t result = (int64_t)FIELD(record, command_completed, SIGNED, result);
	uint64_t landed = FIELD(record, command_completed, ADDRESS, address);

	if (!command || command->completed != UINT64_MAX)
		return true;
	if (result == 0 && !can_land(run, command, landed))
		return false;
	command->completed = zf_le64_get(record->sequence);
	command->result = result;
	command->landed = landed;
	run->completions[run->completion_count++] = (size_t)(command - run->commands);
	return true;
}

static int take_commands(struct zf_lab_run *run, const char *path, const struct zf_report *report)
{
	const struct zf_trace_file *trace = &run->trace;

	run->commands = calloc(trace->count + 1, sizeof(*run->commands));
	run->completions = calloc(trace->count + 1, sizeof(*run->completions));
	if (!run->commands || !run->completions)
		return fail(report, path, -ENOMEM);
	for (size_t i = 0; i < trace->count; i++) {
		const struct zf_disk_trace_record *record = &trace->records[i];
		uint16_t event = zf_le16_get(record->event);
		size_t before = run->command_count;
		bool ok = true;

		if (event == ZF_TRACE_command_submitted)
			take_submission(run, record);
		if (event == ZF_TRACE_command_completed)
			ok = take_completion(run, record);
		if (run->command_count > before)
			ok = is_command(run, &run->commands[before]);
		if (!ok)
			return damaged(report, path,
				       "the trace has a command that its device cannot execute");
	}
	return 0;
}

/* ---- all of it ---- */

static int load(struct zf_lab_run *run, const char *trace_path, const char *data_path,
		const struct zf_report *report)
{
	size_t len = 0, at = 0;
	int r = zf_trace_load(trace_path, report, &run->trace);

	if (r == 0)
		r = load_bytes(data_path, report, &run->bytes, &len);
	if (r == 0)
		r = take_header(run, len, data_path, report, &at);
	if (r == 0)
		r = take_commands(run, trace_path, report);
	if (r == 0)
		r = take_pieces(run, at, len, data_path, report);
	return r;
}

int zf_lab_run_load(const char *trace_path, const char *data_path, const struct zf_report *report,
		    struct zf_lab_run *ret_run)
{
	struct zf_lab_run run = {0};
	int r = load(&run, trace_path, data_path, report);

	if (r < 0)
		zf_lab_run_free(&run);
	else
		*ret_run = run;
	return r;
}

void zf_lab_run_free(struct zf_lab_run *run)
{
	zf_trace_file_free(&run->trace);
	free(run->lay);
	free(run->commands);
	free(run->completions);
	free(run->bytes);
}

/* ---- up to an event ---- */

int zf_lab_run_check(const struct zf_lab_run *run, uint64_t at, const struct zf_report *report)
{
	const struct zf_trace_file *trace = &run->trace;

	/* If no event is missing, the event with the sequence N is the Nth. */
	if (at == 0 || trace->count == 0 ||
	    at > zf_le64_get(trace->records[trace->count - 1].sequence)) {
		zf_report(report, ZF_REPORT_ERROR, "the trace has no event %" PRIu64, at);
		return -EINVAL;
	}
	if (at > trace->count || zf_le64_get(trace->records[at - 1].sequence) != at) {
		zf_report(report, ZF_REPORT_ERROR,
			  "events before %" PRIu64 " are not in the trace: choose an earlier one",
			  at);
		return -ENODATA;
	}
	for (size_t i = 0; i < run->command_count && run->commands[i].submitted <= at; i++) {
		const struct zf_lab_command *command = &run->commands[i];

		if (command->data || command->op == ZF_IO_ZEROES || !is_write(command->op))
			continue;
		zf_report(report, ZF_REPORT_ERROR,
			  "the data lacks the bytes that the write of event %" PRIu64 " wrote",
			  command->submitted);
		return -ENODATA;
	}
	return 0;
}
