/* SPDX-License-Identifier: MIT */
/*
 * Wraps the calls of the image backend. Images are in memory (/dev/shm), so that many are judged
 * quickly; there the host is made to look like one with a disk: I/O that does not block, and room
 * to write ahead.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/bits.h"
#include "host/record.h"

#define RECORDING_MAX ((size_t)2 << 30) /* address space; memory as far as it is used */
#define MAPPINGS_MAX  4u
#define COMMANDS_MAX  1024u
#define BOOT_ID	      "/proc/sys/kernel/random/boot_id"

struct mapping {
	char *at, *was; /* `was`: the contents at the last event; `at` NULL: unused */
	size_t len;
	uint64_t offset; /* in the file */
};

/* In flight on the ring. */
struct command {
	uint64_t user_data, id; /* id 0: unused */
};

static struct recorder {
	pthread_mutex_t lock;
	bool on;
	char *bytes;
	size_t len;
	uint64_t last_id;
	struct mapping mappings[MAPPINGS_MAX];
	struct command commands[COMMANDS_MAX];
} recorder = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
	bool restarted;
	char attribute[32];
} host;

ssize_t __real_pwrite64(int fd, const void *buf, size_t len, off_t offset);
ssize_t __real_pwritev64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags);
ssize_t __real_preadv64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags);
int __real_fsync(int fd);
int __real_fdatasync(int fd);
int __real_msync(void *from, size_t len, int flags);
int __real_ftruncate64(int fd, off_t size);
int __real_fallocate64(int fd, int mode, off_t offset, off_t len);
void *__real_mmap64(void *at, size_t len, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t len);
int __real_open64(const char *path, int flags, ...);
int __real_fstatfs64(int fd, struct statfs *ret);
int __real_io_uring_submit(struct io_uring *ring);
unsigned int __real_io_uring_peek_batch_cqe(struct io_uring *ring, struct io_uring_cqe **cqes,
					    unsigned int count);

ssize_t __wrap_pwrite64(int fd, const void *buf, size_t len, off_t offset);
ssize_t __wrap_pwritev64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags);
ssize_t __wrap_preadv64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags);
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_msync(void *from, size_t len, int flags);
int __wrap_ftruncate64(int fd, off_t size);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t len);
int __wrap_fsetxattr(int fd, const char *name, const void *value, size_t len, int flags);
ssize_t __wrap_fgetxattr(int fd, const char *name, void *value, size_t len);
void *__wrap_mmap64(void *at, size_t len, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t len);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_fstatfs64(int fd, struct statfs *ret);
int __wrap_io_uring_submit(struct io_uring *ring);
unsigned int __wrap_io_uring_peek_batch_cqe(struct io_uring *ring, struct io_uring_cqe **cqes,
					    unsigned int count);

/* ---- events ---- */

static void put_locked(const void *bytes, size_t len)
{
	assert(recorder.len + len <= RECORDING_MAX);
	memcpy(recorder.bytes + recorder.len, bytes, len);
	recorder.len += len;
}

static void pad_locked(void)
{
	recorder.len = zf_align_up(recorder.len, _Alignof(struct event));
}

static void put_stores_locked(struct mapping *mapping)
{
	const size_t word = sizeof(uint64_t);

	for (size_t from = 0; from < mapping->len; from += word) {
		struct event event = {.type = EVENT_STORE, .offset = mapping->offset + from};
		size_t to = from;

		while (to < mapping->len &&
		       memcmp(mapping->at + to, mapping->was + to, word) != 0) {
			memcpy(mapping->was + to, mapping->at + to, word);
			to += word;
		}
		if (to == from)
			continue;
		event.len = to - from;
		put_locked(&event, sizeof(event));
		put_locked(mapping->was + from, event.len);
		pad_locked();
		from = to;
	}
}

static void put_event_locked(const struct event *event)
{
	for (unsigned int i = 0; i < MAPPINGS_MAX; i++) {
		if (recorder.mappings[i].at)
			put_stores_locked(&recorder.mappings[i]);
	}
	put_locked(event, sizeof(*event));
}

static void put_iov_locked(struct event *event, const struct iovec *iov, unsigned int count)
{
	event->len = 0;
	for (unsigned int i = 0; i < count; i++)
		event->len += iov[i].iov_len;
	put_event_locked(event);
	for (unsigned int i = 0; i < count; i++)
		put_locked(iov[i].iov_base, iov[i].iov_len);
	pad_locked();
}

static void lock(void)
{
	pthread_mutex_lock(&recorder.lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&recorder.lock);
}

