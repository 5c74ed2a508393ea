/* SPDX-License-Identifier: MIT */
#include "io/nvme_piece.h"

#include <errno.h>

#include "base/bits.h"
#include "io/nvme_status.h"
#include "io/zone_rules.h"

/* The source of zeroes for a drive that has no Write Zeroes. */
static _Alignas(ZF_BLOCK_SIZE) uint8_t zero_bytes[64 * 1024];

/* ---- what is refused before it is sent ---- */

static int check_data(const struct zf_io *io)
{
	if (io->len == 0 || !zf_is_aligned(io->addr | io->len, ZF_BLOCK_SIZE))
		return -EINVAL;
	if (io->op == ZF_IO_ZEROES)
		return 0;
	return zf_zone_rules_check_iov(io->iov, io->iovcnt, io->len);
}

/* The drive checks each zone's own capacity. This checks requests against the largest capacity. */
static int check(const struct zf_nvme_drive *drive, const struct zf_io *io)
{
	const struct zf_geometry *geometry = &drive->geometry;
	uint64_t size = geometry->zone_size * geometry->zone_count;
	uint64_t offset = io->addr % geometry->zone_size;
	int r;

	if (io->op == ZF_IO_FLUSH)
		return 0;
	if (drive->read_only && io->op != ZF_IO_READ)
		return -EROFS;
	if (io->addr >= size || io->len > size - io->addr)
		return -EINVAL;
	if (io->op == ZF_IO_RESET || io->op == ZF_IO_FINISH)
		return offset == 0 ? 0 : -EINVAL;
	r = check_data(io);
	if (r < 0 || io->op == ZF_IO_READ)
		return r;
	if (io->op == ZF_IO_APPEND && (offset != 0 || io->len > geometry->append_limit))
		return -EINVAL;
	return offset + io->len > geometry->zone_capacity ? -ENOSPC : 0;
}

/* ---- pieces ---- */

static uint64_t piece_len(const struct zf_nvme_drive *drive, const struct zf_io *io, uint64_t done)
{
	uint64_t left = io->len - done, zone_size = drive->geometry.zone_size;

	switch (io->op) {
	case ZF_IO_READ: /* not every drive reads across a zone's end */
		left = zf_min_u64(left, zone_size - (io->addr + done) % zone_size);
		return zf_min_u64(left, drive->transfer_max);
	case ZF_IO_WRITE:
		return zf_min_u64(left, drive->transfer_max);
	case ZF_IO_ZEROES:
		if (drive->zeroes_max > 0)
			return zf_min_u64(left, drive->zeroes_max);
		left = zf_min_u64(left, sizeof(zero_bytes));
		return zf_min_u64(left, drive->transfer_max);
	default:
		return left;
	}
}

static void set_zeroes(const struct zf_nvme_drive *drive, struct zf_nvme_command *command)
{
	struct zf_nvme_piece *piece = &command->piece;

	if (drive->zeroes_max > 0)
		return;
	command->zeroes = (struct iovec){zero_bytes, piece->len};
	piece->op = ZF_IO_WRITE;
	piece->iov = &command->zeroes;
	piece->iovcnt = 1;
}

static int set_segments(struct zf_nvme_command *command)
{
	struct zf_nvme_piece *piece = &command->piece;
	int r = zf_command_select(&command->base, piece->len);

	piece->iov = command->base.iov;
	piece->iovcnt = command->base.iovcnt;
	return r;
}

static int set_piece(const struct zf_nvme_drive *drive, struct zf_nvme_command *command)
{
	const struct zf_io *io = command->base.io;

	command->tries = 0;
	command->piece = (struct zf_nvme_piece){
		.op = io->op,
		.fua = io->fua,
		.addr = io->addr + command->base.done,
		.len = piece_len(drive, io, command->base.done),
	};
	if (io->op == ZF_IO_ZEROES)
		set_zeroes(drive, command);
	else if (io->len > 0)
		return set_segments(command);
	return 0;
}

void zf_nvme_piece_begin(const struct zf_nvme_drive *drive, struct zf_nvme_command *command)
{
	command->refused = check(drive, command->base.io);
	if (command->refused == 0)
		command->refused = set_piece(drive, command);
}

int zf_nvme_piece_step(const struct zf_nvme_drive *drive, struct zf_nvme_command *command,
		       int status, uint64_t lba)
{
	struct zf_io *io = command->base.io;
	int r;

	if (command->refused < 0)
		return command->refused;
	if (zf_nvme_status_is_to_be_repeated(status))
		return ZF_COMMAND_AGAIN;
	if (io->op == ZF_IO_READ && zf_nvme_status_may_pass(status) &&
	    ++command->tries < ZF_NVME_READS_MAX)
		return ZF_COMMAND_AGAIN;
	if (status != 0)
		return zf_nvme_status_error(status);
	if (io->op == ZF_IO_APPEND)
		io->addr = lba << ZF_BLOCK_SHIFT;
	command->base.done += command->piece.len;
	if (command->base.done == io->len)
		return 0;
	r = set_piece(drive, command);
	return r < 0 ? r : ZF_COMMAND_AGAIN;
}
