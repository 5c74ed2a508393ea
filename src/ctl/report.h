/* SPDX-License-Identifier: MIT */
/*
 * The commands that look into a filesystem, mounted or not: each makes a JSON object from a source.
 *
 * The daemon runs them on the filesystem that it serves (fuse/control_answer.h). zfusectl runs the
 * same code on a device that it has opened read-only, and prints the object, as text or as JSON.
 *
 * The commands for trees, superblocks and checks show the durable state, which is that of the
 * newest superblock. So on a mounted filesystem commits and resets are paused while such a command
 * runs (`durable`). Writers may notice that.
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
	/*
	 * The newest valid superblock; NULL: there is none. If mounted and not `durable`: the
	 * superblock that was mounted.
	 */
	const struct zf_super *super;
	unsigned int stepped_over;	/* damaged slots newer than `super` */
	struct zf_fs *fs;		/* NULL: not mounted and not mountable, or not needed */
	bool mounted;			/* fs belongs to a running daemon */
	bool older;			/* `super` is an older one that was asked for */
	const struct zf_report *report; /* may be NULL */
	/* Takes the parts of a long answer; NULL: the result is the whole answer. */
	const struct zf_control_parts *parts;
};

enum zf_report_need {
	ZF_NEED_RING,	 /* only the device and its ring */
	ZF_NEED_SUPER,	 /* a valid superblock */
	ZF_NEED_FS,	 /* fs, which may be mounted for this command only, read-only */
	ZF_NEED_MOUNT,	 /* a running daemon */
	ZF_NEED_WRITING, /* fs, which may be mounted for this command only, writable */
};

