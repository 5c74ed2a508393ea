/* SPDX-License-Identifier: MIT */
/* Compares the two kinds of entries of a directory, which must agree, and checks its link count. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "check/file.h"

/* No directory exceeds this by counting. At the end of the numbers no name could be added. */
#define COOKIE_MAX ((uint64_t)INT64_MAX / 2)

static int cmp_cookie(const void *a, const void *b)
{
	const struct zf_check_name *x = a, *y = b;

	return x->cookie < y->cookie ? -1 : x->cookie > y->cookie;
}

static struct zf_check_name decode_dirent(const struct zf_check_file *file, const char *value,
					  size_t *ret_size)
{
	struct zf_disk_dirent disk;
	struct zf_check_name name = {.parent = file->ino};

	memcpy(&disk, value, sizeof(disk));
	name.ino = zf_le64_get(disk.ino);
	name.cookie = zf_le64_get(disk.cookie);
	name.type = disk.type;
	name.name_hash = zf_check_name_hash(value + sizeof(disk), zf_le16_get(disk.name_len));
	*ret_size = sizeof(disk) + zf_le16_get(disk.name_len);
	return name;
}

int zf_check_dir_names(struct zf_check *check, struct zf_check_file *file, const char *value,
		       size_t len)
{
	size_t size;

	for (size_t at = 0; at < len; at += size) {
		struct zf_check_name name = decode_dirent(file, value + at, &size);
		int r = zf_vector_push(&check->entries, &name);

		if (r < 0)
			return r;
		file->subdirs += name.type == DT_DIR;
		file->entry_bytes += size;
		check->counts.names++;
		file->highest_cookie = zf_max_u64(file->highest_cookie, name.cookie);
	}
	return 0;
}

static void lacks_cookie(struct zf_check *check, const struct zf_check_file *file,
			 const struct zf_check_name *name)
{
	if (!zf_check_file_is_whole(check, file))
		return;
	zf_check_corrupt(check, "directory", name->parent,
			 "entry by name of inode %" PRIu64
			 " has no entry by cookie, expected one at cookie %" PRIu64,
			 name->ino, name->cookie);
}

static void sort_entries(struct zf_check *check, struct zf_check_file *file)
{
	if (!file->entries_sorted)
		zf_vector_sort(&check->entries, file->first_entry, cmp_cookie);
	file->entries_sorted = true;
}

/* Merges the entries by cookie, which come in the order of their cookies, with those by name. */
void zf_check_dir_cookie(struct zf_check *check, struct zf_check_file *file, const char *value)
{
	size_t size;
	struct zf_check_name by_cookie = decode_dirent(file, value, &size);
	const struct zf_check_name *name = NULL;

	sort_entries(check, file);
	while (file->next_entry < check->entries.count) {
		name = zf_vector_at(&check->entries, file->next_entry);
		if (name->cookie >= by_cookie.cookie)
			break;
		lacks_cookie(check, file, name);
		file->next_entry++;
		name = NULL;
	}
	if (!name || name->cookie != by_cookie.cookie) {
		if (!zf_check_file_is_whole(check, file))
			return;
		zf_check_corrupt(check, "directory", file->ino,
				 "entry by cookie %" PRIu64 " has inode %" PRIu64
				 ", expected an entry by name with this cookie",
				 by_cookie.cookie, by_cookie.ino);
		return;
	}
	file->next_entry++;
	if (name->ino != by_cookie.ino || name->type != by_cookie.type ||
	    name->name_hash != by_cookie.name_hash)
		zf_check_corrupt(
			check, "directory", file->ino,
			"entry by cookie %" PRIu64 " has inode %" PRIu64
			", expected inode, type and name of the entry by name, inode %" PRIu64,
			by_cookie.cookie, by_cookie.ino, name->ino);
}

/* Checks the fields of the directory's inode item against its entries. */
static void check_directory(struct zf_check *check, const struct zf_check_file *file)
{
	if (file->size != file->entry_bytes)
		zf_check_corrupt(check, "directory", file->ino,
				 "size has %" PRIu64 ", expected %" PRIu64 " by its entries",
				 file->size, file->entry_bytes);
	if (file->highest_cookie >= file->next_cookie || file->next_cookie > COOKIE_MAX)
		zf_check_corrupt(check, "directory", file->ino,
				 "next_cookie has %" PRIu64 ", expected above %" PRIu64
				 " and at most %" PRIu64,
				 file->next_cookie, file->highest_cookie, COOKIE_MAX);
}

void zf_check_dir_end(struct zf_check *check, struct zf_check_file *file)
{
	size_t entries = check->entries.count - file->first_entry;
	uint32_t expected = file->nlink ? 2 + file->subdirs : 0;

	if (entries && !S_ISDIR(file->mode))
		zf_check_corrupt(check, "inode", file->ino,
				 "mode has %#o, expected a directory for its %zu entries",
				 file->mode, entries);
	sort_entries(check, file);
	for (; file->next_entry < check->entries.count; file->next_entry++)
		lacks_cookie(check, file, zf_vector_at(&check->entries, file->next_entry));
	if (!S_ISDIR(file->mode))
		return;
	check_directory(check, file);
	if (file->nlink != expected)
		zf_check_corrupt(check, "directory", file->ino, "nlink has %u, expected %u",
				 file->nlink, expected);
	if (file->nlink == 0 && entries)
		zf_check_corrupt(check, "directory", file->ino,
				 "nlink has 0, expected at least 2 for its %zu entries", entries);
	if (file->refs != (file->nlink ? 1u : 0u))
		zf_check_corrupt(check, "directory", file->ino,
				 "it has %u names, expected %u by its nlink", file->refs,
				 file->nlink ? 1u : 0u);
}
