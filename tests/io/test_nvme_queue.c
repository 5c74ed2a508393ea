/* SPDX-License-Identifier: MIT */
/*
 * Requests become commands. This test plays the drive: it takes the bytes of the commands, carries
 * the commands out in any order and by the rules of zones, and fails those that the test chooses.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io/nvme_queue.h"
#include "io/nvme_status.h"
#include "io/zone_rules.h"
#include "io_util.h"
#include "sim/rng.h"

#define BLOCK	  ((uint64_t)ZF_BLOCK_SIZE)
#define ZONE_SIZE (64 * BLOCK)
#define CAPACITY  (48 * BLOCK)
#define ZONES	  8u

#define NSID	  7

static const struct zf_nvme_drive drive = {
	.geometry = {.zone_size = ZONE_SIZE,
		     .zone_capacity = CAPACITY,
		     .zone_count = ZONES,
		     .append_limit = 4 * BLOCK},
	.transfer_max = 8 * BLOCK,
	.zeroes_max = 20 * BLOCK,
};

static struct zf_nvme_drive described; /* the same, but for what a test changes */
static struct zf_nvme_queue queue;
static struct zf_zone_rules rules;
static uint8_t *bytes;

/* What the drive has been sent and has not answered, in the order of sending. */
static struct sent {
	struct zf_nvme_command *command;
	struct nvme_uring_cmd cmd;
	bool vectored;
} sent[ZF_NVME_IN_FLIGHT_MAX];
static unsigned int sent_count;

static int setup(void **state)
{
	described = drive;
	zf_nvme_queue_init(&queue, &described);
	sent_count = 0;
	bytes = calloc(ZONES, ZONE_SIZE);
	return bytes ? zf_zone_rules_init(&rules, &drive.geometry) : -1;
}

static int teardown(void **state)
{
	assert_int_equal(sent_count, 0);
	zf_zone_rules_deinit(&rules);
	free(bytes);
	return 0;
}

/* ---- the drive ---- */

static void send_command(struct zf_nvme_command *command)
{
	struct sent *slot = &sent[sent_count++];

	assert_true(sent_count <= ZF_NVME_IN_FLIGHT_MAX);
	slot->command = command;
	if (command->refused)
		return;
	zf_nvme_command_encode(NSID, &command->piece, &slot->cmd);
	slot->vectored = zf_nvme_command_is_vectored(&command->piece);
	assert_int_equal(slot->cmd.nsid, NSID);
}

/* The data of a command, as one piece of memory: into or out of `place`. */
static void move_data(const struct sent *slot, uint8_t *place, uint64_t len, bool out)
{
	struct iovec one = {(void *)(uintptr_t)slot->cmd.addr, slot->cmd.data_len};
	const struct iovec *iov = slot->vectored ? (void *)(uintptr_t)slot->cmd.addr : &one;
	unsigned int count = slot->vectored ? slot->cmd.data_len : 1;
	uint64_t sum = 0;

	for (unsigned int i = 0; i < count; i++) {
		if (out)
			memcpy(iov[i].iov_base, place + sum, iov[i].iov_len);
		else
			memcpy(place + sum, iov[i].iov_base, iov[i].iov_len);
		sum += iov[i].iov_len;
	}
	assert_int_equal(sum, len);
}

static int status_of(int r)
{
	return r == 0	      ? 0
	       : r == -ENOSPC ? 0x41b9
	       : r == -EIO    ? 0x41bc
	       : r == -EINVAL ? 0x4002
			      : 0x4006;
}

static int read_out(const struct sent *slot, uint64_t addr, uint64_t len)
{
	assert_true(len <= drive.transfer_max);
	if (addr % ZONE_SIZE + len > ZONE_SIZE)
		return 0x41b8;
	move_data(slot, bytes + addr, len, true);
	return 0;
}

static int change(const struct sent *slot, enum zf_io_op op, uint64_t addr, uint64_t len,
		  uint64_t *ret_lba)
{
	struct iovec any = {(void *)BLOCK, len};
	struct zf_io io = {.op = op, .addr = addr, .len = len, .iov = &any, .iovcnt = 1};
	uint64_t at;
	int r = zf_zone_rules_apply(&rules, &io, &at);

	if (r < 0)
		return status_of(r);
	*ret_lba = at / BLOCK;
	if (op == ZF_IO_ZEROES)
		memset(bytes + at, 0, len);
	else if (op == ZF_IO_WRITE || op == ZF_IO_APPEND)
		move_data(slot, bytes + at, len, false);
	else if (op == ZF_IO_RESET)
		memset(bytes + at, 0xdd, ZONE_SIZE);
	return 0;
}

