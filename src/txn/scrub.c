/* SPDX-License-Identifier: MIT */
/*
 * Writes the metadata of failed zones elsewhere, while one copy of it can be read.
 *
 * A read-only zone can be searched for its nodes like any victim. A zone that is offline, or that a
 * commit could not write to, cannot be searched. But each node names the addresses of both its
 * copies. So all other metadata zones are searched for nodes whose other copy is in the failed
 * zone. That takes a while, and happens once for each zone that fails.
 */
#include <errno.h>

#include "alloc/zone.h"
#include "alloc/zone_format.h"
#include "txn/txn_internal.h"

/* How much of a zone can be read. Nodes that are not written yet are not looked for. */
static int readable_bytes(struct zf_txn *txn, uint32_t zone_no, const struct zf_zone *zone,
			  uint64_t *ret_end)
{
	struct zf_zone_info info;
	int r = zf_dev_report(txn->dev, zone_no, 1, &info);

	if (r < 0)
		return r;
	*ret_end = (uint64_t)zone->pointer << ZF_BLOCK_SHIFT;
	if (info.type == ZF_ZONE_SEQUENTIAL && info.cond != ZF_ZONE_FULL &&
	    info.cond != ZF_ZONE_READONLY)
		*ret_end = zf_min_u64(*ret_end, info.wp - info.start);
	return 0;
}

static int search_zone(struct zf_txn *txn, uint32_t zone_no, uint32_t of)
{
	uint64_t start = zone_no * zf_dev_geometry(txn->dev)->zone_size, end = 0;
	struct zf_zone zone;
	int r = 0;

	zf_alloc_read_begin(txn->alloc, start);
	zf_alloc_get_zone(txn->alloc, zone_no, &zone);
	if (zone.role == ZF_ROLE_META && !zone.offline)
		r = readable_bytes(txn, zone_no, &zone, &end);
	if (r == 0 && end > 0)
		r = zf_txn_move_nodes_of(txn, zone_no, end, of);
	zf_alloc_read_end(txn->alloc, start);
	return r;
}

/* Searches all zones. A zone that cannot be read is passed over: it hides only its own nodes. */
static int search_all(struct zf_txn *txn, uint32_t of)
{
	int r = 0;

	for (uint32_t z = 2; z < zf_alloc_zone_count(txn->alloc) && r == 0; z++) {
		r = zf_txn_keep_bound(txn, true);
		if (r == 0)
			r = search_zone(txn, z, of);
		if (r != -EIO && r != -ENXIO && r != -EUCLEAN)
			continue;
		zf_alloc_suspect(txn->alloc, z);
		r = 0;
	}
	return r;
}

int zf_txn_scrub_one(struct zf_txn *txn)
{
	struct zf_zone before, after;
	uint32_t zone_no;
	int r;

	if (zf_txn_error(txn) || zf_alloc_scrub_begin(txn->alloc, &zone_no) < 0)
		return 0;
	zf_alloc_get_zone(txn->alloc, zone_no, &before);
	r = search_all(txn, zone_no);
	if (r == 0)
		r = zf_txn_commit(txn, true);
	zf_alloc_get_zone(txn->alloc, zone_no, &after);
	zf_alloc_scrub_end(txn->alloc, zone_no,
			   r == 0 && after.live + after.system_live >=
					     before.live + before.system_live);
	if (r < 0)
		return r == -ENOSPC ? 0 : r;
	return ZF_TIDY_EMPTIED;
}
