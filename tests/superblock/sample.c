/* SPDX-License-Identifier: MIT */
#include "sample.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"

#define ZONE_SIZE 32768u

struct zf_geometry sample_geometry(uint32_t conventional)
{
	return (struct zf_geometry){
		.zone_size = ZONE_SIZE,
		.zone_capacity = SAMPLE_SLOTS * ZF_SUPER_SIZE,
		.zone_count = 16,
		.conventional = conventional,
		.append_limit = ZF_BLOCK_SIZE,
	};
}

struct zf_super sample_super(uint64_t generation)
{
	struct zf_super super = {
		.generation = generation,
		.compat = 0x5a,
		.zone_size = ZONE_SIZE,
		.zone_capacity = SAMPLE_SLOTS * ZF_SUPER_SIZE,
		.zone_count = 16,
		.node_size = 4096,
		.metadata_copies = 2,
		.dir_hash_seed = 0x0123456789abcdef,
		.mkfs_time = 1767225600,
		.label = "sample",
		.root = {.address = {2 * ZONE_SIZE + 4096, 3 * ZONE_SIZE + 8192},
			 .generation = 1,
			 .csum = 0xfedcba9876543210},
		.root_level = 1,
		.clean = true,
		.next_ino = 1000,
		.inode_count = 900,
		.next_intent = 7,
		.op_number = 12345,
		.log_sequence = 678,
		.log_epoch = 9,
		.log_zone = {4, 5},
		.log_zone_resets = {11, 12},
		.meta_zone = {2, 3},
		.meta_pointer = {8192, 12288},
		.incompat = ZF_INCOMPAT_GUARANTEE,
		.kept_bytes = 40960,
		.log_pointer = {4096, 16384},
		.guaranteed_bytes = 8192,
		.kept_guaranteed_bytes = 4096,
	};

	for (uint8_t i = 0; i < 16; i++)
		super.fsid[i] = (uint8_t)(0x10 + i);
	for (uint8_t i = 0; i < 32; i++)
		super.log_secret[i] = (uint8_t)(0x80 + i);
	return super;
}

void sample_disk_new(struct sample_disk *disk, const struct zf_geometry *geometry)
{
	*disk = (struct sample_disk){0};
	assert_int_equal(zf_memory_new(geometry, &disk->memory), 0);
	assert_int_equal(zf_memory_open(disk->memory, NULL, NULL, &disk->dev), 0);
}

void sample_disk_free(struct sample_disk *disk)
{
	zf_ring_close(disk->ring);
	zf_dev_close(disk->dev);
	zf_memory_free(disk->memory);
}

uint64_t sample_address(const struct sample_disk *disk, unsigned int zone_no, uint32_t slot)
{
	return zone_no * zf_dev_geometry(disk->dev)->zone_size + (uint64_t)slot * ZF_SUPER_SIZE;
}

static void put_block(struct sample_disk *disk, unsigned int zone_no, uint32_t slot,
		      const void *block)
{
	_zf_free_ void *buf = aligned_alloc(ZF_BLOCK_SIZE, ZF_SUPER_SIZE);

	assert_non_null(buf);
	memcpy(buf, block, ZF_SUPER_SIZE);
	assert_int_equal(zf_dev_write_sync(disk->dev, sample_address(disk, zone_no, slot), buf,
					   ZF_SUPER_SIZE, true),
			 0);
}

void sample_put_super(struct sample_disk *disk, unsigned int zone_no, uint32_t slot,
		      const struct zf_super *super)
{
	struct zf_super placed = *super;
	struct zf_disk_super block;

	placed.address = sample_address(disk, zone_no, slot);
	zf_super_encode(&placed, &block);
	put_block(disk, zone_no, slot, &block);
}

void sample_put(struct sample_disk *disk, unsigned int zone_no, uint32_t slot, uint64_t generation)
{
	struct zf_super super = sample_super(generation);

	sample_put_super(disk, zone_no, slot, &super);
}

void sample_put_garbage(struct sample_disk *disk, unsigned int zone_no, uint32_t slot)
{
	uint8_t block[ZF_SUPER_SIZE];

	memset(block, 0xa5, sizeof(block));
	put_block(disk, zone_no, slot, block);
}

uint8_t *sample_slot(struct sample_disk *disk, unsigned int zone_no, uint32_t slot)
{
	return (uint8_t *)zf_memory_zone(disk->memory, zone_no) + (size_t)slot * ZF_SUPER_SIZE;
}

int sample_reopen(struct sample_disk *disk)
{
	zf_ring_close(disk->ring);
	disk->ring = NULL;
	return zf_ring_open(disk->dev, NULL, &disk->ring);
}

void sample_expect(struct sample_disk *disk, uint64_t generation, unsigned int stepped_over)
{
	const struct zf_super *super;
	unsigned int found;

	assert_int_equal(sample_reopen(disk), 0);
	assert_int_equal(zf_ring_newest(disk->ring, &super, &found), 0);
	assert_int_equal(super->generation, generation);
	assert_int_equal(found, stepped_over);
}

int sample_commit(struct sample_disk *disk, uint64_t generation, uint64_t *ret_address)
{
	struct zf_super super = sample_super(generation);
	int r = zf_ring_write(disk->ring, &super);

	if (r == 0)
		*ret_address = super.address;
	return r;
}
