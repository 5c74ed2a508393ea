/* SPDX-License-Identifier: MIT */
/* An engine of submit.c: takes reads and writes, and gives them back when they are done. */
#ifndef SUBMIT_H
#define SUBMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct request {
	int fd;
	bool is_write;
	void *buffer;
	size_t len;
	off_t at;
	unsigned slot; /* of those in flight */
};

struct engine {
	const char *name;
	void (*open)(unsigned depth);
	void (*submit)(const struct request *request);
	/* Waits for a request; returns its slot, and the result that read or write would return. */
	unsigned (*wait)(long *ret_result);
	void (*sync)(int fd); /* while nothing is in flight */
};

extern const struct engine aio_engine, uring_engine;

#endif
