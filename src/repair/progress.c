/* SPDX-License-Identifier: MIT */
#include "repair/progress.h"

#define WHOLE UINT64_C(10000)

struct window {
	uint64_t from, to; /* of WHOLE */
};

static const struct window of_try[ZF_REPAIR_STAGES] = {
	[ZF_REPAIR_SEARCH] = {0, 500},	  [ZF_REPAIR_GATHER] = {500, 1500},
	[ZF_REPAIR_FILES] = {1500, 3500}, [ZF_REPAIR_SPACE] = {3500, 4000},
	[ZF_REPAIR_CHECK] = {4000, 5000},
};

static const struct window of_repair[ZF_REPAIR_STAGES] = {
	[ZF_REPAIR_SEARCH] = {5000, 5500},
	[ZF_REPAIR_GATHER] = {5500, 6500},
	[ZF_REPAIR_FILES] = {6500, 9000},
	[ZF_REPAIR_SPACE] = {9000, WHOLE},
};

static void show(struct zf_repair_meter *meter, uint64_t done)
{
	if (done <= meter->shown)
		return;
	meter->shown = done;
	zf_progress(meter->whole, done, WHOLE);
}

static void take(void *arg, uint64_t done, uint64_t total)
{
	const struct zf_repair_part *part = arg;
	const struct window *window;

	if (part->stage == ZF_REPAIR_NO_STAGE || total == 0)
		return;
	window = &(part->meter->is_try ? of_try : of_repair)[part->stage];
	done = done < total ? done : total;
	show(part->meter, window->from + (uint64_t)((double)(window->to - window->from) *
						    (double)done / (double)total));
}

static void init_part(struct zf_repair_part *part, struct zf_repair_meter *meter,
		      enum zf_repair_stage stage)
{
	*part = (struct zf_repair_part){
		.progress = {.fn = take, .arg = part},
		.meter = meter,
		.stage = stage,
	};
}

void zf_repair_meter_init(struct zf_repair_meter *meter, const struct zf_progress *whole)
{
	*meter = (struct zf_repair_meter){.whole = whole};
	init_part(&meter->search, meter, ZF_REPAIR_SEARCH);
	init_part(&meter->check, meter, ZF_REPAIR_CHECK);
	init_part(&meter->current, meter, ZF_REPAIR_NO_STAGE);
}

void zf_repair_meter_enter(struct zf_repair_meter *meter, enum zf_repair_stage stage)
{
	meter->current.stage = stage;
}

void zf_repair_meter_end(struct zf_repair_meter *meter)
{
	show(meter, WHOLE);
}
