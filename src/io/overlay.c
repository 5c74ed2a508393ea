/* SPDX-License-Identifier: MIT */
#include "io/overlay.h"

#include <errno.h>
#include <lz4.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "io/dev_ops.h"
#include "io/iov.h"
#include "io/zone_rules.h"

#define REPORT_CHUNK 1024u

/*
 * A block that was written. Most written blocks are metadata, which LZ4 compresses to between a
 * fifth and a half: so the same memory holds more changes.
 */
struct block {
	uint16_t len; /* of `bytes`; ZF_BLOCK_SIZE: as it is; 0: zeroes */
	uint8_t bytes[];
};

struct zone {
	struct block **blocks; /* blocks written in the overlay; NULL: none in the zone */
	bool reset;	       /* in the overlay: the base's bytes are not shown */
};

struct overlay {
	struct zf_dev dev;
	struct zf_dev *base;
	struct zf_zone_rules rules;
	struct zone *zones;
	struct zf_io_list queue;
	uint64_t bytes, bytes_max;
	bool full;
	uint8_t packed[LZ4_COMPRESSBOUND(ZF_BLOCK_SIZE)];
};

static struct overlay *overlay_of(struct zf_dev *dev)
{
	return ZF_CONTAINER_OF(dev, struct overlay, dev);
}

static struct zone *zone_at(struct overlay *overlay, uint64_t addr, size_t *ret_block)
{
	uint64_t zone_size = overlay->dev.geometry.zone_size;

	*ret_block = (size_t)(addr % zone_size >> ZF_BLOCK_SHIFT);
	return &overlay->zones[addr / zone_size];
}

static size_t blocks_of_zone(const struct overlay *overlay)
{
	return (size_t)(overlay->dev.geometry.zone_size >> ZF_BLOCK_SHIFT);
}

/* ---- memory ---- */

static void *get_memory(struct overlay *overlay, size_t count, size_t size)
{
	uint64_t len = (uint64_t)count * size;
	void *memory = NULL;

	if (len <= overlay->bytes_max - overlay->bytes)
		memory = calloc(count, size);
	if (memory)
		overlay->bytes += len;
	else
		overlay->full = true;
	return memory;
}

static void put_memory(struct overlay *overlay, void *memory, uint64_t len)
{
	overlay->bytes -= memory ? len : 0;
	free(memory);
}

static void free_block(struct overlay *overlay, struct block *block)
{
	put_memory(overlay, block, block ? sizeof(*block) + block->len : 0);
}

static void free_zone(struct overlay *overlay, struct zone *zone)
{
	size_t count = blocks_of_zone(overlay);

	if (!zone->blocks)
		return;
	for (size_t i = 0; i < count; i++)
		free_block(overlay, zone->blocks[i]);
	put_memory(overlay, zone->blocks, count * sizeof(struct block *));
	zone->blocks = NULL;
}

/* ---- reading ---- */

static const struct block *block_here(struct overlay *overlay, uint64_t addr)
{
	size_t block;
	const struct zone *zone = zone_at(overlay, addr, &block);

	return zone->blocks ? zone->blocks[block] : NULL;
}

static bool is_below(struct overlay *overlay, uint64_t addr)
{
	size_t block;

	return !zone_at(overlay, addr, &block)->reset && !block_here(overlay, addr);
}

/* `block` NULL: the block was not written since the zone was reset. */
static void unpack(const struct block *block, uint8_t *buf)
{
	if (!block || block->len == 0)
		memset(buf, 0, ZF_BLOCK_SIZE);
	else if (block->len == ZF_BLOCK_SIZE)
		memcpy(buf, block->bytes, ZF_BLOCK_SIZE);
	else
		(void)LZ4_decompress_safe((const char *)block->bytes, (char *)buf, block->len,
					  ZF_BLOCK_SIZE);
}

/* Reads one segment: runs of blocks of the base, and single blocks of the overlay. */
static int read_segment(struct overlay *overlay, uint64_t addr, uint8_t *buf, uint64_t len)
{
	for (uint64_t at = 0; at < len;) {
		const struct block *block = block_here(overlay, addr + at);
		uint64_t n = 0;
		int r = 0;

		while (at + n < len && is_below(overlay, addr + at + n))
			n += ZF_BLOCK_SIZE;
		if (n > 0) {
			r = zf_dev_read_buf(overlay->base, addr + at, buf + at, n);
		} else {
			n = ZF_BLOCK_SIZE;
			unpack(block, buf + at);
		}
		if (r < 0)
			return r;
		at += n;
	}
	return 0;
}

