/* SPDX-License-Identifier: MIT */
/*
 * Checks which extents name which bytes of the device, and whether the summary covers these bytes.
 *
 * One pass merges the claims of all extents, sorted by address, with the summary tree, whose key is
 * the address. Only claims of shared extents may overlap, and each needs an item in the share tree.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "check/state.h"

struct share {
	uint64_t address, ino, offset, len;
};

struct merge {
	struct zf_item_check item_check;
	size_t first;		 /* index of the first claim neither covered nor reported */
	uint64_t summary_end;	 /* behind the last summary entry */
	uint64_t verified_end;	 /* data below this address was verified */
	bool has_extent;	 /* the current entry of data written in place has its extent */
	struct zf_vector shares; /* struct share */
};

static uint64_t claim_len(const struct zf_check_claim *claim)
{
	return (uint64_t)claim->blocks << ZF_BLOCK_SHIFT;
}

static int cmp_claim(const void *a, const void *b)
{
	const struct zf_check_claim *x = a, *y = b;

	return zf_cmp_u64s((uint64_t[]){x->address, x->ino, x->offset},
			   (uint64_t[]){y->address, y->ino, y->offset}, 3);
}

/* ---- claims against each other ---- */

static void count_live(struct zf_check *check, uint64_t from, uint64_t to)
{
	struct zf_check_zone *zone = &check->zones[from / check->geometry->zone_size];

	if (from >= to)
		return;
	zone->data_bytes += to - from;
	zone->data_end = (to - 1) % check->geometry->zone_size + 1;
	check->counts.data_bytes += to - from;
}

static void check_zone_role(struct zf_check *check, const struct zf_check_claim *claim)
{
	uint64_t zone_no = claim->address / check->geometry->zone_size;
	uint8_t role = check->zones[zone_no].role;

	if (check->zones[zone_no].has_item &&
	    (role == ZF_ROLE_OVERWRITE) != !!(claim->flags & ZF_EXTENT_OVERWRITE))
		zf_check_corrupt(check, "extent of inode", claim->ino,
				 "flags has %u, expected %s, by the role of zone %" PRIu64
				 " (key offset %" PRIu64 ")",
				 claim->flags,
				 role == ZF_ROLE_OVERWRITE ? "OVERWRITE" : "not OVERWRITE", zone_no,
				 claim->offset);
}

static void tell_lost(struct zf_check *check, const struct zf_check_claim *claim)
{
	uint64_t zone_no = claim->address / check->geometry->zone_size;

	/* With --data the failing read reports the same. */
	if (check->zones[zone_no].offline && !check->options->data)
		zf_check_corrupt(check, "extent of inode", claim->ino,
				 "zone has %" PRIu64 ", expected one that is not offline: %" PRIu64
				 " bytes at offset %" PRIu64 " are lost",
				 zone_no, claim_len(claim), claim->offset);
}

static void check_overlaps(struct zf_check *check)
{
	const struct zf_check_claim *widest = NULL; /* the claim with the highest end so far */
	uint64_t end = 0;

	ZF_VECTOR_FOREACH (&check->claims, struct zf_check_claim, claim) {
		uint64_t claim_end = claim->address + claim_len(claim);

		if (widest && claim->address < end &&
		    !(claim->flags & widest->flags & ZF_EXTENT_SHARED))
			zf_check_corrupt(check, "extent of inode", claim->ino,
					 "address has %" PRIu64 ", expected bytes that no other "
					 "extent names: inode %" PRIu64 " does, at its offset "
					 "%" PRIu64 " (key offset %" PRIu64 ")",
					 claim->address, widest->ino,
					 widest->offset + (claim->address - widest->address),
					 claim->offset);
		check_zone_role(check, claim);
		tell_lost(check, claim);
		count_live(check, zf_max_u64(claim->address, end), claim_end);
		if (claim_end > end) {
			end = claim_end;
			widest = claim;
		}
	}
}

/* ---- claims against the summary ---- */

static void not_covered(struct zf_check *check, struct zf_check_claim *claim)
{
	zf_check_corrupt(check, "extent of inode", claim->ino,
			 "address has %" PRIu64 ", expected a summary entry that covers it (key "
			 "offset %" PRIu64 ")",
			 claim->address + ((uint64_t)claim->covered << ZF_BLOCK_SHIFT),
			 claim->offset);
	claim->covered = claim->blocks;
}

