/* SPDX-License-Identifier: MIT */
/*
 * The oracle: a whole filesystem as a trivial model in memory, which knows the answers that the
 * real filesystem must give.
 *
 * The test passes every operation (struct zf_op) to the oracle after the real filesystem carried
 * the operation out, and the oracle returns the expected result. Crash tests need one thing more:
 * *any* earlier state can be made again by applying the first operations of a record to a new
 * oracle.
 *
 * Content. A write has a number, and the byte that it puts at a file offset is a function of the
 * two: so each byte read tells which write made it, and zeroes are write number 0. Bytes that are
 * copied to another offset remain those of the offset where they were written. A file is a list of
 * spans; each span has candidates, the newest last, and a read must return the bytes of one of
 * them. Without `keep_old` a span has one candidate, the newest. With `keep_old`, older candidates
 * stay until they are settled: data that no sync has acknowledged may or may not have survived a
 * crash, block by block. A byte that no candidate explains is a stale byte (P3). The effect of
 * fallocate counts as content, too. Truncation does not: like names and attributes, it keeps the
 * order of operations.
 *
 * The real filesystem chooses the inode number of a new file; the oracle checks that no number is
 * ever used twice.
 */
#ifndef ZF_TESTS_ORACLE_H
#define ZF_TESTS_ORACLE_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/core/fs.h"

/* ---- content ---- */

#define ORACLE_CANDIDATES_MAX 24u

struct oracle_bytes {
	uint32_t write; /* 0: zeroes, a hole perhaps */
	uint64_t shift; /* the byte at offset o is what the write put at o + shift (mod 2^64) */
};

struct oracle_span {
	uint64_t start; /* ends where the next one starts */
	uint32_t count;
	struct oracle_bytes candidate[ORACLE_CANDIDATES_MAX];
};

/* Not the number of a write: zeroes that count as written. */
#define ORACLE_ZEROES UINT32_C(0xfffff000)

struct oracle_data {
	struct oracle_span *spans; /* the first starts at 0, the last goes on forever */
	unsigned int count, room;
	uint64_t size;		     /* now */
	uint64_t size_min, size_max; /* the sizes that a crash may leave */
	/*
	 * Some of the content may be written in place. Such a write is torn in sectors, and is seen
	 * without a log record, so it may be newer than the names found.
	 */
	bool in_place;
};

#define ORACLE_SECTOR 512u

/* The bytes of write number `write` at file offset `offset`. */
void oracle_fill(uint32_t write, uint64_t offset, void *buf, size_t len);

void oracle_data_init(struct oracle_data *data);
void oracle_data_deinit(struct oracle_data *data);
void oracle_data_write(struct oracle_data *data, uint64_t offset, uint64_t len, uint32_t write,
		       bool keep_old);
/* Like oracle_data_write(), without an effect on the size; `write`: 0 or ORACLE_ZEROES. */
void oracle_data_zero(struct oracle_data *data, uint64_t from, uint64_t to, uint32_t write,
		      bool keep_old);
/* Copies the newest content at `from` in `source`, which may be the same file. */
void oracle_data_copy(struct oracle_data *data, uint64_t offset, const struct oracle_data *source,
		      uint64_t from, uint64_t len, bool keep_old);
/* `unsettled`: the file may have writes that a crash would lose. */
void oracle_data_truncate(struct oracle_data *data, uint64_t size, bool unsettled);
/* Adds a candidate: a write that may be seen or not, up to the size that the file may have. */
void oracle_data_maybe(struct oracle_data *data, uint64_t from, uint64_t to, uint32_t write);
void oracle_data_maybe_copied(struct oracle_data *data, uint64_t offset,
			      const struct oracle_data *source, uint64_t from, uint64_t len);
/* The newest candidate of each span becomes its only one. */
void oracle_data_settle(struct oracle_data *data);
/* The span that holds `offset`; *ret_end: where the next one starts. */
const struct oracle_span *oracle_data_find(const struct oracle_data *data, uint64_t offset,
					   uint64_t *ret_end);
/* The first byte of buf that no candidate explains, or `len`. */
size_t oracle_data_check(const struct oracle_data *data, uint64_t offset, const uint8_t *buf,
			 size_t len);
/* Whether every byte of [from, to) may be zero (as the newest candidate says). */
bool oracle_data_is_zero(const struct oracle_data *data, uint64_t from, uint64_t to);
/* The first offset >= from whose newest candidate is no hole, or UINT64_MAX. */
uint64_t oracle_data_next(const struct oracle_data *data, uint64_t from);

