/* SPDX-License-Identifier: MIT */
/*
 * stale_pages DIR SECONDS FILES WRITES [wild|buffered|later]: does the page cache ever show bytes
 * that direct writes have replaced?
 *
 * The first 640 KiB of each of FILES files are rewritten again and again with WRITES concurrent
 * direct writes, while two threads read these bytes through the page cache. When all writes are
 * answered, a read through the page cache must return the new bytes.
 *
 * buffered: in addition each round writes the same bytes through the page cache while the direct
 * writes are in flight. Either write may win; soon after both, the page cache and a direct read
 * have to agree.
 *
 * wild: behind those bytes lie as many more, which other threads change meanwhile: through a shared
 * mapping, by holes, by direct writes, and by truncation; and the file is synced all the time.
 * Their final content is unknown, but in the end the page cache and a direct read have to agree
 * about it.
 *
 * later: O_DIRECT is set after the file was opened (F_SETFL), as some databases do it.
 *
 * Prints how often a check failed; status 1 if one did.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CHECKED	   (640 * 1024) /* bytes that are compared */
#define MAPPED	   (256 * 1024) /* behind them: changed in every way but truncation */
#define TAIL	   (128 * 1024) /* and behind those */
#define WRITES_MAX 160
#define READERS	   2

struct file {
	pthread_t threads[READERS + 5];
	unsigned int thread_count;
	int fd, direct_fd;
	bool wild, buffered;
	unsigned int number;
	unsigned long rounds, stale;
};

static atomic_bool ending;
static unsigned int writes;
static size_t write_len;

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static char *buffer(size_t size)
{
	char *buf = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buf == MAP_FAILED)
		fail("mmap");
	return buf;
}

/* ---- direct writes under way at once ---- */

static aio_context_t new_context(void)
{
	aio_context_t context = 0;

	if (syscall(SYS_io_setup, WRITES_MAX, &context) < 0)
		fail("io_setup");
	return context;
}

/* `count` of `len` bytes each, one behind the other from `offset` on. */
static void submit(aio_context_t context, int fd, char *buf, size_t len, unsigned int count,
		   off_t offset)
{
	struct iocb writes_of[WRITES_MAX], *list[WRITES_MAX];
	long submitted = 0, n;

	memset(writes_of, 0, sizeof(writes_of));
	for (unsigned int i = 0; i < count; i++) {
		list[i] = &writes_of[i];
		writes_of[i].aio_lio_opcode = IOCB_CMD_PWRITE;
		writes_of[i].aio_fildes = (uint32_t)fd;
		writes_of[i].aio_buf = (uintptr_t)buf + i * len;
		writes_of[i].aio_nbytes = len;
		writes_of[i].aio_offset = (int64_t)(offset + (off_t)(i * len));
	}
	while (submitted < count) {
		n = syscall(SYS_io_submit, context, count - submitted, list + submitted);
		if (n < 0)
			fail("io_submit");
		submitted += n;
	}
}

static void wait_for(aio_context_t context, unsigned int count, size_t len)
{
	struct io_event events[WRITES_MAX];

	if (syscall(SYS_io_getevents, context, count, count, events, NULL) != count)
		fail("io_getevents");
	for (unsigned int i = 0; i < count; i++) {
		if (events[i].res != (int64_t)len) {
			errno = (int)-events[i].res;
			fail("a direct write");
		}
	}
}

/* ---- what is checked ---- */

static void *read_cached(void *arg)
{
	const struct file *file = arg;
	ssize_t len = CHECKED + (file->wild ? MAPPED : 0);
	char *buf = buffer((size_t)len);

	while (!atomic_load(&ending)) {
		if (pread(file->fd, buf, (size_t)len, 0) != len)
			fail("a buffered read");
	}
	return NULL;
}

static void *rewrite(void *arg)
{
	struct file *file = arg;
	char *buf = buffer(CHECKED), *cached = buffer(CHECKED);
	aio_context_t context = new_context();

	while (!atomic_load(&ending)) {
		memset(buf, (int)(file->rounds % 255 + 1), CHECKED);
		submit(context, file->direct_fd, buf, write_len, writes, 0);
		wait_for(context, writes, write_len);
		if (pread(file->fd, cached, CHECKED, 0) != CHECKED)
			fail("a buffered read");
		file->rounds++;
		file->stale += memcmp(buf, cached, write_len * writes) != 0;
	}
	return NULL;
}

/* No thread writes meanwhile, so both can be read repeatedly. */
static bool cache_differs(const struct file *file, size_t size)
{
	static __thread char *cached, *direct;
	ssize_t len, direct_len;

	if (!cached) {
		cached = buffer(CHECKED + MAPPED + TAIL);
		direct = buffer(CHECKED + MAPPED + TAIL);
	}
	len = pread(file->fd, cached, size, 0);
	direct_len = pread(file->direct_fd, direct, size, 0);
	return len < CHECKED || len != direct_len || memcmp(cached, direct, (size_t)len) != 0;
}

/* The pages of a buffered write are dropped soon after its answer. */
static bool cache_stays_different(const struct file *file)
{
	for (unsigned int i = 0; i < 100; i++) {
		if (!cache_differs(file, CHECKED))
			return false;
		usleep(10000);
	}
	return true;
}

