// SPDX-License-Identifier: MIT
/*
 * stress [-s SEED] [-p PROCESSES] [-n OPERATIONS | -t SECONDS] [-w NAMES] [-x OP,...] [-e] [-v] DIR
 *
 * Several processes do random operations on names, attributes and small files in one tree below
 * DIR. Only few names are possible (-w, 12 in a directory), so that the processes meet. A call may
 * fail only for a reason that another process can have caused. Files hold bytes that follow from
 * inode number and offset, so that a foreign byte shows. In the end the tree is walked: link
 * counts, types and contents must fit. -e: running out of space is no error. Prints a line that is
 * the same every time; with -v also how often each operation was done.
 */
#include "common.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define DEPTH	 3
#define PATH_LEN 256
#define FILE_MAX 40000u

static struct {
	unsigned long ops, processes, seconds, names, seed;
	bool may_be_full, verbose;
	struct rnd rnd;
} s = {.ops = 2000, .processes = 4, .names = 12, .seed = 1};

/* ---- the content of files ---- */

static unsigned char expected_byte(uint64_t ino, uint64_t at)
{
	return (unsigned char)((ino * 31 + at / 512 * 7 + at) | 1);
}

/* A hole, or what a write has not reached yet, reads as 0. */
static void check_bytes(const char *path, uint64_t ino, const unsigned char *bytes, size_t len,
			uint64_t at)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] && bytes[i] != expected_byte(ino, at + i))
			die("%s: byte %llu is %#x instead of %#x or 0", path,
			    (unsigned long long)(at + i), bytes[i], expected_byte(ino, at + i));
	}
}

static int write_some(int fd)
{
	unsigned char bytes[8192];
	uint64_t at = rnd_below(&s.rnd, FILE_MAX);
	size_t len = 1 + rnd_below(&s.rnd, sizeof(bytes));
	struct stat st;

	if (fstat(fd, &st))
		return -1;
	for (size_t i = 0; i < len; i++)
		bytes[i] = expected_byte(st.st_ino, at + i);
	return pwrite(fd, bytes, len, (off_t)at) < 0 ? -1 : 0;
}

static int read_all(const char *path, int fd)
{
	unsigned char bytes[16384];
	struct stat st;
	ssize_t got;

	if (fstat(fd, &st))
		return -1;
	for (uint64_t at = 0; (got = pread(fd, bytes, sizeof(bytes), (off_t)at)) > 0;
	     at += (uint64_t)got)
		check_bytes(path, st.st_ino, bytes, (size_t)got, at);
	return got < 0 ? -1 : 0;
}

/* ---- operations ---- */

/* A path of one to DEPTH names, all below the working directory. */
static char *any_path(char path[PATH_LEN])
{
	unsigned depth = 1 + (unsigned)rnd_below(&s.rnd, DEPTH);
	size_t len = 0;

	for (unsigned i = 0; i < depth; i++)
		len += (size_t)snprintf(path + len, PATH_LEN - len, "%sn%llu", i ? "/" : "",
					(unsigned long long)rnd_below(&s.rnd, s.names));
	return path;
}

/* Runs a statement with a descriptor, and closes it. */
static int with_file(int flags, int (*fn)(const char *path, int fd))
{
	char path[PATH_LEN];
	int fd = open(any_path(path), flags, 0644), result, err;

	if (fd < 0)
		return -1;
	result = fn(path, fd);
	err = errno;
	close(fd);
	errno = err;
	return result;
}

static int do_write(const char *path, int fd)
{
	return write_some(fd);
}
static int do_fsync(const char *path, int fd)
{
	return fsync(fd);
}
static int do_truncate(const char *path, int fd)
{
	return ftruncate(fd, (off_t)rnd_below(&s.rnd, FILE_MAX));
}

static int do_link_tmpfile(const char *path, int fd)
{
	char from[64], to[PATH_LEN];

	if (write_some(fd))
		return -1;
	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, from, AT_FDCWD, any_path(to), AT_SYMLINK_FOLLOW);
}

static int do_list(const char *path, int fd)
{
	char bytes[4096];
	ssize_t got;

	while ((got = getdents64(fd, bytes, sizeof(bytes))) > 0)
		;
	return (int)got;
}

static int op_create(void)
{
	return with_file(O_CREAT | O_EXCL | O_RDWR, do_write);
}
static int op_write(void)
{
	return with_file(O_CREAT | O_RDWR | O_NONBLOCK, do_write);
}
static int op_read(void)
{
	return with_file(O_RDONLY | O_NONBLOCK, read_all);
}
static int op_truncate(void)
{
	return with_file(O_RDWR | O_NONBLOCK, do_truncate);
}
static int op_fsync(void)
{
	return with_file(O_RDONLY | O_NONBLOCK, do_fsync);
}
static int op_list(void)
{
	return with_file(O_RDONLY | O_DIRECTORY, do_list);
}
static int op_tmpfile(void)
{
	return with_file(O_TMPFILE | O_RDWR, do_link_tmpfile);
}

