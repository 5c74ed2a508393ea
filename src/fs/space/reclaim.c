/* SPDX-License-Identifier: MIT */
/* Emptying one victim, and the decision when a commit is worth it. */
#include "fs/space/reclaim.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "alloc/zone.h"
#include "base/plant.h"
#include "fs/core/inode.h"
#include "fs/space/reclaim_internal.h"
#include "fs/space/room.h"

/* ---- life ---- */

int zf_reclaim_init(struct zf_fs *fs)
{
	fs->reclaim = calloc(1, sizeof(*fs->reclaim));
	if (!fs->reclaim)
		return -ENOMEM;
	zf_mutex_init(&fs->reclaim->lock, ZF_RANK_RECLAIM);
	zf_mutex_init(&fs->reclaim->stats_lock, ZF_RANK_DEV);
	return 0;
}

void zf_reclaim_deinit(struct zf_fs *fs)
{
	if (!fs->reclaim)
		return;
	zf_mutex_deinit(&fs->reclaim->stats_lock);
	zf_mutex_deinit(&fs->reclaim->lock);
	free(fs->reclaim);
}

void zf_reclaim_stop(struct zf_fs *fs)
{
	atomic_store(&fs->reclaim->stopping, true);
}

void zf_reclaim_pause(struct zf_fs *fs, bool pause)
{
	atomic_store(&fs->reclaim->paused, pause);
}

bool zf_reclaim_is_paused(struct zf_fs *fs)
{
	return atomic_load(&fs->reclaim->paused);
}

void zf_reclaim_get_stats(struct zf_fs *fs, struct zf_reclaim_stats *ret_stats)
{
	zf_mutex_lock(&fs->reclaim->stats_lock);
	*ret_stats = fs->reclaim->stats;
	zf_mutex_unlock(&fs->reclaim->stats_lock);
}

/* ---- one victim ---- */

/* A piece of a batch: its blocks are slots from `slot` on. Pieces of shared bytes may overlap. */
struct part {
	struct zf_piece piece;
	unsigned int slot;
};

struct run {
	struct zf_fs *fs;
	uint32_t zone_no;
	struct zf_found found;
	struct zf_move move;
	struct part *parts;
	size_t part_count, part_room;
	size_t next_name; /* pieces of found.shared before this one are done */
	bool shared;
	bool stuck;
	uint64_t moved, changed; /* blocks */
};

static int add_part(struct run *run, const struct zf_piece *piece, unsigned int slot)
{
	if (run->part_count == run->part_room) {
		size_t room = run->part_room ? run->part_room * 2 : 256;
		struct part *grown = realloc(run->parts, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		run->parts = grown;
		run->part_room = room;
	}
	run->parts[run->part_count++] = (struct part){*piece, slot};
	return 0;
}

/* Blocks [at, at + count) of a piece. */
static struct zf_piece sub_piece(const struct zf_piece *piece, uint32_t at, uint32_t count)
{
	return (struct zf_piece){
		.ino = piece->ino,
		.offset = piece->offset + ((uint64_t)at << ZF_BLOCK_SHIFT),
		.address = piece->address + ((uint64_t)at << ZF_BLOCK_SHIFT),
		.count = count,
	};
}

/*
 * A block whose checksum the summary lacks cannot be verified, so it counts as bad, as for a read.
 */
static void add_slot(struct run *run, uint64_t address)
{
	uint64_t i = (address - run->found.start) >> ZF_BLOCK_SHIFT;

	run->move.slots[run->move.count++] = (struct zf_move_slot){
		.from = address,
		.csum = run->found.csums[i],
		.bad = !run->found.known[i],
	};
}

static void report_bad(struct run *run, const struct part *part)
{
	const struct zf_piece *piece = &part->piece;

	for (uint32_t i = 0; i < piece->count; i++) {
		const struct zf_move_slot *slot = &run->move.slots[part->slot + i];

		if (!slot->bad)
			continue;
		run->stuck = true;
		zf_report_corrupt(&run->fs->report, "data", slot->from,
				  "inode %" PRIu64 " at offset %" PRIu64
				  ": the block cannot be read or does not match its checksum, so "
				  "it is not moved, and zone %" PRIu32 " cannot be emptied",
				  piece->ino, piece->offset + ((uint64_t)i << ZF_BLOCK_SHIFT),
				  run->zone_no);
	}
}

/* Shared bytes get one summary entry, which names the first of the files that share them. */
static int summarise_shared(struct run *run)
{
	unsigned int done = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < run->part_count; i++) {
		const struct part *part = &run->parts[i];
		unsigned int end = part->slot + part->piece.count;
		unsigned int from = part->slot > done ? part->slot : done;
		struct zf_piece piece;

		if (end <= from)
			continue;
		piece = sub_piece(&part->piece, from - part->slot, end - from);
		r = zf_reclaim_summarise(run->fs, &piece, &run->move.slots[from]);
		done = end;
	}
	return r;
}

