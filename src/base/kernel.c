/* SPDX-License-Identifier: MIT */
#include "base/kernel.h"

#include <stdio.h>
#include <sys/utsname.h>

bool zf_kernel_release_is_at_least(const char *release, unsigned int version,
				   unsigned int patch_level)
{
	unsigned int its_version, its_level;

	if (sscanf(release, "%u.%u", &its_version, &its_level) != 2)
		return false;
	return its_version > version || (its_version == version && its_level >= patch_level);
}

bool zf_kernel_is_at_least(unsigned int version, unsigned int patch_level)
{
	struct utsname kernel;

	return uname(&kernel) == 0 &&
	       zf_kernel_release_is_at_least(kernel.release, version, patch_level);
}
