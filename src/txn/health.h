/* SPDX-License-Identifier: MIT */
/*
 * Health: the counters of faults and the newest scrub, as two items of the root tree.
 *
 * The layer that mounts the filesystem keeps both in memory, and gives a commit their present
 * values (struct zf_txn_health). A commit stores an item if it differs from the one on the device.
 * So
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

/* The faults that reads and writes have met: those of users, of reclaim, and of scrubs. */
struct zf_faults {
	uint64_t since; /* seconds since 1970: the last reset; 0: since mkfs */
	uint64_t read_errors, write_errors, other_errors; /* commands of the device that failed */
	uint64_t data_checksum;				  /* blocks of data that did not match */
	uint64_t damaged_nodes;				  /* damaged copies of nodes */
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

/* How far a scrub is. Zeroed: at its beginning. No value does harm, not even an invented one. */
struct zf_scrub_place {
	uint32_t tree;	    /* index in the order of the scrub; beyond the last tree: data */
	uint32_t height;    /* 1: the tree's leaves; 0: its root, whatever height that has */
	struct zf_key from; /* where the next nodes of this height begin */
	uint64_t address;   /* where the next data begins */
};

/* A scrub, from its start to its end, over all mounts. */
struct zf_scrub_record {
	enum zf_scrub_state state;
	uint64_t rate;			    /* bytes per second; 0: makes way for other I/O */
	uint64_t started, ended, completed; /* seconds since 1970; 0: not yet */
	uint64_t active_ms;
	struct zf_scrub_place place;
	uint64_t data_bytes, node_bytes, skipped;
	uint64_t errors;   /* damaged places that were not repaired */
	uint64_t repaired; /* nodes whose repair is durable */
};

struct zf_health {
	struct zf_faults faults;
	struct zf_scrub_record scrub;
};

/* Returns whether an item of the root tree is one of these two. */
bool zf_health_has_key(const struct zf_key *key);
/* Checks every field of such an item; fills in its part of *health. -EUCLEAN. */
int zf_health_decode(const struct zf_key *key, const void *value, size_t len,
		     const struct zf_report *report, struct zf_health *health);

/*
 * Loads both items of a forest whose root tree is known. A missing or damaged item gives zeroes.
 * -EIO, -ENOMEM.
 */
int zf_health_load(struct zf_forest *forest, const struct zf_report *report,
		   struct zf_health *ret_health);

/*
 * Stores the items that differ from *stored, and updates *stored. 1: an item was stored; 0: none
 * was; -errno.
 */
int zf_health_store(struct zf_forest *forest, struct zf_writer *writer,
		    const struct zf_health *health, struct zf_health *stored);
/* Returns whether zf_health_store() would store an item. */
bool zf_health_differs(const struct zf_health *health, const struct zf_health *stored);

/*
 * The source of the values to be stored. A commit calls collect() with the commit lock held.
 * collect() takes no lock of a rank above ZF_RANK_HEALTH.
 */
struct zf_txn_health {
	void *arg;
	void (*collect)(void *arg, struct zf_health *ret_health);
};

/* Called once, before the first commit. `stored`: the values on the device. */
void zf_txn_set_health(struct zf_txn *txn, const struct zf_txn_health *source,
		       const struct zf_health *stored);
/* Returns whether a commit would store an item. Waits for a commit that is under way. */
bool zf_txn_health_is_dirty(struct zf_txn *txn);

#endif
