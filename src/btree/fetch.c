/* SPDX-License-Identifier: MIT */
/* Reads nodes: tries each copy, verifies, and retries because a pointer may have become stale. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "btree/forest.h"

void zf_fetch_init(struct zf_fetch *fetch)
{
	fetch->failures = 0;
	fetch->held_count = 0;
	fetch->dispense = false;
}

void zf_fetch_deinit(struct zf_fetch *fetch)
{
	for (unsigned int i = 0; i < fetch->held_count && i < ZF_FETCH_HELD; i++)
		zf_cnode_put(fetch->held[i]);
}

static void hold(struct zf_fetch *fetch, struct zf_cnode *node)
{
	struct zf_cnode **place = &fetch->held[fetch->held_count % ZF_FETCH_HELD];

	if (fetch->held_count >= ZF_FETCH_HELD)
		zf_cnode_put(*place);
	*place = node;
	fetch->held_count++;
}

static int read_copy(struct zf_forest *forest, const struct zf_node_expect *expect,
		     unsigned int copy, void *buf, const struct zf_report *report)
{
	uint64_t address = expect->ptr.address[copy];
	int r = zf_dev_read_buf(forest->dev, address, buf, forest->shape.node_size);
	if (r == 0)
		return zf_node_check(&forest->shape, buf, expect, true, report);
	zf_report(report, ZF_REPORT_ERROR, "cannot read node at %" PRIu64 ": %s", address,
		  strerror(-r));
	return -EIO;
}

/* reports[i] gets the messages about copy i. */
static int read_copies(struct zf_forest *forest, const struct zf_node_expect *expect, void *buf,
		       const struct zf_report *const reports[ZF_COPIES_MAX])
{
	int r = -EUCLEAN;

	for (unsigned int i = 0; i < forest->shape.copies; i++) {
		r = read_copy(forest, expect, i, buf, reports[i]);
		if (r == 0)
			return 0;
	}
	return r;
}

int zf_forest_read_node(struct zf_forest *forest, const struct zf_node_expect *expect, void *buf)
{
	const struct zf_report *const reports[ZF_COPIES_MAX] = {&forest->report, &forest->report};

	return read_copies(forest, expect, buf, reports);
}

int zf_forest_read_copy(struct zf_forest *forest, const struct zf_node_expect *expect,
			unsigned int copy, void *buf)
{
	int r = read_copy(forest, expect, copy, buf, &forest->report);

	if (r < 0)
		zf_forest_count(&forest->damaged);
	return r;
}

struct capture {
	struct zf_report report;
	char *message;
	size_t size;
};

static void capture_message(void *arg, enum zf_report_level level, const char *message)
{
	struct capture *capture = arg;

	snprintf(capture->message, capture->size, "%s", message);
}

static int read_captured(struct zf_forest *forest, struct zf_fetch *fetch, void *buf)
{
	struct capture captures[ZF_COPIES_MAX];
	const struct zf_report *reports[ZF_COPIES_MAX];

	for (unsigned int i = 0; i < ZF_COPIES_MAX; i++) {
		captures[i] = (struct capture){
			.report = {.fn = capture_message, .arg = &captures[i]},
			.message = fetch->messages[i],
			.size = sizeof(fetch->messages[i]),
		};
		fetch->messages[i][0] = '\0';
		reports[i] = &captures[i].report;
	}
	return read_copies(forest, &fetch->want, buf, reports);
}

static void report_captured(struct zf_forest *forest, const struct zf_fetch *fetch,
			    enum zf_report_level level)
{
	for (unsigned int i = 0; i < ZF_COPIES_MAX; i++) {
		if (fetch->messages[i][0] == '\0')
			continue;
		zf_forest_count(&forest->damaged);
		zf_report(&forest->report, level, "%s", fetch->messages[i]);
	}
}

static bool is_same_pointer(const struct zf_node_expect *a, const struct zf_node_expect *b)
{
	return memcmp(a->ptr.address, b->ptr.address, sizeof(a->ptr.address)) == 0 &&
	       a->ptr.generation == b->ptr.generation && a->ptr.csum == b->ptr.csum &&
	       a->owner == b->owner && a->level == b->level;
}

static struct zf_cnode *new_clean(struct zf_forest *forest, const struct zf_node_expect *expect)
{
	struct zf_cnode *node = zf_cnode_new(&forest->cache);

	if (!node)
		return NULL;
	memcpy(node->address, expect->ptr.address, sizeof(node->address));
	node->generation = expect->ptr.generation;
	node->owner = expect->owner;
	node->level = expect->level;
	return node;
}

int zf_fetch_run(struct zf_forest *forest, struct zf_fetch *fetch)
{
	struct zf_cnode *node;
	int r;

	zf_lock_assert_outside(ZF_RANK_TREE);
	if (fetch->failures > 0 && !is_same_pointer(&fetch->want, &fetch->failed))
		fetch->failures = 0;
	if (fetch->failures == 2) {
		report_captured(forest, fetch, ZF_REPORT_ERROR);
		return fetch->error;
	}
	node = new_clean(forest, &fetch->want);
	if (!node)
		return -ENOMEM;
	zf_forest_count(&forest->misses);
	r = read_captured(forest, fetch, node->data);
	if (r < 0) {
		zf_cnode_put(node);
		fetch->dispense |= fetch->dispensable;
		fetch->error = r;
		fetch->failed = fetch->want;
		fetch->failures++;
		return 0;
	}
	/* If a copy failed and another one was read, this warns of the failed copy. */
	report_captured(forest, fetch, ZF_REPORT_WARNING);
	hold(fetch, zf_cache_insert_clean(&forest->cache, node));
	fetch->failures = 0;
	return 0;
}

int zf_fetch_look(struct zf_forest *forest, enum zf_tree_id id, zf_look_fn *look, void *arg)
{
	struct zf_tree *tree = zf_forest_tree(forest, id);
	struct zf_fetch fetch;
	int r;

	zf_fetch_init(&fetch);
	do {
		zf_rwlock_rdlock(&tree->lock);
		r = look(forest, id, &fetch, arg);
		zf_rwlock_unlock(&tree->lock);
	} while (r == -EAGAIN && (r = zf_fetch_run(forest, &fetch)) == 0);
	zf_fetch_deinit(&fetch);
	return r;
}
