/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "superblock/ring.h"

#define MESSAGES_MAX 4096u

static char *messages[MESSAGES_MAX];
static unsigned int message_count;

static void keep_message(void *arg, enum zf_report_level level, const char *message)
{
	(void)arg;
	(void)level;
	if (message_count < MESSAGES_MAX)
		messages[message_count++] = strdup(message);
}

static const struct zf_report keeping = {.fn = keep_message};

static void forget_messages(void)
{
	while (message_count > 0)
		free(messages[--message_count]);
}

void fixture_print_messages(void)
{
	for (unsigned int i = 0; i < message_count; i++)
		fprintf(stderr, "    %s\n", messages[i]);
}

void fixture_first_message(char *ret_text, size_t size)
{
	snprintf(ret_text, size, "%s", message_count > 0 ? messages[0] : "");
}

bool fixture_said(const char *a, const char *b)
{
	for (unsigned int i = 0; i < message_count; i++)
		if (strstr(messages[i], a) && strstr(messages[i], b))
			return true;
	return false;
}

unsigned int fixture_count_said(const char *text)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < message_count; i++)
		count += strstr(messages[i], text) != NULL;
	return count;
}

uint64_t fixture_errors(struct zf_dev *dev)
{
	const struct zf_check_options options = {.replay = true};
	struct zf_check_counts counts = {.errors = 1};
	const struct zf_super *super;
	unsigned int stepped_over;
	struct zf_ring *ring;

	forget_messages();
	if (zf_ring_open(dev, &keeping, &ring) < 0)
		return 1;
	if (zf_ring_newest(ring, &super, &stepped_over) == 0)
		(void)zf_check_run(dev, super, &options, &keeping, &counts);
	zf_ring_close(ring);
	return counts.errors;
}

int fixture_repair_with(struct zf_dev *dev, const struct zf_repair_options *options,
			struct zf_repair_counts *ret_counts)
{
	forget_messages();
	*ret_counts = (struct zf_repair_counts){0};
	return zf_repair_run(dev, options, &keeping, ret_counts);
}

int fixture_repair(struct zf_dev *dev, struct zf_repair_counts *ret_counts)
{
	const struct zf_repair_options options = {0};

	return fixture_repair_with(dev, &options, ret_counts);
}
