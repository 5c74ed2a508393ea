/* SPDX-License-Identifier: MIT */
#include "support/gone.h"

#include "base/bits.h"

static struct gone *gone_of(struct zf_dev *dev)
{
	return (struct gone *)(uintptr_t)ZF_CONTAINER_OF(dev->ops, struct gone, ops);
}

static int ask(struct gone *gone)
{
	int error = atomic_load(&gone->error);

	if (error < 0)
		atomic_fetch_add(&gone->asked, 1);
	return error;
}

static int read_gone(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
		     unsigned int iovcnt)
{
	struct gone *gone = gone_of(dev);
	int error = ask(gone);

	return error < 0 ? error : gone->real->read(dev, addr, iov, iovcnt);
}

static int report_gone(struct zf_dev *dev, uint32_t first, uint32_t count,
		       struct zf_zone_info *zones)
{
	struct gone *gone = gone_of(dev);
	int error = ask(gone);

	return error < 0 ? error : gone->real->report(dev, first, count, zones);
}

/* Sees each request before its owner does. */
static void spoil(void *arg, const struct zf_io *io)
{
	int error = ask(arg);

	if (error < 0)
		((struct zf_io *)(uintptr_t)io)->result = error;
}

void gone_init(struct gone *gone, struct zf_dev *dev)
{
	*gone = (struct gone){.ops = *dev->ops, .real = dev->ops};
	gone->ops.read = read_gone;
	gone->ops.report = report_gone;
	dev->ops = &gone->ops;
	zf_dev_set_recorder(dev, spoil, gone);
}

void gone_begin(struct gone *gone, int error)
{
	atomic_store(&gone->error, error);
}
