/* SPDX-License-Identifier: MIT */
/*
 * Write errors: data of an answered write was lost, and each open file of the inode is told of it
 * once.
 *
 * If all tries to write data fail, the data is dropped: the file reads as the trees have it, and
 * the memory is free again. The error is kept. Errors of all files are numbered in the order in
 * which they occur. An inode keeps its newest error. A cursor (struct zf_error_cursor) holds the
 * number up to which its owner has been told:
 *
 *      blocks are lost --noted: error N of the inode, "untold"--> an fsync with a cursor below N
 *      fails; its cursor becomes N, and the error is no longer untold
 *
 * Each open file has a cursor. It begins at the newest number of all files, so a process that opens
 * the file later is not told of earlier losses. One exception: while an error is untold, a cursor
 * of that file begins below it. syncfs has a cursor of its own. So no process can take away an
 * error that another one must be told of.
 *
 * An inode stays in memory while its error is untold, and while the kernel may have the file open.
 * At most ZF_UNTOLD_MAX inodes stay in memory only because of an untold error. The error of a
 * further one is forgotten when the inode leaves memory, after a message that names the file.
 *
 * struct zf_write_error is under data->lock of its inode.
 */
#ifndef ZF_FS_WRITE_ERROR_H
#define ZF_FS_WRITE_ERROR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct zf_fs;
struct zf_inode;
struct zf_told;

#define ZF_UNTOLD_MAX 16384u

/* Embedded in every inode's struct zf_data. */
struct zf_write_error {
	uint64_t newest; /* its number and errno, as cursors have them; 0: none */
	bool untold;
	uint64_t rename_told; /* a rename over another file has failed for this number */
};

/* Embedded in struct zf_fs. */
struct zf_write_errors {
	_Atomic uint64_t newest; /* the newest number of all files */
	atomic_uint untold;	 /* inodes in memory whose error is untold */
};

/* Notes that data of the inode is lost. Returns whether the inode had no untold error before. */
bool zf_write_error_note_locked(struct zf_inode *inode, int error);

/*
 * Returns what to tell a caller that knows of errors up to told->number: 0, or -errno, and the
 * cursor moves on. Without a cursor it returns the error while that is untold, and the error stays
 * untold.
 */
int zf_write_error_tell(struct zf_inode *inode, const struct zf_told *told);
/* The same for all files (syncfs). Errors of inodes that are untold stay untold. */
int zf_write_errors_tell(struct zf_fs *fs, const struct zf_told *told);

/*
 * For P2: the inode is about to take the name of another file. Returns -errno, once, if the inode
 * has an untold error, because its data is not whole and the other file's is.
 */
int zf_write_error_before_rename(struct zf_inode *inode);

/* Returns the inode's newest error if its number is above `number`. Changes nothing. */
int zf_write_error_since(struct zf_inode *inode, uint64_t number);

/*
 * Returns whether an inode without uses stays in memory because of its error. `open`: the kernel
 * may have the file open.
 */
bool zf_write_error_keeps(const struct zf_inode *inode, bool open);
/* Called when the inode leaves memory. */
void zf_write_error_forget(struct zf_inode *inode);

#endif
