/* SPDX-License-Identifier: MIT */
/* A superblock with a value of its own in every field, and small devices to keep it on. */
#ifndef ZF_TESTS_SUPERBLOCK_SAMPLE_H
#define ZF_TESTS_SUPERBLOCK_SAMPLE_H

#include "io/memory.h"
#include "superblock/ring.h"

#define SAMPLE_SLOTS 4u /* records in a zone of the small device */

/* 16 zones of 32 KiB, of which 16 KiB can be written. */
struct zf_geometry sample_geometry(uint32_t conventional);

/* Valid on that device with no conventional zone; the same bytes everywhere and always. */
struct zf_super sample_super(uint64_t generation);

/* A device, and the ring that was opened on it, if any. */
struct sample_disk {
	struct zf_memory *memory;
	struct zf_dev *dev;
	struct zf_ring *ring;
};

void sample_disk_new(struct sample_disk *disk, const struct zf_geometry *geometry);
void sample_disk_free(struct sample_disk *disk);

/* Writes a record, or a block of garbage, where the test wants it. */
void sample_put(struct sample_disk *disk, unsigned int zone_no, uint32_t slot, uint64_t generation);
void sample_put_super(struct sample_disk *disk, unsigned int zone_no, uint32_t slot,
		      const struct zf_super *super);
void sample_put_garbage(struct sample_disk *disk, unsigned int zone_no, uint32_t slot);

/* The stored bytes of a slot, to be damaged. */
uint8_t *sample_slot(struct sample_disk *disk, unsigned int zone_no, uint32_t slot);
uint64_t sample_address(const struct sample_disk *disk, unsigned int zone_no, uint32_t slot);

/* Closes and opens the ring, which forgets what it knew. Returns zf_ring_open()'s result. */
int sample_reopen(struct sample_disk *disk);

/* Asserts that the ring opens and what it finds. */
void sample_expect(struct sample_disk *disk, uint64_t generation, unsigned int stepped_over);

/* Writes the record of a generation through the ring. */
int sample_commit(struct sample_disk *disk, uint64_t generation, uint64_t *ret_address);

#endif
