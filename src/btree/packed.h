/* SPDX-License-Identifier: MIT */
/*
 * Packed leaves (node_format.h): a packed leaf stores once the bytes that all its items have in
 * common.
 *
 * A file that is overwritten at random has an extent for each block, and nearly all of its leaves
 * change between two commits. Such an extent takes 45 bytes in a plain leaf. About ten of these
 * bytes differ from those of the neighbouring extents.
 *
 * A plain leaf becomes packed when it is full and its items are of one kind: one objectid, one
 * type, values of one size. It becomes plain again for an item of another kind, if few are left.
 * zf_node_insert_item() and the other functions of node.h decide that. The functions here are for
 * them, and for redistribute.h.
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

/*
 * Finds the packing of the items [first, first + n) of a leaf, at least one. False: they are not of
 * one kind.
 */
bool zf_packing_scan(const void *leaf, unsigned int first, unsigned int n,
		     struct zf_packing *ret_packing);
/*
 * Extends the packing by one record, or by the records of another packing. False: they are of
 * another kind, and nothing is changed.
 */
bool zf_packing_add(struct zf_packing *packing, const struct zf_key *key, const void *value,
		    size_t len);
bool zf_packing_join(struct zf_packing *packing, const struct zf_packing *other);

/* Bytes of a node, behind its header, that `count` records take. */
uint32_t zf_packing_bytes(const struct zf_packing *packing, unsigned int count);
/* How many such records fit one leaf. */
unsigned int zf_packing_records_max(const struct zf_packing *packing, uint32_t node_size);

/* The packing of a packed leaf, from its header, without reading its records. */
void zf_packed_get(const void *leaf, struct zf_packing *ret_packing);
uint32_t zf_packed_used(const void *leaf);
uint32_t zf_packed_used_by(const void *leaf, unsigned int n);

struct zf_key zf_packed_key(const void *leaf, unsigned int slot);
bool zf_packed_search(const void *leaf, const struct zf_key *key, unsigned int *ret_slot);
/* The value is put into scratch, which has ZF_PACKED_VALUE_MAX bytes. */
const void *zf_packed_value(const void *leaf, unsigned int slot, size_t *ret_len, void *scratch);

/* Turns the leaf into a packed one. The packing covers at least the leaf's items. */
void zf_packed_form(void *leaf, uint32_t node_size, const struct zf_packing *packing);
/* Makes the leaf plain; the items fit a plain leaf. */
void zf_packed_undo(void *leaf, uint32_t node_size);

/* Requires that the record fits the leaf's packing, and that the leaf has room. */
void zf_packed_insert(void *leaf, unsigned int slot, const struct zf_key *key, const void *value);
void zf_packed_set(void *leaf, unsigned int slot, const void *value);
/* Inserts copies of the items [first, first + n) of src, another leaf, in either form. */
void zf_packed_absorb(void *leaf, unsigned int slot, const void *src, unsigned int first,
		      unsigned int n);
/* If no item is left, the leaf becomes plain. */
void zf_packed_remove(void *leaf, unsigned int first, unsigned int n);

#endif
