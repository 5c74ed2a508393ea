/* SPDX-License-Identifier: MIT */
#include "fs/core/path.h"

#include <errno.h>
#include <string.h>

#include "btree/node.h"

/* Puts "/" and the first name of *ino in front of buf[*at], and sets *ino to the parent. */
static int put_name(struct zf_forest *forest, const struct zf_item_check *check, uint64_t *ino,
		    char *buf, size_t *at)
{
	struct zf_key key = ZF_KEY(*ino, ZF_KEY_REF, 0);
	uint8_t chain[ZF_NODE_SIZE_MAX / 4];
	const struct zf_disk_ref *ref = (const void *)chain;
	size_t len;
	int r;

	r = zf_tree_lookup_ge(forest, ZF_TREE_FS, &key, chain, sizeof(chain), &len);
	if (r < 0)
		return r;
	if (key.objectid != *ino || key.type != ZF_KEY_REF)
		return -ENOENT;
	r = zf_item_check(check, ZF_TREE_FS, &key, chain, len);
	if (r < 0)
		return r;
	len = zf_le16_get(ref->name_len);
	if (len + 1 > *at)
		return -ENAMETOOLONG;
	*at -= len;
	memcpy(buf + *at, ref + 1, len);
	buf[--*at] = '/';
	*ino = zf_le64_get(ref->parent);
	return 0;
}

/* Each name uses up some of the buffer, so the loop also ends if a damaged image has a cycle. */
int zf_path_find(struct zf_forest *forest, const struct zf_item_check *check, uint64_t ino,
		 char *buf, size_t size)
{
	size_t at = size - 1;
	int r = 0;

	buf[at] = '\0';
	if (ino == ZF_INO_ROOT && at > 0)
		buf[--at] = '/';
	while (ino != ZF_INO_ROOT && r == 0)
		r = put_name(forest, check, &ino, buf, &at);
	if (r == 0)
		memmove(buf, buf + at, size - at);
	return r;
}
