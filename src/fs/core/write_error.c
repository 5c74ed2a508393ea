/* SPDX-License-Identifier: MIT */
#include "fs/core/write_error.h"

#include "fs/core/inode.h"

/* A number has a counter, from 1, in its upper bits, and the errno of its error in the lowest. */
#define ERRNO_BITS 12u
#define ERRNO_MASK ((UINT64_C(1) << ERRNO_BITS) - 1)

static int error_of(uint64_t number)
{
	return -(int)(number & ERRNO_MASK);
}

static uint64_t next_number(struct zf_fs *fs, int error)
{
	uint64_t was = atomic_load(&fs->errors.newest), number;

	do {
		number = ((was >> ERRNO_BITS) + 1) << ERRNO_BITS | (uint64_t)-error;
	} while (!atomic_compare_exchange_weak(&fs->errors.newest, &was, number));
	return number;
}

static void set_untold_locked(struct zf_inode *inode, bool untold)
{
	struct zf_write_error *error = &inode->data.error;

	if (untold && !error->untold)
		atomic_fetch_add(&inode->fs->errors.untold, 1);
	if (!untold && error->untold)
		atomic_fetch_sub(&inode->fs->errors.untold, 1);
	error->untold = untold;
}

bool zf_write_error_note_locked(struct zf_inode *inode, int error)
{
	bool first = !inode->data.error.untold;

	/* Before the number: an opener that reads the new number must also see `untold`. */
	set_untold_locked(inode, true);
	inode->data.error.newest = next_number(inode->fs, error);
	return first;
}

/* ---- telling ---- */

struct zf_told zf_fs_told(struct zf_error_cursor *cursor)
{
	return (struct zf_told){cursor, cursor ? atomic_load(&cursor->told) : 0};
}

static void move_on(struct zf_error_cursor *cursor, uint64_t number)
{
	uint64_t was = atomic_load(&cursor->told);

	while (was < number && !atomic_compare_exchange_weak(&cursor->told, &was, number))
		;
}

int zf_write_error_tell(struct zf_inode *inode, const struct zf_told *told)
{
	struct zf_data *data = &inode->data;
	uint64_t newest;
	bool tell;

	if (atomic_load(&inode->fs->errors.newest) <= told->number)
		return 0;
	zf_mutex_lock(&data->lock);
	newest = data->error.newest;
	tell = told->cursor ? newest > told->number : data->error.untold;
	if (told->cursor && tell)
		set_untold_locked(inode, false);
	zf_mutex_unlock(&data->lock);
	if (told->cursor && tell)
		move_on(told->cursor, newest);
	return tell ? error_of(newest) : 0;
}

int zf_write_errors_tell(struct zf_fs *fs, const struct zf_told *told)
{
	uint64_t newest = atomic_load(&fs->errors.newest);

	if (newest <= told->number || (!told->cursor && atomic_load(&fs->errors.untold) == 0))
		return 0;
	if (told->cursor)
		move_on(told->cursor, newest);
	return error_of(newest);
}

int zf_write_error_before_rename(struct zf_inode *inode)
{
	struct zf_write_error *error = &inode->data.error;
	int r = 0;

	zf_mutex_lock(&inode->data.lock);
	if (error->untold && error->rename_told < error->newest)
		r = error_of(error->newest);
	error->rename_told = error->newest;
	zf_mutex_unlock(&inode->data.lock);
	return r;
}

int zf_write_error_since(struct zf_inode *inode, uint64_t number)
{
	int r = 0;

	zf_mutex_lock(&inode->data.lock);
	if (inode->data.error.newest > number)
		r = error_of(inode->data.error.newest);
	zf_mutex_unlock(&inode->data.lock);
	return r;
}

static bool is_untold(struct zf_fs *fs, uint64_t ino)
{
	struct zf_inode *inode;
	bool r;

	/* An inode that cannot be loaded has no error that this mount knows of. */
	if (zf_inode_get(fs, ino, &inode) < 0)
		return false;
	zf_mutex_lock(&inode->data.lock);
	r = inode->data.error.untold;
	zf_mutex_unlock(&inode->data.lock);
	zf_inode_put(inode);
	return r;
}

void zf_fs_begin_errors(struct zf_fs *fs, uint64_t ino, struct zf_error_cursor *ret_cursor)
{
	uint64_t told = atomic_load(&fs->errors.newest);

	if (atomic_load(&fs->errors.untold) > 0 && is_untold(fs, ino))
		told = 0;
	atomic_store(&ret_cursor->told, told);
}

/* ---- in memory ---- */

bool zf_write_error_keeps(const struct zf_inode *inode, bool open)
{
	bool untold = inode->data.error.untold;

	return open || (untold && atomic_load(&inode->fs->errors.untold) <= ZF_UNTOLD_MAX);
}

void zf_write_error_forget(struct zf_inode *inode)
{
	if (inode->data.error.untold)
		atomic_fetch_sub(&inode->fs->errors.untold, 1);
}
