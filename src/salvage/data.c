/* SPDX-License-Identifier: MIT */
/* Reads data blocks and verifies them against the checksums of the summary tree (P4). */
#include <string.h>

#include "base/bits.h"
#include "log/carry.h"
#include "salvage/state.h"

/* Finds the entry that covers `address`; without one, the run ends where the next entry begins. */
void zf_salvage_look_up(struct zf_salvage *salvage, uint64_t address, uint64_t end,
			struct zf_salvage_promise *ret_promise)
{
	const struct zf_key at = ZF_KEY(address, ZF_KEY_SUMMARY, 0), last = ZF_KEY(end, 0, 0);
	const void *value;
	struct zf_key key;
	size_t len;

	*ret_promise = (struct zf_salvage_promise){.end = end};
	zf_leaf_cursor_seek_back(&salvage->summary, &at);
	while (zf_leaf_cursor_next(&salvage->summary, &last, &key, &value, &len)) {
		const struct zf_disk_summary *summary = value;
		uint64_t entry_end;

		if (!zf_salvage_is_sound(salvage, ZF_TREE_SUMMARY, &key, value, len))
			continue;
		entry_end =
			key.objectid + ((uint64_t)zf_le16_get(summary->count) << ZF_BLOCK_SHIFT);
		if (entry_end <= address)
			continue;
		if (key.objectid > address) {
			ret_promise->end = key.objectid;
			break;
		}
		ret_promise->known = true;
		ret_promise->end = zf_min_u64(end, entry_end);
		ret_promise->ino = zf_le64_get(summary->ino);
		ret_promise->offset = zf_le64_get(summary->offset) + (address - key.objectid);
		if (!(zf_le16_get(summary->flags) & ZF_SUMMARY_OVERWRITE))
			ret_promise->csums = (const struct zf_le64 *)(summary + 1) +
					     ((address - key.objectid) >> ZF_BLOCK_SHIFT);
		break;
	}
}

static enum zf_salvage_verdict judge(const struct zf_salvage_promise *promise, size_t i,
				     void *block)
{
	uint64_t has;

	if (!promise->known)
		return ZF_SALVAGE_UNVERIFIED;
	if (!promise->csums)
		return ZF_SALVAGE_GOOD;
	return zf_log_carry_verify(block, zf_le64_get(promise->csums[i]), &has) ? ZF_SALVAGE_GOOD
										: ZF_SALVAGE_WRONG;
}

/* If the read of the whole run fails, each block is read by itself: some may be readable. */
static void read_blocks(struct zf_salvage *salvage, uint64_t address, uint32_t blocks, uint8_t *buf,
			enum zf_salvage_verdict *ret_verdicts)
{
	uint64_t len = (uint64_t)blocks << ZF_BLOCK_SHIFT;
	bool all = zf_dev_read_buf(salvage->dev, address, buf, len) == 0;

	for (uint32_t i = 0; i < blocks; i++) {
		uint64_t at = (uint64_t)i << ZF_BLOCK_SHIFT;

		ret_verdicts[i] = ZF_SALVAGE_GOOD;
		if (!all &&
		    zf_dev_read_buf(salvage->dev, address + at, buf + at, ZF_BLOCK_SIZE) < 0)
			ret_verdicts[i] = ZF_SALVAGE_UNREADABLE;
	}
}

void zf_salvage_read(struct zf_salvage *salvage, uint64_t address, uint32_t blocks, void *buf,
		     enum zf_salvage_verdict *ret_verdicts)
{
	const uint64_t end = address + ((uint64_t)blocks << ZF_BLOCK_SHIFT);
	uint8_t *bytes = buf;

	read_blocks(salvage, address, blocks, bytes, ret_verdicts);
	for (uint64_t at = address; at < end;) {
		struct zf_salvage_promise promise;

		zf_salvage_look_up(salvage, at, end, &promise);
		for (size_t i = 0; at < promise.end; at += ZF_BLOCK_SIZE, i++) {
			size_t n = (size_t)((at - address) >> ZF_BLOCK_SHIFT);

			if (ret_verdicts[n] == ZF_SALVAGE_GOOD)
				ret_verdicts[n] = judge(&promise, i, bytes + (at - address));
		}
	}
}
