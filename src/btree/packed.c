/* SPDX-License-Identifier: MIT */
#include "btree/packed.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/bits.h"

#define HEADER_SIZE ((uint32_t)sizeof(struct zf_disk_node_header))
#define KEY_SIZE    ((uint32_t)sizeof(struct zf_disk_key))

/* In the key, only bytes of the offset can be columns. */
#define FIRST_COLUMN ((unsigned int)offsetof(struct zf_disk_key, offset))

/*
 * A row counts as at least this many bytes. So one or two more columns never turn a full leaf into
 * several leaves. The extents of a file differ in 5 to 12 bytes.
 */
#define ROW_MIN 8u

/* The parts of a packed leaf. */
struct layout {
	unsigned int record; /* bytes of a record */
	unsigned int width;
	const uint8_t *base;
	const uint8_t *columns;
	const uint8_t *rows;
};

static struct layout layout_of(const void *leaf)
{
	const struct zf_disk_packing *disk = (const void *)((const char *)leaf + HEADER_SIZE);
	struct layout layout = {
		.record = KEY_SIZE + disk->value_size,
		.width = disk->width,
		.base = (const uint8_t *)(disk + 1),
	};

	layout.columns = layout.base + layout.record;
	layout.rows = layout.columns + layout.width;
	return layout;
}

/* ---- packings ---- */

static void add_record(struct zf_packing *packing, const uint8_t *record)
{
	unsigned int size = KEY_SIZE + packing->value_size;

	for (unsigned int i = FIRST_COLUMN; i < size; i++) {
		if (!packing->differs[i] && packing->base[i] != record[i]) {
			packing->differs[i] = true;
			packing->width++;
		}
	}
}

bool zf_packing_add(struct zf_packing *packing, const struct zf_key *key, const void *value,
		    size_t len)
{
	uint8_t record[ZF_RECORD_MAX];

	if (len != packing->value_size)
		return false;
	zf_disk_key_put((void *)record, key);
	if (memcmp(record, packing->base, FIRST_COLUMN) != 0)
		return false;
	if (len > 0)
		memcpy(record + KEY_SIZE, value, len);
	add_record(packing, record);
	return true;
}

bool zf_packing_join(struct zf_packing *packing, const struct zf_packing *other)
{
	unsigned int size = KEY_SIZE + packing->value_size;

	if (other->value_size != packing->value_size ||
	    memcmp(other->base, packing->base, FIRST_COLUMN) != 0)
		return false;
	add_record(packing, other->base);
	for (unsigned int i = FIRST_COLUMN; i < size; i++) {
		if (other->differs[i] && !packing->differs[i]) {
			packing->differs[i] = true;
			packing->width++;
		}
	}
	return true;
}

static uint32_t fixed_bytes(unsigned int record, unsigned int width)
{
	return (uint32_t)sizeof(struct zf_disk_packing) + record + width;
}

static uint32_t row_bytes(unsigned int width)
{
	return width > ROW_MIN ? width : ROW_MIN;
}

uint32_t zf_packing_bytes(const struct zf_packing *packing, unsigned int count)
{
	return fixed_bytes(KEY_SIZE + packing->value_size, packing->width) +
	       count * row_bytes(packing->width);
}

unsigned int zf_packing_records_max(const struct zf_packing *packing, uint32_t node_size)
{
	return (zf_node_capacity(node_size) - zf_packing_bytes(packing, 0)) /
	       row_bytes(packing->width);
}

static void scan_plain(const void *leaf, unsigned int first, unsigned int n,
		       struct zf_packing *packing, bool *ret_one_kind)
{
	*ret_one_kind = true;
	for (unsigned int i = 0; i < n && *ret_one_kind; i++) {
		struct zf_key key = zf_node_key(leaf, first + i);
		size_t len;
		const void *value = zf_node_value(leaf, first + i, &len, NULL);

		if (i > 0) {
			*ret_one_kind = zf_packing_add(packing, &key, value, len);
			continue;
		}
		*ret_one_kind = len <= ZF_PACKED_VALUE_MAX;
		if (!*ret_one_kind)
			return;
		*packing = (struct zf_packing){.value_size = (uint8_t)len};
		zf_disk_key_put((void *)packing->base, &key);
		if (len > 0)
			memcpy(packing->base + KEY_SIZE, value, len);
	}
}

/* Only the columns can differ. */
static void scan_packed(const void *leaf, unsigned int first, unsigned int n,
			struct zf_packing *packing)
{
	struct layout layout = layout_of(leaf);
	const uint8_t *rows = layout.rows + first * layout.width;

	*packing = (struct zf_packing){.value_size = (uint8_t)(layout.record - KEY_SIZE)};
	memcpy(packing->base, layout.base, layout.record);
	for (unsigned int c = 0; c < layout.width; c++) {
		unsigned int i = 1;

		while (i < n && rows[i * layout.width + c] == rows[c])
			i++;
		packing->base[layout.columns[c]] = rows[c];
		if (i < n) {
			packing->differs[layout.columns[c]] = true;
			packing->width++;
		}
	}
}

