/* SPDX-License-Identifier: MIT */
/* The commit: freeze, write, and the superblock. txn.h tells the order and why. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "alloc/reserve.h"
#include "alloc/stream.h"
#include "base/bits.h"
#include "base/plant.h"
#include "txn/roots.h"
#include "txn/txn_internal.h"

/* Trees whose roots the root tree names, in the order in which they are sealed. */
static const enum zf_tree_id named_trees[] = {ZF_TREE_FS, ZF_TREE_SUMMARY, ZF_TREE_SHARE,
					      ZF_TREE_ZONE};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- freeze ---- */

int zf_txn_freeze(struct zf_txn *txn)
{
	uint64_t began = now_ns(), took;
	int r;

	/*
	 * The log is held before joins are held back, because a record under way may still have to
	 * join.
	 */
	if (txn->log.hold)
		txn->log.hold(txn->log.arg);
	zf_mutex_lock(&txn->lock);
	assert(!txn->freezing && (txn->error || !txn->frozen));
	txn->freezing = true;
	while (txn->joins > 0)
		zf_cond_wait(&txn->changed, &txn->lock);
	/*
	 * One of those joins may have been aborted in the middle: its edits must not be committed.
	 */
	r = txn->error ? -EROFS : 0;
	zf_mutex_unlock(&txn->lock);

	/* No join is held and none begins, so no other thread changes the trees. */
	if (r == 0)
		zf_alloc_set_nodes_kept(txn->alloc, zf_txn_nodes_kept(txn));
	if (r == 0 && txn->log.freeze)
		txn->log.freeze(txn->log.arg, &txn->super);
	if (r == 0)
		r = zf_alloc_freeze(txn->alloc, txn->path_nodes, &txn->frozen);
	if (r == 0) {
		zf_forest_freeze(txn->forest, txn->writer.generation);
		txn->frozen_counters[0] = txn->counters.next_ino;
		txn->frozen_counters[1] = txn->counters.inode_count;
		txn->frozen_counters[2] = txn->counters.next_intent;
		txn->writer.generation++;
		txn->written = false;
		atomic_store_explicit(&txn->dirty, false, memory_order_relaxed);
		atomic_store_explicit(&txn->told, false, memory_order_relaxed);
	}

	zf_mutex_lock(&txn->lock);
	txn->freezing = false;
	atomic_store_explicit(&txn->writing, r == 0, memory_order_relaxed);
	txn->running = txn->writer.generation;
	if (r == 0)
		ZF_TRACE(transaction_frozen, .generation = txn->frozen->generation,
			 .log_sequence = txn->super.log_sequence,
			 .log_number = txn->super.op_number);
	took = now_ns() - began;
	txn->stats.freeze_ns_max = zf_max_u64(txn->stats.freeze_ns_max, took);
	zf_cond_broadcast(&txn->changed);
	zf_mutex_unlock(&txn->lock);
	if (txn->log.release)
		txn->log.release(txn->log.arg);
	if (r < 0 && r != -EROFS)
		zf_txn_fail(txn, r, "freezing a transaction");
	return r;
}

/* ---- the commit's own edits, in the tail ---- */

struct tail_writer {
	struct zf_writer writer;
	struct zf_txn *txn;
};

static int tail_alloc(struct zf_writer *writer, uint64_t ret_address[ZF_COPIES_MAX])
{
	struct zf_txn *txn = ZF_CONTAINER_OF(writer, struct tail_writer, writer)->txn;

	return zf_alloc_tail_node(txn->alloc, txn->frozen, ret_address);
}

static void tail_free(struct zf_writer *writer, const uint64_t address[ZF_COPIES_MAX],
		      uint64_t node_generation, enum zf_tree_id owner)
{
	struct zf_txn *txn = ZF_CONTAINER_OF(writer, struct tail_writer, writer)->txn;

	zf_alloc_node_free(txn->alloc, address, true);
}

static int write_zone_items(struct zf_txn *txn, struct zf_writer *writer)
{
	for (uint32_t i = 0; i < txn->frozen->zone_count; i++) {
		const struct zf_zone_snapshot *shot = &txn->frozen->zones[i];
		struct zf_key key = ZF_KEY(shot->zone_no, ZF_KEY_ZONE, 0);
		bool is_new = shot->zone_no >= txn->super.zone_count;
		int r = (is_new ? zf_tree_insert : zf_tree_update)(
			txn->forest, writer, ZF_TREE_ZONE, &key, &shot->item, sizeof(shot->item));

		if (r < 0)
			return r;
	}
	return 0;
}

