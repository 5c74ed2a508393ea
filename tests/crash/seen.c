/* SPDX-License-Identifier: MIT */
/* A set of states, so that no state is judged or counted twice. */
#include <assert.h>
#include <stdlib.h>

#include "explore.h"

struct seen_state {
	uint64_t digest; /* 0: none */
	uint32_t promised;
};

void seen_clear(struct seen *seen)
{
	free(seen->states);
	*seen = (struct seen){0};
}

static struct seen_state *slot_of(const struct seen *seen, uint64_t digest)
{
	uint32_t at = (uint32_t)digest & (seen->room - 1);

	while (seen->states[at].digest != 0 && seen->states[at].digest != digest)
		at = (at + 1) & (seen->room - 1);
	return &seen->states[at];
}

static void grow(struct seen *seen)
{
	struct seen old = *seen;

	seen->room = old.room ? old.room * 2 : 1024;
	seen->states = calloc(seen->room, sizeof(*seen->states));
	assert(seen->states);
	for (uint32_t i = 0; i < old.room; i++)
		if (old.states[i].digest != 0)
			*slot_of(seen, old.states[i].digest) = old.states[i];
	free(old.states);
}

enum seen_before seen_note(struct seen *seen, uint64_t digest, uint32_t promised)
{
	struct seen_state *state;

	digest = digest ? digest : 1;
	if (seen->count * 2 >= seen->room)
		grow(seen);
	state = slot_of(seen, digest);
	if (state->digest == 0) {
		*state = (struct seen_state){.digest = digest, .promised = promised};
		seen->count++;
		return SEEN_NEVER;
	}
	if (state->promised >= promised)
		return SEEN;
	state->promised = promised;
	return SEEN_PROMISED_LESS;
}
