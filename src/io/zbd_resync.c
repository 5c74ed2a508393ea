/* SPDX-License-Identifier: MIT */
/*
 * The kernel has a pointer of its own for each zone that is being written. Since Linux 6.10 it
 * refuses writes at other places, without asking the disk. Commands past the block layer, native
 * appends above all, do not move the kernel's pointer. A report corrects it only after a write that
 * the disk itself has refused. So when a write has failed and nothing of it has landed:
 *
 *  - an empty zone is reset: nothing changes but the kernel's pointer;
 *  - for a zone in use, the kernel tells its own pointer (since 6.19). If it differs from the
 *    disk's, a write there passes the kernel, and the disk refuses it: so the next report corrects
 *    the kernel's pointer.
 *
 * On kernels from 6.10 to 6.18, this backend cannot write to such a zone in use until the machine
 * is restarted.
 */
#include <inttypes.h>
#include <linux/blkzoned.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/zbd_device.h"

#define SECTOR_SHIFT 9

/* Of Linux 6.19 and later. */
#define REPORT_CACHED (1u << 31)
#define REPORT_ZONES  _IOWR(0x12, 142, struct blk_zone_report)

/* In bytes. False: the kernel does not tell. */
static bool kernel_pointer(const struct zf_zbd *zbd, uint64_t start, uint64_t *ret_wp)
{
	struct {
		struct blk_zone_report report;
		struct blk_zone zone;
	} one = {
		.report = {.sector = start >> SECTOR_SHIFT, .nr_zones = 1, .flags = REPORT_CACHED}};

	if (ioctl(zbd->fd, REPORT_ZONES, &one) < 0 || one.report.nr_zones != 1)
		return false;
	*ret_wp = one.zone.wp << SECTOR_SHIFT;
	return true;
}

static bool is_in_use(const struct zf_zone_info *info)
{
	return info->cond == ZF_ZONE_IMP_OPEN || info->cond == ZF_ZONE_EXP_OPEN ||
	       info->cond == ZF_ZONE_CLOSED;
}

/*
 * A write that fails: the disk's pointer is elsewhere, and no other program writes to this disk. (A
 * kernel's pointer within a block may equal the disk's, because info->wp is rounded up: then the
 * caller does not call this.)
 */
static void write_in_vain(struct zf_zbd *zbd, uint64_t address)
{
	_zf_free_ void *block = aligned_alloc(ZF_BLOCK_SIZE, ZF_BLOCK_SIZE);

	if (!block)
		return;
	memset(block, 0, ZF_BLOCK_SIZE);
	(void)!pwrite(zbd->fd, block, ZF_BLOCK_SIZE, (off_t)address);
}

static void resync_in_use(struct zf_zbd *zbd, const struct zf_zone_info *info)
{
	uint64_t wp;

	if (!kernel_pointer(zbd, info->start, &wp))
		zf_report(&zbd->dev.report, ZF_REPORT_WARNING,
			  "%s: a write at %" PRIu64 " was refused; if this disk was written with "
			  "native appends since the machine started, restart it, or choose "
			  "append=native (Linux 6.19 and later need neither)",
			  zbd->dev.path, info->wp);
	else if (wp != info->wp && zf_is_aligned(wp, ZF_BLOCK_SIZE) && wp >= info->start &&
		 wp < info->start + info->capacity)
		write_in_vain(zbd, wp);
}

void zf_zbd_resync(struct zf_zbd *zbd, const struct zf_zone_info *info)
{
	if (!zbd->kernel_orders)
		return;
	if (info->cond == ZF_ZONE_EMPTY)
		zbd_zones_operation(zbd->zone_fd, ZBD_OP_RESET, (off_t)info->start,
				    (off_t)zbd->dev.geometry.zone_size);
	else if (is_in_use(info))
		resync_in_use(zbd, info);
}
