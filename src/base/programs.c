/* SPDX-License-Identifier: MIT */
#include "base/programs.h"

#include <paths.h>
#include <stdlib.h>
#include <unistd.h>

void zf_programs_from_system(void)
{
	if (geteuid() == 0)
		setenv("PATH", _PATH_STDPATH, 1);
}
