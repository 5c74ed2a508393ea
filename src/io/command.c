/* SPDX-License-Identifier: MIT */
#include "io/command.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "io/iov.h"

int zf_command_select(struct zf_command *command, uint64_t len)
{
	const struct zf_io *io = command->io;

	if (len == io->len)
		return 0;
	if (!command->part)
		command->part = calloc(io->iovcnt, sizeof(*command->part));
	if (!command->part)
		return -ENOMEM;
	command->iovcnt = zf_iov_slice(io->iov, command->done, len, command->part);
	command->iov = command->part;
	return 0;
}

int zf_command_transferred(struct zf_command *command, uint32_t count)
{
	const struct zf_io *io = command->io;
	int r = 0;

	/* A partial block does not count: direct I/O could not continue inside a block. */
	count -= count % ZF_BLOCK_SIZE;
	if (count == 0)
		return -EIO;
	command->done += count;
	if (command->done == io->len)
		return 0;
	if (io->op != ZF_IO_ZEROES)
		r = zf_command_select(command, io->len - command->done);
	return r < 0 ? r : ZF_COMMAND_AGAIN;
}
