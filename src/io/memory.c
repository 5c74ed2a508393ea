/* SPDX-License-Identifier: MIT */
#include "io/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "io/dev_ops.h"
#include "io/iov.h"
#include "io/zone_rules.h"

struct zf_memory {
	struct zf_zone_rules rules; /* protected by the open device's lock */
	uint8_t *bytes;
	uint64_t size, reserved; /* bytes accessible; bytes of reserved address space */
	bool open;
};

struct memory_dev {
	struct zf_dev dev;
	struct zf_memory *memory;

	struct zf_mutex lock; /* ZF_RANK_DEV: the rules and everything below */
	struct zf_cond submitted;
	struct zf_io_list queue;
	unsigned int queued;
	bool sleeping, woken;
	bool shuffle;
	uint64_t random;
};

static struct memory_dev *memory_of(struct zf_dev *dev)
{
	return ZF_CONTAINER_OF(dev, struct memory_dev, dev);
}

/* Address space to grow into: so many times the first size, if that is at most RESERVED_MAX. */
#define GROWTH	     16
#define RESERVED_MAX ((uint64_t)1 << 40)

/* ---- contents ---- */

/* Makes the first `size` bytes accessible. Present bytes stay as they are. */
static int make_bytes(struct zf_memory *memory, uint64_t size)
{
	if (mprotect(memory->bytes, size, PROT_READ | PROT_WRITE) < 0)
		return -errno;
	memory->size = size;
	return 0;
}

int zf_memory_new(const struct zf_geometry *geometry, struct zf_memory **ret_memory)
{
	_zf_free_ struct zf_memory *memory = calloc(1, sizeof(*memory));
	uint64_t size;
	void *bytes;
	int r;

	if (!memory)
		return -ENOMEM;
	r = zf_geometry_check(geometry, NULL);
	if (r < 0)
		return r;
	size = geometry->zone_count * geometry->zone_size;
	memory->reserved = size <= RESERVED_MAX / GROWTH ? size * GROWTH : size;
	bytes = mmap(NULL, memory->reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		     -1, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	memory->bytes = bytes;
	r = make_bytes(memory, size);
	if (r == 0)
		r = zf_zone_rules_init(&memory->rules, geometry);
	if (r < 0) {
		munmap(bytes, memory->reserved);
		return r;
	}
	*ret_memory = zf_steal_ptr(&memory);
	return 0;
}

void zf_memory_free(struct zf_memory *memory)
{
	if (!memory)
		return;
	assert(!memory->open);
	zf_zone_rules_deinit(&memory->rules);
	munmap(memory->bytes, memory->reserved);
	free(memory);
}

void *zf_memory_zone(struct zf_memory *memory, uint32_t zone_no)
{
	return memory->bytes + zone_no * memory->rules.geometry.zone_size;
}

static void copy_in(struct zf_memory *memory, uint64_t addr, const struct zf_io *io)
{
	for (unsigned int i = 0; i < io->iovcnt; i++) {
		memcpy(memory->bytes + addr, io->iov[i].iov_base, io->iov[i].iov_len);
		addr += io->iov[i].iov_len;
	}
}

static int copy_out(struct zf_memory *memory, uint64_t addr, const struct iovec *iov,
		    unsigned int iovcnt)
{
	int r = zf_zone_rules_check_read(&memory->rules, addr, zf_iov_len(iov, iovcnt));

	if (r < 0)
		return r;
	for (unsigned int i = 0; i < iovcnt; i++) {
		memcpy(iov[i].iov_base, memory->bytes + addr, iov[i].iov_len);
		addr += iov[i].iov_len;
	}
	return 0;
}

/* Only in conventional zones may bytes be overwritten that another thread is reading. */
static bool is_conventional(const struct zf_memory *memory, uint64_t addr)
{
	return addr / memory->rules.geometry.zone_size < memory->rules.geometry.conventional;
}

static int read_out(struct memory_dev *md, uint64_t addr, const struct iovec *iov,
		    unsigned int iovcnt)
{
	int r;

	if (!is_conventional(md->memory, addr))
		return copy_out(md->memory, addr, iov, iovcnt);
	zf_mutex_lock(&md->lock);
	r = copy_out(md->memory, addr, iov, iovcnt);
	zf_mutex_unlock(&md->lock);
	return r;
}

static void change_bytes(struct memory_dev *md, uint64_t addr, const struct zf_io *io)
{
	struct zf_memory *memory = md->memory;
	bool locked = is_conventional(memory, addr);

	if (locked)
		zf_mutex_lock(&md->lock);
	if (io->op == ZF_IO_ZEROES)
		memset(memory->bytes + addr, 0, io->len);
	else
		copy_in(memory, addr, io);
	if (locked)
		zf_mutex_unlock(&md->lock);
}

static int execute_change(struct memory_dev *md, struct zf_io *io)
{
	struct zf_memory *memory = md->memory;
	uint64_t zone_size = memory->rules.geometry.zone_size;
	uint64_t addr;
	int r;

	zf_mutex_lock(&md->lock);
	r = zf_zone_rules_apply(&memory->rules, io, &addr);
	zf_mutex_unlock(&md->lock);
	if (r < 0)
		return r;
	io->addr = addr;
	if (io->op == ZF_IO_RESET) /* reads as zeroes from now on, and frees the memory */
		madvise(memory->bytes + addr, zone_size, MADV_DONTNEED);
	else if (io->op != ZF_IO_FINISH)
		change_bytes(md, addr, io);
	return 0;
}

static int execute(struct memory_dev *md, struct zf_io *io)
{
	switch (io->op) {
	case ZF_IO_FLUSH:
		return 0;
	case ZF_IO_READ:
		return zf_dev_read_request(&md->dev, io);
	default:
		return execute_change(md, io);
	}
}

/* ---- the device ---- */

/* xorshift64* (Vigna, 2016) */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1du;
}

