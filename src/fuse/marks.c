/* SPDX-License-Identifier: MIT */
#include "fuse/marks.h"

#include <bsd/sys/queue.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/lock.h"

/* The most marks of one user, and of all, for programs that mark without calling fallocate. */
#define USER_MARKS_MAX 64u
#define MARKS_MAX      1024u

struct entry {
	struct zf_mark mark;
	TAILQ_ENTRY(entry) link;
};

struct zf_marks {
	struct zf_mutex lock;		    /* ZF_RANK_DAEMON; the list */
	TAILQ_HEAD(entries, entry) entries; /* oldest first */
	atomic_uint count;
};

int zf_marks_new(struct zf_marks **ret_marks)
{
	struct zf_marks *marks = calloc(1, sizeof(*marks));

	if (!marks)
		return -ENOMEM;
	zf_mutex_init(&marks->lock, ZF_RANK_DAEMON);
	TAILQ_INIT(&marks->entries);
	*ret_marks = marks;
	return 0;
}

static void remove_locked(struct zf_marks *marks, struct entry *entry)
{
	TAILQ_REMOVE(&marks->entries, entry, link);
	atomic_fetch_sub(&marks->count, 1);
	free(entry);
}

void zf_marks_free(struct zf_marks *marks)
{
	if (!marks)
		return;
	while (!TAILQ_EMPTY(&marks->entries))
		remove_locked(marks, TAILQ_FIRST(&marks->entries));
	zf_mutex_deinit(&marks->lock);
	free(marks);
}

static bool is_same(const struct zf_mark *a, const struct zf_mark *b)
{
	return a->fh == b->fh && a->thread == b->thread && a->offset == b->offset &&
	       a->len == b->len;
}

static bool is_of_thread(const struct zf_mark *a, const struct zf_mark *b)
{
	return a->fh == b->fh && a->thread == b->thread && a->thread;
}

/* Makes room for `mark`, and removes the previous mark of its thread. */
static void drop_old_locked(struct zf_marks *marks, const struct zf_mark *mark)
{
	struct entry *entry, *next, *oldest = NULL;
	unsigned int count = 0;

	TAILQ_FOREACH_SAFE (entry, &marks->entries, link, next) {
		if (is_of_thread(&entry->mark, mark)) {
			remove_locked(marks, entry);
		} else if (entry->mark.user == mark->user) {
			count++;
			oldest = oldest ? oldest : entry;
		}
	}
	if (count >= USER_MARKS_MAX)
		remove_locked(marks, oldest);
	else if (atomic_load(&marks->count) >= MARKS_MAX)
		remove_locked(marks, TAILQ_FIRST(&marks->entries));
}

int zf_marks_add(struct zf_marks *marks, const struct zf_mark *mark)
{
	struct entry *entry = malloc(sizeof(*entry));

	if (!entry)
		return -ENOMEM;
	entry->mark = *mark;
	zf_mutex_lock(&marks->lock);
	drop_old_locked(marks, mark);
	TAILQ_INSERT_TAIL(&marks->entries, entry, link);
	atomic_fetch_add(&marks->count, 1);
	zf_mutex_unlock(&marks->lock);
	return 0;
}

bool zf_marks_take(struct zf_marks *marks, const struct zf_mark *mark)
{
	struct entry *entry;

	if (atomic_load(&marks->count) == 0)
		return false;
	zf_mutex_lock(&marks->lock);
	TAILQ_FOREACH (entry, &marks->entries, link) {
		if (is_same(&entry->mark, mark)) {
			remove_locked(marks, entry);
			break;
		}
	}
	zf_mutex_unlock(&marks->lock);
	return entry != NULL;
}

void zf_marks_drop(struct zf_marks *marks, uint64_t fh)
{
	struct entry *entry, *next;

	if (atomic_load(&marks->count) == 0)
		return;
	zf_mutex_lock(&marks->lock);
	TAILQ_FOREACH_SAFE (entry, &marks->entries, link, next) {
		if (entry->mark.fh == fh)
			remove_locked(marks, entry);
	}
	zf_mutex_unlock(&marks->lock);
}
