/* SPDX-License-Identifier: MIT */
/* Opening and locking the file or block device under an image: what create and open share. */
#ifndef ZF_IO_IMAGE_FILE_H
#define ZF_IO_IMAGE_FILE_H

#include "io/image.h"

struct zf_image_file {
	int fd;
	uint64_t size; /* bytes */
	bool is_block_device;
	bool created; /* by this call */
};

enum zf_image_file_mode {
	ZF_IMAGE_FILE_READ,   /* shared lock */
	ZF_IMAGE_FILE_WRITE,  /* exclusive lock, O_EXCL on a block device */
	ZF_IMAGE_FILE_CREATE, /* the same; makes the file if there is none */
	/*
	 * Exclusive lock that still lets udev look at a block device. Only checks that no other
	 * program has claimed the block device. For a fuseblk mount, which claims the device
	 * itself, as O_EXCL would.
	 */
	ZF_IMAGE_FILE_WRITE_UNCLAIMED,
};

/* Every failure is reported. `direct`: O_DIRECT where the host's filesystem allows it. */
int zf_image_file_open(const char *path, enum zf_image_file_mode mode, bool direct,
		       uint32_t lock_wait_ms, const struct zf_report *report,
		       struct zf_image_file *ret_file);

/* The same in the mode that the options ask for, for a device that exists. */
int zf_image_file_open_for(const char *path, const struct zf_open_options *options, bool direct,
			   const struct zf_report *report, struct zf_image_file *ret_file);

/* Reports `what` about the file at `path`, and the error. Returns the error. */
int zf_image_file_fail(const struct zf_report *report, const char *path, int error,
		       const char *what);

/* flock() alone, of a file that is open already. -EBUSY: still held after the wait. */
int zf_image_file_lock(int fd, const char *path, bool exclusive, uint32_t lock_wait_ms,
		       const struct zf_report *report);

/*
 * The size that the file was made with, kept in an extended attribute if the host's filesystem has
 * them: a truncated image has lost its trailer, and could not be recognized otherwise. 0: unknown.
 */
void zf_image_file_note_size(const struct zf_image_file *file, uint64_t size);
uint64_t zf_image_file_noted_size(const struct zf_image_file *file);

#endif
