// SPDX-License-Identifier: MIT
/*
 * entries make|remove|check DIR COUNT [file|dir|link|symlink|fifo]	names e0 ... e(COUNT-1)
 *
 * entries watch DIR COUNT SECONDS	lists DIR while another process makes, renames and removes
 *					other names: e0 ... must be there once each time, and no
 *					name twice
 *
 * entries seek DIR			each position that readdir tells leads back to the same
 *					entry
 *
 * check: the directory lists exactly these names, once each, with the right type.
 */
#include "common.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned char type;
} types[] = {{"file", DT_REG},
	     {"dir", DT_DIR},
	     {"link", DT_REG},
	     {"symlink", DT_LNK},
	     {"fifo", DT_FIFO}};

static unsigned char type_of(const char *name)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(types[i].name, name) == 0)
			return types[i].type;
	}
	die("no such type: %s", name);
}

static void make_one(int dir, const char *name, const char *type)
{
	int result;

	if (strcmp(type, "dir") == 0) {
		result = mkdirat(dir, name, 0755);
	} else if (strcmp(type, "link") == 0 && strcmp(name, "e0") != 0) {
		result = linkat(dir, "e0", dir, name, 0);
	} else if (strcmp(type, "symlink") == 0) {
		result = symlinkat("target", dir, name);
	} else {
		result = mknodat(dir, name,
				 (type[0] == 'f' && type[2] == 'f' ? S_IFIFO : S_IFREG) | 0644, 0);
	}
	if (result)
		die("making %s: %s", name, strerror(errno));
}

static int open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	return fd;
}

static void make(const char *path, unsigned long count, const char *type)
{
	int dir = open_dir(path);
	char name[32];

	for (unsigned long i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "e%lu", i);
		make_one(dir, name, type);
	}
	close(dir);
}

static void remove_all(const char *path, unsigned long count, const char *type)
{
	int dir = open_dir(path);
	char name[32];

	for (unsigned long i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "e%lu", i);
		if (unlinkat(dir, name, type_of(type) == DT_DIR ? AT_REMOVEDIR : 0))
			die("removing %s: %s", name, strerror(errno));
	}
	close(dir);
}

#define OTHERS (4u << 20)

/* For each entry, the number of the last listing that had it. */
struct seen {
	uint32_t round;
	uint32_t *entries; /* e0 ... */
	uint32_t *others; /* c0 ... of watch(), which may be there or not; NULL if there are none */
	unsigned long count;
};

/* Is this the first time that this listing has the entry? */
static bool is_new(uint32_t *rounds, unsigned long limit, unsigned long n, uint32_t round)
{
	if (!rounds || n >= limit || rounds[n] == round)
		return false;
	rounds[n] = round;
	return true;
}

/* Lists once: e0 ... must all be there, no name twice, and no name of another kind. */
static void list(DIR *dir, struct seen *seen, int type)
{
	struct dirent *e;

	seen->round++;
	while (errno = 0, (e = readdir(dir))) {
		char *end;
		unsigned long n = strtoul(e->d_name + 1, &end, 10);

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (*end != '\0' ||
		    !(e->d_name[0] == 'e' ? is_new(seen->entries, seen->count, n, seen->round)
					  : is_new(seen->others, OTHERS, n, seen->round)))
			die("%s is listed, or listed twice", e->d_name);
		if (type >= 0 && e->d_type != type && e->d_type != DT_UNKNOWN)
			die("%s has type %d", e->d_name, e->d_type);
	}
	if (errno)
		die("readdir: %s", strerror(errno));
	for (unsigned long i = 0; i < seen->count; i++) {
		if (seen->entries[i] != seen->round)
			die("e%lu is not listed", i);
	}
}

static DIR *open_stream(const char *path)
{
	DIR *dir = opendir(path);

	if (!dir)
		die("%s: %s", path, strerror(errno));
	return dir;
}

static void check(const char *path, unsigned long count, const char *type)
{
	struct seen seen = {.entries = xalloc((count + 1) * sizeof(*seen.entries)), .count = count};
	DIR *dir = open_stream(path);

	for (int round = 0; round < 2; round++) {
		list(dir, &seen, type_of(type));
		rewinddir(dir);
	}
	closedir(dir);
	free(seen.entries);
}

/* Makes, renames and removes names that begin with c until it is killed. No name comes a second
 * time. */
static void change(const char *path)
{
	int dir = open_dir(path);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned long i = 0; i + 1 < OTHERS; i += 2) {
		char name[32], next[32], old[32];

		snprintf(name, sizeof(name), "c%lu", i);
		snprintf(next, sizeof(next), "c%lu", i + 1);
		snprintf(old, sizeof(old), "c%lu", i - 599);
		if (mknodat(dir, name, S_IFREG | 0644, 0) || renameat(dir, name, dir, next) ||
		    (i >= 600 && unlinkat(dir, old, 0)))
			die("changing %s: %s", name, strerror(errno));
	}
}

static void watch(const char *path, unsigned long count, unsigned long seconds)
{
	struct seen seen = {.count = count};
	DIR *dir = open_stream(path);
	time_t end = time(NULL) + (time_t)seconds;
	pid_t pid;

	seen.entries = xalloc((count + 1) * sizeof(*seen.entries));
	seen.others = xalloc(OTHERS * sizeof(*seen.others));
	pid = fork();
	if (pid == 0) {
		change(path);
		exit(0);
	}
	/* At least three listings, even if they take longer. */
	while (seen.round < 3 || time(NULL) < end) {
		list(dir, &seen, -1);
		rewinddir(dir);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	closedir(dir);
	free(seen.entries);
	free(seen.others);
}

static void seek(const char *path)
{
	size_t count = 0, room = 1 << 20;
	long *positions = xalloc(room * sizeof(*positions));
	char(*names)[32] = xalloc(room * sizeof(*names));
	DIR *dir = open_stream(path);
	struct dirent *e;

	for (long at = telldir(dir); (e = readdir(dir)); at = telldir(dir), count++) {
		if (count == room)
			die("too many names");
		positions[count] = at;
		snprintf(names[count], sizeof(names[0]), "%.31s", e->d_name);
	}
	/* Seeks backwards and in large steps, so that no entry is at the stream's position. */
	for (size_t i = 0; i < count; i++) {
		size_t at = (count - 1 - i) * 7919 % count;

		seekdir(dir, positions[at]);
		e = readdir(dir);
		if (!e || strncmp(e->d_name, names[at], sizeof(names[0]) - 1) != 0)
			die("position %zu leads to %s instead of %s", at, e ? e->d_name : "the end",
			    names[at]);
	}
	closedir(dir);
	free(positions);
	free(names);
}

int main(int argc, char **argv)
{
	const char *type = argc > 4 ? argv[4] : "file";
	unsigned long count = argc > 3 ? arg_number(argv[3]) : 0;

	if (argc == 3 && strcmp(argv[1], "seek") == 0)
		seek(argv[2]);
	else if (argc == 5 && strcmp(argv[1], "watch") == 0)
		watch(argv[2], count, arg_number(argv[4]));
	else if (argc >= 4 && strcmp(argv[1], "make") == 0)
		make(argv[2], count, type);
	else if (argc >= 4 && strcmp(argv[1], "remove") == 0)
		remove_all(argv[2], count, type);
	else if (argc >= 4 && strcmp(argv[1], "check") == 0)
		check(argv[2], count, type);
	else
		die("usage: entries make|remove|check DIR COUNT [TYPE] | watch DIR COUNT SECONDS | "
		    "seek DIR");
	printf("%s %s: as expected\n", argv[1], argv[2]);
	return 0;
}
