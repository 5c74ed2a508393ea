/* SPDX-License-Identifier: MIT */
/* The device fails during a check: the check goes on, and reports what it could not read. */
#include <errno.h>
#include <string.h>

#include "fs/mount/format.h"
#include "sample.h"
#include "superblock/ring.h"
#include "sim/sim.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

struct rig {
	struct zf_sim *sim;
	struct zf_dev *dev;
	struct zf_super super;
	struct sample sample;
	unsigned int node_errors, data_errors, others;
};

static void count_message(void *arg, enum zf_report_level level, const char *message)
{
	struct rig *rig = arg;

	if (level != ZF_REPORT_ERROR)
		return;
	if (strncmp(message, "corrupt node at", 15) == 0 && strstr(message, "reading it failed"))
		rig->node_errors++;
	else if (strncmp(message, "corrupt data at", 15) == 0 && strstr(message, "failed"))
		rig->data_errors++;
	else
		rig->others++;
}

static int check(struct rig *rig, uint64_t *ret_errors)
{
	const struct zf_check_options options = {.data = true};
	const struct zf_report report = {.fn = count_message, .arg = rig};
	struct zf_check_counts counts = {0};
	int r;

	rig->node_errors = rig->data_errors = rig->others = 0;
	r = zf_check_run(rig->dev, &rig->super, &options, &report, &counts);
	*ret_errors = counts.errors;
	return r;
}

static void start(struct rig *rig)
{
	const struct zf_geometry geometry = {
		.zone_size = 4u << 20,
		.zone_capacity = 4u << 20,
		.zone_count = 32,
		.append_limit = 128u << 10,
	};
	const struct zf_format_options format = {.label = "faults", .fsid = {5}};
	const struct zf_mount_options mount = {0};
	const struct zf_super *newest;
	struct zf_fs *fs;
	unsigned int stepped_over;

	*rig = (struct rig){.sim = zf_sim_new(&geometry, 1)};
	assert_int_equal(zf_sim_open(rig->sim, NULL, &rig->dev), 0);
	assert_int_equal(zf_fs_format(rig->dev, &format, NULL), 0);
	assert_int_equal(zf_fs_mount(rig->dev, &mount, NULL, &fs), 0);
	sample_populate(&rig->sample, fs);
	assert_int_equal(zf_fs_syncfs(fs, &(struct zf_ctx){.may_wait = true}), 0);
	assert_int_equal(zf_ring_newest(zf_fs_ring(fs), &newest, &stepped_over), 0);
	rig->super = *newest;
	zf_fs_abandon(fs);
}

static void stop(struct rig *rig)
{
	zf_dev_close(rig->dev);
	zf_sim_free(rig->sim);
}

static void every_read_that_fails_once(void **state)
{
	struct rig rig;
	uint64_t errors, n = 0;

	(void)state;
	start(&rig);
	for (;;) {
		const struct zf_sim_fault fault = {.op = ZF_IO_READ, .nth = ++n, .error = -EIO};

		zf_sim_add_fault(rig.sim, &fault);
		assert_int_equal(check(&rig, &errors), 0);
		if (zf_sim_faults_left(rig.sim))
			break;
		/* Only an unread node is an error; data is read again in smaller pieces. */
		assert_int_equal(errors, rig.node_errors);
		assert_true(errors <= 1);
	}
	assert_true(n > 10);
	stop(&rig);
}

static void a_zone_of_data_that_cannot_be_read(void **state)
{
	struct rig rig;
	uint64_t errors;

	(void)state;
	start(&rig);
	assert_int_equal(check(&rig, &errors), 0);
	assert_int_equal(errors, 0);
	for (uint32_t zone = 2; zone < 32; zone++)
		if (zone != rig.super.meta_zone[0])
			zf_sim_set_zone_cond(rig.sim, zone, ZF_ZONE_OFFLINE);
	assert_int_equal(check(&rig, &errors), 0);
	assert_true(rig.data_errors > 0);
	assert_int_equal(rig.node_errors, 0);
	stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_read_that_fails_once),
		cmocka_unit_test(a_zone_of_data_that_cannot_be_read),
	};

	return cmocka_run_group_tests_name("check_faults", tests, NULL, NULL);
}
