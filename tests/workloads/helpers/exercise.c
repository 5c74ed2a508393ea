// SPDX-License-Identifier: MIT
/*
 * exercise [-s SEED] [-n OPERATIONS] [-l LENGTH] [-o OP,...] [-x OP,...] [-u] [-v] FILE
 *
 * Does random operations on one file, through three descriptors and mappings, and the same on a
 * copy in memory; the bytes read and the size must agree at every step. -l: the maximum length of
 * the file (256k). -o, -x: only these operations, or all but these. -u: leave out operations that
 * the filesystem answers with EOPNOTSUPP. -v: print each operation. The same seed and options give
 * the same run. At a difference the program prints the last operations, and ends with status 1.
 */
#include "common.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define HISTORY	  32
#define PIECE_MAX 65536
#define BLOCK	  4096u

static struct {
	const char *path;
	int fd, direct_fd, append_fd;
	unsigned char *shadow, *buffer;
	size_t size, max;
	unsigned long op_no;
	struct rnd rnd;
	char history[HISTORY][96];
	bool verbose, tolerant;
} x;

/* Ends the program, telling what led to this. */
__attribute__((noreturn, format(printf, 1, 2))) static void wrong(const char *format, ...)
{
	va_list args;

	for (unsigned long i = x.op_no >= HISTORY ? x.op_no - HISTORY + 1 : 0; i <= x.op_no; i++)
		printf("  %lu %s\n", i, x.history[i % HISTORY]);
	printf("operation %lu: ", x.op_no);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	exit(1);
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	char *line = x.history[x.op_no % HISTORY];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(x.history[0]), format, args);
	va_end(args);
	if (x.verbose)
		printf("%lu %s\n", x.op_no, line);
}

/* 0 if it worked, 1 if this filesystem cannot do it and that is allowed. */
static int worked(long result, const char *what)
{
	if (result >= 0)
		return 0;
	if (errno == EOPNOTSUPP && x.tolerant)
		return 1;
	wrong("%s: %s", what, strerror(errno));
}

struct range {
	size_t at, len;
};

/* Draws a place, often at the edge of a block, where faults are likely. */
static size_t place(size_t limit)
{
	size_t at = rnd_below(&x.rnd, limit + 1);

	switch (rnd_below(&x.rnd, 4)) {
	case 0:
		return at / BLOCK * BLOCK;
	case 1:
		return at / BLOCK ? at / BLOCK * BLOCK - 1 : at;
	default:
		return at;
	}
}

static struct range any_range(size_t limit)
{
	struct range r = {.at = place(limit - 1)};
	size_t most = limit - r.at < PIECE_MAX ? limit - r.at : PIECE_MAX;

	r.len = rnd_below(&x.rnd, 3) ? place(most) : rnd_below(&x.rnd, most < 100 ? most + 1 : 100);
	if (r.len == 0)
		r.len = 1;
	return r;
}

static struct range aligned(struct range r)
{
	r.len = (r.len + BLOCK - 1) / BLOCK * BLOCK;
	r.at = r.at / BLOCK * BLOCK;
	if (r.at + r.len > x.max)
		r.at = x.max - r.len;
	return r;
}

static void fill(struct range r)
{
	for (size_t i = 0; i < r.len; i++)
		x.buffer[i] = (unsigned char)(x.op_no * 7 + i * 3 + (i >> 8) + 1) | 1;
}

static void shadow_write(struct range r)
{
	memcpy(x.shadow + r.at, x.buffer, r.len);
	if (r.at + r.len > x.size)
		x.size = r.at + r.len;
}

/* What lies behind the end reads as zeroes when the file grows. */
static void shadow_size(size_t size)
{
	if (size < x.size)
		memset(x.shadow + size, 0, x.size - size);
	x.size = size;
}

static void shadow_zero(struct range r, bool grow)
{
	if (r.at < x.size)
		memset(x.shadow + r.at, 0, r.at + r.len < x.size ? r.len : x.size - r.at);
	if (grow && r.at + r.len > x.size)
		x.size = r.at + r.len;
}

static void compare(const unsigned char *got, struct range r)
{
	for (size_t i = 0; i < r.len; i++) {
		if (got[i] != x.shadow[r.at + i])
			wrong("byte %zu of %zu is %#x instead of %#x", r.at + i, x.size, got[i],
			      x.shadow[r.at + i]);
	}
}

