/* SPDX-License-Identifier: MIT */
/* The command line of zfusectl, parsed by its table of commands (commands.h). */
#ifndef ZF_TOOLS_ARGS_H
#define ZF_TOOLS_ARGS_H

#include <stdbool.h>

#include "commands.h"

enum {
	ZF_EXIT_OK = 0,
	ZF_EXIT_PROBLEMS = 1, /* the command has found problems, or failed */
	ZF_EXIT_USAGE = 2,
};

struct zf_arg {
	bool given;
	const char *text;
	uint64_t number; /* for a choice: the word's index, from 0 */
};

struct zf_args {
	enum zf_command_id id;
	const struct zf_command *command;
	char program[40]; /* "zfusectl gc run", for messages */
	const char *operands[ZF_OPERANDS_MAX];
	struct zf_arg options[ZF_OPTION_COUNT];
};

/* The words of "--format", in their order. */
enum zf_args_format {
	ZF_FORMAT_TEXT,
	ZF_FORMAT_JSON,
	ZF_FORMAT_DOT,
};

#define ZF_ARGS_RUN (-1)

/* ZF_ARGS_RUN: run the command; else the exit status, and all messages are printed. */
int zf_args_parse(int argc, char **argv, struct zf_args *ret_args);

bool zf_args_json(const struct zf_args *args);

/* Prints the message. Returns ZF_EXIT_USAGE. */
int zf_args_usage(const struct zf_args *args, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Flushes standard output. ZF_EXIT_OK, or ZF_EXIT_PROBLEMS after a message about the error. */
int zf_args_flush(const struct zf_args *args);

/* ---- help (help.c) ---- */

void zf_help_command(const struct zf_command *command);
/* All commands, or (not NULL) those whose first word is `group`. */
void zf_help_commands(const char *group);

#endif
