/* SPDX-License-Identifier: MIT */
/*
 * A forest on a memory device with the least that a commit needs: one node stream for each copy, a
 * reserved tail for the root tree, and a map of live addresses, which finds nodes that leak or are
 * freed twice.
 */
#ifndef ZF_TESTS_BTREE_RIG_H
#define ZF_TESTS_BTREE_RIG_H

#include "base/lock.h"
#include "btree/tree.h"
#include "io/memory.h"

struct rig;

struct rig_writer {
	struct zf_writer writer;
	struct rig *rig;
	bool tail;
};

struct rig_slot {
	uint64_t address[ZF_COPIES_MAX];
};

struct rig_stream {
	uint64_t generation;
	struct rig_slot *slots;
	size_t count, size;
};

struct rig_zone {
	bool used;
	uint32_t live;
	uint64_t emptied; /* the youngest generation that freed a node in it */
	uint64_t reached; /* the last generation with addresses in it */
};

struct rig {
	struct zf_memory *memory;
	struct zf_dev *dev;
	struct zf_forest *forest;
	struct zf_forest_options options;
	struct zf_report report;
	bool verbose; /* print messages: none is expected */
	unsigned int messages;
	char message[512]; /* the last one */

	struct zf_mutex lock; /* ZF_RANK_ALLOC: everything below */
	struct rig_zone *zones;
	uint64_t *live; /* by block: generation of the node that begins there, or 0 */
	uint64_t live_nodes;
	uint64_t allocated;	      /* ever */
	uint32_t zone[ZF_COPIES_MAX]; /* of the stream; UINT32_MAX: none */
	uint64_t offset[ZF_COPIES_MAX];
	struct rig_stream running, frozen;
	size_t tail_next, tail_end;
	struct rig_writer writer, tail_writer;
	unsigned int fail_after; /* allocations until -ENOSPC; 0: never */

	struct zf_node_ptr committed;
	uint8_t committed_level;
};

struct rig_options {
	uint32_t node_size;
	uint8_t copies;
	uint32_t zone_count, zone_blocks;
	uint64_t cache_bytes;
};

/* Trees FS and SUMMARY (named by items of ROOT) are made and committed. Aborts on failure. */
void rig_init(struct rig *rig, const struct rig_options *options);
void rig_deinit(struct rig *rig);

/* The writer of the running transaction. */
struct zf_writer *rig_writer(struct rig *rig);

/* The steps of a commit, in this order. Between them the test may use the running writer freely. */
void rig_freeze(struct rig *rig);
void rig_seal(struct rig *rig, enum zf_tree_id tree);
void rig_seal_root(struct rig *rig);
void rig_write(struct rig *rig);
void rig_clean(struct rig *rig);
void rig_commit(struct rig *rig); /* all of them */

/* Drops the forest and everything not committed, and opens the committed state. */
void rig_reopen(struct rig *rig);

/* Makes the committed trees known to a new forest. */
void rig_set_roots(struct rig *rig);

/* Walks all trees and asserts that their nodes lie at exactly the live addresses. */
void rig_check(struct rig *rig);

#endif
