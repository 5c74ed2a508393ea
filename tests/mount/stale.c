/* SPDX-License-Identifier: MIT */
/*
 * stale DIR ROUNDS CHANGE: does the kernel ever keep attributes from before a change?
 *
 * Some threads ask all the time for the attributes of DIR, or of a file in it, while another thread
 * makes changes that alter them: it sets the file's extended attributes (xattr), writes to the file
 * through a mapping (mmap), renames it (rename), adds and removes a second name (link), allocates
 * and frees space (fallocate), or makes and removes directories in DIR (mkdir). When all threads
 * have stopped, the attributes in the kernel's cache must be those of the filesystem. Prints in how
 * many rounds they were not; status 1 if in any.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ASKERS	12
#define ASKS	20
#define CHANGES 6 /* even: then all is as it was */

static pthread_barrier_t barrier;
static int dir_fd, file_fd;
static unsigned long rounds;

/* ---- changes ---- */

static int change_xattr(unsigned int i)
{
	return fsetxattr(file_fd, "user.stale", &i, sizeof(i), 0);
}

static int change_mmap(unsigned int i)
{
	static volatile char *page;

	if (!page) {
		if (ftruncate(file_fd, 4096) < 0)
			return -1;
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file_fd, 0);
		if (page == MAP_FAILED)
			return -1;
	}
	*page = (char)i;
	return sync_file_range(file_fd, 0, 4096,
			       SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}

static int change_rename(unsigned int i)
{
	static const char *const names[] = {"file", "renamed"};

	return renameat(dir_fd, names[i % 2], dir_fd, names[(i + 1) % 2]);
}

static int change_link(unsigned int i)
{
	return i % 2 == 0 ? linkat(dir_fd, "file", dir_fd, "link", 0) : unlinkat(dir_fd, "link", 0);
}

static int change_fallocate(unsigned int i)
{
	return fallocate(file_fd, FALLOC_FL_KEEP_SIZE | (i % 2 ? FALLOC_FL_PUNCH_HOLE : 0), 0,
			 65536);
}

static int change_mkdir(unsigned int i)
{
	return i % 2 == 0 ? mkdirat(dir_fd, "dir", 0755) : unlinkat(dir_fd, "dir", AT_REMOVEDIR);
}

static const struct change {
	const char *name;
	int (*make)(unsigned int i);
	int *fd; /* whose attributes it alters */
} changes[] = {
	{"xattr", change_xattr, &file_fd},	   {"mmap", change_mmap, &file_fd},
	{"rename", change_rename, &file_fd},	   {"link", change_link, &file_fd},
	{"fallocate", change_fallocate, &file_fd}, {"mkdir", change_mkdir, &dir_fd},
};

static const struct change *change;

/* ---- asking ---- */

static void *ask(void *arg)
{
	struct stat st;

	for (unsigned long round = 0; round < rounds; round++) {
		pthread_barrier_wait(&barrier);
		for (unsigned int i = 0; i < ASKS; i++)
			fstat(*change->fd, &st);
		pthread_barrier_wait(&barrier);
		/* The main thread compares the attributes before the third barrier. */
		pthread_barrier_wait(&barrier);
	}
	return arg;
}

static bool is_stale(void)
{
	struct statx cached, right;

	if (statx(*change->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &cached) < 0 ||
	    statx(*change->fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &right) <
		    0)
		return true;
	return cached.stx_ctime.tv_sec != right.stx_ctime.tv_sec ||
	       cached.stx_ctime.tv_nsec != right.stx_ctime.tv_nsec ||
	       cached.stx_nlink != right.stx_nlink || cached.stx_blocks != right.stx_blocks;
}

static bool set_up(const char *dir, const char *change_name)
{
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		if (strcmp(changes[i].name, change_name) == 0)
			change = &changes[i];
	}
	if (!change || (mkdir(dir, 0755) < 0 && errno != EEXIST))
		return false;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
	if (dir_fd < 0)
		return false;
	file_fd = openat(dir_fd, "file", O_RDWR | O_CREAT, 0644);
	return file_fd >= 0 && pthread_barrier_init(&barrier, NULL, ASKERS + 1) == 0;
}

int main(int argc, char **argv)
{
	pthread_t threads[ASKERS];
	unsigned long stale = 0;

	if (argc != 4 || !set_up(argv[1], argv[3]))
		return 2;
	rounds = strtoul(argv[2], NULL, 10);
	for (unsigned int i = 0; i < ASKERS; i++) {
		if (pthread_create(&threads[i], NULL, ask, NULL) != 0)
			return 2;
	}
	for (unsigned long round = 0; round < rounds; round++) {
		pthread_barrier_wait(&barrier);
		for (unsigned int i = 0; i < CHANGES; i++) {
			if (change->make(i) < 0) {
				perror(change->name);
				return 2;
			}
		}
		pthread_barrier_wait(&barrier);
		stale += is_stale();
		pthread_barrier_wait(&barrier);
	}
	for (unsigned int i = 0; i < ASKERS; i++)
		pthread_join(threads[i], NULL);
	printf("%lu of %lu rounds\n", stale, rounds);
	return stale > 0;
}
