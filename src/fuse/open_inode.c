/* SPDX-License-Identifier: MIT */
#include "fuse/open_inode.h"

#include <bsd/sys/tree.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"

enum pages {
	PAGES_NONE,
	PAGES_SOME,
	PAGES_DROPPING, /* by the thread that has set `dropping` */
};

struct zf_open_inode {
	uint64_t ino;
	unsigned int refs, writers; /* under the table's lock; writers: handles */
	RB_ENTRY(zf_open_inode) link;

	_Atomic enum pages pages;
	atomic_flag dropping;
	atomic_uint cached; /* open handles that cache */
	atomic_bool mapped; /* a READ by a direct handle filled pages: it may have a mapping */
	atomic_bool written_directly;
	/*
	 * Since all pages were dropped: the pages that were filled, and the direct writes that have
	 * waited.
	 */
	_Atomic uint64_t filled, waited;

	/* The range to be dropped later; under the table's lock. */
	bool has_later;
	uint64_t later_from, later_to;
};

RB_HEAD(inode_tree, zf_open_inode);

struct zf_open_inodes {
	struct zf_mutex lock; /* ZF_RANK_DAEMON */
	struct inode_tree tree;
	LIST_HEAD(, zf_handle) handles;
};

static int compare(const struct zf_open_inode *a, const struct zf_open_inode *b)
{
	return a->ino < b->ino ? -1 : a->ino > b->ino;
}

/* (RB_GENERATE_STATIC of <bsd/sys/tree.h> wants a macro that only the BSDs have.) */
RB_PROTOTYPE_INTERNAL(inode_tree, zf_open_inode, link, compare, static __attribute__((unused)))
RB_GENERATE_INTERNAL(inode_tree, zf_open_inode, link, compare, static __attribute__((unused)))

int zf_open_inodes_new(struct zf_open_inodes **ret_inodes)
{
	struct zf_open_inodes *inodes = calloc(1, sizeof(*inodes));

	if (!inodes)
		return -ENOMEM;
	zf_mutex_init(&inodes->lock, ZF_RANK_DAEMON);
	RB_INIT(&inodes->tree);
	LIST_INIT(&inodes->handles);
	*ret_inodes = inodes;
	return 0;
}

void zf_open_inodes_free(struct zf_open_inodes *inodes)
{
	struct zf_open_inode *inode;
	struct zf_handle *handle;

	if (!inodes)
		return;
	/* After a lazy unmount or an abort, the kernel has not released all handles. */
	while ((handle = LIST_FIRST(&inodes->handles)) != NULL) {
		LIST_REMOVE(handle, link);
		free(handle);
	}
	while ((inode = RB_MIN(inode_tree, &inodes->tree)) != NULL) {
		RB_REMOVE(inode_tree, &inodes->tree, inode);
		free(inode);
	}
	zf_mutex_deinit(&inodes->lock);
	free(inodes);
}

struct zf_open_inode *zf_open_inode_spare(void)
{
	return calloc(1, sizeof(struct zf_open_inode));
}

void zf_open_inode_attach(struct zf_open_inodes *inodes, uint64_t ino, struct zf_handle *handle)
{
	struct zf_open_inode *spare = handle->inode, *old;

	spare->ino = ino;
	zf_mutex_lock(&inodes->lock);
	old = RB_INSERT(inode_tree, &inodes->tree, spare);
	if (old)
		handle->inode = old;
	handle->inode->refs++;
	handle->inode->writers += handle->writable;
	LIST_INSERT_HEAD(&inodes->handles, handle, link);
	zf_mutex_unlock(&inodes->lock);
	if (old)
		free(spare);
	if (!handle->direct)
		atomic_fetch_add(&handle->inode->cached, 1);
	handle->attached = true;
}

void zf_open_inode_get(struct zf_open_inodes *inodes, struct zf_open_inode *inode)
{
	zf_mutex_lock(&inodes->lock);
	inode->refs++;
	zf_mutex_unlock(&inodes->lock);
}

/* handle: the handle that is closed with this reference; NULL: none. */
static void put(struct zf_open_inodes *inodes, struct zf_open_inode *inode,
		struct zf_handle *handle)
{
	bool last;

