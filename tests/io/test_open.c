/* SPDX-License-Identifier: MIT */
/*
 * Which backend a disk gets, and which message the user gets for a disk that zfuse cannot use. The
 * disks are trees of files as the kernel shows them in /sys; the backends only note that they were
 * called (linked with --wrap).
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <cmocka.h>

#include "io/dev_ops.h"
#include "io/disk.h"
#include "io/image.h"
#include "io/nvme.h"
#include "io/zbd.h"

static char root[] = "/tmp/zfuse-open-XXXXXX";
static char messages[2048];
static struct {
	char image[PATH_MAX], zbd[PATH_MAX], nvme[PATH_MAX]; /* what each was asked to open */
	int result, nvme_result;
} backends;
static struct zf_dev opened;

/* ---- backends ---- */

static int note(char *path_opened, const char *path, int result, struct zf_dev **ret_dev)
{
	snprintf(path_opened, PATH_MAX, "%s", path);
	if (result == 0)
		*ret_dev = &opened;
	return result;
}

#define BACKEND(name, result)                                                                      \
	int __wrap_zf_##name##_open(const char *path, const struct zf_open_options *options,       \
				    const struct zf_report *report, struct zf_dev **ret_dev);      \
	int __wrap_zf_##name##_open(const char *path, const struct zf_open_options *options,       \
				    const struct zf_report *report, struct zf_dev **ret_dev)       \
	{                                                                                          \
		return note(backends.name, path, backends.result, ret_dev);                        \
	}

BACKEND(image, result)
BACKEND(zbd, result)
BACKEND(nvme, nvme_result)

/* ---- the tree ---- */

