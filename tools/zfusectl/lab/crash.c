/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sys/stat.h>

#include "lab/device.h"
#include "lab/image.h"
#include "lab/lab.h"
#include "sim/sim.h"

static int make_image(const struct zf_lab_run *run, const struct zf_args *args,
		      const struct zf_report *report)
{
	const struct zf_arg *outcome = &args->options[ZF_OPTION_OUTCOME];
	uint64_t at = args->options[ZF_OPTION_AT].number;
	struct zf_lab_device device;
	int r = zf_lab_run_check(run, at, report);

	if (r < 0)
		return r;
	zf_lab_device_init(&device, run);
	zf_lab_device_play(&device, at);
	zf_lab_device_fly(&device, at);
	zf_sim_crash(device.sim, outcome->given ? outcome->number : 1, ZF_SIM_CUT_DEVICE);
	r = zf_lab_image_make(args->operands[1], device.sim, &run->geometry, run->trace.header.fsid,
			      args->options[ZF_OPTION_FORCE].given, report);
	zf_lab_device_deinit(&device);
	return r;
}

static bool is_same(const char *a, const char *b)
{
	struct stat of_a, of_b;

	return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
	       of_a.st_ino == of_b.st_ino;
}

int zf_lab_crash_main(const struct zf_args *args)
{
	const struct zf_report report = {.fn = zf_report_stderr,
					 .arg = (void *)(uintptr_t)args->program};
	const char *data = args->options[ZF_OPTION_TRACE_DATA].text;
	struct zf_lab_run run;
	int r;

	if (!data)
		return zf_args_usage(args, "--trace-data=FILE is missing: what the run wrote, from "
					   "trace-data=FILE");
	if (!args->options[ZF_OPTION_AT].given)
		return zf_args_usage(args, "--at=N is missing: after which event the power is cut");
	if (is_same(args->operands[1], args->operands[0]) || is_same(args->operands[1], data))
		return zf_args_usage(args, "%s is what the image is made from: name another file",
				     args->operands[1]);
	if (zf_lab_run_load(args->operands[0], data, &report, &run) < 0)
		return ZF_EXIT_PROBLEMS;
	r = make_image(&run, args, &report);
	zf_lab_run_free(&run);
	return r < 0 ? ZF_EXIT_PROBLEMS : ZF_EXIT_OK;
}
