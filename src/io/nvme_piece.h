/* SPDX-License-Identifier: MIT */
/* Splits one request into pieces that the drive accepts: see io/nvme_queue.h. Needs no lock. */
#ifndef ZF_IO_NVME_PIECE_H
#define ZF_IO_NVME_PIECE_H

#include "io/nvme_queue.h"

/*
 * For a caller that carries a request out by itself, command by command, with a command struct of
 * its own, whose base was initialised with the request. begin sets the first piece; step is like
 * zf_nvme_queue_step(). During a write at the pointer no other write, append, reset or finish may be
 * under way in the zone.
 */
void zf_nvme_piece_begin(const struct zf_nvme_drive *drive, struct zf_nvme_command *command);
int zf_nvme_piece_step(const struct zf_nvme_drive *drive, struct zf_nvme_command *command,
		       int status, uint64_t lba);

#endif
