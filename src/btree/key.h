/* SPDX-License-Identifier: MIT */
/* Keys: (objectid, type, offset), compared in that order. */
#ifndef ZF_BTREE_KEY_H
#define ZF_BTREE_KEY_H

#include <stdint.h>

struct zf_key {
	uint64_t objectid;
	uint64_t offset;
	uint8_t type;
};

#define ZF_KEY(o, t, f) ((struct zf_key){.objectid = (o), .type = (t), .offset = (f)})
#define ZF_KEY_MIN	ZF_KEY(0, 0, 0)
#define ZF_KEY_MAX	ZF_KEY(UINT64_MAX, UINT8_MAX, UINT64_MAX)

static inline int zf_key_cmp(const struct zf_key *a, const struct zf_key *b)
{
	if (a->objectid != b->objectid)
		return a->objectid < b->objectid ? -1 : 1;
	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return 0;
}

/* The keys right after and right before. Not for ZF_KEY_MAX and ZF_KEY_MIN respectively. */
static inline struct zf_key zf_key_next(struct zf_key key)
{
	if (++key.offset == 0 && ++key.type == 0)
		key.objectid++;
	return key;
}

static inline struct zf_key zf_key_prev(struct zf_key key)
{
	if (key.offset-- == 0 && key.type-- == 0)
		key.objectid--;
	return key;
}

/* The trees. Written as `owner` into every node. */
enum zf_tree_id {
	ZF_TREE_ROOT = 1,    /* pointers to the other trees' roots */
	ZF_TREE_FS = 2,	     /* inodes, names, extents: what users see */
	ZF_TREE_SUMMARY = 3, /* device address -> what was written there, and its checksums */
	ZF_TREE_SHARE = 4,   /* address -> each extent that names it, for shared extents only */
	ZF_TREE_ZONE = 5,    /* one item a zone */
	ZF_TREE_COUNT,
};

#endif
