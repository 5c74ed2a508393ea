/* SPDX-License-Identifier: MIT */
/*
 * Several actors at once, with cuts and faults, all from one seed.
 *
 * explore.h has one actor, so it never has two log records in flight at once. Here a *schedule* is
 * a threaded mount on the simulator, with two to five actors beside the mount's own threads;
 * support/fibers.h draws from the seed which thread goes on. At some commands, and at some answers,
 * a clone of the device is kept together with what has been promised by then. When the schedule is
 * over, the power of each clone is cut, and the clone is mounted and judged.
 *
 * The judgement is exact, because each thing is changed by one actor only:
 *
 *  - Files that all share: each block belongs to one actor, which writes version after version to
 *    it; every actor syncs all files. After a cut a block has a version that was begun by then, and
 *    none older than the version that was made durable.
 *  - Names in one directory: each belongs to one actor, which makes, renames (over others, too) and
 *    removes its names. No state of an actor's names occurs twice. The log numbers operations in
 *    the order in which they took effect (zf_log_add()). After a cut the names are the result of
 *    all operations up to one number (P2), and no operation that was acknowledged before a sync
 *    began is missing (P1).
 *  - Files of those names: each is written once, block by block. After a cut a file has a prefix of
 *    its blocks, at least those that were synced, and all of them if it was renamed over another.
 *
 * A read during the schedule finds the version of each block that was written last.
 */
#ifndef ZF_TESTS_ACTORS_H
#define ZF_TESTS_ACTORS_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/core/fs.h"
#include "sim/rng.h"
#include "sim/sim.h"

#define ACTORS_MAX   5u
#define FILES	     3u	 /* that all share */
#define FILE_BLOCKS  48u /* of each */
#define RUN_BLOCKS   4u	 /* so many consecutive blocks belong to one actor */
#define NAMES_MAX    3u	 /* of one actor */
#define NAMED_MAX    24u /* files that one actor makes */
#define NAMED_BLOCKS 3u	 /* of each, at most */
#define HISTORY_MAX  64u /* operations on names of one actor */
#define STEPS_MAX    14u /* of one actor */
#define CUTS_MAX     8u	 /* of one schedule */

/* ---- what is known, and copied for each cut ---- */

/* Versions of a block. Version 0 is a hole; so is `punched`, the version of the newest punch. */
struct block_known {
	uint16_t begun, done, durable, punched;
};

/* Blocks of a file with a name of its own. */
struct named_known {
	uint64_t ino;
	uint8_t begun, durable;
};

struct known {
	struct block_known blocks[FILES][FILE_BLOCKS];
	struct {
		unsigned int took_effect; /* so many states of its history */
		unsigned int named_count;
		struct named_known named[NAMED_MAX];
	} actors[ACTORS_MAX];
	uint64_t names_durable; /* all operations up to this number are durable */
};

struct name {
	uint32_t seq;
	uint64_t ino;
	uint8_t whole; /* blocks that the file must have, because it was renamed over another */
};

/* The names of one actor after one of its operations. */
struct names {
	uint64_t number; /* of that operation; 0: it has not taken effect */
	unsigned int count;
	struct name names[NAMES_MAX];
};

struct kept_cut {
	struct zf_sim *sim;
	struct known known;
};

struct actor {
	struct world *world;
	unsigned int no;
	const void *fiber;
	struct zf_rng rng;
	unsigned int steps;
	bool naming, announcing, over;
	uint32_t next_seq;
	struct names history[HISTORY_MAX]; /* [0]: in the beginning */
	unsigned int history_count;
};

/* How often each event happened. */
struct events {
	uint64_t schedules, cuts, switches;
	uint64_t stalls;	    /* zf_fibers_stalls() */
	uint64_t recoveries;	    /* that were cut, too */
	uint64_t two_records;	    /* two records were in flight at once */
	uint64_t overtaken;	    /* a record had completed, and not the one before it */
	uint64_t record_in_commit;  /* a record was in flight while a commit was being written */
	uint64_t swap_beside_fsync; /* reclaim swapped extents while an actor was in fsync */
	uint64_t shared_flush;	    /* one flush served two callers */
	uint64_t faults;	    /* that struck */
	uint64_t errors;	    /* that an actor got as an answer */
};

struct world {
	uint64_t seed;
	struct zf_sim *sim;
	struct zf_dev *dev;
	struct zf_fs *fs;
	uint64_t dir, files[FILES];
	struct zf_rng rng;
	uint64_t dirty_bytes; /* an option of the mount */
	unsigned int profile; /* of what actors do */
	unsigned int actor_count;
	struct actor actors[ACTORS_MAX];
	struct known known;
	uint64_t names_done;  /* the highest number of an operation that was answered */
	bool faulty;	      /* faults strike */
	bool lossy;	      /* so many that data may be lost before an actor gets an error */
	bool hurt;	      /* an actor got an error */
	unsigned int syncing; /* actors in fsync */
	struct kept_cut cuts[CUTS_MAX + 1]; /* one more: after the unmount */
	unsigned int cut_count;
	unsigned int candidates; /* moments so far that might be kept */
	bool running;		 /* cuts are kept */
	bool failed;
	struct events *events;
};

extern bool actors_verbose;
/* The most steps of an actor; 0: no limit but the drawn one. */
extern unsigned int actors_steps_max;
/*
 * Landing (putting written data into the extent tree) fails for want of memory once in so many
 * times; 0: never. With it, ENOMEM is a right answer.
 */
extern unsigned int actors_memory;

/* Runs one schedule and judges its cuts. False, and a message to stderr: a promise is broken. */
bool actors_run(uint64_t seed, struct events *events);
/* Drops the bases, which are otherwise kept from one schedule to the next. */
void actors_forget(void);

/* ---- shared by the files of actors ---- */

extern const struct zf_report actors_report; /* prints if actors_verbose */

#define BASES		8u
#define FILE_BLOCKS_MIN 8u /* of the first file that all share; each next file has 16 more */

struct base {
	struct zf_sim *sim;
	uint64_t dir, files[FILES], named[ACTORS_MAX];
};

const struct base *actors_base(unsigned int i);
void actors_must(int64_t r); /* the preparations cannot fail */

/* What actors do differs from schedule to schedule. */
#define PROFILES 4u

/* One step of an actor; false: the actor gives up. */
bool actors_step(struct actor *actor);
/* Counts the events of this moment, and may keep a clone of the device to be cut. */
void actors_moment(struct world *world);

/* The bytes of a block in this version; `id` names the block. */
void actors_fill(uint32_t id, uint32_t version, uint8_t *ret_block);
/*
 * Whether a block with these bytes has version `least` or a later one. *ret_version: the version
 * found, 0 for zeroes, -1: none.
 */
bool actors_is_right(const struct block_known *known, uint16_t least, uint32_t id,
		     const uint8_t *block, int *ret_version);
uint32_t actors_file_id(unsigned int file, unsigned int block);
uint32_t actors_named_id(uint64_t ino, unsigned int block);

bool actors_same_names(const struct names *a, const struct names *b);

bool actors_judge(const struct world *world, const struct kept_cut *cut, uint64_t seed);

#endif
