/* SPDX-License-Identifier: MIT */
/*
 * extents FILE MIB: makes a file with as many extents as it has blocks. Writes FILE in order, then
 * writes every block once more, each far from the one before, and then reads and compares all
 * blocks in that second order. Prints the speed of each tenth of the blocks, in thousands of blocks
 * a second. The number of extents grows during a row, and the numbers of the row should be alike
 * all the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 4096u
#define PARTS 10u

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "extents: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* A block says where it belongs and in which round it was written. */
static void fill(uint64_t *block, uint64_t index, uint64_t round)
{
	for (unsigned int i = 0; i < BLOCK / sizeof(*block); i++)
		block[i] = index * 1000003 + round;
}

/* All of 0 .. count-1, for i from 0 on: count is a power of two, the step odd. */
static uint64_t scattered(uint64_t i, uint64_t count)
{
	return i * UINT64_C(0x9e3779b97f4a7c15) % count;
}

static void write_block(int fd, uint64_t index, uint64_t round)
{
	uint64_t block[BLOCK / sizeof(uint64_t)];

	fill(block, index, round);
	if (pwrite(fd, block, BLOCK, (off_t)(index * BLOCK)) != BLOCK)
		fail("write");
}

static void read_block(int fd, uint64_t index, uint64_t round)
{
	uint64_t block[BLOCK / sizeof(uint64_t)], expected[BLOCK / sizeof(uint64_t)];

	fill(expected, index, round);
	if (pread(fd, block, BLOCK, (off_t)(index * BLOCK)) != BLOCK)
		fail("read");
	if (memcmp(block, expected, BLOCK) != 0) {
		errno = EILSEQ;
		fail("compare");
	}
}

static void each(const char *what, int fd, uint64_t count, uint64_t round,
		 void (*fn)(int fd, uint64_t index, uint64_t round))
{
	printf("%-10s", what);
	for (unsigned int part = 0; part < PARTS; part++) {
		double began = now();
		uint64_t from = count * part / PARTS, to = count * (part + 1) / PARTS;

		for (uint64_t i = from; i < to; i++)
			fn(fd, round == 0 ? i : scattered(i, count), round);
		printf(" %6.1f", (double)(to - from) / (now() - began) / 1e3);
		fflush(stdout);
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	uint64_t count;
	double began;
	int fd;

	if (argc != 3 || (count = strtoull(argv[2], NULL, 10) * (1048576 / BLOCK)) == 0 ||
	    (count & (count - 1)) != 0) {
		fprintf(stderr, "usage: extents FILE MIB (a power of two)\n");
		return 2;
	}
	fd = open(argv[1], O_CREAT | O_RDWR | O_TRUNC, 0644);
	if (fd < 0)
		fail(argv[1]);
	each("write", fd, count, 0, write_block);
	each("overwrite", fd, count, 1, write_block);
	if (fsync(fd) < 0)
		fail("fsync");
	/* Read from the device, not from the page cache. */
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	each("read", fd, count, 1, read_block);
	close(fd);
	began = now();
	if (unlink(argv[1]) < 0)
		fail("unlink");
	printf("unlink     %.3f s\n", now() - began);
	return 0;
}
