/* SPDX-License-Identifier: MIT */
/*
 * instructions OPERATION | --list: does one kind of operation of the library many times, for
 * scripts/instructions, which has callgrind count the instructions of the function counted() and of
 * its callees. Prints the number to divide that count by, and its unit; then, in a line of its own,
 * the compiler and the libraries.
 *
 * Runs without FUSE and without threads, on the memory device, with a clock and contents of its
 * own, so the same program does the same each time. The preparation of an operation is not counted.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <gnu/libc-version.h>
#include <xxhash.h>

#include "base/bits.h"
#include "fs/data/data.h"
#include "fs/mount/format.h"
#include "io/memory.h"
#include "log/log.h"
#include "support.h"
#include "txn/txn.h"

#define OPERATIONS  1000u /* that are counted, of most kinds */
#define FILES	    2000u /* in the directory before */
#define IO_BYTES    4096u
#define FILE_BLOCKS 2000u
#define NAME_SIZE   32u

struct operation {
	const char *name, *unit;
	unsigned int count;
	void (*prepare)(void);
	void (*before)(unsigned int i); /* each; may be NULL */
	void (*run)(unsigned int i);
	uint64_t (*units)(void); /* NULL: as many as `count` */
};

static struct zf_memory *memory;
static struct zf_dev *dev;
static struct zf_fs *fs;
static struct zf_ctx ctx = {.may_wait = true};
static uint64_t directory, file;
static char names[FILES][NAME_SIZE], new_names[OPERATIONS][NAME_SIZE];
static char bytes[IO_BYTES];
static uint64_t counted_from; /* what units() counts, when counting began */

/* ---- the filesystem ---- */

static int64_t clock_ns(void *arg)
{
	static int64_t now_ns = 1000000000;

	return now_ns += 1000;
}

static void mount_it(void)
{
	const struct zf_mount_options options = {.now_ns = clock_ns};

	must(zf_fs_mount(dev, &options, NULL, &fs), "mount");
}

static void begin(void)
{
	/* Larger ones reserve more address space than valgrind has. */
	const struct zf_geometry geometry = {
		.zone_size = 16 << 20,
		.zone_capacity = 16 << 20,
		.zone_count = 64,
		.append_limit = 1 << 20,
	};
	const struct zf_format_options format = {.fsid = {1}, .dir_hash_seed = 42};

	must(zf_memory_new(&geometry, &memory), "memory");
	must(zf_memory_open(memory, NULL, NULL, &dev), "open");
	must(zf_fs_format(dev, &format, NULL), "format");
	mount_it();
}

static void end(void)
{
	must(zf_fs_unmount(fs), "unmount");
	zf_dev_close(dev);
	zf_memory_free(memory);
}

static void sync_all(void)
{
	must(zf_fs_syncfs(fs, &ctx), "syncfs");
}

/* For an operation whose single call does the work of OPERATIONS prepared ones. */
static uint64_t all_operations(void)
{
	return OPERATIONS;
}

/* Each i gives another number below `count`, in no order. */
static unsigned int scattered(unsigned int i, unsigned int count)
{
	return (unsigned int)(((uint64_t)i * 7919 + 13) % count);
}

/* ---- names ---- */

static void prepare_names(void)
{
	directory = make(fs, &ctx, ZF_INO_ROOT, "directory", S_IFDIR | 0755);
	for (unsigned int i = 0; i < FILES; i++) {
		snprintf(names[i], NAME_SIZE, "file-%u", i);
		make(fs, &ctx, directory, names[i], S_IFREG | 0644);
	}
	for (unsigned int i = 0; i < OPERATIONS; i++)
		snprintf(new_names[i], NAME_SIZE, "new-%u", i);
	sync_all();
}

static void run_create(unsigned int i)
{
	make(fs, &ctx, directory, new_names[i], S_IFREG | 0644);
}

static void run_lookup(unsigned int i)
{
	struct zf_attr attr;

	must(zf_fs_lookup(fs, &ctx, directory, names[scattered(i, FILES)], &attr), "lookup");
	zf_fs_forget(fs, attr.ino, 1);
}

static void run_rename(unsigned int i)
{
	must(zf_fs_rename(fs, &ctx, directory, names[scattered(i, FILES)], directory, new_names[i],
			  0, NULL),
	     "rename");
}

static void run_unlink(unsigned int i)
{
	must(zf_fs_unlink(fs, &ctx, directory, names[scattered(i, FILES)]), "unlink");
}

/* ---- data ---- */

static uint64_t scattered_offset(unsigned int i)
{
	return (uint64_t)scattered(i, FILE_BLOCKS) * IO_BYTES;
}

/* Half of each 16 bytes is random, so the data compresses as well as a database's log. */
static void fill_bytes(void)
{
	uint64_t random = 88172645463325252, word;

	memset(bytes, 0x5a, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i += 2 * sizeof(word)) {
		word = next_random(&random);
		memcpy(&bytes[i], &word, sizeof(word));
	}
}

/* A file whose every block is an extent of its own, as random writes leave it. */
static void prepare_file(void)
{
	fill_bytes();
	file = make(fs, &ctx, ZF_INO_ROOT, "file", S_IFREG | 0644);
	for (unsigned int i = 0; i < FILE_BLOCKS; i++)
		must(zf_fs_write(fs, &ctx, file, (uint64_t)i * IO_BYTES, bytes, IO_BYTES, 0),
		     "write");
	sync_all();
	for (unsigned int i = 0; i < FILE_BLOCKS; i++)
		must(zf_fs_write(fs, &ctx, file, scattered_offset(i), bytes, IO_BYTES, 0), "write");
	sync_all();
}