/* Returns the status. */
static int execute(const struct sent *slot, uint64_t *ret_lba)
{
	uint64_t addr = (slot->cmd.cdw10 | (uint64_t)slot->cmd.cdw11 << 32) * BLOCK;
	uint64_t len = ((slot->cmd.cdw12 & 0xffff) + UINT64_C(1)) * BLOCK;

	if (slot->command->refused)
		return 0;
	switch (slot->cmd.opcode) {
	case 0x00:
		return 0;
	case 0x01:
		assert_true(len <= drive.transfer_max);
		return change(slot, ZF_IO_WRITE, addr, len, ret_lba);
	case 0x02:
		return read_out(slot, addr, len);
	case 0x08:
		assert_true(len <= drive.zeroes_max);
		return change(slot, ZF_IO_ZEROES, addr, len, ret_lba);
	case 0x79:
		assert_true(slot->cmd.cdw13 == 4 || slot->cmd.cdw13 == 2);
		return change(slot, slot->cmd.cdw13 == 4 ? ZF_IO_RESET : ZF_IO_FINISH, addr, 0,
			      ret_lba);
	case 0x7d:
		return change(slot, ZF_IO_APPEND, addr, len, ret_lba);
	}
	fail_msg("opcode %#x", slot->cmd.opcode);
	return -1;
}

static struct sent take(unsigned int i)
{
	struct sent slot = sent[i];

	assert_true(i < sent_count);
	memmove(&sent[i], &sent[i + 1], (--sent_count - i) * sizeof(sent[0]));
	return slot;
}

/* ---- what the ring does ---- */

/* The done() of each request, which the queue must not call itself. */
static void done(struct zf_io *io)
{
	fail_msg("the queue itself calls nobody");
}

static void submit(struct zf_io *io)
{
	struct zf_nvme_command *command;

	io->done = done;
	io->result = 1;
	command = zf_nvme_queue_add(&queue, io);
	if (command)
		send_command(command);
}

/* Command i comes back with this status. Returns the request that has ended, or NULL. */
static struct zf_io *answer(unsigned int i, int status, uint64_t lba)
{
	struct sent slot = take(i);
	struct zf_io *io = slot.command->base.io;
	int r = zf_nvme_queue_step(&queue, slot.command, status, lba);
	struct zf_nvme_command *another;

	if (r > 0) {
		send_command(slot.command);
		return NULL;
	}
	assert_int_equal(io->result, 1); /* once */
	io->result = r;
	another = zf_nvme_queue_release(&queue, slot.command);
	if (another)
		send_command(another);
	return io;
}

static struct zf_io *carry_out(unsigned int i)
{
	uint64_t lba = UINT64_MAX;
	int status = execute(&sent[i], &lba);

	return answer(i, status, lba);
}

static int run(struct zf_io *io)
{
	submit(io);
	while (sent_count > 0)
		carry_out(0);
	return io->result;
}

/* ---- pieces ---- */

static void is_piece(unsigned int i, uint8_t opcode, uint64_t block, uint64_t blocks)
{
	assert_true(i < sent_count);
	assert_int_equal(sent[i].cmd.opcode, opcode);
	assert_int_equal(sent[i].cmd.cdw10, block);
	assert_int_equal(sent[i].cmd.cdw12 & 0xffff, blocks - 1);
}

