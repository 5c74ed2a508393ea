/* SPDX-License-Identifier: MIT */
/* Judges what is found after a cut. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "check/check.h"
#include "explore.h"
#include "superblock/ring.h"

#define KIB UINT64_C(1024)

/* ---- the oracle after a cut ---- */

static bool is_sync(const struct zf_op *op)
{
	return op->durable || op->kind == OP_FSYNC || op->kind == OP_SYNCFS ||
	       (op->kind == OP_WRITE && (op->flags & ZF_WRITE_DSYNC) && op->len > 0);
}

static bool is_acknowledgement(const struct zf_op *op)
{
	return is_sync(op) || op->kind == OP_COMMIT_FINISH;
}

/* An operation that P2 orders: it changes names or attributes, or the size by truncation. */
static bool is_change(const struct zf_op *op)
{
	switch (op->kind) {
	case OP_MAKE:
	case OP_LINK:
	case OP_UNLINK:
	case OP_RMDIR:
	case OP_RENAME:
	case OP_SETATTR:
	case OP_SETFLAGS:
	case OP_SETXATTR:
	case OP_REMOVEXATTR:
		return op->result >= 0;
	default:
		return false;
	}
}

static bool was_answered(const struct record *record, uint32_t index, uint32_t cut_op)
{
	if (record->options.plant && record->options.plant->lie == LIE_ACK)
		return index <= cut_op;
	return index < cut_op;
}

/*
 * Up to which operation a sync makes names durable. A sync writes all operations before it. But if
 * data may be written in place, an fsync of a file without other changes is only a flush: then only
 * the file's own operations are sure to be durable.
 */
static uint32_t made_durable(const struct record *record, uint32_t index)
{
	const struct zf_op *sync = &record->ops[index];

	if (!record->in_place || (sync->kind != OP_FSYNC && sync->kind != OP_WRITE))
		return sync->number;
	for (uint32_t i = index; i > 0; i--) {
		const struct zf_op *op = &record->ops[i - 1];

		if (is_change(op) && (op->ino == sync->ino || op->attr.ino == sync->ino))
			return op->number;
	}
	return 0;
}

/* The number of the last operation that is acknowledged as durable. */
static uint32_t durable_at(const struct record *record, uint32_t cut_op)
{
	uint32_t frozen = 0, durable = 0;

	for (uint32_t i = 0; i <= cut_op && i < record->count; i++) {
		const struct zf_op *op = &record->ops[i];

		if (!was_answered(record, i, cut_op) || op->result < 0)
			continue;
		if (op->kind == OP_FREEZE)
			frozen = op->number;
		if (op->kind == OP_COMMIT_FINISH)
			durable = frozen;
		if (is_sync(op))
			durable = (uint32_t)zf_max_u64(durable, made_durable(record, i));
	}
	return durable;
}

uint32_t promised_at(const struct record *record, uint32_t op)
{
	for (uint32_t i = op < record->count ? op + 1 : record->count; i > 0; i--) {
		const struct zf_op *last = &record->ops[i - 1];

		if (last->result >= 0 && is_acknowledgement(last) &&
		    was_answered(record, i - 1, op))
			return i;
	}
	return 0;
}

static void note_failed_write(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);

	if (inode && (op->kind == OP_WRITE || op->kind == OP_COPY || op->kind == OP_FALLOCATE) &&
	    (op->result == -EIO || op->result == -EROFS || op->result == -ENOMEM))
		inode->content_unknown = true;
	if (inode && op->kind == OP_SETATTR && op->result == -ENOMEM)
		inode->content_unknown = true;
}

static void apply_if_seen(const struct record *record, struct oracle *oracle, uint32_t index,
			  uint32_t cut_op)
{
	struct zf_op op = record->ops[index];

	note_failed_write(oracle, &op);
	if (op.result < 0)
		return;
	if (is_acknowledgement(&op) && !was_answered(record, index, cut_op)) {
		if (op.kind == OP_FSYNC || op.kind == OP_SYNCFS || op.kind == OP_COMMIT_FINISH)
			return;
		op.durable = false;
		if (op.kind == OP_WRITE)
			op.flags &= ~(unsigned int)ZF_WRITE_DSYNC;
	}
	oracle_apply(oracle, &op);
}

/* A copy took the content that the source had at that time, whether that is seen or not. */
static void copy_in_place(const struct record *record, struct oracle *oracle, uint32_t copy)
{
	struct oracle *then;

	if (!record->in_place)
		return;
	then = oracle_new(true, WORKLOAD_EPOCH_NS);
	then->in_place = true;
	for (uint32_t i = 0; i < copy; i++)
		oracle_apply(then, &record->ops[i]);
	oracle_copy_in_place(oracle, then, &record->ops[copy]);
	oracle_free(then);
}

