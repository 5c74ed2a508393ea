/* SPDX-License-Identifier: MIT */
/*
 * A filesystem whose last transaction is lost, but not its log.
 *
 * A test makes changes, commits them (replay_rig_commit), makes further changes, and says after
 * each of these what the log is to record of it: an operation, as the items that it changed (the
 * rig compares the tree before and after), or the state of a file, as the filesystem itself
 * describes it. Then the power goes, the rig writes the records itself, and the next mount replays
 * them.
 */
#ifndef ZF_TESTS_FS_REPLAY_RIG_H
#define ZF_TESTS_FS_REPLAY_RIG_H

#include "fs/data_rig.h"
#include "log/body.h"
#include "superblock/super.h"

#define REPLAY_RIG_BODIES 512u

struct replay_items {
	struct replay_item *at;
	size_t count, room;
};

struct replay_body {
	struct zf_log_body body;
	uint64_t number;
};

struct replay_rig {
	struct data_rig rig;
	struct zf_super super; /* the last one committed */
	struct replay_items before;
	struct replay_body bodies[REPLAY_RIG_BODIES];
	unsigned int count;
	uint64_t number;       /* of the last body */
	bool host_stops;       /* a crash loses pointers, too, after the records were written */
	struct zf_sim *at_cut; /* what the last crash left, with its log: to be mounted again */
};

void replay_rig_init(struct replay_rig *rig, const struct data_rig_options *options);
/* Unmounts, checks, frees. */
void replay_rig_deinit(struct replay_rig *rig);
/* Only frees the rig, mounted or not, without a check. */
void replay_rig_drop(struct replay_rig *rig);

/* Afterwards all changes until now are durable without the log. */
void replay_rig_commit(struct replay_rig *rig);

/* Reads rig->super again. */
void replay_rig_read_super(struct replay_rig *rig);

/* All changes between these two calls are one operation. */
void replay_rig_begin(struct replay_rig *rig);
void replay_rig_end(struct replay_rig *rig);
/* Truncates the file, and logs that as an operation. */
void replay_rig_resize(struct replay_rig *rig, uint64_t ino, uint64_t size);
/* Logs what has changed in the file since its state was last logged. */
void replay_rig_state(struct replay_rig *rig, uint64_t ino);
/* The next body, for the test to fill in. */
struct zf_log_body *replay_rig_body(struct replay_rig *rig, enum zf_log_body_type type);

/* Cuts the power. Completed commands survive; the log has `per_record` bodies a record. */
void replay_rig_crash(struct replay_rig *rig, unsigned int per_record);
/* Mounts what the crash left, and runs the checker. */
void replay_rig_mount(struct replay_rig *rig);
int replay_rig_try_mount(struct replay_rig *rig, bool read_only);
/* Unmounts and checks, mounts again. */
void replay_rig_remount(struct replay_rig *rig);
/*
 * Recovers from what the last crash left: with a power cut at each command in turn, and once to the
 * end. Calls `verify` after each recovery. Returns the number of commands.
 */
unsigned int replay_rig_cut_everywhere(struct replay_rig *rig,
				       void (*verify)(struct replay_rig *rig, void *arg),
				       void *arg);

#endif
