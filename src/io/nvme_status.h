/* SPDX-License-Identifier: MIT */
/* What the statuses of commands mean (io/nvme_command.h has the specifications). Pure functions. */
#ifndef ZF_IO_NVME_STATUS_H
#define ZF_IO_NVME_STATUS_H

#include <stdbool.h>

/*
 * What a command has come back with: 0, a status (positive; the bits above its type and code do not
 * matter), or -errno of the kernel. The result is 0 or an error of io/dev.h.
 */
int zf_nvme_status_error(int status);

/* "zone is full (NVMe status 0x41b9)", or what errno means. Returns buf. */
#define ZF_NVME_STATUS_TEXT_MAX 96
const char *zf_nvme_status_text(int status, char buf[ZF_NVME_STATUS_TEXT_MAX]);

/*
 * Has a read failed in a way that may pass? Only reads are sent again: of anything that changes the
 * drive nobody knows whether it was carried out.
 */
bool zf_nvme_status_may_pass(int status);

/* Was it never begun? Then it may be sent again, whatever it is. */
bool zf_nvme_status_is_to_be_repeated(int status);

#endif
