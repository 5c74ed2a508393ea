/* SPDX-License-Identifier: MIT */
/* zfusectl scrub: verifies all that a filesystem holds, while it is in use (fs/space/scrub.h). */
#ifndef ZF_TOOLS_SCRUB_H
#define ZF_TOOLS_SCRUB_H

#include <json-c/json.h>

#include "args.h"

int zf_scrub_main(const struct zf_args *args);

/* One damaged place, as the answers of the scrub commands have it: a line. */
void zf_scrub_print_damage(struct json_object *error);

#endif
