/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <stddef.h>
#include <string.h>

const struct zf_option zf_options[ZF_OPTION_COUNT] = {
	[ZF_OPTION_FORMAT] = {'\0', "format", ZF_VALUE_CHOICE, "text|json",
			      "how to print; default text"},
	[ZF_OPTION_FORMAT_OF_TREE] = {'\0', "format", ZF_VALUE_CHOICE, "text|json|dot",
				      "dot: a graph; default text"},
	[ZF_OPTION_TREE] = {'t', "tree", ZF_VALUE_CHOICE, "root|fs|summary|share|zone",
			    "which tree; default fs"},
	[ZF_OPTION_ROLE] = {'r', "role", ZF_VALUE_CHOICE, "none|super|meta|log|hot|cold|overwrite",
			    "zones of this role only"},
	[ZF_OPTION_CONDITION] = {'c', "condition", ZF_VALUE_CHOICE, "em|oi|oe|cl|fu|ro|ol|nw",
				 "zones in this condition only"},
	[ZF_OPTION_SUMMARY] = {'s', "summary", ZF_VALUE_NONE, NULL,
			       "sums for each role and condition, no list"},
	[ZF_OPTION_MAP] = {'m', "map", ZF_VALUE_NONE, NULL,
			   "a letter for each zone, or for several"},
	[ZF_OPTION_DATA] = {'d', "data", ZF_VALUE_NONE, NULL,
			    "compare all data with its checksums"},
	[ZF_OPTION_PROGRESS] = {'\0', "progress", ZF_VALUE_CHOICE, "auto|json|off",
				"auto: on a terminal, after a second"},
	[ZF_OPTION_ZONES] = {'z', "zones", ZF_VALUE_NUMBER, "N", "until N zones have been emptied"},
	[ZF_OPTION_ALL] = {'a', "all", ZF_VALUE_NONE, NULL,
			   "also zones that have only little garbage"},
	[ZF_OPTION_RATE] = {'r', "rate", ZF_VALUE_SIZE, "BYTES",
			    "read at most so many a second; default: no limit"},
	[ZF_OPTION_SIZE] = {'s', "size", ZF_VALUE_SIZE, "BYTES",
			    "its zones in all; default: what there is room for"},
	[ZF_OPTION_FORCE] = {'f', "force", ZF_VALUE_NONE, NULL, "overwrite what is there"},
	[ZF_OPTION_QUIET] = {'q', "quiet", ZF_VALUE_NONE, NULL, "print nothing but errors"},
	[ZF_OPTION_OFFSET] = {'o', "offset", ZF_VALUE_OFFSET, "BYTES",
			      "where the range begins; default 0"},
	[ZF_OPTION_LENGTH] = {'l', "length", ZF_VALUE_SIZE, "BYTES", "how long it is"},
	[ZF_OPTION_KEEP_SIZE] = {'n', "keep-size", ZF_VALUE_NONE, NULL, "the file does not grow"},
	[ZF_OPTION_PUNCH_HOLE] = {'p', "punch-hole", ZF_VALUE_NONE, NULL,
				  "give the range's space back; it reads as zeroes"},
	[ZF_OPTION_WRITE_ZEROES] = {'w', "write-zeroes", ZF_VALUE_NONE, NULL,
				    "zero it, and keep space for overwriting it often"},
	[ZF_OPTION_ZERO_RANGE] = {'z', "zero-range", ZF_VALUE_NONE, NULL,
				  "zero it, and keep space for it"},
	[ZF_OPTION_OUTPUT] = {'\0', "output", ZF_VALUE_FILE, "FILE",
			      "replace FILE, all at once; default: print"},
	[ZF_OPTION_HELP] = {'h', "help", ZF_VALUE_NONE, NULL, "print this"},
};

#define BIT(option) (UINT32_C(1) << ZF_OPTION_##option)