/* The state after the operations up to number `seen`, with the writes up to the next change. */
static struct oracle *oracle_after(const struct record *record, uint32_t cut_op, uint32_t seen)
{
	struct oracle *oracle = oracle_new(true, WORKLOAD_EPOCH_NS);
	uint32_t i;

	oracle->in_place = record->in_place;
	for (i = 0; i <= cut_op && i < record->count; i++) {
		const struct zf_op *op = &record->ops[i];

		if (op->number > seen && is_change(op))
			break;
		apply_if_seen(record, oracle, i, cut_op);
	}
	oracle_forget_all(oracle);
	for (; i <= cut_op && i < record->count; i++) {
		if (record->ops[i].kind == OP_COPY)
			copy_in_place(record, oracle, i);
		else
			oracle_apply_in_place(oracle, &record->ops[i]);
	}
	return oracle;
}

/* ---- the steps ---- */

static bool complain(const char *what, int value)
{
	fprintf(stderr, "%s (%d)\n", what, value);
	return false;
}

static bool check(struct zf_dev *dev, const struct judgement *judgement)
{
	const struct zf_check_options options = {.data = judgement->full};
	const struct zf_super *super;
	struct zf_check_counts counts = {0};
	struct zf_ring *ring;
	unsigned int stepped_over;
	int r;

	if (judgement->degraded)
		return true;
	r = zf_ring_open(dev, &explore_report, &ring);
	if (r < 0)
		return complain("the ring cannot be opened", r);
	r = zf_ring_newest(ring, &super, &stepped_over);
	if (r == 0)
		r = zf_check_run(dev, super, &options, &explore_report, &counts);
	if (r == 0 && explore_verbose)
		fprintf(stderr, "checked: generation %" PRIu64 ", %u records stepped over\n",
			super->generation, stepped_over);
	zf_ring_close(ring);
	if (r < 0)
		return complain("the checker cannot run", r);
	return counts.errors == 0 || complain("the checker found errors", (int)counts.errors);
}

static int64_t late(void *arg)
{
	return workload_time(*(const uint32_t *)arg);
}

static int mount(const struct record *record, struct zf_dev *dev, const struct judgement *judgement,
		 uint32_t *clock, struct zf_fs **ret_fs)
{
	const struct zf_mount_options options = {
		.cache_bytes = 256 * KIB,
		.dirty_bytes = 256 * KIB,
		.now_ns = late,
		.now_arg = clock,
		.trace = judgement->trace,
		.trace_fd = judgement->trace_fd,
	};

	*clock = record->workload.number;
	return zf_fs_mount(dev, &options, &explore_report, ret_fs);
}

/* NULL: the tree cannot be read. */
static struct oracle *oracle_of(const struct record *record, uint32_t cut_op, struct zf_fs *fs)
{
	uint32_t durable = durable_at(record, cut_op), seen;

	if (workload_newest(fs, &seen) < 0)
		return NULL;
	if (explore_verbose)
		fprintf(stderr, "seen: up to operation %u; durable: %u; cut in the %u.\n", seen,
			durable, cut_op + 1);
	return oracle_after(record, cut_op, seen > durable ? seen : durable);
}

/* ---- writing after the recovery ---- */

#define LATER_NAME  "after the crash"
#define LATER_FILES 4u
#define LATER_BYTES 30000u

static const struct zf_ctx ctx = {.may_wait = true};

static int write_later(struct zf_fs *fs, const char *name, uint32_t number)
{
	static uint8_t bytes[LATER_BYTES];
	struct zf_attr attr;
	ssize_t written;
	int r = zf_fs_lookup(fs, &ctx, ZF_INO_ROOT, name, &attr);

	if (r == -ENOENT)
		r = zf_fs_make(fs, &ctx, ZF_INO_ROOT, name, S_IFREG | 0600, 0, NULL, &attr);
	if (r < 0)
		return r;
	oracle_fill(number, 0, bytes, sizeof(bytes));
	written = zf_fs_write(fs, &ctx, attr.ino, 0, bytes, sizeof(bytes), 0);
	r = written < 0 ? (int)written : 0;
	if (r == 0 && written < (ssize_t)sizeof(bytes))
		r = -ENOSPC;
	if (r == 0 && number % 3 == 0)
		r = zf_fs_fsync(fs, &ctx, attr.ino, false);
	zf_fs_forget(fs, attr.ino, 1);
	return r;
}

/*
 * Writes over and over, so that a block that is wrongly taken for free is overwritten; the last
 * write is synced.
 */
