/* SPDX-License-Identifier: MIT */
#include "fuse/tunable.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/parse.h"

#define COMMIT_SECONDS_MAX 3600u
#define GC_PERCENT_MAX	   50u

/* 0 is not allowed. */
static int parse_number(const char *text, uint64_t max, uint64_t *ret_number)
{
	uint64_t number;

	if (zf_parse_number(text, max, &number) < 0 || number == 0)
		return -EINVAL;
	*ret_number = number;
	return 0;
}

static int parse_commit(const char *value, struct zf_tunables *tunables)
{
	uint64_t seconds;
	int r = parse_number(value, COMMIT_SECONDS_MAX, &seconds);

	if (r == 0)
		tunables->commit_ms = seconds * 1000;
	return r;
}

static int parse_gc(const char *value, struct zf_tunables *tunables)
{
	if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
		return -EINVAL;
	tunables->gc_given = true;
	tunables->gc_off = strcmp(value, "off") == 0;
	return 0;
}

/* If the option is given several times, the last one counts. */
static int parse_gc_target(const char *value, struct zf_tunables *tunables)
{
	size_t len = strlen(value);
	_zf_free_ char *percent = NULL;
	uint64_t number;
	int r;

	if (len == 0 || value[len - 1] != '%') {
		r = parse_number(value, UINT32_MAX, &number);
		if (r == 0) {
			tunables->gc_zones = number;
			tunables->gc_percent = 0;
		}
		return r;
	}
	percent = strndup(value, len - 1);
	if (!percent)
		return -ENOMEM;
	r = parse_number(percent, GC_PERCENT_MAX, &number);
	if (r == 0) {
		tunables->gc_zones = 0;
		tunables->gc_percent = number;
	}
	return r;
}

static const struct tunable {
	const char *prefix, *allowed;
	int (*parse)(const char *value, struct zf_tunables *tunables);
} all[] = {
	{"commit=", "seconds, 1 to 3600", parse_commit},
	{"gc=", "on or off", parse_gc},
	{"gc_target=", "a number of zones, or 1% to 50%", parse_gc_target},
};

static const struct tunable *find(const char *option)
{
	for (size_t i = 0; i < ZF_ARRAY_SIZE(all); i++)
		if (strncmp(option, all[i].prefix, strlen(all[i].prefix)) == 0)
			return &all[i];
	return NULL;
}

bool zf_tunable_is(const char *option)
{
	return find(option) != NULL;
}

int zf_tunable_set(const char *option, struct zf_tunables *tunables, const char **ret_allowed)
{
	const struct tunable *tunable = find(option);

	*ret_allowed = tunable->allowed;
	return tunable->parse(option + strlen(tunable->prefix), tunables);
}