/* A summary entry of data written in place belongs to one extent, and has the same length. */
static bool is_of_its_kind(struct zf_check *check, struct merge *merge,
			   struct zf_check_claim *claim, uint64_t start, uint64_t end,
			   const struct zf_disk_summary *summary)
{
	bool in_place = zf_le16_get(summary->flags) & ZF_SUMMARY_OVERWRITE;
	bool wanted = claim->flags & ZF_EXTENT_OVERWRITE;

	if (in_place == wanted &&
	    (!wanted || (claim->address == start && claim->address + claim_len(claim) == end))) {
		merge->has_extent |= wanted;
		return true;
	}
	zf_check_corrupt(check, "summary of address", start,
			 "flags has %u and count %u, expected %u and %s%u for the extent of inode "
			 "%" PRIu64 " (key offset %" PRIu64 ")",
			 zf_le16_get(summary->flags), zf_le16_get(summary->count),
			 wanted ? ZF_SUMMARY_OVERWRITE : 0, wanted ? "" : "not less than ",
			 wanted ? claim->blocks : 1, claim->ino, claim->offset);
	claim->covered = claim->blocks;
	return false;
}

/* One claim against the summary entry at `start`, which covers [start, end). */
static int cover_claim(struct zf_check *check, struct merge *merge, struct zf_check_claim *claim,
		       uint64_t start, uint64_t end, const struct zf_disk_summary *summary,
		       const struct zf_le64 *csums)
{
	uint64_t from = claim->address + ((uint64_t)claim->covered << ZF_BLOCK_SHIFT);
	uint64_t to = zf_min_u64(claim->address + claim_len(claim), end);
	uint64_t offset = claim->offset + (from - claim->address);
	uint64_t written = zf_le64_get(summary->offset) + (from - start);

	if (from < start) {
		not_covered(check, claim);
		return 0;
	}
	if (!is_of_its_kind(check, merge, claim, start, end, summary))
		return 0;
	if (!(claim->flags & ZF_EXTENT_SHARED) &&
	    (zf_le64_get(summary->ino) != claim->ino || written != offset))
		zf_check_corrupt(check, "summary of address", start,
				 "owner has inode %" PRIu64 ", offset %" PRIu64
				 ", expected inode %" PRIu64 ", offset %" PRIu64
				 " for the extent there",
				 zf_le64_get(summary->ino), written, claim->ino, offset);
	claim->covered += (uint32_t)((to - from) >> ZF_BLOCK_SHIFT);
	from = zf_max_u64(from, merge->verified_end);
	if (!check->options->data || from >= to || (claim->flags & ZF_EXTENT_OVERWRITE))
		return 0;
	merge->verified_end = to;
	return zf_check_verify(check, claim, from, to - from,
			       csums + ((from - start) >> ZF_BLOCK_SHIFT));
}

static int cover_claims(struct zf_check *check, struct merge *merge, uint64_t start, uint64_t end,
			const struct zf_disk_summary *summary, const struct zf_le64 *csums)
{
	for (size_t i = merge->first; i < check->claims.count; i++) {
		struct zf_check_claim *claim = zf_vector_at(&check->claims, i);
		int r;

		if (claim->address >= end)
			break;
		if (claim->covered < claim->blocks) {
			r = cover_claim(check, merge, claim, start, end, summary, csums);
			if (r < 0)
				return r;
		}
		if (i == merge->first && claim->covered == claim->blocks)
			merge->first++;
	}
	return 0;
}

static int take_summary(struct zf_check *check, void *arg, const struct zf_key *key,
			const void *value, size_t len)
{
	struct merge *merge = arg;
	struct zf_disk_summary summary;
	uint64_t start = key->objectid, bytes;
	int r;

	if (zf_item_check(&merge->item_check, ZF_TREE_SUMMARY, key, value, len) < 0)
		return 0;
	memcpy(&summary, value, sizeof(summary));
	bytes = (uint64_t)zf_le16_get(summary.count) << ZF_BLOCK_SHIFT;
	if (zf_le64_get(summary.ino) >= check->super->next_ino)
		zf_check_corrupt(check, "summary of address", start,
				 "ino has %" PRIu64 ", expected below %" PRIu64
				 ", the superblock's next_ino",
				 zf_le64_get(summary.ino), check->super->next_ino);
	if (zf_check_place(check, start, bytes) != 0) {
		zf_check_corrupt(check, "summary of address", start,
				 "count has %u, expected blocks within one zone",
				 zf_le16_get(summary.count));
		return 0;
	}
	if (start < merge->summary_end)
		zf_check_corrupt(check, "summary of address", start,
				 "address has %" PRIu64 ", expected at least %" PRIu64
				 ", where the entry before ends",
				 start, merge->summary_end);
	merge->summary_end = zf_max_u64(merge->summary_end, start + bytes);
	merge->has_extent = false;
	r = cover_claims(check, merge, start, start + bytes, &summary,
			 (const struct zf_le64 *)((const uint8_t *)value + sizeof(summary)));
	/*
	 * An ordinary entry may outlive its extent. An entry of data written in place without an
	 * extent would keep its space for ever.
	 */
	if (r == 0 && (zf_le16_get(summary.flags) & ZF_SUMMARY_OVERWRITE) && !merge->has_extent &&
	    !check->trees[ZF_TREE_FS].lost)
		zf_check_corrupt(check, "summary of address", start,
				 "flags has OVERWRITE, expected an extent of inode %" PRIu64
				 " with the same length",
				 zf_le64_get(summary.ino));
	return r;
}

