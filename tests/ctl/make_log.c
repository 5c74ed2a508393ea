/* SPDX-License-Identifier: MIT */
/*
 * Appends log records to an image that is not mounted, as a power cut would leave them: a record
 * with an operation, a record with an inode's state and its data, and a record behind a gap.
 *
 * usage: make_log PATH
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fs/core/fs_format.h"
#include "io/image.h"
#include "superblock/ring.h"
#include "support/log_record.h"

static char prefix[] = "make_log";
static const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};

static void append_operation(struct zf_dev *dev, const struct zf_super *super, uint64_t after)
{
	const struct zf_key gone = ZF_KEY(777, ZF_KEY_EXTENT, 4096);
	const struct zf_key set = ZF_KEY(777, ZF_KEY_INODE, 0);
	struct zf_log_body body;
	struct log_record_body part = {.body = &body, .number = super->op_number + after};

	zf_log_body_begin(&body, ZF_LOG_OPERATION);
	zf_log_body_resize(&body, 777, 12345);
	zf_log_body_set(&body, &set, "item", 4);
	zf_log_body_delete(&body, &gone);
	log_record_append(dev, super, 0, super->log_sequence + after, &part, 1);
	zf_log_body_end(&body);
}

static void append_inode(struct zf_dev *dev, const struct zf_super *super, uint64_t after,
			 bool carries)
{
	static uint8_t data[ZF_BLOCK_SIZE];
	const uint64_t csum = zf_hash64(data, sizeof(data));
	const struct zf_log_range ranges[] = {
		{.type = ZF_LOG_RANGE_DATA, .riding = true, .len = ZF_BLOCK_SIZE, .csums = &csum},
		{.type = ZF_LOG_RANGE_HOLE, .offset = ZF_BLOCK_SIZE, .len = 2 * ZF_BLOCK_SIZE},
	};
	struct zf_log_body body;
	uint8_t *blocks;
	size_t len;
	struct log_record_body part = {
		.body = &body,
		.number = super->op_number + after,
		.data = data,
		.data_blocks = 1,
	};

	zf_log_body_begin(&body, ZF_LOG_EXTENTS);
	zf_log_body_inode(&body, 778, "item", 4);
	for (size_t i = 0; i < ZF_ARRAY_SIZE(ranges); i++)
		zf_log_body_range(&body, &ranges[i]);
	blocks = log_record_make(super, 0, super->log_sequence + after, &part, 1, &len);
	if (carries)
		log_record_carry(super, blocks, &len);
	log_record_append_blocks(dev, super, 0, blocks, len);
	free(blocks);
	zf_log_body_end(&body);
}

static int append_log(struct zf_dev *dev)
{
	const struct zf_super *super;
	unsigned int stepped_over;
	struct zf_ring *ring;
	int r = zf_ring_open(dev, &report, &ring);

	if (r < 0)
		return r;
	r = zf_ring_newest(ring, &super, &stepped_over);
	if (r == 0) {
		append_operation(dev, super, 1);
		append_inode(dev, super, 2, false);
		append_operation(dev, super, 4);
		append_inode(dev, super, 5, true);
	}
	zf_ring_close(ring);
	return r;
}

int main(int argc, char **argv)
{
	const struct zf_open_options options = {0};
	struct zf_dev *dev;
	int r;

	if (argc != 2 || zf_image_open(argv[1], &options, &report, &dev) < 0)
		return EXIT_FAILURE;
	r = append_log(dev);
	zf_dev_close(dev);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
