/* SPDX-License-Identifier: MIT */
/* What the loads of bench/age draw, and what becomes of its samples: nothing is aged here. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "age/draw.h"
#include "age/greedy.h"
#include "age/histogram.h"
#include "age/plan.h"
#include "age/sample.h"
#include "age/user.h"

#define MIB (UINT64_C(1) << 20)

/* ---- draws ---- */

static void numbers_lie_below_their_limit_and_fill_it(void **state)
{
	struct age_random random = {1};
	unsigned int seen[7] = {0};

	for (unsigned int i = 0; i < 70000; i++)
		seen[age_below(&random, 7)]++;
	for (unsigned int i = 0; i < 7; i++)
		assert_in_range(seen[i], 9600, 10400);
}

/* Each rank as often as k^-theta says, within five standard deviations. */
static void check_zipf(uint64_t n, double theta)
{
	const unsigned int draws = 1000000;
	unsigned int *seen = calloc(n + 1, sizeof(*seen));
	struct age_random random = {42};
	struct age_zipf zipf;
	double sum = 0;

	age_zipf_init(&zipf, n, theta);
	for (unsigned int i = 0; i < draws; i++) {
		uint64_t k = age_zipf_draw(&zipf, &random);

		assert_in_range(k, 1, n);
		seen[k]++;
	}
	for (uint64_t k = 1; k <= n; k++)
		sum += pow((double)k, -theta);
	for (uint64_t k = 1; k <= n; k++) {
		double p = pow((double)k, -theta) / sum, expected = p * draws;

		if (fabs(seen[k] - expected) > 5 * sqrt(expected * (1 - p)) + 1)
			fail_msg("theta %g, rank %lu of %lu: %u times, not %.0f", theta,
				 (unsigned long)k, (unsigned long)n, seen[k], expected);
	}
	free(seen);
}

static void zipf_ranks_come_as_often_as_they_should(void **state)
{
	check_zipf(1, 0.99);
	check_zipf(2, 0.99);
	check_zipf(1000, 0.99);
	check_zipf(1000, 1);
	check_zipf(300, 0.5);
	check_zipf(300, 2);
}

/* The hottest percent of two million blocks: what the harmonic numbers say. */
static void zipf_is_right_for_large_files_too(void **state)
{
	const uint64_t n = 2000000;
	const unsigned int draws = 400000;
	struct age_random random = {7};
	struct age_zipf zipf;
	unsigned int hot = 0;
	double all = 0, first = 0;

	for (uint64_t k = n; k > 0; k--) {
		double weight = pow((double)k, -0.99);

		all += weight;
		first += k <= n / 100 ? weight : 0;
	}
	age_zipf_init(&zipf, n, 0.99);
	for (unsigned int i = 0; i < draws; i++)
		hot += age_zipf_draw(&zipf, &random) <= n / 100;
	assert_true(fabs((double)hot / draws - first / all) < 0.005);
}

static void a_permutation_meets_each_number_once(void **state)
{
	static const uint64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 1000, 4096, 100003};

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		uint8_t *seen = calloc(1, sizes[s]);
		struct age_permutation permutation;

		age_permutation_init(&permutation, sizes[s], 9);
		for (uint64_t i = 0; i < sizes[s]; i++) {
			uint64_t to = age_permute(&permutation, i);

			assert_true(to < sizes[s]);
			assert_int_equal(seen[to]++, 0);
		}
		free(seen);
	}
}

/* Neighbouring ranks lie apart, or what is hot would be one piece of the file. */
static void a_permutation_spreads(void **state)
{
	struct age_permutation permutation;
	unsigned int near = 0;

	age_permutation_init(&permutation, 100000, 3);
	for (uint64_t i = 1; i < 1000; i++) {
		uint64_t a = age_permute(&permutation, i - 1), b = age_permute(&permutation, i);

		near += (a > b ? a - b : b - a) < 1000;
	}
	assert_true(near < 60); /* 20 of them by chance */
}

/* ---- samples ---- */

static void quantiles_are_within_a_bucket(void **state)
{
	struct age_histogram *histogram = calloc(1, sizeof(*histogram));

	assert_int_equal(age_histogram_quantile(histogram, 0.5), 0);
	for (uint64_t i = 1; i <= 100000; i++)
		age_histogram_note(histogram, i * 1000);
	for (double part = 0.1; part < 1; part += 0.1) {
		double found = (double)age_histogram_quantile(histogram, part);

		assert_true(found >= part * 1e8 && found <= part * 1e8 * 33 / 32 + 1);
	}
	assert_int_equal(age_histogram_quantile(histogram, 1), 100000000);
	assert_int_equal(histogram->max, 100000000);
	free(histogram);
}

