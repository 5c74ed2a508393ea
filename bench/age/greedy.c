/* SPDX-License-Identifier: MIT */
#include "age/greedy.h"

#include <math.h>

#define HALVINGS 60u

double age_greedy_victim(double u)
{
	double low = 0, high = 1;

	for (unsigned int i = 0; i < HALVINGS; i++) {
		double v = (low + high) / 2;

		/* It grows with v, from 0 to 1. */
		if ((v - 1) / log(v) < u)
			low = v;
		else
			high = v;
	}
	return low;
}

double age_greedy_amplification(double u)
{
	return 1 / (1 - age_greedy_victim(u));
}
