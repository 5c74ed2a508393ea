/* SPDX-License-Identifier: MIT */
#include "trace/data.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "trace/ring.h"
#include "trace/trace.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int data_fd = -1; /* under `lock` */
atomic_bool zf_trace_data_switch;

int zf_trace_data_begin(int fd, const struct zf_disk_trace_data_header *header,
			const struct zf_disk_trace_data_zone *zones)
{
	struct zf_disk_trace_data_header made = *header;
	int r;

	memcpy(made.magic, ZF_TRACE_DATA_MAGIC, sizeof(made.magic));
	made.version = zf_le32_from(ZF_TRACE_DATA_VERSION);
	made.header_size = zf_le32_from(sizeof(made));
	r = zf_trace_write(fd, &made, sizeof(made));
	if (r < 0)
		return r;
	return zf_trace_write(fd, zones, zf_le32_get(made.zone_count) * sizeof(*zones));
}

static int write_head(int fd, uint64_t submitted, uint64_t address, uint64_t len)
{
	const struct zf_disk_trace_data_piece piece = {
		.submitted = zf_le64_from(submitted),
		.address = zf_le64_from(address),
		.bytes = zf_le64_from(len),
	};

	return zf_trace_write(fd, &piece, sizeof(piece));
}

int zf_trace_data_write(int fd, uint64_t address, const void *bytes, uint64_t len)
{
	int r = write_head(fd, 0, address, len);

	return r < 0 ? r : zf_trace_write(fd, bytes, len);
}

void zf_trace_data_put(uint64_t submitted, uint64_t address, const struct iovec *iov,
		       unsigned int iovcnt, uint64_t len)
{
	int r = 0;

	pthread_mutex_lock(&lock);
	if (data_fd >= 0) {
		r = write_head(data_fd, submitted, address, len);
		for (unsigned int i = 0; r == 0 && i < iovcnt; i++)
			r = zf_trace_write(data_fd, iov[i].iov_base, iov[i].iov_len);
	}
	pthread_mutex_unlock(&lock);
	if (r < 0)
		zf_trace_give_up(r);
}

void zf_trace_data_use(int fd)
{
	pthread_mutex_lock(&lock);
	if (data_fd >= 0)
		close(data_fd);
	data_fd = fd;
	atomic_store(&zf_trace_data_switch, fd >= 0);
	pthread_mutex_unlock(&lock);
}
