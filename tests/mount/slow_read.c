/* SPDX-License-Identifier: MIT */
/*
 * Linked into a daemon, makes each read of an image that a thread waits for take 100 us longer: so
 * the device is none that has everything in memory, and reads behind each other do not wait where
 * they came (src/fuse/wait_here.h).
 */
#include <unistd.h>

#include "io/dev.h"

#define LONGER_US 100

int __real_zf_image_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
			 unsigned int iovcnt);
int __wrap_zf_image_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
			 unsigned int iovcnt);

int __wrap_zf_image_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
			 unsigned int iovcnt)
{
	usleep(LONGER_US);
	return __real_zf_image_read(dev, addr, iov, iovcnt);
}
