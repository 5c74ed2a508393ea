/* SPDX-License-Identifier: MIT */
#include "base/turn.h"

void zf_turn_init(struct zf_turn *turn)
{
	zf_wakeup_init(&turn->wakeup);
	turn->noted = turn->woken = 0;
	atomic_init(&turn->ended, false);
}

void zf_turn_deinit(struct zf_turn *turn)
{
	for (; turn->woken < turn->noted; turn->woken++)
		zf_wakeup_wait(&turn->wakeup);
	zf_wakeup_deinit(&turn->wakeup);
}

void zf_turn_offer(struct zf_turn *turn)
{
	turn->noted++;
}

void zf_turn_end(struct zf_turn *turn)
{
	turn->noted++;
	atomic_store(&turn->ended, true);
}

void zf_turn_wake(struct zf_turn *turn)
{
	zf_wakeup_send(&turn->wakeup);
}

bool zf_turn_wait(struct zf_turn *turn)
{
	zf_wakeup_wait(&turn->wakeup);
	turn->woken++;
	return atomic_load(&turn->ended);
}
