/* SPDX-License-Identifier: MIT */
/* Checks and repairs a damaged filesystem, and keeps the messages. */
#ifndef ZF_TESTS_REPAIR_FIXTURE_H
#define ZF_TESTS_REPAIR_FIXTURE_H

#include "listing.h"
#include "repair/repair.h"

/* Prints the messages of the last check or repair to stderr, line by line. */
void fixture_print_messages(void);
/* The first line, or "". */
void fixture_first_message(char *ret_text, size_t size);
/* Did the last check or repair report a line that contains both? */
bool fixture_said(const char *a, const char *b);
/* How many lines of the last check or repair contain the text. */
unsigned int fixture_count_said(const char *text);

/* The errors that fsck -n reports: of the newest superblock, and of the state after a mount. */
uint64_t fixture_errors(struct zf_dev *dev);

int fixture_repair_with(struct zf_dev *dev, const struct zf_repair_options *options,
			struct zf_repair_counts *ret_counts);
int fixture_repair(struct zf_dev *dev, struct zf_repair_counts *ret_counts);

#endif
