/* SPDX-License-Identifier: MIT */
/*
 * What the device sees of a filesystem during some hundred commits: the test checks the device's
 * own record of its commands, which complete out of order.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/bits.h"
#include "base/hash.h"
#include "btree/node_format.h"
#include "fs/mount/format.h"
#include "fs/core/fs.h"
#include "io/memory.h"
#include "superblock/ring.h"
#include "sim/rng.h"
#include "txn/txn.h"

#define ZONE_SIZE  (UINT64_C(64) << 10)
#define ZONE_COUNT 1024u
#define BLOCKS	   (ZONE_COUNT * (ZONE_SIZE / ZF_BLOCK_SIZE))
#define NODE_SIZE  ZF_BLOCK_SIZE
#define FILES	   6u
#define COMMITS	   220u
#define RUNS_MAX   64u
#define FILE_MAX   (UINT64_C(192) << 10)

/* What the device was told, checked as it completes. */
struct record {
	uint64_t pointer[ZONE_COUNT]; /* bytes from the zone's start */
	uint64_t data_hash[BLOCKS];   /* of what an append put there; 0: none */

	/*
	 * The metadata stream of the transaction that is being written: one run for each zone,
	 * because writes to several zones complete in any order.
	 */
	struct {
		uint64_t from, to; /* addresses */
	} runs[RUNS_MAX];
	unsigned int run_count;
	uint64_t generation; /* of its nodes; 0: none yet */

	unsigned int super_writes, super_resets, nodes, zeroed, streams, zones_crossed;
};

static void take_pointer(struct record *record, const struct zf_io *io)
{
	uint64_t zone_no = io->addr / ZONE_SIZE, at = io->addr % ZONE_SIZE;

	assert_int_equal(at, record->pointer[zone_no]);
	record->pointer[zone_no] = at + io->len;
	assert_in_range(record->pointer[zone_no], 0, ZONE_SIZE);
}

/* A slot has zeroes, or a node whose header has this address and the generation of its
 * neighbours. */
static void take_slot(struct record *record, uint64_t address, const uint8_t *bytes)
{
	static const uint8_t zeroes[NODE_SIZE];
	struct zf_disk_node_header header;
	uint64_t generation;

	if (memcmp(bytes, zeroes, NODE_SIZE) == 0) {
		record->zeroed++;
		return;
	}
	memcpy(&header, bytes, sizeof(header));
	assert_memory_equal(header.magic, ZF_NODE_MAGIC, sizeof(header.magic));
	assert_int_equal(zf_le64_get(header.address[0]), address);
	generation = zf_le64_get(header.generation);
	if (record->generation == 0)
		record->generation = generation;
	assert_int_equal(generation, record->generation);
	record->nodes++;
}

static void take_metadata(struct record *record, const struct zf_io *io)
{
	uint64_t address = io->addr;
	unsigned int run = 0;

	while (run < record->run_count && record->runs[run].to != address)
		run++;
	assert_in_range(run, 0, RUNS_MAX - 1);
	if (run == record->run_count) {
		record->runs[run].from = address;
		record->run_count++;
	}
	for (unsigned int i = 0; i < io->iovcnt; i++) {
		const uint8_t *bytes = io->iov[i].iov_base;

		for (size_t at = 0; at < io->iov[i].iov_len; at += NODE_SIZE)
			take_slot(record, address + at, bytes + at);
		address += io->iov[i].iov_len;
	}
	record->runs[run].to = address;
}

/*
 * The superblock ends a transaction. The stream is one ascending run without gaps. It may go from
 * one zone to another only if the first is full and the other was empty.
 */
static void end_stream(struct record *record)
{
	unsigned int begin_inside = 0, end_inside = 0;

	for (unsigned int i = 0; i < record->run_count; i++) {
		begin_inside += record->runs[i].from % ZONE_SIZE != 0;
		end_inside += record->runs[i].to % ZONE_SIZE != 0;
	}
	assert_in_range(begin_inside, 0, 1);
	assert_in_range(end_inside, 0, 1);
	record->streams += record->run_count > 0;
	record->zones_crossed += record->run_count > 1;
	record->run_count = 0;
	record->generation = 0;
}