/* Returns how many blocks of the part were copied; the others were bad, or found no room. */
static unsigned int copied(const struct run *run, const struct part *part)
{
	const struct zf_move_slot *slots = &run->move.slots[part->slot];
	unsigned int n = 0;

	for (uint32_t i = 0; i < part->piece.count; i++)
		n += slots[i].to != 0;
	return n;
}

static int swap_parts(struct run *run)
{
	int r = run->shared ? summarise_shared(run) : 0;

	for (size_t i = 0; r == 0 && i < run->part_count; i++) {
		const struct part *part = &run->parts[i];
		unsigned int swapped;

		if (ZF_PLANTED(ZF_BUG_RECLAIM_ONE_NAME) && i > 0 && run->shared) {
			zf_alloc_live_sub(run->fs->alloc, part->piece.address,
					  (uint64_t)part->piece.count << ZF_BLOCK_SHIFT);
			continue;
		}
		report_bad(run, part);
		r = zf_reclaim_swap(run->fs, &part->piece, &run->move.slots[part->slot],
				    run->shared, &swapped);
		run->moved += swapped;
		run->changed += copied(run, part) - swapped;
	}
	return r;
}

static void let_others(struct zf_reclaim *reclaim)
{
	if (!reclaim->copied)
		return;
	zf_mutex_unlock(&reclaim->lock);
	reclaim->copied(reclaim->copied_arg);
	zf_mutex_lock(&reclaim->lock);
}

static int end_batch(struct run *run)
{
	int r = run->move.count > 0 ? zf_move_run(&run->move) : 0, swapped;

	let_others(run->fs->reclaim);
	/* If a part of the batch failed, the copied rest is swapped all the same. */
	swapped = swap_parts(run);
	zf_move_end(&run->move);
	run->part_count = 0;
	if (r == 0)
		r = swapped;
	if (r == 0 && atomic_load(&run->fs->reclaim->stopping))
		r = -EINTR;
	return r;
}

/* Moves the blocks that only one extent names, in the order of inode and offset. */
static int move_files(struct run *run)
{
	struct zf_move *move = &run->move;
	int r = 0;

	for (size_t i = 0; r == 0 && i < run->found.files.count; i++) {
		const struct zf_piece *piece = &run->found.files.at[i];

		for (uint32_t at = 0, n; r == 0 && at < piece->count; at += n) {
			struct zf_piece sub;

			n = piece->count - at;
			if (n > move->capacity - move->count)
				n = move->capacity - move->count;
			sub = sub_piece(piece, at, n);
			r = add_part(run, &sub, move->count);
			for (uint32_t b = 0; r == 0 && b < n; b++)
				add_slot(run, sub.address + ((uint64_t)b << ZF_BLOCK_SHIFT));
			if (r == 0 && move->count == move->capacity)
				r = end_batch(run);
		}
	}
	return r < 0 ? r : end_batch(run);
}

/*
 * Adds the shared pieces that begin below address `to`. Slots and pieces are both in the order of
 * addresses.
 */
static int add_shared_parts(struct run *run, uint64_t to)
{
	struct zf_piece *names = run->found.shared.at;
	size_t end = run->next_name;
	unsigned int slot = 0;
	int r = 0;

	for (; r == 0 && end < run->found.shared.count && names[end].address < to; end++) {
		uint64_t blocks = (to - names[end].address) >> ZF_BLOCK_SHIFT;
		struct zf_piece sub =
			sub_piece(&names[end], 0, (uint32_t)zf_min_u64(names[end].count, blocks));

		while (run->move.slots[slot].from != sub.address)
			slot++;
		r = add_part(run, &sub, slot);
	}
	/* The part of a piece behind `to` becomes one of the first pieces of the next batch. */
	for (size_t i = end; i-- > run->next_name;) {
		uint64_t blocks = (to - names[i].address) >> ZF_BLOCK_SHIFT;

		if (names[i].count > blocks)
			names[--end] = sub_piece(&names[i], (uint32_t)blocks,
						 names[i].count - (uint32_t)blocks);
	}
	run->next_name = end;
	return r;
}

