/* SPDX-License-Identifier: MIT */
#include "probe.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uuid.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "superblock/ring.h"
#include "superblock/super_format.h"

/* ---- zfuse, which libblkid does not know ---- */

static void describe_zfuse(struct zf_ring *ring, char *found, size_t size)
{
	const struct zf_super *super;
	unsigned int stepped_over;
	char fsid[37];

	if (zf_ring_newest(ring, &super, &stepped_over) < 0) {
		snprintf(found, size, "a damaged or newer zfuse filesystem");
		return;
	}
	uuid_unparse_lower(super->fsid, fsid);
	snprintf(found, size, "a zfuse filesystem%s%s%s with UUID %s", super->label[0] ? " '" : "",
		 super->label, super->label[0] ? "'" : "", fsid);
}

/*
 * Returns 1 if a zone is written. Conventional zones have no pointer; libblkid has searched them.
 */
static int find_written_zones(struct zf_dev *dev, char *found, size_t size)
{
	uint32_t zone_count = zf_dev_geometry(dev)->zone_count, written = 0;
	struct zf_zone_info info[256];

	for (uint32_t first = 0; first < zone_count; first += ZF_ARRAY_SIZE(info)) {
		uint32_t n = (uint32_t)zf_min_u64(zone_count - first, ZF_ARRAY_SIZE(info));
		int r = zf_dev_report(dev, first, n, info);

		if (r < 0)
			return r;
		for (uint32_t i = 0; i < n; i++)
			written +=
				info[i].type == ZF_ZONE_SEQUENTIAL && info[i].cond != ZF_ZONE_EMPTY;
	}
	if (written == 0)
		return 0;
	snprintf(found, size, "%" PRIu32 " zone%s with data", written, written == 1 ? "" : "s");
	return 1;
}

static int probe_zoned(struct zf_dev *dev, char *found, size_t size)
{
	struct zf_ring *ring;
	int r;

	r = zf_ring_open(dev, NULL, &ring);
	if (r == -ENODEV)
		return find_written_zones(dev, found, size);
	if (r < 0)
		return r;
	describe_zfuse(ring, found, size);
	zf_ring_close(ring);
	return 1;
}

/* ---- other filesystems and partition tables ---- */

static int describe_signature(blkid_probe probe, char *found, size_t size)
{
	const char *type;

	if (blkid_probe_lookup_value(probe, "TYPE", &type, NULL) == 0)
		snprintf(found, size, "a signature of %s", type);
	else if (blkid_probe_lookup_value(probe, "PTTYPE", &type, NULL) == 0)
		snprintf(found, size, "a partition table (%s)", type);
	else
		return 0;
	return 1;
}

static int probe_signature(const char *path, char *found, size_t size)
{
	blkid_probe probe = blkid_new_probe_from_filename(path);
	int r;

	if (!probe)
		return -errno;
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE);
	blkid_probe_enable_partitions(probe, 1);
	/* 1: nothing; -2: several signatures, which contradict each other; else a read error. */
	r = blkid_do_safeprobe(probe);
	if (r == 0) {
		r = describe_signature(probe, found, size);
	} else if (r == 1) {
		r = 0;
	} else if (r == -2) {
		snprintf(found, size, "signatures of several filesystems");
		r = 1;
	} else {
		r = -EIO;
	}
	blkid_free_probe(probe);
	return r;
}

/* ---- both ---- */

/* Keeps the last error instead of reporting it: that a disk has no zones is no error here. */
struct last_message {
	char text[512];
};

static void keep(void *arg, enum zf_report_level level, const char *message)
{
	struct last_message *last = arg;

	if (level == ZF_REPORT_ERROR)
		snprintf(last->text, sizeof(last->text), "%s", message);
}

/*
 * For a disk that could not be opened as zoned, with `error`. The trailer of an image is at the end
 * of the disk. After a change of the disk's size only the first superblock shows that there is an
 * image.
 */
static int probe_lost_image(const char *path, int error, char *found, size_t size)
{
	_zf_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct zf_super_head head;
	struct zf_disk_super disk;

	if (error == -EUCLEAN)
		snprintf(found, size, "a damaged zoned image");
	else if (fd < 0 || pread(fd, &disk, sizeof(disk), 0) != sizeof(disk) ||
		 zf_super_decode_head(&disk, 0, NULL, &head) == -ENOENT)
		return 0;
	else
		snprintf(found, size,
			 "a zfuse filesystem whose disk has another size now ('zfusectl grow')");
	return 1;
}

static int probe_zones(const struct zf_disk *disk, const struct zf_report *report, char *found,
		       size_t size)
{
	const struct zf_open_options options = {
		.read_only = true,
		.lock_wait_ms = ZF_PROBE_LOCK_WAIT_MS,
	};
	struct last_message last = {""};
	const struct zf_report kept = {.fn = keep, .arg = &last};
	struct zf_dev *dev;
	int r;

	r = zf_disk_open(disk, &options, &kept, &dev);
	if ((r == -ENODEV || r == -EUCLEAN) && disk->kind != ZF_DISK_ZONED)
		return probe_lost_image(disk->path, r, found, size);
	if (r < 0) {
		zf_report(report, ZF_REPORT_ERROR, "%s", last.text);
		return r;
	}
	r = probe_zoned(dev, found, size);
	if (r < 0)
		zf_report(report, ZF_REPORT_ERROR, "%s: its zones cannot be read: %s", disk->path,
			  strerror(-r));
	zf_dev_close(dev);
	return r;
}

int zf_probe_disk(const char *path, bool for_image, const struct zf_report *report,
		  struct zf_disk *ret_disk)
{
	struct stat st = {.st_mode = S_IFREG};
	int r;

	if (stat(path, &st) < 0 && !(errno == ENOENT && for_image)) {
		r = -errno;
		zf_report(report, ZF_REPORT_ERROR, "%s: %s", path, strerror(-r));
		return r;
	}
	r = zf_disk_find("", path, &st, report, ret_disk);
	return r == 0 && for_image ? zf_disk_check_for_image(ret_disk, report) : r;
}

int zf_probe_contents(const struct zf_disk *disk, bool for_image, const struct zf_report *report,
		      char *ret_found, size_t size)
{
	struct stat st;
	int r;

	if (stat(disk->path, &st) < 0 && errno == ENOENT && for_image)
		return 0;
	r = probe_zones(disk, report, ret_found, size);
	if (r != 0 || (S_ISREG(st.st_mode) && st.st_size == 0))
		return r;
	r = probe_signature(disk->path, ret_found, size);
	if (r < 0)
		zf_report(report, ZF_REPORT_ERROR, "%s: cannot be examined: %s", disk->path,
			  strerror(-r));
	/* A new image takes the file as a whole. */
	if (r == 0 && for_image && S_ISREG(st.st_mode)) {
		snprintf(ret_found, size, "%" PRIu64 " bytes", (uint64_t)st.st_size);
		r = 1;
	}
	return r;
}