static void take_data(struct record *record, const struct zf_io *io)
{
	uint64_t block = io->addr / ZF_BLOCK_SIZE;

	for (unsigned int i = 0; i < io->iovcnt; i++) {
		const uint8_t *bytes = io->iov[i].iov_base;

		for (size_t at = 0; at < io->iov[i].iov_len; at += ZF_BLOCK_SIZE)
			record->data_hash[block++] = zf_hash64(bytes + at, ZF_BLOCK_SIZE);
	}
}

static void take_reset(struct record *record, uint32_t zone_no)
{
	uint64_t per_zone = ZONE_SIZE / ZF_BLOCK_SIZE;

	record->pointer[zone_no] = 0;
	memset(&record->data_hash[zone_no * per_zone], 0, per_zone * sizeof(uint64_t));
	record->super_resets += zone_no < 2;
}

static void take(void *arg, const struct zf_io *io)
{
	struct record *record = arg;

	assert_int_equal(io->result, 0);
	switch (io->op) {
	case ZF_IO_RESET:
		take_reset(record, (uint32_t)(io->addr / ZONE_SIZE));
		return;
	case ZF_IO_APPEND:
		take_pointer(record, io);
		take_data(record, io);
		return;
	case ZF_IO_WRITE:
		take_pointer(record, io);
		if (io->addr >= 2 * ZONE_SIZE) {
			take_metadata(record, io);
			return;
		}
		assert_true(io->fua);
		record->super_writes++;
		end_stream(record);
		return;
	default:
		assert_true(io->op == ZF_IO_READ || io->op == ZF_IO_FLUSH);
	}
}

/* ---- the life ---- */

struct life {
	struct zf_memory *memory;
	struct zf_dev *dev;
	struct zf_fs *fs;
	struct record *record;
	struct zf_rng rng;
	uint64_t ino[FILES];
	uint8_t *content[FILES];
	uint64_t size[FILES];
	unsigned int
		descending; /* neighbours in a file that lie on the device the other way round */
};

static const struct zf_ctx ctx = {.may_wait = true};

static void begin(struct life *life)
{
	const struct zf_geometry geometry = {
		.zone_size = ZONE_SIZE,
		.zone_capacity = ZONE_SIZE,
		.zone_count = ZONE_COUNT,
		.append_limit = 8192,
		.volatile_cache = true,
	};
	const struct zf_memory_options options = {.seed = 42};
	const struct zf_format_options format = {
		.fsid = {1}, .node_size = NODE_SIZE, .metadata_copies = 1};
	const struct zf_mount_options mount = {.cache_bytes = 64 << 10};

	life->record = calloc(1, sizeof(*life->record));
	zf_rng_seed(&life->rng, 1);
	assert_int_equal(zf_memory_new(&geometry, &life->memory), 0);
	assert_int_equal(zf_memory_open(life->memory, &options, NULL, &life->dev), 0);
	zf_dev_set_recorder(life->dev, take, life->record);
	assert_int_equal(zf_fs_format(life->dev, &format, NULL), 0);
	assert_int_equal(zf_fs_mount(life->dev, &mount, NULL, &life->fs), 0);
	for (unsigned int i = 0; i < FILES; i++) {
		char name[2] = {(char)('a' + i), 0};
		struct zf_attr attr;

		assert_int_equal(zf_fs_make(life->fs, &ctx, ZF_INO_ROOT, name, S_IFREG | 0600, 0,
					    NULL, &attr),
				 0);
		life->ino[i] = attr.ino;
		life->content[i] = calloc(1, FILE_MAX);
	}
}

static void end(struct life *life)
{
	assert_int_equal(zf_fs_unmount(life->fs), 0);
	zf_dev_close(life->dev);
	zf_memory_free(life->memory);
	for (unsigned int i = 0; i < FILES; i++)
		free(life->content[i]);
	free(life->record);
}