/* Fills the batch with slots. *ret_to: the address behind the last one. */
static void add_shared_slots(struct run *run, uint64_t *ret_to)
{
	const struct zf_pieces *names = &run->found.shared;
	const struct zf_move *move = &run->move;
	uint64_t at = 0;

	for (size_t i = run->next_name; i < names->count && move->count < move->capacity; i++) {
		const struct zf_piece *name = &names->at[i];
		uint64_t end = name->address + ((uint64_t)name->count << ZF_BLOCK_SHIFT);

		at = zf_max_u64(at, name->address);
		for (; at < end && move->count < move->capacity; at += ZF_BLOCK_SIZE)
			add_slot(run, at);
	}
	*ret_to = at;
}

/* Moves the blocks that several extents may name, in the order of addresses: each block once. */
static int move_shared(struct run *run)
{
	int r = 0;

	run->shared = true;
	while (r == 0 && run->next_name < run->found.shared.count) {
		uint64_t to;

		add_shared_slots(run, &to);
		r = add_shared_parts(run, to);
		if (r == 0)
			r = end_batch(run);
	}
	return r;
}

static int run_zone(struct run *run)
{
	int r = zf_reclaim_find(run->fs, run->zone_no, 0, UINT64_MAX, &run->found);

	/*
	 * Damage was reported. The zone counts as stuck, or it would be chosen again before all
	 * others.
	 */
	run->stuck = r == -EUCLEAN || r == -EIO;
	if (run->stuck) {
		zf_found_free(&run->found);
		return 0;
	}
	if (r == 0)
		r = zf_move_init(&run->move, run->fs);
	if (r == 0)
		r = move_files(run);
	if (r == 0)
		r = move_shared(run);
	zf_move_deinit(&run->move);
	zf_found_free(&run->found);
	free(run->parts);
	return r;
}

static void count(struct run *run, uint64_t live, bool emptied)
{
	struct zf_reclaim *reclaim = run->fs->reclaim;

	zf_mutex_lock(&reclaim->stats_lock);
	reclaim->stats.victims++;
	reclaim->stats.emptied += emptied;
	reclaim->stats.live += live << ZF_BLOCK_SHIFT;
	reclaim->stats.moved += run->moved << ZF_BLOCK_SHIFT;
	reclaim->stats.changed += run->changed << ZF_BLOCK_SHIFT;
	reclaim->stats.stuck += run->stuck;
	zf_mutex_unlock(&reclaim->stats_lock);
}

/*
 * Empties a zone that counts as having a reader. *ret_gain: blocks that its reset gives back, less
 * those that were moved.
 */
static int empty_zone(struct zf_fs *fs, uint32_t zone_no, uint64_t *ret_gain)
{
	struct run run = {.fs = fs, .zone_no = zone_no};
	struct zf_zone before, after;
	int r;

	zf_alloc_get_zone(fs->alloc, zone_no, &before);
	r = run_zone(&run);
	zf_alloc_get_zone(fs->alloc, zone_no, &after);
	zf_alloc_reclaim_end(fs->alloc, zone_no, run.stuck);
	if (ZF_PLANTED(ZF_BUG_RECLAIM_RESETS_EARLY) && after.live == 0)
		(void)zf_dev_reset(fs->dev, zone_no);
	count(&run, before.live, after.live == 0);
	*ret_gain =
		after.live == 0 && before.capacity > run.moved ? before.capacity - run.moved : 0;
	return r < 0 ? r : 1;
}

static void count_meta(struct zf_fs *fs, int result)
{
	zf_mutex_lock(&fs->reclaim->stats_lock);
	fs->reclaim->stats.meta_victims += result > 0;
	zf_mutex_unlock(&fs->reclaim->stats_lock);
}

static int one_locked(struct zf_fs *fs, enum zf_reclaim_need need, uint64_t *ret_gain)
{
	uint32_t zone_no;
	int r;

	if (zf_txn_error(fs->txn))
		return -EROFS;
	r = zf_txn_move_nodes(fs->txn, ret_gain);
	count_meta(fs, r);
	/* If there is no room to move nodes, moving data may make some. */
	if (r != 0 && r != -ENOSPC)
		return r;
	if (zf_alloc_reclaim_begin(fs->alloc, need, &zone_no) < 0)
		return r;
	return empty_zone(fs, zone_no, ret_gain);
}

