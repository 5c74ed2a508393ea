// SPDX-License-Identifier: MIT
/*
 * submit [-d] [-D] [-q DEPTH] [-b BLOCK] [-c COUNT] [-n OPERATIONS] [-s SEED] aio|io_uring FILE
 *
 * Keeps DEPTH reads and writes of BLOCK bytes in flight at random places of a file of COUNT blocks,
 * never two at one place, and checks all bytes that it reads. First it writes all blocks in random
 * order, then it does OPERATIONS reads and writes with a sync now and then, then it reads all
 * blocks. -d: direct I/O. -D: O_DSYNC.
 */
#include "common.h"
#include "submit.h"

#include <fcntl.h>
#include <unistd.h>

static struct {
	const struct engine *engine;
	struct rnd rnd;
	int fd;
	unsigned depth, in_flight;
	size_t block, count;
	uint32_t *versions; /* of each block, 0 before it is first written */
	bool *busy;	    /* blocks with an operation in flight */
	struct request *requests;
} s = {.depth = 16, .block = 4096, .count = 512};

static void fill(unsigned char *bytes, size_t block, uint32_t version)
{
	for (size_t i = 0; i < s.block; i++)
		bytes[i] = (unsigned char)(block * 5 + version * 11 + i + (i >> 8));
}

static void check(const unsigned char *bytes, size_t block)
{
	static unsigned char *expected;

	if (!expected)
		expected = xalloc(s.block);
	fill(expected, block, s.versions[block]);
	for (size_t i = 0; i < s.block; i++) {
		if (bytes[i] != expected[i])
			die("byte %zu of block %zu, version %u, is %#x instead of %#x", i, block,
			    s.versions[block], bytes[i], expected[i]);
	}
}

static unsigned finish_one(void)
{
	long result;
	unsigned slot = s.engine->wait(&result);
	struct request *r = &s.requests[slot];
	size_t block = (size_t)r->at / s.block;

	if (result != (long)s.block)
		die("%s of block %zu gave %ld", r->is_write ? "write" : "read", block, result);
	if (!r->is_write)
		check(r->buffer, block);
	s.busy[block] = false;
	s.in_flight--;
	return slot;
}

static void start(size_t block, bool is_write)
{
	unsigned slot = s.in_flight < s.depth ? s.in_flight : finish_one();
	struct request *r = &s.requests[slot];

	s.in_flight++;
	s.busy[block] = true;
	r->fd = s.fd;
	r->is_write = is_write;
	r->at = (off_t)(block * s.block);
	if (is_write)
		fill(r->buffer, block, ++s.versions[block]);
	s.engine->submit(r);
}

static void finish_all(void)
{
	while (s.in_flight > 0)
		finish_one();
}

/* Every block once, in an order that has no pattern. */
static void each_block(bool is_write)
{
	size_t *order = xalloc(s.count * sizeof(*order));

	for (size_t i = 0; i < s.count; i++) {
		size_t other = rnd_below(&s.rnd, i + 1);

		order[i] = order[other];
		order[other] = i;
	}
	for (size_t i = 0; i < s.count; i++)
		start(order[i], is_write);
	finish_all();
	free(order);
}

static void mix(unsigned long operations)
{
	for (unsigned long i = 0; i < operations; i++) {
		size_t block = rnd_below(&s.rnd, s.count);

		while (s.busy[block])
			block = (block + 1) % s.count;
		start(block, rnd_below(&s.rnd, 2));
		if (i % 500 == 499) {
			finish_all();
			s.engine->sync(s.fd);
		}
	}
	finish_all();
}

static void open_file(const char *path, int flags)
{
	s.fd = open(path, O_RDWR | O_CREAT | flags, 0644);
	if (s.fd < 0)
		die("%s: %s", path, strerror(errno));
	s.versions = xalloc(s.count * sizeof(*s.versions));
	s.busy = xalloc(s.count * sizeof(*s.busy));
	s.requests = xalloc(s.depth * sizeof(*s.requests));
	for (unsigned i = 0; i < s.depth; i++) {
		s.requests[i].slot = i;
		s.requests[i].len = s.block;
		s.requests[i].buffer = xalloc(s.block);
	}
	s.engine->open(s.depth);
}

int main(int argc, char **argv)
{
	unsigned long operations = 2000;
	int opt, flags = 0;

	s.rnd.state = 1;
	while ((opt = getopt(argc, argv, "dDq:b:c:n:s:")) != -1) {
		switch (opt) {
		case 'd':
			flags |= O_DIRECT;
			break;
		case 'D':
			flags |= O_DSYNC;
			break;
		case 'q':
			s.depth = (unsigned)arg_number(optarg);
			break;
		case 'b':
			s.block = arg_number(optarg);
			break;
		case 'c':
			s.count = arg_number(optarg);
			break;
		case 'n':
			operations = arg_number(optarg);
			break;
		case 's':
			s.rnd.state = arg_number(optarg);
			break;
		default:
			return 2;
		}
	}
	if (optind + 2 != argc || s.depth == 0 || s.depth >= s.count)
		die("usage: submit [-d] [-D] [-q DEPTH] [-b BLOCK] [-c COUNT] [-n OPERATIONS] [-s "
		    "SEED] "
		    "aio|io_uring FILE");
	s.engine = strcmp(argv[optind], "aio") == 0 ? &aio_engine : &uring_engine;
	open_file(argv[optind + 1], flags);
	each_block(true);
	mix(operations);
	each_block(false);
	printf("%s: %lu operations: as expected\n", s.engine->name, operations);
	return 0;
}
