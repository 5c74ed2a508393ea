/* SPDX-License-Identifier: MIT */
/*
 * Small histories of a filesystem, for the pictures of the documents (scripts/pictures). They run
 * below FUSE and, except scene_burst(), without threads: each run makes the same history.
 */
#ifndef ZF_BENCH_SCENES_H
#define ZF_BENCH_SCENES_H

/* Makes an image with a directory of so many files, and unmounts it. */
void scene_tree(const char *path, unsigned int files);
/* Changes the mode of one file in the image of scene_tree(). */
void scene_change(const char *path);
/* Makes an image with a file that is written and synced, and then cuts the power. */
void scene_record(const char *path);
/* Overwrites a file at random; prints all zones as a line of JSON every 256 KiB. */
void scene_life(void);
/* Writes, changes and deletes files; prints all zones as a line of JSON at the end. */
void scene_map(void);
/* A calm writer, a burst, and calm again; prints a line of JSON every 50 ms. */
void scene_burst(void);

#endif
