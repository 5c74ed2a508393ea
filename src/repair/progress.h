/* SPDX-License-Identifier: MIT */
/*
 * How far a repair has come: one number for all that it does, which never goes back.
 *
 *      the try     search | gather | files | space | check
 *      the repair  search | gather | files | space
 *
 * How much each of them is of the whole is what a million files have taken. What need not be done is
 * passed over, and what is done again (another plan is tried) adds nothing.
 */
#ifndef ZF_REPAIR_PROGRESS_H
#define ZF_REPAIR_PROGRESS_H

#include <stdbool.h>

#include "base/progress.h"

enum zf_repair_stage {
	ZF_REPAIR_SEARCH, /* for nodes; whenever a node cannot be read */
	ZF_REPAIR_GATHER, /* the first pass over the old fs tree */
	ZF_REPAIR_FILES,  /* the second, that writes the new one */
	ZF_REPAIR_SPACE,  /* the summary and share trees */
	ZF_REPAIR_CHECK,  /* of what a try has made */
	ZF_REPAIR_STAGES,
	ZF_REPAIR_NO_STAGE = ZF_REPAIR_STAGES,
};

struct zf_repair_meter;

/* Of one stage: what functions that know of no other are given. */
struct zf_repair_part {
	struct zf_progress progress;
	struct zf_repair_meter *meter;
	enum zf_repair_stage stage;
};

struct zf_repair_meter {
	const struct zf_progress *whole; /* may be NULL */
	bool is_try;
	uint64_t shown;
	struct zf_repair_part search, check;
	struct zf_repair_part current; /* of walks, and of writing */
};

/* `whole` outlives it. It does not move: parts point to it. */
void zf_repair_meter_init(struct zf_repair_meter *meter, const struct zf_progress *whole);
/* From here on `current` is this. */
void zf_repair_meter_enter(struct zf_repair_meter *meter, enum zf_repair_stage stage);
void zf_repair_meter_end(struct zf_repair_meter *meter);

#endif
