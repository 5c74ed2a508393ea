/* SPDX-License-Identifier: MIT */
/* The running transaction: joining, leaving, and waiting for room. */
#include "txn/txn_internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/alloc.h"
#include "alloc/reclaim.h"
#include "alloc/reserve.h"
#include "alloc/stream.h"
#include "base/bits.h"

/*
 * A join or a reservation that finds no room runs at most one round of commit and tidy more than
 * this before it gives up.
 */
#define ROUNDS_MAX 8u

/* The longest that one operation is slowed down, with the bound nearly reached. */
#define SLOW_DOWN_MS 8u

/* Edits kept for removals when everything else gets -ENOSPC, and for reclaim itself. */
#define EDITS_KEPT_FOR_FREEING 40u
#define EDITS_KEPT_FOR_SYSTEM  4u
/*
 * Data leaves room for this many edits. Otherwise data could fill the metadata zones' room so far
 * that no file can be created, although space for data is left.
 */
#define EDITS_KEPT_FROM_DATA 16u

/* The fewest children of an inner node that was made by a split. */
#define SPLIT_CHILDREN 16u

/* ---- life ---- */

static int stream_alloc(struct zf_writer *writer, uint64_t ret_address[ZF_COPIES_MAX])
{
	struct zf_txn *txn = ZF_CONTAINER_OF(writer, struct zf_txn, writer);

	atomic_store_explicit(&txn->dirty, true, memory_order_relaxed);
	return zf_alloc_node(txn->alloc, false, ret_address);
}

static void stream_free(struct zf_writer *writer, const uint64_t address[ZF_COPIES_MAX],
			uint64_t node_generation, enum zf_tree_id owner)
{
	struct zf_txn *txn = ZF_CONTAINER_OF(writer, struct zf_txn, writer);

	atomic_store_explicit(&txn->dirty, true, memory_order_relaxed);
	zf_alloc_node_free(txn->alloc, address, false);
}

int zf_txn_new(struct zf_dev *dev, struct zf_ring *ring, struct zf_alloc *alloc,
	       struct zf_forest *forest, const struct zf_super *super,
	       const struct zf_txn_options *options, const struct zf_report *report,
	       struct zf_txn **ret_txn)
{
	struct zf_txn *txn = calloc(1, sizeof(*txn));
	struct zf_node_ptr root;
	uint8_t level = 0;

	if (!txn)
		return -ENOMEM;
	txn->chunks = zf_txn_chunks_new();
	if (!txn->chunks) {
		free(txn);
		return -ENOMEM;
	}
	txn->dev = dev;
	txn->ring = ring;
	txn->alloc = alloc;
	txn->forest = forest;
	txn->report = report;
	txn->options = *options;
	txn->super = *super;
	txn->error = options->read_only ? -EROFS : 0;
	zf_mutex_init(&txn->lock, ZF_RANK_TRANS);
	zf_mutex_init(&txn->commit_lock, ZF_RANK_COMMIT);
	zf_cond_init(&txn->changed);
	txn->counters.next_ino = super->next_ino;
	txn->counters.inode_count = super->inode_count;
	txn->counters.next_intent = super->next_intent;
	txn->durable = super->generation;
	txn->running = zf_alloc_running(alloc);
	assert(txn->running > super->generation);
	txn->first = txn->running;
	/* With no generation in between (after mkfs) there was no mount before this one. */
	txn->stands = txn->first - 1 == super->generation;
	txn->writer = (struct zf_writer){
		.generation = txn->running, .alloc = stream_alloc, .free = stream_free};
	zf_tree_get_root(forest, ZF_TREE_ZONE, &root, &level);
	txn->path_nodes = level + 1u;
	*ret_txn = txn;
	return 0;
}

void zf_txn_free(struct zf_txn *txn)
{
	if (!txn)
		return;
	assert(txn->joins == 0);
	zf_alloc_frozen_free(txn->frozen);
	zf_cond_deinit(&txn->changed);
	zf_mutex_deinit(&txn->commit_lock);
	zf_mutex_deinit(&txn->lock);
	free(txn->chunks);
	free(txn);
}

void zf_txn_set_log(struct zf_txn *txn, const struct zf_txn_log *log)
{
	txn->log = *log;
}

struct zf_counters *zf_txn_counters(struct zf_txn *txn)
{
	return &txn->counters;
}