/* 30 blocks from block 50 on: the zone ends at 64, and eight go at a time. */
static void a_large_read_is_sent_in_pieces_that_stay_in_their_zone(void **state)
{
	uint8_t *buf = blocks_new(30 * BLOCK, 0);
	struct iovec iov[3] = {
		{buf, 3 * BLOCK}, {buf + 3 * BLOCK, 20 * BLOCK}, {buf + 23 * BLOCK, 7 * BLOCK}};
	struct zf_io io = {
		.op = ZF_IO_READ, .addr = 50 * BLOCK, .len = 30 * BLOCK, .iov = iov, .iovcnt = 3};

	blocks_fill(bytes + 50 * BLOCK, 30 * BLOCK, 77);
	submit(&io);
	is_piece(0, 0x02, 50, 8);
	assert_true(sent[0].vectored);
	assert_int_equal(sent[0].cmd.data_len, 2);
	assert_null(carry_out(0));
	is_piece(0, 0x02, 58, 6);
	assert_false(sent[0].vectored);
	assert_null(carry_out(0));
	is_piece(0, 0x02, 64, 8);
	assert_null(carry_out(0));
	is_piece(0, 0x02, 72, 8);
	assert_ptr_equal(carry_out(0), &io);
	assert_int_equal(io.result, 0);
	assert_true(blocks_are(buf, 30 * BLOCK, 77));
	free(buf);
}

static void a_large_write_is_sent_in_pieces_each_of_them_durable(void **state)
{
	uint8_t *buf = blocks_new(20 * BLOCK, 5);
	struct iovec iov = {buf, 20 * BLOCK};
	struct zf_io io = {.op = ZF_IO_WRITE,
			   .fua = true,
			   .addr = ZONE_SIZE,
			   .len = 20 * BLOCK,
			   .iov = &iov,
			   .iovcnt = 1};

	submit(&io);
	for (unsigned int i = 0; i < 3; i++) {
		is_piece(0, 0x01, 64 + i * 8, i < 2 ? 8 : 4);
		assert_int_equal(sent[0].cmd.cdw12 >> 30, 1);
		carry_out(0);
	}
	assert_int_equal(io.result, 0);
	assert_true(blocks_are(bytes + ZONE_SIZE, 20 * BLOCK, 5));
	free(buf);
}

static void zeroes_are_one_command_where_the_drive_has_it(void **state)
{
	struct zf_io io = {.op = ZF_IO_ZEROES, .addr = 0, .len = 30 * BLOCK};

	memset(bytes, 0xee, ZONE_SIZE);
	submit(&io);
	is_piece(0, 0x08, 0, 20);
	carry_out(0);
	is_piece(0, 0x08, 20, 10);
	carry_out(0);
	assert_int_equal(io.result, 0);
	assert_true(blocks_are_zero(bytes, 30 * BLOCK));
	assert_false(blocks_are_zero(bytes, 31 * BLOCK));
}

static void zeroes_are_written_where_the_drive_has_no_command(void **state)
{
	struct zf_io io = {.op = ZF_IO_ZEROES, .addr = 0, .len = 30 * BLOCK};

	described.zeroes_max = 0;
	memset(bytes, 0xee, ZONE_SIZE);
	submit(&io);
	is_piece(0, 0x01, 0, 8);
	while (sent_count > 0)
		carry_out(0);
	assert_int_equal(io.result, 0);
	assert_true(blocks_are_zero(bytes, 30 * BLOCK));
	assert_false(blocks_are_zero(bytes, 31 * BLOCK));
}

/* ---- order ---- */

static void writes_to_one_zone_take_turns_and_others_do_not_wait(void **state)
{
	uint8_t *buf = blocks_new(BLOCK, 1);
	struct iovec iov = {buf, BLOCK};
	struct zf_io io[5];
	/* Zeroes are writes at the pointer, too. */
	static const enum zf_io_op ops[5] = {ZF_IO_WRITE, ZF_IO_ZEROES, ZF_IO_WRITE, ZF_IO_WRITE,
					     ZF_IO_WRITE};
	static const uint64_t blocks[5] = {0, 1, 2, 64, 65};

	for (unsigned int i = 0; i < 5; i++) {
		io[i] = (struct zf_io){.op = ops[i],
				       .addr = blocks[i] * BLOCK,
				       .len = BLOCK,
				       .iov = &iov,
				       .iovcnt = 1};
		submit(&io[i]);
	}
	assert_int_equal(sent_count, 2);
	is_piece(0, 0x01, 0, 1);
	is_piece(1, 0x01, 64, 1);
	assert_ptr_equal(carry_out(1), &io[3]);
	assert_int_equal(sent_count, 2);
	is_piece(1, 0x01, 65, 1);
	assert_ptr_equal(carry_out(0), &io[0]);
	is_piece(1, 0x08, 1, 1);
	assert_ptr_equal(carry_out(1), &io[1]);
	is_piece(1, 0x01, 2, 1);
	assert_ptr_equal(carry_out(1), &io[2]);
	assert_ptr_equal(carry_out(0), &io[4]);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(io[i].result, 0);
	free(buf);
}

