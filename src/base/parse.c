/* SPDX-License-Identifier: MIT */
#include "base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bits.h"

/* ---- numbers ---- */

/* Sets *ret_end behind the digits, of which there is at least one. */
static int parse_digits(const char *text, uint64_t *ret_number, const char **ret_end)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*ret_number = strtoull(text, &end, 10);
	*ret_end = end;
	return errno == ERANGE ? -ERANGE : 0;
}

int zf_parse_number(const char *text, uint64_t max, uint64_t *ret_number)
{
	uint64_t number;
	const char *end;
	int r = parse_digits(text, &number, &end);

	if (r < 0)
		return r;
	if (*end != '\0')
		return -EINVAL;
	if (number > max)
		return -ERANGE;
	*ret_number = number;
	return 0;
}

/* ---- sizes ---- */

static const char letters[] = "KMGTPE";

/* Parses the unit behind a number: nothing, B, or a letter with nothing, iB or B. */
static int parse_unit(const char *text, uint64_t *ret_unit)
{
	uint64_t base = 1024, unit = 1;
	const char *letter;

	if (text[0] != '\0' && strcasecmp(text, "B") != 0) {
		letter = strchr(letters, toupper((unsigned char)text[0]));
		if (!letter)
			return -EINVAL;
		if (strcasecmp(text + 1, "B") == 0)
			base = 1000;
		else if (text[1] != '\0' && strcasecmp(text + 1, "iB") != 0)
			return -EINVAL;
		for (const char *l = letters; l <= letter; l++)
			unit *= base;
	}
	*ret_unit = unit;
	return 0;
}

/* Parses the digits behind the point, of which 18 count; *ret_scale: 10 for each that counts. */
static int parse_fraction(const char *text, uint64_t *ret_fraction, uint64_t *ret_scale,
			  const char **ret_end)
{
	uint64_t fraction = 0, scale = 1;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	for (; isdigit((unsigned char)*text); text++) {
		if (scale >= UINT64_C(1000000000000000000))
			continue;
		fraction = 10 * fraction + (uint64_t)(*text - '0');
		scale *= 10;
	}
	*ret_fraction = fraction;
	*ret_scale = scale;
	*ret_end = text;
	return 0;
}

int zf_parse_size(const char *text, uint64_t max, uint64_t *ret_bytes)
{
	uint64_t whole, fraction = 0, scale = 1, unit;
	unsigned __int128 bytes;
	const char *end;
	int too_large = parse_digits(text, &whole, &end), r = 0;

	if (too_large == -EINVAL)
		return -EINVAL;
	if (*end == '.')
		r = parse_fraction(end + 1, &fraction, &scale, &end);
	if (r == 0)
		r = parse_unit(end, &unit);
	if (r < 0)
		return r;
	if (scale > 1 && unit == 1)
		return -EINVAL;
	bytes = (unsigned __int128)whole * unit + (unsigned __int128)fraction * unit / scale;
	if (too_large < 0 || bytes > max)
		return -ERANGE;
	*ret_bytes = (uint64_t)bytes;
	return 0;
}

const char *zf_parse_size_text(uint64_t bytes, char buf[ZF_SIZE_TEXT_MAX])
{
	size_t power = 0;

	while (bytes > 0 && bytes % 1024 == 0 && power < sizeof(letters) - 1) {
		bytes /= 1024;
		power++;
	}
	if (power == 0)
		snprintf(buf, ZF_SIZE_TEXT_MAX, "%" PRIu64, bytes);
	else
		snprintf(buf, ZF_SIZE_TEXT_MAX, "%" PRIu64 "%c", bytes, letters[power - 1]);
	return buf;
}

/* ---- names ---- */

/* Longer words are not misspelled names. */
#define NAME_MAX_LEN 32

/* How many letters must be changed, added or left out to make one word from the other. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t row[NAME_MAX_LEN + 1];

	for (size_t j = 0; j <= b_len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t changed = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			row[j] = zf_min_u64(changed, 1 + zf_min_u64(row[j], row[j - 1]));
		}
	}
	return row[b_len];
}

const char *zf_parse_nearest_name(const char *word, size_t count,
				  const char *(*name)(const void *arg, size_t i), const void *arg)
{
	size_t len = strcspn(word, "="), best = (len + 2) / 3 + 1;
	const char *nearest = NULL;

	if (len > NAME_MAX_LEN)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const char *candidate = name(arg, i);
		size_t candidate_len = strcspn(candidate, "="), d;

		if (candidate_len > NAME_MAX_LEN)
			continue;
		d = distance(word, len, candidate, candidate_len);
		/* With d == candidate_len, no letter of a short name would have to match. */
		if (d < best && d < candidate_len) {
			best = d;
			nearest = candidate;
		}
	}
	return nearest;
}
