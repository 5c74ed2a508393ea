/* SPDX-License-Identifier: MIT */
/* The table of inodes: getting and putting inodes, and the changes of state that inode.h draws. */
#include "fs/core/inode.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fs/core/inode_item.h"
#include "fs/core/kernel_refs.h"

/*
 * Unused inodes may take one part in IDLE_SHARE of the node cache's memory, besides the node cache.
 */
#define IDLE_SHARE 2u
/*
 * Inodes on the list of dirty ones may take one part in this many of the node cache's memory,
 * before they are stored early.
 */
#define DIRTY_SHARE 4u

static int compare(const struct zf_inode *a, const struct zf_inode *b)
{
	return a->ino < b->ino ? -1 : a->ino > b->ino;
}

/* (RB_GENERATE_STATIC of <bsd/sys/tree.h> wants a macro that only the BSDs have.) */
RB_PROTOTYPE_INTERNAL(zf_inode_table, zf_inode, table_link, compare, static __attribute__((unused)))
RB_GENERATE_INTERNAL(zf_inode_table, zf_inode, table_link, compare, static __attribute__((unused)))

static struct zf_inode_shard *shard_of(struct zf_fs *fs, uint64_t ino)
{
	return &fs->shards[ino % ZF_INODE_SHARDS];
}

struct zf_inode_shard *zf_inode_shard(const struct zf_inode *inode)
{
	return shard_of(inode->fs, inode->ino);
}

static struct zf_inode *find_locked(struct zf_inode_shard *shard, uint64_t ino)
{
	struct zf_inode key = {.ino = ino};

	return RB_FIND(zf_inode_table, &shard->inodes, &key);
}

/* Makes an inode and puts it into the table, with one use. */
static struct zf_inode *add_locked(struct zf_fs *fs, uint64_t ino, enum zf_inode_state state)
{
	struct zf_inode *inode = calloc(1, sizeof(*inode));

	if (!inode)
		return NULL;
	inode->ino = ino;
	inode->fs = fs;
	inode->state = state;
	inode->uses = 1;
	zf_rwlock_init(&inode->lock, ZF_RANK_INODE);
	zf_data_init(&inode->data);
	zf_sync_share_init(&inode->sync_share);
	RB_INSERT(zf_inode_table, &shard_of(fs, ino)->inodes, inode);
	return inode;
}

static void raise_to(_Atomic uint64_t *known, uint64_t value)
{
	uint64_t was = atomic_load(known);

	while (value > was && !atomic_compare_exchange_weak(known, &was, value))
		;
}

/* The inode takes its list of changes with it, so the log can no longer describe them. */
static void note_lost_changes(struct zf_inode *inode)
{
	uint64_t newest = zf_changes_newest(&inode->data.changes);

	raise_to(&inode->fs->changes_lost, newest);
	if (inode->data.closing != ZF_CLOSING_NOT)
		raise_to(&inode->fs->closings_lost, newest);
	raise_to(&inode->fs->marks_lost, inode->data.write_mark);
}

/* The inode is no longer in the table. Takes NULL. */
static void free_inode(struct zf_inode *inode)
{
	if (!inode)
		return;
	zf_sync_share_deinit(&inode->sync_share);
	zf_data_deinit(&inode->data);
	zf_rwlock_deinit(&inode->lock);
	free(inode);
}

void zf_inode_table_init(struct zf_fs *fs)
{
	uint64_t inodes = fs->options.cache_bytes / IDLE_SHARE / sizeof(struct zf_inode);

	fs->idle_max = (unsigned int)zf_min_u64(inodes / ZF_INODE_SHARDS, UINT_MAX);
	for (unsigned int i = 0; i < ZF_INODE_SHARDS; i++) {
		struct zf_inode_shard *shard = &fs->shards[i];

		zf_mutex_init(&shard->lock, ZF_RANK_FS);
		zf_cond_init(&shard->loaded);
		RB_INIT(&shard->inodes);
		TAILQ_INIT(&shard->idle);
	}
	zf_mutex_init(&fs->rename_lock, ZF_RANK_RENAME);
	zf_mutex_init(&fs->share_lock, ZF_RANK_SHARE);
	TAILQ_INIT(&fs->dirty);
	TAILQ_INIT(&fs->doomed);
}

