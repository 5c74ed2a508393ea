/* SPDX-License-Identifier: MIT */
/*
 * An inode that is open, and whether the kernel may have pages of it that were filled meanwhile.
 *
 * The kernel drops the pages of a direct write's range when it *sends* the write; of an
 * asynchronous one it does nothing more when the answer comes. A page that was filled in between,
 * with what the file held before, would stay for ever. So the daemon has it dropped before it
 * answers (drop_pages.h), unless no page can have been filled:
 *
 *      who fills pages     zf_open_inode_note_pages(), then looks at the bytes or changes them
 *      who writes directly changes the bytes, then zf_open_inode_has_pages()
 *
 * Looking and changing are ordered by the inode's lock in src/fs/. If the direct write does not see
 * the note, the other request comes after it there, and the page has the new bytes.
 *
 * Life: from the first open of the inode to the last RELEASE, and as long as somebody has a
 * reference. Pages from before the first open do not matter: a direct write is sent after that, and
 * the kernel then drops what there is. So a file that is only open directly has no pages for us,
 * and its writes pay nothing.
 *
 * Pages stay, also when those who have read them close the file. A direct write has all of the
 * inode's dropped, not only its range, when nobody has the file open by way of the cache any more,
 * or when as many have waited as pages were filled: reading those again costs no more than that
 * did. (But not those of a mapping by way of a direct handle.) Then the inode has none any more:
 *
 *      NONE ---note---> SOME ---begin_drop---> DROPPING ---end_drop---> NONE
 *                        ^                        |
 *                        +----------note----------+
 *
 * Who notes a page while they are dropped ends that: its page may be a new one. Who had noted one
 * before holds the page's lock until he is answered, and the kernel waits for that before it drops
 * it.
 */
#ifndef ZF_FUSE_OPEN_INODE_H
#define ZF_FUSE_OPEN_INODE_H

#include "fuse/handle.h"

struct zf_open_inode;
struct zf_open_inodes;

int zf_open_inodes_new(struct zf_open_inodes **ret_inodes);
/* Takes NULL. */
void zf_open_inodes_free(struct zf_open_inodes *inodes);

/* Memory for an inode that may be open already; free() takes it back. NULL: no memory. */
struct zf_open_inode *zf_open_inode_spare(void);
/* The handle has been opened on inode `ino`: handle->inode, a spare one, is used up or replaced. */
void zf_open_inode_attach(struct zf_open_inodes *inodes, uint64_t ino, struct zf_handle *handle);
/* The handle goes away. */
void zf_open_inode_detach(struct zf_open_inodes *inodes, struct zf_handle *handle);

/* Has somebody the inode open for writing? */
bool zf_open_inode_has_writer(struct zf_open_inodes *inodes, uint64_t ino);

/* Who has an open handle may take a reference. */
void zf_open_inode_get(struct zf_open_inodes *inodes, struct zf_open_inode *inode);
void zf_open_inode_put(struct zf_open_inodes *inodes, struct zf_open_inode *inode);

/* Of a READ or WRITE of so many bytes. */
void zf_open_inode_note_pages(const struct zf_handle *handle, size_t size);
bool zf_open_inode_has_pages(struct zf_open_inode *inode);
/* Has somebody it open by way of the cache? Only then does the kernel have pages that make it
 * longer. */
bool zf_open_inode_is_cached(struct zf_open_inode *inode);

/*
 * A buffered write that is on its way has its pages unlocked, mostly. If the kernel drops them for
 * a direct write, and somebody reads them again before the buffered write has changed the bytes,
 * those pages stay old. So behind its answer they are dropped once more, where there are direct
 * writes: not before, for one of its pages may be locked until then.
 */
void zf_open_inode_note_direct_write(const struct zf_handle *handle);
bool zf_open_inode_is_written_directly(struct zf_open_inode *inode);
/* Adds to what is to be dropped. True: nothing was, and the caller has it done. */
bool zf_open_inode_drop_later(struct zf_open_inodes *inodes, struct zf_open_inode *inode,
			      uint64_t offset, uint64_t len);
void zf_open_inode_take_later(struct zf_open_inodes *inodes, struct zf_open_inode *inode,
			      uint64_t *ret_offset, uint64_t *ret_len);

/* Are all pages to be dropped, and not just the writer's? Then he says when that is done. */
bool zf_open_inode_begin_drop(struct zf_open_inode *inode);
void zf_open_inode_end_drop(struct zf_open_inode *inode);

#endif
