/* SPDX-License-Identifier: MIT */
/*
 * The commands that look into a filesystem, mounted or not: each makes a JSON object from a source.
 *
 * The daemon runs them on the filesystem that it serves (fuse/control_answer.h); zfusectl
 * runs the same code on a device that it opened read-only, and prints the object, as text or as it
 * is.
 *
 * What they show of trees, superblocks and checks is the durable state, the newest superblock's. So
 * on a mounted filesystem commits and resets are paused while such a command runs (`durable`),
 * which writers may notice.
 */
#ifndef ZF_CTL_REPORT_H
#define ZF_CTL_REPORT_H

#include <json-c/json.h>

#include "btree/tree.h"
#include "ctl/ctl.h"
#include "fs/core/fs.h"
#include "superblock/ring.h"

/* What a command looks at. Everything belongs to the caller. */
struct zf_report_source {
	struct zf_dev *dev;
	struct zf_ring *ring;
	/* The newest valid one, NULL if there is none; mounted and not `durable`: the mounted one.
	 */
	const struct zf_super *super;
	unsigned int stepped_over;	/* damaged slots newer than it */
	struct zf_fs *fs;		/* NULL: neither mounted nor mountable, or not needed */
	bool mounted;			/* fs is a running daemon's */
	bool older;			/* `super` is not the newest, but one that was asked for */
	const struct zf_report *report; /* may be NULL */
	/* Of a long answer all but the end; NULL: the result is the whole answer. */
	const struct zf_control_parts *parts;
};

enum zf_report_need {
	ZF_NEED_RING,	 /* nothing but the device and its ring */
	ZF_NEED_SUPER,	 /* a valid superblock */
	ZF_NEED_FS,	 /* fs, be it mounted for this command only, read-only */
	ZF_NEED_MOUNT,	 /* a running daemon */
	ZF_NEED_WRITING, /* fs, be it mounted for this command only, to be written to */
};

struct zf_report_command {
	const char *name;
	enum zf_report_need need;
	bool durable; /* looks at the durable state: commits must not change it meanwhile */
	/*
	 * `args` is the request's object, NULL if it has none; it comes from outside: check it.
	 * Returns 0 and a new reference in *ret_result (which may be NULL for JSON null), or -errno
	 * and either nothing or a JSON string that tells a person more. Runs on a thread that may
	 * wait.
	 */
	int (*run)(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result);
	bool is_long; /* its answer, while it is durable: a slow reader must not hold it up */
};

/* NULL if there is no such command. */
const struct zf_report_command *zf_report_find(const char *name);

/* Runs a command after checking that the source has what it needs. */
int zf_report_run(const struct zf_report_command *command, const struct zf_report_source *source,
		  struct json_object *args, struct json_object **ret_result);

/* The same on the filesystem that a daemon serves. -EOPNOTSUPP: there is no such command. */
int zf_report_run_mounted(struct zf_fs *fs, const char *name, struct json_object *args,
			  const struct zf_control_parts *parts, struct json_object **ret_result);

/* ---- the commands, one file each ---- */

/* Every record of the ring, and which one wins, why. */
int zf_report_super(const struct zf_report_source *source, struct json_object *args,
		    struct json_object **ret_result);
/*
 * One entry a zone: what the device and the allocator (unmounted: the zone tree) say. {"role",
 * "condition"}: of these zones only, by their names, "hot" and "em". {"summary_above": N}: of a filesystem with
 * more zones than N only "summary", with sums for each role and condition.
 */
int zf_report_zones(const struct zf_report_source *source, struct json_object *args,
		    struct json_object **ret_result);
/*
 * {"tree": "root" | "fs" | "summary" | "share" | "zone"}: all its nodes, parents first. {"brief": true}: of
 * leaves the "first" and the "last" key in place of the items.
 */
int zf_report_tree(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result);
/*
 * {"address": N}: the node there, valid or not. {"hex": true}: its bytes ("dump", report_hex.h). So it is
 * in the next one, and in zf_report_super() of the record that counts and of those that are damaged.
 */
int zf_report_node(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result);
/* The intent log: its zones, every valid record with its bodies, and what a mount would replay. */
int zf_report_log(const struct zf_report_source *source, struct json_object *args,
		  struct json_object **ret_result);
/* {"ino": N} or {"path": "/a/b"}, from the filesystem's root: what stands where. */
int zf_report_file(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result);
/* {"ino": N}: a path of that inode, from the filesystem's root. */
int zf_report_path(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result);
/* {"address": N}: what the zone there is for, and every file that has the byte there, and where. */
int zf_report_resolve(const struct zf_report_source *source, struct json_object *args,
		      struct json_object **ret_result);
/* The parts of the total, in bytes; "available" and "unusable" are parts of those. */
int zf_report_df(const struct zf_report_source *source, struct json_object *args,
		 struct json_object **ret_result);
/* Since the mount. The daemon's "requests" belong to it too: zfusectl puts them together. */
int zf_report_stats(const struct zf_report_source *source, struct json_object *args,
		    struct json_object **ret_result);
/*
 * {"data": bool, "progress": bool}: messages, counts, "errors". With "progress" parts come before
 * them, twice a second and at the end, whose only member is {"progress": {"done", "total"}}, in bytes.
 */
int zf_report_check(const struct zf_report_source *source, struct json_object *args,
		    struct json_object **ret_result);
int zf_report_status(const struct zf_report_source *source, struct json_object *args,
		     struct json_object **ret_result);
