/* SPDX-License-Identifier: MIT */
/*
 * files create|stat|read|unlink DIR COUNT SIZE: does one of these to COUNT files of SIZE bytes in
 * DIR, in the order in which they were created, and prints COUNT and the seconds that it took.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SIZE_MAX_BYTES 65536

static char contents[SIZE_MAX_BYTES];

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int make(const char *name, size_t size)
{
	int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);

	if (fd < 0)
		return -1;
	if (size && write(fd, contents, size) != (ssize_t)size) {
		close(fd);
		return -1;
	}
	return close(fd);
}

static int look(const char *name, size_t size)
{
	struct stat st;

	return stat(name, &st) < 0 || st.st_size != (off_t)size ? -1 : 0;
}

static int get(const char *name, size_t size)
{
	int fd = open(name, O_RDONLY);

	if (fd < 0)
		return -1;
	if (read(fd, contents, sizeof(contents)) != (ssize_t)size) {
		close(fd);
		return -1;
	}
	return close(fd);
}

static int drop(const char *name, size_t size)
{
	(void)size;
	return unlink(name);
}

static const struct verb {
	const char *name;
	int (*fn)(const char *name, size_t size);
} verbs[] = {{"create", make}, {"stat", look}, {"read", get}, {"unlink", drop}};

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct verb *verb = argc == 5 ? find_verb(argv[1]) : NULL;
	unsigned int count;
	char name[32];
	double began;
	size_t size;

	if (!verb || (count = (unsigned int)strtoul(argv[3], NULL, 10)) == 0 ||
	    (size = strtoul(argv[4], NULL, 10)) > sizeof(contents)) {
		fprintf(stderr, "usage: files create|stat|read|unlink DIR COUNT SIZE\n");
		return 2;
	}
	if (chdir(argv[2]) < 0) {
		perror(argv[2]);
		return 1;
	}
	memset(contents, 'z', sizeof(contents));
	began = now();
	for (unsigned int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "file-%06u", i);
		if (verb->fn(name, size) < 0) {
			perror(name);
			return 1;
		}
	}
	printf("%u %.6f\n", count, now() - began);
	return 0;
}