static void change_a_file(struct life *life)
{
	unsigned int i = (unsigned int)zf_rng_below(&life->rng, FILES);
	uint64_t offset = zf_rng_below(&life->rng, FILE_MAX - 65536);
	uint64_t len = 1 + zf_rng_below(&life->rng, 65536);

	zf_rng_fill(&life->rng, life->content[i] + offset, len);
	assert_int_equal(zf_fs_write(life->fs, &ctx, life->ino[i], offset,
				     life->content[i] + offset, len, 0),
			 len);
	life->size[i] = zf_max_u64(life->size[i], offset + len);
}

/* Nodes that are born and die in one transaction: they are the holes of its stream. */
static void fill_and_empty_a_directory(struct life *life)
{
	char name[32];
	struct zf_attr attr;

	for (unsigned int pass = 0; pass < 2; pass++) {
		for (unsigned int i = 0; i < 60; i++) {
			snprintf(name, sizeof(name), "short-lived-%u", i);
			if (pass == 0)
				assert_int_equal(zf_fs_make(life->fs, &ctx, ZF_INO_ROOT, name,
							    S_IFREG | 0600, 0, NULL, &attr),
						 0);
			else
				assert_int_equal(zf_fs_unlink(life->fs, &ctx, ZF_INO_ROOT, name),
						 0);
			if (pass == 0)
				zf_fs_forget(life->fs, attr.ino, 1);
		}
	}
}

/* Compares an extent's address of a block with the one in the completion of its append. */
static void check_block(struct life *life, unsigned int i, uint64_t offset, uint64_t address)
{
	uint8_t block[ZF_BLOCK_SIZE] = {0};
	uint64_t len = zf_min_u64(ZF_BLOCK_SIZE, life->size[i] - offset);

	memcpy(block, life->content[i] + offset, len);
	assert_int_equal(life->record->data_hash[address / ZF_BLOCK_SIZE],
			 zf_hash64(block, sizeof(block)));
}

static void check_file(struct life *life, unsigned int i)
{
	struct zf_extent_info extents[64];
	uint64_t offset = 0, before = 0;
	int count;

	while ((count = zf_fs_extents(life->fs, &ctx, life->ino[i], offset, extents, 64)) > 0) {
		for (int e = 0; e < count; e++) {
			offset = extents[e].offset + extents[e].len;
			if (extents[e].type != ZF_EXTENT_DATA)
				continue;
			for (uint64_t at = 0; at < extents[e].len; at += ZF_BLOCK_SIZE)
				check_block(life, i, extents[e].offset + at,
					    extents[e].address + at);
			life->descending += extents[e].address < before;
			before = extents[e].address;
		}
	}
	assert_int_equal(count, 0);
}

/* A ring that is opened now finds the record that was just written. */
static void check_ring(struct life *life)
{
	const struct zf_super *super;
	unsigned int stepped_over;
	struct zf_ring *ring;

	assert_int_equal(zf_ring_open(life->dev, NULL, &ring), 0);
	assert_int_equal(zf_ring_newest(ring, &super, &stepped_over), 0);
	assert_int_equal(stepped_over, 0);
	assert_int_equal(super->generation, zf_txn_durable(zf_fs_txn(life->fs)));
	zf_ring_close(ring);
}

static void the_device_sees_what_was_promised(void **state)
{
	struct life life = {0};

	begin(&life);
	for (unsigned int i = 0; i < COMMITS; i++) {
		for (unsigned int n = 0; n < 3; n++)
			change_a_file(&life);
		if (i % 10 == 0)
			fill_and_empty_a_directory(&life);
		assert_int_equal(zf_fs_syncfs(life.fs, &ctx), 0);
		check_ring(&life);
		check_file(&life, i % FILES);
		assert_int_equal(zf_fs_step(life.fs), 0);
	}
	for (unsigned int i = 0; i < FILES; i++)
		check_file(&life, i);

	/* Asserts that all these cases occurred. */
	assert_true(life.record->super_writes > COMMITS);
	assert_true(life.record->super_resets >= 6); /* of two zones: three times around */
	assert_true(life.record->streams > COMMITS);
	assert_true(life.record->zones_crossed > 10);
	assert_true(life.record->nodes > 1000);
	assert_true(life.record->zeroed > 10);
	assert_true(life.descending > 10);
	end(&life);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_device_sees_what_was_promised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
