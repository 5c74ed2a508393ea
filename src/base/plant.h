/* SPDX-License-Identifier: MIT */
/*
 * Bugs planted in the code itself, to see whether the tests find them.
 *
 * The library is built once more with -DZF_PLANT, only for the tests that say which bugs are found
 * (tests/crash/meson.build). There ZF_PLANTED(bug) is true while that bug is turned on; in every
 * other build it is a constant, and nothing of it is left in the code.
 *
 * To add a bug: a line here; in the code `if (ZF_PLANTED(ZF_BUG_X))` around the misbehaviour, or
 * the guard `!ZF_PLANTED(ZF_BUG_X) &&` before what it leaves out; and a row in tests/crash/plants.c
 * that says how it is found.
 */
#ifndef ZF_BASE_PLANT_H
#define ZF_BASE_PLANT_H

#include <stdbool.h>

enum zf_bug {
	ZF_BUG_NONE,
	ZF_BUG_SUPER_BEFORE_NODES,  /* the superblock is written before the nodes that it names */
	ZF_BUG_RESET_BEFORE_COMMIT, /* a zone is reset before its emptying is durable */
	ZF_BUG_ZONE_REUSED_EARLY, /* a freed zone is reused before its summary's drop is durable */
	ZF_BUG_CLONE_WITHOUT_SHARE,   /* a reflink makes no share items */
	ZF_BUG_LOG_WITHOUT_FUA,	      /* a log record counts before it is durable */
	ZF_BUG_LOG_BEFORE_DATA,	      /* a record counts before the data that it names is flushed */
	ZF_BUG_FREEZE_IN_FLIGHT,      /* a transaction freezes while a record is under way */
	ZF_BUG_LATE_OVER_NEWER,	      /* an append that was revoked lands all the same */
	ZF_BUG_RENAME_WITHOUT_SOURCE, /* a rename over a file is logged without its source's extents
				       */
	ZF_BUG_STALE_RECORD, /* records count whatever their epoch, sequence and place in the log */
	ZF_BUG_TORN_PAYLOAD, /* the data behind a record's header is not verified */
	ZF_BUG_REPLAY_OUT_OF_ORDER,	/* operations are replayed before extents */
	ZF_BUG_REPLAY_COMMITTED,	/* bodies in the committed state are replayed */
	ZF_BUG_REPLAY_WITHOUT_SHARE,	/* shared bytes are replayed as if no other file had them */
	ZF_BUG_REPLAY_ZEROES,		/* replay zeroes data that is written in place */
	ZF_BUG_RECOVERY_RESETS,		/* recovery resets zones that only the log names */
	ZF_BUG_INTENTS_LAST,		/* intents are finished after the log is replayed */
	ZF_BUG_RECLAIM_SWAPS_BLINDLY,	/* reclaim swaps extents that changed since the copy */
	ZF_BUG_RECLAIM_WITHOUT_MARK,	/* a record may name moved data before it is durable */
	ZF_BUG_RECLAIM_UNVERIFIED,	/* reclaim moves a block that does not match its checksum */
	ZF_BUG_RECLAIM_RESETS_EARLY,	/* a victim is reset before its moves are durable */
	ZF_BUG_RECLAIM_WITHOUT_SUMMARY, /* moved data gets no summary entries */
	ZF_BUG_RECLAIM_ONE_NAME,     /* of shared bytes one extent moves, the others are given up */
	ZF_BUG_ROOM_UNCOUNTED,	     /* room that was promised is promised again */
	ZF_BUG_ROOM_NOT_RECLAIMED,   /* room is refused though garbage could come back */
	ZF_BUG_IMAGE_FUA,	     /* the image backend ignores FUA */
	ZF_BUG_IMAGE_FLUSH,	     /* the image backend's flush does nothing */
	ZF_BUG_ZBD_FUA,		     /* the zbd backend ignores FUA */
	ZF_BUG_NVME_FUA,	     /* the nvme backend ignores FUA */
	ZF_BUG_RECORD_COUNTS_EARLY,  /* a record counts before earlier records are durable */
	ZF_BUG_FSYNC_SERVED_EARLY,   /* an fsync is served by one that began before its write */
	ZF_BUG_FSYNC_SERVED_AT_REST, /* an fsync is served by one that has ended */
	ZF_BUG_RETRY_WITHOUT_MARK,   /* a retried append that lands raises no write mark */
	ZF_BUG_SYNC_SKIPS_COMMIT,    /* a sync does not wait for a commit that is under way */
	ZF_BUG_FLUSH_SERVES_LATE,    /* a flush serves writes that completed after it began */
	ZF_BUG_SOURCE_WITHOUT_MARK,  /* a rename is logged before its source's data is durable */
	ZF_BUG_RESET_ONE_COMMIT_EARLY, /* a zone is reset as soon as its emptying is durable */
	ZF_BUG_COUNT,
};

#ifdef ZF_PLANT
extern enum zf_bug zf_planted_bug; /* set by the test */
#define ZF_PLANTED(bug) (zf_planted_bug == (bug))
#else
#define ZF_PLANTED(bug) ((bug) == ZF_BUG_COUNT) /* false at compile time */
#endif

#endif
