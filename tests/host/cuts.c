/* SPDX-License-Identifier: MIT */
#include "host/cuts.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"

#define BLOCK	 ((uint64_t)ZF_BLOCK_SIZE)
#define SECTOR	 ((uint64_t)512)
#define FILE_MAX ((uint64_t)256 << 20) /* address space */
#define BLOCKS	 (FILE_MAX / BLOCK)

static const char zeroes[ZF_BLOCK_SIZE];

struct version {
	const char *bytes;
	char *owned;   /* to be freed, else NULL */
	uint64_t id;   /* of its command; 0: of a store */
	uint64_t done; /* the event since which it is done; 0: not yet */
};

/* versions[0] is durable. A block without versions is as in `base`. */
struct block {
	struct version *versions;
	unsigned int count, room;
};

struct command {
	const struct event *event;
	uint64_t begun; /* the event at which it began */
	struct command *next;
};

struct cuts {
	const struct recording *recording;
	uint64_t at;
	char *base; /* the file, as far as it is durable */
	struct block blocks[BLOCKS];
	uint32_t pending[BLOCKS]; /* the blocks that have versions */
	unsigned int pending_count;
	struct command *commands; /* that are not done */
	uint64_t size, size_done, size_durable;
	const struct event *attribute, *attribute_durable;
};

struct cuts *cuts_new(const struct recording *recording)
{
	struct cuts *cuts = calloc(1, sizeof(*cuts));

	assert(cuts);
	cuts->recording = recording;
	cuts->base = mmap(NULL, FILE_MAX, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert(cuts->base != MAP_FAILED);
	return cuts;
}

/* ---- versions ---- */

static void push(struct cuts *cuts, uint64_t block_no, struct version version)
{
	struct block *block = &cuts->blocks[block_no];

	if (block->count == 0)
		cuts->pending[cuts->pending_count++] = (uint32_t)block_no;
	if (block->room < block->count + 2) {
		block->room = 2 * block->room + 4;
		block->versions = realloc(block->versions, block->room * sizeof(*block->versions));
		assert(block->versions);
	}
	if (block->count == 0)
		block->versions[block->count++] =
			(struct version){.bytes = cuts->base + block_no * BLOCK, .done = 1};
	block->versions[block->count++] = version;
}

static const char *last_bytes(const struct cuts *cuts, uint64_t block_no)
{
	const struct block *block = &cuts->blocks[block_no];

	return block->count > 0 ? block->versions[block->count - 1].bytes
				: cuts->base + block_no * BLOCK;
}

/* versions[n] is durable, so the versions before it are never found again. */
static void settle(struct cuts *cuts, uint64_t block_no, unsigned int n)
{
	struct block *block = &cuts->blocks[block_no];

	if (n == 0)
		return;
	memcpy(cuts->base + block_no * BLOCK, block->versions[n].bytes, BLOCK);
	for (unsigned int i = 0; i <= n; i++)
		free(block->versions[i].owned);
	block->versions[0] = (struct version){.bytes = cuts->base + block_no * BLOCK, .done = 1};
	memmove(&block->versions[1], &block->versions[n + 1],
		(block->count - n - 1) * sizeof(*block->versions));
	block->count -= n;
}

/* Drops the blocks that have only the durable version left. */
static void sweep(struct cuts *cuts)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < cuts->pending_count; i++) {
		uint32_t block_no = cuts->pending[i];

		if (cuts->blocks[block_no].count > 1)
			cuts->pending[kept++] = block_no;
		else
			cuts->blocks[block_no].count = 0;
	}
	cuts->pending_count = kept;
}

static void for_range(struct cuts *cuts, uint64_t offset, uint64_t len,
		      void (*fn)(struct cuts *cuts, uint64_t block_no, const void *arg),
		      const void *arg)
{
	assert(zf_is_aligned(offset, BLOCK) && zf_is_aligned(len, BLOCK) &&
	       offset + len <= FILE_MAX);
	for (uint64_t at = offset; at < offset + len; at += BLOCK)
		fn(cuts, at / BLOCK, arg);
}

/* ---- commands begin ---- */

