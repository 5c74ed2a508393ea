/* SPDX-License-Identifier: MIT */
#include "trial.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check/check.h"
#include "child.h"
#include "file.h"
#include "fs/core/fs.h"
#include "io/image.h"
#include "io/memory.h"
#include "salvage_all.h"
#include "superblock/ring.h"

#define DEPTH_MAX 16u
#define READ_MAX  (UINT64_C(1) << 20) /* of one file */

static const struct zf_ctx ctx = {.may_wait = true};
static struct trial_result *result; /* shared with the parent process */

/* ---- messages ---- */

static void note_message(void *arg, enum zf_report_level level, const char *message)
{
	(void)arg;
	if (level == ZF_REPORT_ERROR && result->text[0] == '\0')
		snprintf(result->text, sizeof(result->text), "%s", message);
}

static const struct zf_report noting = {.fn = note_message};

static int open_device(const struct places *places, bool read_only, struct zf_dev **ret_dev)
{
	const struct zf_open_options options = {.read_only = read_only};

	if (places->file)
		return zf_image_open(places->file->path, &options, &noting, ret_dev);
	return zf_memory_open(places->forge->memory, NULL, &noting, ret_dev);
}

/* ---- checking ---- */

/* As fsck.zfuse does. */
static bool is_clean(const struct places *places, bool data)
{
	const struct zf_check_options options = {.data = data, .replay = true};
	struct zf_check_counts counts = {0};
	const struct zf_super *super;
	struct zf_ring *ring = NULL;
	struct zf_dev *dev = NULL;
	unsigned int stepped_over;
	int r = open_device(places, true, &dev);

	if (r == 0)
		r = zf_ring_open(dev, &noting, &ring);
	if (r == 0)
		r = zf_ring_newest(ring, &super, &stepped_over);
	if (r == 0)
		r = zf_check_run(dev, super, &options, &noting, &counts);
	zf_ring_close(ring);
	zf_dev_close(dev);
	return r == 0 && counts.errors == 0;
}

/* ---- using the mounted filesystem ---- */

struct user {
	struct zf_fs *fs;
	bool failed;
	bool added;	/* add_something() has added its file */
	bool forbidden; /* flags forbid to remove a file, so directories above it stay, too */
};

/* Counts errors of the device, which never fails here, and of damage that the filesystem finds. */
static void judge(struct user *user, const char *what, uint64_t ino, ssize_t r)
{
	bool failed = r == -EIO || r == -EUCLEAN || r == -ESTALE || r == -ENOENT;

	user->forbidden |= r == -EPERM;
	if (r == -ENOTEMPTY)
		failed = !user->forbidden;
	if (!failed)
		return;
	user->failed = true;
	if (result->text[0] == '\0')
		snprintf(result->text, sizeof(result->text), "%s inode %ju: %s", what,
			 (uintmax_t)ino, strerror((int)-r));
}

static void read_file(struct user *user, const struct zf_attr *attr)
{
	static uint8_t buf[64 << 10];
	uint64_t end = attr->size < READ_MAX ? attr->size : READ_MAX;
	ssize_t n = 1;

	for (uint64_t at = 0; at < end && n > 0; at += (uint64_t)n) {
		n = zf_fs_read(user->fs, &ctx, attr->ino, at, buf, sizeof(buf));
		judge(user, "reading", attr->ino, n);
	}
}

static void read_attributes(struct user *user, uint64_t ino)
{
	static char names[4096], value[65536];
	ssize_t len = zf_fs_listxattr(user->fs, &ctx, ino, names, sizeof(names));

	judge(user, "listing attributes of", ino, len);
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1) {
		ssize_t n = zf_fs_getxattr(user->fs, &ctx, ino, names + at, value, sizeof(value));

		judge(user, "reading an attribute of", ino, n);
	}
}

static void use_directory(struct user *user, uint64_t dir, unsigned int depth);

