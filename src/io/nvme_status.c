/* SPDX-License-Identifier: MIT */
#include "io/nvme_status.h"

#include <errno.h>
#include <libnvme.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"

#define STATUS_MASK	    0x7ff /* type and code */
#define STATUS_DO_NOT_RETRY 0x4000

/* Type and code, as they stand in a status. */
#define GENERIC(code)  ((NVME_SCT_GENERIC << 8) | (code))
#define SPECIFIC(code) ((NVME_SCT_CMD_SPECIFIC << 8) | (code))
#define MEDIA(code)    ((NVME_SCT_MEDIA << 8) | (code))
#define PATH(code)     ((NVME_SCT_PATH << 8) | (code))

static const struct {
	int status, error;
	const char *name;
} statuses[] = {
	{GENERIC(NVME_SC_INVALID_OPCODE), -EOPNOTSUPP, "command not supported"},
	{GENERIC(NVME_SC_INVALID_FIELD), -EINVAL, "invalid field in command"},
	{GENERIC(NVME_SC_DATA_XFER_ERROR), -EIO, "data transfer error"},
	{GENERIC(NVME_SC_POWER_LOSS), -EIO, "aborted for a power loss"},
	{GENERIC(NVME_SC_INTERNAL), -EIO, "internal error of the drive"},
	{GENERIC(NVME_SC_ABORT_REQ), -EIO, "aborted on request"},
	{GENERIC(NVME_SC_INVALID_NS), -ENODEV, "the namespace is gone"},
	{GENERIC(NVME_SC_NS_WRITE_PROTECTED), -EROFS, "namespace is write-protected"},
	{GENERIC(NVME_SC_LBA_RANGE), -EINVAL, "address out of range"},
	{GENERIC(NVME_SC_CAP_EXCEEDED), -ENOSPC, "capacity exceeded"},
	{GENERIC(NVME_SC_NS_NOT_READY), -EIO, "namespace not ready"},
	{SPECIFIC(NVME_SC_READ_ONLY), -EROFS, "write to a read-only range"},
	{SPECIFIC(NVME_SC_ZNS_INVALID_OP_REQUEST), -EIO, "invalid zone operation"},
	{SPECIFIC(NVME_SC_ZNS_BOUNDARY_ERROR), -ENOSPC, "zone boundary error"},
	{SPECIFIC(NVME_SC_ZNS_FULL), -ENOSPC, "zone is full"},
	{SPECIFIC(NVME_SC_ZNS_READ_ONLY), -EROFS, "zone is read-only"},
	{SPECIFIC(NVME_SC_ZNS_OFFLINE), -ENXIO, "zone is offline"},
	{SPECIFIC(NVME_SC_ZNS_INVALID_WRITE), -EIO, "not at the zone's write pointer"},
	{SPECIFIC(NVME_SC_ZNS_TOO_MANY_ACTIVE), -EOVERFLOW, "too many active zones"},
	{SPECIFIC(NVME_SC_ZNS_TOO_MANY_OPENS), -EOVERFLOW, "too many open zones"},
	{SPECIFIC(NVME_SC_ZNS_INVAL_TRANSITION), -EIO, "invalid zone state transition"},
	{MEDIA(NVME_SC_WRITE_FAULT), -EIO, "write fault"},
	{MEDIA(NVME_SC_READ_ERROR), -EIO, "unrecovered read error"},
	{MEDIA(NVME_SC_ACCESS_DENIED), -EACCES, "access denied"},
	{MEDIA(NVME_SC_UNWRITTEN_BLOCK), -EIO, "deallocated or unwritten block"},
	{PATH(NVME_SC_ANA_INACCESSIBLE), -EIO, "namespace inaccessible on this path"},
	{PATH(NVME_SC_CMD_ABORTED_BY_HOST), -EIO, "aborted by the kernel"},
};

static int find(int status)
{
	for (size_t i = 0; i < ZF_ARRAY_SIZE(statuses); i++) {
		if (statuses[i].status == (status & STATUS_MASK))
			return (int)i;
	}
	return -1;
}

int zf_nvme_status_error(int status)
{
	int i;

	switch (status) {
	case 0:
	case -EINVAL:
	case -ENOMEM:
	case -EACCES:
	case -EPERM:
		return status;
	case -ENODEV:
	case -ENXIO: /* the kernel means: no such device; in io/dev.h it means: an offline zone */
	case -ENOTTY:
		return -ENODEV;
	default:
		if (status < 0)
			return -EIO;
	}
	i = find(status);
	return i < 0 ? -EIO : statuses[i].error;
}

const char *zf_nvme_status_text(int status, char buf[ZF_NVME_STATUS_TEXT_MAX])
{
	int i = status > 0 ? find(status) : -1;

	if (status > 0)
		snprintf(buf, ZF_NVME_STATUS_TEXT_MAX, "%s (NVMe status 0x%x)",
			 i < 0 ? "failed" : statuses[i].name, (unsigned int)status);
	else
		snprintf(buf, ZF_NVME_STATUS_TEXT_MAX, "%s", strerror(-status));
	return buf;
}

bool zf_nvme_status_may_pass(int status)
{
	if (status == -EINTR) /* the kernel has reset the drive, or the command took too long */
		return true;
	return status > 0 && !(status & STATUS_DO_NOT_RETRY);
}

bool zf_nvme_status_is_to_be_repeated(int status)
{
	return status == -EAGAIN || status == -ECANCELED;
}
