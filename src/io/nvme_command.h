/* SPDX-License-Identifier: MIT */
/*
 * The commands of the NVM and Zoned Namespace command sets that zfuse sends. Pure functions: bytes
 * in, bytes out. The statuses of completed commands: io/nvme_status.h.
 *
 * Specifications: NVMe Base, NVM Command Set and Zoned Namespace Command Set, 1.1 each or later.
 * The numbers are named as in libnvme; the layout is Linux's own, for io_uring and ioctl(2) alike.
 */
#ifndef ZF_IO_NVME_COMMAND_H
#define ZF_IO_NVME_COMMAND_H

#include <libnvme.h> /* in place of <linux/nvme_ioctl.h>: the two conflict */

#include "io/dev.h"

#ifndef NVME_IOCTL_IO64_CMD_VEC /* of Linux 5.18 */
#define NVME_IOCTL_IO64_CMD_VEC _IOWR('N', 0x49, struct nvme_passthru_cmd64)
#endif

/* The request, or the part of a request, that one command carries. */
struct zf_nvme_piece {
	enum zf_io_op op;
	bool fua;
	uint64_t addr; /* bytes; the zone's start for APPEND, RESET and FINISH */
	uint64_t len;  /* bytes */
	/*
	 * READ, WRITE, APPEND. With two segments or more, the kernel may read the vector itself
	 * until the command has completed.
	 */
	const struct iovec *iov;
	unsigned int iovcnt;
};

/* The most bytes of one command: its length field has 16 bits, and holds blocks less one. */
#define ZF_NVME_LEN_MAX ((uint64_t)65536 * ZF_BLOCK_SIZE)

/* Encodes a piece that io/nvme_piece.h has accepted. */
void zf_nvme_command_encode(uint32_t nsid, const struct zf_nvme_piece *piece,
			    struct nvme_uring_cmd *ret_cmd);

/* True: data_len of the command counts segments. False: bytes. */
static inline bool zf_nvme_command_is_vectored(const struct zf_nvme_piece *piece)
{
	return piece->iovcnt > 1;
}

#endif