static void change(struct cuts *cuts, uint64_t block_no, const void *arg)
{
	const struct event *event = arg;
	struct version version = {.bytes = zeroes, .id = event->id};

	if (event->type == EVENT_WRITE)
		version.bytes = event_bytes(event) + (block_no * BLOCK - event->offset);
	push(cuts, block_no, version);
}

static void command_begins(struct cuts *cuts, const struct event *event)
{
	struct command *command = malloc(sizeof(*command));

	assert(command);
	*command = (struct command){.event = event, .begun = cuts->at, .next = cuts->commands};
	cuts->commands = command;
	if (event->type == EVENT_WRITE || event->type == EVENT_HOLE)
		for_range(cuts, event->offset, event->len, change, event);
	if (event->type == EVENT_WRITE)
		cuts->size = zf_max_u64(cuts->size, event->offset + event->len);
	if (event->type == EVENT_SIZE)
		cuts->size = event->offset;
}

static void store(struct cuts *cuts, const struct event *event)
{
	uint64_t block_no = event->offset / BLOCK, done = 0;

	while (done < event->len) {
		uint64_t in_block = (event->offset + done) % BLOCK;
		uint64_t n = zf_min_u64(event->len - done, BLOCK - in_block);
		struct version version = {.owned = malloc(BLOCK), .done = cuts->at + 1};

		assert(version.owned);
		memcpy(version.owned, last_bytes(cuts, block_no), BLOCK);
		memcpy(version.owned + in_block, event_bytes(event) + done, n);
		version.bytes = version.owned;
		push(cuts, block_no++, version);
		done += n;
	}
}

/* ---- commands are done ---- */

struct completion {
	const struct command *command;
	uint64_t len; /* how many bytes are done */
	uint64_t now;
};

static void changed(struct cuts *cuts, uint64_t block_no, const void *arg)
{
	const struct completion *completion = arg;
	const struct event *event = completion->command->event;
	struct block *block = &cuts->blocks[block_no];

	for (unsigned int i = block->count - 1; i > 0; i--) {
		if (block->versions[i].id != event->id)
			continue;
		block->versions[i].done = completion->now;
		if (event->durable)
			settle(cuts, block_no, i);
		return;
	}
}

static void synced(struct cuts *cuts, uint64_t block_no, const void *arg)
{
	const struct completion *completion = arg;
	const struct block *block = &cuts->blocks[block_no];

	for (unsigned int i = block->count; i-- > 1;) {
		if (block->versions[i].done != 0 &&
		    block->versions[i].done <= completion->command->begun) {
			settle(cuts, block_no, i);
			return;
		}
	}
}

static void all_synced(struct cuts *cuts, const struct completion *completion)
{
	for (unsigned int i = 0; i < cuts->pending_count; i++)
		synced(cuts, cuts->pending[i], completion);
	cuts->size_durable = cuts->size_done;
	cuts->attribute_durable = cuts->attribute;
}

static void is_done(struct cuts *cuts, const struct completion *completion)
{
	const struct event *event = completion->command->event;

	switch (event->type) {
	case EVENT_WRITE:
	case EVENT_HOLE:
		for_range(cuts, event->offset, zf_align_down(completion->len, BLOCK), changed,
			  completion);
		break;
	case EVENT_SYNC:
		if (event->len == 0)
			all_synced(cuts, completion);
		else
			for_range(cuts, zf_align_down(event->offset, BLOCK),
				  zf_align_up(event->len, BLOCK), synced, completion);
		break;
	default:
		break;
	}
	if (event->type == EVENT_WRITE)
		cuts->size_done = zf_max_u64(cuts->size_done, event->offset + completion->len);
	if (event->type == EVENT_WRITE && event->durable)
		cuts->size_durable =
			zf_max_u64(cuts->size_durable, event->offset + completion->len);
	if (event->type == EVENT_SIZE)
		cuts->size_done = event->offset;
	sweep(cuts);
}

static void command_ends(struct cuts *cuts, const struct event *event)
{
	struct command **p = &cuts->commands, *command;

	while ((*p)->event->id != event->id)
		p = &(*p)->next;
	command = *p;
	*p = command->next;
	if (event->result >= 0) {
		struct completion completion = {
			.command = command, .len = command->event->len, .now = cuts->at + 1};

		if (command->event->type == EVENT_WRITE)
			completion.len = (uint64_t)event->result;
		is_done(cuts, &completion);
	}
	free(command);
}

