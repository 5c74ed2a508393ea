/* SPDX-License-Identifier: MIT */
/*
 * Packed leaves (node_format.h): what many items of one kind have in common is stored once.
 *
 * A file that is overwritten here and there has an extent for each block, and nearly all of its
 * leaves change between two commits. Of the 45 bytes that such an extent takes in a plain leaf,
 * some ten differ from those of its neighbours.
 *
 * A plain leaf becomes packed when it is full and its items are of one kind: one objectid, one
 * type, values of one size. It becomes plain again for an item of another kind, if few are left.
 * Which of these is done, zf_node_insert_item() and the other functions of node.h see to; these
 * here are for them, and for who plans where items go.
 *
 * As in node.h: no I/O, no locking, and the node was checked.
 */
#ifndef ZF_BTREE_PACKED_H
#define ZF_BTREE_PACKED_H

#include "btree/node.h"

#define ZF_RECORD_MAX (sizeof(struct zf_disk_key) + ZF_PACKED_VALUE_MAX)

/* What records of one kind have in common. */
struct zf_packing {
	uint8_t value_size;
	uint8_t width;		     /* how many bytes differ */
	bool differs[ZF_RECORD_MAX]; /* this byte is not the same in all of them */
	uint8_t base[ZF_RECORD_MAX]; /* one of the records */
};

/* Of the items [first, first + n) of a leaf, at least one. False: they are not of one kind. */
bool zf_packing_scan(const void *leaf, unsigned int first, unsigned int n,
		     struct zf_packing *ret_packing);
/* One more record; the records of both. False: another kind, and nothing is changed. */
bool zf_packing_add(struct zf_packing *packing, const struct zf_key *key, const void *value,
		    size_t len);
bool zf_packing_join(struct zf_packing *packing, const struct zf_packing *other);

/* Bytes of a node, behind its header, that so many records take. */
uint32_t zf_packing_bytes(const struct zf_packing *packing, unsigned int count);
/* How many of the records a leaf holds. */
unsigned int zf_packing_records_max(const struct zf_packing *packing, uint32_t node_size);

/* The same of the records of a packed leaf, without looking at them. */
void zf_packed_get(const void *leaf, struct zf_packing *ret_packing);
uint32_t zf_packed_used(const void *leaf);
uint32_t zf_packed_used_by(const void *leaf, unsigned int n);

struct zf_key zf_packed_key(const void *leaf, unsigned int slot);
bool zf_packed_search(const void *leaf, const struct zf_key *key, unsigned int *ret_slot);
/* scratch: ZF_PACKED_VALUE_MAX bytes, where the value will be. */
const void *zf_packed_value(const void *leaf, unsigned int slot, size_t *ret_len, void *scratch);

/* Makes the leaf packed so; the packing is of its items at least. */
void zf_packed_form(void *leaf, uint32_t node_size, const struct zf_packing *packing);
/* Makes it plain; there is room. */
void zf_packed_undo(void *leaf, uint32_t node_size);

/* The records are of the leaf's packing, and there is room. */
void zf_packed_insert(void *leaf, unsigned int slot, const struct zf_key *key, const void *value);
void zf_packed_set(void *leaf, unsigned int slot, const void *value);
/* Inserts copies of the items [first, first + n) of src, another leaf, in either form. */
void zf_packed_absorb(void *leaf, unsigned int slot, const void *src, unsigned int first,
		      unsigned int n);
/* A leaf without items is plain. */
void zf_packed_remove(void *leaf, unsigned int first, unsigned int n);

#endif
