/* SPDX-License-Identifier: MIT */
/*
 * Hostile images, through the programs (P7): manglings (check/lies/mangling.h) are written to a file,
 * and every program that reads images is run on it. None may crash, or find no end; what fsck.zfuse
 * calls clean, or has repaired, must be clean for a second run, and be mounted and written to.
 *
 *      test_programs BINDIR [--seed N] [--manglings N] [--mounts N] [--traces N]
 *
 * BINDIR: the directory of the build. --mounts N: one mangling in N is mounted (0, which is the default:
 * none). --traces N: so many times a trace and its data are damaged, and what reads them is run.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "lies/child.h"
#include "lies/file.h"
#include "lies/image.h"
#include "lies/mangling.h"

#define SECONDS_MAX   60u /* for one program, on a machine that has others to serve */
#define MEMORY_MAX    (UINT64_C(2) << 30)
#define OUTPUT_MAX    4096u
#define ARGS_MAX      12u
#define FUSE_MAGIC    0x65735546
#define TRACE_HEADER  256u /* bytes, of both files of a trace, or a little more */
#define MOUNT_TRIES   3000u
#define MOUNT_WAIT_NS 10000000

static struct {
	const char *bin;
	uint64_t seed, manglings, mounts, traces;
} options;

/* Of this process and of those that try a mangling. */
static struct shared {
	uint64_t manglings, programs, mounts, traces, clean, repaired, left;
	bool failed;	 /* the mangling that is tried */
	char text[2048]; /* why */
} *shared;

static unsigned int failures;
static char image[300], scratch[300], mountpoint[300], said[OUTPUT_MAX];

static void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void fail(const char *format, ...)
{
	size_t len = strlen(shared->text);
	va_list args;

	shared->failed = true;
	va_start(args, format);
	vsnprintf(shared->text + len, sizeof(shared->text) - len, format, args);
	va_end(args);
}

/* ---- one program ---- */

/* In the child: what it prints goes to fd. */
static void become(const char *const *args, int fd)
{
	static char path[512];

	/* Sanitizers map more than any limit allows: end() measures. */
	setrlimit(RLIMIT_AS,
		  &(struct rlimit){.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY});
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(SECONDS_MAX);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	snprintf(path, sizeof(path), "%s/%s", options.bin, args[0]);
	execv(path, (char *const *)(uintptr_t)args);
	_exit(127);
}

static void read_said(int fd)
{
	ssize_t n = pread(fd, said, sizeof(said) - 1, 0);

	said[n > 0 ? n : 0] = '\0';
}

static pid_t start(const char *const *args, int *ret_fd)
{
	pid_t pid;

	*ret_fd = memfd_create("said", MFD_CLOEXEC);
	assert(*ret_fd >= 0);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0)
		become(args, *ret_fd);
	shared->programs++;
	alarm(2 * SECONDS_MAX);
	return pid;
}

static void print_args(const char *const *args)
{
	for (; *args; args++)
		fail("%s ", *args);
}

/* The exit status, or -1: it died, and the test has failed. What it printed first is in said[]. */
static int end(const char *const *args, pid_t pid, int fd)
{
	struct rusage usage;
	int status;

	while (wait4(pid, &status, 0, &usage) < 0)
		assert(errno == EINTR);
	alarm(0);
	read_said(fd);
	close(fd);
	if (WIFEXITED(status) && WEXITSTATUS(status) < 64 &&
	    (uint64_t)usage.ru_maxrss << 10 <= MEMORY_MAX)
		return WEXITSTATUS(status);
	print_args(args);
	fail("ended with status %#x and %ld KiB:\n%s\n", (unsigned int)status, usage.ru_maxrss,
	     said);
	return -1;
}

static int run(const char *const *args)
{
	int fd;
	pid_t pid = start(args, &fd);

	return end(args, pid, fd);
}

#define FSCK	 "tools/zfusectl/fsck.zfuse"
#define ZFUSECTL "tools/zfusectl/zfusectl"
#define MKFS	 "mkfs/mkfs.zfuse"

static int fsck(const char *mode)
{
	return run((const char *const[]){FSCK, mode, image, NULL});
}

/* ---- zfusectl ---- */