static void put(const char *path, const char *text)
{
	char full[PATH_MAX];
	FILE *file;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		assert_true(mkdir(full, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
	file = fopen(full, "w");
	assert_non_null(file);
	fprintf(file, "%s\n", text);
	fclose(file);
}

static void put_in(const char *directory, const char *name, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	put(path, text);
}

static void link_to(const char *target, const char *path)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s/%s", root, path);
	assert_int_equal(symlink(target, full), 0);
}

static void path_of(const char *path, char *full)
{
	snprintf(full, PATH_MAX, "%s/%s", root, path);
}

/* Makes a usual disk: 256 MiB zones, 4 KiB blocks. A test changes what it needs. */
static void put_disk(const char *device, const char *name, const char *zoned)
{
	char uevent[128];

	snprintf(uevent, sizeof(uevent), "MAJOR=1\nMINOR=1\nDEVNAME=%s\nDEVTYPE=disk", name);
	put_in(device, "uevent", uevent);
	put_in(device, "queue/zoned", zoned);
	put_in(device, "queue/logical_block_size", "4096");
	put_in(device, "queue/zone_write_granularity", "4096");
	put_in(device, "queue/chunk_sectors", "524288");
}

/*
 * 8:16 sdb, host-managed; 8:32 sdc, plain, with partition 8:33; 8:48 sdd, host-aware, with
 * partition 8:49; 259:0 nvme0n1 with its character device 240:0, zoned; 240:9 a controller.
 */
static int setup(void **state)
{
	strcpy(strrchr(root, '-'), "-XXXXXX");
	if (!mkdtemp(root) || chmod(root, 0755) < 0)
		return -1;
	memset(&backends, 0, sizeof(backends));
	memset(&opened, 0, sizeof(opened));
	messages[0] = '\0';
	put_disk("sys/devices/sdb", "sdb", "host-managed");
	put("sys/devices/sdb/dev", "8:16");
	put_disk("sys/devices/sdc", "sdc", "none");
	put("sys/devices/sdc/sdc1/partition", "1");
	put_disk("sys/devices/sdd", "sdd", "host-aware");
	put("sys/devices/sdd/sdd1/partition", "1");
	put_disk("sys/devices/nvme0n1", "nvme0n1", "host-managed");
	put("sys/devices/nvme0n1/dev", "259:0");
	put("sys/dev/char/240:0/uevent", "DEVNAME=ng0n1");
	put("sys/dev/char/240:9/uevent", "DEVNAME=nvme0");
	put("sys/dev/block/README", "");
	put("sys/class/block/README", "");
	link_to("../../devices/sdb", "sys/dev/block/8:16");
	link_to("../../devices/sdc", "sys/dev/block/8:32");
	link_to("../../devices/sdc/sdc1", "sys/dev/block/8:33");
	link_to("../../devices/sdd", "sys/dev/block/8:48");
	link_to("../../devices/sdd/sdd1", "sys/dev/block/8:49");
	link_to("../../devices/nvme0n1", "sys/dev/block/259:0");
	link_to("../../devices/nvme0n1", "sys/class/block/nvme0n1");
	put("dev/ng0n1", "");
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- what is tried ---- */

static void keep_message(void *arg, enum zf_report_level level, const char *message)
{
	size_t used = strlen(messages);

	snprintf(messages + used, sizeof(messages) - used, "%s\n", message);
}

static const struct zf_report report = {.fn = keep_message};

static int find(const char *path, mode_t type, unsigned int device_major, unsigned int device_minor,
		struct zf_disk *ret_disk)
{
	const struct stat st = {.st_mode = type, .st_rdev = makedev(device_major, device_minor)};

	return zf_disk_find(root, path, &st, &report, ret_disk);
}

static int open_disk(mode_t type, unsigned int device_major, unsigned int device_minor,
		     enum zf_append_mode append)
{
	const struct zf_open_options options = {.append = append};
	struct zf_dev *dev = NULL;
	struct zf_disk disk;
	int r = find("/dev/disk", type, device_major, device_minor, &disk);

	return r < 0 ? r : zf_disk_open(&disk, &options, &report, &dev);
}

static void assert_said(const char *text)
{
	if (!strstr(messages, text))
		fail_msg("expected '%s' in: %s", text, messages);
}

/* Only this one of the three backends was called, with this path. */
static void assert_opened(const char *backend_path, const char *path)
{
	char full[PATH_MAX] = "";

	if (path[0] == '/')
		snprintf(full, sizeof(full), "%s", path);
	else
		path_of(path, full);
	assert_string_equal(backend_path, full);
	assert_int_equal(
		(backends.image[0] != 0) + (backends.zbd[0] != 0) + (backends.nvme[0] != 0), 1);
}

/* ---- which backend ---- */

static void a_file_is_an_image(void **state)
{
	assert_int_equal(open_disk(S_IFREG, 0, 0, ZF_APPEND_BEST), 0);
	assert_opened(backends.image, "/dev/disk");
	assert_int_equal(zf_dev_append_mode(&opened), ZF_APPEND_EMULATED);
}

static void an_image_takes_any_append_mode(void **state)
{
	assert_int_equal(open_disk(S_IFREG, 0, 0, ZF_APPEND_NATIVE), 0);
	assert_int_equal(open_disk(S_IFREG, 0, 0, ZF_APPEND_LOCKED), 0);
	assert_opened(backends.image, "/dev/disk");
}

static void a_plain_disk_or_partition_carries_an_image(void **state)
{
	assert_int_equal(open_disk(S_IFBLK, 8, 32, ZF_APPEND_BEST), 0);
	assert_opened(backends.image, "/dev/disk");
	backends.image[0] = '\0';
	assert_int_equal(open_disk(S_IFBLK, 8, 33, ZF_APPEND_BEST), 0);
	assert_opened(backends.image, "/dev/disk");
}

/* Without /sys, in some containers, nothing is known but that it is a block device. */
static void an_unknown_block_device_carries_an_image(void **state)
{
	assert_int_equal(open_disk(S_IFBLK, 99, 0, ZF_APPEND_BEST), 0);
	assert_opened(backends.image, "/dev/disk");
}

static void a_zoned_disk_is_written_through_the_kernel(void **state)
{
	assert_int_equal(open_disk(S_IFBLK, 8, 16, ZF_APPEND_BEST), 0);
	assert_opened(backends.zbd, "/dev/disk");
	assert_int_equal(zf_dev_append_mode(&opened), ZF_APPEND_EMULATED);
	assert_int_equal(open_disk(S_IFBLK, 8, 48, ZF_APPEND_LOCKED), 0);
	assert_int_equal(zf_dev_append_mode(&opened), ZF_APPEND_LOCKED);
	assert_string_equal(messages, "");
}

static void native_appends_are_best(void **state)
{
	assert_int_equal(open_disk(S_IFBLK, 259, 0, ZF_APPEND_BEST), 0);
	assert_opened(backends.nvme, "dev/ng0n1");
	assert_int_equal(zf_dev_append_mode(&opened), ZF_APPEND_NATIVE);
	assert_string_equal(messages, "");
}

static void either_name_of_an_nvme_disk_means_the_disk(void **state)
{
	assert_int_equal(open_disk(S_IFCHR, 240, 0, ZF_APPEND_NATIVE), 0);
	assert_opened(backends.nvme, "dev/ng0n1");
	backends.nvme[0] = '\0';
	assert_int_equal(open_disk(S_IFCHR, 240, 0, ZF_APPEND_EMULATED), 0);
	assert_opened(backends.zbd, "dev/nvme0n1");
	assert_int_equal(zf_dev_append_mode(&opened), ZF_APPEND_EMULATED);
}

static void an_nvme_disk_without_zones_carries_an_image(void **state)
{
	put("sys/devices/nvme0n1/queue/zoned", "none");
	assert_int_equal(open_disk(S_IFCHR, 240, 0, ZF_APPEND_BEST), 0);
	assert_opened(backends.image, "dev/nvme0n1");
}

static void without_native_appends_the_best_are_emulated(void **state)
{
	backends.nvme_result = -EOPNOTSUPP;
	assert_int_equal(open_disk(S_IFBLK, 259, 0, ZF_APPEND_BEST), 0);
	assert_string_equal(backends.zbd, "/dev/disk");
	assert_int_equal(zf_dev_append_mode(&opened), ZF_APPEND_EMULATED);
	assert_said("appends are emulated instead");
}

/* The kernel lets a user open the device, and then forbids some commands. */
static void where_commands_are_forbidden_too(void **state)
{
	static const int errors[] = {-EACCES, -EPERM};

	for (size_t i = 0; i < 2; i++) {
		backends.nvme_result = errors[i];
		assert_int_equal(open_disk(S_IFBLK, 259, 0, ZF_APPEND_BEST), 0);
		assert_int_equal(zf_dev_append_mode(&opened), ZF_APPEND_EMULATED);
		assert_int_equal(open_disk(S_IFBLK, 259, 0, ZF_APPEND_NATIVE), errors[i]);
	}
}

static void another_error_is_not_papered_over(void **state)
{
	backends.nvme_result = -EIO;
	assert_int_equal(open_disk(S_IFBLK, 259, 0, ZF_APPEND_BEST), -EIO);
	assert_opened(backends.nvme, "dev/ng0n1");
}

/* ---- refusals ---- */

/* Opens as an ordinary user, because root may open anything. */
static int open_as_user(enum zf_append_mode append)
{
	int r;

	if (geteuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	r = open_disk(S_IFBLK, 259, 0, append);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
	return r;
}

static void forbid_native(void)
{
	char full[PATH_MAX];

	path_of("dev/ng0n1", full);
	assert_int_equal(chmod(full, 0), 0);
}

static void no_permission_for_native_appends_is_told(void **state)
{
	forbid_native();
	assert_int_equal(open_as_user(ZF_APPEND_NATIVE), -EACCES);
	assert_said("/dev/ng0n1 cannot be opened for native appends: Permission denied");
	assert_said("docs/devices.md: Permissions");
	assert_said("append=emulated");
	assert_string_equal(backends.nvme, "");
	assert_string_equal(backends.zbd, "");
}

static void no_permission_for_them_leaves_the_emulated_ones(void **state)
{
	forbid_native();
	assert_int_equal(open_as_user(ZF_APPEND_BEST), 0);
	assert_opened(backends.zbd, "/dev/disk");
	assert_said("/dev/ng0n1 cannot be opened (Permission denied), so appends are emulated");
}

/* A caller that only reads gets no message. */
static void readers_do_not_care_for_appends(void **state)
{
	const struct zf_open_options options = {.read_only = true};
	struct zf_dev *dev;
	struct zf_disk disk;
	char full[PATH_MAX];

	path_of("dev/ng0n1", full);
	assert_int_equal(unlink(full), 0);
	assert_int_equal(find("/dev/disk", S_IFBLK, 259, 0, &disk), 0);
	assert_int_equal(zf_disk_open(&disk, &options, &report, &dev), 0);
	assert_opened(backends.zbd, "/dev/disk");
	assert_string_equal(messages, "");
}

static void native_appends_are_for_nvme(void **state)
{
	assert_int_equal(open_disk(S_IFBLK, 8, 16, ZF_APPEND_NATIVE), -EOPNOTSUPP);
	assert_said("leave out append=native");
	assert_string_equal(backends.zbd, "");
}

static void a_partition_of_a_zoned_disk_is_refused(void **state)
{
	assert_int_equal(open_disk(S_IFBLK, 8, 49, ZF_APPEND_BEST), -ENOTSUP);
	assert_said("give the whole disk");
	assert_string_equal(backends.zbd, "");
	assert_string_equal(backends.image, "");
}

static void small_blocks_are_refused(void **state)
{
	put("sys/devices/nvme0n1/queue/logical_block_size", "512");
	put("sys/devices/nvme0n1/queue/zone_write_granularity", "512");
	assert_int_equal(open_disk(S_IFBLK, 259, 0, ZF_APPEND_BEST), -ENOTSUP);
	assert_said("writes blocks of 512 bytes, zfuse needs 4096");
	assert_said("nvme format");
}

static void small_blocks_are_seen_by_old_kernels_too(void **state)
{
	char full[PATH_MAX];

	path_of("sys/devices/nvme0n1/queue/zone_write_granularity", full);
	assert_int_equal(unlink(full), 0);
	assert_int_equal(open_disk(S_IFBLK, 259, 0, ZF_APPEND_BEST), 0);
	put("sys/devices/nvme0n1/queue/logical_block_size", "512");
	assert_int_equal(open_disk(S_IFBLK, 259, 0, ZF_APPEND_BEST), -ENOTSUP);
}

/* Most SMR disks: the pointer moves by the large block. */
static void small_blocks_emulated_on_large_ones_are_fine(void **state)
{
	put("sys/devices/sdb/queue/logical_block_size", "512");
	assert_int_equal(open_disk(S_IFBLK, 8, 16, ZF_APPEND_BEST), 0);
	assert_opened(backends.zbd, "/dev/disk");
}

static void an_image_is_not_for_zoned_disks(void **state)
{
	struct zf_disk disk;

	assert_int_equal(find("/dev/disk", S_IFBLK, 8, 32, &disk), 0);
	assert_int_equal(zf_disk_check_for_image(&disk, &report), 0);
	assert_int_equal(find("new.img", S_IFREG, 0, 0, &disk), 0);
	assert_int_equal(zf_disk_check_for_image(&disk, &report), 0);
	assert_string_equal(messages, "");
	assert_int_equal(find("/dev/disk", S_IFBLK, 8, 16, &disk), 0);
	assert_int_equal(zf_disk_check_for_image(&disk, &report), -EINVAL);
	assert_said("mkfs.zfuse without --image");
}

static void odd_zone_sizes_are_refused(void **state)
{
	put("sys/devices/sdb/queue/chunk_sectors", "526336");
	assert_int_equal(open_disk(S_IFBLK, 8, 16, ZF_APPEND_BEST), -ENOTSUP);
	assert_said("have 269484032 bytes, no power of two");
	put("sys/devices/sdb/queue/chunk_sectors", "0");
	assert_int_equal(open_disk(S_IFBLK, 8, 16, ZF_APPEND_BEST), -ENOTSUP);
}

static void what_is_no_disk_is_refused(void **state)
{
	assert_int_equal(open_disk(S_IFCHR, 240, 9, ZF_APPEND_BEST), -EINVAL);
	assert_said("neither a regular file nor a disk");
	messages[0] = '\0';
	assert_int_equal(open_disk(S_IFCHR, 1, 3, ZF_APPEND_BEST), -EINVAL);
	assert_said("neither a regular file nor a disk");
	messages[0] = '\0';
	assert_int_equal(open_disk(S_IFDIR, 0, 0, ZF_APPEND_BEST), -EINVAL);
	assert_said("neither a regular file nor a disk");
}

/* ---- a device that another program has ---- */

static void the_message_names_the_user_of_a_busy_disk(void **state)
{
	backends.result = -EBUSY;
	put("proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
				   "36 22 8:16 / /mnt/a rw,noatime shared:1 - f2fs /dev/sdb rw");
	assert_int_equal(open_disk(S_IFBLK, 8, 16, ZF_APPEND_BEST), -EBUSY);
	assert_said("/dev/disk is mounted at /mnt/a: unmount it first");
}

/* btrfs has device numbers of its own. */
static void a_mount_is_known_by_its_source_too(void **state)
{
	backends.result = -EBUSY;
	put("proc/self/mountinfo", "36 22 0:50 / /mnt/b rw - btrfs /dev/disk rw");
	assert_int_equal(open_disk(S_IFBLK, 8, 16, ZF_APPEND_BEST), -EBUSY);
	assert_said("/dev/disk is mounted at /mnt/b");
}

static void a_disk_that_is_a_part_of_another_is_told(void **state)
{
	backends.result = -EBUSY;
	put("proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw");
	put("sys/devices/sdb/holders/dm-0", "");
	assert_int_equal(open_disk(S_IFBLK, 8, 16, ZF_APPEND_BEST), -EBUSY);
	assert_said("/dev/disk is used by dm-0: release it there first");
}

static void no_user_is_named_without_reason(void **state)
{
	backends.result = -EBUSY;
	put("proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw");
	assert_int_equal(open_disk(S_IFBLK, 8, 16, ZF_APPEND_BEST), -EBUSY);
	assert_string_equal(messages, "");
}

/* ---- the whole way ---- */

static void the_path_is_looked_at_first(void **state)
{
	const struct zf_open_options options = {0};
	char full[PATH_MAX];
	struct zf_dev *dev;

	path_of("no/such", full);
	assert_int_equal(zf_dev_open(full, &options, &report, &dev), -ENOENT);
	assert_said("No such file or directory");
	path_of("dev/ng0n1", full);
	assert_int_equal(zf_dev_open(full, &options, &report, &dev), 0);
	assert_opened(backends.image, full);
}

static void modes_have_names(void **state)
{
	enum zf_append_mode mode;

	for (enum zf_append_mode m = ZF_APPEND_BEST; m <= ZF_APPEND_LOCKED; m++) {
		assert_int_equal(zf_append_mode_parse(zf_append_mode_name(m), &mode), 0);
		assert_int_equal(mode, m);
	}
	assert_int_equal(zf_append_mode_parse("fast", &mode), -EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_an_image),
		TEST(an_image_takes_any_append_mode),
		TEST(a_plain_disk_or_partition_carries_an_image),
		TEST(an_unknown_block_device_carries_an_image),
		TEST(a_zoned_disk_is_written_through_the_kernel),
		TEST(native_appends_are_best),
		TEST(either_name_of_an_nvme_disk_means_the_disk),
		TEST(an_nvme_disk_without_zones_carries_an_image),
		TEST(without_native_appends_the_best_are_emulated),
		TEST(where_commands_are_forbidden_too),
		TEST(another_error_is_not_papered_over),
		TEST(no_permission_for_native_appends_is_told),
		TEST(no_permission_for_them_leaves_the_emulated_ones),
		TEST(readers_do_not_care_for_appends),
		TEST(native_appends_are_for_nvme),
		TEST(a_partition_of_a_zoned_disk_is_refused),
		TEST(small_blocks_are_refused),
		TEST(small_blocks_are_seen_by_old_kernels_too),
		TEST(small_blocks_emulated_on_large_ones_are_fine),
		TEST(an_image_is_not_for_zoned_disks),
		TEST(odd_zone_sizes_are_refused),
		TEST(what_is_no_disk_is_refused),
		TEST(the_message_names_the_user_of_a_busy_disk),
		TEST(a_mount_is_known_by_its_source_too),
		TEST(a_disk_that_is_a_part_of_another_is_told),
		TEST(no_user_is_named_without_reason),
		TEST(the_path_is_looked_at_first),
		TEST(modes_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
