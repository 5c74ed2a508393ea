/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "age/load.h"
#include "base/bits.h"

#define DIRECTORIES   32u
#define APPEND_MAX    (64u << 10)
#define OVERWRITE_MAX 16u /* blocks */
#define NAME_SIZE     16u
#define FILES_MIN     16u

struct file {
	uint64_t ino, size;
	uint32_t *versions; /* of each block */
	uint32_t name;	    /* number */
	uint8_t directory;
};

struct tree {
	struct age_load load;
	struct age_tree_options options;
	uint64_t directories[DIRECTORIES];
	struct file *files; /* the youngest last, as a rule */
	size_t count, room;
	uint64_t bytes;
	uint32_t next_name;
	uint64_t done[AGE_TREE_OPS];
};

static struct tree *tree_of(struct age_load *load)
{
	return ZF_CONTAINER_OF(load, struct tree, load);
}

const uint64_t *age_tree_counts(const struct age_load *load)
{
	return ZF_CONTAINER_OF(load, struct tree, load)->done;
}

/* ---- what is drawn ---- */

static uint64_t below(struct tree *tree, uint64_t limit)
{
	return age_below(&tree->load.user->random, limit);
}

/*
 * Many small files and a few large ones that hold most of the bytes, as in all studies of file
 * sizes since Douceur and Bolosky, 1999. Of 100 files so many are larger than the line before, and
 * up to `bytes`; within, uniformly.
 */
static uint64_t draw_size(struct tree *tree)
{
	static const struct {
		unsigned int percent;
		uint64_t bytes;
	} classes[] = {{15, 1 << 10},	{25, 4 << 10}, {25, 16 << 10}, {17, 64 << 10},
		       {10, 256 << 10}, {5, 1 << 20},  {2, 4 << 20},   {1, 16 << 20}};
	uint64_t dice = below(tree, 100), from = 1;

	for (size_t i = 0; i < ZF_ARRAY_SIZE(classes); i++) {
		if (dice < classes[i].percent)
			return zf_min_u64(from + below(tree, classes[i].bytes - from + 1),
					  tree->options.size_max);
		dice -= classes[i].percent;
		from = classes[i].bytes + 1;
	}
	return 1;
}

/* Recent files are used most: two times out of three, a file of the youngest eighth. */
static struct file *draw_file(struct tree *tree)
{
	size_t young = tree->count / 8 + 1;

	if (below(tree, 3) > 0)
		return &tree->files[tree->count - young + below(tree, young)];
	return &tree->files[below(tree, tree->count)];
}

/* ---- the model ---- */

static uint64_t blocks_of_size(uint64_t size)
{
	return (size + AGE_BLOCK - 1) / AGE_BLOCK;
}

static void name_of(uint32_t number, char ret_name[NAME_SIZE])
{
	snprintf(ret_name, NAME_SIZE, "file-%u", number);
}

/* Blocks that are new, or written anew, get a version; the rest of a last block keeps its own. */
static int set_size(struct tree *tree, struct file *file, uint64_t size)
{
	uint64_t before = blocks_of_size(file->size), after = blocks_of_size(size);
	uint32_t *versions = realloc(file->versions, zf_max_u64(after, 1) * sizeof(*versions));

	if (!versions)
		return -ENOMEM;
	file->versions = versions;
	for (uint64_t i = before; i < after; i++)
		versions[i] = age_new_version(tree->load.user);
	tree->bytes += (after - before) * AGE_BLOCK;
	file->size = size;
	return 0;
}

static int grow_table(struct tree *tree)
{
	size_t room = tree->room * 2 + 64;
	struct file *files;

	if (tree->count < tree->room)
		return 0;
	files = reallocarray(tree->files, room, sizeof(*files));
	if (!files)
		return -ENOMEM;
	tree->files = files;
	tree->room = room;
	return 0;
}

static void drop(struct tree *tree, struct file *file)
{
	tree->bytes -= blocks_of_size(file->size) * AGE_BLOCK;
	free(file->versions);
	*file = tree->files[--tree->count];
}

/* ---- operations ---- */

static int write_all(struct tree *tree, struct file *file, uint64_t size)
{
	uint64_t from = file->size;
	int r = set_size(tree, file, size);

	return r < 0 ? r : age_write(tree->load.user, file->ino, from, size - from, file->versions);
}

