/* SPDX-License-Identifier: MIT */
#include "args.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

/* getopt_long() returns this plus the option's id for an option without a letter. */
#define NO_LETTER 256

/* ---- messages ---- */

int zf_args_usage(const struct zf_args *args, const char *format, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", args->program);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fprintf(stderr, "\nTry '%s --help'.\n", args->program);
	return ZF_EXIT_USAGE;
}

int zf_args_flush(const struct zf_args *args)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return ZF_EXIT_OK;
	fprintf(stderr, "%s: standard output: %s\n", args->program, strerror(errno));
	return ZF_EXIT_PROBLEMS;
}

/* ---- which command ---- */

/* How many words of argv name this command; 0: argv names another one. */
static int match(const struct zf_command *command, int argc, char **argv)
{
	const char *space = strchr(command->name, ' ');

	if (!space)
		return argc > 0 && strcmp(argv[0], command->name) == 0;
	return argc > 1 && zf_command_is_in_group(command, argv[0]) &&
			       strcmp(argv[1], space + 1) == 0
		       ? 2
		       : 0;
}

static bool is_group(const char *word)
{
	for (unsigned int i = 0; i < ZF_COMMAND_COUNT; i++)
		if (zf_command_is_in_group(&zf_commands[i], word))
			return true;
	return false;
}

/* A group may be a command by itself, too. */
static bool is_command(const char *word)
{
	for (unsigned int i = 0; i < ZF_COMMAND_COUNT; i++)
		if (strcmp(zf_commands[i].name, word) == 0)
			return true;
	return false;
}

/* Returns how many words name the command; 0: none does. */
static int find_command(int argc, char **argv, struct zf_args *args)
{
	for (unsigned int i = 0; i < ZF_COMMAND_COUNT; i++) {
		int words = match(&zf_commands[i], argc, argv);

		if (words == 0)
			continue;
		args->id = i;
		args->command = &zf_commands[i];
		snprintf(args->program, sizeof(args->program), "zfusectl %s", zf_commands[i].name);
		return words;
	}
	return 0;
}

static const char *command_name(const void *arg, size_t i)
{
	(void)arg;
	return zf_commands[i].name;
}

