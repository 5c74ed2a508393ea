/* SPDX-License-Identifier: MIT */
/* The intent log: can a mount read all that it may have to replay? */
#include <errno.h>
#include <string.h>

#include "check/state.h"
#include "log/read.h"

int zf_check_log(struct zf_check *check)
{
	struct zf_log_found found;
	int r = zf_log_read(check->dev, check->super, &check->report, &found);

	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		zf_report(&check->report, ZF_REPORT_ERROR, "the log cannot be read: %s",
			  strerror(-r));
		return 0;
	}
	if (found.unreadable > 0)
		zf_check_corrupt(check, "log", check->super->address,
				 "%" PRIu64
				 " blocks cannot be read, expected all: changes that became "
				 "durable after this superblock may be lost",
				 found.unreadable);
	zf_log_found_free(&found);
	return 0;
}
