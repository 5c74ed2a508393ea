/* SPDX-License-Identifier: MIT */
/*
 * What a drive's identity says, in the units of io/dev.h. Pure functions; io/nvme_identify.c reads
 * the identity.
 */
#ifndef ZF_IO_NVME_GEOMETRY_H
#define ZF_IO_NVME_GEOMETRY_H

#include <libnvme.h>

#include "io/dev.h"

/* The kernel's limits of one command: /sys/block/NAME/queue. */
struct zf_nvme_kernel_limits {
	uint64_t transfer; /* bytes */
	uint64_t append;   /* bytes */
	uint64_t zeroes;   /* bytes; 0: Write Zeroes must not be used */
	uint64_t segments; /* pieces of memory that are not adjacent */
};

struct zf_nvme_identity {
	struct nvme_id_ctrl ctrl;
	struct nvme_id_ns ns;
	struct nvme_zns_id_ctrl zns_ctrl;
	struct nvme_zns_id_ns zns_ns;
	struct zf_nvme_kernel_limits kernel;
};

struct zf_nvme_drive {
	struct zf_geometry geometry;
	uint64_t transfer_max; /* bytes of one read or write, wherever its memory lies */
	uint64_t zeroes_max;   /* bytes of one Write Zeroes; 0: there is none */
	bool read_only;	       /* zfuse sends no command that changes the drive; root could */
};

/*
 * Describes all but the zone capacity, which only a zone report tells. -ENOTSUP: blocks, or zones,
 * that zfuse cannot use; reported under the name `path`.
 */
int zf_nvme_geometry_describe(const struct zf_nvme_identity *identity, const char *path,
			      const struct zf_report *report, struct zf_nvme_drive *ret_drive);

/* Converts a zone descriptor of the drive. */
void zf_nvme_geometry_zone_info(const struct nvme_zns_desc *desc, struct zf_zone_info *ret_info);

/* Does this list of descriptors, 4096 bytes that Identify has returned, name a zoned namespace? */
bool zf_nvme_geometry_is_zoned(const void *descriptors);

#endif
