/* SPDX-License-Identifier: MIT */
/*
 * Carries out requests on the calling thread, one ioctl(2) per command, without the ring, so that
 * no other thread has to be woken. Not for writes at the pointer, which must keep their order with
 * the writes of other threads.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

#include "io/iov.h"
#include "io/nvme_device.h"
#include "io/nvme_piece.h"

/* The ioctl's struct is that of io_uring, followed by a result. */
_Static_assert(offsetof(struct nvme_passthru_cmd64, result) == sizeof(struct nvme_uring_cmd),
	       "one begins with the other");

/* Returns a status, see zf_nvme_status_error(). */
static int send_command(const struct zf_nvme *nvme, const struct zf_nvme_piece *piece,
			uint64_t *ret_result)
{
	struct nvme_passthru_cmd64 passthrough = {};
	struct nvme_uring_cmd cmd;
	int r;

	zf_nvme_command_encode(nvme->nsid, piece, &cmd);
	memcpy(&passthrough, &cmd, sizeof(cmd));
	r = ioctl(nvme->claim.char_fd,
		  zf_nvme_command_is_vectored(piece) ? NVME_IOCTL_IO64_CMD_VEC
						     : NVME_IOCTL_IO64_CMD,
		  &passthrough);
	*ret_result = passthrough.result;
	return r < 0 ? -errno : r;
}

static int carry_out(struct zf_nvme *nvme, struct zf_io *io)
{
	struct zf_nvme_command command;
	uint64_t lba = 0;
	int status = 0, r;

	zf_command_init(&command.base, io);
	zf_nvme_piece_begin(&nvme->drive, &command);
	r = command.refused;
	if (r == 0) {
		do {
			status = send_command(nvme, &command.piece, &lba);
			r = zf_nvme_piece_step(&nvme->drive, &command, status, lba);
		} while (r == ZF_COMMAND_AGAIN);
		if (r < 0)
			zf_nvme_report_failure(nvme, &command.piece, status);
	}
	zf_command_deinit(&command.base);
	return r;
}

int zf_nvme_run(struct zf_dev *dev, struct zf_io *io)
{
	if (io->op == ZF_IO_WRITE || io->op == ZF_IO_ZEROES)
		return ZF_DEV_NOT_HERE;
	return carry_out(zf_nvme_of(dev), io);
}

int zf_nvme_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov, unsigned int iovcnt)
{
	struct zf_io io = {.op = ZF_IO_READ,
			   .addr = addr,
			   .len = zf_iov_len(iov, iovcnt),
			   .iov = iov,
			   .iovcnt = iovcnt};

	return carry_out(zf_nvme_of(dev), &io);
}
