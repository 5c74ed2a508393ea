/* SPDX-License-Identifier: MIT */
/* Traces: rings, dropped events, start and stop while threads record events, and reading. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bits.h"
#include "trace/data.h"
#include "trace/read.h"
#include "trace/ring.h"
#include "trace/trace.h"

static const struct zf_trace_about monotonic = {.program = "1", .zone_size = 4096};
static const struct zf_trace_about logical = {
	.clock = ZF_TRACE_LOGICAL,
	.program = "1",
	.workload = "test",
	.seed = 5,
	.zone_size = 4096,
};

/* ---- a file ---- */

static int new_file(void)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* The trace closes its descriptor; this one reads what it wrote. */
static int start(const struct zf_trace_about *about)
{
	int fd = new_file(), copy = dup(fd);

	assert_int_equal(zf_trace_start(fd, about), 0);
	assert_false(zf_trace_is_on());
	zf_trace_begin();
	return copy;
}

static struct zf_trace_file read_and_close(int fd)
{
	struct zf_trace_file file;

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(zf_trace_read(fd, "trace", NULL, &file), 0);
	close(fd);
	return file;
}

static uint64_t field(const struct zf_disk_trace_record *record, unsigned int offset)
{
	return zf_trace_value(ZF_TRACE_NUMBER, record->payload + offset);
}

static bool is_event(const struct zf_disk_trace_record *record, enum zf_trace_number number)
{
	return zf_le16_get(record->event) == number;
}

/* The sum of the first fields of all events of a number. */
static uint64_t sum(const struct zf_trace_file *file, enum zf_trace_number number)
{
	uint64_t total = 0;

	for (size_t i = 0; i < file->count; i++)
		if (is_event(&file->records[i], number))
			total += field(&file->records[i], 0);
	return total;
}

static size_t count(const struct zf_trace_file *file, enum zf_trace_number number)
{
	size_t n = 0;

	for (size_t i = 0; i < file->count; i++)
		n += is_event(&file->records[i], number);
	return n;
}

/* ---- tests ---- */

static bool evaluated;

static uint64_t note(void)
{
	evaluated = true;
	return 1;
}

static void without_a_trace_nothing_is_evaluated(void **state)
{
	int fd;

	ZF_TRACE(hole_written, .bytes = note());
	assert_false(evaluated);
	assert_int_equal(ZF_TRACE_SEQUENCE(hole_written, .bytes = note()), 0);
	assert_false(evaluated);
	assert_int_equal(zf_trace_stop(NULL), -ESRCH);
	fd = start(&monotonic);
	ZF_TRACE(hole_written, .bytes = note());
	assert_true(evaluated);
	assert_int_equal(zf_trace_stop(NULL), 0);
	close(fd);
}

static void a_logical_trace_is_written_at_once(void **state)
{
	int fd = start(&logical);
	struct zf_trace_totals totals;
	struct zf_trace_file file;

	assert_int_equal(ZF_TRACE_SEQUENCE(hole_written, .address = 8192, .bytes = 7), 1);
	assert_int_equal(lseek(fd, 0, SEEK_END),
			 sizeof(struct zf_disk_trace_header) + sizeof(struct zf_disk_trace_record));
	assert_int_equal(ZF_TRACE_SEQUENCE(hole_written, .bytes = 1), 2);
	assert_int_equal(zf_trace_stop(&totals), 0);
	assert_int_equal(totals.events, 2);
	assert_int_equal(totals.dropped, 0);

	file = read_and_close(fd);
	assert_int_equal(file.count, 3);
	assert_int_equal(file.header.seeded, 1);
	assert_int_equal(zf_le64_get(file.header.seed), 5);
	assert_string_equal(file.header.workload, "test");
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(zf_le64_get(file.records[i].sequence), i + 1);
		assert_int_equal(zf_le64_get(file.records[i].time), i + 1);
		assert_int_equal(zf_le32_get(file.records[i].thread), 0);
	}
	assert_int_equal(field(&file.records[0], 0), 8192);
	assert_int_equal(field(&file.records[0], 8), 7);
	assert_true(is_event(&file.records[2], ZF_TRACE_ended));
	zf_trace_file_free(&file);
}

/* It saw the switch on, and then was not run for a while. */
static void a_hook_that_comes_late_tells_nothing(void **state)
{
	const struct zf_trace_hole_written event = {.bytes = 1};
	int fd = start(&monotonic);

	assert_int_not_equal(zf_trace_put(ZF_TRACE_hole_written, &event, sizeof(event)), 0);
	assert_int_equal(zf_trace_stop(NULL), 0);
	assert_int_equal(zf_trace_put(ZF_TRACE_hole_written, &event, sizeof(event)), 0);
	close(fd);
}