void zf_inode_table_deinit(struct zf_fs *fs)
{
	for (unsigned int i = 0; i < ZF_INODE_SHARDS; i++) {
		struct zf_inode_shard *shard = &fs->shards[i];
		struct zf_inode *inode;

		while ((inode = RB_MIN(zf_inode_table, &shard->inodes))) {
			RB_REMOVE(zf_inode_table, &shard->inodes, inode);
			free_inode(inode);
		}
		zf_kernel_refs_deinit(&shard->kernel_refs);
		zf_cond_deinit(&shard->loaded);
		zf_mutex_deinit(&shard->lock);
	}
	zf_mutex_deinit(&fs->rename_lock);
	zf_mutex_deinit(&fs->share_lock);
}

/* ---- get ---- */

static void use_locked(struct zf_inode_shard *shard, struct zf_inode *inode)
{
	if (inode->idle) {
		TAILQ_REMOVE(&shard->idle, inode, idle_link);
		inode->idle = false;
		shard->idle_count--;
	}
	atomic_fetch_add(&inode->uses, 1);
}

/* Counts a use of an inode found in the table, and waits until it is loaded: 0 or its error. */
static int use_found_locked(struct zf_inode_shard *shard, struct zf_inode *inode)
{
	use_locked(shard, inode);
	while (inode->state == ZF_INODE_LOADING)
		zf_cond_wait(&shard->loaded, &shard->lock);
	if (inode->state == ZF_INODE_LIVE)
		return 0;
	return inode->load_error ? inode->load_error : -ESTALE;
}

static void set_unlinked_locked(struct zf_inode *inode, bool unlinked)
{
	if (inode->unlinked && !unlinked)
		atomic_fetch_sub(&inode->fs->unlinked_count, 1);
	else if (!inode->unlinked && unlinked)
		atomic_fetch_add(&inode->fs->unlinked_count, 1);
	inode->unlinked = unlinked;
}

static void set_state(struct zf_inode *inode, enum zf_inode_state state, int load_error)
{
	struct zf_inode_shard *shard = shard_of(inode->fs, inode->ino);

	zf_mutex_lock(&shard->lock);
	inode->state = state;
	inode->load_error = load_error;
	set_unlinked_locked(inode, inode->item.nlink == 0);
	zf_cond_broadcast(&shard->loaded);
	zf_mutex_unlock(&shard->lock);
}

int zf_inode_get(struct zf_fs *fs, uint64_t ino, struct zf_inode **ret_inode)
{
	struct zf_inode_shard *shard = shard_of(fs, ino);
	struct zf_inode *inode;
	bool load = false;
	int r = 0;

	zf_mutex_lock(&shard->lock);
	inode = find_locked(shard, ino);
	if (inode && inode->state == ZF_INODE_DOOMED) {
		zf_mutex_unlock(&shard->lock);
		return -ESTALE;
	}
	if (inode) {
		r = use_found_locked(shard, inode);
	} else {
		/*
		 * The inode enters the table before its item is read, so that no other thread loads
		 * it, too.
		 */
		inode = add_locked(fs, ino, ZF_INODE_LOADING);
		load = true;
	}
	zf_mutex_unlock(&shard->lock);
	if (!inode)
		return -ENOMEM;
	if (load) {
		r = zf_inode_item_load(inode);
		set_state(inode, r < 0 ? ZF_INODE_DEAD : ZF_INODE_LIVE, r);
	}
	if (r < 0) {
		zf_inode_put(inode);
		return r;
	}
	*ret_inode = inode;
	return 0;
}

struct zf_inode *zf_inode_ref(struct zf_inode *inode)
{
	unsigned int uses = atomic_fetch_add(&inode->uses, 1);

	assert(uses > 0);
	return inode;
}

/* ---- put ---- */

static struct zf_inode *remove_locked(struct zf_inode_shard *shard, struct zf_inode *inode)
{
	/* This must come before another thread can load the inode again. */
	note_lost_changes(inode);
	zf_write_error_forget(inode);
	set_unlinked_locked(inode, false);
	RB_REMOVE(zf_inode_table, &shard->inodes, inode);
	return inode;
}

