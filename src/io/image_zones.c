/* SPDX-License-Identifier: MIT */
/*
 * What a request means for the zones of an image: beginning and ending it, under the lock.
 *
 * When a request begins, the zone rules decide, an append gets its address, and the new pointer is
 * stored in the mapped trailer: so the recorded pointer is never below bytes that may have been
 * written, even if the process is killed with the I/O in flight.
 *
 * A few zones are *kept* when they are reset: they are not punched out, so that they stay written.
 * A durable write into a hole costs the host's filesystem a journal commit (image_warm.c).
 */
#include <errno.h>
#include <unistd.h>

#include "io/image_device.h"

static bool is_write(const struct zf_io *io)
{
	return io->op == ZF_IO_WRITE || io->op == ZF_IO_APPEND || io->op == ZF_IO_ZEROES;
}

/* ---- kept zones ---- */

static void set_kept_locked(struct zf_image *image, uint32_t zone_no, bool kept)
{
	image->kept_count += kept;
	image->kept_count -= image->busy[zone_no].kept;
	image->busy[zone_no].kept = kept;
}

static void set_warm_end_locked(struct zf_image *image, uint32_t zone_no, uint64_t warm_end)
{
	image->busy[zone_no].looked = true;
	image->busy[zone_no].warm_end = warm_end;
}

/* Keeping a zone that was hardly written would gain little. */
static bool is_worth_keeping(const struct zf_image *image, const struct zf_zone_state *before)
{
	return image->kept_count < ZF_IMAGE_KEPT_MAX &&
	       before->wp >= image->dev.geometry.zone_capacity / 2;
}

static void keep_locked(struct zf_image *image, uint32_t zone_no, uint64_t warm_end)
{
	set_kept_locked(image, zone_no, true);
	set_warm_end_locked(image, zone_no, warm_end);
}

void zf_image_find_kept(struct zf_image *image)
{
	const struct zf_geometry *g = &image->dev.geometry;
	uint64_t zone_no = g->conventional;

	while (zone_no < g->zone_count && image->kept_count < ZF_IMAGE_KEPT_MAX) {
		off_t from = (off_t)(zone_no * g->zone_size), data;

		if (image->rules.zones[zone_no].cond != ZF_ZONE_EMPTY ||
		    image->rules.zones[zone_no].lost) {
			zone_no++;
			continue;
		}
		data = lseek(image->fd, from, SEEK_DATA);
		if (data < 0)
			return;
		if (data == from)
			keep_locked(image, (uint32_t)zone_no,
				    zf_image_warm_end(image, (uint32_t)zone_no, 0));
		/* The data may lie within this zone, behind a hole at its start. */
		zone_no = zf_max_u64(zone_no + 1, (uint64_t)data / g->zone_size);
	}
}

/* ---- beginning ---- */

static int begin_read(struct zf_image *image, struct zf_image_command *command)
{
	const struct zf_io *io = command->base.io;
	int r;

	r = zf_zone_rules_check_iov(io->iov, io->iovcnt, io->len);
	if (r == 0)
		r = zf_zone_rules_check_read(&image->rules, io->addr, io->len);
	command->step = ZF_IMAGE_STEP_TRANSFER;
	return r;
}

/*
 * A device may carry out two commands on one zone in either order. Here a reset punches the zone
 * out, which could destroy the data of a later write, so the later of the two commands fails.
 */
static bool is_in_the_way(const struct zf_image *image, const struct zf_io *io)
{
	const struct zf_image_zone_busy *busy = &image->busy[zf_image_zone_of(image, io)];

	return busy->resetting || (!is_write(io) && busy->writes > 0);
}

/* The first write comes after all pointers were raised: from then on the trailer's are exact. */
static int store_locked(struct zf_image *image, uint32_t zone_no)
{
	int r = 0;

	if (image->raise_first && zf_dev_flush_error(&image->dev) == 0)
		r = zf_image_trailer_store_use(&image->trailer, ZF_IMAGE_IN_USE);
	if (r == 0)
		r = zf_image_trailer_store_zone(&image->trailer, zone_no,
						&image->rules.zones[zone_no]);
	if (r == 0)
		image->raise_first = image->rules.zones[zone_no].guessed = false;
	return r;
}