static void read_and_compare(int fd, struct range r)
{
	size_t there = r.at >= x.size ? 0 : r.at + r.len > x.size ? x.size - r.at : r.len;
	ssize_t got = pread(fd, x.buffer, r.len, (off_t)r.at);

	if (got < 0)
		wrong("read: %s", strerror(errno));
	if ((size_t)got != there)
		wrong("read gave %zd bytes instead of %zu", got, there);
	compare(x.buffer, (struct range){r.at, there});
}

static int op_write(void)
{
	struct range r = any_range(x.max);

	note("write %zu %zu", r.at, r.len);
	fill(r);
	if (pwrite(x.fd, x.buffer, r.len, (off_t)r.at) != (ssize_t)r.len)
		wrong("write: %s", strerror(errno));
	shadow_write(r);
	return 0;
}

static int op_dsync(void)
{
	struct range r = any_range(x.max);
	struct iovec iov = {x.buffer, r.len};

	note("dsync %zu %zu", r.at, r.len);
	fill(r);
	if (pwritev2(x.fd, &iov, 1, (off_t)r.at, RWF_DSYNC) != (ssize_t)r.len)
		wrong("pwritev2: %s", strerror(errno));
	shadow_write(r);
	return 0;
}

static int op_append(void)
{
	struct range r = {x.size, 1 + rnd_below(&x.rnd, 5000)};

	if (r.at + r.len > x.max)
		return 0;
	note("append %zu %zu", r.at, r.len);
	fill(r);
	if (write(x.append_fd, x.buffer, r.len) != (ssize_t)r.len)
		wrong("append: %s", strerror(errno));
	shadow_write(r);
	return 0;
}

static int op_read(void)
{
	struct range r = any_range(x.max);

	note("read %zu %zu", r.at, r.len);
	read_and_compare(x.fd, r);
	return 0;
}

static int op_dwrite(void)
{
	struct range r = aligned(any_range(x.max));

	note("dwrite %zu %zu", r.at, r.len);
	fill(r);
	if (pwrite(x.direct_fd, x.buffer, r.len, (off_t)r.at) != (ssize_t)r.len)
		wrong("direct write: %s", strerror(errno));
	shadow_write(r);
	return 0;
}

static int op_dread(void)
{
	struct range r = aligned(any_range(x.max));

	note("dread %zu %zu", r.at, r.len);
	read_and_compare(x.direct_fd, r);
	return 0;
}

/* Maps whole pages around the range, which must be in the file. */
static unsigned char *map(struct range r, size_t *ret_len)
{
	size_t start = r.at / BLOCK * BLOCK;
	unsigned char *p;

	*ret_len = r.at + r.len - start;
	p = mmap(NULL, *ret_len, PROT_READ | PROT_WRITE, MAP_SHARED, x.fd, (off_t)start);
	if (p == MAP_FAILED)
		wrong("mmap: %s", strerror(errno));
	return p;
}

static int op_mapwrite(void)
{
	struct range r = any_range(x.max);
	unsigned char *p;
	size_t len;

	note("mapwrite %zu %zu", r.at, r.len);
	if (r.at + r.len > x.size) {
		if (ftruncate(x.fd, (off_t)(r.at + r.len)))
			wrong("ftruncate: %s", strerror(errno));
		x.size = r.at + r.len;
	}
	fill(r);
	p = map(r, &len);
	memcpy(p + r.at % BLOCK, x.buffer, r.len);
	if (rnd_below(&x.rnd, 3) == 0 && msync(p, len, MS_SYNC))
		wrong("msync: %s", strerror(errno));
	munmap(p, len);
	shadow_write(r);
	return 0;
}

static int op_mapread(void)
{
	struct range r;
	unsigned char *p;
	size_t len;

	if (x.size == 0)
		return 0;
	r = any_range(x.size);
	note("mapread %zu %zu", r.at, r.len);
	p = map(r, &len);
	compare(p + r.at % BLOCK, r);
	/* Behind the end, the rest of the last page is zeroes. */
	for (size_t i = x.size; i % BLOCK != 0 && r.at + r.len == x.size; i++) {
		if (p[i - r.at / BLOCK * BLOCK] != 0)
			wrong("byte %zu, behind the end at %zu, is not 0 in the mapping", i,
			      x.size);
	}
	munmap(p, len);
	return 0;
}

