// SPDX-License-Identifier: MIT
/* Locks. A lock of fcntl belongs to a process: "child" asks for it from another process. */
#include "sys.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#define CALL(name) static long long call_##name(struct sys_arg *a, bool *ret_printed)

CALL(flock)
{
	return flock((int)a[0].n, (int)a[1].n);
}

/* lock FD F_SETLK|F_OFD_SETLK F_RDLCK|F_WRLCK|F_UNLCK [START [LENGTH]] */
CALL(lock)
{
	struct flock lock = {
		.l_type = (short)a[2].n, .l_whence = SEEK_SET, .l_start = a[3].n, .l_len = a[4].n};

	return fcntl((int)a[0].n, (int)a[1].n, &lock);
}

/* getlock FD F_GETLK|F_OFD_GETLK TYPE [START [LENGTH]]: what is in the way of such a lock */
CALL(getlock)
{
	struct flock lock = {
		.l_type = (short)a[2].n, .l_whence = SEEK_SET, .l_start = a[3].n, .l_len = a[4].n};

	if (fcntl((int)a[0].n, (int)a[1].n, &lock))
		return -1;
	*ret_printed = true;
	if (lock.l_type == F_UNLCK)
		printf("nothing");
	else
		printf("%s %lld %lld", lock.l_type == F_RDLCK ? "F_RDLCK" : "F_WRLCK",
		       (long long)lock.l_start, (long long)lock.l_len);
	return 0;
}

/* fcntl FD COMMAND [NUMBER] */
CALL(fcntl)
{
	return fcntl((int)a[0].n, (int)a[1].n, (int)a[2].n);
}

const struct sys_call sys_locks[] = {
	{"flock", "dn", SYS_OK, call_flock},
	{"lock", "dnn?nn", SYS_OK, call_lock},
	{"getlock", "dnn?nn", SYS_OK, call_getlock},
	{"fcntl", "dn?n", SYS_NUMBER, call_fcntl},
	{NULL},
};
