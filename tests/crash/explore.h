/* SPDX-License-Identifier: MIT */
/*
 * The crash explorer: it runs a workload on the simulator, cuts the power at every command, and
 * judges the filesystem found afterwards by the oracle.
 *
 *      record: operations run on the simulator; at each command a clone of it is kept (struct cut)
 *      explore: clone --zf_sim_crash--> mount (recovery) --> checker, oracle
 *                                         +--> cuts of the recovery's own commands, and once more
 *
 * What is right after a cut. Let K be the last operation whose effect is seen (every operation has
 * a time of its own, and leaves it on an inode that has a name), or the last that was acknowledged
 * as durable, whichever is later. Then
 *
 *  P1  everything acknowledged is there: K is not before the last acknowledged operation, and files
 *      that were synced have their bytes;
 *  P2  names and attributes, the size after a truncation too, are the result of all operations up
 *      to K and of none after K. Content may be older: the effect of writes, fallocate and reflinks
 *      on a file becomes durable, together with its times, by that file's own fsync, by syncfs, or
 *      by a commit. But a rename over a file is not seen without the content of its source;
 *  P3  every byte of a file is one that a write put there: the last write that was made durable, or
 *      a later one up to K's successor; or zero where nothing was written;
 *  P4  no read fails.
 *
 * Inodes without a name are gone, even if they were held: inodes are counted. All this holds
 * whether a change became durable by a commit or by a record of the intent log.
 */
#ifndef ZF_TESTS_EXPLORE_H
#define ZF_TESTS_EXPLORE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "base/plant.h"
#include "fs/space/reclaim.h"
#include "sim/sim.h"
#include "support/workload.h"

/* ---- planted bugs, to see whether they are found ---- */

/* Bugs planted in the device below the filesystem, or in the filesystem's answers. */
enum lie {
	LIE_NONE,
	LIE_FLUSH, /* flushes do nothing: the superblock is durable before the blocks it names */
	LIE_FUA,   /* FUA is ignored: zones are reset before the superblock that frees them is
		    * durable */
	LIE_ACK,   /* an fsync counts as answered when it begins */
	LIE_COUNT,
};

struct zf_dev;

/* Makes the device lie from now on. */
void lie_begin(struct zf_dev *dev, enum lie lie);

/* A planted bug by name (plants.c): where it is, and which search finds it. */
struct plant {
	const char *name;
	enum lie lie;
	enum zf_bug bug;     /* in the code (base/plant.h) */
	uint64_t seed;	     /* of the first record; each next record has the next seed */
	unsigned int ops;    /* operations at random; or */
	unsigned int length; /* of a sequence, drawn from the seed ... */
	bool reclaim;	     /* ... with a reclaim in it */
	uint64_t number;     /* of the sequence; 0: drawn */
	bool elsewhere;	     /* the explorer does not find it, as it takes threads or a rare state:
			      * meson.build names the test that finds it */
	uint64_t schedules;  /* of several actors (actors.h), from the seed on; 0: not by actors */
	uint64_t cuts;	     /* the bug must be found within so many cuts */
};

extern const struct plant plants[];
extern const unsigned int plant_count;

/* NULL: no bug has that name, or this build lacks it. */
const struct plant *plant_find(const char *name);
/* Turns on its bug in the code, and turns off all others. */
void plant_begin(const struct plant *plant);

/* ---- sequences (sequence.c) ---- */

#define SEQUENCE_THINGS 16u

/* The progress through the preparation of a tree, and then through the operations of a number. */
struct sequence {
	unsigned int length; /* operations left */
	uint64_t number;     /* of the sequence of the operations left */
	unsigned int prepared, part;
	const struct step *step; /* from which the last operation was made */
	uint64_t inos[SEQUENCE_THINGS];
};

