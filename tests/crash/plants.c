/* SPDX-License-Identifier: MIT */
/*
 * Bugs that the explorer must find. Each row says where to look, and how far. A bug in the code
 * (base/plant.h) is only found by programs built with it: crash_planted, test_bite.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "explore.h"

const struct plant plants[] = {
	/* Nothing is wrong, and nothing may be found. */
	{.name = "none", .seed = 1, .ops = 150, .cuts = 2000},
	/* The device ignores flushes or FUA, or an answer counts too early. */
	{.name = "flush", .lie = LIE_FLUSH, .seed = 1, .ops = 150, .cuts = 2000},
	{.name = "fua", .lie = LIE_FUA, .seed = 1, .ops = 150, .cuts = 2000},
	{.name = "ack", .lie = LIE_ACK, .seed = 1, .ops = 150, .cuts = 2000},
	/* Bugs in the code. */
	{.name = "super-before-nodes",
	 .bug = ZF_BUG_SUPER_BEFORE_NODES,
	 .seed = 1,
	 .ops = 150,
	 .cuts = 2000},
	{.name = "reset-before-commit",
	 .bug = ZF_BUG_RESET_BEFORE_COMMIT,
	 .seed = 1,
	 .ops = 400,
	 .cuts = 20000},
	{.name = "zone-reused-early",
	 .bug = ZF_BUG_ZONE_REUSED_EARLY,
	 .seed = 2,
	 .ops = 400,
	 .cuts = 20000},
	{.name = "clone-without-share",
	 .bug = ZF_BUG_CLONE_WITHOUT_SHARE,
	 .seed = 1,
	 .length = 2,
	 .cuts = 10000},
	{.name = "log-without-fua",
	 .bug = ZF_BUG_LOG_WITHOUT_FUA,
	 .seed = 1,
	 .length = 2,
	 .cuts = 10000},
	{.name = "log-before-data",
	 .bug = ZF_BUG_LOG_BEFORE_DATA,
	 .seed = 1,
	 .ops = 150,
	 .cuts = 20000},
	{.name = "late-over-newer",
	 .bug = ZF_BUG_LATE_OVER_NEWER,
	 .seed = 9,
	 .ops = 400,
	 .cuts = 20000},
	{.name = "rename-without-source",
	 .bug = ZF_BUG_RENAME_WITHOUT_SOURCE,
	 .seed = 5,
	 .ops = 600,
	 .cuts = 4000},
	{.name = "stale-record", .bug = ZF_BUG_STALE_RECORD, .elsewhere = true},
	{.name = "torn-payload", .bug = ZF_BUG_TORN_PAYLOAD, .seed = 2, .ops = 150, .cuts = 4000},
	{.name = "replay-out-of-order",
	 .bug = ZF_BUG_REPLAY_OUT_OF_ORDER,
	 .seed = 9,
	 .ops = 150,
	 .cuts = 10000},
	{.name = "replay-committed",
	 .bug = ZF_BUG_REPLAY_COMMITTED,
	 .seed = 20,
	 .ops = 600,
	 .cuts = 4000},
	{.name = "replay-without-share",
	 .bug = ZF_BUG_REPLAY_WITHOUT_SHARE,
	 .seed = 3,
	 .length = 1,
	 .number = 489,
	 .cuts = 4000},
	{.name = "replay-zeroes", .bug = ZF_BUG_REPLAY_ZEROES, .elsewhere = true},
	{.name = "recovery-resets",
	 .bug = ZF_BUG_RECOVERY_RESETS,
	 .seed = 16,
	 .ops = 300,
	 .cuts = 10000},
	{.name = "reclaim-swaps-blindly",
	 .bug = ZF_BUG_RECLAIM_SWAPS_BLINDLY,
	 .seed = 1,
	 .length = 2,
	 .reclaim = true,
	 .cuts = 20000},
	{.name = "reclaim-without-mark",
	 .bug = ZF_BUG_RECLAIM_WITHOUT_MARK,
	 .seed = 1,
	 .length = 2,
	 .reclaim = true,
	 .cuts = 20000},
	{.name = "reclaim-resets-early",
	 .bug = ZF_BUG_RECLAIM_RESETS_EARLY,
	 .seed = 1,
	 .length = 1,
	 .reclaim = true,
	 .cuts = 4000},
	{.name = "reclaim-without-summary",
	 .bug = ZF_BUG_RECLAIM_WITHOUT_SUMMARY,
	 .seed = 1,
	 .length = 1,
	 .reclaim = true,
	 .cuts = 4000},
	{.name = "reclaim-one-name",
	 .bug = ZF_BUG_RECLAIM_ONE_NAME,
	 .seed = 1,
	 .length = 2,
	 .reclaim = true,
	 .cuts = 20000},
	{.name = "reclaim-unverified", .bug = ZF_BUG_RECLAIM_UNVERIFIED, .elsewhere = true},
	{.name = "freeze-in-flight",
	 .bug = ZF_BUG_FREEZE_IN_FLIGHT,
	 .elsewhere = true,
	 .seed = 1,
	 .schedules = 2000},
	{.name = "intents-last", .bug = ZF_BUG_INTENTS_LAST, .elsewhere = true},
	{.name = "record-counts-early",
	 .bug = ZF_BUG_RECORD_COUNTS_EARLY,
	 .elsewhere = true,
	 .seed = 1,
	 .schedules = 2000},
	{.name = "fsync-served-early",
	 .bug = ZF_BUG_FSYNC_SERVED_EARLY,
	 .elsewhere = true,
	 .seed = 1,
	 .schedules = 2000},
	{.name = "fsync-served-at-rest",
	 .bug = ZF_BUG_FSYNC_SERVED_AT_REST,
	 .elsewhere = true,
	 .seed = 1,
	 .schedules = 2000},
	{.name = "retry-without-mark",
	 .bug = ZF_BUG_RETRY_WITHOUT_MARK,
	 .elsewhere = true,
	 .seed = 1,
	 .schedules = 2000},
	{.name = "sync-skips-commit",
	 .bug = ZF_BUG_SYNC_SKIPS_COMMIT,
	 .elsewhere = true,
	 .seed = 1,
	 .schedules = 2000},
	{.name = "flush-serves-late",
	 .bug = ZF_BUG_FLUSH_SERVES_LATE,
	 .elsewhere = true,
	 .seed = 1,
	 .schedules = 2000},
	{.name = "source-without-mark",
	 .bug = ZF_BUG_SOURCE_WITHOUT_MARK,
	 .elsewhere = true,
	 .seed = 1,
	 .schedules = 2000},
	{.name = "reset-one-commit-early", .bug = ZF_BUG_RESET_ONE_COMMIT_EARLY, .elsewhere = true},
	{.name = "room-uncounted", .bug = ZF_BUG_ROOM_UNCOUNTED, .elsewhere = true},
	{.name = "room-not-reclaimed", .bug = ZF_BUG_ROOM_NOT_RECLAIMED, .elsewhere = true},
	{.name = "image-ignores-fua", .bug = ZF_BUG_IMAGE_FUA, .elsewhere = true},
	{.name = "image-flush-nothing", .bug = ZF_BUG_IMAGE_FLUSH, .elsewhere = true},
	{.name = "zbd-ignores-fua", .bug = ZF_BUG_ZBD_FUA, .elsewhere = true},
	{.name = "nvme-ignores-fua", .bug = ZF_BUG_NVME_FUA, .elsewhere = true},
};
const unsigned int plant_count = ZF_ARRAY_SIZE(plants);

#ifdef ZF_PLANT
enum zf_bug zf_planted_bug;

/* For tests without an option for plants: ZF_PLANT=name in the environment. */
__attribute__((constructor)) static void plant_from_environment(void)
{
	const char *name = getenv("ZF_PLANT");

	if (name)
		plant_begin(plant_find(name));
}

static bool is_here(const struct plant *plant)
{
	return true;
}

void plant_begin(const struct plant *plant)
{
	zf_planted_bug = plant ? plant->bug : ZF_BUG_NONE;
}
#else
static bool is_here(const struct plant *plant)
{
	return plant->bug == ZF_BUG_NONE;
}

void plant_begin(const struct plant *plant)
{
}
#endif

const struct plant *plant_find(const char *name)
{
	for (unsigned int i = 0; i < plant_count; i++) {
		if (strcmp(plants[i].name, name) == 0 && is_here(&plants[i]))
			return &plants[i];
	}
	return NULL;
}