static int op_mkdir(void)
{
	char path[PATH_LEN];

	return mkdir(any_path(path), 0755);
}

static int op_symlink(void)
{
	char target[PATH_LEN], path[PATH_LEN];

	return symlink(any_path(target), any_path(path));
}

static int op_mkfifo(void)
{
	char path[PATH_LEN];

	return mkfifo(any_path(path), 0644);
}

static int op_link(void)
{
	char from[PATH_LEN], to[PATH_LEN];

	return link(any_path(from), any_path(to));
}

static int op_unlink(void)
{
	char path[PATH_LEN];

	return unlink(any_path(path));
}

static int op_rmdir(void)
{
	char path[PATH_LEN];

	return rmdir(any_path(path));
}

static int rename_with(unsigned flags)
{
	char from[PATH_LEN], to[PATH_LEN];

	return renameat2(AT_FDCWD, any_path(from), AT_FDCWD, any_path(to), flags);
}

static int op_rename(void)
{
	return rename_with(0);
}
static int op_noreplace(void)
{
	return rename_with(RENAME_NOREPLACE);
}
static int op_exchange(void)
{
	return rename_with(RENAME_EXCHANGE);
}

static int op_chmod(void)
{
	char path[PATH_LEN];

	return chmod(any_path(path), 0700 | (mode_t)rnd_below(&s.rnd, 0100));
}

static int op_times(void)
{
	char path[PATH_LEN];

	return utimensat(AT_FDCWD, any_path(path), NULL, AT_SYMLINK_NOFOLLOW);
}

static int op_setxattr(void)
{
	char path[PATH_LEN], value[300] = {'v'};

	return setxattr(any_path(path), "user.stress", value, rnd_below(&s.rnd, sizeof(value)), 0);
}

static int op_removexattr(void)
{
	char path[PATH_LEN];

	return removexattr(any_path(path), "user.stress");
}

static int op_stat(void)
{
	char path[PATH_LEN];
	struct stat st;

	return lstat(any_path(path), &st);
}

static struct op {
	const char *name;
	unsigned weight;
	int (*fn)(void);
	unsigned long done;
} ops[] = {
	{"create", 8, op_create, 0},	   {"write", 6, op_write, 0},
	{"read", 4, op_read, 0},	   {"truncate", 2, op_truncate, 0},
	{"fsync", 1, op_fsync, 0},	   {"list", 2, op_list, 0},
	{"tmpfile", 2, op_tmpfile, 0},	   {"mkdir", 8, op_mkdir, 0},
	{"symlink", 2, op_symlink, 0},	   {"mkfifo", 1, op_mkfifo, 0},
	{"link", 4, op_link, 0},	   {"unlink", 6, op_unlink, 0},
	{"rmdir", 3, op_rmdir, 0},	   {"rename", 8, op_rename, 0},
	{"noreplace", 2, op_noreplace, 0}, {"exchange", 2, op_exchange, 0},
	{"chmod", 1, op_chmod, 0},	   {"times", 1, op_times, 0},
	{"setxattr", 2, op_setxattr, 0},   {"removexattr", 1, op_removexattr, 0},
	{"stat", 6, op_stat, 0},
};
#define OPS (sizeof(ops) / sizeof(ops[0]))

static bool may_fail_with(int err)
{
	/* The reasons include, by chance: a fifo that has no reader, a directory moved below
	 * itself, xattrs of an inode that has none. */
	static const int usual[] = {ENOENT, EEXIST, ENOTDIR, EISDIR,  ENOTEMPTY, ELOOP, EINVAL,
				    EMLINK, EPERM,  ENXIO,   ENODATA, ESPIPE,	 EBUSY};

	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		if (err == usual[i])
			return true;
	}
	return err == ENOSPC && s.may_be_full;
}

static struct op *any_op(void)
{
	unsigned sum = 0, at;

	for (size_t i = 0; i < OPS; i++)
		sum += ops[i].weight;
	at = (unsigned)rnd_below(&s.rnd, sum);
	for (size_t i = 0;; i++) {
		if (at < ops[i].weight)
			return &ops[i];
		at -= ops[i].weight;
	}
}