static void *rewrite_both_ways(void *arg)
{
	struct file *file = arg;
	char *direct = buffer(CHECKED), *buffered = buffer(CHECKED);
	aio_context_t context = new_context();

	while (!atomic_load(&ending)) {
		memset(direct, (int)(file->rounds % 127), CHECKED);
		memset(buffered, (int)(128 + file->rounds % 127), CHECKED);
		submit(context, file->direct_fd, direct, write_len, writes, 0);
		if (pwrite(file->fd, buffered, CHECKED, 0) != CHECKED)
			fail("a buffered write");
		wait_for(context, writes, write_len);
		file->rounds++;
		file->stale += cache_stays_different(file);
	}
	return NULL;
}

/* ---- what is wild ---- */

static void *write_mapping(void *arg)
{
	const struct file *file = arg;
	char *map = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED,
			 file->number % 2 ? file->fd : file->direct_fd, CHECKED);
	unsigned int seed = 1;

	if (map == MAP_FAILED)
		fail("mmap of the file");
	while (!atomic_load(&ending))
		map[(size_t)rand_r(&seed) % MAPPED] = (char)seed;
	munmap(map, MAPPED);
	return NULL;
}

static void *write_directly(void *arg)
{
	const struct file *file = arg;
	char *buf = buffer(MAPPED + TAIL);
	aio_context_t context = new_context();

	for (unsigned int i = 0; !atomic_load(&ending); i++) {
		memset(buf, (int)(i % 255), MAPPED + TAIL);
		submit(context, file->direct_fd, buf, 16384, (MAPPED + TAIL) / 16384, CHECKED);
		wait_for(context, (MAPPED + TAIL) / 16384, 16384);
	}
	return NULL;
}

static void *punch_and_write(void *arg)
{
	const struct file *file = arg;
	unsigned int seed = 2;
	char *buf = buffer(MAPPED / 4);

	while (!atomic_load(&ending)) {
		if (fallocate(file->fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE,
			      CHECKED + rand_r(&seed) % MAPPED / 2, MAPPED / 4) < 0)
			fail("punching a hole");
		for (unsigned int i = 0; i < 20; i++) {
			memset(buf, rand_r(&seed) % 256, MAPPED / 4);
			if (pwrite(file->fd, buf, MAPPED / 4, CHECKED + i % 4 * MAPPED / 4) < 0)
				fail("a buffered write");
		}
	}
	return NULL;
}

static void *truncate_tail(void *arg)
{
	const struct file *file = arg;
	unsigned int seed = 3;

	while (!atomic_load(&ending)) {
		if (ftruncate(file->fd, CHECKED + MAPPED + rand_r(&seed) % TAIL) < 0)
			fail("truncation");
		usleep(1000);
	}
	return NULL;
}

static void *sync_file(void *arg)
{
	const struct file *file = arg;

	while (!atomic_load(&ending)) {
		if (fsync(file->fd) < 0)
			fail("fsync");
		usleep(1000);
	}
	return NULL;
}

/* ---- all of it ---- */

static void start(struct file *file, void *(*run)(void *))
{
	if (pthread_create(&file->threads[file->thread_count++], NULL, run, file) != 0)
		fail("a thread");
}

static void set_up(struct file *file, const char *dir, unsigned int number, const char *mode)
{
	bool later = strcmp(mode, "later") == 0;
	char path[4096];

	snprintf(path, sizeof(path), "%s/file%u", dir, number);
	file->wild = strcmp(mode, "wild") == 0;
	file->buffered = strcmp(mode, "buffered") == 0;
	file->number = number;
	file->fd = open(path, O_RDWR | O_CREAT, 0644);
	file->direct_fd = open(path, O_RDWR | (later ? 0 : O_DIRECT));
	if (later && fcntl(file->direct_fd, F_SETFL, O_DIRECT) < 0)
		fail("F_SETFL");
	if (file->fd < 0 || file->direct_fd < 0 ||
	    ftruncate(file->fd, file->wild ? CHECKED + MAPPED + TAIL : CHECKED) < 0)
		fail(path);
}

static void start_all(struct file *file)
{
	start(file, file->buffered ? rewrite_both_ways : rewrite);
	for (unsigned int i = 0; i < READERS; i++)
		start(file, read_cached);
	if (!file->wild)
		return;
	start(file, write_mapping);
	start(file, write_directly);
	start(file, file->number % 2 ? punch_and_write : truncate_tail);
	start(file, sync_file);
}

int main(int argc, char **argv)
{
	struct file *files;
	unsigned long file_count, rounds = 0, stale = 0, differing = 0;

	if (argc < 5)
		return 2;
	file_count = strtoul(argv[3], NULL, 10);
	writes = (unsigned int)strtoul(argv[4], NULL, 10);
	write_len = writes ? CHECKED / writes / 4096 * 4096 : 0;
	files = calloc(file_count, sizeof(*files));
	if (!files || writes > WRITES_MAX || write_len == 0 ||
	    (mkdir(argv[1], 0755) < 0 && errno != EEXIST))
		return 2;
	for (unsigned int i = 0; i < file_count; i++)
		set_up(&files[i], argv[1], i, argc > 5 ? argv[5] : "");
	for (unsigned int i = 0; i < file_count; i++)
		start_all(&files[i]);
	sleep((unsigned int)strtoul(argv[2], NULL, 10));
	atomic_store(&ending, true);
	for (unsigned int i = 0; i < file_count; i++) {
		for (unsigned int t = 0; t < files[i].thread_count; t++)
			pthread_join(files[i].threads[t], NULL);
		rounds += files[i].rounds;
		stale += files[i].stale;
		differing += cache_differs(&files[i], CHECKED + MAPPED + TAIL);
	}
	printf("%lu rounds, %lu stale; %lu files differ in the end\n", rounds, stale, differing);
	return rounds > 0 && stale == 0 && differing == 0 ? 0 : 1;
}