/* Keeps the unused inode. If too many are idle, removes the oldest from the table; returns it. */
static struct zf_inode *make_idle_locked(struct zf_inode_shard *shard, struct zf_inode *inode)
{
	TAILQ_INSERT_TAIL(&shard->idle, inode, idle_link);
	inode->idle = true;
	if (++shard->idle_count <= inode->fs->idle_max)
		return NULL;
	inode = TAILQ_FIRST(&shard->idle);
	TAILQ_REMOVE(&shard->idle, inode, idle_link);
	shard->idle_count--;
	return remove_locked(shard, inode);
}

/*
 * Returns whether the inode must stay in memory because it knows something that no tree has: an
 * error that an open file has not been told of, or an unfinished truncation, after which the file
 * must not grow. Both are rare.
 */
static bool knows_more_locked(struct zf_inode_shard *shard, const struct zf_inode *inode)
{
	if (inode->data.dropping)
		return true;
	return inode->data.error.newest > 0 &&
	       zf_write_error_keeps(inode, zf_kernel_refs_has(&shard->kernel_refs, inode->ino));
}

/*
 * Decides what happens to an inode without uses. Returns an inode to free (this one or another), or
 * NULL.
 */
static struct zf_inode *settle_locked(struct zf_inode_shard *shard, struct zf_inode *inode)
{
	if (inode->state == ZF_INODE_DEAD || inode->fs->recovering)
		return remove_locked(shard, inode);
	if (!inode->unlinked && !knows_more_locked(shard, inode))
		return make_idle_locked(shard, inode);
	if (!inode->unlinked)
		return NULL;
	if (zf_kernel_refs_has(&shard->kernel_refs, inode->ino))
		return NULL;
	if (inode->fs->read_only)
		return remove_locked(shard, inode);
	inode->state = ZF_INODE_DOOMED;
	atomic_store(&inode->uses, 1); /* the use of fs->doomed */
	return NULL;
}

static void doom(struct zf_inode *inode)
{
	struct zf_fs *fs = inode->fs;

	zf_mutex_lock(&fs->lock);
	TAILQ_INSERT_TAIL(&fs->doomed, inode, doomed_link);
	zf_mutex_unlock(&fs->lock);
	atomic_fetch_add(&fs->deletions, 1);
	zf_wake_deletion(fs);
}

/* Gives up a use without a lock, if it is not the last one, as in most puts. */
static bool drop_use(struct zf_inode *inode)
{
	unsigned int uses = atomic_load(&inode->uses);

	assert(uses > 0);
	while (uses > 1) {
		if (atomic_compare_exchange_weak(&inode->uses, &uses, uses - 1))
			return true;
	}
	return false;
}

void zf_inode_put(struct zf_inode *inode)
{
	struct zf_inode *unwanted;
	struct zf_inode_shard *shard;
	bool doomed;

	if (!inode || drop_use(inode))
		return;
	shard = shard_of(inode->fs, inode->ino);
	zf_mutex_lock(&shard->lock);
	if (atomic_fetch_sub(&inode->uses, 1) > 1) {
		zf_mutex_unlock(&shard->lock);
		return;
	}
	unwanted = settle_locked(shard, inode);
	doomed = !unwanted && inode->state == ZF_INODE_DOOMED;
	zf_mutex_unlock(&shard->lock);
	free_inode(unwanted);
	if (doomed)
		doom(inode);
}

int zf_inode_get_read(struct zf_fs *fs, uint64_t ino, struct zf_inode **ret_inode)
{
	int r = zf_inode_get(fs, ino, ret_inode);

	if (r == 0)
		zf_rwlock_rdlock(&(*ret_inode)->lock);
	return r;
}

void zf_inode_put_read(struct zf_inode *inode)
{
	zf_rwlock_unlock(&inode->lock);
	zf_inode_put(inode);
}

void zf_inode_bury(struct zf_inode *inode)
{
	set_state(inode, ZF_INODE_DEAD, -ESTALE);
}

/* ---- new ---- */

