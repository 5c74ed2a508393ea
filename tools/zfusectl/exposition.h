/* SPDX-License-Identifier: MIT */
/*
 * The text format in which Prometheus reads metrics, version 0.0.4. A family has a HELP line, a
 * TYPE line, and one line for each sample.
 *
 *     # HELP zfuse_commits_total Commits.
 *     # TYPE zfuse_commits_total counter
 *     zfuse_commits_total{device="/dev/nvme0n2"} 7
 */
#ifndef ZF_TOOLS_EXPOSITION_H
#define ZF_TOOLS_EXPOSITION_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct zf_expo_label {
	const char *name;
	const char *value; /* any bytes; invalid UTF-8 becomes U+FFFD. NULL or "": left out */
};

/* `help` has neither newlines nor backslashes. */
void zf_expo_family(FILE *out, const char *name, const char *type, const char *help);

/* The part of a sample in front of its value. `suffix` is "", or "_bucket" and the like. */
void zf_expo_name(FILE *out, const char *name, const char *suffix,
		  const struct zf_expo_label *labels, size_t label_count);
/* The value, which ends the line. */
void zf_expo_number(FILE *out, uint64_t value);
void zf_expo_seconds(FILE *out, uint64_t ns);

#define ZF_EXPO_SECONDS_MAX 32
/* "0.00001", exact. Returns buf. */
const char *zf_expo_print_seconds(uint64_t ns, char buf[ZF_EXPO_SECONDS_MAX]);

#endif
