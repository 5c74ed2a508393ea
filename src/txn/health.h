/* SPDX-License-Identifier: MIT */
/*
 * Health: the counters of faults and the newest scrub, as two items of the root tree.
 *
 * Whoever mounts the filesystem keeps both in memory, and tells a commit what they are now (struct
 * zf_txn_health). A commit stores an item if it differs from the one on the device. So
 *
 * - a filesystem that never had a fault nor a scrub has neither item;
 * - counting costs no commit: a crash loses what was counted since the last one;
 * - nothing in the trees depends on these items. A version that does not know them mounts the
 *   filesystem and keeps them as they are (ZF_COMPAT_HEALTH).
 *
 * An item that is damaged is reported, and counts as missing: counters begin anew.
 */
#ifndef ZF_TXN_HEALTH_H
#define ZF_TXN_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/report.h"
#include "btree/key.h"
#include "txn/root_format.h"

struct zf_forest;
struct zf_txn;
struct zf_writer;

/* What was met, by whoever read or wrote: users, reclaim, scrubs. */
struct zf_faults {
	uint64_t since; /* seconds since 1970: the last reset; 0: since mkfs */
	uint64_t read_errors, write_errors, other_errors; /* commands of the device that failed */
	uint64_t data_checksum;				  /* blocks of data that did not match */
	uint64_t damaged_nodes;				  /* copies of nodes */
	uint64_t repaired_nodes;			  /* by scrubs */
	uint64_t zones_known;				  /* failed zones at the last reset */
};

enum zf_scrub_state {
	ZF_SCRUB_NONE, /* there was no scrub; never on the device */
	ZF_SCRUB_RUNNING,
	ZF_SCRUB_PAUSED,
	ZF_SCRUB_FINISHED,
	ZF_SCRUB_CANCELLED,
	ZF_SCRUB_STATE_COUNT,
};

/* Where a scrub is; zeroed, at its beginning. A caller may make one up: no place does harm. */
struct zf_scrub_place {
	uint32_t tree;	    /* the how manieth of them; beyond the last one: data */
	uint32_t height;    /* 1: its leaves; 0: at its root, whichever height that has */
	struct zf_key from; /* of these nodes, the next ones */
	uint64_t address;   /* of data */
};

/* A scrub, from its start to its end, over all mounts. */
struct zf_scrub_record {
	enum zf_scrub_state state;
	uint64_t rate;			    /* bytes a second; 0: as others leave room */
	uint64_t started, ended, completed; /* seconds since 1970; 0: not yet */
	uint64_t active_ms;
	struct zf_scrub_place place;
	uint64_t data_bytes, node_bytes, skipped;
	uint64_t errors;   /* damaged places that stay so */
	uint64_t repaired; /* nodes whose repair is durable */
};

struct zf_health {
	struct zf_faults faults;
	struct zf_scrub_record scrub;
};

/* Whether an item of the root tree is one of these two. */
bool zf_health_has_key(const struct zf_key *key);
/* Checks every field of such an item; fills in the part of *health that it is. -EUCLEAN. */
int zf_health_decode(const struct zf_key *key, const void *value, size_t len,
		     const struct zf_report *report, struct zf_health *health);

/* Both items of a forest whose root tree is known; zeroes for what is missing or damaged. -EIO, -ENOMEM. */
int zf_health_load(struct zf_forest *forest, const struct zf_report *report,
		   struct zf_health *ret_health);

/* Sets the items that differ from *stored, and then that. 1: something was stored; 0; -errno. */
int zf_health_store(struct zf_forest *forest, struct zf_writer *writer,
		    const struct zf_health *health, struct zf_health *stored);
/* Whether zf_health_store() would store something. */
bool zf_health_differs(const struct zf_health *health, const struct zf_health *stored);

/*
 * What is to be stored. collect() is called by a commit, with the commit lock held, and takes no
 * lock of a rank above ZF_RANK_HEALTH.
 */
struct zf_txn_health {
	void *arg;
	void (*collect)(void *arg, struct zf_health *ret_health);
};

/* Set once, before the first commit. `stored`: what the device has. */
void zf_txn_set_health(struct zf_txn *txn, const struct zf_txn_health *source,
		       const struct zf_health *stored);
/* Whether a commit would store something of it. Waits for a commit that is under way. */
bool zf_txn_health_is_dirty(struct zf_txn *txn);

#endif