static void appends_to_one_zone_are_sent_at_once(void **state)
{
	uint8_t *buf = blocks_new(BLOCK, 1);
	struct iovec iov = {buf, BLOCK};
	struct zf_io io[3];

	for (unsigned int i = 0; i < 3; i++) {
		io[i] = (struct zf_io){.op = ZF_IO_APPEND,
				       .addr = 2 * ZONE_SIZE,
				       .len = BLOCK,
				       .iov = &iov,
				       .iovcnt = 1};
		submit(&io[i]);
	}
	assert_int_equal(sent_count, 3);
	carry_out(2);
	carry_out(0);
	carry_out(0);
	assert_int_equal(io[2].addr, 2 * ZONE_SIZE);
	assert_int_equal(io[0].addr, 2 * ZONE_SIZE + BLOCK);
	assert_int_equal(io[1].addr, 2 * ZONE_SIZE + 2 * BLOCK);
	free(buf);
}

/* There is one read more than commands; then come three writes in one zone, and a read. */
static void a_request_without_a_free_command_waits_in_line(void **state)
{
	enum { READS = ZF_NVME_IN_FLIGHT_MAX + 1, N = READS + 4 };
	uint8_t *buf = blocks_new(BLOCK, 1);
	struct iovec iov = {buf, BLOCK};
	struct zf_io *io = calloc(N, sizeof(*io));

	for (unsigned int i = 0; i < N; i++) {
		io[i] = (struct zf_io){.op = ZF_IO_READ, .len = BLOCK, .iov = &iov, .iovcnt = 1};
		if (i >= READS && i < N - 1) {
			io[i].op = ZF_IO_WRITE;
			io[i].addr = (i - READS) * BLOCK;
		}
		submit(&io[i]);
	}
	io[N - 1].addr = 9 * BLOCK;
	assert_int_equal(sent_count, ZF_NVME_IN_FLIGHT_MAX);
	carry_out(7);
	is_piece(sent_count - 1, 0x02, 0, 1);
	carry_out(7);
	is_piece(sent_count - 1, 0x01, 0, 1);
	carry_out(7); /* the other writes wait behind the first, which is no reason for the read */
	is_piece(sent_count - 1, 0x02, 9, 1);
	assert_int_equal(sent_count, ZF_NVME_IN_FLIGHT_MAX);
	while (sent_count > 0)
		carry_out(0);
	for (unsigned int i = 0; i < N; i++)
		assert_int_equal(io[i].result, 0);
	free(io);
	free(buf);
}

/* ---- refusals and failures ---- */

static int refusal(enum zf_io_op op, uint64_t addr, uint64_t len, void *base)
{
	struct iovec iov = {base, len};
	struct zf_io io = {.op = op, .addr = addr, .len = len, .iov = &iov, .iovcnt = 1};
	struct zf_zone_state before[ZONES];

	memcpy(before, rules.zones, sizeof(before));
	submit(&io);
	assert_int_equal(sent_count, 1); /* it comes back like all others */
	assert_true(sent[0].command->refused < 0);
	carry_out(0);
	assert_memory_equal(before, rules.zones, sizeof(before));
	return io.result;
}

