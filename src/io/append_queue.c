/* SPDX-License-Identifier: MIT */
#include "io/append_queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "io/iov.h"
#include "io/zone_rules.h"

#define ZERO_CHUNK ((uint64_t)64 * 1024)

/* A zone with requests that wait or are in flight. */
struct zf_append_zone {
	uint32_t zone_no;
	struct zf_io_list waiting;
	struct zf_io_list sent;		    /* in order of address; not landed completely */
	struct zf_io *partial;		    /* the last of `sent`, if a part of it is not sent */
	TAILQ_HEAD(, zf_zone_write) writes; /* in flight, or failed; in order of address */
	unsigned int in_flight;
	bool reporting;
	bool managed; /* a reset or finish is under way */
	TAILQ_ENTRY(zf_append_zone) link;
};

TAILQ_HEAD(zone_list, zf_append_zone);

struct zf_append_queue {
	struct zf_append_queue_options options;
	const struct zf_append_queue_ops *ops;
	void *arg;
	uint32_t capacity, limit; /* blocks */

	uint32_t *pointers; /* blocks, a zone each */
	struct zf_append_zone zones[ZF_APPEND_ZONES];
	struct zone_list busy, idle;
	struct zf_io_list late; /* requests whose zones got no entry yet */
	struct zf_zone_write writes[ZF_APPEND_WRITES];
	TAILQ_HEAD(, zf_zone_write) free_writes;
	bool starved; /* a zone needed a write, and none was free */
	void *zeroes;
};

/* A disk with 52,156 zones costs 208,624 bytes of memory. */
_Static_assert(sizeof(((struct zf_append_queue *)NULL)->pointers[0]) * 52156 == 208624,
	       "4 bytes a zone");

/* ---- lists of requests ---- */

static struct zf_io *pop(struct zf_io_list *list)
{
	struct zf_io *io = STAILQ_FIRST(list);

	STAILQ_REMOVE_HEAD(list, link);
	return io;
}

/* ---- life ---- */

int zf_append_queue_new(const struct zf_append_queue_options *options,
			const struct zf_append_queue_ops *ops, void *arg,
			struct zf_append_queue **ret_queue)
{
	struct zf_append_queue *queue = calloc(1, sizeof(*queue));

	assert(options->depth > 0 && options->limit_bytes >= ZF_BLOCK_SIZE &&
	       options->limit_bytes <= ZF_APPEND_SEGMENTS_MAX * ZF_BLOCK_SIZE);
	if (!queue)
		return -ENOMEM;
	queue->options = *options;
	queue->ops = ops;
	queue->arg = arg;
	queue->capacity = (uint32_t)(options->capacity >> ZF_BLOCK_SHIFT);
	queue->limit = options->limit_bytes >> ZF_BLOCK_SHIFT;
	queue->pointers = malloc(options->zone_count * sizeof(*queue->pointers));
	queue->zeroes = aligned_alloc(ZF_BLOCK_SIZE, ZERO_CHUNK);
	if (!queue->pointers || !queue->zeroes) {
		zf_append_queue_free(queue);
		return -ENOMEM;
	}
	for (uint32_t z = 0; z < options->zone_count; z++)
		queue->pointers[z] = ZF_APPEND_POINTER_UNKNOWN;
	memset(queue->zeroes, 0, ZERO_CHUNK);
	TAILQ_INIT(&queue->busy);
	TAILQ_INIT(&queue->idle);
	TAILQ_INIT(&queue->free_writes);
	STAILQ_INIT(&queue->late);
	for (unsigned int i = 0; i < ZF_APPEND_ZONES; i++)
		TAILQ_INSERT_TAIL(&queue->idle, &queue->zones[i], link);
	for (unsigned int i = 0; i < ZF_APPEND_WRITES; i++)
		TAILQ_INSERT_TAIL(&queue->free_writes, &queue->writes[i], link);
	*ret_queue = queue;
	return 0;
}

void zf_append_queue_free(struct zf_append_queue *queue)
{
	if (!queue)
		return;
	assert(TAILQ_EMPTY(&queue->busy));
	free(queue->zeroes);
	free(queue->pointers);
	free(queue);
}

/* ---- entries ---- */

