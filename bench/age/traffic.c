/* SPDX-License-Identifier: MIT */
#include "age/traffic.h"

#include "alloc/zone.h"

const char *const age_kind_names[AGE_KINDS] = {"data", "cold", "meta", "super", "log"};

static enum age_kind kind_of(struct zf_fs *fs, uint32_t zone_no)
{
	struct zf_zone zone;

	zf_alloc_get_zone(zf_fs_alloc(fs), zone_no, &zone);
	switch (zone.role) {
	case ZF_ROLE_SUPER:
		return AGE_SUPER;
	case ZF_ROLE_META:
		return AGE_META;
	case ZF_ROLE_LOG:
		return AGE_LOG;
	case ZF_ROLE_COLD:
		return AGE_COLD;
	}
	return AGE_DATA;
}

static void record(void *arg, const struct zf_io *io)
{
	struct age_traffic *traffic = arg;
	const struct zf_geometry *geometry = zf_dev_geometry(zf_fs_dev(traffic->fs));

	if (io->result < 0 ||
	    (io->op != ZF_IO_WRITE && io->op != ZF_IO_APPEND && io->op != ZF_IO_ZEROES))
		return;
	traffic->bytes[kind_of(traffic->fs, zf_zone_of(geometry, io->addr))] += io->len;
}

void age_traffic_start(struct age_traffic *traffic, struct zf_fs *fs)
{
	traffic->fs = fs;
	zf_dev_set_recorder(zf_fs_dev(fs), record, traffic);
}

void age_traffic_stop(struct age_traffic *traffic)
{
	zf_dev_set_recorder(zf_fs_dev(traffic->fs), NULL, NULL);
}