/* The number of sequences of one operation; its square is that of two operations. */
uint64_t sequence_base(void);
/* The number of a sequence of that length, drawn from the seed. */
uint64_t sequence_draw(uint64_t seed, unsigned int length);
/* The same, but one of its operations is a reclaim. */
uint64_t sequence_draw_reclaim(uint64_t seed, unsigned int length);
void sequence_begin(struct sequence *sequence, unsigned int length, uint64_t number);
/* The next operation, whose number is set, or false; sequence_ran() must follow. */
bool sequence_next(struct sequence *sequence, struct zf_op *op);
void sequence_ran(struct sequence *sequence, const struct zf_op *op);
bool sequence_is_prepared(const struct sequence *sequence);

/* ---- recording (record.c) ---- */

struct cut {
	struct zf_sim *sim;
	uint32_t op; /* index of the operation that ran */
};

/* Names a run by numbers alone. In text: SEED, or SEED/LENGTH/NUMBER. */
struct record_name {
	uint64_t seed;
	unsigned int length; /* of a sequence; 0: operations at random */
	uint64_t number;     /* of the sequence */
};

/*
 * Some of the operations of an earlier record, in place of those that its name stands for. Inodes
 * are identified by the operation that made them, because their numbers may differ now.
 */
struct script {
	const struct zf_op *ops;
	const bool *keep; /* count of them */
	uint32_t count;
};

struct record_options {
	struct record_name name;
	unsigned int ops;		  /* number of operations at random */
	const struct script *script;	  /* NULL: none */
	const struct plant *plant;	  /* NULL: none */
	const struct zf_sim_fault *fault; /* NULL: none. With a fault, only the end is kept ... */
	uint32_t cut_every; /* ... and, if not 0, every nth command after the fault struck */
	uint32_t repeats;   /* so many later commands, or fewer, meet the fault again */
	const struct zf_sim_fault *second; /* another fault, or NULL */
	uint8_t copies;			   /* of metadata; 0: drawn */
	/*
	 * Not NULL: memory may run out. The function is called when the filesystem is entered, and
	 * left. Only the end is kept.
	 */
	void (*within)(bool in);
	const struct zf_trace_about *trace; /* NULL: no trace of the run */
	int trace_fd;
};

struct record {
	struct record_options options;
	struct workload workload;
	struct sequence sequence;
	struct zf_op *ops;
	uint32_t count, room; /* of ops run; ops[count] is running */
	bool drawn;	      /* ops[count] does not run yet, but is the next one */
	struct cut *cuts;
	uint32_t cut_count, cut_room;
	struct zf_sim *end;	       /* when all was done */
	uint32_t faults, since_strike; /* faults added; commands since the first struck */
	bool crowded;		       /* begins with filling a small device up to fill_left */
	bool filled;
	uint64_t fill_left; /* bytes */
	struct zf_reclaim_stats reclaimed;
	bool in_place;	 /* the device has zones for data that is written in place */
	bool infeasible; /* an operation of the sequence fails: a shorter one is the same */
	int hurt;	/* the first error that the fault led to: the operations ended soon after */
	bool struck;	/* the fault struck */
	bool read_only; /* the filesystem was read-only before the unmount */
	bool told_durable; /* an fsync or syncfs succeeded after the first error */
};

/*
 * False, with messages: the workload itself went wrong. With a fault, errors of the device are no
 * wrong answers. When memory runs out, ENOMEM is no wrong answer if nothing has changed.
 */
bool record_run(struct record *record, const struct record_options *options);
void record_free(struct record *record);

/* ---- judging (judge.c) ---- */

struct judgement {
	bool host;     /* the host's power was cut: the device's write pointers are lower bounds */
	bool degraded; /* a copy of metadata is missing: the checker, which reports that, not run */
	bool full;     /* the checker compares all data with its checksums */
	bool go_on;    /* write, unmount and mount again afterwards */
	uint64_t second_cut; /* the seed of a power cut in place of that unmount; 0: none */
	/* If set: called at every command of the mount's recovery. */
	void (*observe)(void *arg, const struct zf_sim *sim);
	void *observe_arg;
	/* The trace of the mount, which is the recovery; NULL: no trace. */
	const struct zf_trace_about *trace;
	int trace_fd;
};

/* Judges the simulator after a crash, cut during operation `op`. False: a promise is broken. */
bool judge(const struct record *record, uint32_t op, struct zf_sim *sim,
	   const struct judgement *judgement);

