/* SPDX-License-Identifier: MIT */
#include "age/report.h"

#include <inttypes.h>
#include <stdio.h>

#include "age/greedy.h"
#include "fs/space/reclaim.h"

struct numbers {
	double data, meta, all; /* bytes written for each of the user's */
	double cleaning; /* of data: for each that came from the user; what he overwrote before
			    never did */
	double used, used_with_spare, greedy, greedy_with_spare;
	double p50, p99, p999, max; /* ms */
};

static double ms(const struct age_histogram *latency, double part)
{
	return (double)age_histogram_quantile(latency, part) / 1e6;
}

static struct numbers numbers_of(const struct age_period *period)
{
	const struct age_totals *totals = &period->totals;
	const uint64_t *bytes = totals->bytes;
	double user = totals->user_bytes ? (double)totals->user_bytes : 1;
	struct numbers numbers = {
		.data = (double)(bytes[AGE_DATA] + bytes[AGE_COLD] + bytes[AGE_LOG]) / user,
		.meta = (double)(bytes[AGE_META] + bytes[AGE_SUPER]) / user,
		.used = age_utilisation(&period->sight, false),
		.used_with_spare = age_utilisation(&period->sight, true),
		.p50 = ms(&totals->latency, 0.5),
		.p99 = ms(&totals->latency, 0.99),
		.p999 = ms(&totals->latency, 0.999),
		.max = (double)totals->latency.max / 1e6,
	};

	numbers.all = numbers.data + numbers.meta;
	if (bytes[AGE_DATA] + bytes[AGE_LOG] > 0)
		numbers.cleaning =
			1 + (double)bytes[AGE_COLD] / (double)(bytes[AGE_DATA] + bytes[AGE_LOG]);
	numbers.greedy = age_greedy_amplification(numbers.used);
	numbers.greedy_with_spare = age_greedy_amplification(numbers.used_with_spare);
	return numbers;
}

static void print_json(const struct age_period *period, const struct numbers *n, bool uniform)
{
	const struct age_totals *t = &period->totals;
	const struct zf_reclaim_stats *r = &t->reclaim;

	printf("{\"period\": \"%s\", \"number\": %u, \"user_bytes\": %" PRIu64
	       ", \"calls\": %" PRIu64,
	       period->name, period->number, t->user_bytes, t->calls);
	for (unsigned int i = 0; i < AGE_KINDS; i++)
		printf(", \"%s_bytes\": %" PRIu64, age_kind_names[i], t->bytes[i]);
	printf(", \"wa_data\": %.4f, \"wa_meta\": %.4f, \"wa\": %.4f, \"cleaning\": %.4f, \"u\": "
	       "%.4f, \"u_spare\": "
	       "%.4f",
	       n->data, n->meta, n->all, n->cleaning, n->used, n->used_with_spare);
	if (uniform)
		printf(", \"greedy\": %.4f, \"greedy_spare\": %.4f, \"ratio\": %.4f", n->greedy,
		       n->greedy_with_spare, n->cleaning / n->greedy);
	printf(", \"p50_ms\": %.4f, \"p99_ms\": %.4f, \"p999_ms\": %.4f, \"max_ms\": %.4f, "
	       "\"stalls\": %" PRIu64,
	       n->p50, n->p99, n->p999, n->max, t->latency.over);
	printf(", \"empty_low\": %u, \"room_low\": %u, \"meta_zones\": %u, \"meta_live_bytes\": "
	       "%" PRIu64,
	       period->sight.empty_low, period->sight.room_low, period->sight.meta_zones_max,
	       period->sight.meta_live_max);
	printf(", \"read_bytes\": %" PRIu64 ", \"resets\": %" PRIu64 ", \"flushes\": %" PRIu64
	       ", \"commits\": %" PRIu64 ", \"commit_ms\": %.1f, \"cpu_s\": %.3f, \"wall_s\": %.3f",
	       t->read_bytes, t->resets, t->flushes, t->commits, (double)t->commit_ns / 1e6,
	       t->cpu_s, t->wall_s);
	printf(", \"reclaim\": {\"victims\": %" PRIu64 ", \"emptied\": %" PRIu64
	       ", \"live\": %" PRIu64 ", \"moved\": %" PRIu64 ", \"changed\": %" PRIu64
	       ", \"stuck\": %" PRIu64 ", \"waits\": %" PRIu64 ", \"wait_ms\": %.1f}}\n",
	       r->victims, r->emptied, r->live, r->moved, r->changed, r->stuck, r->waits,
	       (double)r->wait_ns / 1e6);
}

static void print_text(const struct age_period *period, const struct numbers *n, bool uniform)
{
	const struct age_totals *t = &period->totals;
	char greedy[32] = "-", ratio[32] = "-";

	if (uniform && n->used > 0) {
		snprintf(greedy, sizeof(greedy), "%.2f", n->greedy);
		snprintf(ratio, sizeof(ratio), "%.2f", n->cleaning / n->greedy);
	}
	printf("%-8s %3u %7.2f %6.2f %6.2f %6.2f %6.3f %6.3f %6s %6s %8.3f %8.3f %8.2f %8.1f "
	       "%5" PRIu64 " %5u %5u %5u %6.1f %7" PRIu64 " %7.1f %7.1f\n",
	       period->name, period->number, (double)t->user_bytes / (1 << 30), n->data, n->meta,
	       n->all, n->used, n->used_with_spare, greedy, ratio, n->p50, n->p99, n->p999, n->max,
	       t->latency.over, period->sight.empty_low, period->sight.room_low,
	       period->sight.meta_zones_max, (double)period->sight.meta_live_max / (1 << 20),
	       t->commits, t->cpu_s, t->wall_s);
}

void age_report_head(bool json)
{
	if (json)
		return;
	printf("%12s %7s %20s %13s %13s %35s %5s %24s %7s %15s\n", "", "user", "written per byte",
	       "live of zones", "greedy clean.", "ms of a write", "over", "zones: low, meta (live)",
	       "", "seconds");
	printf("%12s %7s %6s %6s %6s %6s %6s %6s %6s %8s %8s %8s %8s %5s %5s %5s %5s %6s %7s %7s "
	       "%7s\n",
	       "", "GiB", "data", "meta", "all", "data", "+spare", "", "ratio", "p50", "p99",
	       "p99.9", "max", "200ms", "empty", "room", "max", "MiB", "commits", "cpu", "wall");
}

void age_report_period(const struct age_period *period, bool uniform, bool json)
{
	const struct numbers numbers = numbers_of(period);

	if (json)
		print_json(period, &numbers, uniform);
	else
		print_text(period, &numbers, uniform);
	fflush(stdout);
}