/* A file without content, with a name that is new. */
static int make(struct tree *tree, struct file **ret_file)
{
	struct age_user *user = tree->load.user;
	struct zf_attr attr;
	struct file *file;
	char name[NAME_SIZE];
	int r = grow_table(tree);

	if (r < 0)
		return r;
	file = &tree->files[tree->count];
	*file = (struct file){.name = tree->next_name++,
			      .directory = (uint8_t)below(tree, DIRECTORIES)};
	name_of(file->name, name);
	r = zf_fs_make(user->fs, &user->ctx, tree->directories[file->directory], name,
		       S_IFREG | 0644, 0, NULL, &attr);
	if (r < 0)
		return r;
	zf_fs_forget(user->fs, attr.ino, 1);
	file->ino = attr.ino;
	tree->count++;
	*ret_file = file;
	return 0;
}

static int create(struct tree *tree)
{
	struct file *file;
	int r = make(tree, &file);

	return r < 0 ? r : write_all(tree, file, draw_size(tree));
}

static int append(struct tree *tree, struct file *file)
{
	uint64_t size = file->size + 1 + below(tree, APPEND_MAX);

	return write_all(tree, file, zf_min_u64(size, tree->options.size_max));
}

/* A database's file, a mailbox, an image of a machine: some blocks in its middle. */
static int overwrite(struct tree *tree, struct file *file)
{
	uint64_t count = blocks_of_size(file->size), first = below(tree, count);
	uint64_t len = zf_min_u64(1 + below(tree, OVERWRITE_MAX), count - first);

	for (uint64_t i = 0; i < len; i++)
		file->versions[first + i] = age_new_version(tree->load.user);
	return age_write(tree->load.user, file->ino, first * AGE_BLOCK,
			 zf_min_u64(len * AGE_BLOCK, file->size - first * AGE_BLOCK),
			 file->versions);
}

static int rewrite(struct tree *tree, struct file *file)
{
	const struct zf_setattr set = {.valid = ZF_SET_SIZE};
	struct age_user *user = tree->load.user;
	struct zf_attr attr;
	int r = zf_fs_setattr(user->fs, &user->ctx, file->ino, &set, &attr);

	if (r == 0)
		r = set_size(tree, file, 0);
	if (r == 0)
		r = write_all(tree, file, draw_size(tree));
	return r < 0 ? r : zf_fs_close(user->fs, &user->ctx, file->ino);
}

static int sync_file(struct tree *tree, struct file *file)
{
	tree->done[AGE_FSYNC]++;
	return zf_fs_fsync(tree->load.user->fs, &tree->load.user->ctx, file->ino, true);
}

static int move(struct tree *tree, struct file *file, unsigned int directory, uint32_t number)
{
	struct age_user *user = tree->load.user;
	char from[NAME_SIZE], to[NAME_SIZE];
	int r;

	name_of(file->name, from);
	name_of(number, to);
	r = zf_fs_rename(user->fs, &user->ctx, tree->directories[file->directory], from,
			 tree->directories[directory], to, 0, NULL);
	file->directory = (uint8_t)directory;
	file->name = number;
	return r;
}

/* Writes a new file, makes it durable, and renames it over the old one, as editors save. */
static int replace(struct tree *tree, struct file *file)
{
	size_t old = (size_t)(file - tree->files);
	struct file *beside;
	int r = make(tree, &beside);

	if (r == 0)
		r = write_all(tree, beside, draw_size(tree));
	if (r == 0)
		r = sync_file(tree, beside);
	file = &tree->files[old];
	if (r == 0)
		r = move(tree, beside, file->directory, file->name);
	if (r == 0)
		drop(tree, file);
	return r;
}

static int delete(struct tree *tree, struct file *file)
{
	struct age_user *user = tree->load.user;
	char name[NAME_SIZE];
	int r;

	name_of(file->name, name);
	r = zf_fs_unlink(user->fs, &user->ctx, tree->directories[file->directory], name);
	drop(tree, file);
	return r;
}

/* ---- the load ---- */

static int operate(struct tree *tree, enum age_tree_op op)
{
	struct file *file = op == AGE_CREATE ? NULL : draw_file(tree);

	tree->done[op]++;
	switch (op) {
	case AGE_CREATE:
		return create(tree);
	case AGE_APPEND:
		return append(tree, file);
	case AGE_OVERWRITE:
		return overwrite(tree, file);
	case AGE_REWRITE:
		return rewrite(tree, file);
	case AGE_REPLACE:
		return replace(tree, file);
	case AGE_RENAME:
		return move(tree, file, (unsigned int)below(tree, DIRECTORIES), tree->next_name++);
	case AGE_DELETE:
	case AGE_FSYNC:
	case AGE_TREE_OPS:
		break;
	}
	return delete (tree, file);
}

