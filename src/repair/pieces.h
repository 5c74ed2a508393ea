/* SPDX-License-Identifier: MIT */
/*
 * Lengths of extents. An extent that the repair marks as shared may be longer than a shared extent
 * may be (ZF_SHARE_MAX): it is written as several pieces.
 */
#ifndef ZF_REPAIR_PIECES_H
#define ZF_REPAIR_PIECES_H

#include "repair/state.h"

/* In bytes. */
static inline uint64_t zf_repair_claim_len(const struct zf_repair_claim *claim)
{
	return (uint64_t)claim->blocks << ZF_BLOCK_SHIFT;
}

typedef int zf_repair_piece_fn(void *arg, const struct zf_repair_claim *piece);

/* Calls fn() for each piece. If fn() returns another value than 0, ends and returns that value. */
static inline int zf_repair_pieces(const struct zf_repair_claim *claim, zf_repair_piece_fn *fn,
				   void *arg)
{
	const uint32_t max =
		claim->flags & ZF_EXTENT_SHARED ? ZF_SHARE_MAX >> ZF_BLOCK_SHIFT : UINT32_MAX;
	int r = 0;

	for (uint32_t at = 0; at < claim->blocks && r == 0;) {
		struct zf_repair_claim piece = *claim;

		piece.address += (uint64_t)at << ZF_BLOCK_SHIFT;
		piece.offset += (uint64_t)at << ZF_BLOCK_SHIFT;
		piece.blocks = (uint32_t)zf_min_u64(max, claim->blocks - at);
		at += piece.blocks;
		r = fn(arg, &piece);
	}
	return r;
}

#endif
