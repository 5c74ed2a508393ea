/* SPDX-License-Identifier: MIT */
#ifndef ZF_BASE_PROGRAMS_H
#define ZF_BASE_PROGRAMS_H

/*
 * From now on root's process finds programs only where the system keeps them: whoever made root run
 * it may have put another sync(1) into PATH. An ordinary user's PATH stays as it is. Before the
 * process has threads: it changes the environment.
 */
void zf_programs_from_system(void);

#endif