static void take_back_locked(struct zf_image *image, uint32_t zone_no,
			     const struct zf_zone_state *before)
{
	image->rules.zones[zone_no] = *before;
	zf_zone_rules_recount(&image->rules);
}

static int begin_change_locked(struct zf_image *image, struct zf_image_command *command)
{
	struct zf_io *io = command->base.io;
	uint32_t zone_no;
	uint64_t addr;
	int r;

	if (image->read_only)
		return -EROFS;
	if (io->addr / image->dev.geometry.zone_size >= image->dev.geometry.zone_count)
		return -EINVAL;
	if (is_in_the_way(image, io))
		return -EIO;
	zone_no = zf_image_zone_of(image, io);
	command->before = image->rules.zones[zone_no];
	r = zf_zone_rules_apply(&image->rules, io, &addr);
	if (r < 0)
		return r;
	r = store_locked(image, zone_no);
	if (r < 0) {
		take_back_locked(image, zone_no, &command->before);
		return zf_image_give_up_table_locked(image);
	}

	io->addr = addr;
	image->busy[zone_no].writes += is_write(io);
	image->busy[zone_no].resetting = io->op == ZF_IO_RESET;
	set_kept_locked(image, zone_no, false);
	if (is_write(io))
		zf_image_warm_after_locked(image, io, zone_no);
	if (is_write(io))
		command->step = zf_image_unmaps_locked(image, io) ? ZF_IMAGE_STEP_UNMAP
								  : ZF_IMAGE_STEP_TRANSFER;
	else if (io->op == ZF_IO_RESET)
		command->step = ZF_IMAGE_STEP_RESET_SYNC;
	else
		command->step = ZF_IMAGE_STEP_DONE;
	return 0;
}

void zf_image_begin_locked(struct zf_image *image, struct zf_image_command *command)
{
	int r = 0;

	switch (command->base.io->op) {
	case ZF_IO_READ:
		r = begin_read(image, command);
		break;
	case ZF_IO_FLUSH:
		command->step =
			ZF_PLANTED(ZF_BUG_IMAGE_FLUSH) ? ZF_IMAGE_STEP_DONE : ZF_IMAGE_STEP_FLUSH;
		break;
	default:
		r = begin_change_locked(image, command);
	}
	if (r < 0)
		command->step = ZF_IMAGE_STEP_REFUSED;
	command->result = r;
}

/* ---- ending ---- */

int zf_image_reset_synced_locked(struct zf_image *image, struct zf_image_command *command, int res)
{
	uint32_t zone_no = zf_image_zone_of(image, command->base.io);

	if (res >= 0 && is_worth_keeping(image, &command->before)) {
		keep_locked(image, zone_no,
			    zf_max_u64(command->before.wp, image->busy[zone_no].warm_end));
		return 0;
	}
	if (res >= 0) {
		set_warm_end_locked(image, zone_no, 0);
		command->step = ZF_IMAGE_STEP_RESET_PUNCH;
		return ZF_COMMAND_AGAIN;
	}
	if (zf_image_trailer_revoke_reset(&image->trailer, zone_no,
					  image->rules.zones[zone_no].reset_count) < 0)
		zf_image_give_up_table_locked(image);
	take_back_locked(image, zone_no, &command->before);
	return zf_image_sync_error_locked(image, "reset", command->base.io->addr, res);
}

void zf_image_end_locked(struct zf_image *image, const struct zf_image_command *command)
{
	const struct zf_io *io = command->base.io;
	struct zf_image_zone_busy *busy;

	if (command->step == ZF_IMAGE_STEP_REFUSED || io->op == ZF_IO_READ || io->op == ZF_IO_FLUSH)
		return;
	busy = &image->busy[zf_image_zone_of(image, io)];
	busy->writes -= is_write(io);
	busy->resetting = false;
}