static int write_health(struct zf_txn *txn, struct zf_writer *writer)
{
	struct zf_health health;
	int r;

	if (!txn->health.collect)
		return 0;
	txn->health.collect(txn->health.arg, &health);
	r = zf_health_store(txn->forest, writer, &health, &txn->health_stored);
	if (r > 0)
		txn->super.compat |= ZF_COMPAT_HEALTH;
	return r < 0 ? r : 0;
}

static int seal_trees(struct zf_txn *txn, struct zf_writer *writer)
{
	uint64_t generation = txn->frozen->generation;

	for (size_t i = 0; i < ZF_ARRAY_SIZE(named_trees); i++) {
		struct zf_key key = ZF_KEY(named_trees[i], ZF_KEY_ROOT, 0);
		struct zf_disk_root disk;
		struct zf_root root;
		int r = zf_forest_seal(txn->forest, named_trees[i], generation, &root.ptr,
				       &root.level);

		if (r < 0)
			return r;
		zf_root_encode(&root, &disk);
		r = zf_tree_set(txn->forest, writer, ZF_TREE_ROOT, &key, &disk, sizeof(disk));
		if (r < 0)
			return r;
	}
	return zf_forest_seal(txn->forest, ZF_TREE_ROOT, generation, &txn->super.root,
			      &txn->super.root_level);
}

int zf_txn_write(struct zf_txn *txn)
{
	struct tail_writer tail = {
		.writer = {.generation = txn->frozen->generation,
			   .alloc = tail_alloc,
			   .free = tail_free},
		.txn = txn,
	};
	int r = write_zone_items(txn, &tail.writer);

	if (r == 0)
		r = write_health(txn, &tail.writer);
	if (r == 0)
		r = seal_trees(txn, &tail.writer);
	if (r == 0 && !ZF_PLANTED(ZF_BUG_SUPER_BEFORE_NODES))
		r = zf_txn_write_stream(txn);
	if (r == 0)
		r = zf_txn_flush(txn, zf_dev_write_mark(txn->dev));
	if (r < 0)
		zf_txn_fail(txn, r, "writing a transaction");
	txn->written = r == 0;
	return r;
}

/* ---- the commit point ---- */

static void fill_super(struct zf_txn *txn)
{
	struct zf_super *super = &txn->super;

	super->generation = txn->frozen->generation;
	super->clean = txn->clean;
	super->zone_count = txn->frozen->zones_total;
	super->next_ino = txn->frozen_counters[0];
	super->inode_count = txn->frozen_counters[1];
	super->next_intent = txn->frozen_counters[2];
	super->kept_bytes = txn->frozen->kept_bytes;
	super->guaranteed_bytes = txn->frozen->guaranteed_bytes;
	super->kept_guaranteed_bytes = txn->frozen->kept_guaranteed_bytes;
	memcpy(super->meta_zone, txn->frozen->meta_zone, sizeof(super->meta_zone));
	memcpy(super->meta_pointer, txn->frozen->meta_pointer, sizeof(super->meta_pointer));
}

int zf_txn_finish(struct zf_txn *txn)
{
	uint64_t generation = txn->frozen->generation;
	int r;

	fill_super(txn);
	r = zf_ring_write(txn->ring, &txn->super); /* *** the commit point *** */
	if (r == 0 && ZF_PLANTED(ZF_BUG_SUPER_BEFORE_NODES))
		r = zf_txn_write_stream(txn);
	if (r < 0) {
		zf_txn_fail(txn, r, "writing the superblock");
		return r;
	}
	zf_alloc_committed(txn->alloc, txn->frozen);
	if (txn->log.durable)
		txn->log.durable(txn->log.arg);
	zf_forest_clean(txn->forest, generation);
	zf_alloc_frozen_free(txn->frozen);
	txn->frozen = NULL;
	txn->stands = true;
	zf_mutex_lock(&txn->lock);
	txn->durable = generation;
	atomic_store_explicit(&txn->writing, false, memory_order_relaxed);
	zf_cond_broadcast(&txn->changed);
	txn->stats.commits++;
	zf_mutex_unlock(&txn->lock);
	return 0;
}

int zf_txn_stand(struct zf_txn *txn)
{
	struct zf_super super = txn->super;
	int r;

	if (txn->stands)
		return 0;
	super.generation = txn->first - 1;
	super.clean = false;
	r = zf_ring_write(txn->ring, &super);
	if (r < 0)
		zf_txn_fail(txn, r, "writing the superblock");
	txn->stands = r == 0;
	return r;
}

