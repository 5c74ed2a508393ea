/* SPDX-License-Identifier: MIT */
/* Attribute values stored in chunks, because they are too long for the entry: both must agree. */
#include "check/state.h"

static int cmp_value(const void *a, const void *b)
{
	const struct zf_check_xattr_value *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

int zf_check_xattr_entry(struct zf_check *check, struct zf_check_xattrs *xattrs, uint32_t value_id,
			 uint32_t value_len)
{
	const struct zf_check_xattr_value value = {.id = value_id, .len = value_len};

	(void)check;
	return zf_vector_push(&xattrs->values, &value);
}

/* All entries come before the first chunk, because the key's type orders them. */
static void sort_values(struct zf_check *check, struct zf_check_xattrs *xattrs)
{
	const struct zf_check_xattr_value *previous = NULL;

	if (xattrs->sorted)
		return;
	xattrs->sorted = true;
	zf_vector_sort(&xattrs->values, 0, cmp_value);
	ZF_VECTOR_FOREACH (&xattrs->values, struct zf_check_xattr_value, value) {
		if (previous && previous->id == value->id)
			zf_check_corrupt(
				check, "attribute of inode", xattrs->ino,
				"value_id has %u, expected one that no other attribute has",
				value->id);
		previous = value;
	}
}

void zf_check_xattr_chunk(struct zf_check *check, struct zf_check_xattrs *xattrs, uint64_t offset,
			  size_t len)
{
	const struct zf_check_xattr_value key = {.id = (uint32_t)(offset >> 16)};
	uint32_t chunk = (uint32_t)(offset & 0xffff);
	struct zf_check_xattr_value *value;

	sort_values(check, xattrs);
	value = zf_vector_find(&xattrs->values, &key, cmp_value);
	if (!value) {
		zf_check_corrupt(check, "attribute value of inode", xattrs->ino,
				 "value id has %u, expected one that an attribute has", key.id);
		return;
	}
	if (chunk != value->chunks)
		zf_check_corrupt(check, "attribute value of inode", xattrs->ino,
				 "chunk of value %u has %u, expected %u", key.id, chunk,
				 value->chunks);
	value->chunks = chunk + 1;
	value->seen += len;
}

void zf_check_xattr_end(struct zf_check *check, struct zf_check_xattrs *xattrs)
{
	sort_values(check, xattrs);
	ZF_VECTOR_FOREACH (&xattrs->values, struct zf_check_xattr_value, value)
		if (value->seen != value->len)
			zf_check_corrupt(check, "attribute value of inode", xattrs->ino,
					 "length of value %u has %" PRIu64 ", expected %u",
					 value->id, value->seen, value->len);
}
