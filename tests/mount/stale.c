/* SPDX-License-Identifier: MIT */
/*
 * stale FILE ROUNDS: does the kernel ever keep attributes from before a change?
 *
 * Some threads ask for the file's attributes all the time while another sets extended attributes.
 * When all have stopped, what the kernel has cached must be what the filesystem says. Prints how
 * many rounds it was not; status 1 if any.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define ASKERS	12
#define ASKS	20
#define CHANGES 6

static pthread_barrier_t barrier;
static int fd;
static unsigned long rounds;

static void *ask(void *arg)
{
	struct stat st;

	for (unsigned long round = 0; round < rounds; round++) {
		pthread_barrier_wait(&barrier);
		for (unsigned int i = 0; i < ASKS; i++)
			fstat(fd, &st);
		pthread_barrier_wait(&barrier);
		/* And now they are compared. */
		pthread_barrier_wait(&barrier);
	}
	return arg;
}

static bool change(unsigned long round)
{
	char value[48];

	for (unsigned int i = 0; i < CHANGES; i++) {
		snprintf(value, sizeof(value), "%lu.%u", round, i);
		if (fsetxattr(fd, "user.stale", value, strlen(value), 0) < 0)
			return false;
	}
	return true;
}

static bool is_stale(void)
{
	struct statx cached, right;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &cached) < 0 ||
	    statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &right) < 0)
		return true;
	return cached.stx_ctime.tv_sec != right.stx_ctime.tv_sec ||
	       cached.stx_ctime.tv_nsec != right.stx_ctime.tv_nsec;
}

int main(int argc, char **argv)
{
	pthread_t threads[ASKERS];
	unsigned long stale = 0;

	if (argc != 3)
		return 2;
	rounds = strtoul(argv[2], NULL, 10);
	fd = open(argv[1], O_RDWR | O_CREAT, 0644);
	if (fd < 0 || pthread_barrier_init(&barrier, NULL, ASKERS + 1) != 0)
		return 2;
	for (unsigned int i = 0; i < ASKERS; i++) {
		if (pthread_create(&threads[i], NULL, ask, NULL) != 0)
			return 2;
	}
	for (unsigned long round = 0; round < rounds; round++) {
		pthread_barrier_wait(&barrier);
		if (!change(round)) {
			perror("fsetxattr");
			return 2;
		}
		pthread_barrier_wait(&barrier);
		stale += is_stale();
		pthread_barrier_wait(&barrier);
	}
	for (unsigned int i = 0; i < ASKERS; i++)
		pthread_join(threads[i], NULL);
	printf("%lu of %lu rounds\n", stale, rounds);
	return stale > 0;
}