static int refuse_command(struct zf_args *args, int argc, char **argv)
{
	char word[64];
	const char *near;

	if (argc == 0)
		return zf_args_usage(args, "missing COMMAND");
	if (argc == 1 && is_group(argv[0])) {
		snprintf(args->program, sizeof(args->program), "zfusectl %s", argv[0]);
		return zf_args_usage(args, "missing COMMAND");
	}
	snprintf(word, sizeof(word), "%s%s%s", argv[0], is_group(argv[0]) ? " " : "",
		 is_group(argv[0]) ? argv[1] : "");
	near = zf_parse_nearest_name(word, ZF_COMMAND_COUNT, command_name, NULL);
	return zf_args_usage(args, "unknown command '%s'%s%s%s", word,
			     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* ---- options ---- */

static int value_of(unsigned int id)
{
	return zf_options[id].letter ? zf_options[id].letter : NO_LETTER + (int)id;
}

/* For getopt_long(). */
static void list_options(const struct zf_args *args, char *letters, struct option *options)
{
	for (unsigned int id = 0; id < ZF_OPTION_COUNT; id++) {
		int has_value =
			zf_options[id].kind == ZF_VALUE_NONE ? no_argument : required_argument;

		if (!zf_command_takes(args->command, id))
			continue;
		*options++ = (struct option){zf_options[id].name, has_value, NULL, value_of(id)};
		if (zf_options[id].letter)
			*letters++ = zf_options[id].letter;
		if (zf_options[id].letter && has_value)
			*letters++ = ':';
	}
	*letters = '\0';
	*options = (struct option){0};
}

static unsigned int find_option(const struct zf_args *args, int value)
{
	unsigned int id = 0;

	while (!zf_command_takes(args->command, id) || value_of(id) != value)
		id++;
	return id;
}

/* The index of `text` among choices like "text|json"; -EINVAL: it is none of them. */
static int parse_choice(const char *choices, const char *text, uint64_t *ret_number)
{
	size_t len = strlen(text);

	for (*ret_number = 0; choices; ++*ret_number) {
		const char *end = strchrnul(choices, '|');

		if ((size_t)(end - choices) == len && memcmp(choices, text, len) == 0)
			return 0;
		choices = *end ? end + 1 : NULL;
	}
	return -EINVAL;
}

static int parse_value(const struct zf_args *args, const struct zf_option *option,
		       struct zf_arg *arg)
{
	switch (option->kind) {
	case ZF_VALUE_CHOICE:
		if (parse_choice(option->value, arg->text, &arg->number) < 0)
			return zf_args_usage(args, "--%s: '%s' is none of %s", option->name,
					     arg->text, option->value);
		break;
	case ZF_VALUE_NUMBER:
		if (zf_parse_number(arg->text, UINT64_MAX, &arg->number) < 0 || arg->number == 0)
			return zf_args_usage(args, "--%s: '%s' is not a number from 1 on",
					     option->name, arg->text);
		break;
	case ZF_VALUE_SIZE:
	case ZF_VALUE_OFFSET:
		if (zf_parse_size(arg->text, INT64_MAX, &arg->number) < 0 ||
		    (arg->number == 0 && option->kind == ZF_VALUE_SIZE))
			return zf_args_usage(args,
					     "--%s: '%s' is not a size: expected " ZF_SIZE_FORMS,
					     option->name, arg->text);
		break;
	case ZF_VALUE_FILE:
	case ZF_VALUE_NONE:
		break;
	}
	return ZF_ARGS_RUN;
}

static int parse_options(int argc, char **argv, struct zf_args *args)
{
	struct option options[ZF_OPTION_COUNT + 1];
	char letters[2 * ZF_OPTION_COUNT + 1];
	int c, r = ZF_ARGS_RUN;

	list_options(args, letters, options);
	/* getopt_long() calls the program by this name in its messages. */
	argv[0] = args->program;
	while (r == ZF_ARGS_RUN && (c = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		unsigned int id;

		if (c == '?') {
			fprintf(stderr, "Try '%s --help'.\n", args->program);
			return ZF_EXIT_USAGE;
		}
		id = find_option(args, c);
		if (id == ZF_OPTION_HELP) {
			zf_help_command(args->command);
			return zf_args_flush(args);
		}
		args->options[id].given = true;
		args->options[id].text = optarg;
		r = parse_value(args, &zf_options[id], &args->options[id]);
	}
	return r;
}

/* ---- operands ---- */

static int take_operands(int argc, char **argv, struct zf_args *args)
{
	int count = 0;

	for (; count < ZF_OPERANDS_MAX && args->command->operands[count]; count++) {
		if (count < argc)
			args->operands[count] = argv[count];
		else if (args->command->operands[count][0] != '[')
			return zf_args_usage(args, "missing %s", args->command->operands[count]);
	}
	if (argc > count)
		return zf_args_usage(args, "too many arguments: '%s'", argv[count]);
	return ZF_ARGS_RUN;
}

/* ---- all of it ---- */

/* `zfusectl help gc run`; `zfusectl gc --help`, which names no command yet. */
static int help(struct zf_args *args, int argc, char **argv)
{
	if (find_command(argc, argv, args) > 0)
		zf_help_command(args->command);
	else if (argc == 0 || (argc == 1 && is_group(argv[0])))
		zf_help_commands(argc == 0 ? NULL : argv[0]);
	else
		return refuse_command(args, argc, argv);
	return zf_args_flush(args);
}

static int parse_command(struct zf_args *args, int argc, char **argv)
{
	int words = find_command(argc, argv, args), r;

	if (words == 0)
		return refuse_command(args, argc, argv);
	/* getopt_long() takes the last word of the command's name for the program's name. */
	argc -= words - 1;
	argv += words - 1;
	r = parse_options(argc, argv, args);
	return r == ZF_ARGS_RUN ? take_operands(argc - optind, argv + optind, args) : r;
}

static bool is_option(const char *word, const char *letter, const char *name)
{
	return word && (strcmp(word, letter) == 0 || strcmp(word, name) == 0);
}

int zf_args_parse(int argc, char **argv, struct zf_args *ret_args)
{
	*ret_args = (struct zf_args){.program = "zfusectl"};
	if (is_option(argv[1], "-V", "--version")) {
		puts("zfusectl " ZF_VERSION);
		return zf_args_flush(ret_args);
	}
	if (is_option(argv[1], "-h", "--help") || is_option(argv[1], "help", "help"))
		return help(ret_args, argc - 2, argv + 2);
	if (argc == 3 && is_group(argv[1]) && !is_command(argv[1]) &&
	    is_option(argv[2], "-h", "--help"))
		return help(ret_args, 1, argv + 1);
	return parse_command(ret_args, argc - 1, argv + 1);
}

bool zf_args_json(const struct zf_args *args)
{
	return args->options[ZF_OPTION_FORMAT].number == ZF_FORMAT_JSON ||
	       args->options[ZF_OPTION_FORMAT_OF_TREE].number == ZF_FORMAT_JSON;
}