struct zf_report_command {
	const char *name;
	enum zf_report_need need;
	bool durable; /* reads the durable state, which commits must not change meanwhile */
	/*
	 * `args` is the request's object, NULL if it has none; it comes from outside and must be
	 * checked. Returns 0 and a new reference in *ret_result (which may be NULL for JSON null),
	 * or -errno and either nothing or a JSON string with a message for a person. Runs on a
	 * thread that may wait.
	 */
	int (*run)(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result);
	/*
	 * The answer is long. If the command is `durable`, no commit is made until the client has
	 * read the answer, so a client must not read it slowly.
	 */
	bool is_long;
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

/* Every record of the ring; which record wins, and why. */
int zf_report_super(const struct zf_report_source *source, struct json_object *args,
		    struct json_object **ret_result);
/*
 * One entry for each zone: what the device and the allocator (unmounted: the zone tree) know of it.
 * {"role", "condition"}: only zones of this role and condition, by their names, as "hot" and "em".
 * {"summary_above": N}: for a filesystem with more zones than N only "summary", with sums for each
 * role and condition.
 */
int zf_report_zones(const struct zf_report_source *source, struct json_object *args,
		    struct json_object **ret_result);
/*
 * {"tree": "root" | "fs" | "summary" | "share" | "zone"}: all nodes of the tree, parents first.
 * {"brief": true}: for leaves, the "first" and the "last" key instead of the items.
 */
int zf_report_tree(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result);
/*
 * {"address": N}: the node at this address, valid or not. {"hex": true}: also the node's bytes
 * ("dump", report_hex.h). zf_report_log() takes "hex", too, and so does zf_report_super(), for the
 * record that wins and for the damaged ones.
 */
int zf_report_node(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result);
/* The intent log: its zones, every valid record with its bodies, and what a mount would replay. */
int zf_report_log(const struct zf_report_source *source, struct json_object *args,
		  struct json_object **ret_result);
/*
 * {"ino": N} or {"path": "/a/b"}, from the filesystem's root: the inode, and where its data lies.
 */
int zf_report_file(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result);
/* {"ino": N}: a path of that inode, from the filesystem's root. */
int zf_report_path(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result);
/*
 * {"address": N}: the role of the zone at this address, and every file that has this byte, and at
 * which offset.
 */
int zf_report_resolve(const struct zf_report_source *source, struct json_object *args,
		      struct json_object **ret_result);
/* The parts of the total, in bytes. "available" and "unusable" are parts of these parts. */
int zf_report_df(const struct zf_report_source *source, struct json_object *args,
		 struct json_object **ret_result);
/* Counters since the mount. zfusectl shows them together with the daemon's "requests". */
int zf_report_stats(const struct zf_report_source *source, struct json_object *args,
		    struct json_object **ret_result);
/*
 * {"data": bool, "progress": bool}: messages, counts, "errors". With "progress", parts come before
 * the result, twice a second and at the end. Their only member is {"progress": {"done", "total"}},
 * in bytes.
 */
int zf_report_check(const struct zf_report_source *source, struct json_object *args,
		    struct json_object **ret_result);
int zf_report_status(const struct zf_report_source *source, struct json_object *args,
		     struct json_object **ret_result);
/* {"label": text}: sets the label of the filesystem; durable before the answer. */
int zf_report_set_label(const struct zf_report_source *source, struct json_object *args,
			struct json_object **ret_result);
/* Makes everything durable. */
int zf_report_sync(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result);
/*
 * Reclaim (fs/space/reclaim.h): "state": "working", "idle", "paused", or "off" if the filesystem is
 * read-only; the room in zones and the counters; "zone": the current victim.
 */
int zf_report_gc_status(const struct zf_report_source *source, struct json_object *args,
			struct json_object **ret_result);
/*
 * {"paused": bool}: pauses or resumes reclaim in the background. Answers with the status, as the
 * next two do.
 */
int zf_report_gc_pause(const struct zf_report_source *source, struct json_object *args,
		       struct json_object **ret_result);
/*
 * {"all": bool}: reclaims one victim, with `all` even one with little garbage. "outcome": "victim";
 * "none"; "no room": commits may give back zones to which its live data can be moved; "busy":
 * another thread reclaims at the moment, and perhaps for long.
 */
int zf_report_gc_step(const struct zf_report_source *source, struct json_object *args,
		      struct json_object **ret_result);
/*
 * One commit, and the resets that it allows. Two of them give back the zones that reclaim has
 * emptied.
 */
int zf_report_gc_settle(const struct zf_report_source *source, struct json_object *args,
			struct json_object **ret_result);
/*
 * {"place": the "place" of the last answer, "repair": bool}: one step of a scrub
 * (fs/space/scrub.h), the first step without a place. Answers with "data_bytes" and "node_bytes",
 * "skipped", "errors" (damaged places that were not repaired), "damage", an array of at most 1,000
 * places, and "place", unless this was the last step. The first answer also has "live_bytes", the
 * bytes that the scrub will read. Nodes are written anew only in a mount that may write.
 */
int zf_report_scrub_step(const struct zf_report_source *source, struct json_object *args,
			 struct json_object **ret_result);
/*
 * {"from": N}: the scrub of the mount (fs/mount/scrubber.h): "state": "none", "running",
 * "suspended" (because the filesystem is read-only), "paused", "finished", "cancelled"; times in
 * seconds since 1970, 0: not yet; what was verified; "damage", as in a step's answer, from the N-th
 * place on.
 */
int zf_report_scrub_status(const struct zf_report_source *source, struct json_object *args,
			   struct json_object **ret_result);
/*
 * {"rate": bytes a second; 0: the scrub makes way for other work}. Answers with the status, as the
 * next three do.
 */
int zf_report_scrub_start(const struct zf_report_source *source, struct json_object *args,
			  struct json_object **ret_result);
int zf_report_scrub_pause(const struct zf_report_source *source, struct json_object *args,
			  struct json_object **ret_result);
int zf_report_scrub_resume(const struct zf_report_source *source, struct json_object *args,
			   struct json_object **ret_result);
int zf_report_scrub_cancel(const struct zf_report_source *source, struct json_object *args,
			   struct json_object **ret_result);
/* The errors of the device (fs/space/faults.h), "since" a time. */
int zf_report_device_stats(const struct zf_report_source *source, struct json_object *args,
			   struct json_object **ret_result);
/* The same, and resets the counters. */
int zf_report_device_stats_reset(const struct zf_report_source *source, struct json_object *args,
				 struct json_object **ret_result);
/*
 * {"read_only": bool, "gc": bool, "commit_ms": n, "gc_zones" or "gc_percent": n}, each of them only
 * if it is to change (zf_fs_remount(), and the mount options of these names): null. The changes are
 * made in this order; after a failure the rest is not changed.
 */
int zf_report_remount(const struct zf_report_source *source, struct json_object *args,
		      struct json_object **ret_result);

/*
 * {"size": bytes}: makes the filesystem larger, so that its zones have this many bytes; without a
 * size, as large as its device is or can become.
 */
int zf_report_grow(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result);

/* ---- helpers of the commands ---- */

/*
 * A result with one long array. When the array has `part_max` elements, the result so far is handed
 * over as a part, and a new empty one begins. So members that are added before the first element
 * come before the array, and no more than `part_max` elements are ever in memory. If the source
 * takes no parts, the result holds the whole answer at the end.
 */
struct zf_report_list {
	const struct zf_control_parts *parts;
	const char *name;
	unsigned int part_max, count;
	struct json_object *result, *array;
};

/* -ENOMEM. After success, either zf_report_list_end() or zf_report_list_drop() must follow. */
int zf_report_list_begin(struct zf_report_list *list, const struct zf_report_source *source,
			 const char *name, unsigned int part_max);
/* Takes over the reference to `element`. An error: the client takes no more of the answer. */
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

/* The value of an item by its fields. The bytes may be anything, checked or not. */
struct json_object *zf_report_item_value(enum zf_tree_id tree, const struct zf_key *key,
					 const void *value, size_t len);

#endif