static int op_truncate(void)
{
	size_t size = rnd_below(&x.rnd, 4) ? place(x.max) : place(x.size);

	note("truncate %zu", size);
	if (ftruncate(x.fd, (off_t)size))
		wrong("ftruncate: %s", strerror(errno));
	shadow_size(size);
	return 0;
}

static int do_fallocate(const char *name, int mode, bool zeroes, bool grows)
{
	struct range r = any_range(x.max);

	note("%s %zu %zu", name, r.at, r.len);
	if (worked(fallocate(x.fd, mode, (off_t)r.at, (off_t)r.len), name))
		return 1;
	if (zeroes)
		shadow_zero(r, grows);
	else if (grows && r.at + r.len > x.size)
		x.size = r.at + r.len;
	return 0;
}

static int op_alloc(void)
{
	return do_fallocate("alloc", 0, false, true);
}
static int op_keep(void)
{
	return do_fallocate("keep", FALLOC_FL_KEEP_SIZE, false, false);
}
static int op_zero(void)
{
	return do_fallocate("zero", FALLOC_FL_ZERO_RANGE, true, true);
}

static int op_zerokeep(void)
{
	return do_fallocate("zerokeep", FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, true, false);
}

static int op_punch(void)
{
	return do_fallocate("punch", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, true, false);
}

/* Within the file, where source and target must not overlap; aligned ones may share their extents.
 */
static int op_copy(void)
{
	struct range r;
	off_t from, to;
	size_t left;

	if (x.size < 2)
		return 0;
	r = any_range(x.size);
	to = (off_t)place(x.max - r.len);
	if (rnd_below(&x.rnd, 2)) {
		r.at = r.at / BLOCK * BLOCK;
		to = to / BLOCK * BLOCK;
	}
	if ((size_t)to < r.at + r.len && r.at < (size_t)to + r.len)
		return 0;
	note("copy %zu %zu to %lld", r.at, r.len, (long long)to);
	memcpy(x.buffer, x.shadow + r.at, r.len);
	from = (off_t)r.at;
	r.at = (size_t)to;
	for (left = r.len; left > 0;) {
		ssize_t done = copy_file_range(x.fd, &from, x.fd, &to, left, 0);

		if (worked(done, "copy_file_range"))
			return 1;
		if (done == 0)
			wrong("copy_file_range copies nothing");
		left -= (size_t)done;
	}
	shadow_write(r);
	return 0;
}

/* What a seek skips as a hole must be zeroes. */
static int op_seek(void)
{
	off_t at, data, hole;

	if (x.size == 0)
		return 0;
	at = (off_t)rnd_below(&x.rnd, x.size);
	note("seek %lld", (long long)at);
	data = lseek(x.fd, at, SEEK_DATA);
	if (data < 0 && errno != ENXIO)
		wrong("SEEK_DATA: %s", strerror(errno));
	if (data < 0)
		data = (off_t)x.size;
	if (data < at || (size_t)data > x.size)
		wrong("SEEK_DATA of %lld in %zu bytes gives %lld", (long long)at, x.size,
		      (long long)data);
	for (off_t i = at; i < data; i++) {
		if (x.shadow[i])
			wrong("SEEK_DATA skips byte %lld", (long long)i);
	}
	hole = lseek(x.fd, at, SEEK_HOLE);
	if (hole < at || (size_t)hole > x.size)
		wrong("SEEK_HOLE of %lld in %zu bytes gives %lld", (long long)at, x.size,
		      (long long)hole);
	return 0;
}

static int op_fsync(void)
{
	note("fsync");
	return worked(fsync(x.fd), "fsync");
}

static int op_fdatasync(void)
{
	note("fdatasync");
	return worked(fdatasync(x.fd), "fdatasync");
}

/* The next reads come from the filesystem, not from the page cache. */
static int op_drop(void)
{
	note("drop");
	if (fdatasync(x.fd))
		wrong("fdatasync: %s", strerror(errno));
	return worked(-posix_fadvise(x.fd, 0, 0, POSIX_FADV_DONTNEED), "fadvise");
}

