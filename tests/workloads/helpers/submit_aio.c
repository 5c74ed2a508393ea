// SPDX-License-Identifier: MIT
/* The kernel's older asynchronous I/O, by its system calls: libaio only wraps these. */
#include "common.h"
#include "submit.h"

#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

static aio_context_t context;
static struct iocb *iocbs;

static void aio_open(unsigned depth)
{
	iocbs = xalloc(depth * sizeof(*iocbs));
	if (syscall(SYS_io_setup, depth, &context))
		die("io_setup: %s", strerror(errno));
}

static void submit_iocb(struct iocb *iocb)
{
	if (syscall(SYS_io_submit, context, 1, &iocb) != 1)
		die("io_submit: %s", strerror(errno));
}

static void aio_submit(const struct request *request)
{
	struct iocb *iocb = &iocbs[request->slot];

	*iocb = (struct iocb){
		.aio_data = request->slot,
		.aio_lio_opcode = request->is_write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
		.aio_fildes = (uint32_t)request->fd,
		.aio_buf = (uint64_t)(uintptr_t)request->buffer,
		.aio_nbytes = request->len,
		.aio_offset = request->at,
	};
	submit_iocb(iocb);
}

static unsigned aio_wait(long *ret_result)
{
	struct io_event event;

	if (syscall(SYS_io_getevents, context, 1, 1, &event, NULL) != 1)
		die("io_getevents: %s", strerror(errno));
	*ret_result = (long)event.res;
	return (unsigned)event.data;
}

static void aio_sync(int fd)
{
	struct iocb iocb = {.aio_lio_opcode = IOCB_CMD_FSYNC, .aio_fildes = (uint32_t)fd};
	long result;

	submit_iocb(&iocb);
	aio_wait(&result);
	if (result)
		die("aio fsync: %s", strerror((int)-result));
}

const struct engine aio_engine = {"aio", aio_open, aio_submit, aio_wait, aio_sync};
