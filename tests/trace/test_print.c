/* SPDX-License-Identifier: MIT */
/* What a trace's records look like as JSON, and that docs/trace.md says the same. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "ctl/trace_json.h"
#include "support/format_doc.h"
#include "trace/data_format.h"
#include "trace/trace.h"

#define ZONE UINT64_C(0x100000)

static const struct zf_disk_trace_header *header(void)
{
	static struct zf_disk_trace_header made = {.magic = ZF_TRACE_MAGIC};

	made.zone_size = zf_le64_from(ZONE);
	return &made;
}

static void check(uint16_t event, const void *payload, size_t len, const char *expected)
{
	struct zf_disk_trace_record record = {
		.sequence = zf_le64_from(7),
		.time = zf_le64_from(8),
		.thread = zf_le32_from(9),
		.event = zf_le16_from(event),
	};
	struct json_object *object;
	char text[512];

	memcpy(record.payload, payload, len);
	object = zf_trace_json_record(header(), &record);
	snprintf(text, sizeof(text), "{\"sequence\":7,\"time\":8,\"thread\":9,%s}", expected);
	assert_string_equal(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN), text);
	json_object_put(object);
}

#define CHECK(name, expected, ...)                                                                 \
	check(ZF_TRACE_##name, &(struct zf_trace_##name){__VA_ARGS__},                             \
	      sizeof(struct zf_trace_##name), "\"event\":\"" #name "\"," expected)

static void every_kind_of_field_is_printed(void **state)
{
	CHECK(thread, "\"name\":\"zfuse-io\"", .name.text = "zfuse-io");
	CHECK(operation_ended, "\"began\":3,\"inode\":4,\"result\":-28,\"operation\":\"write\"",
	      .began = 3, .inode = 4, .result = -28, .operation = ZF_OPERATION_WRITE);
	CHECK(command_submitted,
	      "\"address\":2097152,\"address_zone\":2,\"bytes\":4096,\"command\":\"append\","
	      "\"purpose\":\"log\",\"fua\":true",
	      .address = 2 * ZONE, .bytes = 4096, .command = 2, .purpose = ZF_FOR_LOG, .fua = 1);
	CHECK(zone_role, "\"address\":0,\"address_zone\":0,\"role\":\"hot\",\"before\":\"none\"",
	      .role = 4);
	CHECK(extent_set,
	      "\"inode\":1,\"offset\":0,\"bytes\":9,\"address\":0,\"address_zone\":0,"
	      "\"type\":\"inline\"",
	      .inode = 1, .bytes = 9, .type = 1);
	CHECK(tree_sealed,
	      "\"generation\":6,\"address\":1048576,\"address_zone\":1,\"tree\":\"fs\",\"level\":1",
	      .generation = 6, .address = ZONE, .tree = 2, .level = 1);
	CHECK(log_appended,
	      "\"log_sequence\":1,\"address\":0,\"address_zone\":0,\"bytes\":0,\"bodies\":2,"
	      "\"data_blocks\":3,\"submitted\":4",
	      .log_sequence = 1, .bodies = 2, .data_blocks = 3, .submitted = 4);
	CHECK(log_replayed, "\"log_number\":1,\"inode\":2,\"type\":\"extents\"", .log_number = 1,
	      .inode = 2, .type = 2);
}

/* The file may be anybody's. */
static void what_is_not_known_is_said_to_be_unknown(void **state)
{
	uint8_t payload[ZF_TRACE_PAYLOAD];

	memset(payload, 0xff, sizeof(payload));
	check(95, payload, 0,
	      "\"event\":\"unknown 95\",\"payload\":\"0000000000000000000000000000000000000000"
	      "0000000000000000000000000000000000000000\"");
	check(60000, payload, 1,
	      "\"event\":\"unknown 60000\",\"payload\":\"ff00000000000000000000000000000000000000"
	      "0000000000000000000000000000000000000000\"");
	for (uint16_t event = 0; event < ZF_TRACE_EVENT_MAX; event++) {
		struct zf_disk_trace_record record = {.event = zf_le16_from(event)};
		struct json_object *object;

		memcpy(record.payload, payload, sizeof(payload));
		object = zf_trace_json_record(header(), &record);
		assert_non_null(json_object_to_json_string(object));
		json_object_put(object);
	}
}

static void every_event_has_a_name_a_sentence_and_room(void **state)
{
	unsigned int seen = 0;

	for (unsigned int i = 0; i < ZF_TRACE_EVENT_MAX; i++) {
		const struct zf_trace_event *event = &zf_trace_events[i];
		unsigned int size = 0;

		if (!event->name)
			continue;
		seen++;
		assert_true(event->text[strlen(event->text) - 1] == '.');
		for (unsigned int f = 0; f < ZF_TRACE_FIELDS_MAX && event->field[f].name; f++)
			size += zf_trace_kind_size(event->field[f].kind);
		assert_in_range(size, 1, ZF_TRACE_PAYLOAD);
		assert_null(event->field[ZF_TRACE_FIELDS_MAX - 1].name);
	}
	assert_true(seen > 20);
}

static char *describe_events(void)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	for (unsigned int i = 0; i < ZF_TRACE_EVENT_MAX; i++) {
		const struct zf_trace_field *field = zf_trace_events[i].field;
		unsigned int offset = 0;

		if (!zf_trace_events[i].name)
			continue;
		fprintf(out, "%2u %s: %s\n", i, zf_trace_events[i].name, zf_trace_events[i].text);
		for (; field->name; field++) {
			unsigned int len = zf_trace_kind_size(field->kind);

			fprintf(out, "   %2u %2u  %-9s  %s\n", offset, len,
				zf_trace_kind_name(field->kind), field->name);
			offset += len;
		}
	}
	fclose(out);
	return text;
}

static void the_documentation_has_every_struct_and_event(void **state)
{
	char *text = describe_events();

	zf_format_doc_check(ZF_TRACE_DOC, &zf_trace_header_fields);
	zf_format_doc_check(ZF_TRACE_DOC, &zf_trace_record_fields);
	zf_format_doc_check(ZF_TRACE_DOC, &zf_trace_data_header_fields);
	zf_format_doc_check(ZF_TRACE_DOC, &zf_trace_data_zone_fields);
	zf_format_doc_check(ZF_TRACE_DOC, &zf_trace_data_piece_fields);
	zf_format_doc_check_block(ZF_TRACE_DOC, "The table", text);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_field_is_printed),
		cmocka_unit_test(what_is_not_known_is_said_to_be_unknown),
		cmocka_unit_test(every_event_has_a_name_a_sentence_and_room),
		cmocka_unit_test(the_documentation_has_every_struct_and_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
