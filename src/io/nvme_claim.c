/* SPDX-License-Identifier: MIT */
#include "io/nvme_claim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/image_file.h"
#include "io/nvme_name.h"
#include "io/sysfs.h"

static int not_nvme(const struct zf_report *report, const char *path)
{
	zf_report(report, ZF_REPORT_ERROR,
		  "%s: not the character device of an NVMe namespace (/dev/ng0n1 is one)", path);
	return -ENODEV;
}

/* The block device's path, beside the one that `path` leads to. */
static int find_block_path(const char *path, const struct zf_report *report, char *buf, size_t size)
{
	char real[PATH_MAX];
	struct stat st;

	if (!realpath(path, real) || stat(real, &st) < 0)
		return zf_image_file_fail(report, path, -errno, "cannot be found");
	if (!S_ISCHR(st.st_mode) || zf_nvme_block_name(real, buf, size) < 0)
		return not_nvme(report, path);
	return 0;
}

/* The kernel hides block devices that its block layer cannot serve. */
static bool is_hidden(const char *block_name)
{
	bool has_sysfs = access("/sys/block", F_OK) == 0;
	char directory[PATH_MAX];

	snprintf(directory, sizeof(directory), "/sys/block/%s", block_name);
	return zf_sysfs_read_number(directory, "hidden", has_sysfs) != 0;
}

/* The block device comes first: users of either path hold it. */
static int claim_block(const char *block_path, const struct zf_open_options *options,
		       const struct zf_report *report, struct zf_nvme_claim *claim)
{
	struct zf_image_file file;
	int r;

	if (is_hidden(claim->block_name))
		return 0;
	r = zf_image_file_open_for(block_path, options, true, report, &file);
	if (r < 0)
		return r;
	claim->block_fd = file.fd;
	if (fcntl(file.fd, F_GETFL) & O_DIRECT)
		claim->read_fd = file.fd;
	return 0;
}

int zf_nvme_claim(const char *path, const struct zf_open_options *options,
		  const struct zf_report *report, struct zf_nvme_claim *ret_claim)
{
	struct zf_nvme_claim claim = {.char_fd = -1, .block_fd = -1, .read_fd = -1};
	char block_path[PATH_MAX];
	_zf_close_ int fd = -1;
	int r;

	r = find_block_path(path, report, block_path, sizeof(block_path));
	if (r < 0)
		return r;
	snprintf(claim.block_name, sizeof(claim.block_name), "%s", strrchr(block_path, '/') + 1);
	fd = open(path, (options->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	if (fd < 0)
		return zf_image_file_fail(report, path, -errno,
					  "cannot be opened (docs/devices.md: Permissions)");
	r = claim_block(block_path, options, report, &claim);
	if (r == 0)
		r = zf_image_file_lock(fd, path, !options->read_only, options->lock_wait_ms,
				       report);
	if (r < 0) {
		zf_nvme_unclaim(&claim);
		return r;
	}
	claim.char_fd = zf_steal_fd(&fd);
	*ret_claim = claim;
	return 0;
}

void zf_nvme_unclaim(struct zf_nvme_claim *claim)
{
	if (claim->char_fd >= 0)
		close(claim->char_fd);
	if (claim->block_fd >= 0)
		close(claim->block_fd);
	claim->char_fd = claim->block_fd = claim->read_fd = -1;
}
