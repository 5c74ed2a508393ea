/* SPDX-License-Identifier: MIT */
/*
 * Decides which inodes and names are kept.
 *
 * Three items contain a name: the directory's entry by name, its entry by cookie, and the inode's
 * reference. Items that agree in directory, name, inode and cookie are one candidate. Of several
 * candidates for one name whose inode and directory are kept, the one with the most items is kept.
 */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "base/hash.h"
#include "repair/state.h"

#define DT_COUNT  16u
#define MERGE_MIN ((size_t)256)

static int cmp_name(const void *a, const void *b)
{
	const struct zf_repair_name *x = a, *y = b;

	return zf_cmp_u64s((uint64_t[]){x->dir, x->hash, x->ino, x->cookie},
			   (uint64_t[]){y->dir, y->hash, y->ino, y->cookie}, 4);
}

/* Compares pointers to struct zf_repair_name. */
static int cmp_by_ino(const void *a, const void *b)
{
	const struct zf_repair_name *x = *(struct zf_repair_name *const *)a;
	const struct zf_repair_name *y = *(struct zf_repair_name *const *)b;
	int r = zf_cmp_u64(x->ino, y->ino);

	return r ? r : cmp_name(x, y);
}

static int cmp_by_cookie(const void *a, const void *b)
{
	const struct zf_repair_name *x = *(struct zf_repair_name *const *)a;
	const struct zf_repair_name *y = *(struct zf_repair_name *const *)b;
	int r = zf_cmp_u64(x->dir, y->dir);

	if (r == 0)
		r = zf_cmp_u64(x->cookie, y->cookie);
	return r ? r : cmp_name(x, y);
}

struct zf_repair_name *zf_repair_find_name(struct zf_repair *repair, uint64_t dir, uint64_t hash,
					   uint64_t ino, uint64_t cookie)
{
	const struct zf_repair_name key = {.dir = dir, .hash = hash, .ino = ino, .cookie = cookie};

	return zf_vector_find(&repair->names, &key, cmp_name);
}

/* ---- candidates ---- */

static void merge_same(struct zf_vector *names)
{
	size_t kept = 0;

	zf_vector_sort(names, 0, cmp_name);
	for (size_t i = 0; i < names->count; i++) {
		const struct zf_repair_name *name = zf_vector_at(names, i);
		struct zf_repair_name *before = kept ? zf_vector_at(names, kept - 1) : NULL;

		if (before && cmp_name(before, name) == 0) {
			before->sources |= name->sources;
			before->type_by_name |= name->type_by_name;
			before->type_by_cookie |= name->type_by_cookie;
		} else {
			*(struct zf_repair_name *)zf_vector_at(names, kept++) = *name;
		}
	}
	names->count = kept;
}

static void merge_names(struct zf_repair *repair)
{
	merge_same(&repair->names);
	repair->names_merged = repair->names.count;
}

/* Most names are added three times. Merging them now and then bounds the memory. */
int zf_repair_add_name(struct zf_repair *repair, const struct zf_repair_name *name)
{
	if (repair->names.count >= 2 * repair->names_merged + MERGE_MIN)
		merge_names(repair);
	return zf_vector_push(&repair->names, name);
}

static int index_names(struct zf_repair *repair, zf_vector_cmp_fn *cmp, struct zf_vector *ret_index)
{
	*ret_index = ZF_VECTOR(struct zf_repair_name *);
	ZF_VECTOR_FOREACH (&repair->names, struct zf_repair_name, name) {
		int r = zf_vector_push(ret_index, &name);

		if (r < 0)
			return r;
	}
	zf_vector_sort(ret_index, 0, cmp);
	return 0;
}

/* ---- directories that references name, and the root: made up if nothing else was found ---- */

static int cmp_inode(const void *a, const void *b)
{
	const struct zf_repair_inode *x = a, *y = b;

	return zf_cmp_u64(x->ino, y->ino);
}

static int note_parents(struct zf_repair *repair)
{
	struct zf_vector more = ZF_VECTOR(struct zf_repair_inode);
	uint64_t last = 0;
	int r = 0;

	/* repair->names is sorted by directory. */
	ZF_VECTOR_FOREACH (&repair->names, struct zf_repair_name, name) {
		const struct zf_repair_inode made = {.ino = name->dir, .named_as_parent = true};
		struct zf_repair_inode *inode;

		if (!(name->sources & ZF_REPAIR_BY_REF) || name->dir == last ||
		    name->dir == ZF_INO_ROOT)
			continue;
		last = name->dir;
		inode = zf_repair_find_inode(repair, name->dir);
		if (inode)
			inode->named_as_parent = true;
		else if (r == 0)
			r = zf_vector_push(&more, &made);
	}
	if (r == 0 && !zf_repair_find_inode(repair, ZF_INO_ROOT))
		r = zf_vector_push(&more, &(struct zf_repair_inode){.ino = ZF_INO_ROOT});
	ZF_VECTOR_FOREACH (&more, struct zf_repair_inode, inode)
		if (r == 0)
			r = zf_vector_push(&repair->inodes, inode);
	zf_vector_deinit(&more);
	zf_vector_sort(&repair->inodes, 0, cmp_inode);
	return r;
}

