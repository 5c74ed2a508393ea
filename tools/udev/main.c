/* SPDX-License-Identifier: MIT */
/*
 * zfuse_id: the program that udev runs for a disk (IMPORT{program} of 61-zfuse.rules):
 *
 *      zfuse_id DEVICE
 *
 * Prints what libblkid would print if it knew zfuse: ID_FS_TYPE and the like, a line each. Exit
 * status: 0: found; 2: there is no zfuse; 1: an error.
 */
#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "udev/find.h"

#define ENCODED_MAX (4 * ZF_SUPER_LABEL_SIZE) /* \xHH for each byte */

enum { FOUND = 0, FAILED = 1, NOTHING = 2 };

/*
 * Direct I/O sees writes that bypassed the kernel's block layer. Some filesystems do not have it.
 */
static int open_device(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_DIRECT);

	if (fd < 0 && errno == EINVAL)
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd;
}

/*
 * udev's own rules have two forms of a value: encoded, for names of links, and with some bytes
 * replaced. The second form would keep quotes in a label, which have a meaning for udev and
 * scripts. So both forms are encoded here.
 */
static void print_value(const char *name, const char *value)
{
	char encoded[ENCODED_MAX + 1];

	if (value[0] != '\0' && blkid_encode_string(value, encoded, sizeof(encoded)) == 0)
		printf("ID_FS_%s=%s\nID_FS_%s_ENC=%s\n", name, encoded, name, encoded);
}

int main(int argc, char **argv)
{
	struct zf_found found;
	_zf_close_ int fd = -1;

	if (argc != 2) {
		fprintf(stderr, "usage: zfuse_id DEVICE\n");
		return FAILED;
	}
	fd = open_device(argv[1]);
	if (fd < 0) {
		fprintf(stderr, "zfuse_id: %s: %s\n", argv[1], strerror(errno));
		return FAILED;
	}
	if (zf_find_super(fd, &found) < 0)
		return NOTHING;
	puts("ID_FS_TYPE=zfuse\nID_FS_USAGE=filesystem");
	print_value("UUID", found.uuid);
	print_value("LABEL", found.label);
	return fflush(stdout) == 0 ? FOUND : FAILED;
}
