/* SPDX-License-Identifier: MIT */
#include "io/zbd.h"

#include <errno.h>

int zf_zbd_open(const char *path, const struct zf_open_options *options,
		const struct zf_report *report, struct zf_dev **ret_dev)
{
	(void)options;
	(void)ret_dev;
	zf_report(report, ZF_REPORT_ERROR, "%s: this build has no backend for zoned block devices",
		  path);
	return -EOPNOTSUPP;
}
