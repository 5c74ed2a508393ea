/* SPDX-License-Identifier: MIT */
/* zfusectl image: copies a filesystem from a zoned disk to an image in a file, or back. */
#ifndef ZF_TOOLS_IMAGE_H
#define ZF_TOOLS_IMAGE_H

#include "args.h"

/* Returns the exit status. */
int zf_image_main(const struct zf_args *args);

#endif