static int check_summary(struct zf_check *check, struct merge *merge)
{
	int r = zf_check_walk_tree(check, ZF_TREE_SUMMARY, take_summary, merge);

	if (r < 0)
		return r;
	if (check->trees[ZF_TREE_SUMMARY].lost) {
		zf_report(&check->report, ZF_REPORT_WARNING,
			  "not all extents were compared with the summary: part of its tree cannot "
			  "be read");
		return 0;
	}
	ZF_VECTOR_FOREACH (&check->claims, struct zf_check_claim, claim)
		if (claim->covered < claim->blocks)
			not_covered(check, claim);
	return 0;
}

/* ---- shared claims against the share tree ---- */

static int cmp_share(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	return zf_cmp_u64s((uint64_t[]){x->address, x->ino, x->offset},
			   (uint64_t[]){y->address, y->ino, y->offset}, 3);
}

static int take_share(struct zf_check *check, void *arg, const struct zf_key *key,
		      const void *value, size_t len)
{
	struct merge *merge = arg;
	struct zf_disk_share disk;

	if (zf_item_check(&merge->item_check, ZF_TREE_SHARE, key, value, len) < 0)
		return 0;
	for (size_t at = 0; at < len; at += sizeof(disk)) {
		struct share share = {.address = key->objectid};
		int r;

		memcpy(&disk, (const uint8_t *)value + at, sizeof(disk));
		share.ino = zf_le64_get(disk.ino);
		share.offset = zf_le64_get(disk.offset);
		share.len = zf_le64_get(disk.len);
		r = zf_vector_push(&merge->shares, &share);
		if (r < 0)
			return r;
	}
	return 0;
}

static void lacks_extent(struct zf_check *check, const struct share *share)
{
	zf_check_corrupt(check, "share of address", share->address,
			 "owner has inode %" PRIu64 ", offset %" PRIu64
			 ", expected a shared extent of %" PRIu64 " bytes there",
			 share->ino, share->offset, share->len);
}

static void compare_shares(struct zf_check *check, struct merge *merge)
{
	const struct share *share = merge->shares.data;
	const struct share *end = share + merge->shares.count;

	ZF_VECTOR_FOREACH (&check->claims, struct zf_check_claim, claim) {
		const struct share wanted = {
			.address = claim->address, .ino = claim->ino, .offset = claim->offset};

		if (!(claim->flags & ZF_EXTENT_SHARED))
			continue;
		for (; share < end && cmp_share(share, &wanted) < 0; share++)
			lacks_extent(check, share);
		if (share < end && cmp_share(share, &wanted) == 0 && share->len == claim_len(claim))
			share++;
		else
			zf_check_corrupt(check, "extent of inode", claim->ino,
					 "flags has SHARED, expected an item of the share tree "
					 "(key offset %" PRIu64 ")",
					 claim->offset);
	}
	for (; share < end; share++)
		lacks_extent(check, share);
}

static int check_shares(struct zf_check *check, struct merge *merge)
{
	int r = zf_check_walk_tree(check, ZF_TREE_SHARE, take_share, merge);

	if (r < 0 || check->trees[ZF_TREE_SHARE].lost || check->trees[ZF_TREE_FS].lost)
		return r;
	zf_vector_sort(&merge->shares, 0, cmp_share);
	compare_shares(check, merge);
	return 0;
}

int zf_check_space(struct zf_check *check)
{
	struct merge merge = {
		.item_check = zf_check_item_limits(check),
		.shares = ZF_VECTOR(struct share),
	};
	int r;

	zf_vector_sort(&check->claims, 0, cmp_claim);
	check_overlaps(check);
	r = check_summary(check, &merge);
	if (r == 0)
		r = check_shares(check, &merge);
	zf_vector_deinit(&merge.shares);
	zf_vector_deinit(&check->claims);
	return r;
}