static int overlay_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
			unsigned int iovcnt)
{
	struct overlay *overlay = overlay_of(dev);
	int r = zf_zone_rules_check_read(&overlay->rules, addr, zf_iov_len(iov, iovcnt));

	for (unsigned int i = 0; i < iovcnt && r == 0; i++) {
		r = read_segment(overlay, addr, iov[i].iov_base, iov[i].iov_len);
		addr += iov[i].iov_len;
	}
	return r;
}

/* ---- changing ---- */

/* `bytes`: a block, or NULL for zeroes. Returns NULL if there is no memory. */
static struct block *pack(struct overlay *overlay, const uint8_t *bytes)
{
	int len = 0;
	struct block *block;

	if (bytes)
		len = LZ4_compress_default((const char *)bytes, (char *)overlay->packed,
					   ZF_BLOCK_SIZE, sizeof(overlay->packed));
	if (bytes && (len <= 0 || len >= (int)ZF_BLOCK_SIZE))
		len = ZF_BLOCK_SIZE;
	block = get_memory(overlay, 1, sizeof(*block) + (size_t)len);
	if (!block)
		return NULL;
	block->len = (uint16_t)len;
	if (bytes)
		memcpy(block->bytes, len < (int)ZF_BLOCK_SIZE ? overlay->packed : bytes,
		       (size_t)len);
	return block;
}

static int write_block(struct overlay *overlay, uint64_t addr, const uint8_t *bytes)
{
	size_t at;
	struct zone *zone = zone_at(overlay, addr, &at);
	struct block *block;

	if (!zone->blocks)
		zone->blocks = get_memory(overlay, blocks_of_zone(overlay), sizeof(*zone->blocks));
	block = zone->blocks ? pack(overlay, bytes) : NULL;
	if (!block)
		return -ENOMEM;
	free_block(overlay, zone->blocks[at]);
	zone->blocks[at] = block;
	return 0;
}

static int write_segments(struct overlay *overlay, uint64_t addr, const struct zf_io *io)
{
	for (unsigned int i = 0; i < io->iovcnt; i++) {
		const uint8_t *bytes = io->iov[i].iov_base;

		for (size_t at = 0; at < io->iov[i].iov_len; at += ZF_BLOCK_SIZE) {
			int r = write_block(overlay, addr, bytes + at);

			if (r < 0)
				return r;
			addr += ZF_BLOCK_SIZE;
		}
	}
	return 0;
}

static int write_zeroes(struct overlay *overlay, uint64_t addr, uint64_t len)
{
	int r = 0;

	for (uint64_t at = 0; at < len && r == 0; at += ZF_BLOCK_SIZE)
		r = write_block(overlay, addr + at, NULL);
	return r;
}

static int reset_zone(struct overlay *overlay, uint64_t addr)
{
	size_t block;
	struct zone *zone = zone_at(overlay, addr, &block);

	free_zone(overlay, zone);
	zone->reset = true;
	return 0;
}

/* A change of a zone, or of its known state, ends `guessed`, as on the base device. */
static int note_told(struct overlay *overlay, uint32_t zone_no, int r)
{
	if (r == 0)
		overlay->rules.zones[zone_no].guessed = false;
	return r;
}

static int change(struct overlay *overlay, struct zf_io *io)
{
	int r = zf_zone_rules_apply(&overlay->rules, io, &io->addr);

	if (r < 0)
		return r;
	(void)note_told(overlay, (uint32_t)(io->addr / overlay->rules.geometry.zone_size), r);
	switch (io->op) {
	case ZF_IO_WRITE:
	case ZF_IO_APPEND:
		return write_segments(overlay, io->addr, io);
	case ZF_IO_ZEROES:
		return write_zeroes(overlay, io->addr, io->len);
	case ZF_IO_RESET:
		return reset_zone(overlay, io->addr);
	default:
		return 0;
	}
}

static int execute(struct overlay *overlay, struct zf_io *io)
{
	switch (io->op) {
	case ZF_IO_FLUSH:
		return 0;
	case ZF_IO_READ:
		return zf_dev_read_request(&overlay->dev, io);
	default:
		return change(overlay, io);
	}
}

static void overlay_submit(struct zf_dev *dev, struct zf_io *io)
{
	STAILQ_INSERT_TAIL(&overlay_of(dev)->queue, io, link);
}

static void overlay_poll(struct zf_dev *dev, bool wait)
{
	struct overlay *overlay = overlay_of(dev);
	struct zf_io *io;

	while ((io = STAILQ_FIRST(&overlay->queue))) {
		STAILQ_REMOVE_HEAD(&overlay->queue, link);
		zf_dev_complete(dev, io, execute(overlay, io));
	}
}

