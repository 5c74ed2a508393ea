/* SPDX-License-Identifier: MIT */
/*
 * sys: system calls on the command line, one line of output for each. What the parts of the program
 * share: sys.c has the command line, sys_args.c understands arguments, sys_print.c prints results,
 * and each sys_*.c with a table of calls makes the calls of one kind.
 */
#ifndef SYS_H
#define SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYS_ARGS_MAX 8

struct sys_arg {
	const char *text; /* as given; NULL if left out */
	char *bytes;	  /* a string: expanded, with a NUL behind it */
	size_t len;
	long long n; /* a number, or a descriptor */
};

/*
 * Makes the call, and returns its result: -1 with errno if it failed. A function that prints the
 * result itself sets *ret_printed.
 */
typedef long long sys_fn(struct sys_arg *a, bool *ret_printed);

struct sys_call {
	const char *name;
	/*
	 * One letter an argument: d descriptor, p path, b bytes, n number or flags, t time, o
	 * device number. After '?' they may be left out: a number is then 0, or -1 after '-'.
	 */
	const char *args;
	enum { SYS_OK, SYS_NUMBER, SYS_OCTAL, SYS_FD, SYS_MAP } result;
	sys_fn *fn;
};

/* Each table ends with a call that has no name. */
extern const struct sys_call sys_files[], sys_streams[], sys_names[], sys_attrs[], sys_xattrs[],
	sys_maps[], sys_locks[], sys_others[];

/* sys_args.c. The functions end the program if the text makes no sense. */
long long sys_number(const char *text);
char *sys_expand(const char *text, size_t *ret_len);
const char *sys_errno_name(int err);
extern bool sys_literal;    /* strings are taken as they are */
int sys_fd_of(unsigned no); /* what %no stands for */
void sys_fd_add(int fd);

/* sys_print.c: with runs shortened as sys_expand() understands them. */
void sys_print_bytes(const char *bytes, size_t len);

__attribute__((noreturn, format(printf, 1, 2))) void sys_die(const char *format, ...);

#endif
