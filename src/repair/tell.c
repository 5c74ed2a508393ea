/* SPDX-License-Identifier: MIT */
/*
 * The messages of a repair. A message about an inode names its path in the new fs tree, so such
 * messages wait until that tree is written. If those that wait take WAITING_BYTES_MAX bytes,
 * further ones are reported at once, without a path.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "fs/core/path.h"
#include "repair/state.h"

#define WAITING_BYTES_MAX (16u << 20)

struct waiting {
	uint64_t ino; /* 0: the message is about no inode */
	char *text;
};

/* False: the inode has no name in the new tree, or its path cannot be found. */
static bool find_path(struct zf_repair *repair, uint64_t ino, char *path, size_t size)
{
	const struct zf_geometry *geometry = zf_dev_geometry(repair->dev);
	const struct zf_item_check check = {
		.value_max = zf_node_value_max(repair->super.node_size),
		.dir_hash_seed = repair->super.dir_hash_seed,
		.generation_max = repair->writer.generation,
		.device_bytes = geometry->zone_size * geometry->zone_count,
	};

	return zf_path_find(repair->forest, &check, ino, path, size) == 0;
}

static void tell(struct zf_repair *repair, uint64_t ino, const char *text)
{
	char path[PATH_MAX], escaped[ZF_ESCAPE_SIZE(PATH_MAX)];

	if (ino == 0) {
		zf_report(repair->report, ZF_REPORT_WARNING, "%s", text);
	} else if (repair->has_new_names && find_path(repair, ino, path, sizeof(path))) {
		zf_escape(path, strlen(path), escaped);
		zf_report(repair->report, ZF_REPORT_WARNING, "inode %" PRIu64 " (%s): %s", ino,
			  escaped, text);
	} else {
		zf_report(repair->report, ZF_REPORT_WARNING, "inode %" PRIu64 ": %s", ino, text);
	}
}

/* True: the list owns `text` now. False: the caller still does. */
static bool let_wait(struct zf_repair *repair, uint64_t ino, char *text)
{
	const struct waiting waiting = {.ino = ino, .text = text};
	size_t bytes = sizeof(waiting) + strlen(text);

	if (repair->has_new_names || repair->waiting_bytes + bytes > WAITING_BYTES_MAX)
		return false;
	if (zf_vector_push(&repair->waiting, &waiting) < 0)
		return false;
	repair->waiting_bytes += bytes;
	return true;
}

static void take(struct zf_repair *repair, uint64_t ino, const char *format, va_list args)
{
	char *text;

	repair->counts.changes++;
	if (repair->is_try || vasprintf(&text, format, args) < 0)
		return;
	if (let_wait(repair, ino, text))
		return;
	tell(repair, ino, text);
	free(text);
}

void zf_repair_tell(struct zf_repair *repair, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	take(repair, 0, format, args);
	va_end(args);
}

void zf_repair_tell_of(struct zf_repair *repair, uint64_t ino, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	take(repair, ino, format, args);
	va_end(args);
}

void zf_repair_tell_waiting(struct zf_repair *repair)
{
	repair->has_new_names = true;
	ZF_VECTOR_FOREACH (&repair->waiting, struct waiting, waiting)
		tell(repair, waiting->ino, waiting->text);
	zf_repair_forget_waiting(repair);
}

void zf_repair_forget_waiting(struct zf_repair *repair)
{
	ZF_VECTOR_FOREACH (&repair->waiting, struct waiting, waiting)
		free(waiting->text);
	zf_vector_deinit(&repair->waiting);
}

void zf_repair_tell_init(struct zf_repair *repair)
{
	repair->waiting = ZF_VECTOR(struct waiting);
}
