/* SPDX-License-Identifier: MIT */
/*
 * durable append DIR CLIENTS MILLISECONDS [histogram]
 *                                           append 4 KiB and fsync, each client to a file of its own
 * durable create DIR CLIENTS MILLISECONDS [histogram]
 *                                           create a file, write 2 KiB, fsync it
 * durable zero FILE MIB                     one fallocate(FALLOC_FL_WRITE_ZEROES) of MIB
 * durable zeroes FILE MIB MILLISECONDS      the same every MILLISECONDS, until the program is
 *                                           killed; each time from an empty file
 *
 * The first three print the number of operations and the seconds that they took; the first two also
 * the mean, the 99th and the 99.9th percentile of the latencies in microseconds. With `histogram`
 * each further line is a bucket: its upper limit in microseconds, and the number of operations in
 * it. Exit status 95: the file system has no write-zeroes.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FALLOC_WRITE_ZEROES 0x80 /* FALLOC_FL_WRITE_ZEROES of newer kernel headers */
#define CLIENTS_MAX	    64
#define LATENCIES_MAX	    (1U << 20)
#define APPEND_BYTES	    4096
#define CREATE_BYTES	    2048
#define NO_WRITE_ZEROES	    95
#define BUCKET_WIDTH	    1.0905 /* 2 to the power of 1/8 */
#define NOISE_BYTES	    2250 /* of those of an append: as a database's log can be compressed */

struct client {
	pthread_t thread;
	unsigned int number;
	bool creates;
	const char *dir;
	uint32_t *latencies_ns10; /* in units of 10 ns */
	uint64_t count;
};

static uint64_t deadline_ns;
static char contents[APPEND_BYTES];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void fail(const char *what)
{
	int status = errno == EOPNOTSUPP || errno == EINVAL ? NO_WRITE_ZEROES : 1;

	perror(what);
	exit(strcmp(what, "fallocate") == 0 ? status : 1);
}

static int open_new(const struct client *client, uint64_t number)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%u.%llu", client->dir, client->number,
		 (unsigned long long)number);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_APPEND, 0644);
	if (fd < 0)
		fail(path);
	return fd;
}

static void write_durably(int fd, size_t size)
{
	if (write(fd, contents, size) != (ssize_t)size)
		fail("write");
	if (fsync(fd) < 0)
		fail("fsync");
}

static void make_contents(void)
{
	uint64_t x = 88172645463325252U;

	for (unsigned int i = 0; i < NOISE_BYTES; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		contents[i] = (char)x;
	}
}

static void *work(void *arg)
{
	struct client *client = arg;
	int fd = client->creates ? -1 : open_new(client, 0);
	uint64_t began = now_ns(), ended;

	for (; began < deadline_ns && client->count < LATENCIES_MAX; began = ended) {
		if (client->creates) {
			fd = open_new(client, client->count);
			write_durably(fd, CREATE_BYTES);
			close(fd);
		} else {
			write_durably(fd, APPEND_BYTES);
		}
		ended = now_ns();
		client->latencies_ns10[client->count++] = (uint32_t)((ended - began) / 10);
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Each bucket is 9 % wide. `sorted` is in units of 10 ns. */
static void tell_histogram(const uint32_t *sorted, uint64_t count)
{
	double end = 100; /* 1 us */

	for (uint64_t from = 0, to = 0; from < count; end *= BUCKET_WIDTH, from = to) {
		while (to < count && sorted[to] <= end)
			to++;
		if (to > from)
			printf("%.2f %llu\n", end / 100, (unsigned long long)(to - from));
	}
}

static void tell(struct client *clients, unsigned int count, double seconds, bool histogram)
{
	uint64_t total = 0, sum = 0;
	uint32_t *all;

	for (unsigned int i = 0; i < count; i++)
		total += clients[i].count;
	all = malloc((total + 1) * sizeof(*all));
	if (!all || total == 0)
		fail("nothing was done");
	total = 0;
	for (unsigned int i = 0; i < count; i++) {
		memcpy(all + total, clients[i].latencies_ns10, clients[i].count * sizeof(*all));
		total += clients[i].count;
	}
	qsort(all, total, sizeof(*all), compare);
	for (uint64_t i = 0; i < total; i++)
		sum += all[i];
	printf("%llu %.6f %.2f %.2f %.2f\n", (unsigned long long)total, seconds,
	       (double)sum / (double)total / 100, all[(total - 1) * 99 / 100] / 100.0,
	       all[(total - 1) * 999 / 1000] / 100.0);
	if (histogram)
		tell_histogram(all, total);
	free(all);
}

static void run_clients(bool creates, const char *dir, unsigned int count, unsigned int ms,
			bool histogram)
{
	static struct client clients[CLIENTS_MAX];
	uint64_t began = now_ns();

	if (count == 0 || count > CLIENTS_MAX)
		exit(2);
	deadline_ns = began + (uint64_t)ms * 1000000;
	for (unsigned int i = 0; i < count; i++) {
		clients[i] = (struct client){.number = i, .creates = creates, .dir = dir};
		clients[i].latencies_ns10 = malloc(LATENCIES_MAX * sizeof(uint32_t));
		if (!clients[i].latencies_ns10 ||
		    pthread_create(&clients[i].thread, NULL, work, &clients[i]) != 0)
			fail("pthread_create");
	}
	for (unsigned int i = 0; i < count; i++)
		pthread_join(clients[i].thread, NULL);
	tell(clients, count, (double)(now_ns() - began) / 1e9, histogram);
	for (unsigned int i = 0; i < count; i++)
		free(clients[i].latencies_ns10);
}

static void run_zeroes(const char *path, off_t bytes, unsigned int every_ms)
{
	int fd = open(path, O_CREAT | O_RDWR, 0644);
	uint64_t began = now_ns();

	if (fd < 0)
		fail(path);
	do {
		/* Space that is zeroed already would cost nothing. */
		if (ftruncate(fd, 0) < 0)
			fail("ftruncate");
		if (fallocate(fd, FALLOC_WRITE_ZEROES, 0, bytes) < 0)
			fail("fallocate");
		if (every_ms > 0)
			usleep(every_ms * 1000);
	} while (every_ms > 0);
	printf("1 %.6f\n", (double)(now_ns() - began) / 1e9);
	close(fd);
}

int main(int argc, char **argv)
{
	bool histogram = argc == 6 && strcmp(argv[5], "histogram") == 0;

	make_contents();
	if ((argc == 5 || histogram) &&
	    (strcmp(argv[1], "append") == 0 || strcmp(argv[1], "create") == 0))
		run_clients(argv[1][0] == 'c', argv[2], (unsigned int)atoi(argv[3]),
			    (unsigned int)atoi(argv[4]), histogram);
	else if (argc == 4 && strcmp(argv[1], "zero") == 0)
		run_zeroes(argv[2], (off_t)atoll(argv[3]) << 20, 0);
	else if (argc == 5 && strcmp(argv[1], "zeroes") == 0)
		run_zeroes(argv[2], (off_t)atoll(argv[3]) << 20, (unsigned int)atoi(argv[4]));
	else
		return 2;
	return 0;
}