int zf_inode_new(struct zf_fs *fs, struct zf_trans *trans, mode_t mode, struct zf_inode **ret_inode)
{
	uint64_t ino = atomic_fetch_add(&zf_txn_counters(fs->txn)->next_ino, 1);
	struct zf_inode_shard *shard = shard_of(fs, ino);
	struct zf_inode *inode = NULL;
	bool taken, locked;

	zf_mutex_lock(&shard->lock);
	taken = ino < ZF_INO_FIRST || find_locked(shard, ino);
	if (!taken)
		inode = add_locked(fs, ino, ZF_INODE_LIVE);
	zf_mutex_unlock(&shard->lock);
	if (taken)
		return zf_report_corrupt(
			&fs->report, "superblock", fs->super.address,
			"next_ino has %" PRIu64 ", expected a number that no inode has", ino);
	if (!inode)
		return -ENOMEM;
	/*
	 * No other thread knows the new inode, so trylock cannot fail, and the rank order does not
	 * matter.
	 */
	locked = zf_rwlock_trywrlock(&inode->lock);
	assert(locked);
	inode->type = mode & S_IFMT;
	inode->item = (struct zf_inode_item){
		.generation = trans->generation,
		.mode = (uint32_t)mode,
	};
	*ret_inode = inode;
	return 0;
}

void zf_inode_set_unlinked(struct zf_inode *inode, bool unlinked)
{
	struct zf_inode_shard *shard = shard_of(inode->fs, inode->ino);

	zf_mutex_lock(&shard->lock);
	set_unlinked_locked(inode, unlinked);
	zf_mutex_unlock(&shard->lock);
}

/* ---- kernel references ---- */

int zf_inode_kernel_ref(struct zf_fs *fs, uint64_t ino)
{
	struct zf_inode_shard *shard = shard_of(fs, ino);
	int r;

	zf_mutex_lock(&shard->lock);
	r = zf_kernel_refs_add(&shard->kernel_refs, ino);
	zf_mutex_unlock(&shard->lock);
	return r;
}

/*
 * Called when the last kernel reference is gone. Returns the inode, with a use, if it has to be
 * deleted or an error keeps it in memory; else NULL.
 */
static struct zf_inode *use_forgotten_locked(struct zf_inode_shard *shard, uint64_t ino)
{
	struct zf_inode *inode = find_locked(shard, ino);
	bool is_kept;

	if (!inode || inode->state != ZF_INODE_LIVE)
		return NULL;
	/*
	 * It has no use and is not idle, so only an error keeps it in memory, and that may not
	 * matter any more.
	 */
	is_kept = atomic_load(&inode->uses) == 0 && !inode->idle;
	if (!inode->unlinked && !is_kept)
		return NULL;
	use_locked(shard, inode);
	return inode;
}

struct zf_inode *zf_inode_kernel_unref(struct zf_fs *fs, uint64_t ino, uint64_t count,
				       bool *ret_unlinked)
{
	struct zf_inode_shard *shard = shard_of(fs, ino);
	struct zf_inode *inode = NULL;

	zf_mutex_lock(&shard->lock);
	if (zf_kernel_refs_sub(&shard->kernel_refs, ino, count) == 0)
		inode = use_forgotten_locked(shard, ino);
	*ret_unlinked = inode && inode->unlinked;
	zf_mutex_unlock(&shard->lock);
	return inode;
}

void zf_inode_kernel_unref_all(struct zf_inode_shard *shard)
{
	zf_mutex_lock(&shard->lock);
	zf_kernel_refs_deinit(&shard->kernel_refs);
	zf_mutex_unlock(&shard->lock);
}

struct zf_inode *zf_inode_next_unlinked(struct zf_inode_shard *shard, uint64_t ino)
{
	struct zf_inode key = {.ino = ino};
	struct zf_inode *inode;

	zf_mutex_lock(&shard->lock);
	inode = RB_NFIND(zf_inode_table, &shard->inodes, &key);
	while (inode && (inode->state != ZF_INODE_LIVE || !inode->unlinked))
		inode = RB_NEXT(zf_inode_table, &shard->inodes, inode);
	if (inode)
		use_locked(shard, inode);
	zf_mutex_unlock(&shard->lock);
	return inode;
}