static void memory_submit(struct zf_dev *dev, struct zf_io *io)
{
	struct memory_dev *md = memory_of(dev);

	zf_mutex_lock(&md->lock);
	STAILQ_INSERT_TAIL(&md->queue, io, link);
	md->queued++;
	if (md->sleeping)
		zf_cond_signal(&md->submitted);
	zf_mutex_unlock(&md->lock);
}

static void memory_wake(struct zf_dev *dev)
{
	struct memory_dev *md = memory_of(dev);

	zf_mutex_lock(&md->lock);
	md->woken = true;
	zf_cond_signal(&md->submitted);
	zf_mutex_unlock(&md->lock);
}

static bool is_write_at_pointer(const struct zf_io *io)
{
	return io->op == ZF_IO_WRITE || io->op == ZF_IO_ZEROES;
}

/* Writes at the pointer of one zone keep their order: if a later one was picked, the first is. */
static struct zf_io *first_of_zone(struct memory_dev *md, struct zf_io *picked)
{
	uint64_t zone_size = md->dev.geometry.zone_size;
	struct zf_io *io = STAILQ_FIRST(&md->queue);

	if (!is_write_at_pointer(picked))
		return picked;
	while (!is_write_at_pointer(io) || io->addr / zone_size != picked->addr / zone_size)
		io = STAILQ_NEXT(io, link);
	return io;
}

static struct zf_io *pick_random_locked(struct memory_dev *md)
{
	uint64_t pick = next_random(&md->random) % md->queued;
	struct zf_io *io = STAILQ_FIRST(&md->queue);

	while (pick-- > 0)
		io = STAILQ_NEXT(io, link);
	return first_of_zone(md, io);
}

/* Takes all queued requests; or, with a seed, one that is picked at random. */
static void take_locked(struct memory_dev *md, struct zf_io_list *taken)
{
	struct zf_io *io;

	if (!md->shuffle || md->queued == 0) {
		STAILQ_CONCAT(taken, &md->queue);
		md->queued = 0;
		return;
	}
	io = pick_random_locked(md);
	STAILQ_REMOVE(&md->queue, io, zf_io, link);
	STAILQ_INSERT_TAIL(taken, io, link);
	md->queued--;
}