static uint32_t zone_of(const struct zf_append_queue *queue, const struct zf_io *io)
{
	return (uint32_t)(io->addr / queue->options.zone_size);
}

static uint32_t blocks_of(const struct zf_io *io)
{
	return (uint32_t)(io->len >> ZF_BLOCK_SHIFT);
}

static struct zf_append_zone *find_zone(struct zf_append_queue *queue, uint32_t zone_no)
{
	struct zf_append_zone *zone;

	TAILQ_FOREACH (zone, &queue->busy, link) {
		if (zone->zone_no == zone_no)
			return zone;
	}
	return NULL;
}

/* NULL: every entry is in use. */
static struct zf_append_zone *get_zone(struct zf_append_queue *queue, uint32_t zone_no)
{
	struct zf_append_zone *zone = find_zone(queue, zone_no);

	if (zone)
		return zone;
	zone = TAILQ_FIRST(&queue->idle);
	if (!zone)
		return NULL;
	TAILQ_REMOVE(&queue->idle, zone, link);
	*zone = (struct zf_append_zone){.zone_no = zone_no};
	STAILQ_INIT(&zone->waiting);
	STAILQ_INIT(&zone->sent);
	TAILQ_INIT(&zone->writes);
	TAILQ_INSERT_TAIL(&queue->busy, zone, link);
	return zone;
}

static bool is_in_use(const struct zf_append_zone *zone)
{
	return !STAILQ_EMPTY(&zone->waiting) || !STAILQ_EMPTY(&zone->sent) || zone->managed ||
	       zone->reporting;
}

static void put_zone(struct zf_append_queue *queue, struct zf_append_zone *zone)
{
	if (is_in_use(zone))
		return;
	assert(TAILQ_EMPTY(&zone->writes));
	TAILQ_REMOVE(&queue->busy, zone, link);
	TAILQ_INSERT_HEAD(&queue->idle, zone, link);
}

static void answer(struct zf_append_queue *queue, struct zf_io *io, int result)
{
	queue->ops->done(queue->arg, io, result);
}

/* ---- sending ---- */

/* May this request, or the rest of it, be written at block `at` of its zone? */
static int check_place(const struct zf_append_queue *queue, const struct zf_io *io, uint32_t at)
{
	uint64_t offset = io->addr % queue->options.zone_size;

	if (io->backend.queued.sent > 0)
		return io->backend.queued.start + io->backend.queued.sent == at ? 0 : -EIO;
	if (at == queue->capacity)
		return -ENOSPC;
	if (io->op != ZF_IO_APPEND && offset != (uint64_t)at << ZF_BLOCK_SHIFT)
		return -EIO;
	return blocks_of(io) > queue->capacity - at ? -ENOSPC : 0;
}

/* The next request to be written at `at`. Requests that cannot be written there are answered. */
static struct zf_io *next_to_send(struct zf_append_queue *queue, struct zf_append_zone *zone,
				  uint32_t at)
{
	struct zf_io *io;

	if (zone->partial)
		return zone->partial;
	while ((io = STAILQ_FIRST(&zone->waiting))) {
		int r = check_place(queue, io, at);

		if (r == 0)
			return io;
		answer(queue, pop(&zone->waiting), r);
	}
	return NULL;
}

static unsigned int add_zeroes(struct zf_append_queue *queue, uint64_t len, struct iovec *iov)
{
	unsigned int count = 0;

	for (; len > 0; len -= iov[count++].iov_len)
		iov[count] = (struct iovec){queue->zeroes, zf_min_u64(len, ZERO_CHUNK)};
	return count;
}

/* Adds the next `count` blocks of the request to the write. */
static void add_blocks(struct zf_append_queue *queue, struct zf_append_zone *zone,
		       struct zf_zone_write *write, struct zf_io *io, uint32_t count)
{
	uint64_t from = (uint64_t)io->backend.queued.sent << ZF_BLOCK_SHIFT;
	uint64_t len = (uint64_t)count << ZF_BLOCK_SHIFT;
	struct iovec *iov = write->iov + write->iovcnt;

