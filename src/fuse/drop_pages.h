/* SPDX-License-Identifier: MIT */
/*
 * A direct write, or what fails to change a range, is answered when the kernel has no pages with
 * what it has replaced (open_inode.h says when it may).
 *
 * Telling the kernel so (FUSE_NOTIFY_INVAL_INODE) waits: for each page of the range that is locked,
 * which is one that a READ is to fill, or a WRITE is to write; and for dirty pages of a mapping,
 * which the kernel writes first. All these come to us. So threads of their own do it, which serve
 * nothing else, hold no lock, and are behind nobody whom such a READ or WRITE has to wait for.
 *
 * But a write that is not answered has a place that a READ may need: a slot of its queue over
 * io_uring, and one of the requests that the kernel sends without waiting for their answers. If
 * writes had all of them, those READs would not come, and nobody would go on. When so few are left,
 * and no page has been dropped for a while, what is beyond that number is answered first, and its
 * pages are dropped when the kernel comes to it: for that moment, a buffered read may see what was
 * there before.
 */
#ifndef ZF_FUSE_DROP_PAGES_H
#define ZF_FUSE_DROP_PAGES_H

#include "fuse/call.h"

struct zf_droppers;

int zf_droppers_new(struct zf_daemon *daemon, struct zf_droppers **ret_droppers);
/* Nobody calls zf_droppers_run() any more; what is under way is finished. Takes NULL. */
void zf_droppers_free(struct zf_droppers *droppers);

/*
 * Has the pages of call->offset and call->size of call->inode dropped, and then answers with
 * call->result. It takes what it needs of the call. -ENOMEM: it has done nothing.
 */
int zf_droppers_run(struct zf_droppers *droppers, const struct zf_call *call);
/*
 * Of a buffered write: answers, and then has its pages dropped (open_inode.h). -ENOMEM: it has done
 * nothing.
 */
int zf_droppers_answer_and_run(struct zf_droppers *droppers, const struct zf_call *call);

/*
 * Of a direct read that came to an end of the file which may not be the kernel's: has the dirty
 * pages from call->offset on written and dropped, and runs the call once more. False: too many
 * requests are held; it has done nothing.
 */
bool zf_droppers_write_out(struct zf_droppers *droppers, const struct zf_call *call);

#endif
