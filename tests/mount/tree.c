/* SPDX-License-Identifier: MIT */
/*
 * tree make|list|check|remove DIR DIRECTORIES FILES: a tree of DIRECTORIES directories with FILES
 * small files each, whose bytes say which file it is.
 *
 * list reads every directory and compares the names; check also reads every file. Both fail with a
 * message if a name is missing, appears twice, or was not made by this program. Prints the action
 * and its time: "make 1000000 files 21.3 s".
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct tree {
	unsigned int directories, files;
	bool contents; /* compared too */
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static _Noreturn void fail(const char *what, const char *name)
{
	fprintf(stderr, "tree: %s %s: %s\n", what, name, strerror(errno));
	exit(1);
}

static _Noreturn void wrong(const char *what, unsigned int directory, const char *name)
{
	fprintf(stderr, "tree: %s in directory %u: %s\n", what, directory, name);
	exit(1);
}

static size_t content_of(unsigned int directory, unsigned int file, char *ret, size_t size)
{
	return (size_t)snprintf(ret, size, "file %u of directory %u\n", file, directory);
}

/* ---- one directory ---- */

static void make_files(const struct tree *tree, unsigned int directory, int fd)
{
	char name[32], content[64];

	for (unsigned int i = 0; i < tree->files; i++) {
		size_t len = content_of(directory, i, content, sizeof(content));
		int file;

		snprintf(name, sizeof(name), "f%u", i);
		file = openat(fd, name, O_CREAT | O_EXCL | O_WRONLY, 0644);
		if (file < 0)
			fail("create", name);
		if (write(file, content, len) != (ssize_t)len || close(file) < 0)
			fail("write", name);
	}
}

static void check_content(unsigned int directory, unsigned int i, int fd, const char *name)
{
	char expected[64], content[64];
	size_t len = content_of(directory, i, expected, sizeof(expected));
	int file = openat(fd, name, O_RDONLY);
	ssize_t n;

	if (file < 0)
		fail("open", name);
	n = read(file, content, sizeof(content));
	if (n < 0)
		fail("read", name);
	close(file);
	if ((size_t)n != len || memcmp(content, expected, len) != 0)
		wrong("other content", directory, name);
}

static void check_files(const struct tree *tree, unsigned int directory, int fd)
{
	bool *seen = calloc(tree->files, sizeof(*seen));
	unsigned int count = 0;
	struct dirent *entry;
	DIR *dir = fdopendir(dup(fd));

	if (!seen || !dir)
		fail("list", "directory");
	while ((entry = readdir(dir))) {
		unsigned int i;
		int end = 0;

		if (entry->d_name[0] == '.')
			continue;
		if (sscanf(entry->d_name, "f%u%n", &i, &end) != 1 || entry->d_name[end] ||
		    i >= tree->files)
			wrong("unknown name", directory, entry->d_name);
		if (seen[i])
			wrong("name twice", directory, entry->d_name);
		seen[i] = true;
		count++;
	}
	closedir(dir);
	if (count != tree->files)
		wrong("names missing", directory, "");
	for (unsigned int i = 0; tree->contents && i < tree->files; i++) {
		char name[32];

		snprintf(name, sizeof(name), "f%u", i);
		check_content(directory, i, fd, name);
	}
	free(seen);
}

static void remove_files(const struct tree *tree, unsigned int directory, int fd)
{
	char name[32];

	for (unsigned int i = 0; i < tree->files; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		if (unlinkat(fd, name, 0) < 0)
			fail("unlink", name);
	}
}

/* ---- all of them ---- */

static void each(const struct tree *tree, bool make, bool remove,
		 void (*fn)(const struct tree *tree, unsigned int directory, int fd))
{
	for (unsigned int d = 0; d < tree->directories; d++) {
		char name[32];
		int fd;

		snprintf(name, sizeof(name), "d%u", d);
		if (make && mkdir(name, 0755) < 0)
			fail("mkdir", name);
		fd = open(name, O_RDONLY | O_DIRECTORY);
		if (fd < 0)
			fail("open", name);
		fn(tree, d, fd);
		close(fd);
		if (remove && rmdir(name) < 0)
			fail("rmdir", name);
	}
}

int main(int argc, char **argv)
{
	struct tree tree;
	const char *verb;
	double began;

	if (argc != 5) {
		fprintf(stderr, "usage: tree make|list|check|remove DIR DIRECTORIES FILES\n");
		return 2;
	}
	verb = argv[1];
	tree = (struct tree){
		.directories = (unsigned int)strtoul(argv[3], NULL, 10),
		.files = (unsigned int)strtoul(argv[4], NULL, 10),
		.contents = strcmp(verb, "check") == 0,
	};
	if (chdir(argv[2]) < 0)
		fail("enter", argv[2]);
	began = now();
	if (strcmp(verb, "make") == 0)
		each(&tree, true, false, make_files);
	else if (strcmp(verb, "list") == 0 || tree.contents)
		each(&tree, false, false, check_files);
	else if (strcmp(verb, "remove") == 0)
		each(&tree, false, true, remove_files);
	else
		return 2;
	printf("%s %u files %.1f s\n", verb, tree.directories * tree.files, now() - began);
	return 0;
}
