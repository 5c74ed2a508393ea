/* SPDX-License-Identifier: MIT */
/*
 * Dropping the kernel's pages. The daemon answers a direct write, or a request that failed to
 * change a range, when the kernel has no more pages with the old content of that range
 * (open_inode.h says when the kernel may have some).
 *
 * The daemon tells the kernel to drop pages by FUSE_NOTIFY_INVAL_INODE. This notice waits for each
 * page of the range that is locked, because a READ is to fill it or a WRITE is to write it; and for
 * dirty pages of a mapping, which the kernel writes first. All these READs and WRITEs come to this
 * daemon. So threads of their own (the droppers) send the notice. They serve nothing else, hold no
 * lock, and no such READ or WRITE ever waits behind them.
 *
 * But a write that is not answered occupies a place that a READ may need: a slot of its queue over
 * io_uring, and one of the requests that the kernel sends without waiting for their answers. If
 * held writes had all these places, those READs would not come, and the mount would hang. So when
 * half of ZF_BACKGROUND_MAX writes are held, or hardly a slot is left in the queue of a write,
 * further writes count as beyond the limit. If no page has been dropped for a while, these are
 * answered first, and their pages are dropped when the kernel gets to them. Until then a buffered
 * read of such a range may see the old content.
 */
#ifndef ZF_FUSE_DROP_PAGES_H
#define ZF_FUSE_DROP_PAGES_H

#include "fuse/call.h"

struct zf_droppers;

int zf_droppers_new(struct zf_daemon *daemon, struct zf_droppers **ret_droppers);
/*
 * Finishes the calls that are under way. zf_droppers_run() must not be called any more. Takes NULL.
 */
void zf_droppers_free(struct zf_droppers *droppers);

/*
 * Has the kernel drop the pages of call->inode in the range of call->offset and call->size, and
 * then answers with call->result. Copies what it needs of the call. -ENOMEM: it has done nothing.
 */
int zf_droppers_run(struct zf_droppers *droppers, const struct zf_call *call);
/*
 * For a buffered write: answers, and then has the kernel drop the pages of its range
 * (open_inode.h). -ENOMEM: it has done nothing.
 */
int zf_droppers_answer_and_run(struct zf_droppers *droppers, const struct zf_call *call);

/*
 * For a direct read that came to an end of the file which may not be the kernel's end: has the
 * kernel write and drop the dirty pages from call->offset on, and then runs the call once more.
 * False: too many requests are held, or there is no memory; it has done nothing.
 */
bool zf_droppers_write_out(struct zf_droppers *droppers, const struct zf_call *call);

#endif
