/* SPDX-License-Identifier: MIT */
#include "superblock/super.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"

#define WHAT "superblock"

ZF_FIELDS_DEFINE(zf_super_fields, struct zf_disk_super, ZF_DISK_SUPER_FIELDS, "zf_disk_super");
ZF_FIELDS_DEFINE(zf_disk_node_ptr_fields, struct zf_disk_node_ptr, ZF_DISK_NODE_PTR_FIELDS,
		 "zf_disk_node_ptr");

static uint64_t record_csum(const struct zf_disk_super *disk)
{
	return zf_hash64((const uint8_t *)disk + sizeof(disk->csum),
			 sizeof(*disk) - sizeof(disk->csum));
}

static void encode_format(const struct zf_super *super, struct zf_disk_super *disk)
{
	memcpy(disk->magic, ZF_SUPER_MAGIC, ZF_SUPER_MAGIC_SIZE);
	disk->address = zf_le64_from(super->address);
	memcpy(disk->fsid, super->fsid, sizeof(disk->fsid));
	disk->generation = zf_le64_from(super->generation);
	disk->version = zf_le32_from(ZF_SUPER_VERSION);
	disk->csum_type = zf_le16_from(ZF_CSUM_XXH3);
	disk->dir_hash_version = zf_le16_from(ZF_DIR_HASH_XXH3_SEED);
	disk->incompat = zf_le64_from(super->incompat);
	disk->compat_ro = zf_le64_from(super->compat_ro);
	disk->compat = zf_le64_from(super->compat);
	disk->zone_size = zf_le64_from(super->zone_size);
	disk->zone_capacity = zf_le64_from(super->zone_capacity);
	disk->zone_count = zf_le32_from(super->zone_count);
	disk->conventional = zf_le32_from(super->conventional);
	disk->block_size = zf_le32_from(ZF_BLOCK_SIZE);
	disk->node_size = zf_le32_from(super->node_size);
	disk->metadata_copies = super->metadata_copies;
	disk->dir_hash_seed = zf_le64_from(super->dir_hash_seed);
	memcpy(disk->log_secret, super->log_secret, sizeof(disk->log_secret));
	disk->mkfs_time = zf_le64_from(super->mkfs_time);
	memcpy(disk->label, super->label, sizeof(disk->label));
}

static void encode_state(const struct zf_super *super, struct zf_disk_super *disk)
{
	zf_node_ptr_encode(&super->root, &disk->root);
	disk->root_level = super->root_level;
	disk->clean = super->clean;
	disk->next_ino = zf_le64_from(super->next_ino);
	disk->inode_count = zf_le64_from(super->inode_count);
	disk->next_intent = zf_le64_from(super->next_intent);
	disk->kept_bytes = zf_le64_from(super->kept_bytes);
	disk->guaranteed_bytes = zf_le64_from(super->guaranteed_bytes);
	disk->kept_guaranteed_bytes = zf_le64_from(super->kept_guaranteed_bytes);
	disk->op_number = zf_le64_from(super->op_number);
	disk->log_sequence = zf_le64_from(super->log_sequence);
	disk->log_epoch = zf_le64_from(super->log_epoch);
	for (unsigned int i = 0; i < 2; i++) {
		disk->log_zone[i] = zf_le32_from(super->log_zone[i]);
		disk->log_zone_resets[i] = zf_le64_from(super->log_zone_resets[i]);
		disk->log_pointer[i] = zf_le64_from(super->log_pointer[i]);
	}
	for (unsigned int i = 0; i < ZF_COPIES_MAX; i++) {
		disk->meta_zone[i] = zf_le32_from(super->meta_zone[i]);
		disk->meta_pointer[i] = zf_le64_from(super->meta_pointer[i]);
	}
}

void zf_super_encode(const struct zf_super *super, struct zf_disk_super *ret_disk)
{
	memset(ret_disk, 0, sizeof(*ret_disk));
	encode_format(super, ret_disk);
	encode_state(super, ret_disk);
	ret_disk->csum = zf_le64_from(record_csum(ret_disk));
}

int zf_super_decode_head(const struct zf_disk_super *disk, uint64_t address,
			 const struct zf_report *report, struct zf_super_head *ret_head)
{
	uint64_t generation = zf_le64_get(disk->generation);

	if (memcmp(disk->magic, ZF_SUPER_MAGIC, ZF_SUPER_MAGIC_SIZE) != 0)
		return -ENOENT;
	if (zf_le64_get(disk->csum) != record_csum(disk))
		return zf_report_corrupt(report, WHAT, address,
					 "csum has %016" PRIx64 ", expected %016" PRIx64,
					 zf_le64_get(disk->csum), record_csum(disk));
	if (zf_le64_get(disk->address) != address)
		return zf_report_corrupt(report, WHAT, address,
					 "address has %" PRIu64 ", expected its own",
					 zf_le64_get(disk->address));
	if (generation < 1 || generation > ZF_SUPER_COUNTER_MAX)
		return zf_report_corrupt(report, WHAT, address,
					 "generation has %" PRIu64 ", expected 1 to %" PRIu64,
					 generation, ZF_SUPER_COUNTER_MAX);
	memcpy(ret_head->fsid, disk->fsid, sizeof(ret_head->fsid));
	ret_head->generation = generation;
	return 0;
}

