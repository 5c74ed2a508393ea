/* SPDX-License-Identifier: MIT */
/* Checks across inodes: references against entries, and the shape of the directory tree. */
#include <dirent.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "check/state.h"

static int cmp_name(const void *a, const void *b)
{
	const struct zf_check_name *x = a, *y = b;

	return zf_cmp_u64s((uint64_t[]){x->ino, x->parent, x->cookie, x->name_hash},
			   (uint64_t[]){y->ino, y->parent, y->cookie, y->name_hash}, 4);
}

/* ---- references and entries ---- */

static void check_entry(struct zf_check *check, const struct zf_check_name *entry, bool has_ref)
{
	const struct zf_check_inode *inode = zf_check_find_inode(check, entry->ino);

	if (!inode) {
		zf_check_corrupt(check, "directory", entry->parent,
				 "entry at cookie %" PRIu64 " has inode %" PRIu64
				 ", expected one that exists",
				 entry->cookie, entry->ino);
		return;
	}
	if (!has_ref)
		zf_check_corrupt(check, "inode", entry->ino,
				 "references lack the entry at cookie %" PRIu64
				 " of directory %" PRIu64 ", expected a reference to it",
				 entry->cookie, entry->parent);
	if (entry->type != IFTODT(inode->mode))
		zf_check_corrupt(check, "directory", entry->parent,
				 "entry at cookie %" PRIu64 " has type %u, expected %u, inode "
				 "%" PRIu64 "'s",
				 entry->cookie, entry->type, IFTODT(inode->mode), entry->ino);
}

static void lacks_entry(struct zf_check *check, const struct zf_check_name *ref)
{
	zf_check_corrupt(check, "inode", ref->ino,
			 "reference has cookie %" PRIu64 " of directory %" PRIu64
			 ", expected an entry with its name there",
			 ref->cookie, ref->parent);
}

static void compare_names(struct zf_check *check)
{
	const struct zf_vector *refs = &check->refs, *entries = &check->entries;
	size_t r = 0, e = 0;

	while (r < refs->count || e < entries->count) {
		const struct zf_check_name *ref = r < refs->count ? zf_vector_at(refs, r) : NULL;
		const struct zf_check_name *entry =
			e < entries->count ? zf_vector_at(entries, e) : NULL;
		int cmp = !ref ? 1 : !entry ? -1 : cmp_name(ref, entry);

		if (cmp < 0)
			lacks_entry(check, ref);
		else
			check_entry(check, entry, cmp == 0);
		r += cmp <= 0;
		e += cmp >= 0;
	}
}

/* ---- directories hang below the root ---- */

/*
 * Follows the parents of a directory up to the root or to a directory that was visited before. If
 * this very walk has visited it, there is a cycle. Each directory is visited once.
 */
static void walk_up(struct zf_check *check, struct zf_check_inode *inode, uint32_t walk)
{
	const uint64_t start = inode->ino;

	while (inode->walk == 0 && inode->ino != ZF_INO_ROOT) {
		struct zf_check_inode *parent = zf_check_find_inode(check, inode->parent);

		inode->walk = walk;
		if (!parent || !S_ISDIR(parent->mode)) {
			zf_check_corrupt(check, "directory", inode->ino,
					 "parent has %" PRIu64 ", expected a directory that exists",
					 inode->parent);
			return;
		}
		inode = parent;
	}
	if (inode->ino != ZF_INO_ROOT && inode->walk == walk)
		zf_check_corrupt(check, "directory", start,
				 "parents have a cycle at %" PRIu64 ", expected a way to the root",
				 inode->ino);
}

static void check_reachable(struct zf_check *check)
{
	uint32_t walk = 1;

	/* A directory without names is an orphan; inode.c has judged it. */
	ZF_VECTOR_FOREACH (&check->inodes, struct zf_check_inode, inode)
		if (S_ISDIR(inode->mode) && inode->parent && inode->walk == 0)
			walk_up(check, inode, walk++);
}

int zf_check_names(struct zf_check *check)
{
	if (!check->trees[ZF_TREE_FS].lost) {
		zf_vector_sort(&check->refs, 0, cmp_name);
		zf_vector_sort(&check->entries, 0, cmp_name);
		compare_names(check);
		check_reachable(check);
	}
	zf_vector_deinit(&check->refs);
	zf_vector_deinit(&check->entries);
	return 0;
}
