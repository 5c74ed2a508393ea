/* SPDX-License-Identifier: MIT */
/* docs/format.md shows a record of the intent log: it is what the code makes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "dump.h"
#include "fs/core/fs_format.h"
#include "image.h"
#include "support/format_doc.h"
#include "support/log_record.h"

#define LOG_ZONE 3u

static void make_super(struct zf_super *super)
{
	*super = (struct zf_super){
		.zone_size = IMAGE_ZONE_SIZE,
		.generation = 1,
		.log_epoch = 1,
		.log_zone = {LOG_ZONE, 4},
		.log_zone_resets = {2, 0},
	};
	for (uint8_t i = 0; i < sizeof(super->fsid); i++)
		super->fsid[i] = (uint8_t)(0x10 + i);
	for (uint8_t i = 0; i < sizeof(super->log_secret); i++)
		super->log_secret[i] = i;
}

static void make_operation(struct zf_log_body *body)
{
	const struct zf_key set = ZF_KEY(ZF_INO_ORPHANS, ZF_KEY_ORPHAN, 256);
	const struct zf_key gone = ZF_KEY(256, ZF_KEY_XATTR_VALUE, 7);

	zf_log_body_begin(body, ZF_LOG_OPERATION);
	zf_log_body_set(body, &set, NULL, 0);
	zf_log_body_delete(body, &gone);
}

static void make_inode(struct zf_log_body *body, const void *data)
{
	const uint64_t csum = zf_hash64(data, ZF_BLOCK_SIZE);
	const struct zf_log_range range = {
		.type = ZF_LOG_RANGE_DATA,
		.riding = true,
		.len = ZF_BLOCK_SIZE,
		.csums = &csum,
	};

	zf_log_body_begin(body, ZF_LOG_EXTENTS);
	zf_log_body_inode(body, 256, "the item", 8);
	zf_log_body_range(body, &range);
}

/* ---- as text ---- */

/* Of its data 16 bytes are enough to see. */
static char *record_to_text(const uint8_t *record, size_t len)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(len, 2 * ZF_BLOCK_SIZE);
	zf_annotate_log_record(record, ZF_BLOCK_SIZE + 16, zf_dump_annotation, out);
	fclose(out);
	return text;
}

static void a_record_is_shown(void **state)
{
	uint8_t data[ZF_BLOCK_SIZE], *record;
	struct zf_log_body operation, inode;
	const struct log_record_body bodies[] = {
		{.body = &operation, .number = 101},
		{.body = &inode, .number = 102, .data = data, .data_blocks = 1},
	};
	struct zf_super super;
	size_t len;
	char *text;

	memset(data, 'z', sizeof(data));
	make_super(&super);
	make_operation(&operation);
	make_inode(&inode, data);
	record = log_record_make(&super, 0, 11, bodies, 2, &len);
	text = record_to_text(record, len);
	zf_format_doc_check_block(getenv("ZF_FORMAT_DOC"), "A log record, byte by byte", text);
	free(text);
	free(record);
	zf_log_body_end(&inode);
	zf_log_body_end(&operation);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_is_shown),
	};

	assert_non_null(getenv("ZF_FORMAT_DOC"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
