/* SPDX-License-Identifier: MIT */
/*
 * Holding an NVMe namespace, so that nobody else uses it: neither through its character device,
 * which knows no O_EXCL, nor through its block device. The block device is held like that of an
 * image (io/image_file.h: O_EXCL and flock), and the character device is locked with flock.
 */
#ifndef ZF_IO_NVME_CLAIM_H
#define ZF_IO_NVME_CLAIM_H

#include "io/open.h"

struct zf_nvme_claim {
	int char_fd;
	int block_fd; /* -1: the kernel has no block device for it */
	int read_fd;  /* the same, if it reads past the page cache; else -1 */
	char block_name[64];
};

/*
 * Takes hold of the namespace whose character device is at `path`. -ENODEV: it is none. -EBUSY,
 * -EACCES, -ENOENT and others: all are reported.
 */
int zf_nvme_claim(const char *path, const struct zf_open_options *options,
		  const struct zf_report *report, struct zf_nvme_claim *ret_claim);

void zf_nvme_unclaim(struct zf_nvme_claim *claim);

#endif
