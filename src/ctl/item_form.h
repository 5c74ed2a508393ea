/* SPDX-License-Identifier: MIT */
/*
 * How the value of an item is composed, for all code that shows one: a struct, or several structs
 * of one kind in a row, each followed by the bytes that its fields count. The bytes may be
 * anything.
 */
#ifndef ZF_CTL_ITEM_FORM_H
#define ZF_CTL_ITEM_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fields.h"
#include "btree/key.h"

/* What follows the struct and its name. */
enum zf_item_tail {
	ZF_ITEM_NO_TAIL,
	ZF_ITEM_INLINE,	   /* bytes of a file: the rest of the value */
	ZF_ITEM_CHECKSUMS, /* of 8 bytes each: the rest of the value */
	ZF_ITEM_ATTRIBUTE, /* an attribute's value, unless it has chunks */
};

struct zf_item_form {
	const struct zf_fields *fields;
	bool is_list; /* one struct or more; else exactly one */
	bool has_name;
	size_t name_len_offset; /* offset in the struct: the field with the length of the name */
	enum zf_item_tail tail;
};

/* NULL: the value has no form. */
const struct zf_item_form *zf_item_form(enum zf_tree_id tree, uint8_t type);

/* One struct of a value, followed by its name and its tail. */
struct zf_item_piece {
	size_t at; /* where the struct begins, bytes from the value's start */
	size_t name_len, tail_len;
};

/*
 * Returns the next piece of a value. *at begins as 0, and is set to the end of the piece. False:
 * the bytes from *at on, if there are any, do not have the form.
 */
bool zf_item_next_piece(const struct zf_item_form *form, const void *value, size_t len, size_t *at,
			struct zf_item_piece *ret_piece);

#endif