	if (io->op == ZF_IO_ZEROES)
		write->iovcnt += add_zeroes(queue, len, iov);
	else
		write->iovcnt += zf_iov_slice(io->iov, from, len, iov);
	if (io != zone->partial) {
		pop(&zone->waiting);
		STAILQ_INSERT_TAIL(&zone->sent, io, link);
		if (io->backend.queued.sent == 0)
			io->backend.queued.start = write->start + write->count;
	}
	io->backend.queued.sent += count;
	zone->partial = io->backend.queued.sent < blocks_of(io) ? io : NULL;
	write->fua = io->fua;
	write->count += count;
}

static void fill(struct zf_append_queue *queue, struct zf_append_zone *zone,
		 struct zf_zone_write *write)
{
	struct zf_io *io;

	while ((io = next_to_send(queue, zone, write->start + write->count))) {
		uint32_t left = blocks_of(io) - io->backend.queued.sent;

		if (write->count == 0) {
			add_blocks(queue, zone, write, io,
				   left < queue->limit ? left : queue->limit);
			continue;
		}
		if (!queue->options.merge || io->fua != write->fua ||
		    left > queue->limit - write->count)
			return;
		add_blocks(queue, zone, write, io, left);
	}
}

/* Returns false if there is nothing to send. */
static bool send(struct zf_append_queue *queue, struct zf_append_zone *zone)
{
	struct zf_zone_write *write = TAILQ_FIRST(&queue->free_writes);
	uint32_t *pointer = &queue->pointers[zone->zone_no];

	if (!write) {
		queue->starved |= !STAILQ_EMPTY(&zone->waiting) || zone->partial;
		return false;
	}
	write->zone = zone;
	write->start = *pointer;
	write->count = 0;
	write->iovcnt = 0;
	write->error = 0;
	fill(queue, zone, write);
	if (write->count == 0)
		return false;
	*pointer += write->count;
	write->addr = zone->zone_no * queue->options.zone_size +
		      ((uint64_t)write->start << ZF_BLOCK_SHIFT);
	write->len = (uint64_t)write->count << ZF_BLOCK_SHIFT;
	TAILQ_REMOVE(&queue->free_writes, write, link);
	TAILQ_INSERT_TAIL(&zone->writes, write, link);
	zone->in_flight++;
	/* The zone goes behind the others, so that it comes last if free writes run short. */
	TAILQ_REMOVE(&queue->busy, zone, link);
	TAILQ_INSERT_TAIL(&queue->busy, zone, link);
	queue->ops->write(queue->arg, write);
	return true;
}

static void advance(struct zf_append_queue *queue, struct zf_append_zone *zone)
{
	if (zone->managed || zone->reporting)
		return;
	if (queue->pointers[zone->zone_no] != ZF_APPEND_POINTER_UNKNOWN) {
		while (zone->in_flight < queue->options.depth && send(queue, zone))
			;
	} else if (zone->in_flight == 0 && is_in_use(zone)) {
		zone->reporting = true;
		queue->ops->report(queue->arg, zone->zone_no);
	}
	put_zone(queue, zone);
}

/* ---- submission ---- */

static int check(const struct zf_append_queue *queue, const struct zf_io *io)
{
	uint64_t offset = io->addr % queue->options.zone_size;

	if (io->addr / queue->options.zone_size >= queue->options.zone_count)
		return -EINVAL;
	if (io->op == ZF_IO_RESET || io->op == ZF_IO_FINISH)
		return offset == 0 ? 0 : -EINVAL;
	if (io->len == 0 || !zf_is_aligned(io->addr | io->len, ZF_BLOCK_SIZE))
		return -EINVAL;
	if (io->op == ZF_IO_APPEND && (offset != 0 || io->len > queue->options.limit_bytes))
		return -EINVAL;
	if (offset + io->len > queue->options.capacity)
		return -ENOSPC;
	return io->op == ZF_IO_ZEROES ? 0 : zf_zone_rules_check_iov(io->iov, io->iovcnt, io->len);
}

/* Returns false if there is no entry for its zone. */
static bool accept(struct zf_append_queue *queue, struct zf_io *io)
{
	struct zf_append_zone *zone = get_zone(queue, zone_of(queue, io));
	bool manages = io->op == ZF_IO_RESET || io->op == ZF_IO_FINISH;

	if (!zone)
		return false;
	if (zone->managed || (manages && is_in_use(zone))) {
		answer(queue, io, -EIO);
	} else if (manages) {
		zone->managed = true;
		queue->ops->manage(queue->arg, io);
	} else {
		STAILQ_INSERT_TAIL(&zone->waiting, io, link);
		advance(queue, zone);
	}
	return true;
}