/* Each with the image, and perhaps another operand. */
static const char *const looks[][5] = {
	{"super"},
	{"zones"},
	{"zones", "--map"},
	{"tree", "--tree", "root"},
	{"tree", "--tree", "fs", "--format=json"},
	{"tree", "--tree", "summary", "--format=dot"},
	{"tree", "--tree", "share"},
	{"tree", "--tree", "zone"},
	{"log"},
	{"log", "--format=json"},
	{"df"},
	{"status"},
	{"check", "--data"},
	{"scrub", "status"},
	{"scrub"},
	{"device", "stats"},
	{"label"},
};

static void look(struct zf_rng *rng)
{
	const char *const *words = looks[zf_rng_below(rng, ZF_ARRAY_SIZE(looks))];
	const char *args[ARGS_MAX] = {ZFUSECTL};
	unsigned int count = 1;

	while (*words)
		args[count++] = *words++;
	args[count] = image;
	(void)run(args);
}

static void look_at_something(const struct places *places, struct zf_rng *rng)
{
	static const char *const paths[] = {"/data", "/dir/hard", "/clone", "/zeroes", "/inline"};
	const char *path = paths[zf_rng_below(rng, ZF_ARRAY_SIZE(paths))];
	const struct place_node *node = &places->node[zf_rng_below(rng, places->node_count)];
	char number[32];

	switch (zf_rng_below(rng, 6)) {
	case 0:
		(void)run((const char *const[]){ZFUSECTL, "file", image, path, NULL});
		break;
	case 1:
		snprintf(number, sizeof(number), "%" PRIu64, zf_rng_below(rng, 80));
		(void)run((const char *const[]){ZFUSECTL, "path", image, number, NULL});
		break;
	case 2:
		snprintf(number, sizeof(number), "%" PRIu64,
			 zf_rng_below(rng, places->file->trailer.table_offset));
		(void)run((const char *const[]){ZFUSECTL, "resolve", image, number, NULL});
		break;
	case 3:
		(void)run((const char *const[]){"tools/udev/zfuse_id", image, NULL});
		break;
	case 4:
		(void)run((const char *const[]){MKFS, "--dry-run", image, NULL});
		break;
	default:
		snprintf(number, sizeof(number), "%" PRIu64, node->address[0]);
		(void)run((const char *const[]){ZFUSECTL, "node", image, number, NULL});
	}
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
	(void)info;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void restore(struct zf_rng *rng)
{
	if (zf_rng_chance(rng, 80)) {
		(void)run((const char *const[]){ZFUSECTL, "restore", "--dry-run", image, NULL});
		return;
	}
	(void)run((const char *const[]){ZFUSECTL, "restore", image, scratch, NULL});
	nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* What writes to an image that is not mounted. What was in order must be so afterwards. */
static void change(struct zf_rng *rng, bool sound)
{
	switch (zf_rng_below(rng, 3)) {
	case 0:
		(void)run((const char *const[]){ZFUSECTL, "label", image, "new", NULL});
		break;
	case 1:
		(void)run((const char *const[]){ZFUSECTL, "grow", "--size", "12M", image, NULL});
		break;
	default:
		(void)run((const char *const[]){ZFUSECTL, "image", "export", image, scratch, NULL});
		unlink(scratch);
	}
	if (sound && fsck("-n") != 0)
		fail("fsck.zfuse -n after a change:\n%s\n", said);
}

/* What is made anew is in order, whatever was there before. */
static void make_anew(void)
{
	if (run((const char *const[]){MKFS, "-f", "--node-size", "4096", image, NULL}) != 0)
		return;
	if (fsck("-n") != 0)
		fail("fsck.zfuse -n after mkfs.zfuse:\n%s\n", said);
}

/* ---- mounting ---- */

static bool is_mounted(void)
{
	struct statfs info;

	return statfs(mountpoint, &info) == 0 && info.f_type == FUSE_MAGIC;
}

/* False: the daemon has ended before. */
static bool wait_for_mount(pid_t pid)
{
	const struct timespec wait = {.tv_nsec = MOUNT_WAIT_NS};
	siginfo_t info = {0};

	for (unsigned int i = 0; i < MOUNT_TRIES && !is_mounted(); i++) {
		waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
		if (info.si_pid != 0)
			return false;
		nanosleep(&wait, NULL);
	}
	return is_mounted();
}

static bool write_something(void)
{
	char path[400];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/new-%d", mountpoint, (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	n = write(fd, path, sizeof(path));
	if (n == sizeof(path) && fsync(fd) < 0)
		n = -1;
	return close(fd) == 0 && n == sizeof(path);
}

/* Opens, reads and closes all that is there. */
static int use_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
	static char buf[65536];
	int fd;

	(void)ftw;
	if (type == FTW_SL)
		(void)!readlink(path, buf, sizeof(buf));
	if (type != FTW_F || !S_ISREG(info->st_mode))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	for (unsigned int i = 0; fd >= 0 && i < 32 && read(fd, buf, sizeof(buf)) > 0; i++)
		;
	if (fd >= 0)
		close(fd);
	return 0;
}

/* `sound`: it must be mounted, and written to. */
static void mount_it(bool sound)
{
	const char *const args[] = {"src/fuse/zfuse", image, mountpoint, "-f", NULL};
	int fd, status;
	pid_t pid = start(args, &fd);
	bool mounted = wait_for_mount(pid);

	shared->mounts++;
	if (mounted) {
		nftw(mountpoint, use_one, 16, FTW_PHYS);
		if (!write_something() && sound)
			fail("what was mounted cannot be written to: %s\n", strerror(errno));
		umount2(mountpoint, 0);
	}
	status = end(args, pid, fd);
	if (sound && (!mounted || status != 0))
		fail("%s: status %d of what should be mounted:\n%s\n", image, status, said);
	umount2(mountpoint, MNT_DETACH);
}

/* ---- one image ---- */

/* At times the file's end is missing, with the header or more, or something follows it. */
static bool cut_file(struct zf_rng *rng, uint64_t size)
{
	uint64_t to = zf_rng_chance(rng, 50) ? zf_rng_below(rng, size) : size;

	if (!zf_rng_chance(rng, 3))
		return false;
	if (to == size)
		to = zf_rng_chance(rng, 50) ? size - 1 - zf_rng_below(rng, 16384)
					    : size + 1 + zf_rng_below(rng, 16384);
	return truncate(image, (off_t)to) == 0;
}

static bool may_be_given_up(const struct mangling *mangling)
{
	for (unsigned int i = 0; i < mangling->count; i++)
		if (lie_may_be_given_up(&mangling->lies[i]) || lie_hides_nodes(&mangling->lies[i]))
			return true;
	return false;
}

/* True: it is in order now. */
static bool check_and_repair(const struct mangling *mangling, bool is_cut)
{
	int before = fsck("-n"), repaired, after;

	if (before != 0 && before != 4 && before != 8)
		fail("fsck.zfuse -n: status %d\n%s\n", before, said);
	repaired = fsck("-y");
	if (before == 0 && repaired != 0)
		fail("fsck.zfuse -y of what is clean: status %d\n%s\n", repaired, said);
	if (repaired != 0 && repaired != 1) {
		if (!is_cut && !may_be_given_up(mangling))
			fail("fsck.zfuse -y: status %d\n%s\n", repaired, said);
		shared->left++;
		return false;
	}
	shared->clean += before == 0;
	shared->repaired += before != 0;
	after = before == 0 ? 0 : fsck("-n");
	if (after != 0)
		fail("fsck.zfuse -n after -y: status %d\n%s\n", after, said);
	return after == 0;
}

struct trial {
	struct places *places;
	const struct mangling *mangling;
};

static void try_it(void *arg)
{
	const struct trial *trial = arg;
	struct zf_rng rng;
	bool mounts, changes, is_cut, sound;

	zf_rng_seed(&rng, trial->mangling->seed + 1);
	mounts = options.mounts > 0 && zf_rng_below(&rng, options.mounts) == 0;
	changes = zf_rng_chance(&rng, 30);
	lie_tell(trial->places, trial->mangling->lies, trial->mangling->count);
	file_write_own(trial->places->file);
	snprintf(image, sizeof(image), "%s", trial->places->file->path);
	is_cut = cut_file(&rng, trial->places->file->size);
	restore(&rng);
	look(&rng);
	look_at_something(trial->places, &rng);
	if (mounts && zf_rng_chance(&rng, 50))
		mount_it(false);
	sound = check_and_repair(trial->mangling, is_cut);
	if (mounts && sound)
		mount_it(true);
	if (changes)
		change(&rng, sound);
	if (zf_rng_chance(&rng, 10))
		make_anew();
	unlink(image);
}

/* False: it has failed, and is told of. `option`: of which there was one. */
static bool report(const char *option, uint64_t seed, bool ended, const char *how)
{
	if (ended && !shared->failed)
		return true;
	failures++;
	printf("FAILED: %s 1 --seed %" PRIu64 ": %s\n%s", option, seed, ended ? "" : how,
	       shared->text);
	return false;
}

static void try_mangling(struct places *places, uint64_t seed)
{
	struct mangling mangling;
	struct trial trial = {.places = places, .mangling = &mangling};
	char how[64];
	bool ended;

	mangling_make(places, seed, &mangling);
	shared->failed = false;
	shared->text[0] = '\0';
	shared->manglings++;
	ended = child_run(try_it, &trial, how, sizeof(how));
	if (!report("--manglings", seed, ended, how))
		mangling_print(&mangling);
	mangling_free(&mangling);
}

static void try_images(enum image_kind kind)
{
	static struct places places;
	struct forge forge;
	struct file file;

	image_make(kind, &forge);
	places_find(&places, &forge);
	file_make(&forge, &file);
	places_find_trailer(&places, &file);
	for (uint64_t i = 0; i < options.manglings; i++)
		if ((options.seed + i) % IMAGE_KINDS == kind)
			try_mangling(&places, options.seed + i);
	file_free(&file);
	image_free(&forge);
}

/* ---- traces ---- */

struct bytes {
	uint8_t *bytes;
	size_t len;
};

static struct bytes read_bytes(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t end = lseek(fd, 0, SEEK_END);
	struct bytes bytes = {.len = end > 0 ? (size_t)end : 0};

	bytes.bytes = malloc(bytes.len);
	assert(fd >= 0 && bytes.bytes && bytes.len > 0);
	if (pread(fd, bytes.bytes, bytes.len, 0) != end)
		abort();
	close(fd);
	return bytes;
}

/* A number of 1 to 8 bytes: one that breaks arithmetic, or what stands elsewhere in the file. */
static void change_number(uint8_t *bytes, size_t len, size_t first, struct zf_rng *rng)
{
	static const uint64_t edges[] = {
		0,
		1,
		UINT32_MAX,
		UINT64_C(1) << 32,
		INT64_MAX,
		UINT64_C(1) << 63,
		UINT64_MAX - 4095,
		UINT64_MAX,
	};
	static const size_t widths[] = {1, 4, 8};
	size_t width = widths[zf_rng_below(rng, ZF_ARRAY_SIZE(widths))], at;
	uint64_t number = edges[zf_rng_below(rng, ZF_ARRAY_SIZE(edges))];

	if (len < first + 16)
		return;
	at = zf_align_down(first + zf_rng_below(rng, len - first - 8), width);
	if (zf_rng_chance(rng, 40))
		memcpy(&number, bytes + zf_align_down(zf_rng_below(rng, len - 8), 8), width);
	memcpy(bytes + at, &number, width);
}

/* Most are changed behind their header only, for else that is all that would be looked at. */
static void write_damaged(const struct bytes *bytes, const char *path, struct zf_rng *rng)
{
	uint8_t *copy = malloc(bytes->len);
	size_t len = zf_rng_chance(rng, 20) ? (size_t)zf_rng_below(rng, bytes->len) : bytes->len;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert(copy && fd >= 0);
	memcpy(copy, bytes->bytes, bytes->len);
	for (uint64_t n = zf_rng_below(rng, 8); n > 0; n--)
		change_number(copy, len, TRACE_HEADER, rng);
	if (zf_rng_chance(rng, 20))
		change_number(copy, zf_min_u64(len, TRACE_HEADER), 0, rng);
	if (write(fd, copy, len) != (ssize_t)len)
		abort();
	close(fd);
	free(copy);
}

struct trace {
	struct bytes trace, data;
	uint64_t seed;
};

static void try_trace(void *arg)
{
	const struct trace *trace = arg;
	char path[330], data[330], at[32], outcome[32];
	struct zf_rng rng;

	zf_rng_seed(&rng, trace->seed);
	snprintf(path, sizeof(path), "%s.trace", image);
	snprintf(data, sizeof(data), "%s.data", image);
	write_damaged(&trace->trace, path, &rng);
	write_damaged(&trace->data, data, &rng);
	snprintf(at, sizeof(at), "%" PRIu64, zf_rng_below(&rng, trace->trace.len / 64 + 2));
	snprintf(outcome, sizeof(outcome), "%" PRIu64, zf_rng_below(&rng, 100));
	(void)run((const char *const[]){ZFUSECTL, "trace", "print", path, NULL});
	(void)run((const char *const[]){ZFUSECTL, "replay", path, "--trace-data", data, "-o", image,
					NULL});
	if (run((const char *const[]){ZFUSECTL, "lab", "crash", path, image, "--trace-data", data,
				      "--at", at, "--outcome", outcome, "--force", NULL}) == 0)
		(void)fsck("-n");
	unlink(image);
	unlink(path);
	unlink(data);
}

/* Of a short run of the crash explorer. */
static void make_trace(struct trace *ret_trace)
{
	char path[330], data[330];

	snprintf(path, sizeof(path), "%s.trace", image);
	snprintf(data, sizeof(data), "%s.data", image);
	if (run((const char *const[]){"tests/crash/crash", "--ops", "60", "--repeat", "3",
				      "--trace", path, "--trace-data", data, NULL}) != 0)
		abort();
	ret_trace->trace = read_bytes(path);
	ret_trace->data = read_bytes(data);
	unlink(path);
	unlink(data);
}

static void try_traces(void)
{
	struct trace trace;
	char how[64];
	bool ended;

	if (options.traces == 0)
		return;
	make_trace(&trace);
	for (uint64_t i = 0; i < options.traces; i++) {
		trace.seed = options.seed + i;
		shared->failed = false;
		shared->text[0] = '\0';
		shared->traces++;
		ended = child_run(try_trace, &trace, how, sizeof(how));
		(void)report("--traces", trace.seed, ended, how);
	}
	free(trace.trace.bytes);
	free(trace.data.bytes);
}

/* ---- the program ---- */

static void take_options(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"seed", required_argument, NULL, 's'},
		{"manglings", required_argument, NULL, 'n'},
		{"mounts", required_argument, NULL, 'm'},
		{"traces", required_argument, NULL, 't'},
		{0},
	};
	int c;

	options.seed = (uint64_t)time(NULL);
	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (c == 's')
			options.seed = strtoull(optarg, NULL, 0);
		else if (c == 'n')
			options.manglings = strtoull(optarg, NULL, 0);
		else if (c == 'm')
			options.mounts = strtoull(optarg, NULL, 0);
		else if (c == 't')
			options.traces = strtoull(optarg, NULL, 0);
		else
			exit(2);
	}
	if (optind + 1 != argc)
		exit(2);
	options.bin = argv[optind];
}