/* ---- inodes and names ---- */

struct oracle_xattr {
	const char *name;
	uint32_t write, len; /* the value: oracle_fill(write, 0, ..., len) */
};

#define ORACLE_XATTRS_MAX 8u

/* An access control list, as in the attribute's bytes. */
#define ORACLE_ACL_ACCESS  "system.posix_acl_access"
#define ORACLE_ACL_DEFAULT "system.posix_acl_default"
#define ORACLE_ACL_MAX	   8u

struct oracle_acl {
	uint32_t version;
	unsigned int count; /* 0: no list */
	struct oracle_acl_entry {
		uint16_t tag, permissions;
		uint32_t id;
	} entries[ORACLE_ACL_MAX];
};

bool oracle_acl_is_name(const char *name);
size_t oracle_acl_len(const struct oracle_acl *acl);
/* Its bytes; returns oracle_acl_len(). */
size_t oracle_acl_encode(const struct oracle_acl *acl, uint8_t *buf);

struct oracle_entry {
	const char *name; /* of a table that outlives the oracle */
	uint64_t ino;
};

struct oracle_inode {
	LIST_ENTRY(oracle_inode) link;
	unsigned int index; /* in oracle.all */
	uint64_t ino;
	uint32_t mode, nlink, uid, gid, flags;
	uint64_t rdev;
	int64_t atime, mtime, ctime, btime; /* ns */
	/*
	 * Content was changed since the last settling or change of attributes. The times found may
	 * be older than these, because the filesystem stores them with the content; but ctime is no
	 * older than that settling or change (ctime_min).
	 */
	bool times_loose;
	bool mtime_loose; /* that change of attributes may have stored an older mtime */
	bool atime_loose; /* a read, not made durable by an fsync: atime may be older */
	int64_t ctime_min;
	/* Changes of content since the last settling; how many of them write data. */
	unsigned int unsettled, unsettled_data;
	uint32_t last_content; /* the number of the last change of content */

	/* A write failed: it may have taken effect, wholly or in part. */
	bool content_unknown;

	uint64_t held; /* kernel references */

	const char *target;	 /* symbolic links */
	struct oracle_data data; /* files */
	struct oracle_xattr xattrs[ORACLE_XATTRS_MAX];
	unsigned int xattr_count;
	struct oracle_acl access, by_default;

	uint64_t parent; /* directories */
	struct oracle_entry *entries;
	unsigned int entry_count, entry_room;
};

LIST_HEAD(oracle_inode_list, oracle_inode);

#define ORACLE_BUCKETS 256u

struct oracle {
	bool keep_old; /* see "Content" above */
	bool in_place; /* the device has zones where write-zeroes allocates */
	struct oracle_inode_list buckets[ORACLE_BUCKETS];
	struct oracle_inode **all; /* in no order that matters, but the same in every run */
	unsigned int count, room;
	uint64_t highest_ino;
	int64_t now;	 /* ns: what the filesystem's clock says */
	uint32_t frozen; /* the operation that froze the last transaction */
};

/* An empty filesystem whose root directory was made at `now`. */
struct oracle *oracle_new(bool keep_old, int64_t now);
void oracle_free(struct oracle *oracle); /* takes NULL */

struct oracle_inode *oracle_find(struct oracle *oracle, uint64_t ino); /* or NULL */
const struct oracle_entry *oracle_entry(const struct oracle_inode *dir, const char *name);

/* ---- operations ---- */

struct zf_op;

/*
 * Returns the result that the operation must have had, and applies its effect. op->attr.ino is the
 * number that the real filesystem gave, if the operation made an inode.
 */
int64_t oracle_apply(struct oracle *oracle, const struct zf_op *op);

/* For an operation that a crash undid, or that never ended: its writes in place may be seen. */
void oracle_apply_in_place(struct oracle *oracle, const struct zf_op *op);
/* The same for a copy; `then` has its source as it was at that time. */
void oracle_copy_in_place(struct oracle *oracle, struct oracle *then, const struct zf_op *op);

/* What a crash or an unmount does: all kernel references go, and with them files without names. */
void oracle_forget_all(struct oracle *oracle);

/* Everything is durable as it is now. */
void oracle_settle_all(struct oracle *oracle);

#endif
