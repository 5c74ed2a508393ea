/* SPDX-License-Identifier: MIT */
/*
 * Copies of blocks of file data that were written in part and have landed since.
 *
 * The rest of such a block is often written soon: a program appends records to a file and syncs
 * each of them, as the log of a database. That write needs the block's old bytes. And a program
 * that reads a file just after it was written needs the file's last block, because the kernel,
 * without writeback=on, does not keep a page that was written in part. Both would read the device.
 *
 * A copy is found by the block's address and by the number of resets of its zone. Bytes at an
 * address do not change until the zone is reset, so no copy has to be dropped. A copy is verified
 * like bytes from the device. Blocks that are written in place may change, and have no copy here.
 *
 * All functions but the first two may be called by any thread. They take a lock of ZF_RANK_CACHE,
 * and need none.
 */
#ifndef ZF_FS_RECENT_H
#define ZF_FS_RECENT_H

#include <stdbool.h>
#include <stdint.h>

struct zf_recent;

/*
 * `bytes`: how much memory the copies may take. It is rounded down to a power of two, and up to
 * the smallest useful size, 32 KiB. The memory is used bit by bit as copies come. -ENOMEM.
 */
int zf_recent_new(uint64_t bytes, struct zf_recent **ret_recent);
void zf_recent_free(struct zf_recent *recent); /* takes NULL */

/* Gives all copies and their memory back. */
void zf_recent_trim(struct zf_recent *recent);

/* Where data lies, for as long as it lies there. */
struct zf_recent_place {
	uint64_t address;
	uint64_t resets; /* zf_alloc_resets(); the zone must be held against a reset */
};

/* Copies the block (ZF_BLOCK_SIZE bytes) that has landed at `place`; an older copy makes room. */
void zf_recent_keep(struct zf_recent *recent, const struct zf_recent_place *place,
		    const void *block);

/*
 * Copies [from, from + len) of the block at `place` to `ret_bytes`. False: there is no copy with
 * the checksum `csum`, and nothing was copied.
 */
bool zf_recent_get(struct zf_recent *recent, const struct zf_recent_place *place, uint64_t csum,
		   uint32_t from, uint32_t len, void *ret_bytes);

#endif
