/* SPDX-License-Identifier: MIT */
#include "metrics_text.h"

#include <string.h>

#include "base/bits.h"
#include "exposition.h"
#include "text.h"

/* docs/monitoring.md lists the families, and a test compares the list with the output. */

struct family;

/* Prints the family's samples of one filesystem. */
typedef void print_fn(FILE *out, const struct family *family, struct json_object *filesystem);

#define SERIES_MAX 7

struct family {
	const char *name, *type, *help;
	const char *label; /* distinguishes the series; NULL: there is one series */
	/* The path of each value: "stats.log.records". A missing value is left out. */
	struct {
		const char *value, *path;
	} series[SERIES_MAX];
	const char *factor;	/* the path of a factor of all values */
	const char *members;	/* instead of `series`: an object with one number for each ... */
	const char *left_out;	/* ... except this member */
	const char *sum;	/* of zones: a member of their sums */
	bool is_ns;		/* nanoseconds, printed in seconds */
	bool is_0_when_missing; /* a missing value is 0, if the daemon answers */
	print_fn *print;	/* instead of all that */
};

/* ---- values ---- */

/* "a.b" is the member b of the member a. NULL: there is no such member. */
static struct json_object *find(struct json_object *object, const char *path)
{
	char key[64];

	while (object && *path) {
		const char *end = strchrnul(path, '.');

		snprintf(key, sizeof(key), "%.*s", (int)(end - path), path);
		object = zf_text_member(object, key);
		path = *end ? end + 1 : end;
	}
	return object;
}

static uint64_t find_u64(struct json_object *object, const char *path)
{
	return json_object_get_uint64(find(object, path));
}

static const char *find_text(struct json_object *object, const char *path)
{
	return json_object_get_string(find(object, path));
}

static bool is_up(struct json_object *filesystem)
{
	return json_object_get_boolean(zf_text_member(filesystem, "up"));
}

static void print_sample(FILE *out, const struct family *family, struct json_object *filesystem,
			 const char *value_of_label, uint64_t value)
{
	const struct zf_expo_label labels[] = {
		{"device", zf_text_string(filesystem, "device")},
		{family->label, value_of_label},
	};

	zf_expo_name(out, family->name, "", labels, family->label ? 2 : 1);
	if (family->is_ns)
		zf_expo_seconds(out, value);
	else
		zf_expo_number(out, value);
}

static void print_series(FILE *out, const struct family *family, struct json_object *filesystem)
{
	uint64_t factor = family->factor ? find_u64(filesystem, family->factor) : 1;

	for (size_t i = 0; i < SERIES_MAX && family->series[i].path; i++) {
		struct json_object *value = find(filesystem, family->series[i].path);

		if (value || (family->is_0_when_missing && is_up(filesystem)))
			print_sample(out, family, filesystem, family->series[i].value,
				     json_object_get_uint64(value) * factor);
	}
}

static void print_members(FILE *out, const struct family *family, struct json_object *filesystem)
{
	struct json_object *object = find(filesystem, family->members);

	if (!object)
		return;
	json_object_object_foreach(object, key, value)
	{
		if (!family->left_out || strcmp(key, family->left_out) != 0)
			print_sample(out, family, filesystem, key, json_object_get_uint64(value));
	}
}

/* ---- families with a print function ---- */

static void print_info(FILE *out, const struct family *family, struct json_object *filesystem)
{
	const struct zf_expo_label labels[] = {
		{"device", zf_text_string(filesystem, "device")},
		{"device_kind", find_text(filesystem, "status.device_kind")},
		{"append", find_text(filesystem, "status.append")},
		{"uuid", find_text(filesystem, "status.uuid")},
		{"label", find_text(filesystem, "status.label")},
		{"mountpoint", find_text(filesystem, "daemon.mountpoint")},
		{"transport", find_text(filesystem, "daemon.transport")},
		{"version", find_text(filesystem, "daemon.version")},
	};

	if (!is_up(filesystem))
		return;
	zf_expo_name(out, family->name, "", labels, ZF_ARRAY_SIZE(labels));
	zf_expo_number(out, 1);
}

/* What failed, and with which error. */
static void print_failed(FILE *out, const struct family *family, struct json_object *filesystem)
{
	const char *what = find_text(filesystem, "status.failed");
	const char *error = find_text(filesystem, "status.error");
	char reason[256];

	if (!is_up(filesystem))
		return;
	snprintf(reason, sizeof(reason), "%s%s%s", what ? what : "", what && error ? ": " : "",
		 error ? error : "");
	print_sample(out, family, filesystem, reason, what || error);
}

