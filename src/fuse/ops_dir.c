/* SPDX-License-Identifier: MIT */
/* Listing directories. Cookies are stable, so a listing needs no state between its requests. */
#include "fuse/ops.h"

#include <errno.h>
#include <sys/stat.h>

#define BATCH 32

/*
 * Adds the attributes, so that the kernel need not look the name up, and counts one reference more.
 */
static void look_up(struct zf_daemon *daemon, struct zf_call *call, const struct zf_dirent *dirent,
		    struct fuse_entry_param *ret_entry)
{
	struct zf_attr attr;
	bool dots = dirent->cookie <= 2;

	/* If the attributes cannot be had: number and type only. */
	*ret_entry = (struct fuse_entry_param){
		.attr.st_ino = dirent->ino,
		.attr.st_mode = (mode_t)dirent->type << 12,
	};
	/*
	 * The name may have been removed meanwhile, or its inode is damaged: a lookup will report
	 * that.
	 */
	if (!dots && zf_fs_lookup(daemon->fs, &call->ctx, call->ino, dirent->name, &attr) == 0)
		zf_fuse_attr_to_entry(&attr, ret_entry);
}

/* Adds an entry. False: the buffer has no room for it. */
static bool add(struct zf_daemon *daemon, struct zf_call *call, const struct zf_dirent *dirent,
		char *buf, size_t *used)
{
	bool plus = call->kind == ZF_REQUEST_READDIRPLUS;
	char *end = buf + *used;
	size_t room = call->size - *used, need;
	struct fuse_entry_param entry;

	/* The room is checked first, because a lookup cannot be undone if there is no room. */
	need = plus ? fuse_add_direntry_plus(call->req, NULL, 0, dirent->name, NULL, 0)
		    : fuse_add_direntry(call->req, NULL, 0, dirent->name, NULL, 0);
	if (need > room)
		return false;
	if (plus) {
		look_up(daemon, call, dirent, &entry);
		fuse_add_direntry_plus(call->req, end, room, dirent->name, &entry,
				       (off_t)dirent->cookie);
	} else {
		struct stat st = {.st_ino = dirent->ino, .st_mode = (mode_t)dirent->type << 12};

		fuse_add_direntry(call->req, end, room, dirent->name, &st, (off_t)dirent->cookie);
	}
	*used += need;
	return true;
}

static int run_readdir(struct zf_daemon *daemon, struct zf_call *call)
{
	struct zf_dirent dirents[BATCH];
	uint64_t cookie = call->offset;
	size_t used = 0;
	char *buf;
	int n, r = zf_call_buffer(call, call->size, &buf);

	if (r < 0)
		return r;
	do {
		n = zf_fs_readdir(daemon->fs, &call->ctx, call->ino, cookie, dirents, BATCH);
		for (int i = 0; i < n; i++) {
			if (!add(daemon, call, &dirents[i], buf, &used))
				goto full;
			cookie = dirents[i].cookie;
		}
	} while (n > 0);
	/* An error after some entries will be met again when the kernel asks for the rest. */
	if (n < 0 && used == 0)
		return n;
full:
	fuse_reply_buf(call->req, buf, used);
	return 0;
}

static void list(fuse_req_t req, enum zf_request kind, fuse_ino_t ino, size_t size, off_t offset)
{
	struct zf_call call = {
		.req = req,
		.kind = kind,
		.run = run_readdir,
		.ino = ino,
		.size = size,
		.offset = (uint64_t)offset,
	};

	zf_call_dispatch(&call);
}

void zf_fuse_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		     struct fuse_file_info *fi)
{
	(void)fi;
	list(req, ZF_REQUEST_READDIR, ino, size, offset);
}

void zf_fuse_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
			 struct fuse_file_info *fi)
{
	(void)fi;
	list(req, ZF_REQUEST_READDIRPLUS, ino, size, offset);
}

void zf_fuse_forget_listing(struct zf_daemon *daemon, uint64_t dir)
{
	/*
	 * The kernel checks whether its cached listing is old only when a listing begins. A listing
	 * that begins while another one is still filling the cache could continue from the cache
	 * with names that were removed before. Every reader reads the cache from its first page on;
	 * if that page is missing, the kernel drops the cache and starts afresh. Only the first
	 * page is dropped, so that the reader that fills the cache gets to its end. As with
	 * attributes, the sender of the change keeps readers out until the answer.
	 */
	fuse_lowlevel_notify_inval_inode(daemon->session, dir, 0, 1);
}