static bool can_mount(void)
{
	if (geteuid() == 0 && access("/dev/fuse", R_OK | W_OK) == 0)
		return true;
	printf("skipped: --mounts needs root and /dev/fuse\n");
	return false;
}

static void make_paths(void)
{
	const char *directory = getenv("TMPDIR");
	int pid = (int)getpid();

	directory = directory ? directory : "/tmp";
	snprintf(image, sizeof(image), "%.200s/programs-%d-image", directory, pid);
	snprintf(scratch, sizeof(scratch), "%.200s/programs-%d-restored", directory, pid);
	snprintf(mountpoint, sizeof(mountpoint), "%.200s/programs-%d-mnt", directory, pid);
	mkdir(mountpoint, 0700);
}

int main(int argc, char **argv)
{
	take_options(argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("seed %" PRIu64 " (replay with --seed)\n", options.seed);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert(shared != MAP_FAILED);
	if (options.mounts > 0 && !can_mount())
		return 77;
	make_paths();
	try_traces();
	for (unsigned int kind = 0; kind < IMAGE_KINDS; kind++)
		try_images((enum image_kind)kind);
	rmdir(mountpoint);
	printf("%" PRIu64 " manglings and %" PRIu64 " traces, %" PRIu64 " programs, %" PRIu64
	       " mounts: %" PRIu64 " clean, %" PRIu64 " repaired, %" PRIu64 " left alone\n",
	       shared->manglings, shared->traces, shared->programs, shared->mounts, shared->clean,
	       shared->repaired, shared->left);
	printf("%u failures\n", failures);
	return failures > 0;
}