static void work(unsigned long process)
{
	time_t end = time(NULL) + (time_t)s.seconds;

	s.rnd.state = s.seed * 1000003 + process;
	for (unsigned long i = 0; s.seconds ? time(NULL) < end : i < s.ops; i++) {
		struct op *op = any_op();

		if (op->fn() == 0)
			op->done++;
		else if (!may_fail_with(errno))
			die("%s failed: %s", op->name, strerror(errno));
	}
	for (size_t i = 0; i < OPS && s.verbose; i++)
		printf("process %lu: %s %lu\n", process, ops[i].name, ops[i].done);
}

/* ---- the end ---- */

#define FOUND_MAX 100000

static struct found {
	ino_t ino;
	nlink_t links, names;
} found[FOUND_MAX];
static size_t found_count;

/* A linear search will do, because the trees are small. */
static void count_name(const char *path, const struct stat *st)
{
	size_t i = 0;

	while (i < found_count && found[i].ino != st->st_ino)
		i++;
	if (i == FOUND_MAX)
		die("too many files");
	if (i == found_count)
		found[found_count++] = (struct found){.ino = st->st_ino, .links = st->st_nlink};
	if (found[i].links != st->st_nlink)
		die("%s has %lu links, by another of its names %lu", path,
		    (unsigned long)st->st_nlink, (unsigned long)found[i].links);
	found[i].names++;
}

static void check_directory(const char *path, const struct stat *st)
{
	nlink_t expected = 2;
	struct dirent *e;
	DIR *dir = opendir(path);

	if (!dir)
		die("%s: %s", path, strerror(errno));
	while ((e = readdir(dir))) {
		if (e->d_type == DT_DIR && strcmp(e->d_name, ".") != 0 &&
		    strcmp(e->d_name, "..") != 0)
			expected++;
	}
	closedir(dir);
	/* btrfs does not count the links of directories. */
	if (st->st_nlink != expected && st->st_nlink != 1)
		die("%s has %lu links instead of %lu", path, (unsigned long)st->st_nlink,
		    (unsigned long)expected);
}

static int check_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	int fd;

	if (type == FTW_NS || type == FTW_DNR)
		die("%s: cannot be looked at", path);
	if (S_ISDIR(st->st_mode)) {
		check_directory(path, st);
		return 0;
	}
	count_name(path, st);
	if (!S_ISREG(st->st_mode))
		return 0;
	fd = open(path, O_RDONLY);
	if (fd < 0 || read_all(path, fd))
		die("%s: %s", path, strerror(errno));
	close(fd);
	return 0;
}

static void check_tree(void)
{
	if (nftw(".", check_entry, 32, FTW_PHYS))
		die("cannot walk the tree: %s", strerror(errno));
	for (size_t i = 0; i < found_count; i++) {
		if (found[i].links != found[i].names)
			die("inode %llu has %lu links, and %lu names",
			    (unsigned long long)found[i].ino, (unsigned long)found[i].links,
			    (unsigned long)found[i].names);
	}
}

static void leave_out(const char *list)
{
	for (size_t i = 0; i < OPS; i++) {
		const char *at = strstr(list, ops[i].name);
		size_t len = strlen(ops[i].name);

		if (at && (at == list || at[-1] == ',') && (at[len] == ',' || at[len] == '\0'))
			ops[i].weight = 0;
	}
}

static void run(void)
{
	bool ok = true;
	int status;

	fflush(stdout);
	for (unsigned long i = 0; i < s.processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork: %s", strerror(errno));
		if (pid == 0) {
			work(i);
			exit(0);
		}
	}
	while (wait(&status) > 0)
		ok &= status == 0;
	if (!ok)
		exit(1);
}

int main(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "s:p:n:t:w:x:ev")) != -1) {
		switch (opt) {
		case 's':
			s.seed = arg_number(optarg);
			break;
		case 'p':
			s.processes = arg_number(optarg);
			break;
		case 'n':
			s.ops = arg_number(optarg);
			break;
		case 't':
			s.seconds = arg_number(optarg);
			break;
		case 'w':
			s.names = arg_number(optarg);
			break;
		case 'x':
			leave_out(optarg);
			break;
		case 'e':
			s.may_be_full = true;
			break;
		case 'v':
			s.verbose = true;
			break;
		default:
			return 2;
		}
	}
	if (optind + 1 != argc || chdir(argv[optind]))
		die("usage: stress [-s SEED] [-p PROCESSES] [-n OPERATIONS | -t SECONDS] [-w "
		    "NAMES] [-x OP,...] [-e] "
		    "[-v] DIR");
	run();
	check_tree();
	printf("%lu processes: the tree is as it should be\n", s.processes);
	return 0;
}
