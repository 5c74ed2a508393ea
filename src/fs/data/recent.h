/* SPDX-License-Identifier: MIT */
/*
 * Copies of blocks of file data that were written in part and have landed since.
 *
 * The rest of such a block is often written soon: a program appends records to a file and syncs
 * each of them, as the log of a database. That write needs the block's old bytes. And a program
 * that reads a file just after it was written needs the file's last block, because the kernel does
 * not keep a page that was written in part. Both would read the device.
 *
 * A copy is found by the block's address. Bytes at an address do not change until the zone is
 * reset. After a reset the address may get other data; so a copy is used only if it has the
 * checksum that the trees have for the address now, and no copy has to be dropped. Blocks that are
 * written in place have no checksum and no copy here.
 *
 * All functions take the lock of the struct (ZF_RANK_CACHE), and need no other.
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

/* Copies the block (ZF_BLOCK_SIZE bytes) that has landed at `address`; an older copy makes room. */
void zf_recent_keep(struct zf_recent *recent, uint64_t address, const void *block);

/*
 * Copies [from, from + len) of the block at `address` to `ret_bytes`. False: there is no copy with
 * the checksum `csum`, and nothing was copied.
 */
bool zf_recent_get(struct zf_recent *recent, uint64_t address, uint64_t csum, uint32_t from,
		   uint32_t len, void *ret_bytes);

#endif
