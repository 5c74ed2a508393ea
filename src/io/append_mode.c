/* SPDX-License-Identifier: MIT */
#include "io/append_mode.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/bits.h"

static const char *const mode_names[] = {
	[ZF_APPEND_BEST] = "best",
	[ZF_APPEND_NATIVE] = "native",
	[ZF_APPEND_EMULATED] = "emulated",
	[ZF_APPEND_LOCKED] = "locked",
};

int zf_append_mode_parse(const char *text, enum zf_append_mode *ret_mode)
{
	for (size_t i = 0; i < ZF_ARRAY_SIZE(mode_names); i++) {
		if (strcmp(text, mode_names[i]) == 0) {
			*ret_mode = (enum zf_append_mode)i;
			return 0;
		}
	}
	return -EINVAL;
}

const char *zf_append_mode_name(enum zf_append_mode mode)
{
	return mode_names[mode];
}
