/* SPDX-License-Identifier: MIT */
#include "json_out.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

static void print_value(struct zf_json_out *json, struct json_object *value)
{
	fputs(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN |
							    JSON_C_TO_STRING_NOSLASHESCAPE),
	      json->out);
}

static void close_array(struct zf_json_out *json)
{
	if (json->open)
		fputs(json->elements ? "\n  ]" : "]", json->out);
	free(json->open);
	json->open = NULL;
}

static void print_key(struct zf_json_out *json, const char *key)
{
	struct json_object *text = json_object_new_string(key);

	fputs(json->begun ? ",\n  " : "{\n  ", json->out);
	json->begun = true;
	print_value(json, text);
	fputc(':', json->out);
	json_object_put(text);
}

static void open_array(struct zf_json_out *json, const char *key)
{
	close_array(json);
	print_key(json, key);
	fputc('[', json->out);
	json->elements = false;
	json->open = strdup(key);
	if (!json->open)
		err(EXIT_FAILURE, NULL);
}

static void print_elements(struct zf_json_out *json, struct json_object *array)
{
	for (size_t i = 0; i < json_object_array_length(array); i++) {
		fputs(json->elements ? ",\n    " : "\n    ", json->out);
		print_value(json, json_object_array_get_idx(array, i));
		json->elements = true;
	}
}

/* The open array continues before any other member is printed. */
void zf_json_out_part(struct zf_json_out *json, struct json_object *part)
{
	struct json_object *rest = NULL;

	if (json->open && json_object_object_get_ex(part, json->open, &rest))
		print_elements(json, rest);
	json_object_object_foreach(part, key, value)
	{
		if (value && value == rest)
			continue;
		if (json_object_is_type(value, json_type_array)) {
			open_array(json, key);
			print_elements(json, value);
			continue;
		}
		close_array(json);
		print_key(json, key);
		print_value(json, value);
	}
}

void zf_json_out_result(struct zf_json_out *json, struct json_object *result)
{
	if (!json->begun) {
		fputs(json_object_to_json_string_ext(
			      result, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE),
		      json->out);
		fputc('\n', json->out);
		return;
	}
	zf_json_out_part(json, result);
	close_array(json);
	fputs("\n}\n", json->out);
}
