/* SPDX-License-Identifier: MIT */
/* Writes the summary and share trees, which describe the device's bytes that extents name. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "log/carry.h"
#include "repair/pieces.h"
#include "repair/state.h"

/* ---- the summary tree ---- */

struct summary {
	struct zf_disk_summary head;
	struct zf_le64 csums[ZF_NODE_SIZE_MAX / 4 / sizeof(struct zf_le64)];
};

/* Makes a lost checksum from the block as it is now. False: the block cannot be read. */
static bool make_csum(struct zf_repair *repair, uint64_t address, struct zf_le64 *ret_csum)
{
	_zf_free_ uint8_t *block = aligned_alloc(ZF_BLOCK_SIZE, ZF_BLOCK_SIZE);
	uint8_t carried[ZF_BLOCK_SIZE];
	bool read = block && zf_dev_read_buf(repair->dev, address, block, ZF_BLOCK_SIZE) == 0;
	uint64_t csum = read ? zf_hash64(block, ZF_BLOCK_SIZE) : 0;

	if (read && zf_log_carry_unpack(block, carried))
		csum = zf_hash64(carried, ZF_BLOCK_SIZE);
	*ret_csum = zf_le64_from(csum);
	return read;
}

/* Fills in the checksums of the blocks in [address, end). Returns how many it made anew. */
static uint32_t fill_csums(struct zf_repair *repair, const struct zf_repair_claim *claim,
			   uint64_t address, uint64_t end, struct zf_le64 *ret_csums)
{
	uint32_t made = 0;

	for (uint64_t at = address; at < end;) {
		struct zf_salvage_promise promise;

		zf_salvage_look_up(repair->salvage, at, end, &promise);
		for (size_t i = 0; at < promise.end; at += ZF_BLOCK_SIZE, i++, ret_csums++) {
			if (promise.known && promise.csums) {
				*ret_csums = promise.csums[i];
				continue;
			}
			made++;
			if (!make_csum(repair, at, ret_csums))
				zf_repair_tell_of(
					repair, claim->ino,
					"the block at offset %" PRIu64 ", address %" PRIu64
					", cannot be read: reading the file there gives an error",
					claim->offset + (at - claim->address), at);
		}
	}
	return made;
}

static int put_summary(struct zf_repair *repair, uint64_t address, struct summary *summary,
		       uint32_t blocks)
{
	const struct zf_key key = ZF_KEY(address, ZF_KEY_SUMMARY, 0);
	bool in_place = zf_le16_get(summary->head.flags) & ZF_SUMMARY_OVERWRITE;

	summary->head.tree = zf_le32_from(ZF_TREE_FS);
	summary->head.count = zf_le16_from((uint16_t)blocks);
	return zf_repair_put(repair, ZF_TREE_SUMMARY, &key, summary,
			     sizeof(summary->head) +
				     (in_place ? 0 : blocks * sizeof(summary->csums[0])));
}

/* Shared bytes keep the owner in the old entry, even if that is not an owner any more. */
static void set_owner(struct zf_repair *repair, const struct zf_repair_claim *claim,
		      uint64_t address, uint64_t end, struct summary *summary)
{
	uint64_t ino = claim->ino, offset = claim->offset + (address - claim->address);
	struct zf_salvage_promise promise;

	zf_salvage_look_up(repair->salvage, address, end, &promise);
	if ((claim->flags & ZF_EXTENT_SHARED) && promise.known &&
	    promise.ino < repair->super.next_ino) {
		ino = promise.ino;
		offset = promise.offset;
	}
	summary->head.ino = zf_le64_from(ino);
	summary->head.offset = zf_le64_from(offset);
}

