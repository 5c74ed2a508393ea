/* SPDX-License-Identifier: MIT */
/*
 * The theoretical cost of greedy cleaning under uniform overwrites. If the fraction u of all zones
 * is live, the fraction v of the emptiest zone is live, where u = (v - 1) / ln v (Menon, 1995;
 * Desnoyers, 2012: for many large zones). Emptying that zone moves v to get 1 - v back, so each
 * write costs 1 / (1 - v).
 */
#ifndef ZF_BENCH_AGE_GREEDY_H
#define ZF_BENCH_AGE_GREEDY_H

/* 0 <= u < 1 */
double age_greedy_victim(double u);
double age_greedy_amplification(double u);

#endif