void zf_txn_fail(struct zf_txn *txn, int error, const char *what)
{
	bool first;

	zf_mutex_lock(&txn->lock);
	first = txn->error == 0;
	if (first)
		txn->failed = what;
	if (first)
		txn->error = error == -EROFS ? -EIO : error; /* -EROFS means a read-only mount */
	atomic_store_explicit(&txn->writing, false, memory_order_relaxed);
	zf_mutex_unlock(&txn->lock);
	if (first)
		zf_report(txn->report, ZF_REPORT_ERROR,
			  "%s failed: %s; the filesystem is read-only from now on, "
			  "as of its last commit (generation %" PRIu64 ")",
			  what, strerror(-error), zf_txn_durable(txn));
}

int zf_txn_flush(struct zf_txn *txn, uint64_t mark)
{
	int r = zf_dev_flush_upto(txn->dev, mark);

	if (r < 0)
		zf_txn_fail(txn, r, "flushing the device's cache");
	return r;
}

int zf_txn_error(struct zf_txn *txn)
{
	return txn->error;
}

const char *zf_txn_failed(struct zf_txn *txn)
{
	const char *what;

	zf_mutex_lock(&txn->lock);
	what = txn->failed;
	zf_mutex_unlock(&txn->lock);
	return what;
}

uint64_t zf_txn_running(struct zf_txn *txn)
{
	return txn->running;
}

uint64_t zf_txn_durable(struct zf_txn *txn)
{
	uint64_t r;

	zf_mutex_lock(&txn->lock);
	r = txn->durable;
	zf_mutex_unlock(&txn->lock);
	return r;
}

bool zf_txn_is_dirty(struct zf_txn *txn)
{
	return atomic_load_explicit(&txn->dirty, memory_order_relaxed);
}

void zf_txn_get_stats(struct zf_txn *txn, struct zf_txn_stats *ret_stats)
{
	zf_mutex_lock(&txn->lock);
	*ret_stats = txn->stats;
	zf_mutex_unlock(&txn->lock);
}

/* ---- room ---- */

/*
 * From these values the most nodes are computed that one transaction can need for a number of
 * edits. There are two bounds, and the smaller one counts. First: each edit takes its worst case.
 * Second, which is far less on a small filesystem: every existing node is copied once, each edit
 * splits one leaf, inner nodes split when they have doubled, and each tree grows by a level. (One
 * case in thousands of edits exceeds the second bound: a packed leaf becomes three leaves for an
 * item of another size between its items, or for an item that differs from them in more bytes than
 * extents do.)
 */
struct bound {
	uint64_t worst;	      /* nodes of one edit */
	uint64_t live;	      /* existing nodes */
	uint64_t kept;	      /* nodes that recording kept space will add */
	uint64_t overwrites;  /* nodes left for overwriting guaranteed space */
	uint64_t garbage_min; /* dead nodes that make a zone worth emptying */
};

static uint64_t nodes_needed(const struct bound *bound, uint64_t edits)
{
	uint64_t all = bound->live + edits + edits / SPLIT_CHILDREN + bound->worst;

	return zf_min_u64(edits * bound->worst, all);
}

/* The bound when all kept blocks will have been written: the trees may be a level higher. */
static struct bound bound_then(const struct bound *bound)
{
	if (bound->kept == 0)
		return *bound;
	return (struct bound){.worst = bound->worst + 2, .live = bound->live + bound->kept};
}

static uint64_t zone_nodes(const struct zf_txn *txn)
{
	return zf_dev_geometry(txn->dev)->zone_capacity / txn->super.node_size;
}

/*
 * Returns the nodes that only recording kept blocks may use: the new nodes themselves, and the
 * garbage beside nodes that stays because each zone has too little of it to be worth emptying.
 */
static uint64_t nodes_kept_for_space(const struct zf_txn *txn, const struct bound *bound)
{
	uint64_t zone = zone_nodes(txn);

	if (bound->kept == 0)
		return 0;
	return bound->kept +
	       (bound->live + bound->kept) * zf_min_u64(bound->garbage_min, zone) / zone;
}

/*
 * Returns the nodes that no user's operation may take, so that space can always be freed. The first
 * term is for reclaim: it must be able to move the nodes of one whole zone, or no zone ever comes
 * back. The second term is for removals: before they run out of room, they must have made a zone's
 * worth of garbage, because only then some zone has enough of it to be worth emptying, however
 * widely it is spread.
 */
