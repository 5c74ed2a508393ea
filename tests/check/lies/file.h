/* SPDX-License-Identifier: MIT */
/*
 * The same filesystem in the file of an image, for lies about its trailer. The bytes of the file
 * are mapped privately: changes stay in the process that makes them, until it writes them to a
 * file of its own.
 */
#ifndef ZF_TESTS_LIES_FILE_H
#define ZF_TESTS_LIES_FILE_H

#include "forge.h"
#include "io/image_trailer.h"

struct file {
	char path[256];
	uint8_t *bytes;
	uint64_t size;
	struct zf_image_trailer trailer; /* its table and state are in `bytes` */
	struct zf_zone_rules rules;	 /* what the table says */
};

/* Makes an image, closed cleanly, with all contents of the forge's device. */
void file_make(struct forge *forge, struct file *ret_file);
void file_free(struct file *file);

/* Make the checksum of the header or of the state right. */
void file_seal_header(struct file *file);
void file_seal_state(struct file *file);

/* Writes the bytes to a new file; file->path is its name from then on. */
void file_write_own(struct file *file);

#endif