static void every_trace_names_its_threads(void **state)
{
	for (unsigned int i = 0; i < 2; i++) {
		int fd = start(&monotonic);
		struct zf_trace_file file;

		ZF_TRACE(hole_written, .bytes = 1);
		ZF_TRACE(hole_written, .bytes = 2);
		assert_int_equal(zf_trace_stop(NULL), 0);
		file = read_and_close(fd);
		assert_int_equal(count(&file, ZF_TRACE_thread), 1);
		assert_true(is_event(&file.records[0], ZF_TRACE_thread));
		assert_string_equal(file.records[0].payload, "test_trace");
		zf_trace_file_free(&file);
	}
}

static void only_one_trace_runs_at_a_time(void **state)
{
	int fd = start(&monotonic), other = new_file();

	assert_int_equal(zf_trace_start(other, &logical), -EBUSY);
	assert_int_equal(write(other, "x", 1), 1); /* it is still ours */
	assert_int_equal(zf_trace_stop(NULL), 0);
	close(other);
	close(fd);
}

static void a_full_ring_refuses_and_counts(void **state)
{
	struct zf_trace_ring *ring = calloc(1, sizeof(*ring));
	struct zf_disk_trace_record record = {0};
	int fd = new_file();

	assert_non_null(ring);
	/* It begins in the middle, so that a drain comes in two pieces. */
	atomic_store(&ring->head, ZF_TRACE_RING_RECORDS / 2);
	atomic_store(&ring->tail, ZF_TRACE_RING_RECORDS / 2);
	for (uint64_t i = 0; i < ZF_TRACE_RING_RECORDS + 3; i++) {
		record.sequence = zf_le64_from(i);
		assert_int_equal(zf_trace_ring_put(ring, &record), i < ZF_TRACE_RING_RECORDS);
	}
	assert_int_equal(atomic_load(&ring->dropped), 3);
	assert_int_equal(zf_trace_ring_drain(ring, fd), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	for (uint64_t i = 0; i < ZF_TRACE_RING_RECORDS; i++) {
		assert_int_equal(read(fd, &record, sizeof(record)), sizeof(record));
		assert_int_equal(zf_le64_get(record.sequence), i);
	}
	assert_int_equal(read(fd, &record, 1), 0);
	assert_true(zf_trace_ring_put(ring, &record));
	close(fd);
	free(ring);
}

/* ---- threads ---- */

#define THREADS 4u
#define EACH	20000u

static void *tell(void *arg)
{
	for (uint64_t i = 0; i < EACH; i++)
		ZF_TRACE(hole_written, .address = (uintptr_t)arg, .bytes = i);
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[THREADS];

	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, tell, (void *)(uintptr_t)i), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* Each sequence is in the file, or counted as dropped. */
static void check_nothing_is_lost_silently(const struct zf_trace_file *file,
					   const struct zf_trace_totals *totals)
{
	const struct zf_disk_trace_record *last = &file->records[file->count - 1];

	assert_true(is_event(last, ZF_TRACE_ended));
	assert_int_equal(field(last, 0), totals->events);
	assert_int_equal(field(last, 8), totals->dropped);
	assert_int_equal(zf_le64_get(last->sequence), totals->events + 1);
	assert_int_equal(file->count - 1 + totals->dropped, totals->events);
	assert_int_equal(sum(file, ZF_TRACE_dropped), totals->dropped);
	for (size_t i = 1; i < file->count; i++)
		assert_true(zf_le64_get(file->records[i - 1].sequence) <
			    zf_le64_get(file->records[i].sequence));
}

static void events_of_threads_are_there_or_counted(void **state)
{
	int fd = start(&monotonic);
	uint64_t next[THREADS] = {0};
	struct zf_trace_totals totals;
	struct zf_trace_file file;

	run_threads();
	assert_int_equal(zf_trace_stop(&totals), 0);
	file = read_and_close(fd);
	check_nothing_is_lost_silently(&file, &totals);
	assert_in_range(count(&file, ZF_TRACE_thread), 1, THREADS);
	assert_true(totals.events >= THREADS * EACH);
	/* The events of a thread come in its order. */
	for (size_t i = 0; i < file.count; i++) {
		if (!is_event(&file.records[i], ZF_TRACE_hole_written))
			continue;
		assert_in_range(field(&file.records[i], 8), next[field(&file.records[i], 0)],
				EACH - 1);
		next[field(&file.records[i], 0)] = field(&file.records[i], 8) + 1;
	}
	zf_trace_file_free(&file);
}

/* What comes through the pipe, into a file. */
struct copying {
	int from, to;
};

static void *copy(void *arg)
{
	const struct copying *copying = arg;
	char buf[4096];
	ssize_t n;

	while ((n = read(copying->from, buf, sizeof(buf))) > 0)
		assert_int_equal(write(copying->to, buf, (size_t)n), n);
	return NULL;
}

/* While nobody reads the pipe, it takes little, and the drainer waits: so the ring gets full. */
static void what_is_dropped_is_told(void **state)
{
	struct copying copying = {.to = new_file()};
	struct zf_trace_totals totals;
	struct zf_trace_file file;
	pthread_t reader;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(zf_trace_start(ends[1], &monotonic), 0);
	zf_trace_begin();
	for (uint64_t i = 0; i < 3 * ZF_TRACE_RING_RECORDS; i++)
		ZF_TRACE(hole_written, .bytes = i);
	copying.from = ends[0];
	assert_int_equal(pthread_create(&reader, NULL, copy, &copying), 0);
	assert_int_equal(zf_trace_stop(&totals), 0);
	pthread_join(reader, NULL);
	close(ends[0]);
	file = read_and_close(copying.to);
	check_nothing_is_lost_silently(&file, &totals);
	assert_true(totals.dropped > ZF_TRACE_RING_RECORDS);
	zf_trace_file_free(&file);
}

/* ---- start and stop beside threads ---- */

static atomic_bool enough;

static void *tell_until_enough(void *arg)
{
	while (!atomic_load(&enough))
		ZF_TRACE(hole_written, .address = (uintptr_t)arg);
	return NULL;
}

/* If a hook outlived its trace, a later trace would have sequences or events of another one. */
static void traces_follow_one_another_while_threads_tell_events(void **state)
{
	pthread_t threads[THREADS];

	atomic_store(&enough, false);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, tell_until_enough, (void *)(uintptr_t)i),
			0);
	for (unsigned int i = 0; i < 40; i++) {
		int fd = start(&monotonic);
		struct zf_trace_totals totals;
		struct zf_trace_file file;

		usleep(i % 4 * 1000);
		assert_int_equal(zf_trace_stop(&totals), 0);
		file = read_and_close(fd);
		check_nothing_is_lost_silently(&file, &totals);
		zf_trace_file_free(&file);
	}
	atomic_store(&enough, true);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void a_file_that_cannot_be_written_ends_the_trace(void **state)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC), fd = new_file();

	assert_int_equal(zf_trace_start(full, &monotonic), -ENOSPC);
	assert_false(zf_trace_is_on());
	/* And what follows the header. */
	assert_int_equal(zf_trace_start(fd, &logical), 0);
	zf_trace_begin();
	assert_int_equal(dup3(full, fd, O_CLOEXEC), fd);
	ZF_TRACE(hole_written, .bytes = 1);
	assert_false(zf_trace_is_on());
	ZF_TRACE(hole_written, .bytes = 1);
	assert_int_equal(zf_trace_stop(NULL), -ENOSPC);
	assert_int_equal(zf_trace_stop(NULL), -ESRCH);
	close(full);
}

