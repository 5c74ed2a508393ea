/* SPDX-License-Identifier: MIT */
#include "file.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "io/image.h"
#include "io/memory.h"

static void copy_zone(struct forge *forge, struct zf_dev *from, struct zf_dev *to, uint32_t zone_no)
{
	uint64_t start = zone_no * forge->zone_size, len;
	struct zf_zone_info info;
	int r = zf_dev_report(from, zone_no, 1, &info);

	assert(r == 0);
	len = info.type == ZF_ZONE_CONVENTIONAL ? info.capacity : info.wp - info.start;
	if (info.reset_count) {
		r = zf_dev_set_reset_count(to, zone_no, info.reset_count);
		assert(r == 0);
	}
	if (len > 0) {
		r = zf_dev_write_sync(to, start, forge_bytes(forge, start), len, false);
		assert(r == 0);
	}
}

static void copy_device(struct forge *forge, const char *path)
{
	const struct zf_open_options options = {0};
	struct zf_dev *from, *to;
	int r = zf_memory_open(forge->memory, NULL, NULL, &from);

	assert(r == 0);
	r = zf_image_create(path, zf_dev_geometry(from), true, &options, NULL);
	assert(r == 0);
	r = zf_image_open(path, &options, NULL, &to);
	assert(r == 0);
	for (uint32_t z = 0; z < zf_dev_geometry(from)->zone_count; z++)
		copy_zone(forge, from, to, z);
	zf_dev_close(to);
	zf_dev_close(from);
}

static void make_path(struct file *file, const char *name)
{
	const char *directory = getenv("TMPDIR");

	snprintf(file->path, sizeof(file->path), "%s/lies-%d-%s", directory ? directory : "/tmp",
		 (int)getpid(), name);
}

static void load(struct file *file)
{
	int fd = open(file->path, O_RDONLY | O_CLOEXEC), r;
	off_t size = lseek(fd, 0, SEEK_END);
	bool lower_bounds;

	assert(fd >= 0 && size > 0);
	file->size = (uint64_t)size;
	file->bytes = mmap(NULL, file->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	assert(file->bytes != MAP_FAILED);
	r = zf_image_trailer_read(fd, file->size, NULL, &file->trailer);
	assert(r == 0);
	close(fd);
	file->trailer.table = (void *)(file->bytes + file->trailer.table_offset);
	file->trailer.state = (void *)(file->bytes + file->trailer.state_offset);
	r = zf_zone_rules_init(&file->rules, &file->trailer.geometry);
	assert(r == 0);
	r = zf_image_trailer_load(&file->trailer, &file->rules, NULL, &lower_bounds);
	assert(r == 0 && !lower_bounds);
}

void file_make(struct forge *forge, struct file *ret_file)
{
	*ret_file = (struct file){0};
	make_path(ret_file, "image");
	copy_device(forge, ret_file->path);
	load(ret_file);
}

void file_free(struct file *file)
{
	munmap(file->bytes, file->size);
	zf_zone_rules_deinit(&file->rules);
	unlink(file->path);
}

void file_seal_header(struct file *file)
{
	struct zf_image_header *header = (void *)(file->bytes + file->size - sizeof(*header));
	size_t from = offsetof(struct zf_image_header, version);

	header->checksum =
		zf_le64_from(zf_hash64((const uint8_t *)header + from, sizeof(*header) - from));
}

void file_seal_state(struct file *file)
{
	struct zf_image_state *state = file->trailer.state;
	size_t from = offsetof(struct zf_image_state, boot_id);

	state->checksum = zf_le64_from(zf_hash64_seed((const uint8_t *)state + from,
						      sizeof(*state) - from, file->trailer.seed));
}

void file_write_own(struct file *file)
{
	ssize_t n;
	int fd, r;

	make_path(file, "own");
	fd = open(file->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert(fd >= 0);
	r = ftruncate(fd, (off_t)file->size);
	assert(r == 0);
	for (uint64_t at = 0; at < file->size; at += ZF_BLOCK_SIZE) {
		/* Most of the file is a hole. */
		if (zf_is_zero(file->bytes + at, ZF_BLOCK_SIZE))
			continue;
		n = pwrite(fd, file->bytes + at, ZF_BLOCK_SIZE, (off_t)at);
		assert(n == ZF_BLOCK_SIZE);
	}
	close(fd);
}
