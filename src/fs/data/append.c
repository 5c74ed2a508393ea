/* SPDX-License-Identifier: MIT */
#include "fs/data/append.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/overwrite.h"
#include "alloc/reserve.h"
#include "base/hash.h"
#include "fs/core/inode.h"
#include "fs/data/data.h"

/*
 * The most commits that are made for an append that finds no zone. After so many commits every zone
 * has come back that can.
 */
#define ZONE_ROUNDS 4u

/*
 * How often a failed append is tried again; the second number if zone after zone turned read-only
 * or offline.
 */
#define TRIES_MAX      1u
#define ZONE_TRIES_MAX 8u

/* ---- life ---- */

struct zf_append *zf_append_new(struct zf_fs *fs, unsigned int capacity)
{
	struct zf_append *append;
	size_t size =
		sizeof(*append) + capacity * (sizeof(append->blocks[0]) + sizeof(append->csums[0]) +
					      sizeof(append->iov[0]) + sizeof(append->segments[0]));
	uint8_t *at;

	append = malloc(size);
	if (!append)
		return NULL;
	*append = (struct zf_append){.fs = fs, .capacity = capacity};
	atomic_fetch_add_explicit(&fs->flush.begun, 1, memory_order_relaxed);
	at = (uint8_t *)(append + 1);
	append->csums = (uint64_t *)(void *)at;
	at += capacity * sizeof(append->csums[0]);
	append->blocks = (struct zf_block **)(void *)at;
	at += capacity * sizeof(append->blocks[0]);
	append->iov = (struct iovec *)(void *)at;
	at += capacity * sizeof(append->iov[0]);
	append->segments = (struct zf_segment *)(void *)at;
	return append;
}

void zf_append_free(struct zf_append *append)
{
	assert(!append || append->count == 0);
	if (append)
		atomic_fetch_add(&append->fs->flush.ended, 1);
	free(append);
}

static struct zf_block *chain_blocks(struct zf_append *append)
{
	struct zf_block *chain = NULL;

	for (unsigned int i = append->count; i-- > 0;) {
		if (!append->blocks[i])
			continue;
		append->blocks[i]->next = chain;
		chain = append->blocks[i];
	}
	return chain;
}

void zf_append_end(struct zf_append *append)
{
	struct zf_fs *fs = append->fs;
	unsigned int own = append->count - append->put_back;

	if (append->granted)
		zf_alloc_append_end(fs->alloc, &append->grant, append->io.result);
	if (append->in_place)
		zf_alloc_overwrite_let_go(fs->alloc, append->hold);
	else
		zf_alloc_unreserve(fs->alloc, append->granted ? 0 : own,
				   (uint64_t)own * ZF_BLOCK_ITEMS);
	zf_block_pool_give(&fs->flush, chain_blocks(append));
	atomic_fetch_sub(&fs->flush.flight_bytes, (uint64_t)append->count << ZF_BLOCK_SHIFT);
	atomic_fetch_sub(&fs->flush.used_bytes, (uint64_t)own << ZF_BLOCK_SHIFT);
	for (unsigned int i = 0; i < append->segment_count; i++)
		zf_inode_put(append->segments[i].inode);
	atomic_fetch_add(&fs->flush.ended, 1);
	free(append);
}

/* ---- to the device ---- */

void zf_append_enqueue(struct zf_append *append)
{
	struct zf_flush *flush = &append->fs->flush;

	zf_mutex_lock(&flush->lock);
	STAILQ_INSERT_TAIL(&flush->waiting, append, link);
	zf_mutex_unlock(&flush->lock);
}

static void enqueue_first(struct zf_append *append)
{
	struct zf_flush *flush = &append->fs->flush;

	zf_mutex_lock(&flush->lock);
	STAILQ_INSERT_HEAD(&flush->waiting, append, link);
	zf_mutex_unlock(&flush->lock);
}

static struct zf_append *take_waiting(struct zf_fs *fs)
{
	struct zf_append *append;

	zf_mutex_lock(&fs->flush.lock);
	append = STAILQ_FIRST(&fs->flush.waiting);
	if (append)
		STAILQ_REMOVE_HEAD(&fs->flush.waiting, link);
	zf_mutex_unlock(&fs->flush.lock);
	return append;
}

static void to_done(struct zf_append *append, bool was_submitted)
{
	struct zf_flush *flush = &append->fs->flush;

	zf_mutex_lock(&flush->lock);
	STAILQ_INSERT_TAIL(&flush->done, append, link);
	flush->submitted -= was_submitted;
	flush->events++;
	zf_cond_broadcast(&flush->progress);
	zf_mutex_unlock(&flush->lock);
}

/*
 * An append is done when the device has completed it and its checksums are computed. The later of
 * the two puts it on the list.
 */
