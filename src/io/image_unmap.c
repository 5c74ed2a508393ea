/* SPDX-License-Identifier: MIT */
/*
 * Zeroing in a conventional zone of an image, without writing the zeroes.
 *
 * Afterwards the space must be allocated and written, so that a durable overwrite costs the host
 * one write and no journal commit. Only FALLOC_FL_WRITE_ZEROES of the host gives such space:
 * PUNCH_HOLE frees it, ZERO_RANGE leaves it unwritten, and both make the first overwrite of each
 * block cost about twice as much. The host has it if the device below zeroes by unmapping;
 * otherwise the zeroes are written.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "io/image_device.h"
#include "io/sysfs.h"

/* For a partition, the attribute is in the directory of the disk. */
bool zf_image_host_unmaps(int fd)
{
	char directory[64];
	struct stat st;
	dev_t device;

	if (fstat(fd, &st) < 0)
		return false;
	device = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	snprintf(directory, sizeof(directory), "/sys/dev/block/%u:%u", major(device),
		 minor(device));
	return zf_sysfs_read_number(directory, "queue/write_zeroes_unmap_max_bytes", 0) > 0 ||
	       zf_sysfs_read_number(directory, "../queue/write_zeroes_unmap_max_bytes", 0) > 0;
}

bool zf_image_unmaps_locked(const struct zf_image *image, const struct zf_io *io)
{
	return io->op == ZF_IO_ZEROES && !io->fua && image->dev.geometry.unmapping_zeroes &&
	       !image->unmapping_refused &&
	       zf_image_zone_of(image, io) < image->dev.geometry.conventional;
}

int zf_image_unmapped_locked(struct zf_image *image, struct zf_image_command *command, int res)
{
	if (res >= 0)
		return 0;
	if (res != -EOPNOTSUPP && res != -EINVAL && res != -ENOSYS)
		return zf_image_host_error(image, "zeroing", command->base.io->addr, res);
	/* The host's device can unmap, but the host's kernel or filesystem cannot ask it to. */
	image->unmapping_refused = true;
	command->step = ZF_IMAGE_STEP_TRANSFER;
	return ZF_COMMAND_AGAIN;
}
