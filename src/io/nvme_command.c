/* SPDX-License-Identifier: MIT */
#include "io/nvme_command.h"

#include "base/bits.h"
#include "base/plant.h"

#define FUA (1u << 30)

static const uint8_t opcodes[ZF_IO_OP_COUNT] = {
	[ZF_IO_READ] = nvme_cmd_read,		[ZF_IO_WRITE] = nvme_cmd_write,
	[ZF_IO_APPEND] = nvme_zns_cmd_append,	[ZF_IO_ZEROES] = nvme_cmd_write_zeroes,
	[ZF_IO_RESET] = nvme_zns_cmd_mgmt_send, [ZF_IO_FINISH] = nvme_zns_cmd_mgmt_send,
	[ZF_IO_FLUSH] = nvme_cmd_flush,
};

static void set_data(const struct zf_nvme_piece *piece, struct nvme_uring_cmd *cmd)
{
	if (zf_nvme_command_is_vectored(piece)) {
		cmd->addr = (uintptr_t)piece->iov;
		cmd->data_len = piece->iovcnt;
	} else {
		cmd->addr = (uintptr_t)piece->iov->iov_base;
		cmd->data_len = (uint32_t)piece->len;
	}
}

void zf_nvme_command_encode(uint32_t nsid, const struct zf_nvme_piece *piece,
			    struct nvme_uring_cmd *ret_cmd)
{
	uint64_t lba = piece->addr >> ZF_BLOCK_SHIFT;
	struct nvme_uring_cmd cmd = {.opcode = opcodes[piece->op], .nsid = nsid};

	if (piece->op != ZF_IO_FLUSH) {
		cmd.cdw10 = (uint32_t)lba;
		cmd.cdw11 = (uint32_t)(lba >> 32);
	}
	switch (piece->op) {
	case ZF_IO_READ:
	case ZF_IO_WRITE:
	case ZF_IO_APPEND:
		set_data(piece, &cmd);
		/* fallthrough */
	case ZF_IO_ZEROES:
		cmd.cdw12 = (uint32_t)(piece->len >> ZF_BLOCK_SHIFT) - 1;
		if (piece->fua && !ZF_PLANTED(ZF_BUG_NVME_FUA))
			cmd.cdw12 |= FUA;
		break;
	case ZF_IO_RESET:
		cmd.cdw13 = NVME_ZNS_ZSA_RESET;
		break;
	case ZF_IO_FINISH:
		cmd.cdw13 = NVME_ZNS_ZSA_FINISH;
		break;
	case ZF_IO_FLUSH:
	case ZF_IO_OP_COUNT:
		break;
	}
	*ret_cmd = cmd;
}
