/* SPDX-License-Identifier: MIT */
#include "trace/trace.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/spawn.h"
#include "trace/data.h"
#include "trace/ring.h"

/*
 * How long events may stay in a ring: a thread that has more events in that time than its ring
 * holds loses some.
 */
#define DRAIN_MS 5u

_Static_assert(ZF_TRACE_PAYLOAD == sizeof(((struct zf_disk_trace_record *)0)->payload), "payload");

atomic_bool zf_trace_switch;

static struct {
	pthread_mutex_t control; /* one start or stop at a time */
	bool running;		 /* under `control` */
	pthread_t drainer;

	/* These change only while the switch is off and no hook is putting. */
	int fd;
	uint64_t number; /* traces of this process so far, this one included */
	_Atomic enum zf_trace_clock clock;

	_Atomic uint64_t sequence; /* the newest one given out */
	_Atomic uint64_t ringless; /* events of threads for which there was no memory */
	atomic_int error;	   /* of the file */
	atomic_bool stopping;	   /* the drainer has to end */
} trace = {.control = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* ---- records ---- */

/* Converts the fields on a big-endian machine. */
static void swap_fields(enum zf_trace_number number, uint8_t *at)
{
	const struct zf_trace_field *field = zf_trace_events[number].field;

	for (; field->name; field++) {
		unsigned int size = zf_trace_kind_size(field->kind);

		for (unsigned int i = 0; field->kind != ZF_TRACE_TEXT && i < size / 2; i++) {
			uint8_t byte = at[i];

			at[i] = at[size - 1 - i];
			at[size - 1 - i] = byte;
		}
		at += size;
	}
}

static void fill(struct zf_disk_trace_record *record, enum zf_trace_number number,
		 const void *event, size_t len, uint32_t thread)
{
	*record = (struct zf_disk_trace_record){
		.thread = zf_le32_from(thread),
		.event = zf_le16_from((uint16_t)number),
	};
	memcpy(record->payload, event, len);
	if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
		swap_fields(number, record->payload);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static bool is_logical(void)
{
	return atomic_load_explicit(&trace.clock, memory_order_relaxed) == ZF_TRACE_LOGICAL;
}

static uint64_t stamp(struct zf_disk_trace_record *record)
{
	uint64_t sequence = atomic_fetch_add_explicit(&trace.sequence, 1, memory_order_relaxed) + 1;

	record->sequence = zf_le64_from(sequence);
	record->time = zf_le64_from(is_logical() ? sequence : now_ns());
	return sequence;
}

/* The trace has lost records: it ends here, because a reader would not see a hole in it. */
void zf_trace_give_up(int error)
{
	int none = 0;

	atomic_compare_exchange_strong(&trace.error, &none, error);
	atomic_store(&zf_trace_switch, false);
}

/* ---- hooks ---- */

static uint64_t put_in_ring(struct zf_trace_ring *ring, enum zf_trace_number number,
			    const void *event, size_t len)
{
	struct zf_disk_trace_record record;
	uint64_t sequence;

	fill(&record, number, event, len, ring->thread);
	sequence = stamp(&record);
	zf_trace_ring_put(ring, &record);
	return sequence;
}

static void put_name(struct zf_trace_ring *ring)
{
	struct zf_trace_thread event = {0};

	ring->named = trace.number;
	pthread_getname_np(pthread_self(), event.name.text, sizeof(event.name.text));
	put_in_ring(ring, ZF_TRACE_thread, &event, sizeof(event));
}

static uint64_t put_of_thread(enum zf_trace_number number, const void *event, size_t len)
{
	struct zf_trace_ring *ring = zf_trace_ring_mine();
	uint64_t sequence = 0;

	if (!ring) {
		atomic_fetch_add_explicit(&trace.ringless, 1, memory_order_relaxed);
		return atomic_fetch_add_explicit(&trace.sequence, 1, memory_order_relaxed) + 1;
	}
	atomic_store(&ring->putting, true);
	if (atomic_load(&zf_trace_switch)) {
		if (ring->named != trace.number)
			put_name(ring);
		sequence = put_in_ring(ring, number, event, len);
	}
	atomic_store_explicit(&ring->putting, false, memory_order_release);
	return sequence;
}

static uint64_t put_at_once(enum zf_trace_number number, const void *event, size_t len)
{
	struct zf_disk_trace_record record;
	uint64_t sequence;
	int r;

	fill(&record, number, event, len, 0);
	sequence = stamp(&record);
	r = zf_trace_write(trace.fd, &record, sizeof(record));
	if (r < 0)
		zf_trace_give_up(r);
	return sequence;
}

uint64_t zf_trace_put(enum zf_trace_number number, const void *event, size_t len)
{
	assert(len <= ZF_TRACE_PAYLOAD);
	return is_logical() ? put_at_once(number, event, len) : put_of_thread(number, event, len);
}

/* ---- the drainer ---- */

/* Writes a record of the drainer's own, with the id of a thread. */
static int write_own(enum zf_trace_number number, const void *event, size_t len, uint32_t thread)
{
	struct zf_disk_trace_record record;

	fill(&record, number, event, len, thread);
	stamp(&record);
	return zf_trace_write(trace.fd, &record, sizeof(record));
}

static int tell_dropped(uint64_t count, uint32_t thread)
{
	struct zf_trace_dropped event = {.count = count};

	return count == 0 ? 0 : write_own(ZF_TRACE_dropped, &event, sizeof(event), thread);
}

static int drain_ring(struct zf_trace_ring *ring, void *arg)
{
	uint64_t dropped = atomic_load_explicit(&ring->dropped, memory_order_relaxed);
	int r = zf_trace_ring_drain(ring, trace.fd);

	if (r == 0)
		r = tell_dropped(dropped - ring->dropped_told, ring->thread);
	ring->dropped_told = dropped;
	return r;
}

static void drain(void)
{
	int r = zf_trace_rings_each(drain_ring, NULL);

	if (r < 0)
		zf_trace_give_up(r);
}

static void *drainer_main(void *arg)
{
	const struct timespec pause = {.tv_nsec = DRAIN_MS * 1000000};

	while (!atomic_load(&trace.stopping) && atomic_load(&trace.error) == 0) {
		drain();
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* ---- start and stop ---- */

static void fill_header(struct zf_disk_trace_header *header, const struct zf_trace_about *about)
{
	*header = (struct zf_disk_trace_header){
		.magic = ZF_TRACE_MAGIC,
		.version = zf_le32_from(ZF_TRACE_VERSION),
		.header_size = zf_le32_from(sizeof(*header)),
		.record_size = zf_le32_from(sizeof(struct zf_disk_trace_record)),
		.clock = (uint8_t)about->clock,
		.copies = about->copies,
		.seeded = about->workload != NULL,
		.zone_size = zf_le64_from(about->zone_size),
		.zone_capacity = zf_le64_from(about->zone_capacity),
		.zone_count = zf_le32_from(about->zone_count),
		.conventional = zf_le32_from(about->conventional),
		.active_max = zf_le32_from(about->active_max),
		.block_size = zf_le32_from(about->block_size),
		.node_size = zf_le32_from(about->node_size),
		.seed = zf_le64_from(about->seed),
	};
	memcpy(header->fsid, about->fsid, sizeof(header->fsid));
	snprintf((char *)header->program, sizeof(header->program), "%s", about->program);
	snprintf((char *)header->workload, sizeof(header->workload), "%s",
		 about->workload ? about->workload : "");
}

static int clear_ring(struct zf_trace_ring *ring, void *arg)
{
	atomic_store(&ring->tail, atomic_load(&ring->head));
	atomic_store(&ring->dropped, 0);
	ring->dropped_told = 0;
	return 0;
}

static int begin(int fd, const struct zf_trace_about *about)
{
	struct zf_disk_trace_header header;
	int r;

	fill_header(&header, about);
	r = zf_trace_write(fd, &header, sizeof(header));
	if (r < 0)
		return r;
	zf_trace_rings_each(clear_ring, NULL);
	trace.fd = fd;
	trace.number++;
	atomic_store(&trace.clock, about->clock);
	atomic_store(&trace.sequence, 0);
	atomic_store(&trace.ringless, 0);
	atomic_store(&trace.error, 0);
	atomic_store(&trace.stopping, false);
	r = is_logical() ? 0 : zf_spawn(&trace.drainer, "zfuse-trace", drainer_main, NULL);
	if (r == 0 && about->has_data)
		zf_trace_data_use(about->data_fd);
	return r;
}

int zf_trace_start(int fd, const struct zf_trace_about *about)
{
	int r;

	pthread_mutex_lock(&trace.control);
	r = trace.running ? -EBUSY : begin(fd, about);
	trace.running |= r == 0;
	pthread_mutex_unlock(&trace.control);
	return r;
}

void zf_trace_begin(void)
{
	atomic_store(&zf_trace_switch, true);
}

static int wait_for_hook(struct zf_trace_ring *ring, void *arg)
{
	while (atomic_load(&ring->putting))
		sched_yield();
	return 0;
}

static int add_dropped(struct zf_trace_ring *ring, void *arg)
{
	*(uint64_t *)arg += atomic_load(&ring->dropped);
	return 0;
}

/* Called when no hook is putting, and the drainer has ended. */
static void finish(struct zf_trace_totals *totals)
{
	struct zf_trace_ended event;
	int r = tell_dropped(atomic_load(&trace.ringless), 0);

	totals->dropped = atomic_load(&trace.ringless);
	zf_trace_rings_each(add_dropped, &totals->dropped);
	totals->events = atomic_load(&trace.sequence);
	event = (struct zf_trace_ended){.events = totals->events, .dropped = totals->dropped};
	if (r == 0)
		r = write_own(ZF_TRACE_ended, &event, sizeof(event), 0);
	if (r < 0)
		zf_trace_give_up(r);
}

static int end(struct zf_trace_totals *totals)
{
	atomic_store(&zf_trace_switch, false);
	zf_trace_rings_each(wait_for_hook, NULL);
	if (!is_logical()) {
		atomic_store(&trace.stopping, true);
		pthread_join(trace.drainer, NULL);
		if (atomic_load(&trace.error) == 0)
			drain();
	}
	if (atomic_load(&trace.error) == 0)
		finish(totals);
	zf_trace_data_use(-1);
	close(trace.fd);
	trace.fd = -1;
	return atomic_load(&trace.error);
}

int zf_trace_stop(struct zf_trace_totals *ret_totals)
{
	struct zf_trace_totals totals = {0};
	int r;

	pthread_mutex_lock(&trace.control);
	r = trace.running ? end(&totals) : -ESRCH;
	trace.running = false;
	pthread_mutex_unlock(&trace.control);
	if (r != -ESRCH && ret_totals)
		*ret_totals = totals;
	return r;
}