const struct zf_command zf_commands[ZF_COMMAND_COUNT] = {
	[ZF_COMMAND_SUPER] = {.name = "super",
			      .operands = {"TARGET"},
			      .options = BIT(FORMAT),
			      .help = "every superblock record, and which one counts"},
	[ZF_COMMAND_ZONES] =
		{.name = "zones",
		 .operands = {"TARGET"},
		 .options = BIT(FORMAT) | BIT(ROLE) | BIT(CONDITION) | BIT(SUMMARY) | BIT(MAP),
		 .help = "the zones: role, condition, write pointer, space",
		 .more = "On a terminal that is too small for the list: the summary.\n"},
	[ZF_COMMAND_TREE] = {.name = "tree",
			     .operands = {"TARGET"},
			     .options = BIT(FORMAT_OF_TREE) | BIT(TREE),
			     .help = "all nodes of a tree"},
	[ZF_COMMAND_NODE] = {.name = "node",
			     .operands = {"TARGET", "ADDRESS"},
			     .options = BIT(FORMAT),
			     .help = "the node at a device address"},
	[ZF_COMMAND_LOG] = {.name = "log",
			    .operands = {"TARGET"},
			    .options = BIT(FORMAT),
			    .help = "the intent log: what the next mount would replay"},
	[ZF_COMMAND_FILE] = {.name = "file",
			     .operands = {"TARGET", "[PATH]"},
			     .options = BIT(FORMAT),
			     .help = "where a file's data lies",
			     .more = "In a mounted filesystem TARGET is the file. On a device or "
				     "image that is not\nmounted, PATH names the file in it.\n"},
	[ZF_COMMAND_DF] = {.name = "df",
			   .operands = {"TARGET"},
			   .options = BIT(FORMAT),
			   .help = "space: live, kept, reserved, reclaimable, free"},
	[ZF_COMMAND_STATS] = {.name = "stats",
			      .operands = {"MOUNTPOINT"},
			      .options = BIT(FORMAT),
			      .help = "counters since the mount"},
	[ZF_COMMAND_METRICS] = {.name = "metrics",
				.operands = {"[MOUNTPOINT]"},
				.options = BIT(OUTPUT),
				.help = "counters and state, for Prometheus",
				.more = "Without MOUNTPOINT: of all zfuse filesystems that this "
					"user has mounted.\n"},
	[ZF_COMMAND_STATUS] = {.name = "status",
			       .operands = {"TARGET"},
			       .options = BIT(FORMAT),
			       .help = "mount status and health"},
	[ZF_COMMAND_CHECK] = {.name = "check",
			      .operands = {"TARGET"},
			      .options = BIT(FORMAT) | BIT(DATA) | BIT(PROGRESS),
			      .help = "verify everything"},
	[ZF_COMMAND_SCRUB] = {.name = "scrub",
			      .operands = {"TARGET"},
			      .options = BIT(FORMAT) | BIT(PROGRESS) | BIT(RATE),
			      .help = "read and verify everything, while it is in use"},
	[ZF_COMMAND_SYNC] = {.name = "sync",
			     .operands = {"MOUNTPOINT"},
			     .options = BIT(FORMAT),
			     .help = "make everything durable"},
	[ZF_COMMAND_GC_STATUS] = {.name = "gc status",
				  .operands = {"MOUNTPOINT"},
				  .options = BIT(FORMAT),
				  .help = "reclaim: how much room there is, what was done"},
	[ZF_COMMAND_GC_RUN] = {.name = "gc run",
			       .operands = {"MOUNTPOINT"},
			       .options = BIT(FORMAT) | BIT(PROGRESS) | BIT(ZONES) | BIT(ALL),
			       .help = "reclaim now, until no zone is worth it; commit"},
	[ZF_COMMAND_GC_PAUSE] = {.name = "gc pause",
				 .operands = {"MOUNTPOINT"},
				 .options = BIT(FORMAT),
				 .help = "no reclaim in the background",
				 .more = "A writer who waits for room reclaims all the same.\n"},
	[ZF_COMMAND_GC_RESUME] = {.name = "gc resume",
				  .operands = {"MOUNTPOINT"},
				  .options = BIT(FORMAT),
				  .help = "reclaim in the background again"},
	[ZF_COMMAND_LABEL] =
		{.name = "label",
		 .operands = {"TARGET", "[NEW]"},
		 .help = "print the filesystem's label, or change it",
		 .more = "NEW is UTF-8 of at most 63 bytes; '' takes the label away.\n"},
	[ZF_COMMAND_GROW] = {.name = "grow",
			     .operands = {"TARGET"},
			     .options = BIT(FORMAT) | BIT(SIZE),
			     .help = "make the filesystem larger, mounted or not"},
	[ZF_COMMAND_IMAGE_EXPORT] = {.name = "image export",
				     .operands = {"DISK", "FILE"},
				     .options = BIT(FORCE) | BIT(QUIET) | BIT(PROGRESS),
				     .help = "copy a whole filesystem to a new image",
				     .more = "The filesystem must not be mounted. The image gets "
					     "the geometry of DISK.\n"},
	[ZF_COMMAND_IMAGE_IMPORT] = {.name = "image import",
				     .operands = {"FILE", "DISK"},
				     .options = BIT(FORCE) | BIT(QUIET) | BIT(PROGRESS),
				     .help = "copy a whole filesystem from an image",
				     .more = "The filesystem must not be mounted. The zones of "
					     "DISK must have the same size\nand capacity; there "
					     "may be more of them.\n"},
	[ZF_COMMAND_FALLOCATE] = {.name = "fallocate",
				  .operands = {"FILE"},
				  .options = BIT(OFFSET) | BIT(LENGTH) | BIT(KEEP_SIZE) |
					     BIT(PUNCH_HOLE) | BIT(WRITE_ZEROES) | BIT(ZERO_RANGE),
				  .help = "allocate or zero a range of a file"},
};

bool zf_command_takes(const struct zf_command *command, unsigned int option)
{
	return option == ZF_OPTION_HELP || (command->options >> option & 1);
}

bool zf_command_is_in_group(const struct zf_command *command, const char *group)
{
	size_t len = strlen(group);

	return strncmp(command->name, group, len) == 0 && command->name[len] == ' ';
}
