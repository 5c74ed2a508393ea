// SPDX-License-Identifier: MIT
/* numbered BYTES [FROM]: lines of 16 bytes that count from FROM, so that one out of place shows. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	unsigned long long left, line = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
	char text[32];

	if (argc < 2)
		return 2;
	for (left = strtoull(argv[1], NULL, 0); left > 0;) {
		size_t len = left < 16 ? (size_t)left : 16;

		snprintf(text, sizeof(text), "%015llu\n", line++ % 1000000000000000);
		if (fwrite(text, 1, len, stdout) != len)
			return 1;
		left -= len;
	}
	return fflush(stdout) != 0;
}
