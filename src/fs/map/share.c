/* SPDX-License-Identifier: MIT */
#include "fs/map/share.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "alloc/zone.h"
#include "fs/core/inode.h"
#include "fs/core/item.h"
#include "fs/map/extent.h"

/* ---- one item: in most cases one name ---- */

struct names {
	struct zf_key key;
	unsigned int count;
	struct zf_disk_share at[ZF_NODE_SIZE_MAX / 4 / sizeof(struct zf_disk_share)];
};

static struct zf_fs *fs_of(const struct zf_extent_editor *editor)
{
	return editor->reader.inode->fs;
}

/* Loads the item that has the name, or in which it has to be added. No item: no names. */
static int load(struct zf_extent_editor *editor, uint64_t address, uint64_t offset,
		struct names *ret_names)
{
	struct zf_fs *fs = fs_of(editor);
	uint64_t ino = editor->reader.inode->ino;
	size_t len;
	int r;

	ret_names->key = ZF_KEY(address, ZF_KEY_SHARE,
				zf_item_hash_share(fs->super.dir_hash_seed, ino, offset));
	ret_names->count = 0;
	r = zf_tree_lookup(fs->forest, ZF_TREE_SHARE, &ret_names->key, ret_names->at,
			   sizeof(ret_names->at), &len);
	if (r == 0)
		r = zf_item_check(&editor->reader.check, ZF_TREE_SHARE, &ret_names->key,
				  ret_names->at, len);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	ret_names->count = (unsigned int)(len / sizeof(struct zf_disk_share));
	return 0;
}

static bool is_name(const struct zf_disk_share *name, uint64_t ino, uint64_t offset)
{
	return zf_le64_get(name->ino) == ino && zf_le64_get(name->offset) == offset;
}

/* Finds the inode's name for `offset`; NULL: there is none. */
static struct zf_disk_share *find(struct zf_extent_editor *editor, struct names *names,
				  uint64_t offset)
{
	for (unsigned int i = 0; i < names->count; i++)
		if (is_name(&names->at[i], editor->reader.inode->ino, offset))
			return &names->at[i];
	return NULL;
}

static int store(struct zf_extent_editor *editor, const struct names *names)
{
	struct zf_fs *fs = fs_of(editor);
	struct zf_writer *writer = editor->trans->writer;
	int r;

	if (names->count == 0)
		r = zf_tree_delete(fs->forest, writer, ZF_TREE_SHARE, &names->key);
	else
		r = zf_tree_set(fs->forest, writer, ZF_TREE_SHARE, &names->key, names->at,
				names->count * sizeof(names->at[0]));
	return zf_extent_editor_count(editor, r);
}

/* ---- one name ---- */

static int wrong(struct zf_extent_editor *editor, const struct zf_extent *extent, const char *has,
		 const char *expected)
{
	return zf_report_corrupt(editor->reader.check.report, "share of address", extent->address,
				 "inode %" PRIu64 ", offset %" PRIu64 " has %s, expected %s",
				 editor->reader.inode->ino, extent->offset, has, expected);
}

/* Loads the name of the extent as the tree has it; *ret_name points into *ret_names. */
static int load_name(struct zf_extent_editor *editor, const struct zf_extent *extent,
		     struct names *ret_names, struct zf_disk_share **ret_name)
{
	int r = load(editor, extent->address, extent->offset, ret_names);

	if (r < 0)
		return r;
	*ret_name = find(editor, ret_names, extent->offset);
	if (!*ret_name)
		return wrong(editor, extent, "no share entry", "one, because the extent is shared");
	if (zf_le64_get((*ret_name)->len) != extent->len)
		return wrong(editor, extent, "a share entry of another length",
			     "the length of the extent");
	return 0;
}

static int add_locked(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	struct names names;
	int r = load(editor, extent->address, extent->offset, &names);

	if (r < 0)
		return r;
	if (find(editor, &names, extent->offset))
		return wrong(editor, extent, "a share entry", "none, because the extent is new");
	if ((names.count + 1) * sizeof(names.at[0]) > editor->reader.check.value_max)
		return -ENOSPC;
	names.at[names.count++] = (struct zf_disk_share){
		.tree = zf_le64_from(ZF_TREE_FS),
		.ino = zf_le64_from(editor->reader.inode->ino),
		.offset = zf_le64_from(extent->offset),
		.len = zf_le64_from(extent->len),
	};
	return store(editor, &names);
}