/* {"label": text}: the filesystem's new one, durable before the answer. */
int zf_report_set_label(const struct zf_report_source *source, struct json_object *args,
			struct json_object **ret_result);
/* Makes everything durable. */
int zf_report_sync(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result);
/*
 * Reclaim (fs/space/reclaim.h): "state": "working", "idle", "paused", or "off" when nothing can be
 * written; the room in zones and the counters; "zone": the victim of this moment.
 */
int zf_report_gc_status(const struct zf_report_source *source, struct json_object *args,
			struct json_object **ret_result);
/* {"paused": bool}: the background's. Answers with the status, like the next two. */
int zf_report_gc_pause(const struct zf_report_source *source, struct json_object *args,
		       struct json_object **ret_result);
/*
 * {"all": bool}: one victim, even with little garbage if `all`. "outcome": "victim"; "none"; "no
 * room": commits may give back what its live data can be moved to; "busy": somebody else is at it,
 * and perhaps for long.
 */
int zf_report_gc_step(const struct zf_report_source *source, struct json_object *args,
		      struct json_object **ret_result);
/* One commit, and the resets that it allows: two of them give back what was emptied. */
int zf_report_gc_settle(const struct zf_report_source *source, struct json_object *args,
			struct json_object **ret_result);
/*
 * {"place": what the last step answered, "repair": bool}: one step of a scrub (fs/space/scrub.h), the
 * first one without a place. Answers with "data_bytes" and "node_bytes", "skipped", "errors" (damaged
 * places that were not repaired), "damage", an array of at most 1,000 places, and "place", unless that
 * was the last step. The first answer has "live_bytes", too: what there is to
 * read. Nodes are written anew only in a mount that may write.
 */
int zf_report_scrub_step(const struct zf_report_source *source, struct json_object *args,
			 struct json_object **ret_result);
/*
 * {"from": N}: the scrub of the mount (fs/mount/scrubber.h): "state": "none", "running", "suspended" (by
 * a filesystem that is read-only), "paused", "finished", "cancelled"; times in seconds since 1970, 0: not
 * yet; what was verified; "damage", as a step's, from the N-th place on.
 */
int zf_report_scrub_status(const struct zf_report_source *source, struct json_object *args,
			   struct json_object **ret_result);
/* {"rate": bytes a second, 0: making way for others}. Answers with the status, like the next three. */
int zf_report_scrub_start(const struct zf_report_source *source, struct json_object *args,
			  struct json_object **ret_result);
int zf_report_scrub_pause(const struct zf_report_source *source, struct json_object *args,
			  struct json_object **ret_result);
int zf_report_scrub_resume(const struct zf_report_source *source, struct json_object *args,
			   struct json_object **ret_result);
int zf_report_scrub_cancel(const struct zf_report_source *source, struct json_object *args,
			   struct json_object **ret_result);
/* What went wrong on the device (fs/space/faults.h), "since" then. */
int zf_report_device_stats(const struct zf_report_source *source, struct json_object *args,
			   struct json_object **ret_result);
/* The same, and resets it. */
int zf_report_device_stats_reset(const struct zf_report_source *source, struct json_object *args,
				 struct json_object **ret_result);
/*
 * {"read_only": bool, "gc": bool, "commit_ms": n, "gc_zones" or "gc_percent": n}, each of them only
 * if it is to change (zf_fs_remount(), and the mount options of these names): null. What stands
 * first here changes first, and a failure leaves out the rest.
 */
int zf_report_remount(const struct zf_report_source *source, struct json_object *args,
		      struct json_object **ret_result);

/*
 * {"size": bytes}: makes the filesystem larger, to so many bytes of zones; without a size to all
 * that its device has or can get.
 */
int zf_report_grow(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result);

/* ---- helpers of theirs ---- */

/*
 * A result with one long array. When that has `part_max` elements, what there is of the result is
 * handed over as a part, and goes on empty: so members that are added before the first element come
 * in front of the array, and no more than `part_max` elements are ever in memory. Where the source
 * takes no parts, the result is whole in the end.
 */
struct zf_report_list {
	const struct zf_control_parts *parts;
	const char *name;
	unsigned int part_max, count;
	struct json_object *result, *array;
};

/* -ENOMEM. Afterwards either zf_report_list_end() or zf_report_list_drop(). */
int zf_report_list_begin(struct zf_report_list *list, const struct zf_report_source *source,
			 const char *name, unsigned int part_max);
/* Takes over the reference to `element`. An error: nobody takes the answer any more. */
int zf_report_list_push(struct zf_report_list *list, struct json_object *element);
void zf_report_list_end(struct zf_report_list *list, struct json_object **ret_result);
void zf_report_list_drop(struct zf_report_list *list);

const char *zf_report_reclaim_state(struct zf_fs *fs);
struct json_object *zf_report_reclaim_stats(struct zf_fs *fs);

/* "data", "meta", ... */
const char *zf_report_tree_name(uint64_t tree);
const char *zf_report_key_type_name(uint64_t tree, uint8_t type);

/* A forest over the durable state. Trees whose root cannot be found are left out of *ret_trees (a
 * mask). */
int zf_report_open_forest(const struct zf_report_source *source, const struct zf_report *report,
			  struct zf_forest **ret_forest, unsigned int *ret_trees);

/* The value of an item by its fields; of any bytes, checked or not. */
struct json_object *zf_report_item_value(enum zf_tree_id tree, const struct zf_key *key,
					 const void *value, size_t len);

#endif