static void print_zones(FILE *out, const struct family *family, struct json_object *filesystem)
{
	struct json_object *sums = find(filesystem, "zones.summary");

	for (size_t i = 0; sums && i < json_object_array_length(sums); i++) {
		struct json_object *sum = json_object_array_get_idx(sums, i);
		const struct zf_expo_label labels[] = {
			{"device", zf_text_string(filesystem, "device")},
			{"role", zf_text_string(sum, "role")},
			{"condition", zf_text_string(sum, "condition_name")},
		};

		zf_expo_name(out, family->name, "", labels, ZF_ARRAY_SIZE(labels));
		zf_expo_number(out, zf_text_u64(sum, family->sum));
	}
}

/* ---- a histogram for each kind of requests ---- */

static void print_bucket(FILE *out, const struct family *family, struct zf_expo_label labels[3],
			 const char *bound, uint64_t count)
{
	labels[2] = (struct zf_expo_label){"le", bound};
	zf_expo_name(out, family->name, "_bucket", labels, 3);
	zf_expo_number(out, count);
}

/* Prints cumulative buckets: each with the counts of all buckets below. The last has no bound. */
static void print_histogram(FILE *out, const struct family *family, struct zf_expo_label labels[3],
			    struct json_object *bounds, struct json_object *latency)
{
	struct json_object *counts = zf_text_member(latency, "counts");
	size_t bound_count = json_object_array_length(bounds);
	char bound[ZF_EXPO_SECONDS_MAX];
	uint64_t sum = 0;

	for (size_t i = 0; i < json_object_array_length(counts); i++) {
		sum += json_object_get_uint64(json_object_array_get_idx(counts, i));
		if (i < bound_count)
			zf_expo_print_seconds(
				json_object_get_uint64(json_object_array_get_idx(bounds, i)),
				bound);
		print_bucket(out, family, labels, i < bound_count ? bound : "+Inf", sum);
	}
	zf_expo_name(out, family->name, "_sum", labels, 2);
	zf_expo_seconds(out, zf_text_u64(latency, "total_ns"));
	zf_expo_name(out, family->name, "_count", labels, 2);
	zf_expo_number(out, sum);
}

static void print_latencies(FILE *out, const struct family *family, struct json_object *filesystem)
{
	struct json_object *bounds = find(filesystem, "latencies.bounds_ns");
	struct json_object *requests = find(filesystem, "latencies.requests");

	if (!bounds || !requests)
		return;
	json_object_object_foreach(requests, operation, latency)
	{
		struct zf_expo_label labels[3] = {
			{"device", zf_text_string(filesystem, "device")},
			{family->label, operation},
		};

		print_histogram(out, family, labels, bounds, latency);
	}
}

/* ---- the table ---- */

static const char counter[] = "counter", gauge[] = "gauge";

