/* SPDX-License-Identifier: MIT */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static int write_file(int fd, zf_output_fn *print, void *arg)
{
	FILE *out = fdopen(fd, "w");
	mode_t mask = umask(0);
	int r;

	umask(mask);
	if (!out) {
		close(fd);
		return -ENOMEM;
	}
	r = print(out, arg);
	if (r == 0 && (ferror(out) || fchmod(fd, 0666 & ~mask) < 0))
		r = -errno;
	return fclose(out) != 0 && r == 0 ? -errno : r;
}

static int replace_file(const char *path, zf_output_fn *print, void *arg)
{
	_zf_free_ char *beside = NULL;
	int fd, r;

	if (asprintf(&beside, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(beside, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = write_file(fd, print, arg);
	if (r == 0 && rename(beside, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(beside);
	return r;
}

int zf_output(const struct zf_args *args, const struct zf_report *report, zf_output_fn *print,
	      void *arg)
{
	const char *path = args->options[ZF_OPTION_OUTPUT].text;
	int r = path ? replace_file(path, print, arg) : print(stdout, arg);

	if (r < 0)
		zf_report(report, ZF_REPORT_ERROR, "%s: %s", path ? path : "standard output",
			  strerror(-r));
	if (r < 0)
		return ZF_EXIT_PROBLEMS;
	return path ? ZF_EXIT_OK : zf_args_flush(args);
}
