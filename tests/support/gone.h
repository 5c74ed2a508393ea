/* SPDX-License-Identifier: MIT */
/*
 * A device with threads that disappears: from then on whatever is asked of it fails. What was on
 * its way may have been carried out all the same. (The simulator has zf_sim_vanish().)
 */
#ifndef ZF_TESTS_GONE_H
#define ZF_TESTS_GONE_H

#include "io/dev_ops.h"

struct gone {
	struct zf_dev_ops ops;
	const struct zf_dev_ops *real;
	atomic_int error;  /* 0: it is there */
	atomic_uint asked; /* requests, reads and reports since */
};

/* Before anything is submitted; `gone` outlives the device. */
void gone_init(struct gone *gone, struct zf_dev *dev);
void gone_begin(struct gone *gone, int error);

#endif
