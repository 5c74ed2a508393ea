/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "args.h"

static const char *operand(const struct zf_command *command, unsigned int i)
{
	return i < ZF_OPERANDS_MAX && command->operands[i] ? command->operands[i] : "";
}

static void print_synopsis(const struct zf_command *command)
{
	printf("zfusectl %s [OPTIONS] %s%s%s\n", command->name, operand(command, 0),
	       *operand(command, 1) ? " " : "", operand(command, 1));
}

/* ---- one command ---- */

static int print_option(const struct zf_option *option, char *buf, size_t size)
{
	char letter[] = {'-', option->letter, ',', '\0'};

	return snprintf(buf, size, "%-3s --%s%s%s", option->letter ? letter : "", option->name,
			option->value ? " " : "", option->value ? option->value : "");
}

/* A wider option has its help on the next line. */
#define OPTION_WIDTH_MAX 28

static int option_width(const struct zf_command *command)
{
	char buf[80];
	int width = 0;

	for (unsigned int i = 0; i < ZF_OPTION_COUNT; i++) {
		int n = zf_command_takes(command, i)
				? print_option(&zf_options[i], buf, sizeof(buf))
				: 0;

		if (n > width && n <= OPTION_WIDTH_MAX)
			width = n;
	}
	return width;
}

static void print_options(const struct zf_command *command)
{
	int width = option_width(command);
	char buf[80];

	for (unsigned int i = 0; i < ZF_OPTION_COUNT; i++) {
		if (!zf_command_takes(command, i))
			continue;
		if (print_option(&zf_options[i], buf, sizeof(buf)) > width)
			printf("  %s\n  %*s", buf, width, "");
		else
			printf("  %-*s", width, buf);
		printf("  %s\n", zf_options[i].help);
	}
}

static void print_notes(const struct zf_command *command)
{
	bool has_bytes = false;

	for (unsigned int i = 0; i < ZF_OPTION_COUNT; i++)
		has_bytes |= zf_command_takes(command, i) && zf_options[i].value &&
			     strcmp(zf_options[i].value, "BYTES") == 0;
	if (has_bytes)
		puts("\nBYTES: a number, with K, M, G, T (1024, ...) or KB, MB, GB, TB (1000, "
		     "...).");
	if (strcmp(command->operands[0], "TARGET") == 0)
		puts("\nTARGET: a directory of a mounted filesystem, or the device or image of "
		     "one\n"
		     "that is not mounted.");
}

static const char exit_statuses[] =
	"\nExit status: 0 all is well, 1 problems were found or met, 2 wrong usage.";

void zf_help_command(const struct zf_command *command)
{
	fputs("Usage: ", stdout);
	print_synopsis(command);
	printf("%s: %s.\n%s\n", command->name, command->help, command->more ? command->more : "");
	print_options(command);
	print_notes(command);
	puts(exit_statuses);
}

/* ---- all of them ---- */

void zf_help_commands(const char *group)
{
	printf("Usage: zfusectl %s%sCOMMAND [OPTIONS] ...\n", group ? group : "", group ? " " : "");
	puts("Looks into a zfuse filesystem, and takes care of it. TARGET: a directory of a\n"
	     "mounted filesystem, or the device or image of one that is not mounted.\n");
	for (unsigned int i = 0; i < ZF_COMMAND_COUNT; i++) {
		const struct zf_command *command = &zf_commands[i];
		char line[80];

		if (group && !zf_command_is_in_group(command, group))
			continue;
		snprintf(line, sizeof(line), "%s %s %s", command->name, operand(command, 0),
			 operand(command, 1));
		printf("  %-23s %s\n", line, command->help);
	}
	puts("\n'zfusectl help COMMAND' tells the options of a command.\n"
	     "'zfusectl --version' tells the version.");
	puts(exit_statuses);
}