static void run_write(unsigned int i)
{
	must(zf_fs_write(fs, &ctx, file, scattered_offset(i), bytes, IO_BYTES, 0), "write");
}

static void run_read(unsigned int i)
{
	must(zf_fs_read(fs, &ctx, file, scattered_offset(i), bytes, IO_BYTES), "read");
}

static void run_fsync(unsigned int i)
{
	must(zf_fs_fsync(fs, &ctx, file, false), "fsync");
}

static void prepare_landing(void)
{
	prepare_file();
	for (unsigned int i = 0; i < OPERATIONS; i++)
		run_write(i);
}

static void run_landing(unsigned int i)
{
	must(zf_data_flush_all(fs, true), "flush");
}

/* ---- the whole ---- */

static uint64_t nodes_written(void)
{
	struct zf_txn_stats stats;

	zf_txn_get_stats(zf_fs_txn(fs), &stats);
	return stats.nodes_written;
}

static uint64_t committed_nodes(void)
{
	return nodes_written() - counted_from;
}

static void prepare_commit(void)
{
	const struct zf_setattr set = {.valid = ZF_SET_MODE, .mode = 0600};
	struct zf_attr attr;

	prepare_names();
	for (unsigned int i = 0; i < FILES; i++) {
		must(zf_fs_lookup(fs, &ctx, directory, names[i], &attr), "lookup");
		must(zf_fs_setattr(fs, &ctx, attr.ino, &set, &attr), "setattr");
		zf_fs_forget(fs, attr.ino, 1);
	}
	counted_from = nodes_written();
}

static void run_commit(unsigned int i)
{
	must(zf_txn_commit(zf_fs_txn(fs), true), "commit");
}

static void prepare_mount(void)
{
	prepare_file();
	must(zf_fs_unmount(fs), "unmount");
}

/* Each record has an overwritten block. */
static void prepare_replay(void)
{
	struct zf_log_stats before, after;

	prepare_file();
	zf_log_get_stats(zf_fs_log(fs), &before);
	for (unsigned int i = 0; i < OPERATIONS; i++) {
		run_write(i);
		run_fsync(i);
	}
	zf_log_get_stats(zf_fs_log(fs), &after);
	must(after.records - before.records == OPERATIONS ? 0 : -EPROTO, "a record for each fsync");
	zf_fs_abandon(fs);
}

static void run_mount(unsigned int i)
{
	mount_it();
}

/* ---- what the counts belong to ---- */

#ifdef __clang__
#define COMPILER	 "clang"
#define COMPILER_VERSION __clang_major__
#else
#define COMPILER	 "gcc"
#define COMPILER_VERSION __GNUC__
#endif

static bool has_avx2(void)
{
#ifdef __x86_64__
	return __builtin_cpu_supports("avx2");
#else
	return false;
#endif
}

/* All that changes the counts, except for the sources: libraries have variants for each processor.
 */
static void print_surroundings(void)
{
	struct utsname machine;

	uname(&machine);
	printf("%s-%d %s, libc %s, xxhash %u%s\n", COMPILER, COMPILER_VERSION, machine.machine,
	       gnu_get_libc_version(), XXH_versionNumber(), has_avx2() ? ", avx2" : "");
}

/* ---- main ---- */

static const struct operation operations[] = {
	{"create", "file", OPERATIONS, prepare_names, NULL, run_create, NULL},
	{"lookup", "name", OPERATIONS, prepare_names, NULL, run_lookup, NULL},
	{"rename", "name", OPERATIONS, prepare_names, NULL, run_rename, NULL},
	{"unlink", "file", OPERATIONS, prepare_names, NULL, run_unlink, NULL},
	{"write", "4 KiB block", OPERATIONS, prepare_file, NULL, run_write, NULL},
	{"landing", "4 KiB block", 1, prepare_landing, NULL, run_landing, all_operations},
	{"read", "4 KiB block", OPERATIONS, prepare_file, NULL, run_read, NULL},
	{"fsync", "4 KiB block", OPERATIONS, prepare_file, run_write, run_fsync, NULL},
	{"commit", "node", 1, prepare_commit, NULL, run_commit, committed_nodes},
	{"mount", "mount", 1, prepare_mount, NULL, run_mount, NULL},
	{"replay", "record", 1, prepare_replay, NULL, run_mount, all_operations},
};

/* scripts/instructions knows it by its name. */
__attribute__((noinline)) void counted(void (*run)(unsigned int i), unsigned int i);

void counted(void (*run)(unsigned int i), unsigned int i)
{
	run(i);
	__asm__ volatile(""); /* so that the call is no jump: callgrind has to see the return */
}

static void perform(const struct operation *operation)
{
	begin();
	operation->prepare();
	for (unsigned int i = 0; i < operation->count; i++) {
		if (operation->before)
			operation->before(i);
		counted(operation->run, i);
	}
	printf("%" PRIu64 " %s\n", operation->units ? operation->units() : operation->count,
	       operation->unit);
	print_surroundings();
	end();
}

int main(int argc, char **argv)
{
	bool list = argc == 2 && strcmp(argv[1], "--list") == 0;

	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(operations); i++) {
		if (list)
			puts(operations[i].name);
		else if (argc == 2 && strcmp(argv[1], operations[i].name) == 0) {
			perform(&operations[i]);
			return 0;
		}
	}
	if (list)
		return 0;
	fputs("usage: instructions OPERATION | --list\n", stderr);
	return 2;
}
