/* SPDX-License-Identifier: MIT */
#include "io/image_trailer.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/mapped.h"

/* No zone is reset this often, so a count increased by this is one that the zone never had. */
#define RESETS_NEVER_REACHED ((uint64_t)1 << 32)
/* Half of what a superblock can note (ZF_SUPER_COUNTER_MAX), so that counting can go on. */
#define RESETS_MAX	 ((uint64_t)1 << 61)

#define SEARCH_CHUNK	 ((uint64_t)1 << 20)

#define WORD_COND_SHIFT	 32
#define WORD_CHECK_SHIFT 40
#define WORD_CHECKED	 (((uint64_t)1 << WORD_CHECK_SHIFT) - 1)

/* ---- file access ---- */

/* The descriptor may be O_DIRECT: buffers, offsets and lengths are whole blocks. */
static int read_blocks(int fd, void *buf, uint64_t len, uint64_t offset)
{
	while (len > 0) {
		ssize_t n = pread(fd, buf, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		buf = (char *)buf + n;
		offset += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

static int write_blocks(int fd, const void *buf, uint64_t len, uint64_t offset)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, buf, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buf = (const char *)buf + n;
		offset += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

static void read_boot_id(uint8_t *ret_boot_id)
{
	char text[UUID_STR_LEN] = "";
	uuid_t parsed;
	_zf_close_ int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	/* Zeroes mean an unknown boot: then an image is exact only after it was closed cleanly. */
	memset(ret_boot_id, 0, sizeof(parsed));
	if (fd < 0 || read(fd, text, sizeof(text) - 1) != sizeof(text) - 1)
		return;
	if (uuid_parse(text, parsed) == 0)
		memcpy(ret_boot_id, parsed, sizeof(parsed));
}

/* ---- layout ---- */

static uint64_t zones_end(const struct zf_image_trailer *trailer)
{
	return trailer->geometry.zone_size * trailer->geometry.zone_count;
}

static void place(struct zf_image_trailer *trailer, uint64_t table_offset)
{
	uint64_t size = (uint64_t)trailer->geometry.zone_count * sizeof(struct zf_image_zone);

	trailer->table_offset = table_offset;
	trailer->table_size = zf_align_up(size, ZF_BLOCK_SIZE);
	trailer->state_offset = trailer->table_offset + trailer->table_size;
}

int zf_image_trailer_layout(struct zf_image_trailer *trailer, const struct zf_geometry *geometry,
			    uint64_t image_size)
{
	uint64_t needed;

	*trailer = (struct zf_image_trailer){.geometry = *geometry};
	place(trailer, zones_end(trailer));
	needed = trailer->state_offset + 2 * ZF_BLOCK_SIZE;
	trailer->image_size = image_size ? zf_align_down(image_size, ZF_BLOCK_SIZE) : needed;
	return trailer->image_size < needed ? -ENOSPC : 0;
}

/* The former header is spared too if it lies directly behind the state, as it does in a file. */
static uint64_t former_end(const struct zf_image_trailer *former)
{
	uint64_t end = former->state_offset + ZF_BLOCK_SIZE;

	return former->image_size == end + ZF_BLOCK_SIZE ? former->image_size : end;
}

int zf_image_trailer_layout_grown(const struct zf_image_trailer *former, uint32_t zone_count,
				  uint64_t image_size, struct zf_image_trailer *ret_trailer)
{
	struct zf_image_trailer t = {
		.geometry = former->geometry,
		.image_size = zf_align_down(image_size, ZF_BLOCK_SIZE),
		.seed = former->seed,
	};

	memcpy(t.uuid, former->uuid, sizeof(t.uuid));
	memcpy(t.boot_id, former->boot_id, sizeof(t.boot_id));
	t.geometry.zone_count = zone_count;
	place(&t, zf_max_u64(zones_end(&t), former_end(former)));
	if (t.image_size < t.state_offset + 2 * ZF_BLOCK_SIZE)
		return -ENOSPC;
	*ret_trailer = t;
	return 0;
}

/* ---- zone table ---- */

static uint64_t check_of(const struct zf_image_trailer *trailer, uint32_t zone_no,
			 uint64_t reset_count, uint64_t word)
{
	struct zf_le64 covered[3] = {zf_le64_from(zone_no), zf_le64_from(reset_count),
				     zf_le64_from(word & WORD_CHECKED)};

	return zf_hash64_seed(covered, sizeof(covered), trailer->seed) << WORD_CHECK_SHIFT;
}

static uint64_t word_of(const struct zf_image_trailer *trailer, uint32_t zone_no,
			const struct zf_zone_state *zone)
{
	uint64_t word = zone->wp >> ZF_BLOCK_SHIFT;

	word |= ((uint64_t)zone->cond + 1) << WORD_COND_SHIFT;
	return word | check_of(trailer, zone_no, zone->reset_count, word);
}

/* One aligned store: neither a kill nor the kernel's writeback of the page sees half of it. */
static void store(struct zf_le64 *le, uint64_t v)
{
	atomic_store_explicit((_Atomic uint64_t *)(void *)le, htole64(v), memory_order_release);
}

static void put_zone(struct zf_image_trailer *trailer, uint32_t zone_no,
		     const struct zf_zone_state *zone)
{
	struct zf_image_slot *slot = &trailer->table[zone_no].slots[zone->reset_count & 1];

	if (zf_le64_get(slot->reset_count) != zone->reset_count) {
		store(&slot->word, 0);
		store(&slot->reset_count, zone->reset_count);
	}
	store(&slot->word, word_of(trailer, zone_no, zone));
}

static void blank_slot(struct zf_image_trailer *trailer, uint32_t zone_no, uint64_t reset_count)
{
	store(&trailer->table[zone_no].slots[reset_count & 1].word, 0);
}

/* The arguments of functions that touch the mapping: zf_mapped_touch(). */
struct change {
	struct zf_image_trailer *trailer;
	uint32_t zone_no;
	const struct zf_zone_state *zone;
	uint64_t reset_count;
	enum zf_image_use use;
};

static void store_zone(void *arg)
{
	const struct change *change = arg;

	put_zone(change->trailer, change->zone_no, change->zone);
}

static void replace_zone(void *arg)
{
	const struct change *change = arg;

	store_zone(arg);
	blank_slot(change->trailer, change->zone_no, change->zone->reset_count + 1);
}

static void revoke_reset(void *arg)
{
	const struct change *change = arg;

	blank_slot(change->trailer, change->zone_no, change->reset_count);
}

int zf_image_trailer_store_zone(struct zf_image_trailer *trailer, uint32_t zone_no,
				const struct zf_zone_state *zone)
{
	struct change change = {.trailer = trailer, .zone_no = zone_no, .zone = zone};

	return zf_mapped_touch(store_zone, &change);
}

int zf_image_trailer_replace_zone(struct zf_image_trailer *trailer, uint32_t zone_no,
				  const struct zf_zone_state *zone)
{
	struct change change = {.trailer = trailer, .zone_no = zone_no, .zone = zone};

	return zf_mapped_touch(replace_zone, &change);
}

int zf_image_trailer_revoke_reset(struct zf_image_trailer *trailer, uint32_t zone_no,
				  uint64_t reset_count)
{
	struct change change = {.trailer = trailer, .zone_no = zone_no, .reset_count = reset_count};

	return zf_mapped_touch(revoke_reset, &change);
}

static bool zone_is_plausible(const struct zf_geometry *g, uint32_t zone_no,
			      const struct zf_zone_state *zone)
{
	switch (zone->cond) {
	case ZF_ZONE_NOT_WP:
		return zone_no < g->conventional && zone->wp == 0;
	case ZF_ZONE_EMPTY:
		return zone_no >= g->conventional && zone->wp == 0;
	case ZF_ZONE_FULL:
		return zone_no >= g->conventional && zone->wp == g->zone_capacity;
	case ZF_ZONE_IMP_OPEN:
	case ZF_ZONE_EXP_OPEN:
	case ZF_ZONE_CLOSED:
		return zone_no >= g->conventional && zone->wp < g->zone_capacity;
	case ZF_ZONE_READONLY:
	case ZF_ZONE_OFFLINE:
		return zone->wp <= g->zone_capacity;
	}
	return false;
}

enum slot_is {
	SLOT_BLANK, /* never used, or killed in the middle of a reset: the other slot is valid */
	SLOT_VALID,
	SLOT_DAMAGED,
};

static enum slot_is load_slot(const struct zf_image_trailer *trailer, uint32_t zone_no,
			      unsigned int index, struct zf_zone_state *ret_zone)
{
	const struct zf_image_slot *slot = &trailer->table[zone_no].slots[index];
	uint64_t reset_count = zf_le64_get(slot->reset_count);
	uint64_t word = zf_le64_get(slot->word);
	struct zf_zone_state zone = {
		.wp = (word & UINT32_MAX) << ZF_BLOCK_SHIFT,
		.reset_count = reset_count,
		.cond = (enum zf_zone_cond)((word >> WORD_COND_SHIFT & 0xff) - 1),
	};

	if (word == 0)
		return SLOT_BLANK;
	if ((reset_count & 1) != index || reset_count > RESETS_MAX ||
	    (word & ~WORD_CHECKED) != check_of(trailer, zone_no, reset_count, word) ||
	    !zone_is_plausible(&trailer->geometry, zone_no, &zone))
		return SLOT_DAMAGED;
	*ret_zone = zone;
	return SLOT_VALID;
}

/* A damaged slot may have been the newer one, so the other slot cannot be trusted either. */
static bool load_zone(const struct zf_image_trailer *trailer, uint32_t zone_no,
		      struct zf_zone_state *ret_zone)
{
	struct zf_zone_state zones[2];
	enum slot_is is[2] = {load_slot(trailer, zone_no, 0, &zones[0]),
			      load_slot(trailer, zone_no, 1, &zones[1])};
	unsigned int newer;

	if (is[0] == SLOT_DAMAGED || is[1] == SLOT_DAMAGED ||
	    (is[0] == SLOT_BLANK && is[1] == SLOT_BLANK))
		return false;
	if (is[0] == SLOT_VALID && is[1] == SLOT_VALID)
		newer = zones[1].reset_count > zones[0].reset_count;
	else
		newer = is[1] == SLOT_VALID;
	*ret_zone = zones[newer];
	return true;
}

/* ---- state ---- */

static uint64_t state_checksum(const struct zf_image_trailer *trailer)
{
	size_t from = offsetof(struct zf_image_state, boot_id);

	return zf_hash64_seed((const char *)trailer->state + from, ZF_BLOCK_SIZE - from,
			      trailer->seed);
}

static void put_use(struct zf_image_trailer *trailer, enum zf_image_use use)
{
	struct zf_image_state *state = trailer->state;

	/* A kill in between leaves a bad checksum, which counts as UNKNOWN: slower, never wrong. */
	memset(state, 0, sizeof(*state));
	memcpy(state->magic, ZF_IMAGE_STATE_MAGIC, sizeof(state->magic));
	/* The pointers of a clean image are exact on every host. */
	if (use != ZF_IMAGE_CLEAN)
		memcpy(state->boot_id, trailer->boot_id, sizeof(state->boot_id));
	state->use = zf_le32_from(use);
	state->checksum = zf_le64_from(state_checksum(trailer));
}

static void store_use(void *arg)
{
	const struct change *change = arg;

	put_use(change->trailer, change->use);
}

int zf_image_trailer_store_use(struct zf_image_trailer *trailer, enum zf_image_use use)
{
	struct change change = {.trailer = trailer, .use = use};

	return zf_mapped_touch(store_use, &change);
}

static bool pointers_are_exact(const struct zf_image_trailer *trailer)
{
	static const uint8_t no_boot[sizeof(trailer->boot_id)];
	const struct zf_image_state *state = trailer->state;

	if (memcmp(state->magic, ZF_IMAGE_STATE_MAGIC, sizeof(state->magic)) != 0 ||
	    zf_le64_get(state->checksum) != state_checksum(trailer) ||
	    zf_fields_check_zero(&zf_image_state_fields, state))
		return false;
	switch (zf_le32_get(state->use)) {
	case ZF_IMAGE_CLEAN:
		return true;
	case ZF_IMAGE_IN_USE:
		return memcmp(state->boot_id, trailer->boot_id, sizeof(state->boot_id)) == 0 &&
		       memcmp(state->boot_id, no_boot, sizeof(state->boot_id)) != 0;
	default:
		return false;
	}
}

/*
 * A zone whose entry does not verify: see the end of the comment in io/image_format.h. Two blank
 * slots mean that the zone is lost, until a state is stored again; whatever it is, it is valid.
 */
static void lose_zone(struct zf_image_trailer *trailer, struct zf_zone_state *zone,
		      uint32_t zone_no, uint64_t highest_count)
{
	blank_slot(trailer, zone_no, 0);
	blank_slot(trailer, zone_no, 1);
	if (zone_no < trailer->geometry.conventional) {
		*zone = (struct zf_zone_state){.cond = ZF_ZONE_NOT_WP, .guessed = true};
		put_zone(trailer, zone_no, zone);
		return;
	}
	*zone = (struct zf_zone_state){
		.cond = ZF_ZONE_EMPTY,
		.reset_count = highest_count + RESETS_NEVER_REACHED,
		.lost = true,
		.guessed = true,
	};
}

/* The entry of a conventional zone holds no information of its own, so it can be made anew. */
static void tell_lost(const struct zf_image_trailer *trailer, const struct zf_report *report,
		      uint32_t zone_no)
{
	zf_report(report, ZF_REPORT_WARNING,
		  "image: the table's entry of zone %" PRIu32 " does not verify; %s", zone_no,
		  zone_no < trailer->geometry.conventional ? "the entry is rewritten"
							   : "the next writable mount restores it");
}

struct loading {
	struct zf_image_trailer *trailer;
	struct zf_zone_rules *rules;
	const struct zf_report *report;
	bool lower_bounds;
};

static void load_table(void *arg)
{
	struct loading *loading = arg;
	struct zf_image_trailer *trailer = loading->trailer;
	struct zf_zone_state *zones = loading->rules->zones;
	uint32_t zone_count = trailer->geometry.zone_count;
	uint64_t highest_count = 0;
	uint32_t bad = 0;

	for (uint32_t i = 0; i < zone_count; i++) {
		if (load_zone(trailer, i, &zones[i]))
			highest_count = zf_max_u64(highest_count, zones[i].reset_count);
		else
			bad++;
	}
	for (uint32_t i = 0; bad > 0 && i < zone_count; i++) {
		if (load_zone(trailer, i, &zones[i]))
			continue;
		tell_lost(trailer, loading->report, i);
		lose_zone(trailer, &zones[i], i, highest_count);
	}
	loading->lower_bounds = bad > 0 || !pointers_are_exact(trailer);
}

int zf_image_trailer_load(struct zf_image_trailer *trailer, struct zf_zone_rules *rules,
			  const struct zf_report *report, bool *ret_lower_bounds)
{
	struct loading loading = {.trailer = trailer, .rules = rules, .report = report};
	int r = zf_mapped_touch(load_table, &loading);

	if (r < 0)
		return r;
	zf_zone_rules_power_cycle(rules);
	*ret_lower_bounds = loading.lower_bounds;
	return 0;
}

uint64_t zf_image_trailer_zone_block(const struct zf_image_trailer *trailer, uint32_t zone_no)
{
	return trailer->table_offset +
	       zf_align_down((uint64_t)zone_no * sizeof(struct zf_image_zone), ZF_BLOCK_SIZE);
}

int zf_image_trailer_peek(const struct zf_image_trailer *trailer, int fd, unsigned int count,
			  struct zf_zone_state *ret_zones)
{
	_zf_free_ void *block = aligned_alloc(ZF_BLOCK_SIZE, ZF_BLOCK_SIZE);
	struct zf_image_trailer peeked = *trailer;

	static_assert(ZF_IMAGE_PEEK_MAX * sizeof(*peeked.table) == ZF_BLOCK_SIZE, "one block");
	assert(count <= ZF_IMAGE_PEEK_MAX);
	if (!block)
		return -ENOMEM;
	if (pread(fd, block, ZF_BLOCK_SIZE, (off_t)trailer->table_offset) != ZF_BLOCK_SIZE)
		return -EIO;
	peeked.table = block;
	for (unsigned int i = 0; i < count; i++)
		if (!load_zone(&peeked, i, &ret_zones[i]))
			return -EUCLEAN;
	return 0;
}

/* ---- mapping ---- */

static int map_shared(struct zf_image_trailer *trailer, int fd)
{
	/* A page may be larger than a block, and the mapping must begin at a page. */
	uint64_t from = zf_align_down(trailer->table_offset, (uint64_t)sysconf(_SC_PAGESIZE));
	void *map;

	trailer->map_size = trailer->state_offset + ZF_BLOCK_SIZE - from;
	map = mmap(NULL, trailer->map_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
		   (off_t)from);
	if (map == MAP_FAILED)
		return -errno;
	zf_mapped_prepare();
	trailer->map = map;
	trailer->table = (void *)((char *)map + (trailer->table_offset - from));
	return 0;
}

int zf_image_trailer_map(struct zf_image_trailer *trailer, int fd, bool writable)
{
	uint64_t size = trailer->table_size + ZF_BLOCK_SIZE;
	_zf_free_ void *buf = aligned_alloc(ZF_BLOCK_SIZE, size);
	int r;

	if (!buf)
		return -ENOMEM;
	/* Read first even if it is to be mapped: a bad sector must give an error, not a signal. */
	r = read_blocks(fd, buf, size, trailer->table_offset);
	if (r < 0)
		return r;
	if (writable) {
		r = map_shared(trailer, fd);
		if (r < 0)
			return r;
	} else {
		trailer->table = zf_steal_ptr(&buf);
	}
	trailer->state = (void *)((char *)trailer->table + trailer->table_size);
	read_boot_id(trailer->boot_id);
	return 0;
}

void zf_image_trailer_unmap(struct zf_image_trailer *trailer)
{
	if (trailer->map)
		munmap(trailer->map, trailer->map_size);
	else
		free(trailer->table);
	trailer->map = NULL;
	trailer->table = NULL;
	trailer->state = NULL;
}

/* ---- header ---- */

static uint64_t header_checksum(const struct zf_image_header *header)
{
	size_t from = offsetof(struct zf_image_header, version);

	return zf_hash64((const char *)header + from, sizeof(*header) - from);
}

static uint64_t seed_of(const uint8_t *uuid)
{
	return zf_hash64(uuid, sizeof(uuid_t));
}

static void header_encode(const struct zf_image_trailer *trailer, struct zf_image_header *header)
{
	const struct zf_geometry *g = &trailer->geometry;

	memset(header, 0, sizeof(*header));
	memcpy(header->magic, ZF_IMAGE_MAGIC, sizeof(header->magic));
	memcpy(header->uuid, trailer->uuid, sizeof(header->uuid));
	header->version = zf_le32_from(ZF_IMAGE_VERSION);
	header->flags = zf_le32_from(g->rotational ? ZF_IMAGE_ROTATIONAL : 0);
	header->image_size = zf_le64_from(trailer->image_size);
	header->table_offset = zf_le64_from(trailer->table_offset);
	header->zone_size = zf_le64_from(g->zone_size);
	header->zone_capacity = zf_le64_from(g->zone_capacity);
	header->zone_count = zf_le32_from(g->zone_count);
	header->conventional = zf_le32_from(g->conventional);
	header->max_open = zf_le32_from(g->max_open);
	header->max_active = zf_le32_from(g->max_active);
	header->append_limit = zf_le32_from(g->append_limit);
	header->checksum = zf_le64_from(header_checksum(header));
}

static void header_decode(const struct zf_image_header *header, struct zf_image_trailer *trailer)
{
	trailer->geometry = ZF_GEOMETRY_OF(header);
	trailer->geometry.rotational = zf_le32_get(header->flags) & ZF_IMAGE_ROTATIONAL;
	/* The host's page cache and its disk's cache are volatile. */
	trailer->geometry.volatile_cache = true;
	trailer->image_size = zf_le64_get(header->image_size);
	memcpy(trailer->uuid, header->uuid, sizeof(trailer->uuid));
	trailer->seed = seed_of(header->uuid);
}

static int header_check(const struct zf_image_header *header, uint64_t address, uint64_t file_size,
			const struct zf_report *report)
{
	static const uint8_t zeroes[sizeof(header->reserved)];
	const char *what = "image header";

	if (zf_le64_get(header->checksum) != header_checksum(header))
		return zf_report_corrupt(report, what, address,
					 "checksum has %016" PRIx64 ", expected %016" PRIx64,
					 zf_le64_get(header->checksum), header_checksum(header));
	if (zf_le32_get(header->version) != ZF_IMAGE_VERSION)
		return zf_report_corrupt(report, what, address,
					 "version has %" PRIu32 ", expected %d",
					 zf_le32_get(header->version), ZF_IMAGE_VERSION);
	if (zf_le32_get(header->flags) & ~ZF_IMAGE_ROTATIONAL)
		return zf_report_corrupt(report, what, address,
					 "flags has %" PRIx32 ", expected no more than %x",
					 zf_le32_get(header->flags), ZF_IMAGE_ROTATIONAL);
	if (memcmp(header->reserved, zeroes, sizeof(zeroes)) != 0)
		return zf_report_corrupt(report, what, address,
					 "reserved bytes are set, expected zeroes");
	if (zf_le64_get(header->image_size) != file_size)
		return zf_report_corrupt(report, what, address,
					 "image size has %" PRIu64 ", expected %" PRIu64
					 ", the size of the file",
					 zf_le64_get(header->image_size), file_size);
	return 0;
}

int zf_image_trailer_read(int fd, uint64_t file_size, const struct zf_report *report,
			  struct zf_image_trailer *ret_trailer)
{
	uint64_t address = zf_align_down(file_size, ZF_BLOCK_SIZE) - ZF_BLOCK_SIZE;
	_zf_free_ struct zf_image_header *header = NULL;
	struct zf_image_trailer trailer = {};
	int r;

	if (file_size < ZF_BLOCK_SIZE)
		return -ENODEV;
	header = aligned_alloc(ZF_BLOCK_SIZE, sizeof(*header));
	if (!header)
		return -ENOMEM;
	r = read_blocks(fd, header, sizeof(*header), address);
	if (r < 0)
		return r;
	if (memcmp(header->magic, ZF_IMAGE_MAGIC, sizeof(header->magic)) != 0)
		return -ENODEV;
	r = header_check(header, address, zf_align_down(file_size, ZF_BLOCK_SIZE), report);
	if (r < 0)
		return r;
	header_decode(header, &trailer);
	if (zf_geometry_check(&trailer.geometry, report) < 0)
		return zf_report_corrupt(report, "image header", address,
					 "geometry has a value out of range");
	place(&trailer, zf_le64_get(header->table_offset));
	if (trailer.table_offset < zones_end(&trailer) || trailer.table_offset > address ||
	    !zf_is_aligned(trailer.table_offset, ZF_BLOCK_SIZE) ||
	    trailer.state_offset + ZF_BLOCK_SIZE > address)
		return zf_report_corrupt(report, "image header", address,
					 "table offset has %" PRIu64 ", expected at least %" PRIu64
					 " and room for it",
					 trailer.table_offset, zones_end(&trailer));
	*ret_trailer = trailer;
	return 0;
}

/* A block that only looks like a header has the wrong image_size for its place: no message. */
static int search_chunk(int fd, const uint8_t *chunk, uint64_t from, uint64_t len,
			struct zf_image_trailer *ret_trailer)
{
	for (uint64_t at = len; at > 0; at -= ZF_BLOCK_SIZE)
		if (memcmp(chunk + at - ZF_BLOCK_SIZE, ZF_IMAGE_MAGIC,
			   sizeof(ZF_IMAGE_MAGIC) - 1) == 0 &&
		    zf_image_trailer_read(fd, from + at, NULL, ret_trailer) == 0)
			return 0;
	return -ENODEV;
}

/*
 * Skips holes: the part by which a file was made longer is mostly a hole. If the host does not tell
 * holes from data, all is data.
 */
static uint64_t next_data(int fd, uint64_t at, uint64_t end)
{
	off_t data = lseek(fd, (off_t)at, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? end : at;
	return zf_max_u64(at, zf_align_down((uint64_t)data, ZF_BLOCK_SIZE));
}

int zf_image_trailer_search(int fd, uint64_t from, uint64_t to, bool last,
			    struct zf_image_trailer *ret_trailer)
{
	_zf_free_ uint8_t *chunk = aligned_alloc(ZF_BLOCK_SIZE, SEARCH_CHUNK);
	uint64_t end = zf_align_down(to, ZF_BLOCK_SIZE);
	int found = -ENODEV;

	if (!chunk)
		return -ENOMEM;
	for (uint64_t at = next_data(fd, from, end); at < end && (last || found < 0);
	     at = next_data(fd, at + SEARCH_CHUNK, end)) {
		uint64_t len = zf_min_u64(SEARCH_CHUNK, end - at);
		int r = read_blocks(fd, chunk, len, at);

		if (r == 0)
			r = search_chunk(fd, chunk, at, len, ret_trailer);
		if (r < 0 && r != -ENODEV)
			return r;
		if (r == 0)
			found = 0;
	}
	return found;
}

int zf_image_trailer_write_header(const struct zf_image_trailer *trailer, int fd)
{
	_zf_free_ struct zf_image_header *header = aligned_alloc(ZF_BLOCK_SIZE, sizeof(*header));
	struct iovec iov = {.iov_len = sizeof(*header)};
	ssize_t n;

	if (!header)
		return -ENOMEM;
	header_encode(trailer, header);
	iov.iov_base = header;
	n = pwritev2(fd, &iov, 1, (off_t)(trailer->image_size - sizeof(*header)), RWF_DSYNC);
	if (n < 0)
		return -errno;
	return n == sizeof(*header) ? 0 : -EIO;
}

/* ---- making one ---- */

static void store_empty_zones(struct zf_image_trailer *trailer, uint32_t first)
{
	const struct zf_geometry *g = &trailer->geometry;

	for (uint32_t i = first; i < g->zone_count; i++) {
		struct zf_zone_state zone = {
			.cond = i < g->conventional ? ZF_ZONE_NOT_WP : ZF_ZONE_EMPTY,
		};

		put_zone(trailer, i, &zone);
	}
}

/*
 * Writes table and state, with entries of empty zones from `first` on, durably. The bytes are
 * written, not only allocated, so that a full host fails now, and not when a zone is first written.
 */
static int write_empty(const struct zf_image_trailer *trailer, uint32_t first, int fd)
{
	struct zf_image_trailer t = *trailer;
	uint64_t size = t.table_size + ZF_BLOCK_SIZE;
	_zf_free_ uint8_t *buf = aligned_alloc(ZF_BLOCK_SIZE, size);
	int r;

	if (!buf)
		return -ENOMEM;
	memset(buf, 0, size);
	t.table = (void *)buf;
	t.state = (void *)(buf + t.table_size);
	store_empty_zones(&t, first);
	read_boot_id(t.boot_id);
	put_use(&t, ZF_IMAGE_CLEAN);
	r = write_blocks(fd, buf, size, t.table_offset);
	if (r < 0)
		return r;
	return fsync(fd) < 0 ? -errno : 0;
}

int zf_image_trailer_write_new(const struct zf_image_trailer *trailer, const uint8_t *uuid, int fd)
{
	struct zf_image_trailer t = *trailer;
	int r;

	if (uuid)
		memcpy(t.uuid, uuid, sizeof(t.uuid));
	else
		uuid_generate(t.uuid);
	t.seed = seed_of(t.uuid);
	r = write_empty(&t, 0, fd);
	return r < 0 ? r : zf_image_trailer_write_header(&t, fd);
}

int zf_image_trailer_prepare(struct zf_image_trailer *trailer, uint32_t former_count, int fd)
{
	int r = write_empty(trailer, former_count, fd);

	return r < 0 ? r : zf_image_trailer_map(trailer, fd, true);
}

struct takeover {
	struct zf_image_trailer *to;
	const struct zf_image_trailer *from;
};

/* Both tables have the same zone numbers and seed, so the entries are the same bytes. */
static void copy_table(void *arg)
{
	const struct takeover *takeover = arg;
	const struct zf_image_trailer *from = takeover->from;

	memcpy(takeover->to->table, from->table,
	       from->geometry.zone_count * sizeof(struct zf_image_zone));
	memcpy(takeover->to->state, from->state, sizeof(*from->state));
}

int zf_image_trailer_take_over(struct zf_image_trailer *trailer,
			       const struct zf_image_trailer *former)
{
	struct takeover takeover = {.to = trailer, .from = former};
	int r = zf_mapped_touch(copy_table, &takeover);

	if (r < 0)
		return r;
	return msync(trailer->map, trailer->map_size, MS_SYNC) < 0 ? -errno : 0;
}