/* Sets the length of the extent's name to `len`; 0: removes the name. */
static int shorten_locked(struct zf_extent_editor *editor, const struct zf_extent *extent,
			  uint64_t len)
{
	struct zf_disk_share *name;
	struct names names;
	int r = load_name(editor, extent, &names, &name);

	if (r < 0)
		return r;
	if (len > 0)
		name->len = zf_le64_from(len);
	else
		*name = names.at[--names.count];
	return store(editor, &names);
}

/* ---- the other names ---- */

struct others {
	const struct zf_item_check *check;
	const struct zf_extent *extent; /* its name does not count; NULL: all names count */
	uint64_t ino;			/* the inode of `extent` */
	uint64_t from, to;		/* device bytes */
	uint64_t unnamed;		/* blocks in [from, to) for which no name was found yet */
	bool named[ZF_SHARE_MAX / ZF_BLOCK_SIZE];
};

static void mark(struct others *others, uint64_t address, uint64_t len)
{
	uint64_t at = zf_max_u64(address, others->from),
		 end = zf_min_u64(address + len, others->to);

	for (; at < end; at += ZF_BLOCK_SIZE) {
		bool *named = &others->named[(at - others->from) >> ZF_BLOCK_SHIFT];

		others->unnamed -= !*named;
		*named = true;
	}
}

static int take_item(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	struct others *others = arg;
	const struct zf_disk_share *names = value;
	int r = zf_item_check(others->check, ZF_TREE_SHARE, key, value, len);

	if (r < 0)
		return r;
	for (size_t i = 0; i < len / sizeof(names[0]); i++) {
		if (others->extent && key->objectid == others->extent->address &&
		    is_name(&names[i], others->ino, others->extent->offset))
			continue;
		mark(others, key->objectid, zf_le64_get(names[i].len));
	}
	return others->unnamed == 0;
}

static int scan(struct zf_fs *fs, struct others *others, uint64_t from, uint64_t to)
{
	struct zf_key first = ZF_KEY(from, ZF_KEY_SHARE, 0);
	struct zf_key last = ZF_KEY(to - 1, ZF_KEY_SHARE, UINT64_MAX);

	return zf_tree_scan(fs->forest, ZF_TREE_SHARE, &first, &last, take_item, others);
}

/*
 * Copies of a whole file have their names at the same addresses. So names that begin in [from, to)
 * are searched first. The search ends when every block has been found to be named.
 */
static int find_others(struct zf_fs *fs, struct others *others)
{
	uint64_t zone_size = zf_dev_geometry(fs->dev)->zone_size;
	uint64_t reach = zf_min_u64(ZF_SHARE_MAX - ZF_BLOCK_SIZE, others->from % zone_size);
	int r = scan(fs, others, others->from, others->to);

	if (r == 0 && reach > 0)
		r = scan(fs, others, others->from - reach, others->from);
	return r < 0 ? r : 0;
}

/* *ret_dead: how many bytes of the extent's part no other extent names. */
static int count_dead(struct zf_extent_editor *editor, const struct zf_extent *extent,
		      const struct zf_extent *part, uint64_t *ret_dead)
{
	struct others others = {
		.check = &editor->reader.check,
		.extent = extent,
		.ino = editor->reader.inode->ino,
		.from = part->address,
		.to = part->address + part->len,
		.unnamed = part->len >> ZF_BLOCK_SHIFT,
	};
	int r = find_others(fs_of(editor), &others);

	if (r < 0)
		return r;
	*ret_dead = others.unnamed << ZF_BLOCK_SHIFT;
	return 0;
}

int zf_share_look(struct zf_extent_reader *reader, uint64_t address, uint64_t len, bool *ret_named,
		  uint64_t *ret_len)
{
	struct others others = {
		.check = &reader->check,
		.from = address,
		.to = address + len,
		.unnamed = len >> ZF_BLOCK_SHIFT,
	};
	uint64_t blocks = 1;
	int r;

	assert(len > 0 && len <= ZF_SHARE_MAX);
	r = find_others(reader->inode->fs, &others);
	if (r < 0)
		return r;
	while (blocks < len >> ZF_BLOCK_SHIFT && others.named[blocks] == others.named[0])
		blocks++;
	*ret_named = others.named[0];
	*ret_len = blocks << ZF_BLOCK_SHIFT;
	return 0;
}

