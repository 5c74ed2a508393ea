/* SPDX-License-Identifier: MIT */
/*
 * A device with threads that disappears: after gone_begin() every request, read and report fails.
 * Requests that were in flight may have been carried out all the same. (The simulator has
 * zf_sim_vanish().)
 */
#ifndef ZF_TESTS_GONE_H
#define ZF_TESTS_GONE_H

#include "io/dev_ops.h"

struct gone {
	struct zf_dev_ops ops;
	const struct zf_dev_ops *real;
	atomic_int error;  /* 0: the device is still there */
	atomic_uint asked; /* requests, reads and reports since gone_begin() */
};

/* To be called before anything is submitted; `gone` must outlive the device. */
void gone_init(struct gone *gone, struct zf_dev *dev);
void gone_begin(struct gone *gone, int error);

#endif
