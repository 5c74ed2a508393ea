/* SPDX-License-Identifier: MIT */
#include "io/zone_rules.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

int zf_zone_rules_init(struct zf_zone_rules *rules, const struct zf_geometry *geometry)
{
	struct zf_zone_state *zones = calloc(geometry->zone_count, sizeof(*zones));

	if (!zones)
		return -ENOMEM;
	for (uint32_t i = 0; i < geometry->zone_count; i++)
		zones[i].cond = i < geometry->conventional ? ZF_ZONE_NOT_WP : ZF_ZONE_EMPTY;
	*rules = (struct zf_zone_rules){.geometry = *geometry, .zones = zones};
	return 0;
}

struct zf_zone_state *zf_zone_rules_grow(struct zf_zone_rules *rules, struct zf_zone_state *zones,
					 uint32_t zone_count)
{
	struct zf_zone_state *former = rules->zones;
	uint32_t count = rules->geometry.zone_count;

	memcpy(zones, former, count * sizeof(*zones));
	for (uint32_t i = count; i < zone_count; i++)
		zones[i] = (struct zf_zone_state){.cond = ZF_ZONE_EMPTY};
	rules->zones = zones;
	rules->geometry.zone_count = zone_count;
	return former;
}

void zf_zone_rules_deinit(struct zf_zone_rules *rules)
{
	free(rules->zones);
	rules->zones = NULL;
}

static bool is_open(const struct zf_zone_state *zone)
{
	return zone->cond == ZF_ZONE_IMP_OPEN || zone->cond == ZF_ZONE_EXP_OPEN;
}

static bool is_active(const struct zf_zone_state *zone)
{
	return is_open(zone) || zone->cond == ZF_ZONE_CLOSED;
}

void zf_zone_rules_recount(struct zf_zone_rules *rules)
{
	rules->open_count = 0;
	rules->active_count = 0;
	for (uint32_t i = 0; i < rules->geometry.zone_count; i++) {
		rules->open_count += is_open(&rules->zones[i]);
		rules->active_count += is_active(&rules->zones[i]);
	}
}

void zf_zone_rules_power_cycle(struct zf_zone_rules *rules)
{
	for (uint32_t i = 0; i < rules->geometry.zone_count; i++) {
		struct zf_zone_state *zone = &rules->zones[i];

		if (is_open(zone))
			zone->cond = zone->wp > 0 ? ZF_ZONE_CLOSED : ZF_ZONE_EMPTY;
	}
	zf_zone_rules_recount(rules);
}

static void set_cond(struct zf_zone_rules *rules, struct zf_zone_state *zone,
		     enum zf_zone_cond cond)
{
	rules->open_count -= is_open(zone);
	rules->active_count -= is_active(zone);
	zone->cond = cond;
	rules->open_count += is_open(zone);
	rules->active_count += is_active(zone);
}

/* As devices do at max_open. The search goes round, so that the same zone is not always closed. */
static bool close_another(struct zf_zone_rules *rules)
{
	for (uint32_t i = 0; i < rules->geometry.zone_count; i++) {
		struct zf_zone_state *zone = &rules->zones[rules->close_next];

		rules->close_next = (rules->close_next + 1) % rules->geometry.zone_count;
		if (zone->cond == ZF_ZONE_IMP_OPEN) {
			set_cond(rules, zone, ZF_ZONE_CLOSED);
			return true;
		}
	}
	return false;
}

static int open_zone(struct zf_zone_rules *rules, struct zf_zone_state *zone)
{
	const struct zf_geometry *g = &rules->geometry;

	if (is_open(zone))
		return 0;
	if (zone->cond == ZF_ZONE_EMPTY && g->max_active && rules->active_count >= g->max_active)
		return -EOVERFLOW;
	if (g->max_open && rules->open_count >= g->max_open && !close_another(rules))
		return -EOVERFLOW;
	set_cond(rules, zone, ZF_ZONE_IMP_OPEN);
	return 0;
}

