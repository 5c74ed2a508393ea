/* SPDX-License-Identifier: MIT */
#include "programs.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "lies/child.h"

#define TRACE_HEADER 256u /* bytes, of both files of a trace, or a little more */

struct bytes {
	uint8_t *bytes;
	size_t len;
};

static struct bytes read_bytes(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t end = lseek(fd, 0, SEEK_END);
	struct bytes bytes = {.len = end > 0 ? (size_t)end : 0};

	bytes.bytes = malloc(bytes.len);
	assert(fd >= 0 && bytes.bytes && bytes.len > 0);
	if (pread(fd, bytes.bytes, bytes.len, 0) != end)
		abort();
	close(fd);
	return bytes;
}

/* A number of 1 to 8 bytes: one that breaks arithmetic, or what stands elsewhere in the file. */
static void change_number(uint8_t *bytes, size_t len, size_t first, struct zf_rng *rng)
{
	static const uint64_t edges[] = {
		0,
		1,
		UINT32_MAX,
		UINT64_C(1) << 32,
		INT64_MAX,
		UINT64_C(1) << 63,
		UINT64_MAX - 4095,
		UINT64_MAX,
	};
	static const size_t widths[] = {1, 4, 8};
	size_t width = widths[zf_rng_below(rng, ZF_ARRAY_SIZE(widths))], at;
	uint64_t number = edges[zf_rng_below(rng, ZF_ARRAY_SIZE(edges))];

	if (len < first + 16)
		return;
	at = zf_align_down(first + zf_rng_below(rng, len - first - 8), width);
	if (zf_rng_chance(rng, 40))
		memcpy(&number, bytes + zf_align_down(zf_rng_below(rng, len - 8), 8), width);
	memcpy(bytes + at, &number, width);
}

/* Most traces are changed only behind the header, because readers stop at a damaged header. */
static void write_damaged(const struct bytes *bytes, const char *path, struct zf_rng *rng)
{
	uint8_t *copy = malloc(bytes->len);
	size_t len = zf_rng_chance(rng, 20) ? (size_t)zf_rng_below(rng, bytes->len) : bytes->len;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert(copy && fd >= 0);
	memcpy(copy, bytes->bytes, bytes->len);
	for (uint64_t n = zf_rng_below(rng, 8); n > 0; n--)
		change_number(copy, len, TRACE_HEADER, rng);
	if (zf_rng_chance(rng, 20))
		change_number(copy, zf_min_u64(len, TRACE_HEADER), 0, rng);
	if (write(fd, copy, len) != (ssize_t)len)
		abort();
	close(fd);
	free(copy);
}

struct trace {
	struct bytes trace, data;
	uint64_t seed;
};

static void try_trace(void *arg)
{
	const struct trace *trace = arg;
	char path[330], data[330], at[32], outcome[32];
	struct zf_rng rng;

	zf_rng_seed(&rng, trace->seed);
	snprintf(path, sizeof(path), "%s.trace", programs_image);
	snprintf(data, sizeof(data), "%s.data", programs_image);
	write_damaged(&trace->trace, path, &rng);
	write_damaged(&trace->data, data, &rng);
	snprintf(at, sizeof(at), "%" PRIu64, zf_rng_below(&rng, trace->trace.len / 64 + 2));
	snprintf(outcome, sizeof(outcome), "%" PRIu64, zf_rng_below(&rng, 100));
	(void)programs_run((const char *const[]){ZFUSECTL, "trace", "print", path, NULL});
	(void)programs_run((const char *const[]){ZFUSECTL, "replay", path, "--trace-data", data,
						 "-o", programs_image, NULL});
	if (programs_run((const char *const[]){ZFUSECTL, "lab", "crash", path, programs_image,
					       "--trace-data", data, "--at", at, "--outcome",
					       outcome, "--force", NULL}) == 0)
		(void)programs_fsck("-n");
	unlink(programs_image);
	unlink(path);
	unlink(data);
}

/* Of a short run of the crash explorer. */
static void make_trace(struct trace *ret_trace)
{
	char path[330], data[330];

	snprintf(path, sizeof(path), "%s.trace", programs_image);
	snprintf(data, sizeof(data), "%s.data", programs_image);
	if (programs_run((const char *const[]){"tests/crash/crash", "--ops", "60", "--repeat", "3",
					       "--trace", path, "--trace-data", data, NULL}) != 0)
		abort();
	ret_trace->trace = read_bytes(path);
	ret_trace->data = read_bytes(data);
	unlink(path);
	unlink(data);
}

void programs_try_traces(void)
{
	struct trace trace;
	char how[64];
	bool ended;

	if (programs_options.traces == 0)
		return;
	make_trace(&trace);
	for (uint64_t i = 0; i < programs_options.traces; i++) {
		trace.seed = programs_options.seed + i;
		programs_shared->failed = false;
		programs_shared->text[0] = '\0';
		programs_shared->traces++;
		ended = child_run(try_trace, &trace, how, sizeof(how));
		(void)programs_report("--traces", trace.seed, ended, how);
	}
	free(trace.trace.bytes);
	free(trace.data.bytes);
}
