/* SPDX-License-Identifier: MIT */
#include "fs/replay_rig.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/data/data.h"
#include "fs/data/describe.h"
#include "fs/core/inode.h"
#include "superblock/ring.h"
#include "support/log_record.h"

struct replay_item {
	struct zf_key key;
	size_t len;
	uint8_t *value;
};

/* ---- what the tree holds ---- */

static int take_item(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	struct replay_items *items = arg;

	if (items->count == items->room) {
		items->room = items->room ? 2 * items->room : 64;
		items->at = reallocarray(items->at, items->room, sizeof(*items->at));
	}
	items->at[items->count] = (struct replay_item){.key = *key, .len = len};
	items->at[items->count].value = malloc(len + 1);
	memcpy(items->at[items->count++].value, value, len);
	return 0;
}

static void free_items(struct replay_items *items)
{
	for (size_t i = 0; i < items->count; i++)
		free(items->at[i].value);
	free(items->at);
	*items = (struct replay_items){0};
}

static void snapshot(struct replay_rig *rig, struct replay_items *items)
{
	struct zf_key from = ZF_KEY_MIN, to = ZF_KEY_MAX;

	free_items(items);
	assert_int_equal(
		zf_tree_scan(zf_fs_forest(rig->rig.fs), ZF_TREE_FS, &from, &to, take_item, items),
		0);
}

