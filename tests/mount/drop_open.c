/* SPDX-License-Identifier: MIT */
/*
 * The daemon on a device that loses data that is not durable when the daemon is killed: linked with
 * --wrap=zf_image_open, so that the daemon opens its image through this file (support/drop_dev.h).
 *
 *      ZFUSE_DROP_SEED=N       draws which data is lost of what was not durable
 *      ZFUSE_DROP_DIE=N        it kills itself in the middle of the Nth durable write; 0: never
 */
#include <stdlib.h>

#include "io/image.h"
#include "support/drop_dev.h"

int __real_zf_image_open(const char *path, const struct zf_open_options *options,
			 const struct zf_report *report, struct zf_dev **ret_dev);
int __wrap_zf_image_open(const char *path, const struct zf_open_options *options,
			 const struct zf_report *report, struct zf_dev **ret_dev);

static uint64_t number_of(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : 0;
}

int __wrap_zf_image_open(const char *path, const struct zf_open_options *options,
			 const struct zf_report *report, struct zf_dev **ret_dev)
{
	struct zf_dev *image;
	int r = __real_zf_image_open(path, options, report, &image);

	if (r < 0)
		return r;
	if (options->read_only) {
		*ret_dev = image;
		return 0;
	}
	r = zf_drop_dev_new(image, number_of("ZFUSE_DROP_SEED"), number_of("ZFUSE_DROP_DIE"),
			    report, ret_dev);
	if (r < 0)
		zf_dev_close(image);
	return r;
}
