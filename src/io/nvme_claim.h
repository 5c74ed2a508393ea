/* SPDX-License-Identifier: MIT */
/*
 * Claims an NVMe namespace, so that no other program uses it: neither through its character device,
 * which has no O_EXCL, nor through its block device. The block device is held like that of an image
 * (io/image_file.h: O_EXCL and flock), and the character device is locked with flock.
 */
#ifndef ZF_IO_NVME_CLAIM_H
#define ZF_IO_NVME_CLAIM_H

#include "io/open.h"

struct zf_nvme_claim {
	int char_fd;
	int block_fd; /* -1: the kernel has no block device for it */
	int read_fd;  /* block_fd, if it reads past the page cache; else -1 */
	char block_name[64];
};

/*
 * Claims the namespace whose character device is at `path`. -ENODEV: `path` is no such device.
 * -EBUSY, -EACCES, -ENOENT and others. All are reported.
 */
int zf_nvme_claim(const char *path, const struct zf_open_options *options,
		  const struct zf_report *report, struct zf_nvme_claim *ret_claim);

void zf_nvme_unclaim(struct zf_nvme_claim *claim);

#endif