static void finish_part(struct zf_append *append)
{
	if (atomic_fetch_sub(&append->unfinished, 1) == 1)
		to_done(append, true);
}

static void append_completed(struct zf_io *io)
{
	struct zf_append *append = ZF_CONTAINER_OF(io, struct zf_append, io);

	if (append->granted)
		zf_alloc_append_written(append->fs->alloc, &append->grant);
	finish_part(append);
}

/* Moves the blocks from `keep` on to an append of their own: the zone had no room for all. */
static struct zf_append *split(struct zf_append *append, unsigned int keep)
{
	struct zf_append *rest = zf_append_new(append->fs, append->count - keep);

	if (!rest)
		return NULL;
	rest->count = append->count - keep;
	rest->tries = append->tries;
	rest->fua = append->fua;
	memcpy(rest->blocks, append->blocks + keep, rest->count * sizeof(rest->blocks[0]));
	for (unsigned int i = 0; i < append->segment_count; i++) {
		struct zf_segment *segment = &append->segments[i];
		unsigned int end = segment->first + segment->count;
		struct zf_segment part = *segment;

		if (end <= keep)
			continue;
		part.first = segment->first > keep ? segment->first - keep : 0;
		part.count = end - keep - part.first;
		if (segment->first < keep) {
			segment->count = keep - segment->first;
			zf_inode_ref(part.inode);
		}
		rest->segments[rest->segment_count++] = part;
	}
	while (append->segments[append->segment_count - 1].first >= keep)
		append->segment_count--;
	append->count = keep;
	return rest;
}

unsigned int zf_append_fill_iov(struct zf_append *append)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < append->count; i++) {
		uint8_t *bytes = append->blocks[i]->bytes;
		struct iovec *last = n ? &append->iov[n - 1] : NULL;

		if (last && (uint8_t *)last->iov_base + last->iov_len == bytes)
			last->iov_len += ZF_BLOCK_SIZE;
		else
			append->iov[n++] = (struct iovec){bytes, ZF_BLOCK_SIZE};
	}
	return n;
}

void zf_append_sum(struct zf_append *append)
{
	for (unsigned int i = 0; i < append->count; i++)
		append->csums[i] = zf_hash64(append->blocks[i]->bytes, ZF_BLOCK_SIZE);
}

void zf_append_arrived(struct zf_append *append, const struct zf_append_grant *grant,
		       uint64_t address)
{
	append->grant = *grant;
	append->granted = true;
	zf_alloc_append_written(append->fs->alloc, &append->grant);
	append->fua = true;
	append->io.addr = address;
	append->io.result = 0;
}

static void to_device(struct zf_append *append, unsigned int parts)
{
	struct zf_fs *fs = append->fs;

	atomic_store(&append->unfinished, parts);
	zf_mutex_lock(&fs->flush.lock);
	fs->flush.submitted++;
	zf_mutex_unlock(&fs->flush.lock);
	zf_dev_submit(fs->dev, &append->io);
}

static void submit(struct zf_append *append)
{
	append->io = (struct zf_io){
		.op = append->grant.address ? ZF_IO_WRITE : ZF_IO_APPEND,
		.addr = append->grant.address ? append->grant.address : append->grant.zone_start,
		.len = (uint64_t)append->count << ZF_BLOCK_SHIFT,
		.iov = append->iov,
		.fua = append->fua,
		.purpose = ZF_FOR_DATA,
		.iovcnt = zf_append_fill_iov(append),
		.done = append_completed,
	};
	to_device(append, 2);
	/*
	 * The checksums are computed while the device writes, so they cost no time. The buffers do
	 * not change.
	 */
	zf_append_sum(append);
	finish_part(append);
}

void zf_append_fail(struct zf_append *append, int error)
{
	append->error = error;
	to_done(append, false);
}

void zf_append_again(struct zf_append *append)
{
	to_done(append, false);
}

/*
 * Gives back the part of the reservation that the grant has not used: put_back() reserves for all
 * blocks.
 */
static void fail_to_split(struct zf_append *append)
{
	struct zf_alloc *alloc = append->fs->alloc;

	append->io.result = -ENOMEM;
	zf_alloc_append_written(alloc, &append->grant);
	zf_alloc_unreserve(alloc, append->count - (append->grant.len >> ZF_BLOCK_SHIFT), 0);
	zf_append_fail(append, -ENOMEM);
}

/* Counts the zones that data has begun, for zf_room_pace() (fs/space/room.h). */
static void note_zone(struct zf_flush *flush, uint32_t zone_no)
{
	if (atomic_load_explicit(&flush->zone_no, memory_order_relaxed) == zone_no)
		return;
	atomic_store(&flush->zone_no, zone_no);
	atomic_fetch_add(&flush->zones_begun, 1);
}

