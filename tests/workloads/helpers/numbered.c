// SPDX-License-Identifier: MIT
/* numbered BYTES [FROM]: prints lines of 16 bytes that count from FROM, so that a misplaced line
 * shows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE 16
#define PAGE (4096 * LINE)

/* The next number, in decimal: printf would be what takes the time. */
static void count(char *line)
{
	char *digit = line + LINE - 2;

	while (digit >= line && *digit == '9')
		*digit-- = '0';
	if (digit >= line)
		(*digit)++;
}

int main(int argc, char **argv)
{
	unsigned long long left;
	char line[LINE + 8];
	static char page[PAGE];

	if (argc < 2)
		return 2;
	snprintf(line, sizeof(line), "%015lu\n", argc > 2 ? strtoul(argv[2], NULL, 0) : 0);
	for (left = strtoull(argv[1], NULL, 0); left > 0;) {
		size_t len = left < PAGE ? (size_t)left : PAGE;

		for (size_t i = 0; i < PAGE; i += LINE, count(line))
			memcpy(page + i, line, LINE);
		if (fwrite(page, 1, len, stdout) != len)
			return 1;
		left -= len;
	}
	return fflush(stdout) != 0;
}