static void use_entry(struct user *user, uint64_t dir, const struct zf_dirent *entry,
		      unsigned int depth)
{
	char target[4096];
	struct zf_attr attr;
	int r = zf_fs_lookup(user->fs, &ctx, dir, entry->name, &attr);

	judge(user, "looking up", entry->ino, r);
	if (r < 0)
		return;
	read_attributes(user, attr.ino);
	if (S_ISREG(attr.mode))
		read_file(user, &attr);
	if (S_ISLNK(attr.mode))
		judge(user, "reading the link", attr.ino,
		      zf_fs_readlink(user->fs, &ctx, attr.ino, target, sizeof(target)));
	if (S_ISDIR(attr.mode) && depth < DEPTH_MAX)
		use_directory(user, attr.ino, depth + 1);
	r = S_ISDIR(attr.mode) ? zf_fs_rmdir(user->fs, &ctx, dir, entry->name)
			       : zf_fs_unlink(user->fs, &ctx, dir, entry->name);
	judge(user, "removing", attr.ino, r);
	zf_fs_forget(user->fs, attr.ino, 1);
}

/* Reads everything in the directory, and removes it. */
static void use_directory(struct user *user, uint64_t dir, unsigned int depth)
{
	struct zf_dirent entries[16];
	uint64_t cookie = 0;
	int n;

	while ((n = zf_fs_readdir(user->fs, &ctx, dir, cookie, entries, 16)) > 0) {
		for (int i = 0; i < n; i++) {
			cookie = entries[i].cookie;
			if (strcmp(entries[i].name, ".") != 0 && strcmp(entries[i].name, "..") != 0)
				use_entry(user, dir, &entries[i], depth);
		}
	}
	judge(user, "listing", dir, n);
}

static const uint8_t written[3 * 4096] = "new";

/* Makes a file. A lie about space that is kept may have left no room for one. */
static void add_something(struct user *user)
{
	struct zf_attr attr;
	int r = zf_fs_make(user->fs, &ctx, ZF_INO_ROOT, "new", S_IFREG | 0644, 0, NULL, &attr);
	struct zf_statfs st;
	ssize_t n;

	judge(user, "making", ZF_INO_ROOT, r);
	if (r < 0) {
		user->failed |=
			r != -ENOSPC || zf_fs_statfs(user->fs, &st) < 0 || st.blocks_available > 0;
		return;
	}
	n = zf_fs_write(user->fs, &ctx, attr.ino, 0, written, sizeof(written), 0);
	judge(user, "writing", attr.ino, n);
	r = zf_fs_fsync(user->fs, &ctx, attr.ino, false);
	judge(user, "syncing", attr.ino, r);
	zf_fs_forget(user->fs, attr.ino, 1);
	user->added = n == sizeof(written) && r == 0;
	user->failed |= r < 0 || (n != sizeof(written) && n != -ENOSPC);
}

static void find_what_was_added(struct user *user)
{
	static uint8_t bytes[sizeof(written)];
	struct zf_attr attr;
	int r = zf_fs_lookup(user->fs, &ctx, ZF_INO_ROOT, "new", &attr);
	ssize_t n;

	judge(user, "looking up what was written in", ZF_INO_ROOT, r);
	if (r < 0)
		return;
	n = zf_fs_read(user->fs, &ctx, attr.ino, 0, bytes, sizeof(bytes));
	judge(user, "reading what was written to", attr.ino, n);
	user->failed |= n != sizeof(written) || memcmp(bytes, written, sizeof(written)) != 0;
	zf_fs_forget(user->fs, attr.ino, 1);
}

static int mount(const struct places *places, struct user *user, struct zf_dev **ret_dev)
{
	const struct zf_mount_options options = {0};
	int r = open_device(places, false, ret_dev);

	return r < 0 ? r : zf_fs_mount(*ret_dev, &options, &noting, &user->fs);
}

