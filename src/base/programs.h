/* SPDX-License-Identifier: MIT */
#ifndef ZF_BASE_PROGRAMS_H
#define ZF_BASE_PROGRAMS_H

/*
 * From now on a process of root finds programs only in the system's directories: an attacker who
 * made root run the process may have put another sync(1) into PATH. An ordinary user's PATH stays
 * as it is. Called before the process has threads, because the call changes the environment.
 */
void zf_programs_from_system(void);

#endif
