/* SPDX-License-Identifier: MIT */
/*
 * Zeroing in a conventional zone of an image, without writing the zeroes.
 *
 * What is wanted afterwards is space that is there, so that a durable overwrite costs the host one
 * write and no journal commit. Of what a host offers only FALLOC_FL_WRITE_ZEROES gives that:
 * PUNCH_HOLE gives the space back, ZERO_RANGE leaves it unwritten, and either costs the first
 * overwrite of each block about as much again as the write. The host has it where the device below
 * zeroes by unmapping; everywhere else the zeroes are written.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "io/image_device.h"
#include "io/sysfs.h"

/* Of a partition, the disk has it. */
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
	/* Its device could, but the host's kernel or filesystem cannot ask for it. */
	image->unmapping_refused = true;
	command->step = ZF_IMAGE_STEP_TRANSFER;
	return ZF_COMMAND_AGAIN;
}