/* For every zone command: checks that the zone exists and is usable, whatever its pointer. */
static int check_zone(const struct zf_zone_rules *rules, uint64_t addr, uint32_t *ret_zone_no)
{
	uint64_t zone_no = addr / rules->geometry.zone_size;

	if (zone_no >= rules->geometry.zone_count)
		return -EINVAL;
	switch (rules->zones[zone_no].cond) {
	case ZF_ZONE_OFFLINE:
		return -ENXIO;
	case ZF_ZONE_READONLY:
		return -EROFS;
	default:
		*ret_zone_no = (uint32_t)zone_no;
		return 0;
	}
}

static int check_data(const struct zf_zone_rules *rules, const struct zf_io *io)
{
	if (io->len == 0 || !zf_is_aligned(io->addr | io->len, ZF_BLOCK_SIZE))
		return -EINVAL;
	if (io->op == ZF_IO_ZEROES)
		return 0;
	if (io->op == ZF_IO_APPEND && io->len > rules->geometry.append_limit)
		return -EINVAL;
	return zf_zone_rules_check_iov(io->iov, io->iovcnt, io->len);
}

/* Moves the pointer of a sequential zone past `len` bytes that start at `offset` in the zone. */
static int advance(struct zf_zone_rules *rules, struct zf_zone_state *zone, uint64_t offset,
		   uint64_t len)
{
	uint64_t capacity = rules->geometry.zone_capacity;
	int r;

	if (zone->cond == ZF_ZONE_FULL)
		return -ENOSPC;
	if (offset != zone->wp)
		return -EIO;
	if (len > capacity - zone->wp)
		return -ENOSPC;
	r = open_zone(rules, zone);
	if (r < 0)
		return r;
	zone->wp += len;
	if (zone->wp == capacity)
		set_cond(rules, zone, ZF_ZONE_FULL);
	return 0;
}

static int apply_data(struct zf_zone_rules *rules, const struct zf_io *io, uint32_t zone_no,
		      uint64_t *ret_addr)
{
	struct zf_zone_state *zone = &rules->zones[zone_no];
	uint64_t offset = io->addr % rules->geometry.zone_size;
	uint64_t addr = io->addr;
	int r;

	r = check_data(rules, io);
	if (r < 0)
		return r;
	if (zone->cond == ZF_ZONE_NOT_WP) {
		if (io->op == ZF_IO_APPEND)
			return -EINVAL;
		if (offset >= rules->geometry.zone_capacity ||
		    io->len > rules->geometry.zone_capacity - offset)
			return -ENOSPC;
		*ret_addr = addr;
		return 0;
	}
	if (io->op == ZF_IO_APPEND) {
		if (offset != 0)
			return -EINVAL;
		addr += zone->wp;
		offset = zone->wp;
	}
	r = advance(rules, zone, offset, io->len);
	if (r < 0)
		return r;
	*ret_addr = addr;
	return 0;
}

static int apply_management(struct zf_zone_rules *rules, const struct zf_io *io, uint32_t zone_no)
{
	struct zf_zone_state *zone = &rules->zones[zone_no];

	if (io->addr % rules->geometry.zone_size != 0 || zone->cond == ZF_ZONE_NOT_WP)
		return -EINVAL;
	if (io->op == ZF_IO_FINISH) {
		zone->wp = rules->geometry.zone_capacity;
		set_cond(rules, zone, ZF_ZONE_FULL);
		return 0;
	}
	/*
	 * A reset of an empty zone is counted too: if its pointer is only a lower bound, the zone
	 * may hold data, and data written later must differ from it by the reset count.
	 */
	zone->wp = 0;
	zone->reset_count++;
	set_cond(rules, zone, ZF_ZONE_EMPTY);
	return 0;
}

