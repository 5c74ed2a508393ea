/* SPDX-License-Identifier: MIT */
/*
 * Decides which extents may name which bytes of the device.
 *
 * If extents name the same bytes, and not all of them are marked as shared, the summary and share
 * trees decide. An extent in neither tree is dropped. If none of the extents is in these trees, all
 * are kept and share the bytes; of extents written in place, only the first is kept.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "repair/pieces.h"
#include "repair/state.h"

struct share {
	uint64_t address, ino, offset;
};

static int cmp_share(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	return zf_cmp_u64s((uint64_t[]){x->address, x->ino, x->offset},
			   (uint64_t[]){y->address, y->ino, y->offset}, 3);
}

/* Compares pointers to struct zf_repair_claim. */
static int cmp_address(const void *a, const void *b)
{
	const struct zf_repair_claim *x = *(struct zf_repair_claim *const *)a;
	const struct zf_repair_claim *y = *(struct zf_repair_claim *const *)b;

	return cmp_share(&(struct share){x->address, x->ino, x->offset},
			 &(struct share){y->address, y->ino, y->offset});
}

static struct zf_repair_zone *zone_of(const struct zf_repair *repair, uint64_t address)
{
	return zf_vector_at(&repair->zones, address / zf_dev_geometry(repair->dev)->zone_size);
}

static void drop(struct zf_repair *repair, struct zf_repair_claim *claim, const char *why)
{
	claim->dropped = true;
	zf_repair_tell_of(repair, claim->ino,
			  "%" PRIu64 " bytes at offset %" PRIu64 " are lost: %s",
			  zf_repair_claim_len(claim), claim->offset, why);
}

/* ---- whose claims count ---- */

static int index_claims(struct zf_repair *repair)
{
	struct zf_repair_inode *inode = NULL;

	ZF_VECTOR_FOREACH (&repair->claims, struct zf_repair_claim, claim) {
		int r;

		if (!inode || inode->ino != claim->ino)
			inode = zf_repair_find_inode(repair, claim->ino);
		if (!inode->kept || !S_ISREG(inode->mode)) {
			claim->dropped = true;
			continue;
		}
		r = zf_vector_push(&repair->by_address, &claim);
		if (r < 0)
			return r;
	}
	zf_vector_sort(&repair->by_address, 0, cmp_address);
	return 0;
}

/* ---- written in place, or not ---- */

/* By the majority of a zone's extents. No data in a sequential zone is written in place. */
static void decide_in_place(struct zf_repair *repair)
{
	ZF_VECTOR_FOREACH (&repair->by_address, struct zf_repair_claim *, claim)
		zone_of(repair, (*claim)->address)->in_place_votes +=
			(*claim)->flags & ZF_EXTENT_OVERWRITE ? 1 : -1;
	ZF_VECTOR_FOREACH (&repair->zones, struct zf_repair_zone, zone) {
		bool had_role = zone->has_item && zone->item.role == ZF_ROLE_OVERWRITE;

		zone->in_place = zone->conventional && zone->in_place_votes + had_role > 0;
	}
}

static void set_in_place(struct zf_repair *repair)
{
	ZF_VECTOR_FOREACH (&repair->by_address, struct zf_repair_claim *, place) {
		struct zf_repair_claim *claim = *place;
		bool in_place = zone_of(repair, claim->address)->in_place;

		if (in_place == !!(claim->flags & ZF_EXTENT_OVERWRITE))
			continue;
		claim->flags = in_place ? ZF_EXTENT_OVERWRITE : 0;
		zf_repair_tell_of(
			repair, claim->ino, "the extent at offset %" PRIu64 " is %s", claim->offset,
			in_place ? "one for data that is written in place" : "an ordinary one");
	}
}

/* ---- the same bytes ---- */

