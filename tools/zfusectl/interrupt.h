/* SPDX-License-Identifier: MIT */
/* Lets long commands end early and in good order after a SIGINT or SIGTERM. */
#ifndef ZF_TOOLS_INTERRUPT_H
#define ZF_TOOLS_INTERRUPT_H

#include <stdbool.h>

/* From now on the first signal is only noted; the second signal ends the program. */
void zf_interrupt_catch(void);
bool zf_interrupted(void);

#endif