/* Where there is too much, files go; what is drawn is of 100 operations. */
static enum age_tree_op draw_op(struct tree *tree)
{
	uint64_t dice = below(tree, 100);

	if (tree->bytes + tree->options.size_max > tree->options.bytes && tree->count > FILES_MIN)
		return AGE_DELETE;
	if (tree->count <= FILES_MIN || dice < 25)
		return AGE_CREATE;
	if (dice < 45)
		return AGE_APPEND;
	if (dice < 80)
		return AGE_OVERWRITE;
	if (dice < 84)
		return AGE_REWRITE;
	if (dice < 92)
		return AGE_REPLACE;
	return dice < 97 ? AGE_RENAME : AGE_DELETE;
}

static int step(struct age_load *load)
{
	struct tree *tree = tree_of(load);
	int r = operate(tree, draw_op(tree));

	return r < 0 ? r : age_operated(load->user);
}

static int make_directories(struct tree *tree)
{
	struct age_user *user = tree->load.user;
	char name[NAME_SIZE];

	for (unsigned int i = 0; i < DIRECTORIES; i++) {
		struct zf_attr attr;
		int r;

		snprintf(name, sizeof(name), "dir-%u", i);
		r = zf_fs_make(user->fs, &user->ctx, ZF_INO_ROOT, name, S_IFDIR | 0755, 0, NULL,
			       &attr);
		if (r < 0)
			return r;
		tree->directories[i] = attr.ino;
	}
	return 0;
}

static int fill(struct age_load *load)
{
	struct tree *tree = tree_of(load);
	int r = make_directories(tree);

	while (r == 0 && tree->bytes + tree->options.size_max <= tree->options.bytes)
		r = create(tree);
	return r;
}

static int verify_file(struct tree *tree, const struct file *file, struct age_fragments *fragments)
{
	struct age_user *user = tree->load.user;
	struct zf_attr attr;
	char name[NAME_SIZE];
	int64_t extents;
	int r;

	name_of(file->name, name);
	r = zf_fs_lookup(user->fs, &user->ctx, tree->directories[file->directory], name, &attr);
	if (r < 0)
		return r;
	zf_fs_forget(user->fs, attr.ino, 1);
	if (attr.ino != file->ino) {
		fprintf(stderr, "%s is another file\n", name);
		return -EILSEQ;
	}
	r = age_verify(user, file->ino, file->size, file->versions);
	if (r < 0)
		return r;
	extents = age_count_extents(user, file->ino);
	if (extents < 0)
		return (int)extents;
	fragments->files++;
	fragments->extents += (uint64_t)extents;
	fragments->bytes += file->size;
	return 0;
}

/* Names that were never created, or that were deleted, would show. */
static int64_t count_names(struct tree *tree, unsigned int directory)
{
	struct age_user *user = tree->load.user;
	struct zf_dirent entries[64];
	uint64_t cookie = 0;
	int64_t count = -2; /* "." and ".." */
	int r;

	while ((r = zf_fs_readdir(user->fs, &user->ctx, tree->directories[directory], cookie,
				  entries, ZF_ARRAY_SIZE(entries))) > 0) {
		count += r;
		cookie = entries[r - 1].cookie;
	}
	return r < 0 ? r : count;
}

static int verify(struct age_load *load, struct age_fragments *ret_fragments)
{
	struct tree *tree = tree_of(load);
	uint64_t names = 0;
	int r = 0;

	*ret_fragments = (struct age_fragments){0};
	for (size_t i = 0; r == 0 && i < tree->count; i++)
		r = verify_file(tree, &tree->files[i], ret_fragments);
	for (unsigned int d = 0; r == 0 && d < DIRECTORIES; d++) {
		int64_t count = count_names(tree, d);

		if (count < 0)
			r = (int)count;
		else
			names += (uint64_t)count;
	}
	if (r == 0 && names != tree->count) {
		fprintf(stderr, "%lu names for %zu files\n", (unsigned long)names, tree->count);
		r = -EILSEQ;
	}
	return r;
}

static void tree_free(struct age_load *load)
{
	struct tree *tree = tree_of(load);

	for (size_t i = 0; i < tree->count; i++)
		free(tree->files[i].versions);
	free(tree->files);
	free(tree);
}

struct age_load *age_tree_new(struct age_user *user, const struct age_tree_options *options)
{
	static const struct age_load_ops ops = {fill, step, verify, tree_free};
	struct tree *tree = calloc(1, sizeof(*tree));

	if (!tree)
		return NULL;
	tree->load = (struct age_load){&ops, user};
	tree->options = *options;
	return &tree->load;
}