/* Submits waiting appends. -EAGAIN: too many zones are active; -ENOSPC: there is no zone. */
static int submit_waiting(struct zf_fs *fs)
{
	struct zf_append *append, *rest;

	while ((append = take_waiting(fs))) {
		uint64_t want = (uint64_t)append->count << ZF_BLOCK_SHIFT;
		int r = zf_alloc_append_begin(fs->alloc, ZF_ROLE_HOT, want, &append->grant);

		if (r < 0) {
			enqueue_first(append);
			return r;
		}
		append->granted = true;
		note_zone(&fs->flush, append->grant.zone_no);
		if (append->grant.len < want) {
			rest = split(append, (unsigned int)(append->grant.len >> ZF_BLOCK_SHIFT));
			if (!rest) {
				fail_to_split(append);
				continue;
			}
			enqueue_first(rest);
		}
		submit(append);
	}
	return 0;
}

int zf_append_submit_waiting(struct zf_fs *fs)
{
	return submit_waiting(fs) < 0 ? -EAGAIN : 0;
}

static void prepare_in_place(struct zf_append *append, bool fua)
{
	append->fua = fua;
	append->io = (struct zf_io){
		.op = ZF_IO_WRITE,
		.fua = fua,
		.purpose = ZF_FOR_DATA,
		.addr = append->blocks[0]->address,
		.len = (uint64_t)append->count << ZF_BLOCK_SHIFT,
		.iov = append->iov,
		.iovcnt = zf_append_fill_iov(append),
		.done = append_completed,
	};
}

void zf_append_submit_in_place(struct zf_append *append, bool fua)
{
	prepare_in_place(append, fua);
	to_device(append, 1);
}

void zf_append_run_in_place(struct zf_append *append)
{
	prepare_in_place(append, true);
	append->io.result = zf_dev_run(append->fs->dev, &append->io);
}

/* The zone has turned read-only or offline. Other zones may be good, so more tries are allowed. */
static bool has_zone_failed(const struct zf_append *append)
{
	return append->io.result == -EROFS || append->io.result == -ENXIO;
}

bool zf_append_retry(struct zf_append *append)
{
	struct zf_fs *fs = append->fs;

	if (append->tries >= (has_zone_failed(append) ? ZONE_TRIES_MAX : TRIES_MAX) ||
	    append->error)
		return false;
	/* The first try has used up the reservation. */
	if (zf_alloc_reserve(fs->alloc, ZF_RESERVE_SYSTEM, append->count, 0, 0) < 0)
		return false;
	zf_alloc_append_end(fs->alloc, &append->grant, append->io.result);
	append->granted = false;
	append->tries++;
	enqueue_first(append);
	return true;
}

void zf_append_give_up_waiting(struct zf_fs *fs, int error)
{
	struct zf_append *append = take_waiting(fs);

	if (append)
		zf_append_fail(append, error);
}

/* ---- from the device ---- */

struct zf_append *zf_append_take_done(struct zf_fs *fs, uint64_t *ret_let_go)
{
	struct zf_append *append;

	zf_mutex_lock(&fs->flush.lock);
	append = STAILQ_FIRST(&fs->flush.done);
	if (append) {
		STAILQ_REMOVE_HEAD(&fs->flush.done, link);
		fs->flush.landing++;
		*ret_let_go = fs->flush.let_go;
	}
	zf_mutex_unlock(&fs->flush.lock);
	return append;
}

void zf_append_landed(struct zf_fs *fs, struct zf_append *append, uint64_t let_go)
{
	struct zf_flush *flush = &fs->flush;

	zf_mutex_lock(&flush->lock);
	/* The block that it waits for may have landed since the append was checked. */
	if (append && flush->let_go != let_go)
		STAILQ_INSERT_TAIL(&flush->done, append, link);
	else if (append)
		STAILQ_INSERT_TAIL(&flush->held, append, link);
	flush->landing--;
	flush->events++;
	zf_cond_broadcast(&flush->progress);
	zf_mutex_unlock(&flush->lock);
}

void zf_append_retry_held(struct zf_fs *fs)
{
	struct zf_flush *flush = &fs->flush;

	zf_mutex_lock(&flush->lock);
	flush->let_go++;
	if (!STAILQ_EMPTY(&flush->held)) {
		STAILQ_CONCAT(&flush->done, &flush->held);
		flush->events++;
		zf_cond_broadcast(&flush->progress);
	}
	zf_mutex_unlock(&flush->lock);
}

/* ---- waiting ---- */

