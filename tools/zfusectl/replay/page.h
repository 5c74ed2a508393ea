/* SPDX-License-Identifier: MIT */
/*
 * The pages of replays, made by embed.py: texts, between which stands what is known of a trace, and
 * its records; of two traces, before those of either, the names of their files.
 */
#ifndef ZF_REPLAY_PAGE_H
#define ZF_REPLAY_PAGE_H

extern const char *const zf_replay_page[3];
extern const char *const zf_replay_compare[6];

#endif
