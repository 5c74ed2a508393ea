/* SPDX-License-Identifier: MIT */
/* Prints the table of commands for completion.py, and for the test of the manual page. */
#include <json-c/json.h>
#include <stdio.h>

#include "commands.h"

static void add_text(struct json_object *object, const char *key, const char *text)
{
	json_object_object_add(object, key, text ? json_object_new_string(text) : NULL);
}

static struct json_object *describe_option(const struct zf_option *option)
{
	const char letter[] = {option->letter, '\0'};
	struct json_object *object = json_object_new_object();

	add_text(object, "letter", letter);
	add_text(object, "name", option->name);
	add_text(object, "value", option->value);
	json_object_object_add(object, "choice",
			       json_object_new_boolean(option->kind == ZF_VALUE_CHOICE));
	json_object_object_add(object, "file",
			       json_object_new_boolean(option->kind == ZF_VALUE_FILE));
	add_text(object, "help", option->help);
	return object;
}

static struct json_object *describe_command(const struct zf_command *command)
{
	struct json_object *object = json_object_new_object();
	struct json_object *operands = json_object_new_array(), *options = json_object_new_array();

	for (unsigned int i = 0; i < ZF_OPERANDS_MAX && command->operands[i]; i++)
		json_object_array_add(operands, json_object_new_string(command->operands[i]));
	for (unsigned int i = 0; i < ZF_OPTION_COUNT; i++)
		if (zf_command_takes(command, i))
			json_object_array_add(options, describe_option(&zf_options[i]));
	add_text(object, "name", command->name);
	add_text(object, "help", command->help);
	json_object_object_add(object, "operands", operands);
	json_object_object_add(object, "options", options);
	return object;
}

int main(void)
{
	struct json_object *commands = json_object_new_array();

	for (unsigned int i = 0; i < ZF_COMMAND_COUNT; i++)
		json_object_array_add(commands, describe_command(&zf_commands[i]));
	puts(json_object_to_json_string_ext(commands, JSON_C_TO_STRING_PLAIN));
	json_object_put(commands);
	return fflush(stdout) != 0;
}