static void memory_poll(struct zf_dev *dev, bool wait)
{
	struct memory_dev *md = memory_of(dev);
	struct zf_io_list taken = STAILQ_HEAD_INITIALIZER(taken);
	struct zf_io *io;

	zf_mutex_lock(&md->lock);
	while (wait && !md->woken && md->queued == 0) {
		md->sleeping = true;
		zf_cond_wait(&md->submitted, &md->lock);
		md->sleeping = false;
	}
	md->woken = false;
	take_locked(md, &taken);
	zf_mutex_unlock(&md->lock);

	while ((io = STAILQ_FIRST(&taken))) {
		STAILQ_REMOVE_HEAD(&taken, link);
		zf_dev_complete(dev, io, execute(md, io));
	}
}

static int memory_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
		       unsigned int iovcnt)
{
	return read_out(memory_of(dev), addr, iov, iovcnt);
}

static int memory_report(struct zf_dev *dev, uint32_t first, uint32_t count,
			 struct zf_zone_info *zones)
{
	struct memory_dev *md = memory_of(dev);

	zf_mutex_lock(&md->lock);
	for (uint32_t i = 0; i < count; i++)
		zf_zone_rules_report(&md->memory->rules, first + i, &zones[i]);
	zf_mutex_unlock(&md->lock);
	return 0;
}

static int memory_raise_pointer(struct zf_dev *dev, uint32_t zone_no, uint64_t wp)
{
	struct memory_dev *md = memory_of(dev);
	int r;

	zf_mutex_lock(&md->lock);
	r = zf_zone_rules_raise(&md->memory->rules, zone_no, wp);
	zf_mutex_unlock(&md->lock);
	return r;
}

static int memory_set_reset_count(struct zf_dev *dev, uint32_t zone_no, uint64_t reset_count)
{
	struct memory_dev *md = memory_of(dev);
	int r;

	zf_mutex_lock(&md->lock);
	r = zf_zone_rules_set_reset_count(&md->memory->rules, zone_no, reset_count);
	zf_mutex_unlock(&md->lock);
	return r;
}

static int memory_grow(struct zf_dev *dev, uint32_t zone_count)
{
	struct memory_dev *md = memory_of(dev);
	struct zf_memory *memory = md->memory;
	struct zf_zone_state *zones;
	int r;

	if (zone_count == 0 || zone_count == dev->geometry.zone_count)
		return 0;
	if (zone_count < dev->geometry.zone_count)
		return -EINVAL;
	if (zone_count > memory->reserved / dev->geometry.zone_size)
		return -ENOSPC;
	zones = calloc(zone_count, sizeof(*zones));
	if (!zones)
		return -ENOMEM;
	zf_mutex_lock(&md->lock);
	r = make_bytes(memory, zone_count * dev->geometry.zone_size);
	if (r == 0) {
		zones = zf_zone_rules_grow(&memory->rules, zones, zone_count);
		dev->geometry.zone_count = zone_count;
	}
	zf_mutex_unlock(&md->lock);
	free(zones);
	return r;
}

static void memory_close(struct zf_dev *dev)
{
	struct memory_dev *md = memory_of(dev);

	md->memory->open = false;
	zf_cond_deinit(&md->submitted);
	zf_mutex_deinit(&md->lock);
	zf_dev_deinit(&md->dev);
	free(md);
}

static const struct zf_dev_ops memory_ops = {
	.kind = "memory",
	.submit = memory_submit,
	.poll = memory_poll,
	.wake = memory_wake,
	.read = memory_read,
	.report = memory_report,
	.raise_pointer = memory_raise_pointer,
	.set_reset_count = memory_set_reset_count,
	.grow = memory_grow,
	.close = memory_close,
};

int zf_memory_open(struct zf_memory *memory, const struct zf_memory_options *options,
		   const struct zf_report *report, struct zf_dev **ret_dev)
{
	_zf_free_ struct memory_dev *md = calloc(1, sizeof(*md));
	int r;

	assert(!memory->open);
	if (!md)
		return -ENOMEM;
	r = zf_dev_init(&md->dev, &memory_ops, "memory", &memory->rules.geometry, report);
	if (r < 0)
		return r;
	md->memory = memory;
	STAILQ_INIT(&md->queue);
	md->shuffle = options && options->seed != 0;
	md->random = options ? options->seed : 0;
	zf_mutex_init(&md->lock, ZF_RANK_DEV);
	zf_cond_init(&md->submitted);
	zf_zone_rules_power_cycle(&memory->rules);
	memory->open = true;
	*ret_dev = &zf_steal_ptr(&md)->dev;
	return 0;
}