static void what_breaks_a_rule_is_not_sent(void **state)
{
	uint8_t *buf = blocks_new(64 * BLOCK, 1);

	assert_int_equal(refusal(ZF_IO_APPEND, 0, 5 * BLOCK, buf), -EINVAL);
	assert_int_equal(refusal(ZF_IO_APPEND, BLOCK, BLOCK, buf), -EINVAL);
	assert_int_equal(refusal(ZF_IO_WRITE, 512, BLOCK, buf), -EINVAL);
	assert_int_equal(refusal(ZF_IO_WRITE, 0, 512, buf), -EINVAL);
	assert_int_equal(refusal(ZF_IO_WRITE, 0, BLOCK, buf + 512), -EINVAL);
	assert_int_equal(refusal(ZF_IO_WRITE, 0, 0, buf), -EINVAL);
	assert_int_equal(refusal(ZF_IO_ZEROES, 0, 0, NULL), -EINVAL);
	assert_int_equal(refusal(ZF_IO_READ, ZONES * ZONE_SIZE, BLOCK, buf), -EINVAL);
	assert_int_equal(refusal(ZF_IO_READ, ZONES * ZONE_SIZE - BLOCK, 2 * BLOCK, buf), -EINVAL);
	assert_int_equal(refusal(ZF_IO_RESET, BLOCK, 0, NULL), -EINVAL);
	assert_int_equal(refusal(ZF_IO_FINISH, ZONES * ZONE_SIZE, 0, NULL), -EINVAL);
	assert_int_equal(refusal(ZF_IO_WRITE, CAPACITY - BLOCK, 2 * BLOCK, buf), -ENOSPC);
	assert_int_equal(refusal(ZF_IO_WRITE, CAPACITY, BLOCK, buf), -ENOSPC);
	assert_int_equal(refusal(ZF_IO_ZEROES, ZONE_SIZE, CAPACITY + BLOCK, NULL), -ENOSPC);
	free(buf);
}

/* The kernel would let root write through a descriptor that is for reading. */
static void a_drive_that_is_only_read_is_not_changed(void **state)
{
	uint8_t *buf = blocks_new(BLOCK, 1);
	struct iovec iov = {buf, BLOCK};
	struct zf_io read = {.op = ZF_IO_READ, .len = BLOCK, .iov = &iov, .iovcnt = 1};

	described.read_only = true;
	assert_int_equal(refusal(ZF_IO_APPEND, 0, BLOCK, buf), -EROFS);
	assert_int_equal(refusal(ZF_IO_WRITE, 0, BLOCK, buf), -EROFS);
	assert_int_equal(refusal(ZF_IO_ZEROES, 0, BLOCK, NULL), -EROFS);
	assert_int_equal(refusal(ZF_IO_RESET, 0, 0, NULL), -EROFS);
	assert_int_equal(refusal(ZF_IO_FINISH, 0, 0, NULL), -EROFS);
	assert_int_equal(run(&read), 0);
	free(buf);
}

static void the_drives_status_is_the_requests_error(void **state)
{
	uint8_t *buf = blocks_new(BLOCK, 1);
	struct iovec iov = {buf, BLOCK};
	struct zf_io io = {.op = ZF_IO_FINISH, .addr = ZONE_SIZE};

	assert_int_equal(run(&io), 0);
	io = (struct zf_io){
		.op = ZF_IO_APPEND, .addr = ZONE_SIZE, .len = BLOCK, .iov = &iov, .iovcnt = 1};
	assert_int_equal(run(&io), -ENOSPC);
	assert_int_equal(io.addr, ZONE_SIZE);
	free(buf);
}

static void a_read_is_tried_again_where_that_may_help(void **state)
{
	uint8_t *buf = blocks_new(BLOCK, 1);
	struct iovec iov = {buf, BLOCK};
	struct zf_io io = {.op = ZF_IO_READ, .len = BLOCK, .iov = &iov, .iovcnt = 1};

	submit(&io);
	for (unsigned int i = 1; i < ZF_NVME_READS_MAX; i++)
		assert_null(answer(0, i % 2 ? 0x0006 : -EINTR, 0));
	assert_ptr_equal(carry_out(0), &io);
	assert_int_equal(io.result, 0);

	submit(&io);
	for (unsigned int i = 1; i < ZF_NVME_READS_MAX; i++)
		assert_null(answer(0, 0x0006, 0));
	assert_ptr_equal(answer(0, 0x0006, 0), &io);
	assert_int_equal(io.result, -EIO);

	submit(&io);
	assert_ptr_equal(answer(0, 0x4281, 0), &io);
	assert_int_equal(io.result, -EIO);
	free(buf);
}

