/* SPDX-License-Identifier: MIT */
/*
 * What the commands with "hex" answer of a structure: an array "dump" of its bytes, each once, in
 * their order (ctl/annotate.h). An entry has "offset" and "size", in bytes; "part", if the structure has
 * several of a kind; "struct", if the bytes are a field of one; "field", its name in docs/format.md;
 * "value", if there is one to decode; and "bytes" in hexadecimal, or "withheld": true.
 *
 * The superblock's log_secret is withheld. Of a log record whose hash is wrong the right one is not
 * told either: who puts a record's bytes into a file must not get them sealed by asking for a dump.
 */
#ifndef ZF_CTL_REPORT_HEX_H
#define ZF_CTL_REPORT_HEX_H

#include "ctl/annotate.h"
#include "ctl/report.h"
#include "log/read.h"

/* A new reference; NULL: out of memory. */
struct json_object *zf_report_hex_entry(const struct zf_annotation *annotation);
/* A zf_annotate_fn whose `arg` is a JSON array. */
void zf_report_hex_push(void *array, const struct zf_annotation *annotation);

/*
 * Adds the log's blocks that begin as a record does and are none that counts as one: torn, stale or
 * damaged, with "error" in the place of a fate.
 */
int zf_report_log_damaged(const struct zf_report_source *source, const struct zf_log_found *found,
			  struct zf_report_list *list);
/* Adds "dump", of the record's header blocks, which are read from the device. */
int zf_report_log_dump(const struct zf_report_source *source, uint64_t address,
		       const struct zf_log_record *record, struct json_object *object);

#endif