bool zf_packing_scan(const void *leaf, unsigned int first, unsigned int n,
		     struct zf_packing *ret_packing)
{
	bool one_kind = true;

	assert(n > 0 && first + n <= zf_node_count(leaf));
	if (zf_node_is_packed(leaf))
		scan_packed(leaf, first, n, ret_packing);
	else
		scan_plain(leaf, first, n, ret_packing, &one_kind);
	return one_kind;
}

/* ---- reading ---- */

void zf_packed_get(const void *leaf, struct zf_packing *ret_packing)
{
	struct layout layout = layout_of(leaf);

	*ret_packing = (struct zf_packing){
		.value_size = (uint8_t)(layout.record - KEY_SIZE),
		.width = (uint8_t)layout.width,
	};
	memcpy(ret_packing->base, layout.base, layout.record);
	for (unsigned int c = 0; c < layout.width; c++)
		ret_packing->differs[layout.columns[c]] = true;
}

uint32_t zf_packed_used_by(const void *leaf, unsigned int n)
{
	return n * row_bytes(layout_of(leaf).width);
}

uint32_t zf_packed_used(const void *leaf)
{
	struct layout layout = layout_of(leaf);

	return fixed_bytes(layout.record, layout.width) +
	       zf_node_count(leaf) * row_bytes(layout.width);
}

static uint64_t key_offset(const struct layout *layout, unsigned int slot)
{
	const struct zf_disk_key *base = (const void *)layout->base;
	const uint8_t *row = layout->rows + slot * layout->width;
	uint64_t offset = zf_le64_get(base->offset);

	for (unsigned int c = 0; c < layout->width && layout->columns[c] < KEY_SIZE; c++)
		offset |= (uint64_t)row[c] << (layout->columns[c] - FIRST_COLUMN) * 8;
	return offset;
}

struct zf_key zf_packed_key(const void *leaf, unsigned int slot)
{
	struct layout layout = layout_of(leaf);
	const struct zf_disk_key *base = (const void *)layout.base;

	return ZF_KEY(zf_le64_get(base->objectid), base->type, key_offset(&layout, slot));
}

bool zf_packed_search(const void *leaf, const struct zf_key *key, unsigned int *ret_slot)
{
	struct layout layout = layout_of(leaf);
	const struct zf_disk_key *base = (const void *)layout.base;
	struct zf_key of_base = ZF_KEY(zf_le64_get(base->objectid), base->type, key->offset);
	unsigned int low = 0, high = zf_node_count(leaf);
	int kind = zf_key_cmp(key, &of_base);

	if (kind != 0) {
		*ret_slot = kind < 0 ? 0 : high;
		return false;
	}
	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (key_offset(&layout, middle) < key->offset)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_slot = low;
	return low < zf_node_count(leaf) && key_offset(&layout, low) == key->offset;
}

const void *zf_packed_value(const void *leaf, unsigned int slot, size_t *ret_len, void *scratch)
{
	struct layout layout = layout_of(leaf);
	const uint8_t *row = layout.rows + slot * layout.width;
	uint8_t *value = scratch;

	*ret_len = layout.record - KEY_SIZE;
	memcpy(value, layout.base + KEY_SIZE, *ret_len);
	for (unsigned int c = 0; c < layout.width; c++)
		if (layout.columns[c] >= KEY_SIZE)
			value[layout.columns[c] - KEY_SIZE] = row[c];
	return value;
}

/* ---- editing ---- */

static void set_count(void *leaf, unsigned int count)
{
	((struct zf_disk_node_header *)leaf)->count = zf_le32_from(count);
}

/* Removes all items. */
static void clear(void *leaf, uint32_t used)
{
	((struct zf_disk_node_header *)leaf)->packed = 0;
	memset((char *)leaf + HEADER_SIZE, 0, used);
	set_count(leaf, 0);
}

static uint8_t *row_at(void *leaf, const struct layout *layout, unsigned int slot)
{
	return (uint8_t *)leaf + (layout->rows - (const uint8_t *)leaf) + slot * layout->width;
}

static void put_row(uint8_t *row, const struct layout *layout, const uint8_t *record)
{
	for (unsigned int c = 0; c < layout->width; c++)
		row[c] = record[layout->columns[c]];
}

/* Writes the packing into an empty leaf. */
static void lay_out(void *leaf, const struct zf_packing *packing)
{
	struct zf_disk_node_header *header = leaf;
	struct zf_disk_packing *disk = (void *)(header + 1);
	unsigned int record = KEY_SIZE + packing->value_size;
	uint8_t *base = (uint8_t *)(disk + 1), *columns = base + record;

	header->packed = 1;
	*disk = (struct zf_disk_packing){.value_size = packing->value_size,
					 .width = packing->width};
	for (unsigned int i = 0; i < record; i++) {
		base[i] = packing->differs[i] ? 0 : packing->base[i];
		if (packing->differs[i])
			*columns++ = (uint8_t)i;
	}
}

