/* SPDX-License-Identifier: MIT */
/*
 * A writer waits for room in memory that another one has been let in for, who does not get on yet.
 * Nobody else moves: the next commit is ten minutes away.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "fs/data_rig.h"
#include "fs/inode.h"

#define KIB	     UINT64_C(1024)
#define WRITE_MAX    (1024 * KIB)
#define HANG_SECONDS 120u

struct writer {
	struct data_rig *rig;
	pthread_t thread;
	struct zf_inode *inode;
	size_t len;
	unsigned int flags;
	ssize_t result;
};

static const uint8_t bytes[WRITE_MAX];

static void *run_writer(void *arg)
{
	struct writer *writer = arg;

	writer->result = zf_data_write(writer->inode, &writer->rig->ctx, 0, bytes, writer->len,
				       writer->flags);
	return NULL;
}

static void start_writer(struct writer *writer)
{
	assert_int_equal(pthread_create(&writer->thread, NULL, run_writer, writer), 0);
}

static struct zf_inode *make(struct data_rig *rig, const char *name)
{
	struct zf_inode *inode;

	assert_int_equal(zf_inode_get(rig->fs, data_rig_make(rig, name), &inode), 0);
	return inode;
}

static bool is_waited(struct zf_fs *fs)
{
	bool r;

	zf_mutex_lock(&fs->flush.lock);
	r = fs->flush.askers > 0 && !atomic_load(&fs->flush.wanted);
	zf_mutex_unlock(&fs->flush.lock);
	return r;
}

static uint64_t commits(struct data_rig *rig)
{
	struct zf_txn_stats stats;

	zf_txn_get_stats(rig->fs->txn, &stats);
	return stats.commits;
}

/*
 * The first one is let in and has its inode's lock to wait for; the second one waits for room, and
 * the flusher has found nothing to do about it. Then the first one goes on.
 */
static void run_both(struct data_rig *rig, struct writer *first, struct writer *second)
{
	uint64_t commits_before = commits(rig);

	zf_rwlock_wrlock(&first->inode->lock);
	alarm(HANG_SECONDS);
	start_writer(first);
	while (atomic_load(&rig->fs->flush.used_bytes) == 0)
		sched_yield();
	start_writer(second);
	while (!is_waited(rig->fs))
		sched_yield();
	zf_rwlock_unlock(&first->inode->lock);
	pthread_join(first->thread, NULL);
	pthread_join(second->thread, NULL);
	alarm(0);
	assert_int_equal(second->result, second->len);
	assert_int_equal(commits(rig), commits_before);
	zf_inode_put(first->inode);
	zf_inode_put(second->inode);
}

static void init_rig(struct data_rig *rig, uint64_t dirty_bytes)
{
	const struct data_rig_options options = {
		.threads = true,
		.append_limit = 1024 * KIB,
		.dirty_bytes = dirty_bytes,
		.commit_ms = 600000,
	};

	data_rig_init(rig, &options);
}

/* A quarter of the bound on its own is not worth an append. */
static void what_is_placed_is_written_for_who_waits(void **state)
{
	struct data_rig rig;
	struct writer first = {.rig = &rig, .len = 256 * KIB};
	struct writer second = {.rig = &rig, .len = 1024 * KIB};

	(void)state;
	init_rig(&rig, 1024 * KIB);
	first.inode = make(&rig, "first");
	second.inode = make(&rig, "second");
	run_both(&rig, &first, &second);
	assert_int_equal(first.result, first.len);
	data_rig_deinit(&rig);
}

static void what_is_given_back_is_there_for_who_waits(void **state)
{
	struct data_rig rig;
	struct writer first = {.rig = &rig, .len = 960 * KIB, .flags = ZF_WRITE_APPEND};
	struct writer second = {.rig = &rig, .len = 1024 * KIB};

	(void)state;
	init_rig(&rig, 2048 * KIB - 64 * KIB);
	first.inode = make(&rig, "first");
	second.inode = make(&rig, "second");
	/* That is found out under the inode's lock. */
	data_rig_truncate(&rig, first.inode->ino, ZF_FILE_SIZE_MAX);
	run_both(&rig, &first, &second);
	assert_int_equal(first.result, -EFBIG);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_placed_is_written_for_who_waits),
		cmocka_unit_test(what_is_given_back_is_there_for_who_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