/* ---- inodes ---- */

static uint8_t count_votes(const struct zf_repair_inode *inode, struct zf_repair_name *const *names,
			   size_t count)
{
	unsigned int votes[DT_COUNT] = {0};
	uint8_t best = inode->has_item ? (uint8_t)IFTODT(inode->mode) : 0;

	votes[best]++;
	for (size_t i = 0; i < count; i++) {
		votes[names[i]->type_by_name % DT_COUNT]++;
		votes[names[i]->type_by_cookie % DT_COUNT]++;
	}
	votes[0] = 0; /* no type */
	for (uint8_t type = 1; type < DT_COUNT; type++)
		if (votes[type] > votes[best])
			best = type;
	return best;
}

/* Decides by the inode's item, by its names, and by its entries and extents. */
static uint8_t decide_type(const struct zf_repair_inode *inode, struct zf_repair_name *const *names,
			   size_t count)
{
	uint8_t type = count_votes(inode, names, count);

	if (inode->ino == ZF_INO_ROOT)
		return DT_DIR;
	if ((inode->has_entries || inode->named_as_parent) &&
	    (type == 0 || (count == 0 && inode->has_entries)))
		return DT_DIR;
	if (type == 0 && inode->has_extents)
		return DT_REG;
	return type;
}

static bool is_kept(const struct zf_repair_inode *inode)
{
	if (inode->ino == ZF_INO_ROOT)
		return true;
	if (inode->ino < ZF_INO_FIRST || inode->ino >= ZF_REPAIR_NUMBER_MAX)
		return false;
	if (S_ISLNK(inode->mode))
		return inode->inline_bytes > 0 && !inode->inline_has_zero;
	if (inode->has_item)
		return true;
	if (S_ISDIR(inode->mode))
		return inode->has_entries || inode->named_as_parent;
	return S_ISREG(inode->mode) && inode->has_extents;
}

static uint32_t default_mode(uint8_t type)
{
	switch (type) {
	case DT_DIR:
		return S_IFDIR | 0700;
	case DT_LNK:
		return S_IFLNK | 0777;
	}
	return DTTOIF(type) | 0600;
}

static void decide_inode(struct zf_repair *repair, struct zf_repair_inode *inode,
			 struct zf_repair_name *const *names, size_t count)
{
	uint8_t type = decide_type(inode, names, count);

	if (inode->has_item && type != IFTODT(inode->mode)) {
		zf_repair_tell_of(repair, inode->ino, "its type was corrected (%#o to %#o)",
				  inode->mode & S_IFMT, DTTOIF(type));
		inode->mode = (inode->mode & 07777) | DTTOIF(type);
	}
	if (!inode->has_item) {
		inode->mode = default_mode(type);
		inode->generation = 1;
	}
	inode->kept = is_kept(inode);
	if (!inode->kept)
		zf_repair_tell_of(repair, inode->ino, "it is lost: its %s cannot be read",
				  inode->has_item ? "target" : "attributes");
	else if (!inode->has_item)
		zf_repair_tell_of(
			repair, inode->ino,
			"its owner, mode and times are lost: it belongs to root now, with mode %#o",
			inode->mode);
}

static int decide_inodes(struct zf_repair *repair)
{
	struct zf_vector index;
	size_t at = 0;
	int r = index_names(repair, cmp_by_ino, &index);
	struct zf_repair_name **names = index.data;

	ZF_VECTOR_FOREACH (&repair->inodes, struct zf_repair_inode, inode) {
		size_t first;

		while (at < index.count && names[at]->ino < inode->ino)
			at++;
		first = at;
		while (at < index.count && names[at]->ino == inode->ino)
			at++;
		if (r == 0)
			decide_inode(repair, inode, names ? names + first : NULL, at - first);
	}
	zf_vector_deinit(&index);
	return r;
}

/* ---- names ---- */

static bool can_be(struct zf_repair *repair, const struct zf_repair_name *name)
{
	const struct zf_repair_inode *dir = zf_repair_find_inode(repair, name->dir);
	const struct zf_repair_inode *inode = zf_repair_find_inode(repair, name->ino);

	return dir && dir->kept && S_ISDIR(dir->mode) && inode && inode->kept &&
	       name->ino != ZF_INO_ROOT && name->ino != name->dir;
}

static unsigned int weight(const struct zf_repair_name *name)
{
	return (unsigned int)__builtin_popcount(name->sources);
}

/* A name in a directory belongs to one inode: keeps the best candidate. */
static void choose_inode(struct zf_repair *repair)
{
	struct zf_repair_name *best = NULL;

	ZF_VECTOR_FOREACH (&repair->names, struct zf_repair_name, name) {
		bool same = best && best->dir == name->dir && best->hash == name->hash;

		name->new_cookie = name->cookie;
		if (!can_be(repair, name))
			continue;
		if (same && weight(best) >= weight(name))
			continue;
		if (same)
			best->kept = false;
		name->kept = true;
		best = name;
	}
}

