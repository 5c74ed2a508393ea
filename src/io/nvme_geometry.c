/* SPDX-License-Identifier: MIT */
#include "io/nvme_geometry.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "io/nvme_command.h"

#define DESCRIPTORS_SIZE 4096u
#define NO_LIMIT	 UINT32_MAX

/*
 * Limits count in powers of two of the smallest page that the controller supports. That page is
 * 4 KiB on all known controllers, and never smaller, so the limits found here are never too high.
 * The kernel knows the page exactly.
 */
#define PAGE_SHIFT_MIN 12

static uint64_t limit_of(uint8_t power, uint64_t none)
{
	return power == 0 || power > 31 ? none : (uint64_t)1 << (power + PAGE_SHIFT_MIN);
}

/* A limit is stored less one; all bits set: no limit. */
static uint32_t zones_of(uint32_t limit)
{
	return limit == NO_LIMIT ? 0 : limit + 1;
}

/* ---- limits ---- */

static void set_limits(const struct zf_nvme_identity *identity, struct zf_nvme_drive *drive)
{
	const struct zf_nvme_kernel_limits *kernel = &identity->kernel;
	uint64_t max = limit_of(identity->ctrl.mdts, ZF_NVME_LEN_MAX);

	max = zf_min_u64(max, kernel->transfer);
	/* In the worst case each block of a request lies elsewhere in memory. */
	max = zf_min_u64(max, kernel->segments * ZF_BLOCK_SIZE);
	max = zf_min_u64(max, (uint64_t)ZF_IO_IOV_MAX * ZF_BLOCK_SIZE);
	drive->transfer_max = zf_align_down(max, ZF_BLOCK_SIZE);
	max = zf_min_u64(max, limit_of(identity->zns_ctrl.zasl, max));
	max = zf_min_u64(max, kernel->append);
	drive->geometry.append_limit = (uint32_t)zf_align_down(max, ZF_BLOCK_SIZE);
	drive->zeroes_max =
		zf_align_down(zf_min_u64(kernel->zeroes, ZF_NVME_LEN_MAX), ZF_BLOCK_SIZE);
	if (!(le16toh(identity->ctrl.oncs) & NVME_CTRL_ONCS_WRITE_ZEROES))
		drive->zeroes_max = 0;
}

/* ---- zones ---- */

static int refuse_blocks(const struct nvme_lbaf *format, const char *path,
			 const struct zf_report *report)
{
	if (le16toh(format->ms) != 0)
		zf_report(report, ZF_REPORT_ERROR,
			  "%s: its blocks carry %u bytes of metadata each; zfuse needs blocks of "
			  "4096 bytes without any (nvme format --lbaf=N loses all data)",
			  path, le16toh(format->ms));
	else
		zf_report(report, ZF_REPORT_ERROR,
			  "%s: its blocks have %" PRIu64
			  " bytes; zfuse needs 4096 (nvme id-ns -H lists its formats, nvme format "
			  "--lbaf=N loses all data)",
			  path, format->ds < 32 ? (uint64_t)1 << format->ds : 0);
	return -ENOTSUP;
}

static int refuse_zones(uint64_t zone_blocks, uint64_t blocks, const char *path,
			const struct zf_report *report)
{
	zf_report(report, ZF_REPORT_ERROR,
		  "%s: %" PRIu64 " blocks in zones of %" PRIu64 ": zfuse cannot use such zones",
		  path, blocks, zone_blocks);
	return -ENOTSUP;
}

int zf_nvme_geometry_describe(const struct zf_nvme_identity *identity, const char *path,
			      const struct zf_report *report, struct zf_nvme_drive *ret_drive)
{
	const struct nvme_id_ns *ns = &identity->ns;
	uint64_t blocks = le64toh(ns->nsze), zone_blocks;
	struct zf_nvme_drive drive = {};
	uint8_t format;

	nvme_id_ns_flbas_to_lbaf_inuse(ns->flbas, &format);
	if (ns->lbaf[format].ds != ZF_BLOCK_SHIFT || le16toh(ns->lbaf[format].ms) != 0)
		return refuse_blocks(&ns->lbaf[format], path, report);
	zone_blocks = le64toh(identity->zns_ns.lbafe[format].zsze);
	if (zone_blocks == 0 || zone_blocks > UINT64_MAX >> ZF_BLOCK_SHIFT ||
	    blocks / zone_blocks == 0 || blocks / zone_blocks > UINT32_MAX)
		return refuse_zones(zone_blocks, blocks, path, report);
	drive.geometry = (struct zf_geometry){
		.zone_size = zone_blocks << ZF_BLOCK_SHIFT,
		.zone_count = (uint32_t)(blocks / zone_blocks),
		.max_open = zones_of(le32toh(identity->zns_ns.mor)),
		.max_active = zones_of(le32toh(identity->zns_ns.mar)),
		.volatile_cache = identity->ctrl.vwc & NVME_CTRL_VWC_PRESENT,
	};
	set_limits(identity, &drive);
	*ret_drive = drive;
	return 0;
}

/* ---- descriptors ---- */

static enum zf_zone_cond cond_of(const struct nvme_zns_desc *desc)
{
	switch (desc->zs >> 4) {
	case NVME_ZNS_ZS_EMPTY:
		return ZF_ZONE_EMPTY;
	case NVME_ZNS_ZS_IMPL_OPEN:
		return ZF_ZONE_IMP_OPEN;
	case NVME_ZNS_ZS_EXPL_OPEN:
		return ZF_ZONE_EXP_OPEN;
	case NVME_ZNS_ZS_CLOSED:
		return ZF_ZONE_CLOSED;
	case NVME_ZNS_ZS_FULL:
		return ZF_ZONE_FULL;
	case NVME_ZNS_ZS_READ_ONLY:
		return ZF_ZONE_READONLY;
	default: /* offline, or an unknown condition: such a zone must not be used either */
		return ZF_ZONE_OFFLINE;
	}
}

void zf_nvme_geometry_zone_info(const struct nvme_zns_desc *desc, struct zf_zone_info *ret_info)
{
	struct zf_zone_info info = {
		.start = le64toh(desc->zslba) << ZF_BLOCK_SHIFT,
		.capacity = le64toh(desc->zcap) << ZF_BLOCK_SHIFT,
		.type = ZF_ZONE_SEQUENTIAL,
		.cond = cond_of(desc),
	};

	switch (info.cond) {
	case ZF_ZONE_FULL:
	case ZF_ZONE_READONLY:
	case ZF_ZONE_OFFLINE: /* their pointer is not valid */
		info.wp = info.start + info.capacity;
		break;
	case ZF_ZONE_EMPTY:
		info.wp = info.start;
		break;
	default:
		info.wp = le64toh(desc->wp) << ZF_BLOCK_SHIFT;
		break;
	}
	*ret_info = info;
}

/* Each descriptor holds its own length, so descriptors need not be aligned. */
bool zf_nvme_geometry_is_zoned(const void *descriptors)
{
	const uint8_t *bytes = descriptors;
	struct nvme_ns_id_desc desc;

	for (size_t at = 0; at + sizeof(desc) < DESCRIPTORS_SIZE; at += sizeof(desc) + desc.nidl) {
		memcpy(&desc, bytes + at, sizeof(desc));
		if (desc.nidl == 0)
			return false;
		if (desc.nidt == NVME_NIDT_CSI)
			return bytes[at + sizeof(desc)] == NVME_CSI_ZNS;
	}
	return false;
}
