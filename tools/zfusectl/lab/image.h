/* SPDX-License-Identifier: MIT */
/* Writes the simulator's device as an image (io/image.h). */
#ifndef ZF_TOOLS_LAB_IMAGE_H
#define ZF_TOOLS_LAB_IMAGE_H

#include "base/report.h"
#include "io/geometry.h"

struct zf_sim;

/*
 * Makes a new file `path`; with `force` replaces an existing one. `sim` has no command in flight.
 * The image gets its pointers, reset counts and blocks, also those above the pointers. The same
 * state and uuid (16 bytes) give the same file. Errors are reported; after an error no new file is
 * left.
 */
int zf_lab_image_make(const char *path, const struct zf_sim *sim,
		      const struct zf_geometry *geometry, const uint8_t *uuid, bool force,
		      const struct zf_report *report);

#endif
