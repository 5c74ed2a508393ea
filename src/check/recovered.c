/* SPDX-License-Identifier: MIT */
#include "check/recovered.h"

#include <errno.h>

#include "fs/core/fs.h"
#include "io/overlay.h"

#define CACHE_BYTES (UINT64_C(16) << 20)

static int recover(struct zf_dev *overlay, const struct zf_report *report)
{
	const struct zf_mount_options options = {.cache_bytes = CACHE_BYTES};
	const struct zf_ctx ctx = {.may_wait = true};
	struct zf_fs *fs;
	int r = zf_fs_mount(overlay, &options, report, &fs);

	if (r < 0)
		return r;
	/* Commits what the mount has changed: intents finished, orphans deleted. */
	r = zf_fs_syncfs(fs, &ctx);
	zf_fs_abandon(fs);
	return r;
}

int zf_recovered_open(struct zf_dev *dev, const struct zf_report *report,
		      struct zf_dev **ret_overlay)
{
	struct zf_dev *overlay;
	int r = zf_overlay_open(dev, ZF_RECOVERED_BYTES_MAX, NULL, &overlay);

	if (r < 0)
		return r;
	r = recover(overlay, report);
	if (r < 0) {
		r = zf_overlay_is_full(overlay) ? -EFBIG : r;
		zf_dev_close(overlay);
		return r;
	}
	*ret_overlay = overlay;
	return 0;
}
