/* SPDX-License-Identifier: MIT */
/* What the statuses of commands mean (io/nvme_command.h has the specifications). Pure functions. */
#ifndef ZF_IO_NVME_STATUS_H
#define ZF_IO_NVME_STATUS_H

#include <stdbool.h>

/*
 * `status` of a completed command is 0, a status of the drive (positive; the bits above its type
 * and code do not matter), or -errno of the kernel. Returns 0 or an error of io/dev.h.
 */
int zf_nvme_status_error(int status);

/* "zone is full (NVMe status 0x41b9)", or what errno means. Returns buf. */
#define ZF_NVME_STATUS_TEXT_MAX 96
const char *zf_nvme_status_text(int status, char buf[ZF_NVME_STATUS_TEXT_MAX]);

/*
 * Has a read failed with an error that may be transient? Only reads are sent again: a failed
 * command that changes the drive may have been carried out.
 */
bool zf_nvme_status_may_pass(int status);

/* Was the command never begun? Then it may be sent again, whatever its operation. */
bool zf_nvme_status_is_to_be_repeated(int status);

#endif
