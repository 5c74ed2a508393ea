/* SPDX-License-Identifier: MIT */
/*
 * The places of the structures of an image, each with its table of fields.
 *
 * Only the first few places of a kind (an inode of a directory, an extent of zeroes in a record of
 * the log, ...) are taken, because the others would show the same. Bytes without a table of fields,
 * such as those of a name, are a structure of one field here.
 */
#ifndef ZF_TESTS_LIES_PLACE_H
#define ZF_TESTS_LIES_PLACE_H

#include "base/fields.h"
#include "forge.h"

#define PLACES_MAX 2048u
#define NODES_MAX  1024u
#define NO_NODE	   UINT32_MAX

struct file;

struct place_node {
	uint64_t address[2]; /* of both copies; the second is 0 with one */
	uint64_t csum_at;    /* device address of its checksum in the parent */
	uint32_t parent;     /* NO_NODE: the superblock */
};

struct place {
	char structure[48]; /* "zf_disk_inode"; "zf_disk_inode in the log" */
	char where[112];    /* for people; the same for all of its kind */
	const struct zf_field *fields;
	unsigned int field_count;
	struct zf_field field; /* of bytes without a table */

	uint64_t address; /* on the device, of its first copy */
	uint32_t node;	  /* that contains the place, or NO_NODE */
	uint32_t slot;	  /* in a packed leaf: the place is that item's value, without an address */
	bool packed;
	uint64_t record; /* of the log, that contains the place; 0: none */
	bool in_trailer; /* of an image: file.h; the address is one in the file */
	bool is_entry;	 /* of zone `slot`, as a struct zf_zone_state */
};

struct places {
	struct forge *forge;
	struct file *file; /* with a trailer; NULL: the image is in memory */
	struct place place[PLACES_MAX];
	unsigned int count;
	struct place_node node[NODES_MAX];
	uint32_t node_count;
};

/* Finds the places of the whole filesystem. */
void places_find(struct places *places, struct forge *forge);

/* Adds the places of the whole trailer. From then on all bytes are those of the file. */
void places_find_trailer(struct places *places, struct file *file);

/* The bytes at a device address. */
uint8_t *places_bytes(const struct places *places, uint64_t address);

/* Reads and writes bytes of a place. A write changes all copies, and leaves checksums wrong. */
void place_read(const struct places *places, const struct place *place, size_t offset, void *buf,
		size_t len);
void place_write(const struct places *places, const struct place *place, size_t offset,
		 const void *buf, size_t len);

/* Makes right all checksums above the place, up to the superblock's. */
void place_seal(const struct places *places, const struct place *place);

#endif
