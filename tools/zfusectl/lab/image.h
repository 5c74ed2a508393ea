/* SPDX-License-Identifier: MIT */
/* What the simulator has becomes an image (io/image.h). */
#ifndef ZF_TOOLS_LAB_IMAGE_H
#define ZF_TOOLS_LAB_IMAGE_H

#include "base/report.h"
#include "io/geometry.h"

struct zf_sim;

/*
 * A new file `path`; with `force` it replaces what is there. Nothing is in flight on `sim`. Its
 * pointers, reset counts and blocks, those above the pointers too, are the image's. With one uuid
 * (16 bytes), the same state is the same file. Errors are reported, and leave no file that was not
 * there.
 */
int zf_lab_image_make(const char *path, const struct zf_sim *sim,
		      const struct zf_geometry *geometry, const uint8_t *uuid, bool force,
		      const struct zf_report *report);

#endif
