/* SPDX-License-Identifier: MIT */
/*
 * Files of numbered cells, and which of their contents were promised.
 *
 * A file has one writer. Every write to it has a number, the version, and each cell (a sector) that
 * it covers contains its file, its place and that version. So after a cut a cell shows which write
 * made it. That write must not be older than the newest that was acknowledged as durable, and it
 * must have been made.
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
	NOTE_WRITES,   /* file, version, cell, cells: the write is about to begin */
	NOTE_WRITTEN,  /* file, version: the write was answered */
	NOTE_DURABLE,  /* file, version: all writes up to this one were acknowledged as durable */
	NOTE_DURABLE1, /* file, version: this write alone was acknowledged as durable */
	NOTE_SYNCS,    /* version: the number of a syncfs that begins */
	NOTE_SYNCED,   /* version: that syncfs has ended */
	NOTE_GIVEN_UP, /* the session ends without an unmount: what was not durable may be lost */
};

struct note {
	uint32_t type, file;
	uint64_t version;
	uint32_t cell, cells;
};

/* ---- cells ---- */

void cells_fill(void *buf, uint32_t file, uint32_t cell, uint32_t cells, uint64_t version);

/* Reads the version: 0 if the cell is all zeroes. Returns false if it is no cell of that place. */
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
		uint64_t written;	 /* the newest version that was answered */
		uint64_t begun;		 /* the newest version that was begun */
		uint64_t given_up;	 /* later syncs promise no versions up to this one */
		uint64_t last[CELLS];	 /* the newest version that covers the cell */
		uint64_t durable[CELLS]; /* the cell must have this version or a later one */
		bool exists;
	} files[FILES];
	/* `written` of each file when the sync under way began. */
	uint64_t syncing[FILES];
};

struct cell_write {
	uint32_t cell, cells;
};

/* `writes[file][version]` is filled from NOTE_WRITES. */
#define VERSIONS_MAX 65536u
struct history {
	struct promises promises;
	struct cell_write writes[FILES][VERSIONS_MAX];
};

void history_note(struct history *history, const struct note *note);

#endif