void zf_txn_lock_commit(struct zf_txn *txn)
{
	int r = 0;

	zf_mutex_lock(&txn->commit_lock);
	if (!txn->frozen || zf_txn_error(txn))
		return;
	if (!txn->written)
		r = zf_txn_write(txn);
	if (r == 0)
		zf_txn_finish(txn);
}

static int commit_locked(struct zf_txn *txn)
{
	uint64_t began = now_ns(), took;
	int r;

	/*
	 * Joins leave room for the tail of their transaction. An empty transaction had no join, so
	 * its tail may have no room. Then the result is -ENOSPC, and the filesystem stays writable
	 * (no zf_txn_fail()).
	 */
	while (!zf_alloc_can_freeze(txn->alloc) && zf_txn_reset_one_locked(txn, true) > 0)
		;
	if (!zf_txn_is_dirty(txn) && !zf_alloc_can_freeze(txn->alloc))
		return -ENOSPC;
	r = zf_txn_freeze(txn);
	if (r == 0)
		r = zf_txn_write(txn);
	if (r == 0)
		r = zf_txn_finish(txn);
	took = now_ns() - began;
	zf_mutex_lock(&txn->lock);
	txn->stats.commit_ns += took;
	txn->stats.commit_ns_max = zf_max_u64(txn->stats.commit_ns_max, took);
	zf_mutex_unlock(&txn->lock);
	return r;
}

/*
 * Takes txn->lock besides the commit lock, so that zf_txn_get_label() need not wait for a commit.
 */
static void put_label(struct zf_txn *txn, const char label[ZF_SUPER_LABEL_SIZE])
{
	zf_mutex_lock(&txn->lock);
	memcpy(txn->super.label, label, sizeof(txn->super.label));
	zf_mutex_unlock(&txn->lock);
}

int zf_txn_set_label(struct zf_txn *txn, const char label[ZF_SUPER_LABEL_SIZE])
{
	char before[ZF_SUPER_LABEL_SIZE];
	int r;

	zf_txn_lock_commit(txn);
	r = zf_txn_error(txn) ? -EROFS : 0;
	if (r == 0) {
		memcpy(before, txn->super.label, sizeof(before));
		put_label(txn, label);
		r = commit_locked(txn);
		if (r < 0)
			put_label(txn, before);
	}
	zf_mutex_unlock(&txn->commit_lock);
	return r;
}

void zf_txn_get_label(struct zf_txn *txn, char ret_label[ZF_SUPER_LABEL_SIZE])
{
	zf_mutex_lock(&txn->lock);
	memcpy(ret_label, txn->super.label, sizeof(txn->super.label));
	zf_mutex_unlock(&txn->lock);
}

int zf_txn_commit_upto(struct zf_txn *txn, uint64_t wanted, bool force)
{
	int r;

	zf_txn_lock_commit(txn);
	r = zf_txn_error(txn) ? -EROFS : 0;
	if (r == 0 && zf_txn_durable(txn) < wanted && (force || zf_txn_is_dirty(txn)))
		r = commit_locked(txn);
	zf_mutex_unlock(&txn->commit_lock);
	return r;
}

int zf_txn_commit_much(struct zf_txn *txn)
{
	int r;

	zf_txn_lock_commit(txn);
	r = zf_txn_error(txn) ? -EROFS : 0;
	/* Another thread may have committed while this thread waited for the lock. */
	if (r == 0 && zf_txn_has_much(txn))
		r = commit_locked(txn);
	zf_mutex_unlock(&txn->commit_lock);
	return r;
}

int zf_txn_commit(struct zf_txn *txn, bool force)
{
	return zf_txn_commit_upto(txn, UINT64_MAX, force);
}

int zf_txn_sync(struct zf_txn *txn)
{
	uint64_t wanted = zf_txn_running(txn);

	if (ZF_PLANTED(ZF_BUG_SYNC_SKIPS_COMMIT) && !zf_txn_is_dirty(txn))
		return 0;
	/* The running transaction is empty, but the commit of the one before may be under way. */
	if (!zf_txn_is_dirty(txn))
		wanted--;
	return zf_txn_commit_upto(txn, wanted, false);
}

void zf_txn_set_clean(struct zf_txn *txn, bool clean)
{
	zf_mutex_lock(&txn->commit_lock);
	txn->clean = clean;
	zf_mutex_unlock(&txn->commit_lock);
}

void zf_txn_pause(struct zf_txn *txn)
{
	zf_mutex_lock(&txn->commit_lock);
}

void zf_txn_resume(struct zf_txn *txn)
{
	zf_mutex_unlock(&txn->commit_lock);
}