static uint64_t nodes_kept_for_users(uint64_t zone, const struct bound *bound)
{
	struct bound then = bound_then(bound);

	return zf_max_u64(zone, nodes_needed(&then, EDITS_KEPT_FOR_SYSTEM)) +
	       zf_max_u64(zone, nodes_needed(&then, EDITS_KEPT_FOR_FREEING));
}

/*
 * The nodes that a caller of this class leaves alone. On a filesystem with guaranteed blocks NORMAL
 * also leaves alone what OVERWRITE uses, and one zone more: OVERWRITE leaves that to reclaim.
 */
static uint64_t nodes_kept(const struct zf_txn *txn, const struct bound *bound,
			   enum zf_reserve_class class)
{
	uint64_t zone = zone_nodes(txn);
	struct bound all = *bound;
	uint64_t nodes;

	switch (class) {
	case ZF_RESERVE_NORMAL:
		all.kept += bound->overwrites;
		nodes = nodes_kept_for_users(zone, &all) + nodes_kept_for_space(txn, bound);
		return bound->overwrites > 0 ? nodes + bound->overwrites + zone : nodes;
	case ZF_RESERVE_OVERWRITE:
		return nodes_kept_for_users(zone, bound) + bound->kept;
	case ZF_RESERVE_FREEING:
		return zf_max_u64(zone, nodes_needed(bound, EDITS_KEPT_FOR_SYSTEM));
	case ZF_RESERVE_SYSTEM:
		break;
	}
	return 0;
}

static struct bound bound_now(struct zf_txn *txn)
{
	struct zf_node_counts counts = zf_alloc_count_nodes(txn->alloc);

	return (struct bound){
		.worst = zf_forest_worst_nodes(txn->forest),
		.live = counts.live,
		.kept = counts.kept,
		.overwrites = counts.overwrites,
		.garbage_min = counts.garbage_min,
	};
}

uint64_t zf_txn_nodes_kept(struct zf_txn *txn)
{
	struct bound bound = bound_now(txn);

	/*
	 * OVERWRITE uses up the rest of what NORMAL leaves alone, and reclaim must still work then.
	 */
	return nodes_kept(txn, &bound,
			  bound.overwrites > 0 ? ZF_RESERVE_OVERWRITE : ZF_RESERVE_NORMAL);
}

/*
 * OVERWRITE need not leave room for the edits of others, because its own landing has the reserve.
 * But it leaves the zone with which reclaim begins, besides the nodes that reclaim leaves alone.
 */
static uint64_t nodes_kept_from_data(struct zf_txn *txn, enum zf_reserve_class class)
{
	struct bound bound = bound_now(txn);
	uint64_t nodes = nodes_kept(txn, &bound, class);

	if (class == ZF_RESERVE_OVERWRITE)
		return nodes + zone_nodes(txn);
	return nodes + nodes_needed(&bound, EDITS_KEPT_FROM_DATA);
}

/* Does everything that gives room back now. Returns whether it did anything. */
static bool tidy_all(struct zf_txn *txn)
{
	bool any = false;
	int did;

	do {
		did = zf_txn_tidy(txn, true);
		any |= did > 0;
	} while (did == ZF_TIDY_DID);
	return any;
}

/* Rounds of getting space back, for a caller that finds no room. */
struct effort {
	struct zf_txn *txn;
	/* Makes no commit that gives no zone back: data has other means (fs/space/room.h). */
	bool emptied;
	struct zf_vain *vain; /* NULL for a removal, which makes every effort */
	bool gives_way;	      /* as the last resort kept blocks become short; removals only */
	struct zf_vain_trial trial;
	unsigned int rounds;
	bool over; /* the last round gave nothing back, or was one too many */
};

static struct effort effort_for(struct zf_txn *txn, enum zf_reserve_class class, bool data,
				bool may_give_way)
{
	bool of_user = zf_reserve_is_of_user(class);
	struct effort effort = {
		.txn = txn,
		.emptied = data && of_user,
		.gives_way = may_give_way && class == ZF_RESERVE_FREEING,
	};

	if (of_user)
		effort.vain = data ? &txn->no_data : &txn->no_nodes;
	return effort;
}

/*
 * One round: resets the zones that may be reset already. If there is none, a commit makes freed
 * space reusable, and tidying resets the zones. Returns whether the round gave anything back.
 */
