/* SPDX-License-Identifier: MIT */
/*
 * The oracle: a whole filesystem as a trivial model in memory, which says what the real one must
 * answer.
 *
 * It is told every operation (struct zf_op) after the real filesystem carried it out and returns
 * the result that it expects. What tests of crashes need beyond that: *any* earlier state can be
 * made again by applying the first operations of a record to a new oracle.
 *
 * Content. A write has a number, and the byte that it puts at a file offset is a function of the
 * two: so each byte read tells which write made it, and zeroes are write number 0. Copied to
 * another offset, bytes stay those of where they were written. A file is a list of spans; what may
 * be read in a span is one of its candidates, the newest last. Without `keep_old` there is always
 * one: the newest. With it, older ones stay until they are settled: data that no sync has
 * acknowledged may or may not have survived a crash, block by block, and anything that is not among
 * the candidates is a stale byte (P3). What fallocate does is content, too. Truncation is not: with
 * the names and attributes it is in the order of operations.
 *
 * Numbers of inodes are the real filesystem's: it says which number a new file has, and the oracle
 * that none is ever used twice.
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
	uint64_t size_min, size_max; /* that a crash may leave */
	/*
	 * Some of it may be written in place: that is torn in sectors, and needs no record to be
	 * seen, so it may be newer than names.
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
/* The same without an effect on the size; `write`: 0 or ORACLE_ZEROES. */
void oracle_data_zero(struct oracle_data *data, uint64_t from, uint64_t to, uint32_t write,
		      bool keep_old);
/* What is newest at `from` in `source`, which may be the same file. */
void oracle_data_copy(struct oracle_data *data, uint64_t offset, const struct oracle_data *source,
		      uint64_t from, uint64_t len, bool keep_old);
/* `unsettled`: there may be writes that a crash would lose. */
void oracle_data_truncate(struct oracle_data *data, uint64_t size, bool unsettled);
/* A write that may have been seen, or not, within the file as it is. */
void oracle_data_maybe(struct oracle_data *data, uint64_t from, uint64_t to, uint32_t write);
void oracle_data_maybe_copied(struct oracle_data *data, uint64_t offset,
			      const struct oracle_data *source, uint64_t from, uint64_t len);
/* What is newest is from now on the only candidate. */
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
	 * Content was changed since the last settling or change of attributes: times may be older
	 * than these, as they are stored with the content. But no older than that change.
	 */
	bool times_loose;
	bool mtime_loose; /* and mtime may have been older then */
	bool atime_loose; /* a read, not made durable by an fsync: atime may be older */
	int64_t ctime_min;
	/* Changes of content since the last settling; how many of them write data. */
	unsigned int unsettled, unsettled_data;
	uint32_t last_content; /* the number of the last one */

	/* A write failed: it may have been made, wholly or not. */
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
	bool keep_old; /* see above */
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
 * What the operation must have answered, and its effect. op->attr.ino is the number that the real
 * filesystem gave, if it made something.
 */
int64_t oracle_apply(struct oracle *oracle, const struct zf_op *op);

/* An operation that a crash has undone, or that never ended: what it did in place may be seen. */
void oracle_apply_in_place(struct oracle *oracle, const struct zf_op *op);
/* The same for a copy, whose source was then as `then` has it. */
void oracle_copy_in_place(struct oracle *oracle, struct oracle *then, const struct zf_op *op);

/* What a crash or an unmount does: nobody holds a file any more, and those without names are gone.
 */
void oracle_forget_all(struct oracle *oracle);

/* Everything that is is durable. */
void oracle_settle_all(struct oracle *oracle);

#endif