/* ---- its data ---- */

#define DATA_BYTES 4096u

static const struct zf_disk_trace_data_header data_header = {.zone_count = {{1}}};
static const struct zf_disk_trace_data_zone data_zone = {.condition = 1};

static int new_data(void)
{
	int fd = new_file();

	assert_int_equal(zf_trace_data_begin(fd, &data_header, &data_zone), 0);
	return fd;
}

static struct zf_trace_about with_data(const struct zf_trace_about *about, int fd)
{
	struct zf_trace_about made = *about;

	made.has_data = true;
	made.data_fd = fd;
	return made;
}

static void put_data(uint64_t submitted)
{
	uint8_t bytes[DATA_BYTES];
	struct iovec iov[] = {{bytes, 1000}, {bytes + 1000, sizeof(bytes) - 1000}};

	memset(bytes, (int)submitted, sizeof(bytes));
	zf_trace_data_put(submitted, 2 * submitted, iov, 2, sizeof(bytes));
}

/* The number that all bytes of a piece are; 0: there are no more. */
static uint64_t next_piece(int fd)
{
	struct zf_disk_trace_data_piece piece;
	uint8_t bytes[DATA_BYTES];
	uint64_t submitted;

	if (read(fd, &piece, sizeof(piece)) == 0)
		return 0;
	submitted = zf_le64_get(piece.submitted);
	assert_int_equal(zf_le64_get(piece.address), 2 * submitted);
	assert_int_equal(zf_le64_get(piece.bytes), sizeof(bytes));
	assert_int_equal(read(fd, bytes, sizeof(bytes)), sizeof(bytes));
	for (unsigned int i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], (uint8_t)submitted);
	return submitted;
}

