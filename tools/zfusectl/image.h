/* SPDX-License-Identifier: MIT */
/* zfusectl image: a filesystem moves from a zoned disk to an image in a file, or back. */
#ifndef ZF_TOOLS_IMAGE_H
#define ZF_TOOLS_IMAGE_H

/* argv[0] is "image". Returns the exit status. */
int zf_image_main(int argc, char **argv);

#endif