/* ---- dirty, locks ---- */

/*
 * A program that reads many files makes the access time of each dirty, and each inode stays in
 * memory until its time is stored. If there are many such inodes, they are stored early. Inodes
 * whose times are stored lazily have a bound of their own.
 */
static bool has_many_dirty(const struct zf_fs *fs, unsigned int count)
{
	return count > fs->options.cache_bytes / DIRTY_SHARE / sizeof(struct zf_inode) +
			       atomic_load_explicit(&fs->lazy_count, memory_order_relaxed);
}

void zf_inode_mark_dirty(struct zf_inode *inode)
{
	struct zf_fs *fs = inode->fs;
	unsigned int count = 0;

	zf_mutex_lock(&fs->lock);
	if (!inode->on_dirty_list) {
		inode->on_dirty_list = true;
		zf_inode_ref(inode);
		TAILQ_INSERT_TAIL(&fs->dirty, inode, dirty_link);
		count = ++fs->dirty_count;
	}
	zf_mutex_unlock(&fs->lock);
	if (fs->background && has_many_dirty(fs, count))
		zf_flush_want_all(fs);
}

bool zf_inode_leave_dirty_list(struct zf_inode *inode)
{
	struct zf_fs *fs = inode->fs;
	bool was;

	zf_mutex_lock(&fs->lock);
	was = inode->on_dirty_list;
	if (was) {
		TAILQ_REMOVE(&fs->dirty, inode, dirty_link);
		fs->dirty_count--;
	}
	inode->on_dirty_list = false;
	zf_mutex_unlock(&fs->lock);
	return was;
}

static void end_lazy(struct zf_inode *inode)
{
	if (inode->lazy)
		atomic_fetch_sub(&inode->fs->lazy_count, 1);
	inode->lazy = false;
}

void zf_inode_note_change(struct zf_inode *inode, bool essential)
{
	inode->item_dirty = true;
	inode->essential_dirty |= essential;
	end_lazy(inode);
	if (!inode->on_dirty_list)
		zf_inode_mark_dirty(inode);
}

void zf_inode_mark_clean(struct zf_inode *inode)
{
	inode->item_dirty = false;
	end_lazy(inode);
}

/* Sorts the inodes by ino, each once, without NULL. Returns how many. */
static unsigned int sort(struct zf_inode *const *inodes, unsigned int count,
			 struct zf_inode **ret_sorted)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < count; i++) {
		unsigned int at = 0;

		if (!inodes[i])
			continue;
		while (at < n && ret_sorted[at]->ino < inodes[i]->ino)
			at++;
		if (at < n && ret_sorted[at] == inodes[i])
			continue;
		for (unsigned int j = n++; j > at; j--)
			ret_sorted[j] = ret_sorted[j - 1];
		ret_sorted[at] = inodes[i];
	}
	return n;
}

bool zf_inode_rdlock(struct zf_inode *inode, bool may_wait)
{
	if (!may_wait)
		return zf_rwlock_tryrdlock(&inode->lock);
	zf_rwlock_rdlock(&inode->lock);
	return true;
}

bool zf_inode_wrlock(struct zf_inode *inode, bool may_wait)
{
	if (!may_wait)
		return zf_rwlock_trywrlock(&inode->lock);
	zf_rwlock_wrlock(&inode->lock);
	return true;
}

void zf_inode_lock_many(struct zf_inode *const *inodes, unsigned int count)
{
	struct zf_inode *sorted[ZF_INODE_LOCKS_MAX];

	assert(count <= ZF_INODE_LOCKS_MAX);
	count = sort(inodes, count, sorted);
	for (unsigned int i = 0; i < count; i++)
		zf_rwlock_wrlock(&sorted[i]->lock);
}

void zf_inode_unlock_many(struct zf_inode *const *inodes, unsigned int count)
{
	struct zf_inode *sorted[ZF_INODE_LOCKS_MAX];

	assert(count <= ZF_INODE_LOCKS_MAX);
	count = sort(inodes, count, sorted);
	while (count > 0)
		zf_rwlock_unlock(&sorted[--count]->lock);
}
