/* SPDX-License-Identifier: MIT */
/*
 * Building JSON: numbers as numbers, bytes that may come from a hostile disk as valid text.
 *
 * zf_json_add() and zf_json_push() accept NULL as the container and as the value, so after a chain
 * of calls the caller checks only the final result for NULL (out of memory).
 */
#ifndef ZF_CTL_JSON_H
#define ZF_CTL_JSON_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fields.h"
#include "btree/key.h"

/* Both take over the reference to `value`. */
void zf_json_add(struct json_object *object, const char *key, struct json_object *value);
void zf_json_push(struct json_object *array, struct json_object *value);

void zf_json_add_u64(struct json_object *object, const char *key, uint64_t value);
void zf_json_add_bool(struct json_object *object, const char *key, bool value);
void zf_json_add_text(struct json_object *object, const char *key, const char *value);
/* Printable ASCII as it is; all other bytes as \xNN, and a backslash as \x5c. */
void zf_json_add_bytes(struct json_object *object, const char *key, const void *bytes, size_t len);
/* Lower-case hexadecimal digits. */
void zf_json_add_hex(struct json_object *object, const char *key, const void *bytes, size_t len);
/* As eight, four, four, four and twelve digits. */
void zf_json_add_uuid(struct json_object *object, const char *key, const uint8_t uuid[16]);

/* {"objectid", "type", "offset"} */
struct json_object *zf_json_key(const struct zf_key *key);

/*
 * Every field of an on-disk struct but the reserved ones. Numbers, arrays of numbers, and strings
 * for other fields; a struct member "atime.seconds" keeps that name. 64-bit words that are
 * compared, not counted, are "0x...".
 */
struct json_object *zf_json_fields(const struct zf_fields *fields, const void *data);

/*
 * Get the values of a request's arguments. If the argument is missing, *ret_value is left alone.
 * -EINVAL: it has another type.
 */
int zf_json_get_u64(struct json_object *args, const char *key, uint64_t *ret_value);
int zf_json_get_bool(struct json_object *args, const char *key, bool *ret_value);
int zf_json_get_text(struct json_object *args, const char *key, const char **ret_value);

/* Sets *ret to a JSON string that tells what went wrong, and returns `error`. */
int zf_json_fail(struct json_object **ret, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