/* Returns the id of the command that begins, 0 if nothing is recorded. */
static uint64_t begin(struct event event, const struct iovec *iov, unsigned int count)
{
	lock();
	if (recorder.on) {
		event.id = ++recorder.last_id;
		if (iov)
			put_iov_locked(&event, iov, count);
		else
			put_event_locked(&event);
	}
	unlock();
	return event.id;
}

static void done(uint64_t id, int64_t result)
{
	int error = errno;

	if (id == 0)
		return;
	lock();
	put_event_locked(&(struct event){
		.type = EVENT_DONE, .id = id, .result = result < 0 ? -error : result});
	unlock();
	errno = error;
}

void record_begin(void)
{
	if (!recorder.bytes)
		recorder.bytes = mmap(NULL, RECORDING_MAX, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert(recorder.bytes != MAP_FAILED);
	recorder.len = 0;
	recorder.last_id = 0;
	recorder.on = true;
}

void record_end(void)
{
	lock();
	recorder.on = false;
	unlock();
}

void record_note(const void *note, size_t len)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)note, .iov_len = len};

	begin((struct event){.type = EVENT_NOTE}, &iov, 1);
}

void recording_take(struct recording *ret_recording)
{
	*ret_recording = (struct recording){.bytes = recorder.bytes, .len = recorder.len};
}

void host_set(bool restarted, const char *attribute)
{
	host.restarted = restarted;
	snprintf(host.attribute, sizeof(host.attribute), "%s", attribute);
}

/* ---- calls ---- */

ssize_t __wrap_pwrite64(int fd, const void *buf, size_t len, off_t offset)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
	uint64_t id =
		begin((struct event){.type = EVENT_WRITE, .offset = (uint64_t)offset}, &iov, 1);
	ssize_t n = __real_pwrite64(fd, buf, len, offset);

	done(id, n);
	return n;
}

ssize_t __wrap_pwritev64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	uint64_t id = begin((struct event){.type = EVENT_WRITE,
					   .durable = (flags & RWF_DSYNC) != 0,
					   .offset = (uint64_t)offset},
			    iov, (unsigned int)count);
	ssize_t n = __real_pwritev64v2(fd, iov, count, offset, flags);

	done(id, n);
	return n;
}

/* tmpfs refuses RWF_NOWAIT. */
ssize_t __wrap_preadv64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	return __real_preadv64v2(fd, iov, count, offset, flags & ~RWF_NOWAIT);
}

int __wrap_fsync(int fd)
{
	uint64_t id = begin((struct event){.type = EVENT_SYNC}, NULL, 0);
	int r = __real_fsync(fd);

	done(id, r);
	return r;
}

int __wrap_fdatasync(int fd)
{
	uint64_t id = begin((struct event){.type = EVENT_SYNC}, NULL, 0);
	int r = __real_fdatasync(fd);

	done(id, r);
	return r;
}

static struct mapping *mapping_at(const void *at)
{
	for (unsigned int i = 0; i < MAPPINGS_MAX; i++) {
		if (recorder.mappings[i].at == at)
			return &recorder.mappings[i];
	}
	return NULL;
}

int __wrap_msync(void *from, size_t len, int flags)
{
	const struct mapping *mapping = mapping_at(from);
	uint64_t id = 0;
	int r;

	if (mapping)
		id = begin(
			(struct event){.type = EVENT_SYNC, .offset = mapping->offset, .len = len},
			NULL, 0);
	r = __real_msync(from, len, flags);
	done(id, r);
	return r;
}

int __wrap_ftruncate64(int fd, off_t size)
{
	uint64_t id = begin((struct event){.type = EVENT_SIZE, .offset = (uint64_t)size}, NULL, 0);
	int r = __real_ftruncate64(fd, size);

	done(id, r);
	return r;
}

int __wrap_fallocate64(int fd, int mode, off_t offset, off_t len)
{
	uint64_t id = 0;
	int r;

	if (mode & FALLOC_FL_PUNCH_HOLE)
		id = begin((struct event){.type = EVENT_HOLE,
					  .offset = (uint64_t)offset,
					  .len = (uint64_t)len},
			   NULL, 0);
	r = __real_fallocate64(fd, mode, offset, len);
	done(id, r);
	return r;
}

int __wrap_fsetxattr(int fd, const char *name, const void *value, size_t len, int flags)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)value, .iov_len = len};

	assert(len < sizeof(host.attribute));
	begin((struct event){.type = EVENT_ATTRIBUTE}, &iov, 1);
	memset(host.attribute, 0, sizeof(host.attribute));
	memcpy(host.attribute, value, len);
	return 0;
}

