/* SPDX-License-Identifier: MIT */
/*
 * Makes the superblock records of an image look like those of a later zfuse, or of an earlier one
 * without ZF_INCOMPAT_GUARANTEE: for tests of how this zfuse treats them.
 *
 *      forge_super IMAGE version|incompat|compat-ro VALUE
 *      forge_super IMAGE without-guarantee SPENT
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "superblock/super_format.h"

/* The older format counted guaranteed space as kept. The field that is guaranteed_bytes now was the
 * number of bytes that there was garbage for. */
static void forget_guarantee(struct zf_disk_super *super, uint64_t spent)
{
	uint64_t kept = zf_le64_get(super->kept_bytes);

	super->kept_bytes = zf_le64_from(kept + zf_le64_get(super->guaranteed_bytes));
	super->guaranteed_bytes = zf_le64_from(spent);
	super->kept_guaranteed_bytes = zf_le64_from(0);
	super->incompat = zf_le64_from(0);
}

static void forge(struct zf_disk_super *super, const char *field, uint64_t value)
{
	if (strcmp(field, "version") == 0)
		super->version = zf_le32_from((uint32_t)value);
	else if (strcmp(field, "incompat") == 0)
		super->incompat = zf_le64_from(value);
	else if (strcmp(field, "compat-ro") == 0)
		super->compat_ro = zf_le64_from(value);
	else if (strcmp(field, "without-guarantee") == 0)
		forget_guarantee(super, value);
	super->csum = zf_le64_from(zf_hash64((const uint8_t *)super + sizeof(super->csum),
					     sizeof(*super) - sizeof(super->csum)));
}

int main(int argc, char **argv)
{
	struct zf_disk_super super;
	unsigned int forged = 0;
	uint64_t end = ZF_SUPER_SIZE;
	int fd;

	if (argc != 4)
		return 2;
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		perror(argv[1]);
		return 1;
	}
	for (uint64_t at = 0; at < end; at += sizeof(super)) {
		if (pread(fd, &super, sizeof(super), (off_t)at) != sizeof(super))
			break;
		if (memcmp(super.magic, ZF_SUPER_MAGIC, ZF_SUPER_MAGIC_SIZE) != 0)
			continue;
		end = ZF_SUPER_ZONES * zf_le64_get(super.zone_size);
		forge(&super, argv[2], strtoull(argv[3], NULL, 0));
		if (pwrite(fd, &super, sizeof(super), (off_t)at) != sizeof(super))
			break;
		forged++;
	}
	close(fd);
	return forged > 0 ? 0 : 1;
}
