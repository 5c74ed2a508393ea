/* SPDX-License-Identifier: MIT */
/*
 * Decides where each inode goes. First from the root down, by the entries of directories. An inode
 * not reached that way, because its directory's entries are lost, goes by the name in the inode's
 * reference, if the directory of that name was restored; else, with all below it, to "lost+found".
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "interrupt.h"
#include "restore_internal.h"

/* ---- what was restored ---- */

static int compare_seen(const void *a, const void *b)
{
	const struct restore_seen *x = a, *y = b;

	return zf_cmp_u64(x->ino, y->ino);
}

static struct restore_seen *find_seen(const struct restore *restore, uint64_t ino)
{
	const struct restore_seen key = {.ino = ino};
	void *place = tfind(&key, &restore->seen, compare_seen);

	return place ? *(struct restore_seen **)place : NULL;
}

static int add_seen(struct restore *restore, uint64_t ino, const struct restore_place *place,
		    bool is_dir)
{
	struct restore_seen *seen = malloc(sizeof(*seen));

	if (!seen)
		return -ENOMEM;
	*seen = (struct restore_seen){
		.ino = ino, .dir = place->dir, .name = strdup(place->name), .is_dir = is_dir};
	if (seen->name && tsearch(seen, &restore->seen, compare_seen))
		return 0;
	free(seen->name);
	free(seen);
	return -ENOMEM;
}

static void free_seen(void *item)
{
	struct restore_seen *seen = item;

	free(seen->name);
	free(seen);
}

void restore_free_tree(struct restore *restore)
{
	tdestroy(restore->seen, free_seen);
	ZF_VECTOR_FOREACH (&restore->dirs, struct restore_dir, dir) {
		restore_free_xattrs(&dir->xattrs);
		free(dir->name);
	}
	zf_vector_deinit(&restore->dirs);
	if (restore->open_dir != SIZE_MAX)
		close(restore->dir_fd);
}

/* ---- directories ---- */

static struct restore_dir *get_dir(const struct restore *restore, size_t dir)
{
	return zf_vector_at(&restore->dirs, dir);
}

/* Lists the directories from `dir` up to the open one or the base. Returns an fd of that one. */
static int list_way(const struct restore *restore, size_t dir, struct zf_vector *way)
{
	while (dir != 0 && dir != restore->open_dir) {
		if (zf_vector_push(way, &dir) < 0)
			return -ENOMEM;
		dir = get_dir(restore, dir)->parent;
	}
	return dup(dir == 0 ? restore->base : restore->dir_fd);
}