static const struct family families[] = {
	/* The filesystem. */
	{"zfuse_up", gauge, "Whether the daemon of the mounted filesystem answers.",
	 .series = {{NULL, "up"}}},
	{"zfuse_info", gauge, "Always 1; the labels tell what is mounted, and by which version.",
	 .print = print_info},
	{"zfuse_read_only", gauge,
	 "Whether nothing can be written: mounted so, remounted so, or because something failed.",
	 .series = {{NULL, "status.read_only"}}},
	{"zfuse_failed", gauge,
	 "Whether something failed that made the filesystem read-only, and what.",
	 .label = "reason", .print = print_failed},
	{"zfuse_retired_zones", gauge, "Zones that failed and are not used any more.",
	 .series = {{NULL, "status.retired_zones"}}, .is_0_when_missing = true},
	{"zfuse_lost_bytes", gauge, "Live bytes in zones that cannot be read.",
	 .series = {{NULL, "status.lost_bytes"}}, .is_0_when_missing = true},

	/* Space. */
	{"zfuse_size_bytes", gauge, "Space for data and metadata: the sum of the parts.",
	 .series = {{NULL, "df.total"}}},
	{"zfuse_space_bytes", gauge, "Where the space is, in parts: see zfusectl df.",
	 .label = "part",
	 .series = {{"live_data", "df.live_data"},
		    {"live_metadata", "df.live_metadata"},
		    {"in_place", "df.in_place"},
		    {"kept", "df.kept"},
		    {"reserved", "df.reserved"},
		    {"reclaimable", "df.reclaimable"},
		    {"free", "df.free"}}},
	{"zfuse_available_bytes", gauge, "What df(1) shows as available.",
	 .series = {{NULL, "df.available"}}},
	{"zfuse_inodes", gauge, "Inodes in use.", .series = {{NULL, "df.inodes"}}},
	{"zfuse_inodes_max", gauge, "Inodes that there can be.",
	 .series = {{NULL, "df.inodes_max"}}},
	{"zfuse_zones", gauge, "Zones, by what they are used for and by their condition.",
	 .sum = "zones", .print = print_zones},
	{"zfuse_zones_written_bytes", gauge, "What is below the write pointers of these zones.",
	 .sum = "written", .print = print_zones},
	{"zfuse_zones_live_bytes", gauge, "What is live in these zones.", .sum = "live",
	 .print = print_zones},

	/* Reclaim. */
	{"zfuse_empty_zones", gauge, "Empty zones that data can have.",
	 .series = {{NULL, "gc_status.room.empty"}}},
	{"zfuse_coming_zones", gauge, "Zones that the next commits make empty.",
	 .series = {{NULL, "gc_status.room.coming"}}},
	{"zfuse_empty_zones_target", gauge,
	 "Reclaim starts with fewer empty and coming zones than that.",
	 .series = {{NULL, "gc_status.room.target"}}},
	{"zfuse_reclaim_paused", gauge, "Whether reclaim in the background is paused.",
	 .series = {{NULL, "gc_status.paused"}}},
	{"zfuse_reclaim_victims_total", counter, "Zones that reclaim moved live data out of.",
	 .series = {{NULL, "stats.reclaim.victims"}}},
	{"zfuse_reclaim_meta_victims_total", counter, "Zones that reclaim moved nodes out of.",
	 .series = {{NULL, "stats.reclaim.meta_victims"}}},
	{"zfuse_reclaim_emptied_total", counter, "Victims that were emptied wholly.",
	 .series = {{NULL, "stats.reclaim.emptied"}}},
	{"zfuse_reclaim_stuck_total", counter, "Victims with blocks that could not be read.",
	 .series = {{NULL, "stats.reclaim.stuck"}}},
	{"zfuse_reclaim_moved_bytes_total", counter, "Live data that reclaim moved.",
	 .series = {{NULL, "stats.reclaim.moved_bytes"}}},
	{"zfuse_reclaim_vain_bytes_total", counter,
	 "Data that reclaim copied in vain, because it changed meanwhile.",
	 .series = {{NULL, "stats.reclaim.changed_bytes"}}},
	{"zfuse_room_waits_total", counter, "How often a writer waited for room.",
	 .series = {{NULL, "stats.reclaim.waits"}}},
	{"zfuse_room_wait_seconds_total", counter, "How long writers waited for room.",
	 .series = {{NULL, "stats.reclaim.wait_ns"}}, .is_ns = true},

	/* Requests. */
	{"zfuse_requests_total", counter, "Requests that the kernel has sent.",
	 .label = "operation", .members = "requests", .left_out = "waited"},
	{"zfuse_requests_waited_total", counter, "Requests that a worker had to wait for.",
	 .series = {{NULL, "requests.waited"}}},
	{"zfuse_request_duration_seconds", "histogram",
	 "From when the daemon gets a request until it has answered it.", .label = "operation",
	 .print = print_latencies},
	{"zfuse_user_written_bytes_total", counter,
	 "Bytes that successful WRITE requests have written.",
	 .series = {{NULL, "latencies.write_bytes"}}},

	/* The device. */
	{"zfuse_device_commands_total", counter, "Commands that the device has completed.",
	 .label = "command",
	 .series = {{"read", "stats.device.reads"},
		    {"append", "stats.device.appends"},
		    {"write", "stats.device.writes"},
		    {"flush", "stats.device.flushes"},
		    {"reset", "stats.device.resets"},
		    {"finish", "stats.device.finishes"}}},
	{"zfuse_device_fua_commands_total", counter, "Appends and writes among them that were FUA.",
	 .series = {{NULL, "stats.device.fua_writes"}}},
	{"zfuse_device_bytes_total", counter,
	 "What these commands transferred; write_ahead: zeroes ahead of the pointers of an image.",
	 .label = "command",
	 .series = {{"read", "stats.device.read_bytes"},
		    {"append", "stats.device.append_bytes"},
		    {"write", "stats.device.write_bytes"},
		    {"write_ahead", "stats.device.ahead_bytes"}}},
	{"zfuse_device_errors_total", counter, "Commands that failed, over all mounts.",
	 .label = "command",
	 .series = {{"read", "stats.faults.read"},
		    {"write", "stats.faults.write"},
		    {"other", "stats.faults.other"}}},
	{"zfuse_written_bytes_total", counter,
	 "Bytes written, by the role of the zone; without superblocks and writes in place.",
	 .label = "role", .members = "stats.written"},
	{"zfuse_checksum_errors_total", counter,
	 "Blocks of data that did not match their checksums, over all mounts.",
	 .series = {{NULL, "stats.faults.data_checksum"}}},
	{"zfuse_damaged_nodes_total", counter,
	 "How often a copy of a metadata node could not be read or failed its verification, over "
	 "all mounts.",
	 .series = {{NULL, "stats.faults.damaged_nodes"}}},

	/* Commits, the log, memory. */
	{"zfuse_commits_total", counter, "Commits.", .series = {{NULL, "stats.commits.count"}}},
	{"zfuse_commit_seconds_total", counter, "How long commits took, together.",
	 .series = {{NULL, "stats.commits.total_ns"}}, .is_ns = true},
	{"zfuse_commit_longest_seconds", gauge, "How long the longest commit took.",
	 .series = {{NULL, "stats.commits.longest_ns"}}, .is_ns = true},
	{"zfuse_freeze_longest_seconds", gauge, "How long a commit held up operations, at most.",
	 .series = {{NULL, "stats.commits.longest_freeze_ns"}}, .is_ns = true},
	{"zfuse_nodes_written_total", counter, "Nodes that commits have written.",
	 .series = {{NULL, "stats.commits.nodes_written"}}},
	{"zfuse_log_records_total", counter, "Records that were written to the log.",
	 .series = {{NULL, "stats.log.records"}}},
	{"zfuse_log_bodies_total", counter, "Operations and states of files in these records.",
	 .series = {{NULL, "stats.log.bodies"}}},
	{"zfuse_log_bytes_total", counter, "The size of these records, with their data.",
	 .series = {{NULL, "stats.log.bytes"}}},
	{"zfuse_log_syncs_total", counter, "Calls of fsync and the like that these records served.",
	 .series = {{NULL, "stats.log.parts"}}},
	{"zfuse_log_commits_instead_total", counter,
	 "Calls of fsync and the like that took a commit.",
	 .series = {{NULL, "stats.log.commits_instead"}}},
	{"zfuse_log_failures_total", counter, "Records that could not be written.",
	 .series = {{NULL, "stats.log.failures"}}},
	{"zfuse_log_switches_total", counter, "How often the log went on in another zone.",
	 .series = {{NULL, "stats.log.switches"}}},
	{"zfuse_cache_hits_total", counter, "Nodes that were found in memory.",
	 .series = {{NULL, "stats.cache.hits"}}},
	{"zfuse_cache_misses_total", counter, "Nodes that had to be read.",
	 .series = {{NULL, "stats.cache.misses"}}},
	{"zfuse_cache_bytes", gauge, "Nodes in memory.", .series = {{NULL, "stats.cache.nodes"}},
	 .factor = "status.node_size"},
	{"zfuse_cache_dirty_bytes", gauge, "Nodes in memory that are not written yet.",
	 .series = {{NULL, "stats.cache.dirty_nodes"}}, .factor = "status.node_size"},
	{"zfuse_cache_max_bytes", gauge, "Nodes that are kept in memory, at most.",
	 .series = {{NULL, "stats.cache.nodes_max"}}, .factor = "status.node_size"},
	{"zfuse_dirty_bytes", gauge, "File data in memory that is not on the device yet.",
	 .series = {{NULL, "stats.dirty.bytes"}}},
	{"zfuse_dirty_flight_bytes", gauge,
	 "The part of zfuse_dirty_bytes that is being written to the device.",
	 .series = {{NULL, "stats.dirty.flight_bytes"}}},
	{"zfuse_dirty_max_bytes", gauge, "Writers wait when more file data than this is in memory.",
	 .series = {{NULL, "stats.dirty.bytes_max"}}},

	/* Scrubs. */
	{"zfuse_scrub_bytes_total", counter, "Bytes that scrubs have verified.", .label = "kind",
	 .series = {{"data", "stats.scrub.data_bytes"}, {"metadata", "stats.scrub.node_bytes"}}},
	{"zfuse_scrub_errors_total", counter,
	 "Damaged places that scrubs found and did not repair.",
	 .series = {{NULL, "stats.scrub.errors"}}},
	{"zfuse_scrub_repaired_total", counter, "Damaged nodes that scrubs have written anew.",
	 .series = {{NULL, "stats.scrub.repaired"}}},
	{"zfuse_scrub_skipped_total", counter, "Places that scrubs could not verify.",
	 .series = {{NULL, "stats.scrub.skipped"}}},
	{"zfuse_scrub_finished_timestamp_seconds", gauge,
	 "When a scrub last came to its end; 0: none has.",
	 .series = {{NULL, "stats.scrub.finished_at"}}},
};

static void print_family(FILE *out, const struct family *family, struct json_object *filesystems)
{
	print_fn *print = family->print	    ? family->print
			  : family->members ? print_members
					    : print_series;

	zf_expo_family(out, family->name, family->type, family->help);
	for (size_t i = 0; i < json_object_array_length(filesystems); i++)
		print(out, family, json_object_array_get_idx(filesystems, i));
}

void zf_metrics_print(FILE *out, struct json_object *filesystems)
{
	for (size_t i = 0; i < ZF_ARRAY_SIZE(families); i++)
		print_family(out, &families[i], filesystems);
}