static int use_until_the_power_fails(const struct places *places, struct user *user)
{
	struct zf_dev *dev = NULL;
	int r = mount(places, user, &dev);

	if (r == 0) {
		add_something(user);
		zf_fs_abandon(user->fs);
	}
	zf_dev_close(dev);
	return r;
}

static int use_to_the_end(const struct places *places, struct user *user)
{
	struct zf_dev *dev = NULL;
	int r = mount(places, user, &dev);

	if (r == 0) {
		if (user->added)
			find_what_was_added(user);
		use_directory(user, ZF_INO_ROOT, 0);
		judge(user, "syncing", ZF_INO_ROOT, zf_fs_syncfs(user->fs, &ctx));
		user->failed |= zf_fs_settle(user->fs) < 0;
		user->failed |= zf_fs_unmount(user->fs) < 0;
	}
	zf_dev_close(dev);
	return r;
}

/* Returns 0, or the error of the mount. */
static int use(const struct places *places, bool *ret_failed)
{
	struct user user = {0};
	int r = use_until_the_power_fails(places, &user);

	if (r == 0)
		r = use_to_the_end(places, &user);
	*ret_failed = user.failed;
	return r;
}

/* Only has to end: its output is not judged. */
static void salvage(const struct places *places)
{
	struct zf_dev *dev = NULL;

	if (open_device(places, true, &dev) == 0) {
		salvage_all(dev, 0);
		salvage_all(dev, places->forge->super.generation - 1);
	}
	zf_dev_close(dev);
}

/* ---- one trial ---- */

static enum trial_outcome judge_use(const struct places *places)
{
	bool failed;

	result->text[0] = '\0';
	if (use(places, &failed) < 0)
		return TRIAL_REFUSED;
	if (failed || !is_clean(places, true))
		return TRIAL_BROKEN;
	return TRIAL_UNKNOWN;
}

static enum trial_outcome try_it(const struct places *places)
{
	enum trial_outcome found = TRIAL_FOUND;
	char said[sizeof(result->text)];
	bool failed;

	if (is_clean(places, false)) {
		if (is_clean(places, true))
			return judge_use(places);
		found = TRIAL_FOUND_DATA;
	}
	/* The mount may be refused, or fail, but must not crash or hang. */
	memcpy(said, result->text, sizeof(said));
	salvage(places);
	(void)use(places, &failed);
	memcpy(result->text, said, sizeof(said));
	return found;
}

struct trial {
	const struct places *places;
	const struct lie *lies;
	unsigned int count;
};

static void run_child(void *arg)
{
	const struct trial *trial = arg;

	lie_tell(trial->places, trial->lies, trial->count);
	if (trial->places->file)
		file_write_own(trial->places->file);
	result->outcome = try_it(trial->places);
	if (trial->places->file)
		unlink(trial->places->file->path);
}

void trial_run(const struct places *places, const struct lie *lies, unsigned int count,
	       struct trial_result *ret_result)
{
	struct trial trial = {.places = places, .lies = lies, .count = count};
	char text[64];

	if (!result)
		result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert(result != MAP_FAILED);
	*result = (struct trial_result){.outcome = TRIAL_CRASHED};
	if (child_run(run_child, &trial, text, sizeof(text))) {
		*ret_result = *result;
		return;
	}
	*ret_result = (struct trial_result){.outcome = TRIAL_CRASHED};
	snprintf(ret_result->text, sizeof(ret_result->text), "%s", text);
}

const char *trial_outcome_name(enum trial_outcome outcome)
{
	static const char *const names[TRIAL_OUTCOMES] = {
		[TRIAL_FOUND] = "found",
		[TRIAL_FOUND_DATA] = "found by reading data",
		[TRIAL_UNKNOWN] = "cannot be known",
		[TRIAL_REFUSED] = "found in order, but the mount fails",
		[TRIAL_BROKEN] = "found in order, but the mounted filesystem fails",
		[TRIAL_CRASHED] = "crashed, or took too much time or memory",
	};

	return names[outcome];
}