void zf_append_event_for_askers(struct zf_fs *fs)
{
	zf_mutex_lock(&fs->flush.lock);
	fs->flush.events++;
	if (fs->flush.askers > 0)
		zf_cond_broadcast(&fs->flush.progress);
	zf_mutex_unlock(&fs->flush.lock);
}

static void wait_event(struct zf_fs *fs, uint64_t seen, bool asks)
{
	struct zf_flush *flush = &fs->flush;

	zf_mutex_lock(&flush->lock);
	flush->askers += asks;
	while (flush->events == seen && (zf_dev_is_threaded(fs->dev) || flush->submitted > 0))
		zf_dev_wait_progress(fs->dev, &flush->progress, &flush->lock);
	flush->askers -= asks;
	zf_mutex_unlock(&flush->lock);
}

void zf_append_wait(struct zf_fs *fs, uint64_t seen)
{
	wait_event(fs, seen, true);
}

void zf_append_wait_ms(struct zf_fs *fs, unsigned int ms)
{
	struct zf_flush *flush = &fs->flush;

	if (!zf_dev_is_threaded(fs->dev))
		return;
	zf_mutex_lock(&flush->lock);
	zf_cond_wait_ms(&flush->progress, &flush->lock, ms);
	zf_mutex_unlock(&flush->lock);
}

/* Returns whether something is under way that will cause an event. */
static bool is_moving(struct zf_fs *fs)
{
	bool r;

	zf_mutex_lock(&fs->flush.lock);
	r = fs->flush.submitted > 0 || fs->flush.landing > 0 || !STAILQ_EMPTY(&fs->flush.done);
	zf_mutex_unlock(&fs->flush.lock);
	return r;
}

void zf_append_await_all(struct zf_fs *fs)
{
	uint64_t begun = atomic_load(&fs->flush.begun), seen = zf_flush_events(fs);

	while (atomic_load(&fs->flush.ended) < begun && is_moving(fs) && !zf_txn_error(fs->txn)) {
		zf_append_progress(fs, seen);
		seen = zf_flush_events(fs);
	}
}

static int tidy_all(struct zf_fs *fs)
{
	int r;

	do {
		r = zf_txn_tidy(fs->txn, true);
	} while (r == ZF_TIDY_DID);
	return r;
}

static void say_stuck(struct zf_fs *fs)
{
	zf_report(
		&fs->report, ZF_REPORT_ERROR,
		"as many zones are active as the device allows, none of them is being written, and "
		"none can be finished: data cannot be written. Does the device still answer? Mount "
		"again when it does");
}

int zf_append_wait_limits(struct zf_fs *fs, uint64_t seen)
{
	/*
	 * The second round comes after a commit: a zone that the log has left can be finished once
	 * the newest superblock does not name it.
	 */
	for (unsigned int round = 0; round < 2; round++) {
		if (zf_txn_ease_limits(fs->txn) || zf_alloc_wait_limits(fs->alloc, seen))
			return 0;
		if (zf_txn_error(fs->txn))
			return -EROFS;
		if (round == 0)
			(void)zf_txn_commit(fs->txn, true);
	}
	say_stuck(fs);
	return -EIO;
}

/* Every append has ended and there is still no zone: only commits and resets can give one. */
static int wait_for_zones(struct zf_fs *fs)
{
	int r = -ENOSPC;

	for (unsigned int round = 0; r == -ENOSPC && round < ZONE_ROUNDS; round++) {
		int made = zf_txn_commit(fs->txn, true);

		if (made >= 0)
			made = tidy_all(fs);
		if (made < 0) {
			r = made == -ENOMEM ? made : r;
			break;
		}
		r = submit_waiting(fs);
	}
	if (zf_txn_error(fs->txn))
		return -EROFS;
	return r == -EAGAIN ? 0 : r;
}

/*
 * The data that waits for a zone was answered, so it is given up only if nothing can give a zone
 * (P5).
 */
static void get_zone(struct zf_fs *fs, uint64_t seen, int missing)
{
	int r = missing == -EAGAIN ? zf_append_wait_limits(fs, seen) : wait_for_zones(fs);

	if (r < 0 && !is_moving(fs))
		zf_append_give_up_waiting(fs, r);
}

static void progress(struct zf_fs *fs, uint64_t seen, bool asks)
{
	uint64_t limits = zf_alloc_limit_events(fs->alloc);
	int r;

	if (zf_data_land(fs) > 0)
		return;
	r = submit_waiting(fs);
	if (r < 0 && !is_moving(fs))
		get_zone(fs, limits, r);
	else
		wait_event(fs, seen, asks);
}

void zf_append_progress(struct zf_fs *fs, uint64_t seen)
{
	progress(fs, seen, true);
}

void zf_append_serve(struct zf_fs *fs, uint64_t seen)
{
	progress(fs, seen, false);
}
