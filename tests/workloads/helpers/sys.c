// SPDX-License-Identifier: MIT
/*
 * sys [-q] [-l] [-u UID] [-g GID] [-G GID,...] [-m UMASK] CALL [ARG]... [: CALL [ARG]...]...
 *
 * Makes system calls, one after the other in one process, and prints a line for each: the call, and
 * "ok", its result or the name of its errno. -q: only the result. -l: strings are taken literally,
 * without repetitions and escapes. -u, -g, -G, -m: as that user, group, with those further groups,
 * with that umask. "child" before a call: in a child process. %0, %1, ... are the descriptors that
 * the first, second, ... open or dup of this command line gave. Exit status 0 if every call worked,
 * 1 if a call failed, 2 for a usage error. docs/workloads.md lists the calls.
 */
#include "sys.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FDS_MAX 64

static const struct sys_call *const tables[] = {
	sys_files, sys_streams, sys_names, sys_attrs, sys_xattrs, sys_maps, sys_locks, sys_others,
};
static int fds[FDS_MAX];
static unsigned fd_count;
static bool quiet;
static const char *who; /* what to print before calls that another user makes */

void sys_die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "sys: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	exit(2);
}

int sys_fd_of(unsigned no)
{
	if (no >= fd_count)
		sys_die("there is no %%%u", no);
	return fds[no];
}

void sys_fd_add(int fd)
{
	if (fd_count == FDS_MAX)
		sys_die("too many descriptors");
	fds[fd_count++] = fd;
}

static const struct sys_call *find_call(const char *name)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		for (const struct sys_call *c = tables[i]; c->name; c++) {
			if (strcmp(c->name, name) == 0)
				return c;
		}
	}
	sys_die("no such call: '%s'", name);
}

static void parse_time(struct sys_arg *a)
{
	/* n: the seconds. The call parses the text for the rest. */
	if (strcmp(a->text, "now") != 0 && strcmp(a->text, "omit") != 0)
		a->n = strtoll(a->text, NULL, 10);
}

static void parse_arg(struct sys_arg *a, char kind)
{
	unsigned major, minor;

	switch (kind) {
	case 'd':
	case 'n':
		a->n = sys_number(a->text);
		break;
	case 'p':
	case 'b':
		a->bytes = sys_expand(a->text, &a->len);
		break;
	case 't':
		parse_time(a);
		break;
	case 'o':
		if (sscanf(a->text, "%u:%u", &major, &minor) != 2)
			sys_die("no device number: '%s'", a->text);
		a->n = (long long)(((unsigned long long)major << 32) | minor);
		break;
	}
}

static void parse(const struct sys_call *c, int argc, char **argv, struct sys_arg *args)
{
	int i = 0;
	long long left_out = 0;
	bool optional = false;

	for (const char *kind = c->args; *kind; kind++) {
		if (*kind == '?') {
			optional = true;
		} else if (*kind == '-') {
			left_out = -1;
		} else if (i < argc) {
			args[i].text = argv[i];
			parse_arg(&args[i], *kind);
			i++;
		} else if (optional) {
			args[i++].n = left_out;
		} else {
			sys_die("%s needs more arguments", c->name);
		}
	}
	if (argc > i)
		sys_die("%s has too many arguments", c->name);
}

static void print_result(const struct sys_call *c, long long result)
{
	switch (c->result) {
	case SYS_NUMBER:
		printf("%lld", result);
		break;
	case SYS_OCTAL:
		printf("%04llo", result);
		break;
	default:
		printf("ok");
		break;
	}
}

static bool make_call(int argc, char **argv)
{
	const struct sys_call *c = find_call(argv[0]);
	struct sys_arg args[SYS_ARGS_MAX] = {{0}};
	bool printed = false;
	long long result;

	parse(c, argc - 1, argv + 1, args);
	if (!quiet) {
		printf("%s", who);
		for (int i = 0; i < argc; i++)
			printf("%s%s", argv[i], i + 1 < argc ? " " : ": ");
	}
	fflush(stdout);
	result = c->fn(args, &printed);
	if (c->result == SYS_FD)
		sys_fd_add((int)result);
	if (result == -1)
		printf("%s", sys_errno_name(errno));
	else if (!printed)
		print_result(c, result);
	printf("\n");
	fflush(stdout);
	for (size_t i = 0; i < SYS_ARGS_MAX; i++)
		free(args[i].bytes);
	return result != -1;
}

static bool in_child(int argc, char **argv)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		sys_die("fork: %s", sys_errno_name(errno));
	if (pid == 0)
		_exit(!make_call(argc, argv));
	if (waitpid(pid, &status, 0) < 0)
		sys_die("waitpid: %s", sys_errno_name(errno));
	if (WIFSIGNALED(status))
		printf("SIG%s\n", sigabbrev_np(WTERMSIG(status)));
	return status == 0;
}

static void become(const char *uid, const char *gid, const char *groups)
{
	gid_t list[32];
	size_t count = 0;

	for (; groups && *groups; groups += strcspn(groups, ","), groups += *groups == ',') {
		if (count == sizeof(list) / sizeof(list[0]))
			sys_die("too many groups");
		list[count++] = (gid_t)strtoul(groups, NULL, 10);
	}
	if ((uid || gid || groups) && setgroups(count, list))
		sys_die("setgroups: %s", sys_errno_name(errno));
	if (gid && setresgid((gid_t)atol(gid), (gid_t)atol(gid), (gid_t)atol(gid)))
		sys_die("setresgid: %s", sys_errno_name(errno));
	if (uid && setresuid((uid_t)atol(uid), (uid_t)atol(uid), (uid_t)atol(uid)))
		sys_die("setresuid: %s", sys_errno_name(errno));
}

/* "1000:100,7 " for what is done as user 1000, group 100 and 7. */
static const char *describe(const char *uid, const char *gid, const char *groups)
{
	static char text[256];

	if (uid || gid || groups)
		snprintf(text, sizeof(text), "%s:%s%s%s ", uid ? uid : "", gid ? gid : "",
			 groups ? "," : "", groups ? groups : "");
	return text;
}

int main(int argc, char **argv)
{
	const char *uid = NULL, *gid = NULL, *groups = NULL;
	bool ok = true;
	int opt, start;

	while ((opt = getopt(argc, argv, "+qlu:g:G:m:")) != -1) {
		switch (opt) {
		case 'q':
			quiet = true;
			break;
		case 'l':
			sys_literal = true;
			break;
		case 'u':
			uid = optarg;
			break;
		case 'g':
			gid = optarg;
			break;
		case 'G':
			groups = optarg;
			break;
		case 'm':
			umask((mode_t)strtoul(optarg, NULL, 8));
			break;
		default:
			return 2;
		}
	}
	who = describe(uid, gid, groups);
	become(uid, gid, groups);
	for (start = optind; start < argc;) {
		int end = start;
		bool child = strcmp(argv[start], "child") == 0;

		while (end < argc && strcmp(argv[end], ":") != 0)
			end++;
		if (end == start || (child && end == start + 1))
			sys_die("an empty call");
		ok &= child ? in_child(end - start - 1, argv + start + 1)
			    : make_call(end - start, argv + start);
		start = end + 1;
	}
	return ok ? 0 : 1;
}
