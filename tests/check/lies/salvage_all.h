/* SPDX-License-Identifier: MIT */
/* Reads all that src/salvage finds on a device: every item of every inode, and every block of data. */
#ifndef ZF_TESTS_LIES_SALVAGE_ALL_H
#define ZF_TESTS_LIES_SALVAGE_ALL_H

#include <stdint.h>

#include "io/dev.h"

/* `generation` 0: of the newest state. */
void salvage_all(struct zf_dev *dev, uint64_t generation);

#endif
