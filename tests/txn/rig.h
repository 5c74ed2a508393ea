/* SPDX-License-Identifier: MIT */
/*
 * A small mounted filesystem whose share tree holds a table of numbered items, so that transactions
 * can be tested without inodes and data. The rig also has a model of that table: the current state,
 * and the state of the last commit.
 */
#ifndef ZF_TESTS_TXN_RIG_H
#define ZF_TESTS_TXN_RIG_H

#include "fs/core/fs.h"
#include "io/memory.h"
#include "sim/sim.h"
#include "txn/txn.h"

#define RIG_ITEMS 1024u

struct rig_table {
	uint32_t value[RIG_ITEMS]; /* 0: no item */
};

struct rig {
	struct zf_memory *memory; /* one of the two */
	struct zf_sim *sim;
	struct zf_dev *dev;
	struct zf_fs *fs;
	struct zf_txn *txn;
	uint32_t next_value;
	struct rig_table now;
	unsigned int complaints; /* messages of level ERROR */
};

extern const struct zf_geometry rig_tiny; /* 16 zones of 64 KiB, six of them active */

/* Makes a device (simulated if `sim_seed`), formats it with nodes of 4 KiB, mounts it. */
void rig_open(struct rig *rig, const struct zf_geometry *geometry, uint64_t sim_seed);
void rig_open_copies(struct rig *rig, const struct zf_geometry *geometry, uint64_t sim_seed,
		     uint8_t copies);
void rig_close(struct rig *rig);

/* Abandons the mount without a commit, like a kill of the daemon. The caller resets the model. */
void rig_abandon(struct rig *rig);
void rig_mount(struct rig *rig);
int rig_try_mount(struct rig *rig);

/* An edit in a transaction of its own. An error, such as -ENOSPC, leaves the model unchanged. */
int rig_put(struct rig *rig, unsigned int n, size_t len);
int rig_delete(struct rig *rig, unsigned int n);
/* Within a join that the caller holds. */
int rig_put_in(struct rig *rig, struct zf_trans *trans, unsigned int n, size_t len);

/* Asserts that the tree holds the table's items, and that the zones' counts match the nodes. */
void rig_assert_holds(struct rig *rig, const struct rig_table *table);
void rig_assert_sound(struct rig *rig);

#endif
