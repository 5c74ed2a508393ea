/* SPDX-License-Identifier: MIT */
/* What inode.c and dir.c share: the inode of the current item of the fs tree. */
#ifndef ZF_CHECK_FILE_H
#define ZF_CHECK_FILE_H

#include "base/hash.h"
#include "check/state.h"

struct zf_check_file {
	struct zf_item_check item_check;
	uint64_t gaps_at_last; /* check->gaps at the item before */

	uint64_t ino;	      /* 0: none yet */
	uint64_t gaps_before; /* check->gaps at the last item before this inode's first */
	bool has_inode, has_items;
	uint64_t generation, size, bytes, next_cookie;
	uint32_t mode, nlink;

	uint32_t refs, subdirs;
	uint64_t parent;

	/* Directories: entries by name are pushed to check->entries; those by cookie are compared. */
	size_t first_entry, next_entry;
	uint64_t highest_cookie;
	uint64_t entry_bytes; /* recount of a directory's `size` */
	bool entries_sorted;

	uint64_t extents_end;  /* behind the last extent so far; file offset */
	uint64_t data_end;     /* behind the last DATA extent */
	uint64_t last_data;    /* offset of the last DATA extent; valid if data_end */
	uint64_t inline_bytes; /* all INLINE extents, contiguous from 0 */
	bool has_blocks;       /* an extent that is not INLINE */
	uint64_t extent_bytes; /* recount of `bytes` */

	struct zf_check_xattrs xattrs;
};

/* No item of the inode was lost so far: neither between its items nor before the first. */
static inline bool zf_check_file_is_whole(const struct zf_check *check,
					  const struct zf_check_file *file)
{
	return check->gaps == file->gaps_before;
}

/* The hash that the tables keep instead of a name. */
static inline uint32_t zf_check_name_hash(const void *name, size_t len)
{
	return (uint32_t)zf_hash64(name, len);
}

/* dir.c: called for all entries by name, then for all entries by cookie, then once at the end. */
int zf_check_dir_names(struct zf_check *check, struct zf_check_file *file, const char *value,
		       size_t len);
void zf_check_dir_cookie(struct zf_check *check, struct zf_check_file *file, const char *value);
void zf_check_dir_end(struct zf_check *check, struct zf_check_file *file);

#endif
