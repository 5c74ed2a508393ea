/* SPDX-License-Identifier: MIT */
#include "host/files.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"

#define MAGIC	   UINT64_C(0x5a46434c4c000000)
#define CELL_WORDS (CELL_BYTES / sizeof(uint64_t))

/* Every second version is noise; the others can be packed into a log record. */
static void fill(uint64_t words[CELL_WORDS], uint32_t file, uint32_t cell, uint64_t version)
{
	uint64_t noise = version * 0x9e3779b97f4a7c15u + cell;

	words[0] = MAGIC + file;
	words[1] = cell;
	words[2] = version;
	for (unsigned int i = 3; i < CELL_WORDS; i++) {
		if (version % 2 == 0)
			noise = (noise ^ (noise >> 29)) * 0xbf58476d1ce4e5b9u + i;
		words[i] = noise;
	}
}

void cells_fill(void *buf, uint32_t file, uint32_t cell, uint32_t cells, uint64_t version)
{
	for (uint32_t i = 0; i < cells; i++)
		fill((void *)((char *)buf + (size_t)i * CELL_BYTES), file, cell + i, version);
}

bool cell_read(const void *bytes, uint32_t file, uint32_t cell, uint64_t *ret_version)
{
	static const uint64_t zeroes[CELL_WORDS];
	uint64_t words[CELL_WORDS], expected[CELL_WORDS];

	memcpy(words, bytes, sizeof(words));
	*ret_version = 0;
	if (memcmp(words, zeroes, sizeof(words)) == 0)
		return true;
	*ret_version = words[2];
	fill(expected, file, cell, words[2]);
	return words[2] != 0 && memcmp(words, expected, sizeof(words)) == 0;
}

/* ---- what was promised ---- */

/* The writes of these versions are durable. In each cell the last of them counts. */
static void promise(struct history *history, uint32_t file, uint64_t from, uint64_t to)
{
	uint64_t *durable = history->promises.files[file].durable;

	from = zf_max_u64(from, history->promises.files[file].given_up + 1);
	for (uint64_t v = from; v <= to; v++) {
		const struct cell_write *write = &history->writes[file][v];

		for (uint32_t i = write->cell; i < write->cell + write->cells; i++)
			durable[i] = zf_max_u64(durable[i], v);
	}
	history->promises.files[file].exists = true;
}

static void writes(struct history *history, const struct note *note)
{
	uint64_t *last = history->promises.files[note->file].last;

	assert(note->version < VERSIONS_MAX && note->cell + note->cells <= CELLS);
	history->writes[note->file][note->version] =
		(struct cell_write){.cell = note->cell, .cells = note->cells};
	history->promises.files[note->file].begun = note->version;
	for (uint32_t i = note->cell; i < note->cell + note->cells; i++)
		last[i] = note->version;
}

void history_note(struct history *history, const struct note *note)
{
	struct promises *promises = &history->promises;

	switch ((enum note_type)note->type) {
	case NOTE_READY:
		break;
	case NOTE_WRITES:
		writes(history, note);
		break;
	case NOTE_WRITTEN:
		promises->files[note->file].written = note->version;
		break;
	case NOTE_DURABLE:
		promise(history, note->file, 1, note->version);
		break;
	case NOTE_DURABLE1:
		promise(history, note->file, note->version, note->version);
		break;
	case NOTE_SYNCS:
		for (uint32_t i = 0; i < FILES; i++)
			promises->syncing[i] = promises->files[i].written;
		break;
	case NOTE_SYNCED:
		for (uint32_t i = 0; i < FILES; i++) {
			if (promises->syncing[i] > 0)
				promise(history, i, 1, promises->syncing[i]);
		}
		break;
	case NOTE_GIVEN_UP:
		for (uint32_t i = 0; i < FILES; i++)
			promises->files[i].given_up = promises->files[i].begun;
		break;
	}
}
