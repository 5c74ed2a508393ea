/* SPDX-License-Identifier: MIT */
/*
 * Files of numbered cells, and what of them was promised to be there.
 *
 * A file has one writer. Every write to it has a number, the version, and each cell (a sector) that
 * it covers names its file, its place and that version. So after a cut, one look at a cell tells
 * which write it is of: not an older one than the newest that was acknowledged as durable, and not
 * one that was never made.
 */
#ifndef ZF_TESTS_HOST_FILES_H
#define ZF_TESTS_HOST_FILES_H

#include "fs/core/fs.h"

#define FILES	   8u
#define CELLS	   256u /* of a file */
#define CELL_BYTES 512u

/* ---- what the workload notes ---- */

enum note_type {
	NOTE_READY,    /* the filesystem has been made: cuts count from here */
	NOTE_WRITES,   /* file, version, cell, cells: it is about to */
	NOTE_WRITTEN,  /* file, version: answered */
	NOTE_DURABLE,  /* file, version: and all before it were acknowledged as durable */
	NOTE_DURABLE1, /* file, version: that write was, and nothing is said of those before it */
	NOTE_SYNCS,    /* version: the number of a sync of all that begins */
	NOTE_SYNCED,   /* version: it has ended */
	NOTE_GIVEN_UP, /* the session ends here: what was not durable may be lost */
};

struct note {
	uint32_t type, file;
	uint64_t version;
	uint32_t cell, cells;
};

/* ---- cells ---- */

void cells_fill(void *buf, uint32_t file, uint32_t cell, uint32_t cells, uint64_t version);

/* The version, 0 if it is all zeroes. Returns false if it is no cell of that place. */
bool cell_read(const void *bytes, uint32_t file, uint32_t cell, uint64_t *ret_version);

static inline void file_name(char name[8], uint32_t file)
{
	name[0] = 'f';
	name[1] = (char)('0' + file);
	name[2] = '\0';
}

/* ---- what was promised ---- */

struct promises {
	struct {
		uint64_t written;	 /* answered */
		uint64_t begun;		 /* about to be */
		uint64_t given_up;	 /* up to this one nobody promises any more */
		uint64_t last[CELLS];	 /* that covers the cell */
		uint64_t durable[CELLS]; /* at least */
		bool exists;
	} files[FILES];
	/* When the sync under way began. */
	uint64_t syncing[FILES];
};

struct cell_write {
	uint32_t cell, cells;
};

/* `writes[version]` is filled from NOTE_WRITES by the caller's memory: one array a file. */
#define VERSIONS_MAX 65536u
struct history {
	struct promises promises;
	struct cell_write writes[FILES][VERSIONS_MAX];
};

void history_note(struct history *history, const struct note *note);

#endif
