/* SPDX-License-Identifier: MIT */
#include "ctl/ctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

int zf_ctl_path(dev_t st_dev, uid_t uid, char ret_path[ZF_CONTROL_PATH_MAX])
{
	const char *runtime = uid == geteuid() ? getenv("XDG_RUNTIME_DIR") : NULL;
	int n;

	if (uid == 0)
		n = snprintf(ret_path, ZF_CONTROL_PATH_MAX, "/run/zfuse/%u:%u.sock", major(st_dev),
			     minor(st_dev));
	else if (runtime && runtime[0] == '/')
		n = snprintf(ret_path, ZF_CONTROL_PATH_MAX, "%s/zfuse/%u:%u.sock", runtime,
			     major(st_dev), minor(st_dev));
	else
		n = snprintf(ret_path, ZF_CONTROL_PATH_MAX, "/run/user/%u/zfuse/%u:%u.sock", uid,
			     major(st_dev), minor(st_dev));
	return n < ZF_CONTROL_PATH_MAX ? 0 : -ENAMETOOLONG;
}