/* ---- the state ---- */

static void apply(struct cuts *cuts, const struct event *event)
{
	switch (event->type) {
	case EVENT_WRITE:
	case EVENT_HOLE:
	case EVENT_SYNC:
	case EVENT_SIZE:
		command_begins(cuts, event);
		break;
	case EVENT_DONE:
		command_ends(cuts, event);
		break;
	case EVENT_STORE:
		store(cuts, event);
		break;
	case EVENT_ATTRIBUTE:
		cuts->attribute = event;
		break;
	default:
		break;
	}
}

void cuts_advance(struct cuts *cuts, uint64_t at)
{
	assert(at >= cuts->at && at <= cuts->recording->count);
	for (; cuts->at < at; cuts->at++)
		apply(cuts, recording_event(cuts->recording, cuts->at));
}

void cuts_free(struct cuts *cuts)
{
	while (cuts->commands) {
		struct command *next = cuts->commands->next;

		free(cuts->commands);
		cuts->commands = next;
	}
	for (uint64_t b = 0; b < BLOCKS; b++) {
		for (unsigned int i = 0; i < cuts->blocks[b].count; i++)
			free(cuts->blocks[b].versions[i].owned);
		free(cuts->blocks[b].versions);
	}
	munmap(cuts->base, FILE_MAX);
	free(cuts);
}

/* ---- a file ---- */

static unsigned int last_done(const struct block *block)
{
	unsigned int i = block->count - 1;

	while (block->versions[i].done == 0)
		i--;
	return i;
}

static void draw_block(const struct block *block, enum cut_kind kind, unsigned int newest_percent,
		       struct zf_rng *rng, char *ret_bytes)
{
	unsigned int first = kind == CUT_KILL ? last_done(block) : 0, n = block->count - 1, m;

	if (!zf_rng_chance(rng, newest_percent))
		n = first + (unsigned int)zf_rng_below(rng, block->count - first);
	memcpy(ret_bytes, block->versions[n].bytes, BLOCK);
	if (kind == CUT_KILL || n == 0 || !zf_rng_chance(rng, 10))
		return;
	m = (unsigned int)zf_rng_below(rng, n);
	for (uint64_t at = 0; at < BLOCK; at += SECTOR) {
		if (zf_rng_chance(rng, 50))
			memcpy(ret_bytes + at, block->versions[m].bytes + at, SECTOR);
	}
}

static void put(int fd, const char *bytes, uint64_t offset, uint64_t len)
{
	if (pwrite(fd, bytes, len, (off_t)offset) != (ssize_t)len)
		abort();
}

void cuts_make(const struct cuts *cuts, enum cut_kind kind, struct zf_rng *rng, const char *path,
	       char ret_attribute[32])
{
	static const unsigned int percents[] = {0, 10, 50, 90, 100};
	unsigned int newest = percents[zf_rng_below(rng, ZF_ARRAY_SIZE(percents))];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	uint64_t size = kind == CUT_KILL ? cuts->size_done : cuts->size_durable;
	const struct event *attribute =
		kind == CUT_KILL ? cuts->attribute : cuts->attribute_durable;

	assert(fd >= 0);
	put(fd, cuts->base, 0, cuts->size);
	for (unsigned int i = 0; i < cuts->pending_count; i++) {
		const struct block *block = &cuts->blocks[cuts->pending[i]];
		char bytes[ZF_BLOCK_SIZE];

		draw_block(block, kind, newest, rng, bytes);
		put(fd, bytes, cuts->pending[i] * BLOCK, BLOCK);
	}
	if (zf_rng_chance(rng, 50))
		size = cuts->size;
	if (zf_rng_chance(rng, 50))
		attribute = cuts->attribute;
	if (ftruncate(fd, (off_t)size) < 0)
		abort();
	close(fd);
	memset(ret_attribute, 0, 32);
	if (attribute)
		memcpy(ret_attribute, event_bytes(attribute), attribute->len);
}