int zf_reclaim_one(struct zf_fs *fs, enum zf_reclaim_need need)
{
	uint64_t gain;
	int r;

	zf_mutex_lock(&fs->reclaim->lock);
	r = one_locked(fs, need, &gain);
	zf_mutex_unlock(&fs->reclaim->lock);
	return r;
}

int zf_reclaim_try_one(struct zf_fs *fs, enum zf_reclaim_need need)
{
	uint64_t gain;
	int r;

	if (!zf_mutex_trylock(&fs->reclaim->lock))
		return -EBUSY;
	r = one_locked(fs, need, &gain);
	zf_mutex_unlock(&fs->reclaim->lock);
	return r;
}

int zf_reclaim_zone(struct zf_fs *fs, uint32_t zone_no)
{
	uint64_t gain;
	int r;

	zf_mutex_lock(&fs->reclaim->lock);
	r = zf_txn_error(fs->txn) ? -EROFS : zf_alloc_reclaim_begin_zone(fs->alloc, zone_no);
	if (r == 0)
		r = empty_zone(fs, zone_no, &gain);
	zf_mutex_unlock(&fs->reclaim->lock);
	return r;
}

/* ---- getting zones back ---- */

/* A commit is worth it if it gives back this many times the bytes that it writes. */
#define WORTH_IN_PEACE 4u
#define WORTH_URGENT   2u

static uint64_t zone_bytes(const struct zf_fs *fs)
{
	return zf_dev_geometry(fs->dev)->zone_capacity;
}

/*
 * A transaction that has just begun has few bytes to write, but each commit costs about the same in
 * the long run. So the average of the last commits counts if it is more.
 */
static uint64_t worth_bytes(struct zf_fs *fs, const struct zf_reclaim_room *room,
			    unsigned int times)
{
	uint64_t running = zf_forest_running_bytes(fs->forest) * fs->super.metadata_copies;

	return times * zf_max_u64(running, room->commit_bytes);
}

/*
 * Returns whether the zones that are coming are worth a commit: they give back worth_bytes(), or
 * there are more of them than room->waiting (which was rounded down, hence the + 1).
 */
static bool is_worth_a_commit(struct zf_fs *fs, const struct zf_reclaim_room *room,
			      unsigned int times)
{
	uint64_t worth =
		zf_min_u64(worth_bytes(fs, room, times), (room->waiting + 1) * zone_bytes(fs));

	return room->coming > 0 && room->coming * zone_bytes(fs) >= worth;
}

/*
 * Returns how many bytes victims have to give back before the next commit. These bytes and the
 * zones that are coming make at least one zone. If victims have little garbage, fewer bytes are
 * wanted, because the full amount would take many victims.
 */
static uint64_t wanted_bytes(struct zf_fs *fs, const struct zf_reclaim_room *room)
{
	uint64_t worth =
		zf_min_u64(worth_bytes(fs, room, WORTH_URGENT), room->waiting * room->victim_bytes);
	uint64_t coming = room->coming * zone_bytes(fs);

	worth = zf_max_u64(worth, zone_bytes(fs));
	return coming < worth ? worth - coming : worth;
}

static struct zf_reclaim_room get_room(struct zf_fs *fs)
{
	struct zf_reclaim_room room;

	zf_alloc_reclaim_room(fs->alloc, &room);
	return room;
}

/* Empties victims until they give back `wanted` bytes, or there is none. */
static int empty_victims(struct zf_fs *fs, uint64_t wanted, uint64_t *ret_gained)
{
	int r = 1;

	*ret_gained = 0;
	while (r > 0 && *ret_gained < wanted) {
		uint64_t gain = 0;

		r = one_locked(fs, ZF_RECLAIM_URGENT, &gain);
		*ret_gained += gain << ZF_BLOCK_SHIFT;
	}
	return r;
}

/*
 * Commits and resets. 1: more zones are empty than before. The commit's own nodes may take as many
 * zones as it gives back; then the result is 0.
 */
static int collect_locked(struct zf_fs *fs)
{
	uint32_t before = get_room(fs).empty;
	int r = zf_txn_commit_emptied(fs->txn);

	while (r == 0 && zf_txn_reset_emptied(fs->txn) > 0)
		;
	return r < 0 ? r : get_room(fs).empty > before;
}

/*
 * Makes room without moving data: resets zones that other commits have made ready, or makes a
 * commit that is worth it now. 1: more zones are empty. Otherwise victims have to give back
 * *ret_wanted bytes before the next commit.
 */
