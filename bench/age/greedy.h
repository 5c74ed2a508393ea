/* SPDX-License-Identifier: MIT */
/*
 * What greedy cleaning costs under uniform overwrites, in theory: of zones of which the part u is
 * live, the emptiest still has the part v live, where u = (v - 1) / ln v (Menon, 1995; Desnoyers,
 * 2012: many zones, large ones). Emptying it moves v to get 1 - v back, so each write costs 1 / (1
 * - v).
 */
#ifndef ZF_BENCH_AGE_GREEDY_H
#define ZF_BENCH_AGE_GREEDY_H

/* 0 <= u < 1 */
double age_greedy_victim(double u);
double age_greedy_amplification(double u);

#endif
