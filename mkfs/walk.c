/* SPDX-License-Identifier: MIT */
#include "walk.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "mkfs.h"

static volatile sig_atomic_t caught;

static void note_signal(int number)
{
	caught = number;
}

void mkfs_catch_signals(void)
{
	const struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

int mkfs_check_signals(void)
{
	if (!caught)
		return 0;
	mkfs_error("interrupted by a signal (%s)", strsignal(caught));
	return -EINTR;
}

int mkfs_entry_error(const FTSENT *entry, const char *what, int error)
{
	mkfs_error("%s: %s: %s", entry->fts_path, what, strerror(-error));
	return error;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/*
 * Refuses an image that lies in the tree: the image would be copied into itself, and each copy
 * would differ from the last.
 */
static int refuse_device(const struct mkfs_tree *tree, const struct stat *device,
			 const FTSENT *entry)
{
	const struct stat *found = entry->fts_statp;

	if (entry->fts_info != FTS_F || !S_ISREG(device->st_mode) ||
	    device->st_dev != found->st_dev || device->st_ino != found->st_ino)
		return 0;
	mkfs_error("%s is the image itself: choose a place for it outside %s", entry->fts_path,
		   tree->dir);
	return -EINVAL;
}

static int check_entry(const struct mkfs_tree *tree, const struct stat *device, const FTSENT *entry)
{
	switch (entry->fts_info) {
	case FTS_DNR:
	case FTS_NS:
	case FTS_ERR:
		return mkfs_entry_error(entry, "cannot be read", -entry->fts_errno);
	case FTS_DC:
		mkfs_error("%s: is a directory that contains itself", entry->fts_path);
		return -ELOOP;
	}
	return refuse_device(tree, device, entry);
}

static int walk(FTS *fts, const struct mkfs_tree *tree, const struct stat *device,
		int (*visit)(void *arg, FTSENT *entry), void *arg)
{
	FTSENT *entry;
	int r = 0;

	while (r == 0) {
		errno = 0;
		entry = fts_read(fts);
		if (!entry && errno == 0)
			return 0;
		if (!entry) {
			r = -errno;
			mkfs_error("%s: cannot be walked: %s", tree->dir, strerror(-r));
			return r;
		}
		r = mkfs_check_signals();
		if (r == 0)
			r = check_entry(tree, device, entry);
		if (r == 0)
			r = visit(arg, entry);
	}
	return r;
}

int mkfs_walk(const struct mkfs_tree *tree, int (*visit)(void *arg, FTSENT *entry), void *arg)
{
	char *const paths[] = {(char *)(uintptr_t)tree->dir, NULL};
	struct stat device = {0};
	FTS *fts;
	int r;

	/* Before fts changes the working directory. The device may not exist yet. */
	(void)stat(tree->device, &device);
	fts = fts_open(paths, FTS_PHYSICAL, by_name);
	if (!fts) {
		r = -errno;
		mkfs_error("%s: cannot be walked: %s", tree->dir, strerror(-r));
		return r;
	}
	r = walk(fts, tree, &device, visit, arg);
	fts_close(fts);
	return r;
}