static int take_what_is_there_locked(struct zf_fs *fs, uint64_t *ret_wanted)
{
	uint32_t before = get_room(fs).empty;
	struct zf_reclaim_room room;

	while (zf_txn_reset_emptied(fs->txn) > 0)
		;
	room = get_room(fs);
	if (room.empty > before)
		return 1;
	*ret_wanted = wanted_bytes(fs, &room);
	return is_worth_a_commit(fs, &room, WORTH_URGENT) ? collect_locked(fs) : 0;
}

/* Makes room with as few commits as possible. */
static int make_room_locked(struct zf_fs *fs)
{
	uint32_t before = get_room(fs).empty;
	uint64_t gained, wanted;
	int r = take_what_is_there_locked(fs, &wanted), collected;

	if (r > 0 || r == -EROFS)
		return r;
	r = empty_victims(fs, wanted, &gained);
	if (r == -EROFS)
		return r;
	collected = collect_locked(fs);
	/*
	 * There was no room to move to. The commit may have given a zone back, so the victims are
	 * tried once more.
	 */
	if (r == -ENOSPC && gained == 0 && collected >= 0) {
		r = empty_victims(fs, wanted, &gained);
		collected = collect_locked(fs);
	}
	if (gained > 0 || get_room(fs).empty > before)
		return 1;
	if (collected < 0)
		return collected;
	return r == -ENOSPC ? 0 : r;
}

int zf_reclaim_make_room(struct zf_fs *fs)
{
	uint64_t seen = atomic_load(&fs->reclaim->rounds);
	int r = 1;

	zf_mutex_lock(&fs->reclaim->lock);
	if (atomic_load(&fs->reclaim->rounds) == seen)
		r = make_room_locked(fs);
	if (r > 0)
		atomic_fetch_add(&fs->reclaim->rounds, 1);
	zf_mutex_unlock(&fs->reclaim->lock);
	return r;
}

static int collect(struct zf_fs *fs)
{
	int r;

	zf_mutex_lock(&fs->reclaim->lock);
	r = collect_locked(fs);
	if (r > 0)
		atomic_fetch_add(&fs->reclaim->rounds, 1);
	zf_mutex_unlock(&fs->reclaim->lock);
	return r;
}

/* ---- in peace ---- */

/* Moves live data out of a failed zone that can still be read. */
static int move_out_of_retired(struct zf_fs *fs)
{
	uint32_t zone_no;
	uint64_t gain;
	int r = 0;

	zf_mutex_lock(&fs->reclaim->lock);
	if (!zf_txn_error(fs->txn) && zf_alloc_reclaim_begin_retired(fs->alloc, &zone_no) == 0)
		r = empty_zone(fs, zone_no, &gain);
	zf_mutex_unlock(&fs->reclaim->lock);
	return r;
}

int zf_reclaim_commit(struct zf_fs *fs)
{
	struct zf_reclaim_room room;
	int r;

	zf_alloc_reclaim_room(fs->alloc, &room);
	if (room.coming == 0 || room.empty >= room.target || !zf_txn_is_dirty(fs->txn))
		return zf_txn_commit(fs->txn, false);
	r = zf_txn_commit_emptied(fs->txn);
	while (r == 0 && !atomic_load(&fs->reclaim->stopping) && zf_txn_reset_emptied(fs->txn) > 0)
		;
	return r;
}

/*
 * A thread that waits for room may find reclaim's lock taken each time, so the background commits
 * earlier then.
 */
static unsigned int worth_now(struct zf_fs *fs)
{
	return atomic_load(&fs->room->waiting) > 0 ? WORTH_URGENT : WORTH_IN_PEACE;
}

int zf_reclaim_in_peace(struct zf_fs *fs)
{
	struct zf_reclaim_room room;
	int r;

	if (zf_reclaim_is_paused(fs) || atomic_load(&fs->reclaim->stopping) ||
	    zf_txn_error(fs->txn))
		return 0;
	r = move_out_of_retired(fs);
	if (r != 0 && r != -ENOSPC)
		return r;
	zf_alloc_reclaim_room(fs->alloc, &room);
	if (room.empty < room.low && is_worth_a_commit(fs, &room, worth_now(fs)))
		return collect(fs);
	r = 0;
	if (room.empty + room.coming < room.target)
		r = zf_reclaim_one(fs, ZF_RECLAIM_IN_PEACE);
	/*
	 * If there is no victim, or no room to move to, a commit gives back the zones that are
	 * coming, however few.
	 */
	if ((r == 0 || r == -ENOSPC) && room.empty < room.low && room.coming > 0)
		return collect(fs);
	return r;
}
