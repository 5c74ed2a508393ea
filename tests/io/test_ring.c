/* SPDX-License-Identifier: MIT */
/* The ring of a device, with operations that do nothing. Skipped (77) where io_uring is not
 * available. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "io/ring.h"

static struct zf_dev dev;
static struct zf_mutex lock;
static struct zf_ring ring;

static int data[3]; /* of operations */
static int *reaped[16];
static unsigned int reaped_count, settled, again;

static void reaped_locked(struct zf_dev *of, const struct io_uring_cqe *cqe)
{
	assert_ptr_equal(of, &dev);
	reaped[reaped_count++] = io_uring_cqe_get_data(cqe);
	if (again > 0) {
		again--;
		io_uring_prep_nop(zf_ring_entry_locked(&ring, io_uring_cqe_get_data(cqe)));
	}
}

static void settled_locked(struct zf_dev *of)
{
	settled++;
}

static const struct zf_ring_ops ring_ops = {
	.reaped_locked = reaped_locked,
	.settled_locked = settled_locked,
};
static const struct zf_dev_ops dev_ops = {.kind = "ring"};

static int open_ring(void **state)
{
	const struct zf_geometry geometry = {0};

	(void)state;
	reaped_count = settled = again = 0;
	if (zf_dev_init(&dev, &dev_ops, "ring", &geometry, NULL) < 0)
		return -1;
	zf_mutex_init(&lock, ZF_RANK_DEV);
	return zf_ring_init(&ring, 0, &ring_ops, &dev, &lock);
}

static int close_ring(void **state)
{
	(void)state;
	zf_ring_deinit(&ring);
	zf_mutex_deinit(&lock);
	zf_dev_deinit(&dev);
	return 0;
}

static void prepare(int *operation)
{
	zf_mutex_lock(&lock);
	io_uring_prep_nop(zf_ring_entry_locked(&ring, operation));
	zf_mutex_unlock(&lock);
}

static void push(void)
{
	zf_mutex_lock(&lock);
	zf_ring_push_locked(&ring);
	zf_mutex_unlock(&lock);
}

static void operations_reach_the_kernel_in_the_order_of_their_entries(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		prepare(&data[i]);
	assert_false(zf_ring_reap(&ring));
	push();
	assert_false(zf_ring_reap(&ring)); /* none of them completes a request */
	assert_int_equal(reaped_count, 3);
	assert_int_equal(settled, 1);
	for (unsigned int i = 0; i < 3; i++)
		assert_ptr_equal(reaped[i], &data[i]);
}

static void what_a_completion_leads_to_is_pushed_with_its_batch(void **state)
{
	(void)state;
	again = 2;
	prepare(&data[0]);
	push();
	for (unsigned int i = 1; i <= 3; i++) {
		zf_ring_reap(&ring);
		assert_int_equal(reaped_count, i);
		assert_int_equal(io_uring_sq_ready(&ring.uring), 0);
	}
	zf_ring_reap(&ring);
	assert_int_equal(reaped_count, 3);
}

static void one_no_op_wakes_the_poller_however_often_it_is_asked_for(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 2; round++) {
		zf_ring_wake(&ring);
		zf_ring_wake(&ring);
		assert_int_equal(io_uring_cq_ready(&ring.uring), 1);
		zf_ring_poll(&ring, true);
		assert_int_equal(io_uring_cq_ready(&ring.uring), 0);
	}
	assert_int_equal(reaped_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			operations_reach_the_kernel_in_the_order_of_their_entries, open_ring,
			close_ring),
		cmocka_unit_test_setup_teardown(what_a_completion_leads_to_is_pushed_with_its_batch,
						open_ring, close_ring),
		cmocka_unit_test_setup_teardown(
			one_no_op_wakes_the_poller_however_often_it_is_asked_for, open_ring,
			close_ring),
	};
	struct io_uring probe;

	if (io_uring_queue_init(4, &probe, 0) < 0)
		return 77;
	io_uring_queue_exit(&probe);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
