/* SPDX-License-Identifier: MIT */
/*
 * The crash explorer: a workload on the simulator, the power cut at every command of it, and what
 * is found afterwards judged by the oracle.
 *
 *      record: operations run on the simulator; at each command a clone of it is kept (struct cut)
 *      explore: clone --zf_sim_crash--> mount (recovery) --> checker, oracle
 *                                         +--> cuts of the recovery's own commands, and once more
 *
 * What is right after a cut. Let K be the last operation that is to be seen (every one has a time
 * of its own, and leaves it on something that has a name), or the last that was acknowledged as
 * durable, whichever is later. Then
 *
 *  P1  everything acknowledged is there: K is at least that, and files that were synced have their
 *      bytes;
 *  P2  names and attributes, the size after a truncation too, are the result of all operations up
 *      to K and of none behind it. Content may be older: what writes, fallocate and reflinks did to
 *      a file is durable by that file's own fsync, by syncfs, or by a commit, and its times with
 *      it. But a rename over a file is not seen without the content that its source had;
 *  P3  every byte of a file is one that a write put there: the last that was made durable, or a
 *      later one up to K's successor; or zero where nothing was;
 *  P4  nothing that is read fails.
 *
 * And what has no name is gone, whoever held it: inodes are counted. It makes no difference whether
 * something became durable by a commit or by a record of the intent log.
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

/* Below the filesystem, or in its answers: what it is told is not what is done. */
enum lie {
	LIE_NONE,
	LIE_FLUSH, /* flushes do nothing: the superblock is durable before what it names */
	LIE_FUA,   /* FUA is ignored: zones are reset before the superblock that frees them is
		    * durable */
	LIE_ACK,   /* an fsync counts as answered when it begins */
	LIE_COUNT,
};

struct zf_dev;

/* Makes the device lie from now on. */
void lie_begin(struct zf_dev *dev, enum lie lie);

/* A planted bug by name (plants.c): where it is, and what finds it. */
struct plant {
	const char *name;
	enum lie lie;
	enum zf_bug bug;     /* in the code (base/plant.h) */
	uint64_t seed;	     /* of the first record; the next has the next */
	unsigned int ops;    /* at random; or */
	unsigned int length; /* of a sequence, drawn from the seed ... */
	bool reclaim;	     /* ... with a reclaim in it */
	uint64_t number;     /* of it, if one is meant; 0: drawn */
	bool elsewhere;	     /* takes threads, or more luck than there is: meson.build says what
			      * finds it */
	uint64_t schedules; /* of several actors (actors.h), from the seed on; 0: it is elsewhere */
	uint64_t cuts;	    /* by then it must have been found */
};

extern const struct plant plants[];
extern const unsigned int plant_count;

/* NULL: there is none of that name, or not in this build. */
const struct plant *plant_find(const char *name);
/* Turns on its bug in the code, and turns off all others. */
void plant_begin(const struct plant *plant);

/* ---- sequences (sequence.c) ---- */

#define SEQUENCE_THINGS 16u

/* On its way through the preparation of a tree, and then the operations of a number. */
struct sequence {
	unsigned int length; /* operations left */
	uint64_t number;     /* of what is left */
	unsigned int prepared, part;
	const struct step *step; /* that the last operation was made of */
	uint64_t inos[SEQUENCE_THINGS];
};

/* So many sequences of one operation are there; of two, the square of that. */
uint64_t sequence_base(void);
/* The number of one of that length. */
uint64_t sequence_draw(uint64_t seed, unsigned int length);
/* One of them is a reclaim. */
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

/* What is run, by numbers alone. In text: SEED, or SEED/LENGTH/NUMBER. */
struct record_name {
	uint64_t seed;
	unsigned int length; /* of a sequence; 0: operations at random */
	uint64_t number;     /* of the sequence */
};

/*
 * Some of the operations of an earlier record, in place of what its name says. Inodes are known by
 * the operation that made them, whatever number they get now.
 */
struct script {
	const struct zf_op *ops;
	const bool *keep; /* count of them */
	uint32_t count;
};

struct record_options {
	struct record_name name;
	unsigned int ops;		  /* of those at random */
	const struct script *script;	  /* NULL: none */
	const struct plant *plant;	  /* NULL: none */
	const struct zf_sim_fault *fault; /* NULL: none. With one, only the end is kept ... */
	uint32_t cut_every; /* ... but, if not 0, each that-many-th command from its strike on */
	uint32_t repeats;   /* so many commands after it meet the fault again, or fewer */
	const struct zf_sim_fault *second; /* another one, or NULL */
	uint8_t copies;			   /* of metadata; 0: drawn */
	/*
	 * Memory may run out: this is told when the filesystem is entered, and left; or NULL. Only
	 * the end is kept.
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
	bool drawn;	      /* it is not yet, but it is the next one */
	struct cut *cuts;
	uint32_t cut_count, cut_room;
	struct zf_sim *end;	       /* when all was done */
	uint32_t faults, since_strike; /* how many there were; commands since the first struck */
	bool crowded;		       /* begins with filling a small device until this is left */
	bool filled;
	uint64_t fill_left; /* bytes */
	struct zf_reclaim_stats reclaimed;
	bool in_place;	 /* the device has zones for what is written in place */
	bool infeasible; /* an operation of the sequence fails: a shorter one is the same */
	int hurt;	/* the first error that the fault led to: the operations ended soon after */
	bool struck;	/* the fault came to pass */
	bool read_only; /* the filesystem was, before the unmount */
	bool told_durable; /* something was, after the first error */
};