	zf_mutex_lock(&inodes->lock);
	if (handle) {
		LIST_REMOVE(handle, link);
		inode->writers -= handle->writable;
	}
	last = --inode->refs == 0;
	if (last)
		RB_REMOVE(inode_tree, &inodes->tree, inode);
	zf_mutex_unlock(&inodes->lock);
	if (last)
		free(inode);
}

void zf_open_inode_put(struct zf_open_inodes *inodes, struct zf_open_inode *inode)
{
	put(inodes, inode, NULL);
}

void zf_open_inode_detach(struct zf_open_inodes *inodes, struct zf_handle *handle)
{
	if (!handle->attached) {
		free(handle->inode);
		return;
	}
	if (!handle->direct)
		atomic_fetch_sub(&handle->inode->cached, 1);
	put(inodes, handle->inode, handle);
}

bool zf_open_inode_has_writer(struct zf_open_inodes *inodes, uint64_t ino)
{
	struct zf_open_inode key = {.ino = ino}, *inode;
	bool r;

	zf_mutex_lock(&inodes->lock);
	inode = RB_FIND(inode_tree, &inodes->tree, &key);
	r = inode && inode->writers > 0;
	zf_mutex_unlock(&inodes->lock);
	return r;
}

void zf_open_inode_note_pages(const struct zf_handle *handle, size_t size)
{
	struct zf_open_inode *inode = handle->inode;

	if (handle->direct && !atomic_load(&inode->mapped))
		atomic_store(&inode->mapped, true);
	atomic_fetch_add(&inode->filled, (size >> ZF_BLOCK_SHIFT) + 1);
	/* Reading `pages` first keeps its cache line shared among readers. */
	if (atomic_load(&inode->pages) != PAGES_SOME)
		atomic_store(&inode->pages, PAGES_SOME);
}

bool zf_open_inode_has_pages(struct zf_open_inode *inode)
{
	return atomic_load(&inode->pages) != PAGES_NONE;
}

bool zf_open_inode_is_cached(struct zf_open_inode *inode)
{
	return atomic_load(&inode->cached) > 0;
}

void zf_open_inode_note_direct_write(const struct zf_handle *handle)
{
	if (!atomic_load(&handle->inode->written_directly))
		atomic_store(&handle->inode->written_directly, true);
}

bool zf_open_inode_is_written_directly(struct zf_open_inode *inode)
{
	return atomic_load(&inode->written_directly);
}

bool zf_open_inode_drop_later(struct zf_open_inodes *inodes, struct zf_open_inode *inode,
			      uint64_t offset, uint64_t len)
{
	bool first;

	zf_mutex_lock(&inodes->lock);
	first = !inode->has_later;
	inode->later_from = first ? offset : zf_min_u64(inode->later_from, offset);
	inode->later_to = first ? offset + len : zf_max_u64(inode->later_to, offset + len);
	inode->has_later = true;
	zf_mutex_unlock(&inodes->lock);
	return first;
}

void zf_open_inode_take_later(struct zf_open_inodes *inodes, struct zf_open_inode *inode,
			      uint64_t *ret_offset, uint64_t *ret_len)
{
	zf_mutex_lock(&inodes->lock);
	*ret_offset = inode->later_from;
	*ret_len = inode->later_to - inode->later_from;
	inode->has_later = false;
	zf_mutex_unlock(&inodes->lock);
}

bool zf_open_inode_begin_drop(struct zf_open_inode *inode)
{
	uint64_t waited = atomic_fetch_add(&inode->waited, 1);

	if (atomic_load(&inode->mapped) ||
	    (atomic_load(&inode->cached) > 0 && waited < atomic_load(&inode->filled)) ||
	    atomic_flag_test_and_set(&inode->dropping))
		return false;
	atomic_store(&inode->filled, 0);
	atomic_store(&inode->waited, 0);
	atomic_store(&inode->pages, PAGES_DROPPING);
	return true;
}

void zf_open_inode_end_drop(struct zf_open_inode *inode)
{
	enum pages dropping = PAGES_DROPPING;

	atomic_compare_exchange_strong(&inode->pages, &dropping, PAGES_NONE);
	atomic_flag_clear(&inode->dropping);
}
