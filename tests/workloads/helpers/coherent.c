// SPDX-License-Identifier: MIT
/*
 * coherent [-n ROUNDS] [-s SEED] [-l LENGTH] FILE
 *
 * Two processes take turns: one changes a part of the file, by write, by a shared mapping or by
 * direct I/O; the other then reads that part, by read, mapping or direct I/O, and must see exactly
 * the new bytes. Then they swap roles.
 */
#include "common.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK 4096u

enum way { CACHED, MAPPED, DIRECT, WAYS };
static const char *const way_names[] = {"cached", "mapped", "direct"};

struct side {
	int fd, direct_fd;
	unsigned char *map, *buffer;
};

static size_t length = 256 << 10;

static void open_side(struct side *side, const char *path)
{
	side->fd = open(path, O_RDWR);
	side->direct_fd = open(path, O_RDWR | O_DIRECT);
	side->map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, side->fd, 0);
	side->buffer = xalloc(BLOCK);
	if (side->fd < 0 || side->direct_fd < 0 || side->map == MAP_FAILED)
		die("%s: %s", path, strerror(errno));
}

static void change(struct side *side, enum way way, off_t at, int value)
{
	ssize_t done = BLOCK;

	memset(side->buffer, value, BLOCK);
	if (way == MAPPED)
		memcpy(side->map + at, side->buffer, BLOCK);
	else
		done = pwrite(way == DIRECT ? side->direct_fd : side->fd, side->buffer, BLOCK, at);
	if (done != BLOCK)
		die("%s write at %lld: %s", way_names[way], (long long)at, strerror(errno));
}

static void look(struct side *side, enum way way, off_t at, int value, enum way how)
{
	ssize_t done = BLOCK;

	if (way == MAPPED)
		memcpy(side->buffer, side->map + at, BLOCK);
	else
		done = pread(way == DIRECT ? side->direct_fd : side->fd, side->buffer, BLOCK, at);
	if (done != BLOCK)
		die("%s read at %lld: %s", way_names[way], (long long)at, strerror(errno));
	for (size_t i = 0; i < BLOCK; i++) {
		if (side->buffer[i] != value)
			die("byte %lld, written %s, read %s, is %d instead of %d",
			    (long long)at + (long long)i, way_names[how], way_names[way],
			    side->buffer[i], value);
	}
}

/* Both sides draw the same numbers, and so know what the other does. */
static void take_turns(struct side *side, bool first, unsigned long rounds, uint64_t seed, int in,
		       int out)
{
	struct rnd rnd = {seed};
	char token = 't';

	for (unsigned long i = 0; i < rounds; i++) {
		enum way how = (enum way)rnd_below(&rnd, WAYS),
			 way = (enum way)rnd_below(&rnd, WAYS);
		off_t at = (off_t)(rnd_below(&rnd, length / BLOCK) * BLOCK);
		int value = (int)rnd_below(&rnd, 256);

		if (first == (i % 2 == 0)) {
			change(side, how, at, value);
			if (write(out, &token, 1) != 1 || read(in, &token, 1) != 1)
				die("the other process has ended");
		} else {
			if (read(in, &token, 1) != 1)
				die("the other process has ended");
			look(side, way, at, value, how);
			if (write(out, &token, 1) != 1)
				die("the other process has ended");
		}
	}
}

int main(int argc, char **argv)
{
	unsigned long rounds = 3000, seed = 1;
	int there[2], back[2], fd, opt, status;
	struct side side;
	pid_t pid;

	while ((opt = getopt(argc, argv, "n:s:l:")) != -1) {
		switch (opt) {
		case 'n':
			rounds = arg_number(optarg);
			break;
		case 's':
			seed = arg_number(optarg);
			break;
		case 'l':
			length = arg_number(optarg) / BLOCK * BLOCK;
			break;
		default:
			return 2;
		}
	}
	if (optind + 1 != argc || length == 0)
		die("usage: coherent [-n ROUNDS] [-s SEED] [-l LENGTH] FILE");
	fd = open(argv[optind], O_RDWR | O_CREAT, 0644);
	if (fd < 0 || ftruncate(fd, (off_t)length) || pipe(there) || pipe(back))
		die("%s: %s", argv[optind], strerror(errno));
	close(fd);
	pid = fork();
	open_side(&side, argv[optind]);
	if (pid == 0) {
		close(there[1]);
		close(back[0]);
		take_turns(&side, false, rounds, seed, there[0], back[1]);
		return 0;
	}
	close(there[0]);
	close(back[1]);
	take_turns(&side, true, rounds, seed, back[0], there[1]);
	if (wait(&status) != pid || status)
		return 1;
	printf("%lu rounds: each saw what the other wrote\n", rounds);
	return 0;
}
