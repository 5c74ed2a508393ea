/* SPDX-License-Identifier: MIT */
/*
 * The commands of the NVM and Zoned Namespace command sets that zfuse sends, and what their
 * statuses mean. Pure functions: bytes in, bytes out.
 *
 * Specifications: NVMe Base, NVM Command Set and Zoned Namespace Command Set, 1.1 each or later.
 * The numbers are named as in libnvme; the layout is Linux's own, for io_uring and ioctl(2) alike.
 */
#ifndef ZF_IO_NVME_COMMAND_H
#define ZF_IO_NVME_COMMAND_H

#include <libnvme.h> /* in place of <linux/nvme_ioctl.h>, which it does not go with */

#include "io/dev.h"

#ifndef NVME_IOCTL_IO64_CMD_VEC /* of Linux 5.18 */
#define NVME_IOCTL_IO64_CMD_VEC _IOWR('N', 0x49, struct nvme_passthru_cmd64)
#endif

/* What one command carries: a request, or a part of one. */
struct zf_nvme_piece {
	enum zf_io_op op;
	bool fua;
	uint64_t addr; /* bytes; the zone's start for APPEND, RESET and FINISH */
	uint64_t len;  /* bytes */
	/*
	 * READ, WRITE, APPEND. Of two segments or more, the kernel may look at the vector itself
	 * until the command has completed.
	 */
	const struct iovec *iov;
	unsigned int iovcnt;
};

/* The most bytes of one command: its length is 16 bits of blocks, less one. */
#define ZF_NVME_LEN_MAX ((uint64_t)65536 * ZF_BLOCK_SIZE)

/* For a piece that is valid: see zf_nvme_check(). */
void zf_nvme_encode(uint32_t nsid, const struct zf_nvme_piece *piece,
		    struct nvme_uring_cmd *ret_cmd);

/* The two forms of it: data_len counts segments, or bytes. */
static inline bool zf_nvme_is_vectored(const struct zf_nvme_piece *piece)
{
	return piece->iovcnt > 1;
}

/*
 * What a command has come back with: 0, a status (positive; the bits above its type and code do not
 * matter), or -errno of the kernel. The result is 0 or an error of io/dev.h.
 */
int zf_nvme_error(int status);

/* "zone is full (NVMe status 0x41b9)", or what errno means. Returns buf. */
#define ZF_NVME_STATUS_TEXT_MAX 96
const char *zf_nvme_status_text(int status, char buf[ZF_NVME_STATUS_TEXT_MAX]);

/*
 * Has a read failed in a way that may pass? Only reads are sent again: of anything that changes the
 * drive nobody knows whether it was carried out.
 */
bool zf_nvme_may_pass(int status);

/* Was it never begun? Then it may be sent again, whatever it is. */
bool zf_nvme_is_to_be_repeated(int status);

#endif
