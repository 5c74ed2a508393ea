/* SPDX-License-Identifier: MIT */
/*
 * The pages of replays, made by embed.py, cut into texts. zf_replay_page: between the texts go the
 * facts of a trace, and its records. zf_replay_compare: the names of the two files, then the same
 * of each trace.
 */
#ifndef ZF_REPLAY_PAGE_H
#define ZF_REPLAY_PAGE_H

extern const char *const zf_replay_page[3];
extern const char *const zf_replay_compare[6];

#endif