static bool make_room(struct effort *effort)
{
	struct zf_txn *txn = effort->txn;
	uint64_t running = zf_txn_running(txn);
	bool worth;

	if (tidy_all(txn))
		return true;
	worth = zf_alloc_emptied_zones(txn->alloc) > 0 ||
		(!effort->emptied && zf_txn_is_dirty(txn));
	if (!worth || zf_txn_commit_upto(txn, running, true) < 0)
		return false;
	return tidy_all(txn);
}

/* One round. The caller then tries again in any case, because other threads make room, too. */
static void run_round(struct effort *effort)
{
	struct zf_alloc *alloc = effort->txn->alloc;
	bool known = effort->vain && zf_vain_is_known(effort->vain, alloc);

	if (effort->rounds == 0)
		zf_vain_begin(&effort->trial, alloc);
	effort->over = known || !make_room(effort) || effort->rounds == ROUNDS_MAX ||
		       (effort->vain && !zf_vain_goes_on(&effort->trial, alloc));
	effort->rounds++;
	if (effort->over && effort->vain && !known)
		zf_vain_end(effort->vain, alloc, &effort->trial);
}

/*
 * The only place in src/txn/ that makes room: takes one step that may give room, for a caller that
 * found none. False: no such step is left. There are at most ROUNDS_MAX + 1 rounds, each with one
 * commit at most; then kept blocks of one zone after the other become short, so that metadata can
 * have the zone.
 */
static bool make_effort(struct effort *effort)
{
	if (effort->over)
		return effort->gives_way && zf_alloc_kept_give_way(effort->txn->alloc);
	run_round(effort);
	return true;
}

/*
 * Promises room to a join. Each join is short, and is promised its worst case. So if other joins
 * have been promised the room, this call waits for one of them to leave; that is better than
 * -ENOSPC, and better than making kept blocks short. -ENOSPC, -EBUSY; -EAGAIN, -EROFS.
 */
static int promise_locked(struct zf_txn *txn, enum zf_reserve_class class, unsigned int items,
			  bool may_wait, uint64_t *ret_nodes)
{
	for (;;) {
		struct bound bound;
		int r;

		while (txn->freezing && may_wait)
			zf_cond_wait(&txn->changed, &txn->lock);
		if (txn->error)
			return -EROFS;
		if (txn->freezing)
			return -EAGAIN;
		/*
		 * The bound is computed after the freeze, because the running transaction has to
		 * copy the nodes of the frozen one.
		 */
		bound = bound_now(txn);
		*ret_nodes = nodes_needed(&bound, items);
		r = zf_alloc_promise_nodes(txn->alloc, class, *ret_nodes,
					   nodes_kept(txn, &bound, class));
		if (r != -EBUSY || !may_wait)
			return r;
		txn->waiting++;
		zf_cond_wait(&txn->changed, &txn->lock);
		txn->waiting--;
	}
}

/* 0: joined; 1: no room without a commit; -EAGAIN, -EROFS. */
static int try_join(struct zf_txn *txn, enum zf_reserve_class class, unsigned int items,
		    bool may_wait, struct zf_trans *ret_trans)
{
	uint64_t nodes;
	int r;

	zf_mutex_lock(&txn->lock);
	r = promise_locked(txn, class, items, may_wait, &nodes);
	if (r == 0) {
		txn->joins++;
		*ret_trans = (struct zf_trans){
			.txn = txn,
			.writer = &txn->writer,
			.generation = txn->running,
			.nodes = nodes,
		};
		ZF_TRACE(transaction_joined, .generation = txn->running, .items = items);
	}
	zf_mutex_unlock(&txn->lock);
	if (r == 0)
		zf_rank_enter(ZF_RANK_JOIN);
	return r == -ENOSPC || r == -EBUSY ? 1 : r;
}

bool zf_txn_has_much(struct zf_txn *txn)
{
	return zf_forest_running_bytes(txn->forest) > txn->options.dirty_bytes_max;
}

static void tell_much(struct zf_txn *txn)
{
	if (txn->options.much &&
	    zf_forest_running_bytes(txn->forest) > txn->options.dirty_bytes_max / 4 * 3 &&
	    !atomic_exchange_explicit(&txn->told, true, memory_order_relaxed))
		txn->options.much(txn->options.much_arg);
}

/* How full the upper half of the bound is, in thousandths. */
static uint64_t fullness(struct zf_txn *txn)
{
	uint64_t half = txn->options.dirty_bytes_max / 2;
	uint64_t running = zf_forest_running_bytes(txn->forest);

	return running <= half ? 0 : zf_min_u64((running - half) / (half / 1000 + 1), 1000);
}