int zf_zone_rules_apply(struct zf_zone_rules *rules, const struct zf_io *io, uint64_t *ret_addr)
{
	uint32_t zone_no;
	int r;

	r = check_zone(rules, io->addr, &zone_no);
	if (r < 0)
		return r;
	switch (io->op) {
	case ZF_IO_WRITE:
	case ZF_IO_APPEND:
	case ZF_IO_ZEROES:
		r = apply_data(rules, io, zone_no, ret_addr);
		break;
	case ZF_IO_RESET:
	case ZF_IO_FINISH:
		r = apply_management(rules, io, zone_no);
		if (r == 0)
			*ret_addr = io->addr;
		break;
	default:
		assert(!"only commands that change a zone");
		return -EINVAL;
	}
	if (r == 0)
		rules->zones[zone_no].lost = false;
	return r;
}

int zf_zone_rules_check_iov(const struct iovec *iov, unsigned int iovcnt, uint64_t len)
{
	uint64_t sum = 0;

	if (iovcnt == 0 || iovcnt > ZF_IO_IOV_MAX)
		return -EINVAL;
	for (unsigned int i = 0; i < iovcnt; i++) {
		if (iov[i].iov_len == 0 ||
		    !zf_is_aligned((uintptr_t)iov[i].iov_base | iov[i].iov_len, ZF_BLOCK_SIZE))
			return -EINVAL;
		sum += iov[i].iov_len;
	}
	return sum == len ? 0 : -EINVAL;
}

int zf_zone_rules_check_read(const struct zf_zone_rules *rules, uint64_t addr, uint64_t len)
{
	uint64_t size = rules->geometry.zone_size * rules->geometry.zone_count;

	if (len == 0 || !zf_is_aligned(addr | len, ZF_BLOCK_SIZE))
		return -EINVAL;
	if (addr > size || len > size - addr)
		return -EINVAL;
	return 0;
}

void zf_zone_rules_report(const struct zf_zone_rules *rules, uint32_t zone_no,
			  struct zf_zone_info *ret_info)
{
	const struct zf_zone_state *zone = &rules->zones[zone_no];
	uint64_t start = zone_no * rules->geometry.zone_size;

	*ret_info = (struct zf_zone_info){
		.start = start,
		.capacity = rules->geometry.zone_capacity,
		.wp = start + zone->wp,
		.reset_count = zone->reset_count,
		.type = zone_no < rules->geometry.conventional ? ZF_ZONE_CONVENTIONAL
							       : ZF_ZONE_SEQUENTIAL,
		.cond = zone->cond,
		.lost = zone->lost,
		.guessed = zone->guessed,
	};
}

/*
 * Ignores the limits: the recorded conditions are as old as the recorded pointers, so a zone that
 * is really full still counts as active until its own pointer is raised.
 */
int zf_zone_rules_raise(struct zf_zone_rules *rules, uint32_t zone_no, uint64_t wp)
{
	struct zf_zone_state *zone;
	uint64_t offset;

	if (zone_no >= rules->geometry.zone_count)
		return -EINVAL;
	zone = &rules->zones[zone_no];
	if (zone->cond == ZF_ZONE_NOT_WP)
		return 0;
	if (zone->cond == ZF_ZONE_OFFLINE)
		return -ENXIO;
	if (zone->cond == ZF_ZONE_READONLY)
		return -EROFS;
	offset = wp - zone_no * rules->geometry.zone_size;
	if (offset > rules->geometry.zone_capacity || !zf_is_aligned(offset, ZF_BLOCK_SIZE))
		return -EINVAL;
	if (offset <= zone->wp)
		return 0;
	zone->wp = offset;
	zone->lost = false;
	if (offset == rules->geometry.zone_capacity)
		set_cond(rules, zone, ZF_ZONE_FULL);
	else if (zone->cond == ZF_ZONE_EMPTY)
		set_cond(rules, zone, ZF_ZONE_CLOSED);
	return 0;
}

int zf_zone_rules_set_reset_count(struct zf_zone_rules *rules, uint32_t zone_no,
				  uint64_t reset_count)
{
	if (zone_no >= rules->geometry.zone_count)
		return -EINVAL;
	if (rules->zones[zone_no].cond != ZF_ZONE_EMPTY)
		return -EBUSY;
	rules->zones[zone_no].reset_count = reset_count;
	rules->zones[zone_no].lost = false;
	return 0;
}