static void *put_some(void *arg)
{
	for (uint64_t i = 1; i <= 50; i++)
		put_data((uint64_t)(uintptr_t)arg + i);
	return NULL;
}

static void data_of_threads_is_in_the_file_piece_by_piece(void **state)
{
	int fd = new_data(), copy = dup(fd), trace;
	struct zf_trace_about about = with_data(&monotonic, fd);
	pthread_t threads[THREADS];
	unsigned int count = 0;

	assert_false(zf_trace_has_data());
	trace = start(&about);
	assert_true(zf_trace_has_data());
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, put_some, (void *)(i * 50)), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(zf_trace_stop(NULL), 0);
	assert_false(zf_trace_has_data());
	put_data(1);
	assert_int_equal(lseek(copy, sizeof(data_header) + sizeof(data_zone), SEEK_SET),
			 sizeof(data_header) + sizeof(data_zone));
	while (next_piece(copy) > 0)
		count++;
	assert_int_equal(count, THREADS * 50);
	close(copy);
	close(trace);
}

static void data_that_cannot_be_written_ends_the_trace(void **state)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct zf_trace_about about = with_data(&logical, full);
	int trace;

	assert_int_equal(zf_trace_data_begin(full, &data_header, &data_zone), -ENOSPC);
	trace = start(&about);
	put_data(1);
	assert_false(zf_trace_is_on());
	assert_int_equal(zf_trace_stop(NULL), -ENOSPC);
	close(trace);
}

/* ---- reading ---- */

static char told[512];

static void keep(void *arg, enum zf_report_level level, const char *message)
{
	snprintf(told, sizeof(told), "%s", message);
}

static int read_bytes(const void *bytes, size_t len, struct zf_trace_file *file)
{
	const struct zf_report report = {.fn = keep};
	int fd = new_file(), r;

	assert_int_equal(write(fd, bytes, len), len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	told[0] = '\0';
	r = zf_trace_read(fd, "run.trace", &report, file);
	close(fd);
	return r;
}

static void what_is_no_trace_is_refused_in_words(void **state)
{
	struct zf_disk_trace_header header = {
		.magic = ZF_TRACE_MAGIC,
		.version = zf_le32_from(ZF_TRACE_VERSION),
		.header_size = zf_le32_from(sizeof(header)),
		.record_size = zf_le32_from(sizeof(struct zf_disk_trace_record)),
		.zone_size = zf_le64_from(4096),
	};
	struct zf_trace_file file;

	assert_int_equal(read_bytes("", 0, &file), -EUCLEAN);
	assert_string_equal(told, "run.trace is no trace of zfuse");
	assert_int_equal(read_bytes(&header, sizeof(header) - 1, &file), -EUCLEAN);
	assert_int_equal(read_bytes(&header, sizeof(header), &file), 0);
	assert_int_equal(file.count, 0);
	zf_trace_file_free(&file);
	header.zone_size = zf_le64_from(0);
	assert_int_equal(read_bytes(&header, sizeof(header), &file), -EUCLEAN);
	assert_string_equal(told, "run.trace: the header of the trace is damaged");
	header.version = zf_le32_from(ZF_TRACE_VERSION + 1);
	assert_int_equal(read_bytes(&header, sizeof(header), &file), -EPROTONOSUPPORT);
	assert_non_null(strstr(told, "is a trace of version 2"));
}

static void a_record_that_was_cut_is_left_out(void **state)
{
	int fd = start(&logical);
	struct zf_trace_file file;

	for (unsigned int i = 0; i < 3000; i++)
		ZF_TRACE(hole_written, .bytes = i);
	assert_int_equal(zf_trace_stop(NULL), 0);
	assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_END) - 70), 0);
	file = read_and_close(fd);
	assert_int_equal(file.count, 2999);
	zf_trace_file_free(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_trace_nothing_is_evaluated),
		cmocka_unit_test(a_logical_trace_is_written_at_once),
		cmocka_unit_test(a_hook_that_comes_late_tells_nothing),
		cmocka_unit_test(every_trace_names_its_threads),
		cmocka_unit_test(only_one_trace_runs_at_a_time),
		cmocka_unit_test(a_full_ring_refuses_and_counts),
		cmocka_unit_test(events_of_threads_are_there_or_counted),
		cmocka_unit_test(what_is_dropped_is_told),
		cmocka_unit_test(traces_follow_one_another_while_threads_tell_events),
		cmocka_unit_test(a_file_that_cannot_be_written_ends_the_trace),
		cmocka_unit_test(data_of_threads_is_in_the_file_piece_by_piece),
		cmocka_unit_test(data_that_cannot_be_written_ends_the_trace),
		cmocka_unit_test(what_is_no_trace_is_refused_in_words),
		cmocka_unit_test(a_record_that_was_cut_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
