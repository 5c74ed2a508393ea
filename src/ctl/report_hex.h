/* SPDX-License-Identifier: MIT */
/*
 * The answer of the commands with "hex" for a structure: an array "dump" of the structure's bytes,
 * each once, in their order (ctl/annotate.h). An entry has "offset" and "size", in bytes; "part",
 * if the structure has several parts of a kind; "struct", if the bytes are a field of a struct;
 * "field", its name in docs/format.md; "value", if there is one to decode; and "bytes" in
 * hexadecimal, or "withheld": true.
 *
 * The superblock's log_secret is withheld. If the hash of a log record is wrong, the right hash is
 * not shown either. Otherwise a user could write the bytes of a record into a file, and get a valid
 * hash for them by asking for a dump.
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
 * Adds the blocks of the log that begin as a record does, but are no record that counts: torn,
 * stale or damaged ones, with "error" instead of "fate".
 */
int zf_report_log_damaged(const struct zf_report_source *source, const struct zf_log_found *found,
			  struct zf_report_list *list);
/* Adds "dump", with the bytes of the record's header blocks, which are read from the device. */
int zf_report_log_dump(const struct zf_report_source *source, uint64_t address,
		       const struct zf_log_record *record, struct json_object *object);

#endif
