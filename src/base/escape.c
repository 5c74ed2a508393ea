/* SPDX-License-Identifier: MIT */
#include "base/escape.h"

#include <stdint.h>
#include <stdio.h>

size_t zf_escape(const void *bytes, size_t len, char *ret_text)
{
	const uint8_t *p = bytes;
	char *out = ret_text;

	for (size_t i = 0; i < len; i++) {
		if (p[i] < 0x20 || p[i] > 0x7e || p[i] == '\\')
			out += sprintf(out, "\\x%02x", p[i]);
		else
			*out++ = (char)p[i];
	}
	*out = '\0';
	return (size_t)(out - ret_text);
}
