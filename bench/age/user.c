/* SPDX-License-Identifier: MIT */
#include "age/user.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "fs/space/reclaim.h"
#include "txn/txn.h"

void age_user_init(struct age_user *user, struct zf_fs *fs, uint64_t seed)
{
	*user = (struct age_user){
		.fs = fs, .ctx = {.may_wait = true}, .seed = seed, .random = {age_mix(seed)}};
}

uint32_t age_new_version(struct age_user *user)
{
	return ++user->version;
}

/* ---- content ---- */

void age_fill_block(const struct age_user *user, uint64_t ino, uint64_t block, uint32_t version,
		    void *buf)
{
	uint64_t x = age_mix(user->seed ^ age_mix(ino ^ age_mix(block ^ (uint64_t)version << 32)));
	uint64_t words[AGE_BLOCK / sizeof(uint64_t)];

	/* An LCG (Knuth, MMIX) from a hashed start: blocks differ in every word. */
	for (size_t i = 0; i < ZF_ARRAY_SIZE(words); i++) {
		x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		words[i] = x;
	}
	memcpy(buf, words, sizeof(words));
}

/* [offset, offset + len), at most a piece. */
static void fill(const struct age_user *user, uint64_t ino, uint64_t offset, uint64_t len,
		 const uint32_t *versions, uint8_t *buf)
{
	uint8_t block_buf[AGE_BLOCK];

	while (len > 0) {
		uint64_t block = offset / AGE_BLOCK, skip = offset % AGE_BLOCK;
		uint64_t part = zf_min_u64(len, AGE_BLOCK - skip);

		age_fill_block(user, ino, block, versions[block], block_buf);
		memcpy(buf, block_buf + skip, part);
		buf += part;
		offset += part;
		len -= part;
	}
}

/* ---- writing ---- */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The work that background threads would do while the user goes on. */
static int reclaim(struct age_user *user)
{
	int r;

	if (user->reclaim_bytes == 0 || user->bytes - user->reclaimed < user->reclaim_bytes)
		return 0;
	user->reclaimed = user->bytes;
	do
		r = zf_reclaim_in_peace(user->fs);
	while (r > 0);
	return r == -ENOSPC ? 0 : r;
}

static int commit(struct age_user *user)
{
	uint64_t running = zf_txn_running(zf_fs_txn(user->fs));
	bool due;
	int r;

	/* Reclaim commits, too. */
	if (user->running != running)
		user->committed = user->bytes;
	user->running = running;
	due = user->commit_bytes > 0 && user->bytes - user->committed >= user->commit_bytes;
	if (!due && !(user->commit_due && user->commit_due(user->commit_arg)))
		return 0;
	r = zf_fs_step(user->fs);
	return r < 0 ? r : 0;
}

int age_operated(struct age_user *user)
{
	int r = reclaim(user);

	return r < 0 ? r : commit(user);
}

static int write_piece(struct age_user *user, uint64_t ino, uint64_t offset, uint64_t len)
{
	uint64_t began = now_ns();
	ssize_t r = zf_fs_write(user->fs, &user->ctx, ino, offset, user->piece, len, 0);

	age_histogram_note(&user->latency, now_ns() - began);
	if (r < 0)
		return (int)r;
	if ((uint64_t)r != len)
		return -EIO;
	user->bytes += len;
	user->calls++;
	return 0;
}

int age_write(struct age_user *user, uint64_t ino, uint64_t offset, uint64_t len,
	      const uint32_t *versions)
{
	while (len > 0) {
		uint64_t part = zf_min_u64(len, AGE_PIECE);
		int r;

		fill(user, ino, offset, part, versions, user->piece);
		r = write_piece(user, ino, offset, part);
		if (r == 0)
			r = age_operated(user);
		if (r < 0)
			return r;
		offset += part;
		len -= part;
	}
	return 0;
}

/* ---- looking ---- */

static int compare_piece(struct age_user *user, uint64_t ino, uint64_t offset, uint64_t len,
			 const uint32_t *versions)
{
	uint8_t expected[AGE_BLOCK];
	ssize_t r = zf_fs_read(user->fs, &user->ctx, ino, offset, user->piece, len);

	if (r < 0)
		return (int)r;
	for (uint64_t at = 0; at < len; at += AGE_BLOCK) {
		uint64_t block = (offset + at) / AGE_BLOCK;
		uint64_t part = zf_min_u64(len - at, AGE_BLOCK);

		age_fill_block(user, ino, block, versions[block], expected);
		if (at + part > (uint64_t)r || memcmp(user->piece + at, expected, part) != 0) {
			fprintf(stderr, "inode %" PRIu64 ", block %" PRIu64 ": not version %u\n",
				ino, block, versions[block]);
			return -EILSEQ;
		}
	}
	return 0;
}

int age_verify(struct age_user *user, uint64_t ino, uint64_t size, const uint32_t *versions)
{
	struct zf_attr attr;
	int r = zf_fs_getattr(user->fs, &user->ctx, ino, &attr);

	if (r == 0 && attr.size != size) {
		fprintf(stderr, "inode %" PRIu64 ": size %" PRIu64 ", not %" PRIu64 "\n", ino,
			attr.size, size);
		r = -EILSEQ;
	}
	for (uint64_t at = 0; r == 0 && at < size; at += AGE_PIECE)
		r = compare_piece(user, ino, at, zf_min_u64(size - at, AGE_PIECE), versions);
	return r;
}

int64_t age_count_extents(struct age_user *user, uint64_t ino)
{
	struct zf_extent_info extents[256];
	uint64_t end = 0, address_end = 0;
	int64_t count = 0;
	int r;

	do {
		r = zf_fs_extents(user->fs, &user->ctx, ino, end, extents, ZF_ARRAY_SIZE(extents));
		for (int i = 0; i < r; i++) {
			const struct zf_extent_info *extent = &extents[i];

			count += count == 0 || extent->offset != end ||
				 extent->address != address_end;
			end = extent->offset + extent->len;
			address_end = extent->address + extent->len;
		}
	} while (r == (int)ZF_ARRAY_SIZE(extents));
	return r < 0 ? r : count;
}