bool zf_txn_is_crowded(struct zf_txn *txn)
{
	return atomic_load_explicit(&txn->writing, memory_order_relaxed) && fullness(txn) > 0;
}

void zf_txn_slow_down(struct zf_txn *txn)
{
	uint64_t ms = 1 + SLOW_DOWN_MS * fullness(txn) / 1000;

	zf_mutex_lock(&txn->lock);
	if (atomic_load_explicit(&txn->writing, memory_order_relaxed))
		zf_cond_wait_ms(&txn->changed, &txn->lock, ms);
	zf_mutex_unlock(&txn->lock);
}

/*
 * The rounds are bounded: other threads may use up the room that a commit made before this thread
 * does.
 */
static int keep_bound(struct zf_txn *txn, bool may_wait)
{
	int r = 0;

	tell_much(txn);
	for (unsigned int round = 0; r == 0 && round < ROUNDS_MAX && zf_txn_has_much(txn); round++)
		r = may_wait ? zf_txn_commit_much(txn) : -EAGAIN;
	/* A commit without room is no error here: a join looks for room itself, and reports it. */
	return r == -ENOSPC ? 0 : r;
}

int zf_txn_keep_bound(struct zf_txn *txn, bool may_wait)
{
	return keep_bound(txn, may_wait);
}

/* `last`: as the last resort the call may make kept blocks short (zf_alloc_kept_give_way()). */
static int join(struct zf_txn *txn, enum zf_reserve_class class, unsigned int items, bool may_wait,
		bool last, struct zf_trans *ret_trans)
{
	struct effort effort = effort_for(txn, class, false, last);

	/* SYSTEM joins are part of making room (landing, reclaim, tidying): no bound stops them. */
	if (class != ZF_RESERVE_SYSTEM) {
		int r = keep_bound(txn, may_wait);

		if (r < 0)
			return r;
	}
	for (;;) {
		int r = try_join(txn, class, items, may_wait, ret_trans);

		if (r <= 0)
			return r;
		if (!may_wait)
			return -EAGAIN;
		/* A SYSTEM join may itself be part of making room. */
		if (class == ZF_RESERVE_SYSTEM || !make_effort(&effort))
			return -ENOSPC;
	}
}

int zf_trans_join(struct zf_txn *txn, enum zf_reserve_class class, unsigned int items,
		  bool may_wait, struct zf_trans *ret_trans)
{
	return join(txn, class, items, may_wait, true, ret_trans);
}

int zf_txn_wait_for_room(struct zf_txn *txn, enum zf_reserve_class class, unsigned int items)
{
	struct zf_trans trans;
	int r = join(txn, class, items, true, false, &trans);

	if (r == 0)
		zf_trans_leave(&trans);
	return r;
}

void zf_txn_room_was_sought(struct zf_txn *txn, const struct zf_vain_trial *trial)
{
	zf_vain_end(&txn->no_nodes, txn->alloc, trial);
	zf_vain_end(&txn->no_data, txn->alloc, trial);
}

void zf_trans_leave(struct zf_trans *trans)
{
	struct zf_txn *txn = trans->txn;

	zf_alloc_promise_over(txn->alloc, trans->nodes);
	zf_mutex_lock(&txn->lock);
	assert(txn->joins > 0);
	txn->joins--;
	if (txn->waiting > 0 || (txn->freezing && txn->joins == 0))
		zf_cond_broadcast(&txn->changed);
	zf_mutex_unlock(&txn->lock);
	zf_rank_leave(ZF_RANK_JOIN);
	trans->txn = NULL;
}

void zf_trans_abort(struct zf_trans *trans, int error, const char *what)
{
	zf_txn_fail(trans->txn, error, what);
}

int zf_txn_reserve(struct zf_txn *txn, enum zf_reserve_class class, uint64_t data_blocks,
		   uint64_t items, bool may_wait)
{
	/* Data that a removal has to write is no reason to make kept blocks short. */
	struct effort effort = effort_for(txn, class, true, data_blocks == 0);

	for (;;) {
		uint64_t nodes = nodes_kept_from_data(txn, class);
		int r = zf_alloc_reserve(txn->alloc, class, data_blocks, items, nodes);

		if (r != -ENOSPC)
			return r;
		if (zf_txn_error(txn))
			return -EROFS;
		if (!may_wait)
			return -EAGAIN;
		if (!make_effort(&effort))
			return -ENOSPC;
	}
}
