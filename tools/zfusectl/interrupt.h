/* SPDX-License-Identifier: MIT */
/* Long commands end early, in good order, when SIGINT or SIGTERM comes. */
#ifndef ZF_TOOLS_INTERRUPT_H
#define ZF_TOOLS_INTERRUPT_H

#include <stdbool.h>

/* From now on the first signal is only noted; the second one ends the program. */
void zf_interrupt_catch(void);
bool zf_interrupted(void);

#endif
