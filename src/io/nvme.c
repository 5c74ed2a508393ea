/* SPDX-License-Identifier: MIT */
#include "io/nvme.h"

#include <errno.h>

int zf_nvme_open(const char *path, const struct zf_open_options *options,
		 const struct zf_report *report, struct zf_dev **ret_dev)
{
	(void)options;
	(void)ret_dev;
	zf_report(report, ZF_REPORT_ERROR,
		  "%s: this build has no backend for NVMe character devices", path);
	return -EOPNOTSUPP;
}
