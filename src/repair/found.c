/* SPDX-License-Identifier: MIT */
/*
 * Inodes without a name: an orphan, which a mount will delete, stays an orphan. Every other one
 * gets a name in /lost+found. Then all names are known and counted.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "repair/state.h"

#define FOLDER "lost+found"

/* ---- counting ---- */

static void count_name(struct zf_repair *repair, uint64_t dir, uint64_t ino, size_t len)
{
	struct zf_repair_inode *inode = zf_repair_find_inode(repair, ino);
	struct zf_repair_inode *parent = zf_repair_find_inode(repair, dir);

	inode->names++;
	parent->entries++;
	parent->entry_bytes += sizeof(struct zf_disk_dirent) + len;
	parent->subdirs += S_ISDIR(inode->mode);
	repair->counts.names++;
}

static void tell_incomplete(struct zf_repair *repair, const struct zf_repair_name *name)
{
	const uint8_t all = ZF_REPAIR_BY_REF | ZF_REPAIR_BY_NAME | ZF_REPAIR_BY_COOKIE;

	if (name->sources != all || name->cookie != name->new_cookie)
		zf_repair_tell_of(repair, name->ino,
				  "its name in the directory of inode %" PRIu64
				  " was rebuilt from its remaining items",
				  name->dir);
}

static void count_names(struct zf_repair *repair)
{
	ZF_VECTOR_FOREACH (&repair->names, struct zf_repair_name, name) {
		if (!name->kept)
			continue;
		count_name(repair, name->dir, name->ino, name->len);
		tell_incomplete(repair, name);
	}
}

/* ---- the folder ---- */

static bool is_taken(struct zf_repair *repair, uint64_t dir, const char *text, uint64_t *ret_ino)
{
	uint64_t hash = zf_hash64(text, strlen(text));
	size_t low = 0, high = repair->names.count;

	/* repair->names is sorted by directory and hash. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct zf_repair_name *name = zf_vector_at(&repair->names, middle);

		if (name->dir < dir || (name->dir == dir && name->hash < hash))
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < repair->names.count; low++) {
		const struct zf_repair_name *name = zf_vector_at(&repair->names, low);

		if (name->dir != dir || name->hash != hash)
			return false;
		*ret_ino = name->ino;
		if (name->kept)
			return true;
	}
	return false;
}

static int add_name(struct zf_repair *repair, uint64_t dir, uint64_t ino, const char *base)
{
	struct zf_repair_made_name name = {.dir = dir, .ino = ino};
	uint64_t other;
	int r;

	snprintf(name.text, sizeof(name.text), "%s", base);
	for (unsigned int i = 1; is_taken(repair, dir, name.text, &other); i++)
		snprintf(name.text, sizeof(name.text), "%.28s.%u", base, i);
	name.cookie = zf_repair_find_inode(repair, dir)->next_cookie++;
	r = zf_vector_push(&repair->made_names, &name);
	if (r == 0)
		count_name(repair, dir, ino, strlen(name.text));
	return r;
}

/* The inode number of /lost+found; 0: there is none. */
static uint64_t find_folder(struct zf_repair *repair)
{
	const struct zf_repair_inode *inode;
	uint64_t ino;

	if (!is_taken(repair, ZF_INO_ROOT, FOLDER, &ino))
		return 0;
	inode = zf_repair_find_inode(repair, ino);
	return S_ISDIR(inode->mode) ? ino : 0;
}

static int make_folder(struct zf_repair *repair, uint64_t *ret_ino)
{
	uint64_t ino = repair->super.next_ino++;
	int r = zf_repair_make_inode(repair, ino, S_IFDIR | 0700);

	if (r == 0)
		r = add_name(repair, ZF_INO_ROOT, ino, FOLDER);
	*ret_ino = ino;
	return r;
}

/* ---- which inodes get a name ---- */

static int cmp_ino(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Its link count or an orphan item says that it was deleted, and it has no names and no entries. */
static bool stays_orphan(struct zf_repair *repair, const struct zf_repair_inode *inode)
{
	bool has_item = zf_vector_find(&repair->orphans, &inode->ino, cmp_ino) != NULL;

	return inode->names == 0 && inode->entries == 0 &&
	       (has_item || (inode->has_item && inode->nlink == 0));
}

static int give_name(struct zf_repair *repair, uint64_t folder, uint64_t ino)
{
	char text[24];

	snprintf(text, sizeof(text), "#%" PRIu64, ino);
	repair->counts.lost_and_found++;
	zf_repair_tell_of(repair, ino, "it has no name any more: it is in /" FOLDER " now");
	return add_name(repair, folder, ino, text);
}

/* Lists inode numbers instead of pointers, because making the folder moves the table. */
static int list_nameless(struct zf_repair *repair, struct zf_vector *ret_list)
{
	int r = 0;

	ZF_VECTOR_FOREACH (&repair->inodes, struct zf_repair_inode, inode) {
		if (r < 0 || !inode->kept || inode->ino == ZF_INO_ROOT)
			continue;
		inode->is_orphan = stays_orphan(repair, inode);
		if (inode->names == 0 && !inode->is_orphan)
			r = zf_vector_push(ret_list, &inode->ino);
	}
	return r;
}

static int give_names(struct zf_repair *repair, const struct zf_vector *nameless)
{
	uint64_t folder = find_folder(repair);
	int r = 0;

	if (nameless->count > 0 && folder == 0)
		r = make_folder(repair, &folder);
	ZF_VECTOR_FOREACH (nameless, uint64_t, ino)
		if (r == 0)
			r = give_name(repair, folder, *ino);
	return r;
}

/* ---- what follows from the names ---- */

static void set_links(struct zf_repair *repair, struct zf_repair_inode *inode)
{
	uint32_t nlink = S_ISDIR(inode->mode) ? 2 + inode->subdirs : inode->names;

	if (inode->is_orphan)
		nlink = 0;
	if (inode->has_item && inode->nlink != nlink)
		zf_repair_tell_of(repair, inode->ino, "link count %u set to %u", inode->nlink,
				  nlink);
	inode->nlink = nlink;
}

static void set_all_links(struct zf_repair *repair)
{
	ZF_VECTOR_FOREACH (&repair->inodes, struct zf_repair_inode, inode) {
		if (!inode->kept)
			continue;
		set_links(repair, inode);
		repair->counts.inodes++;
	}
}

static void raise_next_ino(struct zf_repair *repair)
{
	if (repair->super.next_ino > ZF_REPAIR_NUMBER_MAX || repair->super.next_ino < ZF_INO_FIRST)
		repair->super.next_ino = ZF_INO_FIRST;
	ZF_VECTOR_FOREACH (&repair->inodes, struct zf_repair_inode, inode)
		if (inode->kept && inode->ino >= repair->super.next_ino)
			repair->super.next_ino = inode->ino + 1;
}

int zf_repair_decide_lost(struct zf_repair *repair)
{
	struct zf_vector nameless = ZF_VECTOR(uint64_t);
	int r;

	raise_next_ino(repair);
	count_names(repair);
	zf_vector_sort(&repair->orphans, 0, cmp_ino);
	r = list_nameless(repair, &nameless);
	if (r == 0)
		r = give_names(repair, &nameless);
	zf_vector_deinit(&nameless);
	set_all_links(repair);
	return r;
}
