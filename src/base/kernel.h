/* SPDX-License-Identifier: MIT */
/* The version of the running kernel. If the kernel can be asked for a feature, ask it instead. */
#ifndef ZF_BASE_KERNEL_H
#define ZF_BASE_KERNEL_H

#include <stdbool.h>

/* Whether `release`, as uname -r prints it, is `version`.`patch_level` or later. False: unreadable.
 */
bool zf_kernel_release_is_at_least(const char *release, unsigned int version,
				   unsigned int patch_level);

/* The same for the running kernel. */
bool zf_kernel_is_at_least(unsigned int version, unsigned int patch_level);

#endif
