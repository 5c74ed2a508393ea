/* SPDX-License-Identifier: MIT */
/*
 * The progress of a repair: one number for all its stages, which never decreases.
 *
 *      the try     search | gather | files | space | check
 *      the repair  search | gather | files | space
 *
 * Each stage has a fixed share of the whole, measured with a million files. A stage that is not
 * needed is jumped over. A stage that is repeated, because another plan is tried, adds nothing.
 */
#ifndef ZF_REPAIR_PROGRESS_H
#define ZF_REPAIR_PROGRESS_H

#include <stdbool.h>

#include "base/progress.h"

enum zf_repair_stage {
	ZF_REPAIR_SEARCH, /* the zones are searched for nodes; only if a node cannot be read */
	ZF_REPAIR_GATHER, /* the first pass over the old fs tree */
	ZF_REPAIR_FILES,  /* the second pass, which writes the new fs tree */
	ZF_REPAIR_SPACE,  /* the summary and share trees are written */
	ZF_REPAIR_CHECK,  /* the result of a try is checked */
	ZF_REPAIR_STAGES,
	ZF_REPAIR_NO_STAGE = ZF_REPAIR_STAGES,
};

struct zf_repair_meter;

/* The progress of one stage, for functions that know no other stage. */
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
	struct zf_repair_part current; /* of walks and of writing: the stage entered last */
};

/* `whole` outlives the meter. The meter must not move in memory, because its parts point to it. */
void zf_repair_meter_init(struct zf_repair_meter *meter, const struct zf_progress *whole);
/* Sets the stage of `current`. */
void zf_repair_meter_enter(struct zf_repair_meter *meter, enum zf_repair_stage stage);
void zf_repair_meter_end(struct zf_repair_meter *meter);

#endif