static void short_and_endless_times_are_counted(void **state)
{
	struct age_histogram *histogram = calloc(2, sizeof(*histogram));

	for (uint64_t i = 0; i < 64; i++)
		age_histogram_note(histogram, i);
	assert_int_equal(age_histogram_quantile(histogram, 0.5), 31);
	age_histogram_note(&histogram[1], AGE_STALL_NS);
	age_histogram_note(&histogram[1], AGE_STALL_NS + 1);
	age_histogram_note(&histogram[1], UINT64_MAX);
	assert_int_equal(histogram[1].over, 2);
	age_histogram_add(histogram, &histogram[1]);
	assert_int_equal(histogram->count, 67);
	assert_int_equal(histogram->over, 2);
	assert_true(age_histogram_quantile(histogram, 1) == UINT64_MAX);
	free(histogram);
}

/* Values that solve u = (v - 1) / ln v. */
static void greedy_cleaning_costs_what_theory_says(void **state)
{
	for (double v = 0.01; v < 0.99; v += 0.01) {
		double u = (v - 1) / log(v);

		assert_true(fabs(age_greedy_victim(u) - v) < 1e-9);
		assert_true(fabs(age_greedy_amplification(u) - 1 / (1 - v)) < 1e-6);
	}
	assert_true(fabs(age_greedy_amplification(0.8) - 2.69) < 0.01);
	assert_true(fabs(age_greedy_amplification(0) - 1) < 1e-9);
}

static void a_plan_leaves_room_for_the_rest(void **state)
{
	const struct zf_geometry geometry = {
		.zone_size = 64 * MIB, .zone_capacity = 64 * MIB, .zone_count = 128};
	struct age_plan plan;

	for (double percent = 10; percent <= 100; percent += 10) {
		uint64_t zones;

		age_plan(&geometry, percent, &plan);
		zones = plan.fixed_zones + plan.meta_zones + plan.data_bytes / (64 * MIB);
		assert_int_equal(zones, 128);
		assert_int_equal(plan.bytes % 4096, 0);
		assert_true(fabs((double)plan.bytes / (double)plan.data_bytes - percent / 100) <
			    1e-6);
	}
}

static void the_part_that_is_live_is_a_mean(void **state)
{
	struct age_sight a = {.looks = 1, .live = 50, .written = 100, .spare = 25, .empty_low = 3};
	const struct age_sight b = {
		.looks = 1, .live = 25, .written = 50, .spare = 25, .empty_low = 2};

	age_sight_add(&a, &b);
	assert_true(fabs(age_utilisation(&a, false) - 0.5) < 1e-9);
	assert_true(fabs(age_utilisation(&a, true) - 0.375) < 1e-9);
	assert_int_equal(a.empty_low, 2);
}

/* ---- content ---- */

/* Whatever of the three is another, every part of the block is. */
static void blocks_of_other_versions_differ_everywhere(void **state)
{
	struct age_user *user = calloc(1, sizeof(*user));
	uint64_t a[AGE_BLOCK / 8], b[AGE_BLOCK / 8];

	age_user_init(user, NULL, 1);
	age_fill_block(user, 5, 6, 7, a);
	age_fill_block(user, 5, 6, 7, b);
	assert_memory_equal(a, b, sizeof(a));
	for (unsigned int other = 0; other < 3; other++) {
		age_fill_block(user, 5 + (other == 0), 6 + (other == 1), 7 + (other == 2), b);
		for (size_t i = 0; i < AGE_BLOCK / 8; i++)
			assert_true(a[i] != b[i]);
	}
	free(user);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_lie_below_their_limit_and_fill_it),
		cmocka_unit_test(zipf_ranks_come_as_often_as_they_should),
		cmocka_unit_test(zipf_is_right_for_large_files_too),
		cmocka_unit_test(a_permutation_meets_each_number_once),
		cmocka_unit_test(a_permutation_spreads),
		cmocka_unit_test(quantiles_are_within_a_bucket),
		cmocka_unit_test(short_and_endless_times_are_counted),
		cmocka_unit_test(greedy_cleaning_costs_what_theory_says),
		cmocka_unit_test(a_plan_leaves_room_for_the_rest),
		cmocka_unit_test(the_part_that_is_live_is_a_mean),
		cmocka_unit_test(blocks_of_other_versions_differ_everywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
