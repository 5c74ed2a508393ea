/* SPDX-License-Identifier: MIT */
#include "lab/image.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "io/image.h"
#include "probe.h"
#include "sim/sim_internal.h"

/* ---- blocks ---- */

static int write_block(int fd, uint64_t address, const struct zf_sim_block *block)
{
	ssize_t n;

	if (!block || zf_is_zero(block->bytes, sizeof(block->bytes)))
		return 0;
	n = pwrite(fd, block->bytes, sizeof(block->bytes), (off_t)address);
	if (n < 0)
		return -errno;
	return n == sizeof(block->bytes) ? 0 : -EIO;
}

/* The device's address is the offset in the file. */
static int write_blocks(int fd, const struct zf_sim *sim)
{
	const struct zf_geometry *g = &sim->rules.geometry;
	int r = 0;

	for (uint32_t z = 0; z < g->zone_count; z++) {
		const struct zf_sim_zone *zone = sim->zones[z];

		for (uint32_t i = 0; r == 0 && i < zone->slot_count; i++)
			r = write_block(fd, z * g->zone_size + i * (uint64_t)ZF_BLOCK_SIZE,
					zf_sim_slot_read(&zone->slots[i]));
	}
	return r;
}

static int fill(const char *path, const struct zf_sim *sim)
{
	_zf_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : write_blocks(fd, sim);

	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

/* ---- pointers ---- */

static int set_zones(struct zf_dev *dev, const struct zf_sim *sim)
{
	const struct zf_geometry *g = &sim->rules.geometry;
	int r = 0;

	for (uint32_t z = g->conventional; r == 0 && z < g->zone_count; z++) {
		const struct zf_zone_state *state = &sim->rules.zones[z];

		r = zf_dev_set_reset_count(dev, z, state->reset_count);
		if (r == 0)
			r = zf_dev_raise_pointer(dev, z, z * g->zone_size + state->wp);
	}
	return r;
}

static int set_pointers(const char *path, const struct zf_sim *sim, const struct zf_report *report)
{
	const struct zf_open_options options = {.lock_wait_ms = ZF_PROBE_LOCK_WAIT_MS};
	struct zf_dev *dev;
	int r = zf_image_open(path, &options, report, &dev);

	if (r < 0)
		return r;
	r = set_zones(dev, sim);
	zf_dev_close(dev);
	return r;
}

/* ---- all of it ---- */

int zf_lab_image_make(const char *path, const struct zf_sim *sim,
		      const struct zf_geometry *geometry, const uint8_t *uuid, bool force,
		      const struct zf_report *report)
{
	const struct zf_open_options options = {.lock_wait_ms = ZF_PROBE_LOCK_WAIT_MS,
						.image_uuid = uuid};
	bool was_there = access(path, F_OK) == 0;
	int r = zf_image_create(path, geometry, force, &options, report);

	if (r < 0)
		return r;
	r = fill(path, sim);
	if (r < 0)
		zf_report(report, ZF_REPORT_ERROR, "%s: %s", path, strerror(-r));
	else
		r = set_pointers(path, sim, report);
	if (r < 0 && !was_there)
		unlink(path);
	return r;
}