static int take_share(void *arg, const struct zf_key *key, const void *value, size_t len,
		      bool is_sound)
{
	struct zf_vector *shares = arg;
	struct zf_disk_share disk;

	for (size_t at = 0; is_sound && at < len; at += sizeof(disk)) {
		struct share share = {.address = key->objectid};
		int r;

		memcpy(&disk, (const uint8_t *)value + at, sizeof(disk));
		share.ino = zf_le64_get(disk.ino);
		share.offset = zf_le64_get(disk.offset);
		r = zf_vector_push(shares, &share);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_confirmed(struct zf_repair *repair, const struct zf_vector *shares,
			 const struct zf_repair_claim *claim)
{
	const struct share key = {claim->address, claim->ino, claim->offset};
	struct zf_salvage_promise promise;

	zf_salvage_look_up(repair->salvage, claim->address, claim->address + ZF_BLOCK_SIZE,
			   &promise);
	if (promise.known && promise.ino == claim->ino && promise.offset == claim->offset)
		return true;
	return zf_vector_find(shares, &key, cmp_share) != NULL;
}

/* The extents [first, end) of by_address: each overlaps an extent before it in this range. */
static void settle(struct zf_repair *repair, const struct zf_vector *shares, size_t first,
		   size_t end)
{
	struct zf_repair_claim **claims = repair->by_address.data;
	size_t confirmed = 0;
	bool in_place = claims[first]->flags & ZF_EXTENT_OVERWRITE;

	for (size_t i = first; i < end; i++)
		confirmed += is_confirmed(repair, shares, claims[i]);
	for (size_t i = first; i < end; i++)
		if ((confirmed && !is_confirmed(repair, shares, claims[i])) ||
		    (in_place && !confirmed && i > first))
			drop(repair, claims[i], "another extent owns these bytes");
	for (size_t i = first; i < end; i++) {
		bool shared = claims[i]->flags & ZF_EXTENT_SHARED;

		if (claims[i]->dropped || in_place || shared || (confirmed == 1))
			continue;
		claims[i]->flags |= ZF_EXTENT_SHARED;
		zf_repair_tell_of(repair, claims[i]->ino,
				  "the extent at offset %" PRIu64 " is marked as shared",
				  claims[i]->offset);
	}
}

static void settle_overlaps(struct zf_repair *repair, const struct zf_vector *shares)
{
	struct zf_repair_claim **claims = repair->by_address.data;
	size_t count = repair->by_address.count, next;

	for (size_t first = 0; first < count; first = next) {
		uint64_t end = claims[first]->address + zf_repair_claim_len(claims[first]);
		bool all_shared = claims[first]->flags & ZF_EXTENT_SHARED;

		for (next = first + 1; next < count && claims[next]->address < end; next++) {
			end = zf_max_u64(end,
					 claims[next]->address + zf_repair_claim_len(claims[next]));
			all_shared &= !!(claims[next]->flags & ZF_EXTENT_SHARED);
		}
		if (next > first + 1 && !all_shared)
			settle(repair, shares, first, next);
	}
}

static void remove_dropped(struct zf_vector *index)
{
	size_t kept = 0;

	for (size_t i = 0; i < index->count; i++) {
		struct zf_repair_claim **claims = index->data;

		if (!claims[i]->dropped)
			claims[kept++] = claims[i];
	}
	index->count = kept;
}

/* ---- the sums for files and zones ---- */

static void add_up(struct zf_repair *repair)
{
	uint64_t zone_size = zf_dev_geometry(repair->dev)->zone_size, end = 0;

	ZF_VECTOR_FOREACH (&repair->by_address, struct zf_repair_claim *, place) {
		const struct zf_repair_claim *claim = *place;
		struct zf_repair_inode *inode = zf_repair_find_inode(repair, claim->ino);
		struct zf_repair_zone *zone = zone_of(repair, claim->address);
		uint64_t from = zf_max_u64(claim->address, end);
		uint64_t to = claim->address + zf_repair_claim_len(claim);

		inode->bytes += zf_repair_claim_len(claim);
		inode->data_end =
			zf_max_u64(inode->data_end, claim->offset + zf_repair_claim_len(claim));
		if (from >= to)
			continue;
		zone->live += to - from;
		zone->data_end = (to - 1) % zone_size + 1;
		end = to;
	}
}

int zf_repair_decide_space(struct zf_repair *repair)
{
	struct zf_vector shares = ZF_VECTOR(struct share);
	bool lost;
	int r = zf_salvage_walk(repair->salvage, ZF_TREE_SHARE, take_share, &shares, &lost);

	zf_vector_sort(&shares, 0, cmp_share);
	if (r == 0)
		r = index_claims(repair);
	if (r == 0) {
		decide_in_place(repair);
		set_in_place(repair);
		settle_overlaps(repair, &shares);
		remove_dropped(&repair->by_address);
		add_up(repair);
	}
	zf_vector_deinit(&shares);
	return r;
}
