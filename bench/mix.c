/* SPDX-License-Identifier: MIT */
/*
 * mix fileserver|mail fill DIR THREADS FILES
 * mix fileserver|mail run  DIR THREADS FILES MILLISECONDS
 *
 * The file server: each thread goes round
 *
 *	create a file and write all of it; append 16 KiB to another; read a third from start to end;
 *	stat a fourth; delete a fifth, which is the next to be created.
 *
 * Files have a mean of 128 KiB: half are 16 KiB, a quarter 96 KiB, the others 384 KiB. They are
 * written and read in pieces of at most 1 MiB.
 *
 * The mail server: each thread goes round
 *
 *	delete a message; create it anew, write 16 KiB and fsync; append 16 KiB to another
 *	and fsync; read a third from start to end.
 *
 * "fill" makes FILES files, divided between the threads, each of which has a directory and a seed
 * of its own; "run" works on these files for MILLISECONDS. It prints the number of operations (each
 * of the above is one; an fsync belongs to its write) and the seconds that they took.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PIECE	    (1U << 20)
#define SMALL	    16384
#define THREADS_MAX 64

struct worker {
	pthread_t thread;
	unsigned int number;
	unsigned int files;
	uint64_t random;
	uint64_t operations;
	bool mail;
	int dir_fd;
	char *buffer;
};

static uint64_t deadline_ns;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* xorshift64: the same files in the same order for every peer. */
static unsigned int draw(struct worker *w, unsigned int below)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (unsigned int)((w->random >> 32) % below);
}

static size_t draw_size(struct worker *w)
{
	static const size_t sizes[] = {SMALL, SMALL, 98304, 393216};

	return w->mail ? SMALL : sizes[draw(w, 4)];
}

static void name_of(unsigned int file, char name[static 16])
{
	snprintf(name, 16, "f%u", file);
}

static void write_file(struct worker *w, unsigned int file, int flags, size_t size)
{
	char name[16];
	int fd;

	name_of(file, name);
	fd = openat(w->dir_fd, name, flags | O_WRONLY, 0644);
	if (fd < 0)
		fail(name);
	while (size > 0) {
		size_t piece = size < PIECE ? size : PIECE;

		if (write(fd, w->buffer, piece) != (ssize_t)piece)
			fail("write");
		size -= piece;
	}
	if (w->mail && fsync(fd) < 0)
		fail("fsync");
	if (close(fd) < 0)
		fail("close");
	w->operations++;
}

static void create_file(struct worker *w, unsigned int file)
{
	write_file(w, file, O_CREAT | O_EXCL, draw_size(w));
}

static void read_file(struct worker *w, unsigned int file)
{
	char name[16];
	ssize_t got;
	int fd;

	name_of(file, name);
	fd = openat(w->dir_fd, name, O_RDONLY);
	if (fd < 0)
		fail(name);
	while ((got = read(fd, w->buffer, PIECE)) > 0)
		;
	if (got < 0)
		fail("read");
	close(fd);
	w->operations++;
}

static void stat_file(struct worker *w, unsigned int file)
{
	struct stat st;
	char name[16];

	name_of(file, name);
	if (fstatat(w->dir_fd, name, &st, 0) < 0)
		fail(name);
	w->operations++;
}

static void delete_file(struct worker *w, unsigned int file)
{
	char name[16];

	name_of(file, name);
	if (unlinkat(w->dir_fd, name, 0) < 0)
		fail(name);
	w->operations++;
}

static void *serve_files(void *arg)
{
	struct worker *w = arg;
	unsigned int gone = draw(w, w->files);

	delete_file(w, gone);
	while (now_ns() < deadline_ns) {
		create_file(w, gone);
		write_file(w, draw(w, w->files), O_APPEND, SMALL);
		read_file(w, draw(w, w->files));
		stat_file(w, draw(w, w->files));
		gone = draw(w, w->files);
		delete_file(w, gone);
	}
	return NULL;
}

static void *serve_mail(void *arg)
{
	struct worker *w = arg;

	while (now_ns() < deadline_ns) {
		unsigned int message = draw(w, w->files);

		delete_file(w, message);
		create_file(w, message);
		write_file(w, draw(w, w->files), O_APPEND, SMALL);
		read_file(w, draw(w, w->files));
	}
	return NULL;
}

/* Filling is not measured, so it need not be durable file by file. */
static void *fill(void *arg)
{
	struct worker *w = arg;
	bool mail = w->mail;

	for (unsigned int i = 0; i < w->files; i++) {
		size_t size = draw_size(w);

		w->mail = false;
		write_file(w, i, O_CREAT | O_EXCL, size);
		w->mail = mail;
	}
	return NULL;
}

static void prepare(struct worker *w, bool filling)
{
	char name[16];

	snprintf(name, sizeof(name), "t%u", w->number);
	if (filling && mkdir(name, 0755) < 0)
		fail(name);
	w->dir_fd = open(name, O_RDONLY | O_DIRECTORY);
	if (w->dir_fd < 0)
		fail(name);
	w->random = 0x9e3779b97f4a7c15 * (w->number + 1);
	w->buffer = malloc(PIECE);
	if (!w->buffer)
		fail("malloc");
	memset(w->buffer, 'z', PIECE);
}

static int usage(void)
{
	fprintf(stderr, "usage: mix fileserver|mail fill DIR THREADS FILES\n"
			"       mix fileserver|mail run DIR THREADS FILES MILLISECONDS\n");
	return 2;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	bool filling = argc == 6 && strcmp(argv[2], "fill") == 0;
	bool running = argc == 7 && strcmp(argv[2], "run") == 0;
	unsigned int threads, files;
	uint64_t began, operations = 0;
	bool mail;

	if (!filling && !running)
		return usage();
	mail = strcmp(argv[1], "mail") == 0;
	threads = (unsigned int)strtoul(argv[4], NULL, 10);
	files = (unsigned int)strtoul(argv[5], NULL, 10);
	if ((!mail && strcmp(argv[1], "fileserver") != 0) || threads == 0 ||
	    threads > THREADS_MAX || files / threads < 2)
		return usage();
	if (chdir(argv[3]) < 0)
		fail(argv[3]);
	for (unsigned int i = 0; i < threads; i++) {
		workers[i].number = i;
		workers[i].files = files / threads;
		workers[i].mail = mail;
		prepare(&workers[i], filling);
	}
	began = now_ns();
	deadline_ns = began + (running ? strtoul(argv[6], NULL, 10) * 1000000 : 0);
	for (unsigned int i = 0; i < threads; i++) {
		errno = pthread_create(&workers[i].thread, NULL,
				       filling ? fill
				       : mail  ? serve_mail
					       : serve_files,
				       &workers[i]);
		if (errno)
			fail("pthread_create");
	}
	for (unsigned int i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		operations += workers[i].operations;
	}
	printf("%llu %.6f\n", (unsigned long long)operations, (double)(now_ns() - began) / 1e9);
	return 0;
}
