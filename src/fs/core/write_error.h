/* SPDX-License-Identifier: MIT */
/*
 * Write errors: data was answered and then lost, and everybody whom that concerns is told once.
 *
 * Data that could not be written is dropped when its retries have failed: the file reads what the
 * device has, and the room in memory is free again. What stays is the error. Errors are numbered in
 * the order in which they come, over all files. An inode keeps its newest; a cursor (struct
 * zf_error_cursor) says up to which one somebody has been told:
 *
 *      blocks are lost --noted: error N of the inode, "untold"--> an fsync with a cursor below N
 *      fails; its cursor becomes N, and the error is no longer untold
 *
 * Each open file has a cursor. It begins at the newest number of all, so that what was lost before
 * is not told to who opens the file afterwards; but as long as an error is untold, whoever opens
 * that file begins below it. syncfs has a cursor of its own. So nobody takes an error that another
 * one is to be told of.
 *
 * An inode stays in memory while its error is untold, and while the kernel may have the file open.
 * Of those that only an untold error keeps there are at most ZF_UNTOLD_MAX; further ones are
 * forgotten when they leave memory, after a message that names the file.
 *
 * What belongs to an inode is under data->lock.
 */
#ifndef ZF_FS_WRITE_ERROR_H
#define ZF_FS_WRITE_ERROR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct zf_error_cursor;
struct zf_fs;
struct zf_inode;

#define ZF_UNTOLD_MAX 16384u

/* Embedded in every inode's struct zf_data. */
struct zf_write_error {
	uint64_t newest; /* its number and errno, as cursors have them; 0: none */
	bool untold;
	uint64_t rename_told; /* a rename over another file has failed for this one */
};

/* Embedded in struct zf_fs. */
struct zf_write_errors {
	_Atomic uint64_t newest; /* of all files */
	atomic_uint untold;	 /* inodes in memory that have one nobody was told of */
};

/* Data of the inode is lost. Returns whether that is the first that nobody was told of. */
bool zf_write_error_note_locked(struct zf_inode *inode, int error);

/* Where the cursor stands, to be asked before what may fail; NULL: 0. */
uint64_t zf_write_error_told(const struct zf_error_cursor *cursor);
/*
 * What to tell somebody who was told up to `told`: 0 or -errno, and then the cursor has moved on.
 * NULL, who has no cursor, is told of an error as long as it is untold, and it stays so.
 */
int zf_write_error_tell(struct zf_inode *inode, struct zf_error_cursor *cursor, uint64_t told);
/* The same of all files: the inodes' errors stay as they are. */
int zf_write_errors_tell(struct zf_fs *fs, struct zf_error_cursor *cursor, uint64_t told);

/*
 * P2: the inode is about to take another file's name. -errno, once, if it has an error that nobody
 * was told of: the other file is whole, and this one is not.
 */
int zf_write_error_before_rename(struct zf_inode *inode);

/* The inode's newest error, if its number is above `number`: nobody counts as told. */
int zf_write_error_since(struct zf_inode *inode, uint64_t number);

/* Of an inode without uses that has an error: is it to stay for that? `open`: it may be open. */
bool zf_write_error_keeps(const struct zf_inode *inode, bool open);
/* It leaves memory. */
void zf_write_error_forget(struct zf_inode *inode);

#endif