/* The index + 1 of the last operation that had promised durability when the power went; or 0. */
uint32_t promised_at(const struct record *record, uint32_t op);

/* ---- states that were seen (seen.c) ---- */

struct seen {
	struct seen_state *states; /* of room, a power of two */
	uint32_t count, room;
};

enum seen_before {
	SEEN_NEVER,
	SEEN_PROMISED_LESS, /* when the state was judged, less had been promised */
	SEEN,
};

void seen_clear(struct seen *seen); /* frees; a zeroed set is valid, too */
enum seen_before seen_note(struct seen *seen, uint64_t digest, uint32_t promised);

/* ---- exploring (explore.c) ---- */

struct tally {
	uint64_t records;
	uint64_t judged;
	uint64_t cuts;	  /* states judged that differ from all others of their record */
	uint64_t nested;  /* those of them after a cut during recovery ... */
	uint64_t deepest; /* ... and after a cut during the recovery from that one */
	uint64_t failures;
};

#define CUT_DEPTH 3u

/* One state after cuts, by numbers alone. */
struct cut_name {
	struct record_name record;
	unsigned int depth; /* 1: a cut of the workload; 2: of its recovery, and so on */
	struct {
		uint32_t cut, variant;
	} at[CUT_DEPTH];
};

/* As `scripts/crash --repeat` takes it: RECORD:CUT:VARIANT[:CUT:VARIANT[:CUT:VARIANT]] */
#define CUT_NAME_TEXT_MAX 160u
void cut_name_format(const struct cut_name *name, char *ret_text);
/* RECORD alone is valid, too: depth 0. */
bool cut_name_parse(const char *text, struct cut_name *ret_name);

struct explore_limits {
	uint64_t cuts;	      /* exploring ends when the tally has so many */
	unsigned int samples; /* states tried of a cut that has too many to try them all */
	bool backwards;	      /* the last cut first */
	time_t deadline;      /* time(2); 0: none */
};

/*
 * Runs the record of the options and judges its cuts. False, with messages on stderr: a judgement
 * failed, and *ret_failed names the state.
 */
bool explore(const struct record_options *options, const struct explore_limits *limits,
	     struct tally *tally, struct cut_name *ret_failed);
/*
 * Judges one state again; with depth 0 like explore(). A trace in the options is taken of the
 * recovery from that state; with depth 0, of the run, and then no cut is judged.
 */
bool explore_one(const struct record_options *options, const struct cut_name *name);

/* The state that the process judges now, to be reported if it dies. */
extern struct cut_name explore_now;

/* ---- in a child process (child.c), because a failure may end the process ---- */

struct verdict {
	bool ok;
	struct tally tally;
	struct cut_name failed; /* unless ok: where */
};

struct child {
	int pid, fd;
};

/* Runs `run` in a child; it fills in the verdict. `quiet`: the child prints nothing. */
struct child child_start(void (*run)(const void *arg, struct verdict *verdict), const void *arg,
			 bool quiet);
/* Waits for the child. If it died, the verdict has the state that it judged, without a tally. */
void child_end(struct child *child, struct verdict *ret_verdict);

/* Starts the timer anew: when the patience is over, the child counts as hung, and is ended. */
void child_watch(void);
/* Sets the patience from the next child_watch() on; without a call: 120. */
void child_set_patience(unsigned int seconds);

/* ---- making a failure smaller (shrink.c) ---- */

/*
 * Leaves out operations as long as the rest still fails, for at most so long. Prints the rest, and
 * the command line that repeats the failure.
 */
void shrink(const struct record_options *options, const struct cut_name *failed,
	    unsigned int seconds);
/* explore_one() with only the operations that `keep` lists, as in that line: 1-15,17. */
bool shrink_repeat(const struct record_options *options, const struct cut_name *name,
		   const char *keep);
/* Prints that line. `keep` NULL: all operations. */
void shrink_say_how_to_repeat(const struct record_options *options, const struct cut_name *name,
			      const char *keep);

extern const struct zf_report explore_report; /* prints if explore_verbose */
extern bool explore_verbose;

#endif
