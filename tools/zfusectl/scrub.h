/* SPDX-License-Identifier: MIT */
/* zfusectl scrub: verifies all data and metadata of a filesystem in use (fs/space/scrub.h). */
#ifndef ZF_TOOLS_SCRUB_H
#define ZF_TOOLS_SCRUB_H

#include <json-c/json.h>

#include "args.h"

int zf_scrub_main(const struct zf_args *args);

/* Prints a line about one damaged place in an answer of the scrub commands. */
void zf_scrub_print_damage(struct json_object *error);

#endif