/* Opens step by step, because a path may be longer than PATH_MAX. -1: see errno. */
static int open_by_steps(struct restore *restore, size_t dir)
{
	struct zf_vector way = ZF_VECTOR(size_t);
	int fd = list_way(restore, dir, &way);

	for (size_t i = way.count; i > 0 && fd >= 0; i--) {
		const size_t *step = zf_vector_at(&way, i - 1);
		int from = fd;

		fd = openat(from, get_dir(restore, *step)->name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(from);
	}
	zf_vector_deinit(&way);
	return fd;
}

/* The next directory is often near the open one: below it, or (in the end) its parent. */
static int open_near(struct restore *restore, size_t dir)
{
	if (restore->open_dir != SIZE_MAX && restore->open_dir != 0 &&
	    get_dir(restore, restore->open_dir)->parent == dir)
		return openat(restore->dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return open_by_steps(restore, dir);
}

int restore_open_dir(struct restore *restore, size_t dir, int *ret_fd)
{
	if (restore->open_dir != dir) {
		const struct restore_place place = {.dir = dir, .name = ""};
		int fd = open_near(restore, dir);

		if (fd < 0)
			return restore_fail(restore, &place, "cannot be opened");
		if (restore->open_dir != SIZE_MAX)
			close(restore->dir_fd);
		restore->dir_fd = fd;
		restore->open_dir = dir;
	}
	*ret_fd = restore->dir_fd;
	return 0;
}

static int add_dir(struct restore *restore, struct restore_inode *inode)
{
	struct restore_dir dir = {
		.ino = inode->ino,
		.parent = inode->place->dir,
		.name = strdup(inode->place->name),
		.has_inode = inode->has_inode,
		.item = inode->item,
		.xattrs = inode->xattrs,
	};

	if (!dir.name || zf_vector_push(&restore->dirs, &dir) < 0) {
		free(dir.name);
		return -ENOMEM;
	}
	inode->xattrs = ZF_VECTOR(struct restore_xattr);
	return 0;
}

/* ---- names ---- */

static int compare_entries(const void *a, const void *b)
{
	const struct restore_entry *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order != 0 ? order : (x->cookie < y->cookie) - (x->cookie > y->cookie);
}

static bool has_name(const struct restore_entry *entry, const char *name)
{
	return strcmp(entry->name, name) == 0;
}

/* `found`: the sum of struct zf_disk_dirent and name of each entry, as in a directory's size. */
static void tell_missing(struct restore_inode *inode, uint64_t found)
{
	if (inode->has_inode && inode->item.size != found)
		restore_tell(inode->restore, inode->place, "some of the names in it are lost");
}

/*
 * Sorts the entries by name and keeps each name once, because a name has two entries (by name and
 * by cookie). Of contradicting entries the newer one counts: an older leaf may bring back a deleted
 * one.
 */
static void order_entries(struct restore_inode *inode)
{
	struct zf_vector *entries = &inode->entries;
	uint64_t found = 0;
	size_t kept = 0;

	zf_vector_sort(entries, 0, compare_entries);
	for (size_t i = 0; i < entries->count; i++) {
		struct restore_entry *this = zf_vector_at(entries, i);

		if (kept > 0 && has_name(zf_vector_at(entries, kept - 1), this->name)) {
			free(this->name);
			continue;
		}
		found += sizeof(struct zf_disk_dirent) + strlen(this->name);
		memmove(zf_vector_at(entries, kept), this, sizeof(*this));
		kept++;
	}
	entries->count = kept;
	tell_missing(inode, found);
}

static int restore_inode(struct restore *restore, const struct restore_place *place, uint64_t ino,
			 uint8_t type);

static int link_again(struct restore *restore, const struct restore_seen *first,
		      const struct restore_place *place)
{
	int from, to, r;

	restore->files++;
	if (restore->base < 0)
		return 0;
	r = restore_open_dir(restore, first->dir, &from);
	if (r < 0)
		return r;
	/* The next restore_open_dir() closes this fd. */
	from = dup(from);
	if (from < 0)
		return restore_fail(restore, place, "cannot be made");
	r = restore_open_dir(restore, place->dir, &to);
	if (r == 0 && linkat(from, first->name, to, place->name, 0) < 0)
		r = restore_fail(restore, place, "cannot be made");
	close(from);
	return r;
}

static int restore_entry(struct restore *restore, size_t dir, const struct restore_entry *entry)
{
	const struct restore_place place = {.dir = dir, .name = entry->name};
	const struct restore_seen *seen = find_seen(restore, entry->ino);

	if (zf_interrupted())
		return -EINTR;
	if (!seen)
		return restore_inode(restore, &place, entry->ino, entry->type);
	if (!seen->is_dir)
		return link_again(restore, seen, &place);
	restore_tell(restore, &place, "it is the directory that has been restored as %s",
		     seen->name);
	return 0;
}

/* Restores the directory's names. Directories among them are only made; enter_dirs() fills them. */
static int fill_dir(struct restore *restore, size_t dir, struct restore_inode *inode)
{
	int r = 0;

	order_entries(inode);
	for (size_t i = 0; i < inode->entries.count && r == 0; i++)
		r = restore_entry(restore, dir, zf_vector_at(&inode->entries, i));
	return r;
}

/* ---- inodes ---- */

static int restore_content(struct restore_inode *inode)
{
	struct restore *restore = inode->restore;
	int r = restore_read_inode(inode);

	if (r == 0)
		r = restore_end_inode(inode);
	if (r == 0)
		r = add_seen(restore, inode->ino, inode->place, restore_is_dir(inode));
	return r == 0 && restore_is_dir(inode) ? add_dir(restore, inode) : r;
}

static int restore_inode(struct restore *restore, const struct restore_place *place, uint64_t ino,
			 uint8_t type)
{
	struct restore_inode inode = {.restore = restore, .place = place, .ino = ino, .type = type};
	int r = restore_content(&inode);

	restore_free_inode(&inode);
	return r;
}

/* Reads the directory's items again for its names, because restore->dirs keeps no entries. */
static int enter_dir(struct restore *restore, size_t dir)
{
	const struct restore_dir *this = get_dir(restore, dir);
	const struct restore_place place = {.dir = this->parent, .name = this->name};
	struct restore_inode inode = {.restore = restore, .place = &place, .ino = this->ino};
	int r = restore_read_inode(&inode);

	if (r == 0)
		r = fill_dir(restore, dir, &inode);
	restore_free_inode(&inode);
	return r;
}

/* Fills all directories from `first` on, also those that are added meanwhile. */
static int enter_dirs(struct restore *restore, size_t first)
{
	int r = 0;

	for (size_t dir = first; dir < restore->dirs.count && r == 0; dir++)
		if (get_dir(restore, dir)->ino != 0)
			r = enter_dir(restore, dir);
	return r;
}

/* ---- inodes that no directory names ---- */

struct unreached {
	uint64_t ino, parent;
	char *name;	 /* NULL: lost */
	bool has_parent; /* the parent is unreached, too */
};

static int compare_by_ino(const void *a, const void *b)
{
	const struct unreached *x = a, *y = b;

	return zf_cmp_u64(x->ino, y->ino);
}

static int compare_by_parent(const void *a, const void *b)
{
	const struct unreached *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return compare_by_ino(a, b);
}

static int take_unreached(struct restore *restore, uint64_t ino, struct zf_vector *unreached)
{
	struct restore_inode inode = {.restore = restore, .ino = ino, .type = DT_REG};
	struct unreached item = {.ino = ino};
	int r = restore_read_inode(&inode);

	/* An inode with link count 0 was deleted, and only still open: it is left out. */
	if (r == 0 && !(inode.has_inode && inode.item.nlink == 0)) {
		item.parent = inode.parent;
		item.name = inode.name;
		inode.name = NULL;
		r = zf_vector_push(unreached, &item);
	}
	restore_free_inode(&inode);
	return r;
}

/* Lists the unreached inodes, sorted by their parents. */
static int find_unreached(struct restore *restore, struct zf_vector *unreached)
{
	uint64_t ino = ZF_INO_FIRST - 1;
	int r = 0;

	while (r == 0 && (ino = zf_salvage_next_inode(restore->salvage, ino + 1)) != 0) {
		if (zf_interrupted())
			return -EINTR;
		if (!find_seen(restore, ino))
			r = take_unreached(restore, ino, unreached);
	}
	ZF_VECTOR_FOREACH (unreached, struct unreached, item) {
		const struct unreached parent = {.ino = item->parent};

		item->has_parent = zf_vector_find(unreached, &parent, compare_by_ino) != NULL;
	}
	zf_vector_sort(unreached, 0, compare_by_parent);
	return r;
}

static int place_unreached(struct restore *restore, const struct unreached *item, size_t dir,
			   const char *name)
{
	const struct restore_place place = {.dir = dir, .name = name};
	size_t first = restore->dirs.count;
	int r;

	if (find_seen(restore, item->ino))
		return 0;
	restore_tell(restore, &place, "its directory does not name it any more");
	r = restore_inode(restore, &place, item->ino, DT_REG);
	return r < 0 ? r : enter_dirs(restore, first);
}

/* The index of the first unreached inode whose parent is >= `parent`. */
static size_t first_of_parent(const struct zf_vector *unreached, uint64_t parent)
{
	size_t low = 0, high = unreached->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct unreached *item = zf_vector_at(unreached, middle);

		if (item->parent < parent)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* 1: the directory has the name already. 0, or an error. */
static int is_taken(struct restore *restore, size_t dir, const char *name)
{
	struct stat st;
	int fd, r;

	if (restore->base < 0)
		return 0;
	r = restore_open_dir(restore, dir, &fd);
	if (r < 0)
		return r;
	return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/*
 * If another inode has the name by now, this inode was deleted, and an older leaf has brought it
 * back: it stays unreached.
 */
static int place_by_name(struct restore *restore, const struct unreached *item, size_t dir)
{
	int r = is_taken(restore, dir, item->name);

	if (r == 0)
		r = place_unreached(restore, item, dir, item->name);
	return r < 0 ? r : 0;
}

/*
 * Fills directories from `first` on by the names of unreached inodes, also those added meanwhile.
 */
static int place_by_names(struct restore *restore, const struct zf_vector *unreached, size_t first)
{
	int r = 0;

	for (size_t dir = first; dir < restore->dirs.count; dir++) {
		uint64_t ino = get_dir(restore, dir)->ino;

		for (size_t i = first_of_parent(unreached, ino); i < unreached->count && r == 0;
		     i++) {
			const struct unreached *item = zf_vector_at(unreached, i);

			if (item->parent != ino)
				break;
			if (ino != 0 && item->name)
				r = place_by_name(restore, item, dir);
		}
	}
	return r;
}

/* Makes "lost+found", which is a directory of the copy alone and no inode of the source. */
static int make_lost_found(struct restore *restore, size_t *ret_dir)
{
	char name[32] = "lost+found";
	struct restore_dir dir = {.xattrs = ZF_VECTOR(struct restore_xattr)};
	const struct restore_place place = {.dir = 0, .name = name};

	for (unsigned int i = 1; restore->base >= 0 && mkdirat(restore->base, name, 0700) < 0;
	     i++) {
		if (errno != EEXIST)
			return restore_fail(restore, &place, "cannot be made");
		snprintf(name, sizeof(name), "lost+found.%u", i);
	}
	dir.name = strdup(name);
	*ret_dir = restore->dirs.count;
	if (dir.name && zf_vector_push(&restore->dirs, &dir) == 0)
		return 0;
	free(dir.name);
	return -ENOMEM;
}

/* Restores an inode without a place, and all below it. *lost_found: SIZE_MAX until it is made. */
static int place_apart(struct restore *restore, const struct zf_vector *unreached,
		       const struct unreached *item, size_t *lost_found)
{
	size_t first = restore->dirs.count;
	char name[32];
	int r = 0;

	if (find_seen(restore, item->ino))
		return 0;
	if (*lost_found == SIZE_MAX)
		r = make_lost_found(restore, lost_found);
	snprintf(name, sizeof(name), "#%" PRIu64, item->ino);
	if (r == 0)
		r = place_unreached(restore, item, *lost_found, name);
	return r < 0 ? r : place_by_names(restore, unreached, first);
}

/* First those whose parent is not unreached: they take all below them along. */
static int place_rest(struct restore *restore, const struct zf_vector *unreached)
{
	size_t lost_found = SIZE_MAX;

	for (unsigned int pass = 0; pass < 2; pass++) {
		ZF_VECTOR_FOREACH (unreached, struct unreached, item) {
			int r = pass == 0 && item->has_parent
					? 0
					: place_apart(restore, unreached, item, &lost_found);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int restore_unreached(struct restore *restore)
{
	struct zf_vector unreached = ZF_VECTOR(struct unreached);
	int r = find_unreached(restore, &unreached);

	if (r == 0)
		r = place_by_names(restore, &unreached, 0);
	if (r == 0)
		r = place_rest(restore, &unreached);
	ZF_VECTOR_FOREACH (&unreached, struct unreached, item)
		free(item->name);
	zf_vector_deinit(&unreached);
	return r;
}

/* ---- the whole ---- */

/* The destination directory gets the attributes of the filesystem's root. */
static int take_root(struct restore *restore)
{
	const struct restore_place place = {.dir = 0, .name = "."};
	struct restore_inode inode = {
		.restore = restore, .place = &place, .ino = ZF_INO_ROOT, .type = DT_DIR};
	int r = restore_read_inode(&inode);

	if (r == 0)
		r = add_seen(restore, ZF_INO_ROOT, &place, true);
	if (r == 0)
		r = add_dir(restore, &inode);
	restore_free_inode(&inode);
	return r;
}

/* From the bottom up, because changes in a directory change its times. */
static int set_dir_attrs(struct restore *restore)
{
	for (size_t i = restore->dirs.count; i > 0; i--) {
		const struct restore_dir *dir = get_dir(restore, i - 1);
		const struct restore_place place = {.dir = dir->parent, .name = dir->name};
		int fd, r;

		if (!dir->has_inode)
			continue;
		r = restore_open_dir(restore, dir->parent, &fd);
		if (r < 0)
			return r;
		restore_set_attrs(restore, fd, &place, &dir->item, &dir->xattrs);
	}
	return 0;
}

int restore_tree(struct restore *restore)
{
	int r = take_root(restore);

	if (r == 0)
		r = enter_dirs(restore, 0);
	if (r == 0)
		r = restore_unreached(restore);
	return r == 0 && restore->base >= 0 ? set_dir_attrs(restore) : r;
}