static int write_summary_of(struct zf_repair *repair, const struct zf_repair_claim *claim,
			    uint64_t from, uint32_t *ret_made)
{
	const uint64_t blocks_max =
		(zf_node_value_max(repair->super.node_size) - sizeof(struct zf_disk_summary)) /
		sizeof(struct zf_le64);
	uint64_t end = claim->address + zf_repair_claim_len(claim), next;
	struct summary summary;
	uint32_t made = 0;
	int r = 0;

	if (claim->flags & ZF_EXTENT_OVERWRITE) {
		summary.head = (struct zf_disk_summary){
			.ino = zf_le64_from(claim->ino),
			.offset = zf_le64_from(claim->offset),
			.flags = zf_le16_from(ZF_SUMMARY_OVERWRITE),
		};
		return put_summary(repair, claim->address, &summary, claim->blocks);
	}
	for (uint64_t at = from; at < end && r == 0; at = next) {
		next = zf_min_u64(end, at + (blocks_max << ZF_BLOCK_SHIFT));
		summary.head = (struct zf_disk_summary){0};
		set_owner(repair, claim, at, next, &summary);
		made += fill_csums(repair, claim, at, next, summary.csums);
		r = put_summary(repair, at, &summary, (uint32_t)((next - at) >> ZF_BLOCK_SHIFT));
	}
	repair->counts.unverified_blocks += made;
	if (made)
		zf_repair_tell_of(
			repair, claim->ino,
			"%u blocks from offset %" PRIu64
			" on are unverified: their checksums were lost, and are made anew",
			made, claim->offset);
	*ret_made = made;
	return r;
}

/*
 * Reports the claim as unverified, too, if it shares bytes with `made`, a claim with new checksums.
 */
static void tell_shared(struct zf_repair *repair, const struct zf_repair_claim *claim,
			const struct zf_repair_claim *made)
{
	if (made && claim->address < made->address + zf_repair_claim_len(made))
		zf_repair_tell_of(repair, claim->ino,
				  "blocks from offset %" PRIu64
				  " on are unverified: it shares them with inode %" PRIu64,
				  claim->offset, made->ino);
}

static int write_summary(struct zf_repair *repair)
{
	const struct zf_repair_claim *last_made = NULL;
	uint64_t done = 0, count = 0;
	int r = 0;

	zf_repair_meter_enter(repair->meter, ZF_REPAIR_SPACE);
	ZF_VECTOR_FOREACH (&repair->by_address, struct zf_repair_claim *, place) {
		const struct zf_repair_claim *claim = *place;
		uint64_t end = claim->address + zf_repair_claim_len(claim);
		uint32_t made = 0;

		tell_shared(repair, claim, last_made);
		if (r == 0 && end > done)
			r = write_summary_of(repair, claim, zf_max_u64(claim->address, done),
					     &made);
		done = zf_max_u64(done, end);
		last_made = made ? claim : last_made;
		zf_progress(&repair->meter->current.progress, ++count, repair->by_address.count);
	}
	zf_repair_meter_enter(repair->meter, ZF_REPAIR_NO_STAGE);
	return r;
}

/* ---- the share tree ---- */

static int put_share(void *arg, const struct zf_repair_claim *piece)
{
	struct zf_repair *repair = arg;
	const struct zf_disk_share disk = {
		.tree = zf_le64_from(ZF_TREE_FS),
		.ino = zf_le64_from(piece->ino),
		.offset = zf_le64_from(piece->offset),
		.len = zf_le64_from(zf_repair_claim_len(piece)),
	};
	const struct zf_key key =
		ZF_KEY(piece->address, ZF_KEY_SHARE,
		       zf_item_hash_share(repair->super.dir_hash_seed, piece->ino, piece->offset));

	return zf_repair_put_entry(repair, ZF_TREE_SHARE, &key, &disk, sizeof(disk));
}

static int write_shares(struct zf_repair *repair)
{
	int r = 0;

	ZF_VECTOR_FOREACH (&repair->by_address, struct zf_repair_claim *, claim)
		if (r == 0 && ((*claim)->flags & ZF_EXTENT_SHARED))
			r = zf_repair_pieces(*claim, put_share, repair);
	return r;
}

int zf_repair_write_space(struct zf_repair *repair)
{
	int r = write_summary(repair);

	return r < 0 ? r : write_shares(repair);
}
