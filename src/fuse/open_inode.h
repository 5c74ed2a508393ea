/* SPDX-License-Identifier: MIT */
/*
 * An inode that is open, and whether the kernel may have pages of it that were filled during a
 * direct write.
 *
 * The kernel drops the pages of a direct write's range when it *sends* the write. For an
 * asynchronous direct write it does nothing more when the answer comes. A page that was filled in
 * between, with the file's old content, would stay for ever. So the daemon has the page dropped
 * before it answers (drop_pages.h), unless no page can have been filled:
 *
 *      a request that fills pages   zf_open_inode_note_pages(), then reads or changes the bytes
 *      a direct write               changes the bytes, then zf_open_inode_has_pages()
 *
 * The inode's lock in src/fs/ orders reading and changing the bytes. If the direct write does not
 * see the note, then the other request comes after the write there, and its page has the new bytes.
 *
 * Life: from the first open of the inode to the last RELEASE, and while anybody holds a reference.
 * Pages from before the first open do not matter: a direct write is sent after the open, and the
 * kernel then drops the pages of its range. So a file that is only opened for direct I/O has no
 * pages to drop, and its writes pay nothing.
 *
 * Pages stay when the readers that filled them close the file. A direct write has all of the
 * inode's pages dropped, not only those of its range, in two cases: no handle that caches is open
 * any more; or as many direct writes have waited as pages were filled, so that filling the pages
 * again costs no more than the waiting did. (This does not happen if pages were filled for a
 * mapping of a direct handle.) Then the inode has no pages any more:
 *
 *      NONE ---note---> SOME ---begin_drop---> DROPPING ---end_drop---> NONE
 *                        ^                        |
 *                        +----------note----------+
 *
 * A note during DROPPING sets SOME again, because the noted page may be a new one. A request that
 * noted its pages before DROPPING holds the lock of those pages until it is answered, and the
 * kernel waits for that lock before it drops them.
 */
#ifndef ZF_FUSE_OPEN_INODE_H
#define ZF_FUSE_OPEN_INODE_H

#include "fuse/handle.h"

struct zf_open_inode;
struct zf_open_inodes;

int zf_open_inodes_new(struct zf_open_inodes **ret_inodes);
/* Takes NULL. */
void zf_open_inodes_free(struct zf_open_inodes *inodes);

/* Returns memory for an inode that may be open already; free() frees it. NULL: no memory. */
struct zf_open_inode *zf_open_inode_spare(void);
/* The handle has been opened on inode `ino`. Uses or frees the spare inode in handle->inode. */
void zf_open_inode_attach(struct zf_open_inodes *inodes, uint64_t ino, struct zf_handle *handle);
/* The handle is closed. */
void zf_open_inode_detach(struct zf_open_inodes *inodes, struct zf_handle *handle);

/* Is the inode open for writing? */
bool zf_open_inode_has_writer(struct zf_open_inodes *inodes, uint64_t ino);

/* To take a reference, the caller needs an open handle of the inode. */
void zf_open_inode_get(struct zf_open_inodes *inodes, struct zf_open_inode *inode);
void zf_open_inode_put(struct zf_open_inodes *inodes, struct zf_open_inode *inode);

/* For a READ or WRITE of `size` bytes that goes through the page cache. */
void zf_open_inode_note_pages(const struct zf_handle *handle, size_t size);
bool zf_open_inode_has_pages(struct zf_open_inode *inode);
/*
 * Is the inode open with a handle that caches? Only then can the kernel have pages beyond our end
 * of the file.
 */
bool zf_open_inode_is_cached(struct zf_open_inode *inode);

/*
 * The pages of a buffered write that is under way are mostly unlocked. If the kernel drops them for
 * a direct write, and a reader fills them again before the buffered write has changed the bytes,
 * those pages keep the old content. So in a file with direct writes, the pages of a buffered write
 * are dropped once more after its answer. They cannot be dropped before the answer, because one of
 * them may be locked until then.
 */
void zf_open_inode_note_direct_write(const struct zf_handle *handle);
bool zf_open_inode_is_written_directly(struct zf_open_inode *inode);
/* Adds a range that is to be dropped. True: no range was waiting, so the caller has it dropped. */
bool zf_open_inode_drop_later(struct zf_open_inodes *inodes, struct zf_open_inode *inode,
			      uint64_t offset, uint64_t len);
void zf_open_inode_take_later(struct zf_open_inodes *inodes, struct zf_open_inode *inode,
			      uint64_t *ret_offset, uint64_t *ret_len);

/*
 * Should all pages of the inode be dropped, and not only those of the writer's range? True: the
 * caller drops them, and then calls zf_open_inode_end_drop().
 */
bool zf_open_inode_begin_drop(struct zf_open_inode *inode);
void zf_open_inode_end_drop(struct zf_open_inode *inode);

#endif