void zf_append_queue_submit(struct zf_append_queue *queue, struct zf_io *io)
{
	int r = check(queue, io);

	io->backend.queued.sent = 0;
	io->backend.queued.landed = 0;
	io->backend.queued.error = 0;
	io->backend.queued.retried = false;
	if (r < 0)
		answer(queue, io, r);
	else if (!accept(queue, io))
		STAILQ_INSERT_TAIL(&queue->late, io, link);
}

/* A write or an entry may have become free: lets other zones use it. */
static void serve_others(struct zf_append_queue *queue)
{
	struct zf_append_zone *zone, *next;
	struct zf_io *io;

	if (queue->starved) {
		queue->starved = false;
		TAILQ_FOREACH_SAFE (zone, &queue->busy, link, next)
			advance(queue, zone);
	}
	while (!STAILQ_EMPTY(&queue->late)) {
		io = pop(&queue->late);
		if (!accept(queue, io)) {
			STAILQ_INSERT_HEAD(&queue->late, io, link);
			return;
		}
	}
}

/* ---- completed writes ---- */

static void free_write(struct zf_append_queue *queue, struct zf_zone_write *write)
{
	TAILQ_REMOVE(&write->zone->writes, write, link);
	TAILQ_INSERT_HEAD(&queue->free_writes, write, link);
}

/* How many blocks of the request, as far as it was sent, lie in [start, start + count)? */
static uint32_t overlap(const struct zf_io *io, uint32_t start, uint32_t count)
{
	uint64_t from = zf_max_u64(io->backend.queued.start, start);
	uint64_t to = zf_min_u64((uint64_t)io->backend.queued.start + io->backend.queued.sent,
				 (uint64_t)start + count);

	return to > from ? (uint32_t)(to - from) : 0;
}

/* The first `count` blocks of the write are on the device. */
static void land(struct zf_append_queue *queue, struct zf_zone_write *write, uint32_t count)
{
	struct zf_append_zone *zone = write->zone;
	struct zf_io *io, *next;

	STAILQ_FOREACH_SAFE (io, &zone->sent, link, next) {
		io->backend.queued.landed += overlap(io, write->start, count);
		if (io->backend.queued.landed < blocks_of(io))
			continue;
		if (io->op == ZF_IO_APPEND)
			io->addr += (uint64_t)io->backend.queued.start << ZF_BLOCK_SHIFT;
		STAILQ_REMOVE(&zone->sent, io, zf_io, link);
		answer(queue, io, 0);
	}
}

void zf_append_queue_written(struct zf_append_queue *queue, struct zf_zone_write *write,
			     int64_t result)
{
	struct zf_append_zone *zone = write->zone;
	uint32_t landed = 0;

	if (result > 0)
		landed = (uint32_t)zf_min_u64((uint64_t)result >> ZF_BLOCK_SHIFT, write->count);
	zone->in_flight--;
	land(queue, write, landed);
	if (landed == write->count) {
		free_write(queue, write);
	} else {
		write->start += landed;
		write->count -= landed;
		write->error = result < 0 ? (int)result : landed > 0 ? -EAGAIN : -EIO;
		queue->pointers[zone->zone_no] = ZF_APPEND_POINTER_UNKNOWN;
	}
	advance(queue, zone);
	serve_others(queue);
}

/* ---- after a failure ---- */

static bool may_try_again(int error)
{
	return error == -EAGAIN || error == -EINTR || error == -ECANCELED;
}

/* Marks the write's requests as tried twice. False if one of them was already. */
static bool retry(struct zf_append_zone *zone, const struct zf_zone_write *write)
{
	bool first_time = true;
	struct zf_io *io;

	STAILQ_FOREACH (io, &zone->sent, link) {
		if (overlap(io, write->start, write->count) == 0)
			continue;
		first_time &= !io->backend.queued.retried;
		io->backend.queued.retried = true;
	}
	return first_time;
}

/* Do the write's requests get its error? (See the header.) */
static bool is_to_blame(struct zf_append_zone *zone, const struct zf_zone_write *write, bool first,
			uint32_t pointer)
{
	if (write->start < pointer)
		return true;
	if (!first || may_try_again(write->error))
		return false;
	return write->error != -EIO || !retry(zone, write);
}

