/* SPDX-License-Identifier: MIT */
/*
 * The page is the same for each trace (tools/zfusectl/replay/), except for two parts: JSON with the
 * header and the tables of events and names; and the records of the file, sorted, compressed and in
 * base64. The page of two traces has these parts twice, and makes a page of one trace from each.
 */
#include "replay.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "ctl/json.h"
#include "ctl/trace_json.h"
#include "lab/facts.h"
#include "output.h"
#include "replay/page.h"
#include "trace.h"
#include "trace/read.h"

/* Traces are untrusted: a "<" could end the HTML element, or begin a comment in it. */
static void put_json(FILE *out, struct json_object *object)
{
	const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);

	for (; *text; text++)
		if (*text == '<')
			fputs("\\u003c", out);
		else
			putc(*text, out);
	json_object_put(object);
}

static void put_base64(FILE *out, const uint8_t *data, size_t len)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < len; i += 3) {
		uint32_t group = (uint32_t)data[i] << 16;

		group |= i + 1 < len ? (uint32_t)data[i + 1] << 8 : 0;
		group |= i + 2 < len ? data[i + 2] : 0;
		putc(letters[group >> 18], out);
		putc(letters[group >> 12 & 63], out);
		putc(i + 1 < len ? letters[group >> 6 & 63] : '=', out);
		putc(i + 2 < len ? letters[group & 63] : '=', out);
	}
}

/* Without header and trailer: the format that browsers call "deflate-raw". */
static int compress_records(const struct zf_trace_file *file, uint8_t **ret_packed, size_t *ret_len)
{
	uInt len = (uInt)(file->count * sizeof(file->records[0]));
	z_stream stream = {.next_in = (uint8_t *)file->records, .avail_in = len};
	int r = deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL,
			     Z_DEFAULT_STRATEGY);

	if (r != Z_OK)
		return -ENOMEM;
	stream.avail_out = (uInt)deflateBound(&stream, len);
	stream.next_out = *ret_packed = malloc(stream.avail_out);
	r = *ret_packed ? deflate(&stream, Z_FINISH) : Z_MEM_ERROR;
	*ret_len = stream.total_out;
	deflateEnd(&stream);
	return r == Z_STREAM_END ? 0 : -ENOMEM;
}

/* 128 MB of records: browsers cannot handle more. */
#define EVENTS_MAX ((size_t)2000000)

static bool is_too_long(const struct zf_trace_file *file, const char *name,
			const struct zf_report *report)
{
	if (file->count <= EVENTS_MAX)
		return false;
	zf_report(report, ZF_REPORT_ERROR,
		  "%s has %zu events, and a page can play %zu: trace a shorter run", name,
		  file->count, EVENTS_MAX);
	return true;
}

struct page {
	const struct zf_trace_file *file;
	struct json_object *facts; /* from the trace's data (lab/facts.h); NULL: no data */
};

/* Prints the facts of the trace, then its records, each behind a text of the page. */
static int put_trace(FILE *out, const struct zf_trace_file *file, struct json_object *facts,
		     const char *const texts[2])
{
	struct json_object *tables;
	_zf_free_ uint8_t *packed = NULL;
	size_t len;
	int r = compress_records(file, &packed, &len);

	if (r < 0)
		return r;
	fputs(texts[0], out);
	tables = zf_trace_json_tables(&file->header);
	zf_json_add(tables, "facts", json_object_get(facts));
	put_json(out, tables);
	fputs(texts[1], out);
	put_base64(out, packed, len);
	return 0;
}

static int print(FILE *out, void *arg)
{
	const struct page *page = arg;
	int r = put_trace(out, page->file, page->facts, zf_replay_page);

	if (r == 0)
		fputs(zf_replay_page[2], out);
	return r;
}

static int write_page(const struct zf_args *args, const struct zf_report *report, struct page *page)
{
	return is_too_long(page->file, args->operands[0], report)
		       ? ZF_EXIT_PROBLEMS
		       : zf_output(args, report, print, page);
}

static int write_plain(const struct zf_args *args, const struct zf_report *report)
{
	struct zf_trace_file file;
	struct page page = {.file = &file};
	int status;

	if (zf_trace_load(args->operands[0], report, &file) < 0)
		return ZF_EXIT_PROBLEMS;
	status = write_page(args, report, &page);
	zf_trace_file_free(&file);
	return status;
}

/* ---- two traces ---- */

struct pair {
	const char *const *paths;
	struct zf_trace_file files[2];
};

static void put_names(FILE *out, const struct pair *pair)
{
	struct json_object *names = json_object_new_array();

	for (size_t i = 0; i < ZF_ARRAY_SIZE(pair->files); i++) {
		const char *slash = strrchr(pair->paths[i], '/');

		json_object_array_add(names,
				      json_object_new_string(slash ? slash + 1 : pair->paths[i]));
	}
	put_json(out, names);
}

static int print_pair(FILE *out, void *arg)
{
	const struct pair *pair = arg;
	int r;

	fputs(zf_replay_compare[0], out);
	put_names(out, pair);
	r = put_trace(out, &pair->files[0], NULL, &zf_replay_compare[1]);
	if (r == 0)
		r = put_trace(out, &pair->files[1], NULL, &zf_replay_compare[3]);
	fputs(zf_replay_compare[5], out);
	return r;
}

static int write_pair(const struct zf_args *args, const struct zf_report *report)
{
	struct pair pair = {.paths = args->operands};
	int status = ZF_EXIT_PROBLEMS;

	if (zf_trace_load(pair.paths[0], report, &pair.files[0]) < 0)
		return status;
	if (zf_trace_load(pair.paths[1], report, &pair.files[1]) == 0) {
		if (!is_too_long(&pair.files[0], pair.paths[0], report) &&
		    !is_too_long(&pair.files[1], pair.paths[1], report))
			status = zf_output(args, report, print_pair, &pair);
		zf_trace_file_free(&pair.files[1]);
	}
	zf_trace_file_free(&pair.files[0]);
	return status;
}

static int write_with_data(const struct zf_args *args, const struct zf_report *report,
			   const char *data)
{
	struct zf_lab_run run;
	struct page page = {.file = &run.trace};
	int status;

	if (zf_lab_run_load(args->operands[0], data, report, &run) < 0)
		return ZF_EXIT_PROBLEMS;
	page.facts = zf_lab_facts(&run, report);
	status = write_page(args, report, &page);
	json_object_put(page.facts);
	zf_lab_run_free(&run);
	return status;
}

int zf_replay_main(const struct zf_args *args)
{
	const struct zf_report report = {.fn = zf_report_stderr,
					 .arg = (void *)(uintptr_t)args->program};
	const char *data = args->options[ZF_OPTION_TRACE_DATA].text;

	if (data && args->operands[1])
		return zf_args_usage(args, "--trace-data is for a page of one trace: leave out "
					   "the option, or the second trace");
	if (args->operands[1])
		return write_pair(args, &report);
	return data ? write_with_data(args, &report, data) : write_plain(args, &report);
}