struct scan_names {
	struct zf_item_check check;
	zf_share_scan_fn *fn;
	void *arg;
};

static int scan_item(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	struct scan_names *scan = arg;
	const struct zf_disk_share *names = value;
	int r = zf_item_check(&scan->check, ZF_TREE_SHARE, key, value, len);

	for (size_t i = 0; r == 0 && i < len / sizeof(names[0]); i++) {
		struct zf_share_name name = {
			.address = key->objectid,
			.len = zf_le64_get(names[i].len),
			.ino = zf_le64_get(names[i].ino),
			.offset = zf_le64_get(names[i].offset),
		};

		r = scan->fn(scan->arg, &name);
	}
	return r;
}

int zf_share_scan(struct zf_fs *fs, uint64_t from, uint64_t to, zf_share_scan_fn *fn, void *arg)
{
	struct zf_key first = ZF_KEY(from, ZF_KEY_SHARE, 0);
	struct zf_key last = ZF_KEY(to - 1, ZF_KEY_SHARE, UINT64_MAX);
	struct scan_names scan = {.fn = fn, .arg = arg};

	zf_fs_get_item_check(fs, &scan.check);
	return zf_tree_scan(fs->forest, ZF_TREE_SHARE, &first, &last, scan_item, &scan);
}

/* ---- the calls ---- */

int zf_share_check(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	struct zf_disk_share *name;
	struct names names;

	return load_name(editor, extent, &names, &name);
}

int zf_share_add(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	struct zf_fs *fs = fs_of(editor);
	int r;

	zf_mutex_lock(&fs->share_lock);
	r = add_locked(editor, extent);
	zf_mutex_unlock(&fs->share_lock);
	return r;
}

static void count_live(struct zf_extent_editor *editor, const struct others *others)
{
	uint64_t at = others->from;

	while (at < others->to) {
		uint64_t from = at;

		while (at < others->to && !others->named[(at - others->from) >> ZF_BLOCK_SHIFT])
			at += ZF_BLOCK_SIZE;
		if (at > from)
			zf_alloc_live_add(fs_of(editor)->alloc, from, at - from);
		else
			at += ZF_BLOCK_SIZE;
	}
}

static int add_moved_locked(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	struct others others = {
		.check = &editor->reader.check,
		.from = extent->address,
		.to = extent->address + extent->len,
		.unnamed = extent->len >> ZF_BLOCK_SHIFT,
	};
	int r = find_others(fs_of(editor), &others);

	if (r == 0)
		r = add_locked(editor, extent);
	if (r == 0)
		count_live(editor, &others);
	return r;
}

int zf_share_add_moved(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	struct zf_fs *fs = fs_of(editor);
	int r;

	zf_mutex_lock(&fs->share_lock);
	r = add_moved_locked(editor, extent);
	zf_mutex_unlock(&fs->share_lock);
	return r;
}

static int cut_locked(struct zf_extent_editor *editor, const struct zf_extent *extent,
		      uint64_t from, uint64_t to)
{
	struct zf_extent part = zf_extent_part(extent, from, to);
	struct zf_extent right = zf_extent_part(extent, to, UINT64_MAX);
	uint64_t dead;
	int r = count_dead(editor, extent, &part, &dead);

	if (r == 0)
		r = shorten_locked(editor, extent, part.offset - extent->offset);
	if (r == 0 && right.len > 0)
		r = add_locked(editor, &right);
	if (r == 0 && dead > 0)
		zf_alloc_live_sub(fs_of(editor)->alloc, part.address, dead);
	return r;
}

int zf_share_cut(struct zf_extent_editor *editor, const struct zf_extent *extent, uint64_t from,
		 uint64_t to)
{
	struct zf_fs *fs = fs_of(editor);
	int r;

	zf_mutex_lock(&fs->share_lock);
	r = cut_locked(editor, extent, from, to);
	zf_mutex_unlock(&fs->share_lock);
	return r;
}
