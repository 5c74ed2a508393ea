/* SPDX-License-Identifier: MIT */
/*
 * Makes an image that holds one of every kind of thing (check/sample.h), for tests that look at the
 * image from outside.
 *
 * usage: make_image PATH
 */
#include <stdio.h>
#include <stdlib.h>

#include "check/sample.h"
#include "fs/mount/format.h"
#include "io/image.h"

static char prefix[] = "make_image";
static const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};

static int populate(struct zf_dev *dev)
{
	const struct zf_format_options format = {.label = "sample", .fsid = {1, 2, 3}};
	const struct zf_mount_options mount = {0};
	struct sample sample = {0};
	struct zf_fs *fs;
	int r = zf_fs_format(dev, &format, &report);

	if (r == 0)
		r = zf_fs_mount(dev, &mount, &report, &fs);
	if (r < 0)
		return r;
	sample_populate(&sample, fs);
	return zf_fs_unmount(fs);
}

int main(int argc, char **argv)
{
	const struct zf_open_options options = {0};
	struct zf_geometry geometry;
	struct zf_dev *dev;
	int r;

	if (argc != 2)
		return EXIT_FAILURE;
	r = zf_image_parse_geometry("size=64M,zone-size=2M", &report, &geometry);
	if (r == 0)
		r = zf_image_create(argv[1], &geometry, true, &options, &report);
	if (r == 0)
		r = zf_image_open(argv[1], &options, &report, &dev);
	if (r < 0)
		return EXIT_FAILURE;
	r = populate(dev);
	zf_dev_close(dev);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