/* No thread sleeps in poll(). */
static void overlay_wake(struct zf_dev *dev)
{
}

/* ---- zones ---- */

static int overlay_report(struct zf_dev *dev, uint32_t first, uint32_t count,
			  struct zf_zone_info *zones)
{
	for (uint32_t i = 0; i < count; i++)
		zf_zone_rules_report(&overlay_of(dev)->rules, first + i, &zones[i]);
	return 0;
}

static int overlay_raise_pointer(struct zf_dev *dev, uint32_t zone_no, uint64_t wp)
{
	struct overlay *overlay = overlay_of(dev);

	return note_told(overlay, zone_no, zf_zone_rules_raise(&overlay->rules, zone_no, wp));
}

static int overlay_set_reset_count(struct zf_dev *dev, uint32_t zone_no, uint64_t reset_count)
{
	struct overlay *overlay = overlay_of(dev);

	return note_told(overlay, zone_no,
			 zf_zone_rules_set_reset_count(&overlay->rules, zone_no, reset_count));
}

static struct zf_zone_state state_of(const struct zf_zone_info *info)
{
	struct zf_zone_state state = {
		.reset_count = info->reset_count,
		.cond = info->cond,
		.lost = info->lost,
		.guessed = info->guessed,
	};

	switch (info->cond) {
	case ZF_ZONE_FULL:
		state.wp = info->capacity;
		break;
	case ZF_ZONE_EMPTY:
	case ZF_ZONE_IMP_OPEN:
	case ZF_ZONE_EXP_OPEN:
	case ZF_ZONE_CLOSED:
		state.wp = info->wp - info->start;
		break;
	default: /* the zone has no pointer */
		break;
	}
	return state;
}

static int load_zones(struct overlay *overlay)
{
	struct zf_zone_info *info = malloc(REPORT_CHUNK * sizeof(*info));
	uint32_t count = overlay->dev.geometry.zone_count;
	int r = info ? 0 : -ENOMEM;

	for (uint32_t first = 0; first < count && r == 0; first += REPORT_CHUNK) {
		uint32_t n = (uint32_t)zf_min_u64(REPORT_CHUNK, count - first);

		r = zf_dev_report(overlay->base, first, n, info);
		for (uint32_t i = 0; i < n && r == 0; i++)
			overlay->rules.zones[first + i] = state_of(&info[i]);
	}
	free(info);
	zf_zone_rules_power_cycle(&overlay->rules);
	return r;
}

/* ---- life ---- */

static void overlay_close(struct zf_dev *dev)
{
	struct overlay *overlay = overlay_of(dev);

	for (uint32_t z = 0; overlay->zones && z < dev->geometry.zone_count; z++)
		free_zone(overlay, &overlay->zones[z]);
	free(overlay->zones);
	zf_zone_rules_deinit(&overlay->rules);
	zf_dev_deinit(dev);
	free(overlay);
	/* The blocks were many small pieces; this gives their memory back to the system. */
	malloc_trim(0);
}

static const struct zf_dev_ops overlay_ops = {
	.kind = "overlay",
	.submit = overlay_submit,
	.poll = overlay_poll,
	.wake = overlay_wake,
	.read = overlay_read,
	.report = overlay_report,
	.raise_pointer = overlay_raise_pointer,
	.set_reset_count = overlay_set_reset_count,
	.close = overlay_close,
};

int zf_overlay_open(struct zf_dev *base, uint64_t bytes_max, const struct zf_report *report,
		    struct zf_dev **ret_dev)
{
	const struct zf_geometry *geometry = zf_dev_geometry(base);
	struct overlay *overlay = calloc(1, sizeof(*overlay));
	int r;

	if (!overlay)
		return -ENOMEM;
	r = zf_dev_init(&overlay->dev, &overlay_ops, zf_dev_path(base), geometry, report);
	if (r < 0) {
		free(overlay);
		return r;
	}
	overlay->base = base;
	overlay->bytes_max = bytes_max;
	STAILQ_INIT(&overlay->queue);
	overlay->zones = calloc(geometry->zone_count, sizeof(*overlay->zones));
	r = overlay->zones ? zf_zone_rules_init(&overlay->rules, geometry) : -ENOMEM;
	if (r == 0)
		r = load_zones(overlay);
	if (r < 0) {
		overlay_close(&overlay->dev);
		return r;
	}
	*ret_dev = &overlay->dev;
	return 0;
}

bool zf_overlay_is_full(struct zf_dev *dev)
{
	return overlay_of(dev)->full;
}