static int check_supported(const struct zf_disk_super *disk, const struct zf_report *report)
{
	const struct {
		const char *field;
		uint64_t value, known;
	} fields[] = {
		{"format version", zf_le32_get(disk->version), ZF_SUPER_VERSION},
		{"checksum type", zf_le16_get(disk->csum_type), ZF_CSUM_XXH3},
		{"directory hash", zf_le16_get(disk->dir_hash_version), ZF_DIR_HASH_XXH3_SEED},
		{"block size", zf_le32_get(disk->block_size), ZF_BLOCK_SIZE},
	};
	uint64_t unknown = zf_le64_get(disk->incompat) & ~ZF_INCOMPAT_KNOWN;

	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(fields); i++) {
		if (fields[i].value == fields[i].known)
			continue;
		zf_report(report, ZF_REPORT_ERROR,
			  "the filesystem has %s %" PRIu64 ", this zfuse knows %" PRIu64
			  " only: use the version that made it, or a newer one",
			  fields[i].field, fields[i].value, fields[i].known);
		return -EPROTONOSUPPORT;
	}
	if (unknown == 0)
		return 0;
	zf_report(report, ZF_REPORT_ERROR,
		  "the filesystem has features that this zfuse does not know (incompat 0x%" PRIx64
		  "): use the version that made it, or a newer one",
		  unknown);
	return -EPROTONOSUPPORT;
}

static int check_disk_only(const struct zf_disk_super *disk, uint64_t address,
			   const struct zf_report *report)
{
	const struct zf_field *field = zf_fields_check_zero(&zf_super_fields, disk);

	if (field)
		return zf_report_corrupt(report, WHAT, address, "%s has bits set, expected 0",
					 field->name);
	if (disk->clean > 1)
		return zf_report_corrupt(report, WHAT, address, "clean has %u, expected 0 to 1",
					 disk->clean);
	return 0;
}

static void decode_format(const struct zf_disk_super *disk, struct zf_super *super)
{
	super->address = zf_le64_get(disk->address);
	memcpy(super->fsid, disk->fsid, sizeof(super->fsid));
	super->generation = zf_le64_get(disk->generation);
	super->incompat = zf_le64_get(disk->incompat);
	super->compat_ro = zf_le64_get(disk->compat_ro);
	super->compat = zf_le64_get(disk->compat);
	super->zone_size = zf_le64_get(disk->zone_size);
	super->zone_capacity = zf_le64_get(disk->zone_capacity);
	super->zone_count = zf_le32_get(disk->zone_count);
	super->conventional = zf_le32_get(disk->conventional);
	super->node_size = zf_le32_get(disk->node_size);
	super->metadata_copies = disk->metadata_copies;
	super->dir_hash_seed = zf_le64_get(disk->dir_hash_seed);
	memcpy(super->log_secret, disk->log_secret, sizeof(super->log_secret));
	super->mkfs_time = zf_le64_get(disk->mkfs_time);
	memcpy(super->label, disk->label, sizeof(super->label));
}

static void decode_state(const struct zf_disk_super *disk, struct zf_super *super)
{
	zf_node_ptr_decode(&disk->root, &super->root);
	super->root_level = disk->root_level;
	super->clean = disk->clean;
	super->next_ino = zf_le64_get(disk->next_ino);
	super->inode_count = zf_le64_get(disk->inode_count);
	super->next_intent = zf_le64_get(disk->next_intent);
	super->kept_bytes = zf_le64_get(disk->kept_bytes);
	super->guaranteed_bytes = zf_le64_get(disk->guaranteed_bytes);
	super->kept_guaranteed_bytes = zf_le64_get(disk->kept_guaranteed_bytes);
	super->op_number = zf_le64_get(disk->op_number);
	super->log_sequence = zf_le64_get(disk->log_sequence);
	super->log_epoch = zf_le64_get(disk->log_epoch);
	for (unsigned int i = 0; i < 2; i++) {
		super->log_zone[i] = zf_le32_get(disk->log_zone[i]);
		super->log_zone_resets[i] = zf_le64_get(disk->log_zone_resets[i]);
		super->log_pointer[i] = zf_le64_get(disk->log_pointer[i]);
	}
	for (unsigned int i = 0; i < ZF_COPIES_MAX; i++) {
		super->meta_zone[i] = zf_le32_get(disk->meta_zone[i]);
		super->meta_pointer[i] = zf_le64_get(disk->meta_pointer[i]);
	}
}

int zf_super_decode(const struct zf_disk_super *disk, uint64_t address,
		    const struct zf_report *report, struct zf_super *ret_super)
{
	struct zf_super super;
	struct zf_super_head head;
	int r;

	r = zf_super_decode_head(disk, address, report, &head);
	if (r < 0)
		return r;
	r = check_supported(disk, report);
	if (r < 0)
		return r;
	r = check_disk_only(disk, address, report);
	if (r < 0)
		return r;
	memset(&super, 0, sizeof(super));
	decode_format(disk, &super);
	decode_state(disk, &super);
	r = zf_super_check(&super, report);
	if (r < 0)
		return r;
	*ret_super = super;
	return 0;
}

int zf_super_decode_sealed(const struct zf_disk_super *disk, struct zf_super *ret_super)
{
	int r;

	if (zf_le64_get(disk->csum) != record_csum(disk))
		return -EUCLEAN;
	r = check_supported(disk, NULL);
	if (r < 0)
		return r;
	memset(ret_super, 0, sizeof(*ret_super));
	decode_format(disk, ret_super);
	decode_state(disk, ret_super);
	return 0;
}