static int open_file(int flags)
{
	int fd = open(x.path, O_RDWR | flags, 0644);

	if (fd < 0)
		wrong("open: %s", strerror(errno));
	return fd;
}

static int op_reopen(void)
{
	note("reopen");
	close(x.fd);
	close(x.direct_fd);
	x.fd = open_file(0);
	x.direct_fd = open_file(O_DIRECT);
	return 0;
}

static struct op {
	const char *name;
	unsigned weight;
	int (*fn)(void);
} ops[] = {
	{"write", 10, op_write},      {"append", 3, op_append},	  {"dsync", 1, op_dsync},
	{"read", 10, op_read},	      {"dwrite", 4, op_dwrite},	  {"dread", 4, op_dread},
	{"mapwrite", 6, op_mapwrite}, {"mapread", 6, op_mapread}, {"truncate", 5, op_truncate},
	{"alloc", 2, op_alloc},	      {"keep", 2, op_keep},	  {"zero", 3, op_zero},
	{"zerokeep", 2, op_zerokeep}, {"punch", 4, op_punch},	  {"copy", 4, op_copy},
	{"seek", 3, op_seek},	      {"fsync", 1, op_fsync},	  {"fdatasync", 1, op_fdatasync},
	{"drop", 1, op_drop},	      {"reopen", 1, op_reopen},
};
#define OPS (sizeof(ops) / sizeof(ops[0]))

static bool listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',') {
		if (strcspn(p, ",") == len && memcmp(p, name, len) == 0)
			return true;
	}
	return false;
}

static void choose(const char *only, const char *without)
{
	for (size_t i = 0; i < OPS; i++) {
		if ((only && !listed(only, ops[i].name)) ||
		    (without && listed(without, ops[i].name)))
			ops[i].weight = 0;
	}
}

static struct op *any_op(void)
{
	unsigned sum = 0, at;

	for (size_t i = 0; i < OPS; i++)
		sum += ops[i].weight;
	if (sum == 0)
		die("no operation is left");
	at = (unsigned)rnd_below(&x.rnd, sum);
	for (size_t i = 0;; i++) {
		if (at < ops[i].weight)
			return &ops[i];
		at -= ops[i].weight;
	}
}

static void check_size(void)
{
	struct stat st;

	if (fstat(x.fd, &st))
		wrong("fstat: %s", strerror(errno));
	if ((size_t)st.st_size != x.size)
		wrong("the size is %lld instead of %zu", (long long)st.st_size, x.size);
}

int main(int argc, char **argv)
{
	const char *only = NULL, *without = NULL;
	unsigned long count = 1000, seed = 1;
	int opt;

	x.max = 256 << 10;
	while ((opt = getopt(argc, argv, "s:n:l:o:x:uv")) != -1) {
		switch (opt) {
		case 's':
			seed = arg_number(optarg);
			break;
		case 'n':
			count = arg_number(optarg);
			break;
		case 'l':
			x.max = arg_number(optarg) / BLOCK * BLOCK;
			break;
		case 'o':
			only = optarg;
			break;
		case 'x':
			without = optarg;
			break;
		case 'u':
			x.tolerant = true;
			break;
		case 'v':
			x.verbose = true;
			break;
		default:
			return 2;
		}
	}
	if (optind + 1 != argc || x.max < PIECE_MAX)
		die("usage: exercise [-s SEED] [-n OPERATIONS] [-l LENGTH >= 64k] [-o OP,...] [-x "
		    "OP,...] [-u] [-v] "
		    "FILE");
	x.path = argv[optind];
	x.rnd.state = seed;
	x.shadow = xalloc(x.max + BLOCK);
	x.buffer = xalloc(x.max + BLOCK);
	choose(only, without);
	x.fd = open_file(O_CREAT | O_TRUNC);
	x.direct_fd = open_file(O_DIRECT);
	x.append_fd = open_file(O_APPEND);
	for (x.op_no = 0; x.op_no < count; x.op_no++) {
		struct op *op = any_op();

		note("%s: nothing to do", op->name);
		if (op->fn())
			op->weight = 0;
		check_size();
	}
	x.op_no--;
	op_drop();
	op_reopen();
	for (size_t at = 0; at < x.size; at += PIECE_MAX)
		read_and_compare(x.fd, (struct range){at, PIECE_MAX});
	printf("%lu operations: as expected\n", count);
	return 0;
}