static void an_append_is_tried_again_only_if_it_never_began(void **state)
{
	uint8_t *buf = blocks_new(BLOCK, 1);
	struct iovec iov = {buf, BLOCK};
	struct zf_io io = {.op = ZF_IO_APPEND, .len = BLOCK, .iov = &iov, .iovcnt = 1};

	submit(&io);
	for (unsigned int i = 0; i < 20; i++)
		assert_null(answer(0, i % 2 ? -EAGAIN : -ECANCELED, 0));
	assert_ptr_equal(carry_out(0), &io);
	assert_int_equal(io.result, 0);
	io.addr = 0;
	submit(&io);
	assert_ptr_equal(answer(0, 0x0006, 0), &io);
	assert_int_equal(io.result, -EIO);
	submit(&io);
	assert_ptr_equal(answer(0, -EINTR, 0), &io);
	assert_int_equal(io.result, -EIO);
	free(buf);
}

/* ---- all of it, at random ---- */

enum { SLOTS = 400, STEPS = 20000 };

struct slot {
	struct zf_io io;
	struct iovec iov[6];
	uint8_t *buf;
	uint64_t tag, zone;
	bool busy;
};

struct play {
	struct zf_rng rng;
	struct slot slots[SLOTS];
	unsigned int busy, in_zone[ZONES];
	uint64_t next[ZONES]; /* where the zone's stream of writes goes on, from its start */
	bool failed[ZONES];   /* until it is reset */
	uint64_t tag;
	uint64_t failures, written;
	bool faults;
};

#define LEN_MAX (30 * BLOCK)

/* Zones 0 to 3 are written at their pointer, the others are appended to. */
static bool is_stream(uint64_t zone)
{
	return zone < ZONES / 2;
}

static void cut(struct play *play, struct slot *slot, uint64_t len)
{
	unsigned int count = 0;
	uint64_t at = 0;

	while (at < len) {
		uint64_t left = (len - at) / BLOCK;
		uint64_t n = count == 5 ? left : 1 + zf_rng_below(&play->rng, left);

		slot->iov[count++] = (struct iovec){slot->buf + at, n * BLOCK};
		at += n * BLOCK;
	}
	slot->io.iov = slot->iov;
	slot->io.iovcnt = count;
	slot->io.len = len;
}

static void begin_data(struct play *play, struct slot *slot, uint64_t len)
{
	struct zf_io *io = &slot->io;

	slot->tag = ++play->tag;
	blocks_fill(slot->buf, len, slot->tag);
	cut(play, slot, len);
	if (!is_stream(slot->zone)) {
		io->op = ZF_IO_APPEND;
		io->addr = slot->zone * ZONE_SIZE;
		play->next[slot->zone] += len;
		return;
	}
	io->op = zf_rng_chance(&play->rng, 20) ? ZF_IO_ZEROES : ZF_IO_WRITE;
	io->addr = slot->zone * ZONE_SIZE + play->next[slot->zone];
	play->next[slot->zone] += len;
}

static void begin(struct play *play, struct slot *slot)
{
	uint64_t zone = zf_rng_below(&play->rng, ZONES);
	uint64_t limit = is_stream(zone) ? LEN_MAX : drive.geometry.append_limit;
	uint64_t len = (1 + zf_rng_below(&play->rng, limit / BLOCK)) * BLOCK;

	slot->zone = zone;
	slot->io = (struct zf_io){.fua = zf_rng_chance(&play->rng, 50)};
	if (zf_rng_chance(&play->rng, 20)) {
		slot->io.op = ZF_IO_READ;
		slot->io.addr = zf_rng_below(&play->rng, (ZONES * ZONE_SIZE - len) / BLOCK) * BLOCK;
		cut(play, slot, len);
	} else if (play->next[zone] + len <= CAPACITY && !play->failed[zone]) {
		begin_data(play, slot, len);
	} else if (play->in_zone[zone] == 0) {
		slot->io.op = ZF_IO_RESET;
		slot->io.addr = zone * ZONE_SIZE;
		play->failed[zone] = true; /* nothing else meanwhile */
	} else {
		return;
	}
	if (slot->io.op != ZF_IO_READ)
		play->in_zone[zone]++;
	slot->busy = true;
	play->busy++;
	submit(&slot->io);
}

static void verify(struct play *play, const struct slot *slot)
{
	const struct zf_io *io = &slot->io;

	if (io->op == ZF_IO_WRITE || io->op == ZF_IO_APPEND) {
		assert_true(blocks_are(bytes + io->addr, io->len, slot->tag));
		play->written += io->len;
	}
	if (io->op == ZF_IO_ZEROES)
		assert_true(blocks_are_zero(bytes + io->addr, io->len));
}