static int compare_keys(const struct zf_key *a, const struct zf_key *b)
{
	if (a->objectid != b->objectid)
		return a->objectid < b->objectid ? -1 : 1;
	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static bool is_link(const struct replay_items *items, uint64_t ino)
{
	for (size_t i = 0; i < items->count; i++)
		if (items->at[i].key.objectid == ino && items->at[i].key.type == ZF_KEY_INODE)
			return S_ISLNK(zf_le32_get(
				((const struct zf_disk_inode *)items->at[i].value)->mode));
	return false;
}

/* Whether operations log changes of this item. */
static bool counts(const struct replay_items *items, const struct zf_key *key)
{
	if (key->type == ZF_KEY_INTENT)
		return false;
	return key->type != ZF_KEY_EXTENT || is_link(items, key->objectid);
}

static void log_difference(struct zf_log_body *body, const struct replay_items *before,
			   const struct replay_items *after)
{
	size_t i = 0, j = 0;

	while (i < before->count || j < after->count) {
		const struct replay_item *old = i < before->count ? &before->at[i] : NULL;
		const struct replay_item *new = j < after->count ? &after->at[j] : NULL;
		int order = !old ? 1 : !new ? -1 : compare_keys(&old->key, &new->key);

		if (order < 0) {
			if (counts(before, &old->key))
				zf_log_body_delete(body, &old->key);
			i++;
			continue;
		}
		if (counts(after, &new->key) &&
		    (order > 0 || old->len != new->len || memcmp(old->value, new->value, new->len)))
			zf_log_body_set(body, &new->key, new->value, new->len);
		i += order == 0;
		j++;
	}
}

/* ---- bodies ---- */

struct zf_log_body *replay_rig_body(struct replay_rig *rig, enum zf_log_body_type type)
{
	struct replay_body *body = &rig->bodies[rig->count++];

	assert_true(rig->count <= REPLAY_RIG_BODIES);
	body->number = ++rig->number;
	zf_log_body_begin(&body->body, type);
	return &body->body;
}

static void drop_bodies(struct replay_rig *rig)
{
	for (unsigned int i = 0; i < rig->count; i++)
		zf_log_body_end(&rig->bodies[i].body);
	rig->count = 0;
}

void replay_rig_begin(struct replay_rig *rig)
{
	snapshot(rig, &rig->before);
}

void replay_rig_end(struct replay_rig *rig)
{
	struct zf_log_body *body = replay_rig_body(rig, ZF_LOG_OPERATION);
	struct replay_items after = {0};

	snapshot(rig, &after);
	log_difference(body, &rig->before, &after);
	assert_int_equal(zf_log_body_error(body), 0);
	free_items(&after);
}

void replay_rig_resize(struct replay_rig *rig, uint64_t ino, uint64_t size)
{
	struct zf_log_body *body = replay_rig_body(rig, ZF_LOG_OPERATION);
	struct replay_items after = {0};

	snapshot(rig, &rig->before);
	data_rig_truncate(&rig->rig, ino, size);
	snapshot(rig, &after);
	zf_log_body_resize(body, ino, size);
	log_difference(body, &rig->before, &after);
	free_items(&after);
}

void replay_rig_state(struct replay_rig *rig, uint64_t ino)
{
	struct replay_body *body = &rig->bodies[rig->count++];
	struct zf_inode *inode;
	uint64_t mark;

	assert_true(rig->count <= REPLAY_RIG_BODIES);
	assert_int_equal(zf_inode_get(rig->rig.fs, ino, &inode), 0);
	assert_int_equal(zf_data_flush(inode, true), 0);
	zf_rwlock_wrlock(&inode->lock);
	assert_int_equal(zf_describe_inode(inode, NULL, &body->body, &mark), 0);
	zf_changes_clear(&inode->data.changes);
	zf_rwlock_unlock(&inode->lock);
	zf_inode_put(inode);
	body->number = ++rig->number;
}

/* ---- life ---- */

void replay_rig_read_super(struct replay_rig *rig)
{
	const struct zf_super *super;
	struct zf_ring *ring;
	unsigned int stepped_over;

	assert_int_equal(zf_ring_open(rig->rig.dev, &rig->rig.report, &ring), 0);
	assert_int_equal(zf_ring_newest(ring, &super, &stepped_over), 0);
	rig->super = *super;
	zf_ring_close(ring);
	assert_true(rig->super.log_zone[0] != ZF_SUPER_NO_ZONE);
}

void replay_rig_init(struct replay_rig *rig, const struct data_rig_options *options)
{
	memset(rig, 0, sizeof(*rig));
	data_rig_init(&rig->rig, options);
	replay_rig_commit(rig);
}

static void free_own(struct replay_rig *rig)
{
	drop_bodies(rig);
	free_items(&rig->before);
	zf_sim_free(rig->at_cut);
}

void replay_rig_deinit(struct replay_rig *rig)
{
	data_rig_deinit(&rig->rig);
	free_own(rig);
}

void replay_rig_drop(struct replay_rig *rig)
{
	data_rig_drop(&rig->rig);
	free_own(rig);
}

void replay_rig_commit(struct replay_rig *rig)
{
	assert_int_equal(zf_data_flush_all(rig->rig.fs, true), 0);
	assert_int_equal(zf_txn_commit(zf_fs_txn(rig->rig.fs), true), 0);
	replay_rig_read_super(rig);
	drop_bodies(rig);
	rig->number = rig->super.op_number;
}

static void write_records(struct replay_rig *rig, unsigned int per_record)
{
	uint64_t sequence = rig->super.log_sequence;

	for (unsigned int i = 0; i < rig->count; i += per_record) {
		struct log_record_body bodies[REPLAY_RIG_BODIES];
		unsigned int n = 0;

		for (; n < per_record && i + n < rig->count; n++)
			bodies[n] = (struct log_record_body){
				.body = &rig->bodies[i + n].body,
				.number = rig->bodies[i + n].number,
			};
		log_record_append(rig->rig.dev, &rig->super, 0, ++sequence, bodies, n);
	}
}

static void open_device(struct replay_rig *rig)
{
	assert_int_equal(zf_sim_open(rig->rig.sim, &rig->rig.report, &rig->rig.dev), 0);
}

static void close_device(struct replay_rig *rig)
{
	zf_dev_close(rig->rig.dev);
	rig->rig.dev = NULL;
}

void replay_rig_crash(struct replay_rig *rig, unsigned int per_record)
{
	struct data_rig *data = &rig->rig;

	assert_int_equal(zf_dev_flush(data->dev), 0);
	zf_fs_abandon(data->fs);
	data->fs = NULL;
	close_device(rig);
	zf_sim_crash(data->sim, data->options.seed + 77, ZF_SIM_CUT_DEVICE);
	open_device(rig);
	write_records(rig, per_record);
	assert_int_equal(zf_dev_flush(data->dev), 0);
	close_device(rig);
	if (rig->host_stops)
		zf_sim_crash(data->sim, data->options.seed + 78, ZF_SIM_CUT_HOST);
	zf_sim_free(rig->at_cut);
	rig->at_cut = zf_sim_clone(data->sim);
	drop_bodies(rig);
}

static int64_t now(void *arg)
{
	struct data_rig *rig = arg;

	return rig->now_ns++;
}

int replay_rig_try_mount(struct replay_rig *rig, bool read_only)
{
	struct data_rig *data = &rig->rig;
	const struct zf_mount_options options = {
		.read_only = read_only,
		.dirty_bytes = data->options.dirty_bytes,
		.cache_bytes = data->options.cache_bytes,
		.now_ns = now,
		.now_arg = data,
	};
	int r;

	open_device(rig);
	r = zf_fs_mount(data->dev, &options, &data->report, &data->fs);
	if (r < 0)
		close_device(rig);
	return r;
}

void replay_rig_mount(struct replay_rig *rig)
{
	assert_int_equal(replay_rig_try_mount(rig, false), 0);
	data_rig_check(&rig->rig);
}

static void unmount(struct replay_rig *rig)
{
	assert_int_equal(zf_fs_unmount(rig->rig.fs), 0);
	rig->rig.fs = NULL;
	close_device(rig);
}

void replay_rig_remount(struct replay_rig *rig)
{
	unmount(rig);
	replay_rig_mount(rig);
}

/* ---- cuts ---- */

static void restore(struct replay_rig *rig)
{
	zf_sim_free(rig->rig.sim);
	rig->rig.sim = zf_sim_clone(rig->at_cut);
}

/* A recovery that was cut leaves the log unchanged and at most raises the counters, or was
 * complete. */
static void check_log_stays(struct replay_rig *rig)
{
	struct zf_super was = rig->super, *is = &rig->super;

	open_device(rig);
	replay_rig_read_super(rig);
	close_device(rig);
	assert_true(is->op_number >= was.op_number);
	if (is->log_epoch == was.log_epoch) {
		assert_int_equal(is->log_sequence, was.log_sequence);
		assert_memory_equal(is->log_zone, was.log_zone, sizeof(was.log_zone));
		assert_memory_equal(is->log_pointer, was.log_pointer, sizeof(was.log_pointer));
	} else {
		assert_int_equal(is->log_epoch, was.log_epoch + 1);
	}
	rig->super = was;
}

/* False: the mount was complete before that command. */
static bool cut_at(struct replay_rig *rig, uint64_t command)
{
	struct data_rig *data = &rig->rig;
	bool cut;
	int r;

	restore(rig);
	zf_sim_set_cut(data->sim, zf_sim_commands(data->sim) + command);
	data->errors_expected = true;
	r = replay_rig_try_mount(rig, false);
	cut = zf_sim_is_cut(data->sim);
	if (r == 0) {
		zf_fs_abandon(data->fs);
		data->fs = NULL;
		close_device(rig);
	}
	zf_sim_crash(data->sim, command, ZF_SIM_CUT_DEVICE);
	data->errors_expected = false;
	data->errors = 0;
	check_log_stays(rig);
	return cut;
}

unsigned int replay_rig_cut_everywhere(struct replay_rig *rig,
				       void (*verify)(struct replay_rig *rig, void *arg), void *arg)
{
	unsigned int commands = 0;

	while (cut_at(rig, commands + 1)) {
		commands++;
		replay_rig_mount(rig);
		verify(rig, arg);
		unmount(rig);
	}
	restore(rig);
	replay_rig_mount(rig);
	verify(rig, arg);
	return commands;
}
