/* SPDX-License-Identifier: MIT */
/* A device that lies: it imitates bugs of a filesystem from below. */
#include <stdlib.h>

#include "explore.h"
#include "base/bits.h"
#include "io/dev_ops.h"

static const struct zf_dev_ops *honest;
static struct zf_dev_ops lying;

/* Reads a block that is not used, in place of a flush: it completes later, like a flush. */
static void submit_nothing(struct zf_dev *dev, struct zf_io *io)
{
	static uint8_t scratch[ZF_BLOCK_SIZE] __attribute__((aligned(ZF_BLOCK_SIZE)));
	static struct iovec iov = {.iov_base = scratch, .iov_len = sizeof(scratch)};

	io->op = ZF_IO_READ;
	io->addr = 0;
	io->len = sizeof(scratch);
	io->iov = &iov;
	io->iovcnt = 1;
	honest->submit(dev, io);
}

static void submit_without_flush(struct zf_dev *dev, struct zf_io *io)
{
	if (io->op == ZF_IO_FLUSH)
		submit_nothing(dev, io);
	else
		honest->submit(dev, io);
}

static void submit_without_fua(struct zf_dev *dev, struct zf_io *io)
{
	io->fua = false;
	honest->submit(dev, io);
}

void lie_begin(struct zf_dev *dev, enum lie lie)
{
	if (lie != LIE_FLUSH && lie != LIE_FUA)
		return;
	honest = dev->ops;
	lying = *dev->ops;
	lying.submit = lie == LIE_FLUSH ? submit_without_flush : submit_without_fua;
	dev->ops = &lying;
}
