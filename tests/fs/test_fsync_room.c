/* SPDX-License-Identifier: MIT */
/* fsync when the intent log has no room: fsync commits instead, and returns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "fs/mount/format.h"
#include "fs/core/fs.h"
#include "sim/sim.h"

#define KIB UINT64_C(1024)

static const struct zf_ctx ctx = {.may_wait = true};

static struct zf_fs *mount_new(struct zf_dev *dev)
{
	const struct zf_format_options format = {
		.fsid = {1}, .node_size = 4096, .metadata_copies = 1};
	const struct zf_mount_options options = {.cache_bytes = 256 * KIB,
						 .dirty_bytes = 256 * KIB};
	struct zf_fs *fs;

	assert_int_equal(zf_fs_format(dev, &format, NULL), 0);
	assert_int_equal(zf_fs_mount(dev, &options, NULL, &fs), 0);
	return fs;
}

/* With nothing but fsyncs the two zones of the log become full again and again. */
static void fsync_comes_back_however_full_the_log_is(void **state)
{
	const struct zf_geometry geometry = {
		.zone_size = 64 * KIB,
		.zone_capacity = 64 * KIB,
		.zone_count = 40,
		.append_limit = 64 * KIB,
		.volatile_cache = true,
	};
	struct zf_sim *sim = zf_sim_new(&geometry, 1);
	static uint8_t bytes[16 * 1024];
	struct zf_attr attr;
	struct zf_dev *dev;
	struct zf_fs *fs;

	assert_int_equal(zf_sim_open(sim, NULL, &dev), 0);
	fs = mount_new(dev);
	assert_int_equal(zf_fs_make(fs, &ctx, ZF_INO_ROOT, "file", S_IFREG | 0600, 0, NULL, &attr),
			 0);
	alarm(60); /* ends an fsync that does not return */
	for (unsigned int i = 0; i < 300; i++) {
		memset(bytes, (int)i, sizeof(bytes));
		assert_int_equal(zf_fs_write(fs, &ctx, attr.ino, i % 4 * sizeof(bytes), bytes,
					     sizeof(bytes), 0),
				 sizeof(bytes));
		assert_int_equal(zf_fs_fsync(fs, &ctx, attr.ino, false), 0);
	}
	alarm(0);
	zf_fs_forget(fs, attr.ino, 1);
	assert_int_equal(zf_fs_unmount(fs), 0);
	zf_dev_close(dev);
	zf_sim_free(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fsync_comes_back_however_full_the_log_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
