// SPDX-License-Identifier: MIT
#include "sys.h"

#include <stdio.h>

static void print_byte(unsigned char c)
{
	if (c == '\0')
		printf("\\0");
	else if (c == '\n')
		printf("\\n");
	else if (c == '\\' || c == '{' || c < ' ' || c > '~')
		printf("\\x%02x", c);
	else
		putchar(c);
}

void sys_print_bytes(const char *bytes, size_t len)
{
	size_t run;

	putchar('"');
	for (size_t i = 0; i < len; i += run) {
		for (run = 1; i + run < len && bytes[i + run] == bytes[i];)
			run++;
		if (run < 8) {
			print_byte((unsigned char)bytes[i]);
			run = 1;
			continue;
		}
		putchar('{');
		print_byte((unsigned char)bytes[i]);
		printf("*%zu}", run);
	}
	putchar('"');
}
