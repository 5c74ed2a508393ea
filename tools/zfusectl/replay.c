/* SPDX-License-Identifier: MIT */
/*
 * The page is the same for each trace (tools/zfusectl/replay/). What differs stands in it as JSON,
 * the header and the tables of events and names; and the records as they are in the file, sorted,
 * compressed and in base64.
 */
#include "replay.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "ctl/json.h"
#include "ctl/trace_json.h"
#include "lab/facts.h"
#include "output.h"
#include "replay/page.h"
#include "trace.h"
#include "trace/read.h"

/* "<" would end the element that it stands in, or begin a comment there: a trace may be anybody's. */
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

/* Without a header or a trailer, as browsers call it "deflate-raw". */
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

/* 128 MB of records: browsers bear no more. */
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
	struct json_object *facts; /* of the data (lab/facts.h); NULL: there is none */
};

static int print(FILE *out, void *arg)
{
	const struct page *page = arg;
	const struct zf_trace_file *file = page->file;
	struct json_object *tables;
	_zf_free_ uint8_t *packed = NULL;
	size_t len;
	int r = compress_records(file, &packed, &len);

	if (r < 0)
		return r;
	fputs(zf_replay_head, out);
	tables = zf_trace_json_tables(&file->header);
	zf_json_add(tables, "facts", json_object_get(page->facts));
	put_json(out, tables);
	fputs(zf_replay_middle, out);
	put_base64(out, packed, len);
	fputs(zf_replay_tail, out);
	return 0;
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

	return data ? write_with_data(args, &report, data) : write_plain(args, &report);
}
