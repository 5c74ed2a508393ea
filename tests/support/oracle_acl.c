/* SPDX-License-Identifier: MIT */
/* Access control lists: acl(5), and how Linux filesystems combine them with the mode. */
#include "support/oracle_impl.h"

#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <string.h>
#include <sys/stat.h>

#define HEADER_BYTES 4u
#define ENTRY_BYTES  8u

bool oracle_acl_is_name(const char *name)
{
	return strcmp(name, ORACLE_ACL_ACCESS) == 0 || strcmp(name, ORACLE_ACL_DEFAULT) == 0;
}

static struct oracle_acl *list_of(struct oracle_inode *inode, const char *name)
{
	return strcmp(name, ORACLE_ACL_ACCESS) == 0 ? &inode->access : &inode->by_default;
}

/* ---- bytes ---- */

static uint8_t *put_le(uint8_t *to, uint32_t value, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++)
		*to++ = (uint8_t)(value >> 8 * i);
	return to;
}

size_t oracle_acl_encode(const struct oracle_acl *acl, uint8_t *buf)
{
	uint8_t *to = put_le(buf, acl->version, 4);

	for (unsigned int i = 0; i < acl->count; i++) {
		to = put_le(to, acl->entries[i].tag, 2);
		to = put_le(to, acl->entries[i].permissions, 2);
		to = put_le(to, acl->entries[i].id, 4);
	}
	return (size_t)(to - buf);
}

size_t oracle_acl_len(const struct oracle_acl *acl)
{
	return HEADER_BYTES + acl->count * ENTRY_BYTES;
}

/* ---- which lists there are ---- */

static struct oracle_acl_entry *find(struct oracle_acl *acl, unsigned int tag)
{
	for (unsigned int i = 0; i < acl->count; i++) {
		if (acl->entries[i].tag == tag)
			return &acl->entries[i];
	}
	return NULL;
}

static unsigned int count(const struct oracle_acl *acl, unsigned int tag)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < acl->count; i++)
		n += acl->entries[i].tag == tag;
	return n;
}

static bool is_named(const struct oracle_acl_entry *entry)
{
	return entry->tag == ACL_USER || entry->tag == ACL_GROUP;
}

static bool is_valid(const struct oracle_acl *acl)
{
	unsigned int mask = count(acl, ACL_MASK), known = mask;

	for (unsigned int i = 0; i < acl->count; i++) {
		const struct oracle_acl_entry *entry = &acl->entries[i];

		if (entry->permissions > 07 || (i > 0 && entry->tag < entry[-1].tag))
			return false;
		if (is_named(entry) && (entry->id == (uint32_t)ACL_UNDEFINED_ID || mask == 0))
			return false;
		known += is_named(entry);
	}
	return count(acl, ACL_USER_OBJ) == 1 && count(acl, ACL_GROUP_OBJ) == 1 &&
	       count(acl, ACL_OTHER) == 1 && mask <= 1 && known + 3 == acl->count;
}

/* Parses the list in the first op->len bytes. Count 0: none. */
static int64_t parse(const struct zf_op *op, struct oracle_acl *ret_acl)
{
	*ret_acl = op->acl;
	ret_acl->count = 0;
	if (op->len == 0)
		return 0;
	if (op->len < HEADER_BYTES)
		return -EINVAL;
	if (op->acl.version != POSIX_ACL_XATTR_VERSION)
		return -EOPNOTSUPP;
	if ((op->len - HEADER_BYTES) % ENTRY_BYTES != 0)
		return -EINVAL;
	ret_acl->count = (unsigned int)((op->len - HEADER_BYTES) / ENTRY_BYTES);
	return ret_acl->count == 0 || is_valid(ret_acl) ? 0 : -EINVAL;
}

/* ---- lists and modes ---- */

/* The entry for three bits of the mode. The group's bits are the mask, if the list has one. */
static struct oracle_acl_entry *class_of(struct oracle_acl *acl, unsigned int shift)
{
	struct oracle_acl_entry *mask = find(acl, ACL_MASK);

	if (shift == 3)
		return mask ? mask : find(acl, ACL_GROUP_OBJ);
	return find(acl, shift == 6 ? ACL_USER_OBJ : ACL_OTHER);
}

/* Sets the mode from the list. A list that says no more than the mode is dropped. */
static void apply_access(struct oracle_inode *inode, const struct oracle_acl *acl)
{
	inode->access = *acl;
	inode->mode &= ~0777u;
	for (unsigned int shift = 0; shift <= 6; shift += 3)
		inode->mode |= (uint32_t)class_of(&inode->access, shift)->permissions << shift;
	if (acl->count == 3)
		inode->access.count = 0;
}

void oracle_acl_chmod(struct oracle_inode *inode)
{
	if (inode->access.count == 0)
		return;
	for (unsigned int shift = 0; shift <= 6; shift += 3)
		class_of(&inode->access, shift)->permissions = inode->mode >> shift & 07;
}

void oracle_acl_inherit(const struct oracle_inode *dir, mode_t umask, struct oracle_inode *inode)
{
	struct oracle_acl acl = dir->by_default;

	if (S_ISLNK(inode->mode))
		return;
	if (acl.count == 0) {
		inode->mode &= ~(uint32_t)umask;
		return;
	}
	if (S_ISDIR(inode->mode))
		inode->by_default = acl;
	for (unsigned int shift = 0; shift <= 6; shift += 3)
		class_of(&acl, shift)->permissions &= (uint16_t)(inode->mode >> shift & 07);
	apply_access(inode, &acl);
}

/* ---- operations ---- */

int64_t oracle_acl_set(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);
	struct oracle_acl acl, *list;
	int64_t r = parse(op, &acl);

	if (r < 0)
		return r;
	if (!inode)
		return -ESTALE;
	if (oracle_check_change(inode) < 0)
		return -EPERM;
	if (S_ISLNK(inode->mode))
		return -EOPNOTSUPP;
	list = list_of(inode, op->name);
	if (list == &inode->by_default && !S_ISDIR(inode->mode) && acl.count > 0)
		return -EACCES;
	oracle_change(oracle, inode);
	if (list == &inode->by_default || acl.count == 0) {
		*list = acl;
		return 0;
	}
	/* As with chmod(2): a caller that is not in the group cannot keep S_ISGID. */
	if (op->flags & ZF_XATTR_KILL_SGID)
		inode->mode &= ~(uint32_t)S_ISGID;
	apply_access(inode, &acl);
	return 0;
}

int64_t oracle_acl_get(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);
	const struct oracle_acl *acl;

	if (!inode)
		return -ESTALE;
	acl = list_of(inode, op->name);
	if (acl->count == 0)
		return -ENODATA;
	if (op->len > 0 && op->len < oracle_acl_len(acl))
		return -ERANGE;
	return (int64_t)oracle_acl_len(acl);
}

/* Removing a list that does not exist is no error, and no change. */
int64_t oracle_acl_remove(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);
	struct oracle_acl *acl;

	if (!inode)
		return -ESTALE;
	if (oracle_check_change(inode) < 0)
		return -EPERM;
	if (S_ISLNK(inode->mode))
		return -EOPNOTSUPP;
	acl = list_of(inode, op->name);
	if (acl->count > 0)
		oracle_change(oracle, inode);
	acl->count = 0;
	return 0;
}
