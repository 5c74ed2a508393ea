/* SPDX-License-Identifier: MIT */
/* One request, in pieces that the drive takes: see io/nvme_queue.h. Needs no lock. */
#ifndef ZF_IO_NVME_PIECE_H
#define ZF_IO_NVME_PIECE_H

#include "io/nvme_queue.h"

/*
 * For whoever carries a request out himself, command by command, with a command of his own, whose
 * base is that of the request: begin sets its first piece, step is as above. A write at the pointer
 * must have the zone to itself.
 */
void zf_nvme_piece_begin(const struct zf_nvme_drive *drive, struct zf_nvme_command *command);
int zf_nvme_piece_step(const struct zf_nvme_drive *drive, struct zf_nvme_command *command,
		       int status, uint64_t lba);

#endif
