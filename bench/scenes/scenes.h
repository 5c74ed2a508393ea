/* SPDX-License-Identifier: MIT */
/*
 * Small histories of a filesystem, for the pictures of the documents (scripts/pictures). Below FUSE
 * and without threads, but for the burst: the same program makes the same history each time.
 */
#ifndef ZF_BENCH_SCENES_H
#define ZF_BENCH_SCENES_H

/* A new image: a directory of so many files. It is unmounted. */
void scene_tree(const char *path, unsigned int files);
/* The same image: the mode of one file is another. */
void scene_change(const char *path);
/* A new image: a file that was written and synced, and then the power was gone. */
void scene_record(const char *path);
/* A file is overwritten at random: every 256 KiB a line of JSON, with all zones. */
void scene_life(void);
/* Files are written, changed and deleted: at the end a line of JSON, with all zones. */
void scene_map(void);
/* A calm writer, a burst, calm again: a line of JSON every 50 ms. */
void scene_burst(void);

#endif
