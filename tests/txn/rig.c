/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "alloc/reserve.h"
#include "alloc/zone.h"
#include "fs/mount/format.h"

#define KEY_TYPE 1u

const struct zf_geometry rig_tiny = {
	.zone_size = 64 * 1024,
	.zone_capacity = 64 * 1024,
	.zone_count = 16,
	.max_active = 6,
	.max_open = 6,
	.append_limit = 16 * 1024,
};

static void note_report(void *arg, enum zf_report_level level, const char *text)
{
	struct rig *rig = arg;

	rig->complaints += level == ZF_REPORT_ERROR;
	if (getenv("ZF_TEST_VERBOSE"))
		fprintf(stderr, "%d: %s\n", level, text);
}

static void open_device(struct rig *rig)
{
	struct zf_memory_options options = {0};
	struct zf_report report = {.fn = note_report, .arg = rig};

	if (rig->sim)
		assert_int_equal(zf_sim_open(rig->sim, &report, &rig->dev), 0);
	else
		assert_int_equal(zf_memory_open(rig->memory, &options, &report, &rig->dev), 0);
}

int rig_try_mount(struct rig *rig)
{
	struct zf_mount_options options = {.cache_bytes = 1 << 20};
	struct zf_report report = {.fn = note_report, .arg = rig};
	int r;

	open_device(rig);
	r = zf_fs_mount(rig->dev, &options, &report, &rig->fs);
	if (r < 0) {
		zf_dev_close(rig->dev);
		rig->dev = NULL;
		return r;
	}
	rig->txn = zf_fs_txn(rig->fs);
	return 0;
}

void rig_mount(struct rig *rig)
{
	assert_int_equal(rig_try_mount(rig), 0);
}

void rig_open(struct rig *rig, const struct zf_geometry *geometry, uint64_t sim_seed)
{
	rig_open_copies(rig, geometry, sim_seed, 1);
}

void rig_open_copies(struct rig *rig, const struct zf_geometry *geometry, uint64_t sim_seed,
		     uint8_t copies)
{
	struct zf_format_options options = {
		.node_size = 4096, .fsid = {1}, .metadata_copies = copies};
	struct zf_report report = {.fn = note_report, .arg = rig};

	*rig = (struct rig){.next_value = 1};
	if (sim_seed)
		rig->sim = zf_sim_new(geometry, sim_seed);
	else
		assert_int_equal(zf_memory_new(geometry, &rig->memory), 0);
	open_device(rig);
	assert_int_equal(zf_fs_format(rig->dev, &options, &report), 0);
	zf_dev_close(rig->dev);
	rig_mount(rig);
}

void rig_abandon(struct rig *rig)
{
	zf_fs_abandon(rig->fs);
	zf_dev_close(rig->dev);
	rig->fs = NULL;
	rig->dev = NULL;
}

void rig_close(struct rig *rig)
{
	if (rig->fs)
		rig_abandon(rig);
	zf_memory_free(rig->memory);
	zf_sim_free(rig->sim);
}

int rig_put_in(struct rig *rig, struct zf_trans *trans, unsigned int n, size_t len)
{
	uint8_t bytes[1024] = {0};
	struct zf_key key = ZF_KEY(n, KEY_TYPE, 0);
	uint32_t value = rig->next_value;
	int r;

	assert(n < RIG_ITEMS && len >= sizeof(value) && len <= sizeof(bytes));
	memcpy(bytes, &value, sizeof(value));
	r = zf_tree_set(zf_fs_forest(rig->fs), trans->writer, ZF_TREE_SHARE, &key, bytes, len);
	if (r == 0) {
		rig->now.value[n] = value;
		rig->next_value++;
	}
	return r;
}

int rig_put(struct rig *rig, unsigned int n, size_t len)
{
	struct zf_trans trans;
	int r = zf_trans_join(rig->txn, ZF_RESERVE_NORMAL, 1, true, &trans);

	if (r < 0)
		return r;
	r = rig_put_in(rig, &trans, n, len);
	zf_trans_leave(&trans);
	return r;
}

int rig_delete(struct rig *rig, unsigned int n)
{
	struct zf_key key = ZF_KEY(n, KEY_TYPE, 0);
	struct zf_trans trans;
	int r = zf_trans_join(rig->txn, ZF_RESERVE_FREEING, 1, true, &trans);

	if (r < 0)
		return r;
	r = zf_tree_delete(zf_fs_forest(rig->fs), trans.writer, ZF_TREE_SHARE, &key);
	if (r == 0)
		rig->now.value[n] = 0;
	zf_trans_leave(&trans);
	return r;
}

void rig_assert_holds(struct rig *rig, const struct rig_table *table)
{
	for (unsigned int n = 0; n < RIG_ITEMS; n++) {
		struct zf_key key = ZF_KEY(n, KEY_TYPE, 0);
		uint32_t value = 0;
		int r = zf_tree_lookup(zf_fs_forest(rig->fs), ZF_TREE_SHARE, &key, &value,
				       sizeof(value), NULL);

		assert_int_equal(r, table->value[n] ? 0 : -ENOENT);
		assert_int_equal(value, table->value[n]);
	}
}

struct recount {
	struct rig *rig;
	bool system;
	uint32_t *live, *system_live;
};

static int count_node(void *arg, const struct zf_node_expect *expect, const void *node, int error)
{
	struct recount *recount = arg;
	uint64_t zone = expect->ptr.address[0] / zf_dev_geometry(recount->rig->dev)->zone_size;

	(*(recount->system ? &recount->system_live[zone] : &recount->live[zone]))++;
	return error;
}

void rig_assert_sound(struct rig *rig)
{
	const struct zf_geometry *geometry = zf_dev_geometry(rig->dev);
	uint32_t *live = calloc(2 * geometry->zone_count, sizeof(*live));
	struct recount recount = {rig, false, live, live + geometry->zone_count};

	for (enum zf_tree_id tree = ZF_TREE_ROOT; tree < ZF_TREE_COUNT; tree++) {
		recount.system = tree == ZF_TREE_ROOT || tree == ZF_TREE_ZONE;
		assert_int_equal(zf_tree_walk(zf_fs_forest(rig->fs), tree, count_node, &recount),
				 0);
	}
	for (uint32_t z = 2; z < geometry->zone_count; z++) {
		struct zf_zone zone;

		zf_alloc_get_zone(zf_fs_alloc(rig->fs), z, &zone);
		if (zone.role != ZF_ROLE_META)
			continue;
		assert_int_equal(zone.live, recount.live[z]);
		assert_int_equal(zone.system_live, recount.system_live[z]);
	}
	free(live);
}