static int live_on(struct zf_fs *fs)
{
	const struct zf_set_flags none = {.mask = UINT32_MAX};
	char name[32];
	int r = zf_fs_set_flags(fs, &ctx, ZF_INO_ROOT, &none); /* it may be immutable */

	for (uint32_t i = 0; r == 0 && i < 4 * LATER_FILES; i++) {
		snprintf(name, sizeof(name), "later %u", i % LATER_FILES);
		r = write_later(fs, name, UINT32_MAX - i);
		if (r == 0 && i % 5 == 4)
			r = zf_fs_unlink(fs, &ctx, ZF_INO_ROOT, name);
	}
	return r < 0 ? r : write_later(fs, LATER_NAME, UINT32_MAX);
}

static bool check_later(struct zf_fs *fs)
{
	static uint8_t bytes[LATER_BYTES], expected[LATER_BYTES];
	struct zf_attr attr;
	int r = zf_fs_lookup(fs, &ctx, ZF_INO_ROOT, LATER_NAME, &attr);

	oracle_fill(UINT32_MAX, 0, expected, sizeof(expected));
	if (r == 0 &&
	    (zf_fs_read(fs, &ctx, attr.ino, 0, bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes) ||
	     memcmp(bytes, expected, sizeof(bytes)) != 0))
		r = -EIO;
	return r == 0 || complain("what was synced after the recovery is lost", r);
}

/* After an unmount or a second cut everything that was there before must still be there. */
static bool judge_again(const struct record *record, struct zf_sim *sim, struct oracle *oracle,
			const struct judgement *judgement, bool written)
{
	struct zf_dev *dev;
	struct zf_fs *fs;
	uint32_t clock;
	bool ok;
	int r;

	if (zf_sim_open(sim, &explore_report, &dev) < 0)
		return complain("the device cannot be opened again", 0);
	r = mount(record, dev, &(struct judgement){0}, &clock, &fs);
	if (r < 0) {
		zf_dev_close(dev);
		return complain("the second mount fails", r);
	}
	ok = workload_compare_content(fs, oracle) && (!written || check_later(fs));
	zf_fs_abandon(fs);
	ok = ok && check(dev, judgement);
	zf_dev_close(dev);
	return ok;
}

/* Closes the device. */
static bool second_life(const struct record *record, struct zf_sim *sim, struct zf_dev *dev,
			struct zf_fs *fs, struct oracle *oracle, const struct judgement *judgement)
{
	int lived = live_on(fs), r = 0;

	if (judgement->second_cut)
		zf_fs_abandon(fs);
	else
		r = zf_fs_unmount(fs);
	zf_dev_close(dev);
	if (lived < 0 && lived != -ENOSPC)
		return complain("writing after the recovery fails", lived);
	if (r < 0)
		return complain("the unmount after the recovery fails", r);
	if (judgement->second_cut)
		zf_sim_crash(sim, judgement->second_cut, ZF_SIM_CUT_DEVICE);
	return judge_again(record, sim, oracle, judgement, lived == 0);
}

/* Closes the device. */
static bool judge_mounted(const struct record *record, uint32_t cut_op, struct zf_sim *sim,
			  struct zf_dev *dev, struct zf_fs *fs, const struct judgement *judgement)
{
	struct oracle *oracle = oracle_of(record, cut_op, fs);
	bool ok;

	if (!oracle)
		complain("the tree cannot be read", 0);
	/* Inodes that had no name must be gone. */
	ok = oracle && workload_compare(fs, oracle) && workload_compare_statfs(fs, oracle, true);
	if (ok && judgement->go_on) {
		ok = second_life(record, sim, dev, fs, oracle, judgement);
	} else {
		zf_fs_abandon(fs);
		ok = ok && check(dev, judgement);
		zf_dev_close(dev);
	}
	oracle_free(oracle);
	return ok;
}

bool judge(const struct record *record, uint32_t op, struct zf_sim *sim,
	   const struct judgement *judgement)
{
	struct zf_dev *dev;
	struct zf_fs *fs;
	uint32_t clock;
	int r;

	if (zf_sim_open(sim, &explore_report, &dev) < 0)
		return complain("the device cannot be opened", 0);
	/* If write pointers may be below written data, the check must wait for the mount. */
	if (!judgement->host && !check(dev, judgement)) {
		zf_dev_close(dev);
		return false;
	}
	zf_sim_observe(sim, judgement->observe, judgement->observe_arg);
	r = mount(record, dev, judgement, &clock, &fs);
	zf_sim_observe(sim, NULL, NULL);
	if (judgement->trace && zf_trace_stop(NULL) < 0) {
		zf_fs_abandon(r == 0 ? fs : NULL);
		zf_dev_close(dev);
		return complain("the trace cannot be written", 0);
	}
	if (r < 0) {
		zf_dev_close(dev);
		return complain("mounting fails", r);
	}
	return judge_mounted(record, op, sim, dev, fs, judgement);
}
