/* SPDX-License-Identifier: MIT */
#include "meter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "text.h"

#define SECOND_NS    INT64_C(1000000000)
#define LINE_NS	     (SECOND_NS / 5)

#define LINE_WIDTH   79
#define AMOUNTS_SIZE (3 * ZF_TEXT_SIZE_MAX + 16)

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND_NS + now.tv_nsec;
}

void zf_meter_begin(struct zf_meter *meter, enum zf_meter_mode mode, const char *unit)
{
	*meter = (struct zf_meter){.unit = unit, .start_ns = now_ns(), .mode = mode};
	meter->shown_ns = meter->start_ns;
	if (mode == ZF_METER_LINE && !isatty(STDERR_FILENO))
		meter->mode = ZF_METER_OFF;
}

void zf_meter_init(struct zf_meter *meter, const struct zf_args *args, const char *unit)
{
	/* The words of --progress. */
	static const enum zf_meter_mode modes[] = {ZF_METER_LINE, ZF_METER_JSON, ZF_METER_OFF};
	uint64_t asked = args->options[ZF_OPTION_PROGRESS].number;

	zf_meter_begin(meter, args->options[ZF_OPTION_QUIET].given ? ZF_METER_OFF : modes[asked],
		       unit);
}

static double seconds(const struct zf_meter *meter)
{
	return (double)(now_ns() - meter->start_ns) / (double)SECOND_NS;
}

static double rate(const struct zf_meter *meter)
{
	double s = seconds(meter);

	return s > 0 ? (double)meter->done / s : 0;
}

/* Negative: unknown. */
static double seconds_left(const struct zf_meter *meter)
{
	if (meter->done == 0 || meter->total < meter->done)
		return -1;
	return (double)(meter->total - meter->done) / rate(meter);
}

static void print_json(const struct zf_meter *meter)
{
	double left = seconds_left(meter);

	fprintf(stderr, "{\"unit\":\"%s\",\"done\":%" PRIu64, meter->unit, meter->done);
	if (meter->total)
		fprintf(stderr, ",\"total\":%" PRIu64, meter->total);
	fprintf(stderr, ",\"seconds\":%.3f,\"per_second\":%.1f", seconds(meter), rate(meter));
	if (left >= 0)
		fprintf(stderr, ",\"seconds_left\":%.1f", left);
	fputs("}\n", stderr);
}

static const char *print_amount(const struct zf_meter *meter, uint64_t amount,
				char buf[ZF_TEXT_SIZE_MAX])
{
	if (strcmp(meter->unit, "bytes") == 0)
		return zf_text_size(amount, buf);
	snprintf(buf, ZF_TEXT_SIZE_MAX, "%" PRIu64 " %s", amount, meter->unit);
	return buf;
}

/* "1.2G of 2.7G, 310M/s, ", or the known part of that. */
static void print_amounts(const struct zf_meter *meter, bool has_total, char buf[AMOUNTS_SIZE])
{
	char done[ZF_TEXT_SIZE_MAX], total[ZF_TEXT_SIZE_MAX], speed[ZF_TEXT_SIZE_MAX];

	buf[0] = '\0';
	if (!meter->unit)
		return;
	print_amount(meter, meter->done, done);
	print_amount(meter, meter->total, total);
	print_amount(meter, (uint64_t)rate(meter), speed);
	if (has_total)
		snprintf(buf, AMOUNTS_SIZE, "%s of %s, %s/s, ", done, total, speed);
	else
		snprintf(buf, AMOUNTS_SIZE, "%s, %s/s", done, speed);
}

/* " 45 %  1.2G of 2.7G, 310M/s, 0:05 left" */
static void print_line(struct zf_meter *meter)
{
	double left = seconds_left(meter);
	char amounts[AMOUNTS_SIZE], line[AMOUNTS_SIZE + 64];
	int n = 0;

	print_amounts(meter, left >= 0, amounts);
	if (left >= 0)
		n = snprintf(line, sizeof(line), "%3.0f %%  %s%.0f:%02u left",
			     100 * (double)meter->done / (double)meter->total, amounts,
			     (double)((uint64_t)left / 60), (unsigned int)((uint64_t)left % 60));
	fprintf(stderr, "\r%-*s", LINE_WIDTH, n > 0 ? line : amounts);
	meter->on_screen = true;
}

void zf_meter_update(void *arg, uint64_t done, uint64_t total)
{
	struct zf_meter *meter = arg;
	int64_t now = now_ns();

	meter->done = done;
	meter->total = total;
	if (meter->mode == ZF_METER_OFF || now - meter->start_ns < SECOND_NS ||
	    now - meter->shown_ns < (meter->mode == ZF_METER_JSON ? SECOND_NS : LINE_NS))
		return;
	meter->shown_ns = now;
	if (meter->mode == ZF_METER_JSON)
		print_json(meter);
	else
		print_line(meter);
}

void zf_meter_wipe(struct zf_meter *meter)
{
	if (meter->on_screen)
		fprintf(stderr, "\r%*s\r", LINE_WIDTH, "");
	meter->on_screen = false;
}

void zf_meter_end(struct zf_meter *meter)
{
	if (meter->mode == ZF_METER_JSON)
		print_json(meter);
	zf_meter_wipe(meter);
}
