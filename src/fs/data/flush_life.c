/* SPDX-License-Identifier: MIT */
/* Making and freeing struct zf_flush (fs/core/data_memory.h). */
#include "fs/data/append.h"
#include "fs/data/block.h"
#include "fs/core/inode.h"
#include "fs/data/data.h"
#include "fs/data/recent.h"

/* The part of options.cache_bytes that copies in struct zf_recent take besides. */
#define RECENT_SHARE 16u

int zf_data_flush_init(struct zf_fs *fs)
{
	struct zf_flush *flush = &fs->flush;
	uint64_t limit = zf_dev_geometry(fs->dev)->append_limit / ZF_BLOCK_SIZE;

	*flush = (struct zf_flush){0};
	flush->limit_blocks = (uint32_t)zf_max_u64(zf_min_u64(limit, ZF_IO_IOV_MAX), 1);
	zf_mutex_init(&flush->lock, ZF_RANK_DEV);
	zf_cond_init(&flush->progress);
	STAILQ_INIT(&flush->waiting);
	STAILQ_INIT(&flush->done);
	STAILQ_INIT(&flush->held);
	STAILQ_INIT(&flush->eager);
	return zf_recent_new(fs->options.cache_bytes / RECENT_SHARE, &flush->recent);
}

/* The inodes of the appends may have been freed; their blocks are freed with the pool. */
static void drop_appends(struct zf_append_list *list)
{
	struct zf_append *append;

	while ((append = STAILQ_FIRST(list))) {
		STAILQ_REMOVE_HEAD(list, link);
		append->count = 0;
		zf_append_free(append);
	}
}

void zf_data_flush_deinit(struct zf_fs *fs)
{
	struct zf_flush *flush = &fs->flush;

	zf_mutex_lock(&flush->lock);
	while (flush->submitted > 0)
		zf_dev_wait_progress(fs->dev, &flush->progress, &flush->lock);
	zf_mutex_unlock(&flush->lock);
	drop_appends(&flush->waiting);
	drop_appends(&flush->done);
	drop_appends(&flush->held);
	zf_block_pool_deinit(flush);
	zf_recent_free(flush->recent);
	zf_cond_deinit(&flush->progress);
	zf_mutex_deinit(&flush->lock);
}
