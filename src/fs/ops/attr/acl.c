/* SPDX-License-Identifier: MIT */
#include "fs/ops/attr/acl.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/le.h"

#define VERSION 2u

/* The tags, in the order of the entries. */
enum tag {
	USER_OBJ = 0x01,
	USER = 0x02,
	GROUP_OBJ = 0x04,
	GROUP = 0x08,
	MASK = 0x10,
	OTHER = 0x20,
};

struct disk_acl {
	struct zf_le32 version;
};

struct disk_acl_entry {
	struct zf_le16 tag, permissions;
	struct zf_le32 id;
};

static const struct zf_name access_name = {"system.posix_acl_access", 23};
static const struct zf_name default_name = {"system.posix_acl_default", 24};

static bool same_name(const struct zf_name *a, const struct zf_name *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

enum zf_acl_kind zf_acl_kind_of(const struct zf_name *name)
{
	if (same_name(name, &access_name))
		return ZF_ACL_ACCESS;
	return same_name(name, &default_name) ? ZF_ACL_DEFAULT : ZF_ACL_NONE;
}

/* ---- bytes ---- */

static struct zf_acl_entry *find_tag(struct zf_acl *acl, enum tag tag)
{
	for (unsigned int i = 0; i < acl->count; i++) {
		if (acl->entries[i].tag == tag)
			return &acl->entries[i];
	}
	return NULL;
}

static int check(struct zf_acl *acl)
{
	const uint16_t single = USER_OBJ | GROUP_OBJ | MASK | OTHER;
	unsigned int last = 0, seen = 0;

	for (unsigned int i = 0; i < acl->count; i++) {
		unsigned int tag = acl->entries[i].tag;

		if (tag == 0 || tag > OTHER || (tag & (tag - 1)) != 0 || tag < last)
			return -EINVAL;
		if ((tag & single) && (tag & seen))
			return -EINVAL;
		if (acl->entries[i].permissions > 07)
			return -EINVAL;
		/* -1 is no valid id, as in chown(2). */
		if ((tag & (USER | GROUP)) && acl->entries[i].id == UINT32_MAX)
			return -EINVAL;
		seen |= tag;
		last = tag;
	}
	if ((seen & (USER_OBJ | GROUP_OBJ | OTHER)) != (USER_OBJ | GROUP_OBJ | OTHER))
		return -EINVAL;
	return (seen & (USER | GROUP)) && !(seen & MASK) ? -EINVAL : 0;
}

int zf_acl_decode(const void *value, size_t len, struct zf_acl *ret_acl)
{
	const struct disk_acl *disk = value;
	const struct disk_acl_entry *entries = (const void *)(disk + 1);

	ret_acl->count = 0;
	if (len == 0)
		return 0;
	if (len < sizeof(*disk))
		return -EINVAL;
	if (zf_le32_get(disk->version) != VERSION)
		return -EOPNOTSUPP;
	if ((len - sizeof(*disk)) % sizeof(*entries) != 0 ||
	    (len - sizeof(*disk)) / sizeof(*entries) > ZF_ACL_ENTRIES_MAX)
		return -EINVAL;
	ret_acl->count = (unsigned int)((len - sizeof(*disk)) / sizeof(*entries));
	for (unsigned int i = 0; i < ret_acl->count; i++)
		ret_acl->entries[i] = (struct zf_acl_entry){
			.tag = zf_le16_get(entries[i].tag),
			.permissions = zf_le16_get(entries[i].permissions),
			.id = zf_le32_get(entries[i].id),
		};
	return ret_acl->count > 0 ? check(ret_acl) : 0;
}

size_t zf_acl_encode(const struct zf_acl *acl, uint8_t ret_value[ZF_ACL_SIZE_MAX])
{
	struct disk_acl disk = {.version = zf_le32_from(VERSION)};
	struct disk_acl_entry *entries = (void *)(ret_value + sizeof(disk));

	memcpy(ret_value, &disk, sizeof(disk));
	for (unsigned int i = 0; i < acl->count; i++)
		entries[i] = (struct disk_acl_entry){
			.tag = zf_le16_from(acl->entries[i].tag),
			.permissions = zf_le16_from(acl->entries[i].permissions),
			.id = zf_le32_from(acl->entries[i].id),
		};
	return sizeof(disk) + acl->count * sizeof(*entries);
}

static size_t size_of(const struct zf_acl *acl)
{
	return sizeof(struct disk_acl) + acl->count * sizeof(struct disk_acl_entry);
}

/* Loads the list of a locked inode. count is 0 if the inode has none. */
static int load(struct zf_inode *inode, const struct zf_name *name, enum zf_absent bit,
		struct zf_xattr_place *place, struct zf_acl *ret_acl)
{
	uint8_t value[ZF_ACL_SIZE_MAX];
	ssize_t len;
	int r;

	ret_acl->count = 0;
	if (atomic_load(&inode->absent) & bit)
		return 0;
	r = zf_xattr_find(inode, name, place);
	if (r < 0 || !place->exists)
		return r;
	len = zf_xattr_read(place, value, sizeof(value));
	if (len < 0 && len != -ERANGE)
		return (int)len;
	if (len < 0 || zf_acl_decode(value, (size_t)len, ret_acl) < 0)
		return zf_report_corrupt(&inode->fs->report, "attribute of inode", inode->ino,
					 "%s is no access control list", name->bytes);
	return 0;
}

/* ---- mode ---- */

bool zf_acl_to_mode(const struct zf_acl *acl, uint32_t *mode)
{
	struct zf_acl copy = *acl;
	const struct zf_acl_entry *group = find_tag(&copy, MASK);
	bool is_all = !group;

	if (!group)
		group = find_tag(&copy, GROUP_OBJ);
	*mode = (*mode & ~0777u) | (uint32_t)find_tag(&copy, USER_OBJ)->permissions << 6 |
		(uint32_t)group->permissions << 3 | find_tag(&copy, OTHER)->permissions;
	return is_all && !find_tag(&copy, USER) && !find_tag(&copy, GROUP);
}

/* Returns the entry that the group bits of the mode stand for. */
static struct zf_acl_entry *group_class(struct zf_acl *acl)
{
	struct zf_acl_entry *mask = find_tag(acl, MASK);

	return mask ? mask : find_tag(acl, GROUP_OBJ);
}

/* Restricts the list of a new inode to the permissions of the requested mode. */
static void restrict_to(struct zf_acl *acl, uint32_t mode)
{
	find_tag(acl, USER_OBJ)->permissions &= (uint16_t)(mode >> 6 & 07);
	group_class(acl)->permissions &= (uint16_t)(mode >> 3 & 07);
	find_tag(acl, OTHER)->permissions &= (uint16_t)(mode & 07);
}

/* ---- new inodes ---- */

/*
 * Returns how many edits store a new inode's list. They replace nothing, so only the size counts.
 */
static unsigned int edits_of_new(struct zf_inode *dir, const struct zf_acl *acl)
{
	uint32_t value_max = zf_node_value_max(dir->fs->super.node_size);

	return acl->count == 0 ? 0 : 1 + (unsigned int)((size_of(acl) + value_max - 1) / value_max);
}

int zf_acl_inherit(struct zf_inode *dir, mode_t mode, mode_t umask,
		   struct zf_acl_inherited *ret_inherited)
{
	struct zf_xattr_place place;
	uint32_t permissions = mode & 0777;
	int r;

	ret_inherited->access.count = ret_inherited->by_default.count = 0;
	ret_inherited->edits = 0;
	ret_inherited->permissions = permissions;
	if (S_ISLNK(mode))
		return 0;
	ret_inherited->permissions &= ~(uint32_t)umask;
	r = load(dir, &default_name, ZF_ABSENT_ACL_DEFAULT, &place, &ret_inherited->by_default);
	if (r < 0 || ret_inherited->by_default.count == 0)
		return r;
	ret_inherited->access = ret_inherited->by_default;
	restrict_to(&ret_inherited->access, permissions);
	if (zf_acl_to_mode(&ret_inherited->access, &permissions))
		ret_inherited->access.count = 0;
	ret_inherited->permissions = permissions;
	if (!S_ISDIR(mode))
		ret_inherited->by_default.count = 0;
	ret_inherited->edits = edits_of_new(dir, &ret_inherited->access) +
			       edits_of_new(dir, &ret_inherited->by_default);
	return 0;
}

static int store_new(struct zf_op *op, struct zf_inode *inode, const struct zf_name *name,
		     const struct zf_acl *acl)
{
	uint8_t value[ZF_ACL_SIZE_MAX];
	struct zf_xattr_place place;
	unsigned int edits;
	int r;

	if (acl->count == 0)
		return 0;
	r = zf_xattr_find(inode, name, &place);
	if (r == 0)
		r = zf_xattr_prepare_put(&place, size_of(acl), &edits);
	return r < 0 ? r : zf_xattr_put(op, &place, value, zf_acl_encode(acl, value));
}

int zf_acl_store_inherited(struct zf_op *op, struct zf_inode *inode,
			   const struct zf_acl_inherited *inherited)
{
	int r = store_new(op, inode, &access_name, &inherited->access);

	return r < 0 ? r : store_new(op, inode, &default_name, &inherited->by_default);
}

/* ---- chmod ---- */

int zf_acl_prepare_chmod(struct zf_inode *inode, uint32_t mode, struct zf_acl_chmod *ret_chmod)
{
	struct zf_acl *acl = &ret_chmod->acl;
	int r;

	ret_chmod->edits = 0;
	r = load(inode, &access_name, ZF_ABSENT_ACL_ACCESS, &ret_chmod->place, acl);
	if (r < 0 || acl->count == 0)
		return r;
	find_tag(acl, USER_OBJ)->permissions = (uint16_t)(mode >> 6 & 07);
	group_class(acl)->permissions = (uint16_t)(mode >> 3 & 07);
	find_tag(acl, OTHER)->permissions = (uint16_t)(mode & 07);
	return zf_xattr_prepare_put(&ret_chmod->place, size_of(acl), &ret_chmod->edits);
}

int zf_acl_chmod(struct zf_op *op, struct zf_acl_chmod *chmod)
{
	uint8_t value[ZF_ACL_SIZE_MAX];

	if (chmod->acl.count == 0)
		return 0;
	return zf_xattr_put(op, &chmod->place, value, zf_acl_encode(&chmod->acl, value));
}