static bool is_formed_so(const void *leaf, const struct zf_packing *packing)
{
	struct layout layout;

	if (!zf_node_is_packed(leaf))
		return false;
	layout = layout_of(leaf);
	for (unsigned int c = 0; c < layout.width; c++)
		if (!packing->differs[layout.columns[c]])
			return false;
	return layout.width == packing->width;
}

void zf_packed_form(void *leaf, uint32_t node_size, const struct zf_packing *packing)
{
	unsigned int count = zf_node_count(leaf);
	char old[ZF_NODE_SIZE_MAX];

	if (is_formed_so(leaf, packing))
		return;
	assert(zf_packing_bytes(packing, count) <= zf_node_capacity(node_size));
	memcpy(old, leaf, node_size);
	clear(leaf, zf_node_capacity(node_size));
	lay_out(leaf, packing);
	zf_packed_absorb(leaf, 0, old, 0, count);
}

void zf_packed_undo(void *leaf, uint32_t node_size)
{
	unsigned int count = zf_node_count(leaf);
	char old[ZF_NODE_SIZE_MAX], scratch[ZF_PACKED_VALUE_MAX];

	memcpy(old, leaf, node_size);
	clear(leaf, zf_node_capacity(node_size));
	for (unsigned int i = 0; i < count; i++) {
		struct zf_key key = zf_node_key(old, i);
		size_t len;
		const void *value = zf_node_value(old, i, &len, scratch);

		zf_node_insert_item(leaf, node_size, i, &key, value, len);
	}
}

static void put_record(uint8_t *row, const struct layout *layout, const struct zf_key *key,
		       const void *value)
{
	uint8_t record[ZF_RECORD_MAX];

	zf_disk_key_put((void *)record, key);
	if (layout->record > KEY_SIZE)
		memcpy(record + KEY_SIZE, value, layout->record - KEY_SIZE);
	put_row(row, layout, record);
}

/* Inserts n rows, which the caller fills. */
static uint8_t *open_gap(void *leaf, const struct layout *layout, unsigned int slot, unsigned int n)
{
	unsigned int count = zf_node_count(leaf);
	uint8_t *row = row_at(leaf, layout, slot);

	assert(slot <= count);
	memmove(row + n * layout->width, row, (count - slot) * layout->width);
	set_count(leaf, count + n);
	return row;
}

void zf_packed_insert(void *leaf, unsigned int slot, const struct zf_key *key, const void *value)
{
	struct layout layout = layout_of(leaf);

	put_record(open_gap(leaf, &layout, slot, 1), &layout, key, value);
}

static void fill_from_plain(uint8_t *row, const struct layout *layout, const void *src,
			    unsigned int first, unsigned int n)
{
	for (unsigned int i = first; i < first + n; i++, row += layout->width) {
		struct zf_key key = zf_node_key(src, i);
		size_t len;

		put_record(row, layout, &key, zf_node_value(src, i, &len, NULL));
	}
}

/* Column by column: a column is one of src too, or all records of src have the same byte there. */
static void fill_from_packed(uint8_t *row, const struct layout *to, const void *src,
			     unsigned int first, unsigned int n)
{
	struct layout from = layout_of(src);
	unsigned int f = 0;

	for (unsigned int c = 0; c < to->width; c++) {
		uint8_t column = to->columns[c];
		const uint8_t *in = from.base + column;
		unsigned int step = 0;

		while (f < from.width && from.columns[f] < column)
			f++;
		if (f < from.width && from.columns[f] == column) {
			in = from.rows + first * from.width + f;
			step = from.width;
		}
		for (unsigned int i = 0; i < n; i++)
			row[i * to->width + c] = in[i * step];
	}
}

void zf_packed_absorb(void *leaf, unsigned int slot, const void *src, unsigned int first,
		      unsigned int n)
{
	struct layout layout = layout_of(leaf);
	uint8_t *row = open_gap(leaf, &layout, slot, n);

	if (zf_node_is_packed(src))
		fill_from_packed(row, &layout, src, first, n);
	else
		fill_from_plain(row, &layout, src, first, n);
}

void zf_packed_set(void *leaf, unsigned int slot, const void *value)
{
	struct layout layout = layout_of(leaf);
	struct zf_key key = zf_packed_key(leaf, slot);

	put_record(row_at(leaf, &layout, slot), &layout, &key, value);
}

void zf_packed_remove(void *leaf, unsigned int first, unsigned int n)
{
	struct layout layout = layout_of(leaf);
	unsigned int count = zf_node_count(leaf), behind = count - first - n;
	uint8_t *row = row_at(leaf, &layout, first);

	assert(first + n <= count);
	if (n == count) {
		clear(leaf, fixed_bytes(layout.record, layout.width) + count * layout.width);
		return;
	}
	memmove(row, row + n * layout.width, behind * layout.width);
	memset(row + behind * layout.width, 0, n * layout.width);
	set_count(leaf, count - n);
}