/* A directory has one name: keeps its best one. */
static int choose_parents(struct zf_repair *repair)
{
	struct zf_vector index;
	struct zf_repair_name *best = NULL;
	int r = index_names(repair, cmp_by_ino, &index);

	ZF_VECTOR_FOREACH (&index, struct zf_repair_name *, place) {
		struct zf_repair_name *name = *place;
		struct zf_repair_inode *inode = zf_repair_find_inode(repair, name->ino);

		if (!name->kept || !S_ISDIR(inode->mode))
			continue;
		if (best && best->ino == name->ino) {
			struct zf_repair_name *worse = weight(best) >= weight(name) ? name : best;

			best = worse == name ? best : name;
			worse->kept = false;
		} else {
			best = name;
		}
		inode->name = best;
	}
	zf_vector_deinit(&index);
	return r;
}

/* A cookie belongs to one name. A name whose cookie is taken, or too high, gets a new one. */
static int choose_cookies(struct zf_repair *repair)
{
	const struct zf_repair_name *before = NULL;
	struct zf_repair_inode *dir = NULL;
	struct zf_vector index;
	int r = index_names(repair, cmp_by_cookie, &index);

	ZF_VECTOR_FOREACH (&index, struct zf_repair_name *, place) {
		struct zf_repair_name *name = *place;

		if (!name->kept)
			continue;
		if (!dir || dir->ino != name->dir)
			dir = zf_repair_find_inode(repair, name->dir);
		if ((before && before->dir == name->dir && before->cookie == name->cookie) ||
		    name->cookie >= ZF_REPAIR_COOKIE_MAX)
			name->new_cookie = 0;
		else if (name->cookie >= dir->next_cookie)
			dir->next_cookie = name->cookie + 1;
		before = name;
	}
	zf_vector_deinit(&index);
	ZF_VECTOR_FOREACH (&repair->inodes, struct zf_repair_inode, inode)
		if (S_ISDIR(inode->mode))
			inode->next_cookie = zf_max_u64(inode->next_cookie, ZF_COOKIE_FIRST);
	ZF_VECTOR_FOREACH (&repair->names, struct zf_repair_name, name)
		if (name->kept && name->new_cookie == 0)
			name->new_cookie = zf_repair_find_inode(repair, name->dir)->next_cookie++;
	return r;
}

/*
 * A next_cookie above ZF_REPAIR_COOKIE_MAX was not reached by counting, so it is damaged. It starts
 * anew, and choose_cookies() raises it beyond the cookies that are kept.
 */
static void fit_cookies(struct zf_repair *repair)
{
	ZF_VECTOR_FOREACH (&repair->inodes, struct zf_repair_inode, inode)
		if (inode->next_cookie > ZF_REPAIR_COOKIE_MAX)
			inode->next_cookie = ZF_COOKIE_FIRST;
}

/* ---- the way to the root ---- */

static void cut_cycle(struct zf_repair *repair, struct zf_repair_inode *inode)
{
	zf_repair_tell_of(repair, inode->ino,
			  "it is in a cycle of directories: the name was dropped");
	inode->name->kept = false;
	inode->name = NULL;
}

/*
 * Marks the directories on the way up with the number of this walk. A walk that meets its own mark
 * has found a cycle, and cuts the cycle there.
 */
static void walk_up(struct zf_repair *repair, struct zf_repair_inode *inode, uint32_t walk)
{
	while (inode && inode->walk == 0 && inode->ino != ZF_INO_ROOT && inode->name) {
		inode->walk = walk;
		inode = zf_repair_find_inode(repair, inode->name->dir);
	}
	if (inode && inode->walk == walk)
		cut_cycle(repair, inode);
}

static void cut_cycles(struct zf_repair *repair)
{
	uint32_t walk = 1;

	ZF_VECTOR_FOREACH (&repair->inodes, struct zf_repair_inode, inode)
		if (inode->kept && S_ISDIR(inode->mode) && inode->walk == 0)
			walk_up(repair, inode, walk++);
}

int zf_repair_decide_names(struct zf_repair *repair)
{
	int r;

	merge_names(repair);
	zf_vector_trim(&repair->names);
	r = note_parents(repair);
	if (r == 0)
		r = decide_inodes(repair);
	if (r < 0)
		return r;
	choose_inode(repair);
	r = choose_parents(repair);
	fit_cookies(repair);
	if (r == 0)
		r = choose_cookies(repair);
	if (r == 0)
		cut_cycles(repair);
	return r;
}

int zf_repair_make_inode(struct zf_repair *repair, uint64_t ino, uint32_t mode)
{
	const struct zf_repair_inode inode = {
		.ino = ino,
		.mode = mode,
		.generation = 1,
		.next_cookie = ZF_COOKIE_FIRST,
		.kept = true,
	};
	int r = zf_vector_push(&repair->inodes, &inode);

	zf_vector_sort(&repair->inodes, 0, cmp_inode);
	return r;
}
