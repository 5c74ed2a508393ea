/* SPDX-License-Identifier: MIT */
/* docs/format.md shows what one append of data leaves in the trees: it is what the code leaves. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/hash.h"
#include "fs/core/fs.h"
#include "image.h"
#include "support/format_doc.h"

#define FILE_SIZE 9000u

static const struct zf_ctx ctx = {.may_wait = true};

/* A second later at each look. */
static int64_t tick(void *arg)
{
	int64_t *now_ns = arg;

	*now_ns += 1000000000;
	return *now_ns;
}

static void fill(uint8_t *content)
{
	for (unsigned int i = 0; i < FILE_SIZE; i++)
		content[i] = (uint8_t)('a' + i / ZF_BLOCK_SIZE);
}

static void write_hello(struct image *image)
{
	int64_t now_ns = IMAGE_TIME_S * INT64_C(1000000000);
	struct zf_mount_options options = {.now_ns = tick, .now_arg = &now_ns};
	uint8_t content[FILE_SIZE];
	struct zf_attr attr;
	struct zf_fs *fs;

	fill(content);
	assert_int_equal(zf_fs_mount(image->dev, &options, NULL, &fs), 0);
	assert_int_equal(zf_fs_make(fs, &ctx, ZF_INO_ROOT, "hello", S_IFREG | 0644, 0, NULL, &attr),
			 0);
	assert_int_equal(zf_fs_write(fs, &ctx, attr.ino, 0, content, FILE_SIZE, 0), FILE_SIZE);
	assert_int_equal(zf_fs_fsync(fs, &ctx, attr.ino, false), 0);
	zf_fs_forget(fs, attr.ino, 1);
	assert_int_equal(zf_fs_unmount(fs), 0);
}

static void the_extent_and_the_summary_of_an_append_are_shown(void **state)
{
	struct image image;
	char *extent, *summary, *text;

	image_make(&image);
	write_hello(&image);
	extent = image_item_to_text(image_leaf(&image, ZF_TREE_FS), ZF_KEY_EXTENT);
	summary = image_item_to_text(image_leaf(&image, ZF_TREE_SUMMARY), ZF_KEY_SUMMARY);
	assert_true(asprintf(&text, "fs tree:\n%ssummary tree:\n%s", extent, summary) > 0);
	zf_format_doc_check_block(getenv("ZF_FORMAT_DOC"), "An append, byte by byte", text);
	free(text);
	free(summary);
	free(extent);
	image_free(&image);
}

/* What the table below the example says about it. */
static void the_checksums_are_those_of_the_blocks(void **state)
{
	uint8_t content[3 * ZF_BLOCK_SIZE] = {0};
	char line[128];

	fill(content);
	for (unsigned int i = 0; i < 3; i++) {
		snprintf(line, sizeof(line), "| %u | 0x%016llx |", i,
			 (unsigned long long)zf_hash64(content + i * ZF_BLOCK_SIZE, ZF_BLOCK_SIZE));
		zf_format_doc_check_line(getenv("ZF_FORMAT_DOC"), "An append, byte by byte", line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_extent_and_the_summary_of_an_append_are_shown),
		cmocka_unit_test(the_checksums_are_those_of_the_blocks),
	};

	assert_non_null(getenv("ZF_FORMAT_DOC"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