static void end(struct play *play, struct zf_io *io)
{
	struct slot *slot = ZF_CONTAINER_OF(io, struct slot, io);

	assert_true(slot->busy);
	slot->busy = false;
	play->busy--;
	if (io->op == ZF_IO_READ)
		return;
	play->in_zone[slot->zone]--;
	if (io->result == 0) {
		verify(play, slot);
		if (io->op == ZF_IO_RESET) {
			play->next[slot->zone] = 0;
			play->failed[slot->zone] = false;
		}
		return;
	}
	assert_true(play->faults);
	play->failures++;
	if (io->op != ZF_IO_RESET)
		play->failed[slot->zone] = true;
}

static void one_comes_back(struct play *play)
{
	unsigned int i = (unsigned int)zf_rng_below(&play->rng, sent_count);
	static const int faults[] = {0x4280, 0x0006, -EINTR, -ECANCELED, -EAGAIN, 0x4281};
	struct zf_io *io;
	uint64_t lba;

	if (play->faults && zf_rng_chance(&play->rng, 3)) {
		int fault = faults[zf_rng_below(&play->rng, ZF_ARRAY_SIZE(faults))];

		/* A failed command may have been carried out, unless its status says that it never
		 * began. */
		if (!zf_nvme_status_is_to_be_repeated(fault) && zf_rng_chance(&play->rng, 50))
			execute(&sent[i], &lba);
		io = answer(i, fault, 0);
	} else {
		io = carry_out(i);
	}
	if (io)
		end(play, io);
}

static void play_game(uint64_t seed, bool faults)
{
	struct play *play = calloc(1, sizeof(*play));

	print_message("seed %llu\n", (unsigned long long)seed);
	zf_rng_seed(&play->rng, seed);
	play->faults = faults;
	for (unsigned int i = 0; i < SLOTS; i++)
		play->slots[i].buf = blocks_new(LEN_MAX, 0);
	for (unsigned int step = 0; step < STEPS || play->busy > 0; step++) {
		struct slot *slot = &play->slots[zf_rng_below(&play->rng, SLOTS)];

		if (step < STEPS && !slot->busy && zf_rng_chance(&play->rng, 60))
			begin(play, slot);
		else if (sent_count > 0)
			one_comes_back(play);
		assert_true(play->busy == 0 || sent_count > 0); /* no request is forgotten */
	}
	assert_true(play->written > 100 * CAPACITY);
	assert_true((play->failures > 0) == faults);
	for (unsigned int i = 0; i < SLOTS; i++)
		free(play->slots[i].buf);
	free(play);
}

static void without_faults_every_request_succeeds(void **state)
{
	play_game(1, false);
}

static void with_faults_what_is_acknowledged_is_there(void **state)
{
	play_game(2, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_large_read_is_sent_in_pieces_that_stay_in_their_zone),
		cmocka_unit_test(a_large_write_is_sent_in_pieces_each_of_them_durable),
		cmocka_unit_test(zeroes_are_one_command_where_the_drive_has_it),
		cmocka_unit_test(zeroes_are_written_where_the_drive_has_no_command),
		cmocka_unit_test(writes_to_one_zone_take_turns_and_others_do_not_wait),
		cmocka_unit_test(appends_to_one_zone_are_sent_at_once),
		cmocka_unit_test(a_request_without_a_free_command_waits_in_line),
		cmocka_unit_test(what_breaks_a_rule_is_not_sent),
		cmocka_unit_test(a_drive_that_is_only_read_is_not_changed),
		cmocka_unit_test(the_drives_status_is_the_requests_error),
		cmocka_unit_test(a_read_is_tried_again_where_that_may_help),
		cmocka_unit_test(an_append_is_tried_again_only_if_it_never_began),
		cmocka_unit_test(without_faults_every_request_succeeds),
		cmocka_unit_test(with_faults_what_is_acknowledged_is_there),
	};
	struct CMUnitTest each[ZF_ARRAY_SIZE(tests)];

	for (size_t i = 0; i < ZF_ARRAY_SIZE(tests); i++) {
		each[i] = tests[i];
		each[i].setup_func = setup;
		each[i].teardown_func = teardown;
	}
	return cmocka_run_group_tests(each, NULL, NULL);
}
