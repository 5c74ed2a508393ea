/* SPDX-License-Identifier: MIT */
/*
 * files DIR COUNT: makes, stats and unlinks COUNT small files, and prints three rates: per second,
 * as "create R stat R unlink R". The stats look each name up anew, as `ls -l` after a mount does:
 * the kernel's entries are dropped in between where we may (root).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int make(const char *name)
{
	int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);

	return fd < 0 ? -1 : close(fd);
}

static int look(const char *name)
{
	struct stat st;

	return stat(name, &st);
}

static double rate(unsigned int count, int (*fn)(const char *name), const char *what)
{
	double began = now();
	char name[32];

	for (unsigned int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "file-%06u", i);
		if (fn(name) < 0)
			fail(what);
	}
	return count / (now() - began);
}

static void drop_caches(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	if (fd < 0)
		return;
	if (write(fd, "2", 1) != 1)
		perror("drop_caches");
	close(fd);
}

int main(int argc, char **argv)
{
	unsigned int count;
	double create, look_up;

	if (argc != 3 || (count = (unsigned int)strtoul(argv[2], NULL, 10)) == 0) {
		fprintf(stderr, "usage: files DIR COUNT\n");
		return 2;
	}
	if (chdir(argv[1]) < 0)
		fail(argv[1]);
	create = rate(count, make, "create");
	drop_caches();
	look_up = rate(count, look, "stat");
	printf("create %.0f stat %.0f unlink %.0f\n", create, look_up,
	       rate(count, unlink, "unlink"));
	return 0;
}
