/* SPDX-License-Identifier: MIT */
/*
 * One table of zfusectl's commands, with their operands and options. The parser and the help
 * (args.h) and the shells' completions (completion/completion.py) use the table, and a test
 * compares the manual page with it.
 */
#ifndef ZF_TOOLS_COMMANDS_H
#define ZF_TOOLS_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

enum zf_option_id {
	ZF_OPTION_FORMAT,
	ZF_OPTION_FORMAT_OF_TREE,
	ZF_OPTION_TREE,
	ZF_OPTION_FOLD,
	ZF_OPTION_SINCE,
	ZF_OPTION_HEX,
	ZF_OPTION_ROLE,
	ZF_OPTION_CONDITION,
	ZF_OPTION_SUMMARY,
	ZF_OPTION_MAP,
	ZF_OPTION_DATA,
	ZF_OPTION_PROGRESS,
	ZF_OPTION_ZONES,
	ZF_OPTION_ALL,
	ZF_OPTION_RATE,
	ZF_OPTION_SIZE,
	ZF_OPTION_FORCE,
	ZF_OPTION_QUIET,
	ZF_OPTION_OFFSET,
	ZF_OPTION_LENGTH,
	ZF_OPTION_KEEP_SIZE,
	ZF_OPTION_PUNCH_HOLE,
	ZF_OPTION_WRITE_ZEROES,
	ZF_OPTION_ZERO_RANGE,
	ZF_OPTION_OUTPUT,
	ZF_OPTION_GENERATION,
	ZF_OPTION_DRY_RUN,
	ZF_OPTION_TRACE_DATA,
	ZF_OPTION_AT,
	ZF_OPTION_OUTCOME,
	ZF_OPTION_NONZERO,
	ZF_OPTION_RESET,
	ZF_OPTION_HELP, /* every command has it */
	ZF_OPTION_COUNT,
};

enum zf_value_kind {
	ZF_VALUE_NONE,
	ZF_VALUE_CHOICE, /* one of the words in `value` */
	ZF_VALUE_NUMBER, /* above 0 */
	ZF_VALUE_SIZE,	 /* bytes, above 0: zf_parse_size() */
	ZF_VALUE_OFFSET, /* bytes */
	ZF_VALUE_FILE,	 /* a file's name */
};

struct zf_option {
	char letter; /* 0: none */
	const char *name;
	enum zf_value_kind kind;
	const char *value; /* "BYTES"; of a choice: "text|json" */
	const char *help;
};

enum zf_command_id {
	ZF_COMMAND_SUPER,
	ZF_COMMAND_ZONES,
	ZF_COMMAND_TREE,
	ZF_COMMAND_NODE,
	ZF_COMMAND_LOG,
	ZF_COMMAND_FILE,
	ZF_COMMAND_PATH,
	ZF_COMMAND_RESOLVE,
	ZF_COMMAND_DF,
	ZF_COMMAND_STATS,
	ZF_COMMAND_METRICS,
	ZF_COMMAND_STATUS,
	ZF_COMMAND_CHECK,
	ZF_COMMAND_SCRUB_START, /* before SCRUB, because "scrub" is its first word */
	ZF_COMMAND_SCRUB_STATUS,
	ZF_COMMAND_SCRUB_PAUSE,
	ZF_COMMAND_SCRUB_RESUME,
	ZF_COMMAND_SCRUB_CANCEL,
	ZF_COMMAND_SCRUB,
	ZF_COMMAND_DEVICE_STATS,
	ZF_COMMAND_RESTORE,
	ZF_COMMAND_SYNC,
	ZF_COMMAND_GC_STATUS,
	ZF_COMMAND_GC_RUN,
	ZF_COMMAND_GC_PAUSE,
	ZF_COMMAND_GC_RESUME,
	ZF_COMMAND_TRACE_START,
	ZF_COMMAND_TRACE_STOP,
	ZF_COMMAND_TRACE_PRINT,
	ZF_COMMAND_REPLAY,
	ZF_COMMAND_LAB_CRASH,
	ZF_COMMAND_LABEL,
	ZF_COMMAND_GROW,
	ZF_COMMAND_IMAGE_EXPORT,
	ZF_COMMAND_IMAGE_IMPORT,
	ZF_COMMAND_FALLOCATE,
	ZF_COMMAND_COUNT,
};

#define ZF_OPERANDS_MAX 2

struct zf_command {
	const char *name;		       /* one word, or two: "gc run" */
	const char *operands[ZF_OPERANDS_MAX]; /* "[PATH]" may be left out */
	uint64_t options;		       /* a bit for each zf_option_id */
	const char *help;		       /* one line */
	const char *more;		       /* lines that only its own help has; NULL: none */
};

extern const struct zf_option zf_options[ZF_OPTION_COUNT];
extern const struct zf_command zf_commands[ZF_COMMAND_COUNT];

bool zf_command_takes(const struct zf_command *command, unsigned int option);
/* Does the command's name have two words, and is `group` the first? */
bool zf_command_is_in_group(const struct zf_command *command, const char *group);

#endif