/* The requests of a failed write get the error; 0: they are to be sent again from its start on. */
static void judge(struct zf_append_zone *zone, const struct zf_zone_write *write, int error)
{
	struct zf_io *io;

	STAILQ_FOREACH (io, &zone->sent, link) {
		if (overlap(io, write->start, write->count) == 0)
			continue;
		if (error < 0)
			io->backend.queued.error = error;
		else if (write->start > io->backend.queued.start)
			io->backend.queued.sent = write->start - io->backend.queued.start;
		else
			io->backend.queued.sent = 0;
	}
}

/* Requests left in `sent` have failed, or go back to `waiting`. */
static void answer_or_requeue(struct zf_append_queue *queue, struct zf_append_zone *zone)
{
	struct zf_io_list again = STAILQ_HEAD_INITIALIZER(again);
	struct zf_io *io;

	while (!STAILQ_EMPTY(&zone->sent)) {
		io = pop(&zone->sent);
		/* Blocks landed behind a block that did not: the device breaks the rules. */
		if (io->backend.queued.error == 0 &&
		    io->backend.queued.landed != io->backend.queued.sent)
			io->backend.queued.error = -EIO;
		if (io->backend.queued.error < 0)
			answer(queue, io, io->backend.queued.error);
		else
			STAILQ_INSERT_TAIL(&again, io, link);
	}
	zone->partial = NULL;
	STAILQ_CONCAT(&again, &zone->waiting);
	STAILQ_CONCAT(&zone->waiting, &again);
}

static void settle(struct zf_append_queue *queue, struct zf_append_zone *zone, uint32_t pointer)
{
	struct zf_zone_write *write;
	bool first = true;

	while ((write = TAILQ_FIRST(&zone->writes))) {
		int error = 0;

		if (is_to_blame(zone, write, first, pointer))
			error = queue->ops->failed(queue->arg, write, write->error,
						   write->start + write->count <= pointer);
		judge(zone, write, error);
		free_write(queue, write);
		first = false;
	}
	answer_or_requeue(queue, zone);
	queue->pointers[zone->zone_no] = pointer;
}

static void fail_all(struct zf_append_queue *queue, struct zf_append_zone *zone, int error)
{
	/* If the zone is read-only or offline, no write landed; otherwise any of them may have. */
	bool passed = error != -EROFS && error != -ENXIO;
	struct zf_zone_write *write;

	while ((write = TAILQ_FIRST(&zone->writes))) {
		if (!may_try_again(write->error))
			queue->ops->failed(queue->arg, write, write->error, passed);
		free_write(queue, write);
	}
	zone->partial = NULL;
	while (!STAILQ_EMPTY(&zone->sent))
		answer(queue, pop(&zone->sent), error);
	while (!STAILQ_EMPTY(&zone->waiting))
		answer(queue, pop(&zone->waiting), error);
}

void zf_append_queue_reported(struct zf_append_queue *queue, uint32_t zone_no, int result,
			      uint32_t pointer)
{
	struct zf_append_zone *zone = find_zone(queue, zone_no);

	assert(zone && zone->reporting);
	zone->reporting = false;
	if (result < 0)
		fail_all(queue, zone, result);
	else
		settle(queue, zone, pointer);
	advance(queue, zone);
	serve_others(queue);
}

void zf_append_queue_managed(struct zf_append_queue *queue, struct zf_io *io, int result,
			     uint32_t pointer)
{
	struct zf_append_zone *zone = find_zone(queue, zone_of(queue, io));

	assert(zone && zone->managed);
	zone->managed = false;
	queue->pointers[zone->zone_no] = pointer;
	answer(queue, io, result);
	put_zone(queue, zone);
	serve_others(queue);
}

/* ---- pointers ---- */

void zf_append_queue_set_pointer(struct zf_append_queue *queue, uint32_t zone_no, uint32_t pointer)
{
	assert(!find_zone(queue, zone_no));
	queue->pointers[zone_no] = pointer;
}

uint32_t zf_append_queue_pointer(const struct zf_append_queue *queue, uint32_t zone_no)
{
	return queue->pointers[zone_no];
}
