/* SPDX-License-Identifier: MIT */
/* Reads everything that src/salvage finds on a device: all items of all inodes, and all data. */
#ifndef ZF_TESTS_LIES_SALVAGE_ALL_H
#define ZF_TESTS_LIES_SALVAGE_ALL_H

#include <stdint.h>

#include "io/dev.h"

/* `generation` 0: of the newest state. */
void salvage_all(struct zf_dev *dev, uint64_t generation);

#endif
