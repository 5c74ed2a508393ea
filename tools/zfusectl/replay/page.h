/* SPDX-License-Identifier: MIT */
/* The page of a replay, made by embed.py: head, what is known of the trace, middle, its records, tail. */
#ifndef ZF_REPLAY_PAGE_H
#define ZF_REPLAY_PAGE_H

extern const char zf_replay_head[], zf_replay_middle[], zf_replay_tail[];

#endif
