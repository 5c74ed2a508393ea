/* SPDX-License-Identifier: MIT */
/* A filesystem without threads on a memory device, with a clock that the test sets. */
#ifndef ZF_TESTS_FS_NAMES_RIG_H
#define ZF_TESTS_FS_NAMES_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fs/core/fs.h"
#include "fs/core/inode.h"
#include "io/memory.h"

struct names_rig {
	struct zf_memory *memory;
	struct zf_dev *dev;
	struct zf_fs *fs;
	struct zf_ctx ctx; /* root, may wait */
	int64_t now_ns;
	struct zf_mount_options mount; /* of the next mount */
	struct zf_report report;
	bool errors_expected; /* if false, a message of level ERROR fails the test */
	unsigned int errors;
	char message[512]; /* the last error */
};

struct names_rig_options {
	uint32_t node_size;  /* 0: the default */
	uint32_t zone_count; /* 0: 64 */
	uint64_t cache_bytes;
};

void names_rig_init(struct names_rig *rig, const struct names_rig_options *options);
void names_rig_deinit(struct names_rig *rig); /* unmounts: must succeed */
void names_rig_remount(struct names_rig *rig);
/* The setup function of a test, with the smallest nodes: *state is a struct names_rig. */
int names_rig_setup(void **state);
int names_rig_teardown(void **state);
/* Mounts again without an unmount: uncommitted changes are lost. */
void names_rig_crash(struct names_rig *rig);

/* ---- short forms for tests: each fails the test on an error ---- */

uint64_t rig_make(struct names_rig *rig, uint64_t parent, const char *name, mode_t mode);
/* The kernel has no reference to the new inode. */
uint64_t rig_make_forgotten(struct names_rig *rig, uint64_t parent, const char *name, mode_t mode);
struct zf_attr rig_attr(struct names_rig *rig, uint64_t ino);
/* The inode number that a name leads to, or 0. No reference is kept. */
uint64_t rig_find(struct names_rig *rig, uint64_t parent, const char *name);
bool rig_inode_exists(struct names_rig *rig, uint64_t ino);
uint64_t rig_inode_count(struct names_rig *rig);
/* Items that the fs tree has for an objectid, of any type. */
unsigned int rig_count_items(struct names_rig *rig, uint64_t objectid);

#endif
