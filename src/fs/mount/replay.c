/* SPDX-License-Identifier: MIT */
#include "fs/mount/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "alloc/reserve.h"
#include "base/bits.h"
#include "fs/mount/replay_internal.h"
#include "log/log.h"
#include "log/read.h"

int zf_replay_misfit(const struct zf_replay *replay, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return zf_report_corrupt(&replay->fs->report, "body of the log", replay->body->number, "%s",
				 text);
}

int zf_replay_join(struct zf_replay *replay, unsigned int items, struct zf_trans *ret_trans)
{
	struct zf_txn *txn = replay->fs->txn;
	int r = zf_trans_join(txn, ZF_RESERVE_FREEING, items, true, ret_trans);

	/*
	 * The room that is kept for reclaim may be used, because reclaim does not run before the
	 * replay is over.
	 */
	return r == -ENOSPC ? zf_trans_join(txn, ZF_RESERVE_SYSTEM, items, true, ret_trans) : r;
}

void zf_replay_done(struct zf_replay *replay)
{
	zf_log_replayed(replay->fs->log, replay->body->number);
}

void zf_replay_settle_item(struct zf_disk_inode *disk, uint64_t generation)
{
	uint64_t made = zf_le64_get(disk->generation);

	disk->generation = zf_le64_from(zf_min_u64(made, generation));
	disk->change = zf_le64_from(generation);
}

static int apply(struct zf_fs *fs, const struct zf_log_body_view *body)
{
	struct zf_replay replay = {.fs = fs, .body = body};

	return body->type == ZF_LOG_OPERATION ? zf_replay_operation(&replay)
					      : zf_replay_extents(&replay);
}

static void trace_replayed(const struct zf_log_body_view *body)
{
	struct zf_log_inode inode = {0};

	if (zf_trace_is_on() && body->type == ZF_LOG_EXTENTS)
		zf_log_view_inode(body, &inode);
	ZF_TRACE(log_replayed, .log_number = body->number, .inode = inode.ino,
		 .type = (uint8_t)body->type);
}

static void tell_failure(struct zf_fs *fs, const struct zf_log_found *found, size_t done, int error)
{
	if (error == -ENOSPC)
		zf_report(&fs->report, ZF_REPORT_ERROR,
			  "there is no room to replay the log: %zu of %zu changes since the last "
			  "commit were applied; mount read-only (-o ro) to read the last commit",
			  done, found->body_count);
	else
		zf_report(&fs->report, ZF_REPORT_ERROR,
			  "replaying the log stopped at change %zu of %zu: %s", done + 1,
			  found->body_count, strerror(-error));
}

int zf_replay(struct zf_fs *fs, const struct zf_log_found *found)
{
	for (size_t i = 0; i < found->body_count; i++) {
		int r = apply(fs, &found->bodies[i]);

		if (r < 0) {
			tell_failure(fs, found, i, r);
			return r;
		}
		trace_replayed(&found->bodies[i]);
	}
	return 0;
}