ssize_t __wrap_fgetxattr(int fd, const char *name, void *value, size_t len)
{
	size_t has = strlen(host.attribute);

	if (has == 0 || has > len) {
		errno = ENODATA;
		return -1;
	}
	memcpy(value, host.attribute, has);
	return (ssize_t)has;
}

/* ---- mapped memory ---- */

void *__wrap_mmap64(void *at, size_t len, int protection, int flags, int fd, off_t offset)
{
	void *map = __real_mmap64(at, len, protection, flags, fd, offset);
	struct mapping *mapping;

	lock();
	if (recorder.on && map != MAP_FAILED && fd >= 0 && (flags & MAP_SHARED)) {
		mapping = mapping_at(NULL);
		assert(mapping);
		*mapping = (struct mapping){
			.at = map, .was = malloc(len), .len = len, .offset = (uint64_t)offset};
		assert(mapping->was);
		memcpy(mapping->was, map, len);
	}
	unlock();
	return map;
}

int __wrap_munmap(void *at, size_t len)
{
	struct mapping *mapping;

	lock();
	mapping = mapping_at(at);
	if (mapping) {
		put_stores_locked(mapping);
		free(mapping->was);
		*mapping = (struct mapping){};
	}
	unlock();
	return __real_munmap(at, len);
}

/* ---- the ring ---- */

static void submitted_locked(const struct io_uring_sqe *sqe)
{
	struct event event = {.id = ++recorder.last_id, .offset = sqe->off};
	struct command *command = recorder.commands;

	switch (sqe->opcode) {
	case IORING_OP_WRITEV:
		event.type = EVENT_WRITE;
		event.durable = (sqe->rw_flags & RWF_DSYNC) != 0;
		put_iov_locked(&event, (const void *)(uintptr_t)sqe->addr, sqe->len);
		break;
	case IORING_OP_FSYNC:
		event.type = EVENT_SYNC;
		event.len = sqe->len;
		put_event_locked(&event);
		break;
	case IORING_OP_FALLOCATE: /* `addr` has its length */
		event.type = EVENT_HOLE;
		event.len = sqe->addr;
		put_event_locked(&event);
		break;
	default:
		return;
	}
	while (command->id != 0)
		command++;
	assert(command < recorder.commands + COMMANDS_MAX);
	*command = (struct command){.user_data = sqe->user_data, .id = event.id};
}

int __wrap_io_uring_submit(struct io_uring *ring)
{
	const struct io_uring_sq *sq = &ring->sq;

	lock();
	for (unsigned int i = sq->sqe_head; recorder.on && i != sq->sqe_tail; i++)
		submitted_locked(&sq->sqes[i & sq->ring_mask]);
	unlock();
	return __real_io_uring_submit(ring);
}

static void completed_locked(const struct io_uring_cqe *cqe)
{
	for (unsigned int i = 0; i < COMMANDS_MAX; i++) {
		struct command *command = &recorder.commands[i];

		if (command->id == 0 || command->user_data != cqe->user_data)
			continue;
		put_event_locked(
			&(struct event){.type = EVENT_DONE, .id = command->id, .result = cqe->res});
		command->id = 0;
		return;
	}
}

unsigned int __wrap_io_uring_peek_batch_cqe(struct io_uring *ring, struct io_uring_cqe **cqes,
					    unsigned int count)
{
	unsigned int n = __real_io_uring_peek_batch_cqe(ring, cqes, count);

	lock();
	for (unsigned int i = 0; recorder.on && i < n; i++)
		completed_locked(cqes[i]);
	unlock();
	return n;
}

/* ---- the host's boot id and filesystem ---- */

/* A host that has started anew since the recording has another boot id. */
static int open_other_boot_id(void)
{
	static const char id[] = "0b007000-0000-4000-8000-000000000001\n";
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0 || write(ends[1], id, strlen(id)) != (ssize_t)strlen(id))
		abort();
	close(ends[1]);
	return ends[0];
}

int __wrap_open64(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	if (host.restarted && strcmp(path, BOOT_ID) == 0)
		return open_other_boot_id();
	va_start(args, flags);
	if (flags & O_CREAT)
		mode = va_arg(args, mode_t);
	va_end(args);
	return __real_open64(path, flags, mode);
}

int __wrap_fstatfs64(int fd, struct statfs *ret)
{
	int r = __real_fstatfs64(fd, ret);

	if (r == 0 && ret->f_type == TMPFS_MAGIC)
		ret->f_type = EXT4_SUPER_MAGIC;
	return r;
}