/*
 * False: the workload itself went wrong, with messages. With a fault, errors of the device are no
 * wrong answers. Where memory runs out, ENOMEM is none: it has changed nothing.
 */
bool record_run(struct record *record, const struct record_options *options);
void record_free(struct record *record);

/* ---- judging (judge.c) ---- */

struct judgement {
	bool host; /* the host's power was cut: what the device says of pointers is a lower bound */
	bool degraded; /* a copy of metadata is known to be missing: the checker would say so */
	bool full;     /* the checker compares all data with its checksums */
	bool go_on;    /* write, unmount and mount again afterwards */
	uint64_t second_cut; /* the seed of a power cut in place of that unmount; 0: none */
	/* If set: sees every command of the mount's recovery. */
	void (*observe)(void *arg, const struct zf_sim *sim);
	void *observe_arg;
	/* Of the mount, which is the recovery; NULL: no trace. */
	const struct zf_trace_about *trace;
	int trace_fd;
};

/* The simulator after a crash, at the cut of operation `op`. False: a promise is broken. */
bool judge(const struct record *record, uint32_t op, struct zf_sim *sim,
	   const struct judgement *judgement);

/* Of the last operation that had promised something when the power went: its index + 1; or 0. */
uint32_t promised_at(const struct record *record, uint32_t op);

/* ---- states that were seen (seen.c) ---- */

struct seen {
	struct seen_state *states; /* of room, a power of two */
	uint32_t count, room;
};

enum seen_before {
	SEEN_NEVER,
	SEEN_PROMISED_LESS, /* when it was judged, less had been promised */
	SEEN,
};

void seen_clear(struct seen *seen); /* frees; a zeroed one is good, too */
enum seen_before seen_note(struct seen *seen, uint64_t digest, uint32_t promised);

/* ---- exploring (explore.c) ---- */

struct tally {
	uint64_t records;
	uint64_t judged;
	uint64_t cuts;	  /* states judged that differ from all others of their record */
	uint64_t nested;  /* of them, after cuts during recovery ... */
	uint64_t deepest; /* ... and during the recovery from that */
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
/* The RECORD alone will do: depth 0. */
bool cut_name_parse(const char *text, struct cut_name *ret_name);

struct explore_limits {
	uint64_t cuts;	      /* it ends when the tally has so many */
	unsigned int samples; /* states of a cut that has more than can be tried */
	bool backwards;	      /* the last cut first */
	time_t deadline;      /* time(2); 0: none */
};

/*
 * Records what the options say and judges its cuts. False: something is wrong, told on stderr, and
 * *ret_failed says where.
 */
bool explore(const struct record_options *options, const struct explore_limits *limits,
	     struct tally *tally, struct cut_name *ret_failed);
/*
 * One state again. With depth 0: what explore() does. With a trace in the options, it is one of the
 * recovery from that state; and with depth 0 one of the run, of which no cut is judged.
 */
bool explore_one(const struct record_options *options, const struct cut_name *name);

/* Where the process is: for whoever has to tell that it died there. */
extern struct cut_name explore_now;

/* ---- in a process of its own (child.c): what is wrong may end it ---- */

struct verdict {
	bool ok;
	struct tally tally;
	struct cut_name failed; /* unless ok: where */
};

struct child {
	int pid, fd;
};

/* Runs `run`, which fills in the verdict; with `quiet`, without a word. */
struct child child_start(void (*run)(const void *arg, struct verdict *verdict), const void *arg,
			 bool quiet);
/* Waits for it. If it died, the verdict is where it was, without a tally. */
void child_end(struct child *child, struct verdict *ret_verdict);

/* Who takes longer for what begins now hangs, and dies of it. Only in a child. */
void child_watch(void);
/* From the next child_watch() on; 120 if nobody says otherwise. */
void child_set_patience(unsigned int seconds);

/* ---- making a failure smaller (shrink.c) ---- */

/*
 * Leaves out operations as long as what is left fails, for at most so long, and prints what is left
 * and the line that repeats it.
 */
void shrink(const struct record_options *options, const struct cut_name *failed,
	    unsigned int seconds);
/* explore_one() with the operations that are left, as that line lists them: 1-15,17. */
bool shrink_repeat(const struct record_options *options, const struct cut_name *name,
		   const char *keep);
/* The line. `keep`: NULL: all. */
void shrink_say_how_to_repeat(const struct record_options *options, const struct cut_name *name,
			      const char *keep);

extern const struct zf_report explore_report; /* prints if explore_verbose */
extern bool explore_verbose;

#endif
