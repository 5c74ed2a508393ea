/* SPDX-License-Identifier: MIT */
/* `zones` as text: a list, sums, or a map. */
#include <inttypes.h>
#include <string.h>

#include "text.h"

static bool is_retired(struct json_object *zone)
{
	return json_object_get_boolean(zf_text_member(zone, "retired"));
}

/* ---- the list ---- */

static void print_list(struct zf_text *text, struct json_object *zones)
{
	static const struct zf_table_column columns[] = {
		{"ZONE", true}, {"START", true},      {"ROLE", false},
		{"", false},	{"CONDITION", false}, {"WP", true},
		{"LIVE", true}, {"UNUSABLE", true},   {"RESETS", true},
	};
	struct zf_table *table = zf_text_begin_table(text, columns, 9);

	for (size_t i = 0; i < json_object_array_length(zones); i++) {
		struct json_object *zone = json_object_array_get_idx(zones, i);

		zf_table_add(table, "%" PRIu64, zf_text_u64(zone, "zone"));
		zf_text_add_size(table, zone, "start");
		zf_table_add(table, "%s", zf_text_string(zone, "role"));
		zf_table_add(table, "%s", zf_text_string(zone, "condition"));
		zf_table_add(table, "%s%s", zf_text_string(zone, "condition_name"),
			     is_retired(zone) ? ",retired" : "");
		zf_text_add_size(table, zone, "write_pointer");
		zf_text_add_size(table, zone, "live");
		zf_text_add_size(table, zone, "unusable");
		zf_table_add(table, "%" PRIu64, zf_text_u64(zone, "resets"));
	}
	zf_table_print(table, text->out);
}

/* ---- sums ---- */

static void print_summary(struct json_object *sums, FILE *out)
{
	static const struct zf_table_column columns[] = {
		{"ROLE", false},   {"CONDITION", false}, {"ZONES", true},    {"CAPACITY", true},
		{"WRITTEN", true}, {"LIVE", true},	 {"UNUSABLE", true},
	};
	struct zf_table table;

	zf_table_init(&table, columns, 7);
	for (size_t i = 0; i < json_object_array_length(sums); i++) {
		struct json_object *sum = json_object_array_get_idx(sums, i);

		zf_table_add(&table, "%s", zf_text_string(sum, "role"));
		zf_table_add(&table, "%s", zf_text_string(sum, "condition_name"));
		zf_table_add(&table, "%" PRIu64, zf_text_u64(sum, "zones"));
		zf_text_add_size(&table, sum, "capacity");
		zf_text_add_size(&table, sum, "written");
		zf_text_add_size(&table, sum, "live");
		zf_text_add_size(&table, sum, "unusable");
	}
	zf_table_print(&table, out);
	zf_table_deinit(&table);
}

void zf_text_zones(struct zf_text *text, struct json_object *part)
{
	struct json_object *sums = zf_text_member(part, "summary");

	if (sums)
		print_summary(sums, text->out);
	else
		print_list(text, zf_text_member(part, "zones"));
}

/* ---- a map ---- */

#define MAP_COLUMNS 64u
#define MAP_LINES   20u

/* A cell with several kinds of zones shows the kind that comes first in this table. */
static const struct {
	char letter;
	const char *role;
} legend[] = {
	{'!', "retired"}, {'S', "super"}, {'L', "log"},	 {'M', "meta"},	   {'O', "overwrite"},
	{'h', "hot"},	  {'c', "cold"},  {'.', "none"}, {'?', "unknown"},
};
#define LEGEND_COUNT (sizeof(legend) / sizeof(legend[0]))

static unsigned int letter_of(struct json_object *zone)
{
	const char *role = zf_text_string(zone, "role");
	unsigned int i = 0;

	if (is_retired(zone))
		return 0;
	while (i + 1 < LEGEND_COUNT && strcmp(legend[i].role, role) != 0)
		i++;
	return i;
}

static void begin_map(struct zf_text *text, struct json_object *part)
{
	uint64_t zones = zf_text_u64(zf_text_member(part, "geometry"), "zone_count");

	text->map.zones_a_cell = zones / (MAP_COLUMNS * MAP_LINES + 1) + 1;
	text->map.letter = LEGEND_COUNT - 1;
}

static void end_cell(struct zf_text *text)
{
	if (text->map.cells % MAP_COLUMNS == 0)
		fprintf(text->out, "%s%8" PRIu64 "  ", text->map.cells ? "\n" : "",
			text->map.cells * text->map.zones_a_cell);
	fputc(legend[text->map.letter].letter, text->out);
	text->map.cells++;
	text->map.zones = 0;
	text->map.letter = LEGEND_COUNT - 1;
}

static void end_map(struct zf_text *text)
{
	if (text->map.zones > 0)
		end_cell(text);
	fprintf(text->out, "\n\na letter: %" PRIu64 " zone%s;", text->map.zones_a_cell,
		text->map.zones_a_cell == 1 ? "" : "s");
	for (size_t i = 0; i + 1 < LEGEND_COUNT; i++)
		fprintf(text->out, " %c %s", legend[i].letter, legend[i].role);
	fputc('\n', text->out);
}

void zf_text_zones_map(struct zf_text *text, struct json_object *part)
{
	struct json_object *zones = zf_text_member(part, "zones");

	if (!text->begun)
		begin_map(text, part);
	for (size_t i = 0; i < json_object_array_length(zones); i++) {
		unsigned int letter = letter_of(json_object_array_get_idx(zones, i));

		if (letter < text->map.letter)
			text->map.letter = letter;
		if (++text->map.zones == text->map.zones_a_cell)
			end_cell(text);
	}
	if (text->last)
		end_map(text);
}
