/* SPDX-License-Identifier: MIT */
#include "fallocate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zfuse/ioctl.h>

static int complain(const char *path, int error)
{
	const char *why = strerror(error);

	if (error == EOPNOTSUPP)
		why = "not supported: it is not on zfuse, and its own filesystem does not do that";
	fprintf(stderr, "zfusectl fallocate: %s: %s\n", path, why);
	return ZF_EXIT_PROBLEMS;
}

static int run(const char *path, int mode, int64_t offset, int64_t len)
{
	int create = mode & FALLOC_FL_PUNCH_HOLE ? 0 : O_CREAT;
	int fd = open(path, O_RDWR | O_CLOEXEC | create, 0666), r;

	if (fd < 0)
		return complain(path, errno);
	if (mode == ZFUSE_FALLOC_FL_WRITE_ZEROES)
		r = zfuse_write_zeroes(fd, offset, len);
	else
		r = fallocate(fd, mode, offset, len);
	if (r < 0)
		r = complain(path, errno);
	if (close(fd) < 0 && r == 0)
		r = complain(path, errno);
	return r;
}

static int mode_of(const struct zf_args *args)
{
	static const struct {
		enum zf_option_id option;
		int mode;
	} modes[] = {
		{ZF_OPTION_KEEP_SIZE, FALLOC_FL_KEEP_SIZE},
		{ZF_OPTION_PUNCH_HOLE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE},
		{ZF_OPTION_WRITE_ZEROES, ZFUSE_FALLOC_FL_WRITE_ZEROES},
		{ZF_OPTION_ZERO_RANGE, FALLOC_FL_ZERO_RANGE},
	};
	int mode = 0;

	for (unsigned int i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (args->options[modes[i].option].given)
			mode |= modes[i].mode;
	return mode;
}

int zf_fallocate_main(const struct zf_args *args)
{
	const struct zf_arg *len = &args->options[ZF_OPTION_LENGTH];
	int mode = mode_of(args), what = mode & ~FALLOC_FL_KEEP_SIZE;

	if (!len->given)
		return zf_args_usage(args, "missing --length");
	if (what & (what - 1))
		return zf_args_usage(args,
				     "--punch-hole, --write-zeroes and --zero-range exclude each "
				     "other");
	if (what == ZFUSE_FALLOC_FL_WRITE_ZEROES && mode != what)
		return zf_args_usage(args, "--write-zeroes and --keep-size exclude each other");
	return run(args->operands[0], mode, (int64_t)args->options[ZF_OPTION_OFFSET].number,
		   (int64_t)len->number);
}
