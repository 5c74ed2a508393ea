/* SPDX-License-Identifier: MIT */
/* Reads an array of filesystems, as `zfusectl metrics` gathers them, and prints it as metrics. */
#include <json-c/json.h>
#include <unistd.h>

#include "metrics_text.h"

int main(void)
{
	struct json_object *filesystems = json_object_from_fd(STDIN_FILENO);

	if (!filesystems)
		return 2;
	zf_metrics_print(stdout, filesystems);
	json_object_put(filesystems);
	return fflush(stdout) != 0;
}
