/* SPDX-License-Identifier: MIT */
/*
 * POSIX access control lists: what a filesystem, not the kernel, does with them.
 *
 * The kernel checks permissions against the lists that it reads as attributes
 * (system.posix_acl_access, system.posix_acl_default). The filesystem keeps list and mode
 * consistent: a new inode inherits the directory's default list, chmod changes the list, and a list
 * changes the mode. The rules are those of Linux' VFS, and the bytes are those of Linux'
 * attributes.
 */
#ifndef ZF_FS_ACL_H
#define ZF_FS_ACL_H

#include "fs/ops/attr/xattr.h"

#define ZF_ACL_ENTRIES_MAX 128u
#define ZF_ACL_SIZE_MAX	   (4u + 8u * ZF_ACL_ENTRIES_MAX)

struct zf_acl {
	struct zf_acl_entry {
		uint16_t tag, permissions;
		uint32_t id;
	} entries[ZF_ACL_ENTRIES_MAX];
	unsigned int count; /* 0: no list */
};

enum zf_acl_kind {
	ZF_ACL_NONE, /* an attribute that is no list */
	ZF_ACL_ACCESS,
	ZF_ACL_DEFAULT,
};
enum zf_acl_kind zf_acl_kind_of(const struct zf_name *name);

/*
 * -EINVAL: the bytes are no list as the kernel writes it, or the list has more than
 * ZF_ACL_ENTRIES_MAX entries. -EOPNOTSUPP: the bytes have an unknown version.
 */
int zf_acl_decode(const void *value, size_t len, struct zf_acl *ret_acl);
size_t zf_acl_encode(const struct zf_acl *acl, uint8_t ret_value[ZF_ACL_SIZE_MAX]);

/*
 * Sets the permission bits of *mode to those of an access list. True: the bits say all that the
 * list says.
 */
bool zf_acl_to_mode(const struct zf_acl *acl, uint32_t *mode);

/* ---- new inodes ---- */

struct zf_acl_inherited {
	uint32_t permissions;		  /* of the new inode's mode: 0777 at most */
	struct zf_acl access, by_default; /* count 0: none to store */
	unsigned int edits;
};

/* Applies the directory's default list, or umask if the directory has none. Directory locked. */
int zf_acl_inherit(struct zf_inode *dir, mode_t mode, mode_t umask,
		   struct zf_acl_inherited *ret_inherited);
int zf_acl_store_inherited(struct zf_op *op, struct zf_inode *inode,
			   const struct zf_acl_inherited *inherited);

/* ---- chmod ---- */

/* The access list that chmod changes together with the mode. */
struct zf_acl_chmod {
	struct zf_xattr_place place;
	struct zf_acl acl; /* count 0: there is none */
	unsigned int edits;
};
int zf_acl_prepare_chmod(struct zf_inode *inode, uint32_t mode, struct zf_acl_chmod *ret_chmod);
int zf_acl_chmod(struct zf_op *op, struct zf_acl_chmod *chmod);

#endif
