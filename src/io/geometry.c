/* SPDX-License-Identifier: MIT */
/* The numbers of a device: checking them, and reading them from a command line. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "io/image.h"
#include "io/zone_rules.h"

/* Keeps every block number of a zone within 32 bits, as the image's zone table requires. */
#define ZONE_SIZE_MAX ((uint64_t)ZF_BLOCK_SIZE << 31)
/* File offsets are signed, and the file has a trailer behind the device's bytes. */
#define DEVICE_SIZE_MAX ((uint64_t)1 << 62)

/* ---- checking ---- */

static int wrong(const struct zf_report *report, const char *name, uint64_t value,
		 const char *expected)
{
	zf_report(report, ZF_REPORT_ERROR, "geometry: %s is %" PRIu64 ", expected %s", name, value,
		  expected);
	return -EINVAL;
}

int zf_geometry_check(const struct zf_geometry *g, const struct zf_report *report)
{
	if (g->zone_size == 0 || !zf_is_aligned(g->zone_size, ZF_BLOCK_SIZE) ||
	    g->zone_size > ZONE_SIZE_MAX)
		return wrong(report, "zone size", g->zone_size, "a multiple of 4096 up to 8 TiB");
	if (g->zone_capacity == 0 || !zf_is_aligned(g->zone_capacity, ZF_BLOCK_SIZE) ||
	    g->zone_capacity > g->zone_size)
		return wrong(report, "zone capacity", g->zone_capacity,
			     "a multiple of 4096 up to the zone size");
	if (g->zone_count == 0 || g->zone_count > ZF_ZONE_COUNT_MAX ||
	    g->zone_count > DEVICE_SIZE_MAX / g->zone_size)
		return wrong(report, "number of zones", g->zone_count,
			     "1 to 4194304, and 4 EiB in all at most");
	if (g->conventional > g->zone_count)
		return wrong(report, "number of conventional zones", g->conventional,
			     "no more than there are zones");
	if (g->max_open && g->max_active && g->max_open > g->max_active)
		return wrong(report, "max open zones", g->max_open, "no more than the active ones");
	if (g->append_limit == 0 || !zf_is_aligned(g->append_limit, ZF_BLOCK_SIZE))
		return wrong(report, "append limit", g->append_limit, "a multiple of 4096");
	return 0;
}

/* ---- parsing ---- */

struct option {
	const char *name;
	size_t offset; /* in struct text_geometry */
	uint64_t max;
	bool is_size; /* takes K, M, G, T */
};

/* The numbers as written; 0 if left out, except those with defaults. */
struct text_geometry {
	uint64_t size, zone_size, zone_capacity, conventional, max_open, max_active, append_limit;
};

#define OPTION(text, field, largest, sized)                                                        \
	{.name = (text),                                                                           \
	 .offset = offsetof(struct text_geometry, field),                                          \
	 .max = (largest),                                                                         \
	 .is_size = (sized)}

static const struct option options[] = {
	OPTION("size", size, DEVICE_SIZE_MAX, true),
	OPTION("zone-size", zone_size, ZONE_SIZE_MAX, true),
	OPTION("zone-capacity", zone_capacity, ZONE_SIZE_MAX, true),
	OPTION("conventional", conventional, UINT32_MAX, false),
	OPTION("max-open", max_open, UINT32_MAX, false),
	OPTION("max-active", max_active, UINT32_MAX, false),
	OPTION("append-limit", append_limit, (uint64_t)1 << 31, true),
};

static int refuse(const struct zf_report *report, const char *what, const char *word)
{
	zf_report(report, ZF_REPORT_ERROR, "geometry: %s '%s'", what, word);
	return -EINVAL;
}

static const char *option_name(const void *arg, size_t i)
{
	(void)arg;
	return options[i].name;
}

static int parse_option(char *word, const struct zf_report *report, struct text_geometry *g)
{
	char *value = strchr(word, '=');
	const char *near;

	if (!value)
		return refuse(report, "a value is missing:", word);
	*value++ = '\0';
	for (size_t i = 0; i < ZF_ARRAY_SIZE(options); i++) {
		const struct option *o = &options[i];
		uint64_t number;
		int r;

		if (strcmp(word, o->name) != 0)
			continue;
		r = o->is_size ? zf_parse_size(value, o->max, &number)
			       : zf_parse_number(value, o->max, &number);
		if (r < 0) {
			zf_report(report, ZF_REPORT_ERROR,
				  "geometry: %s is '%s', expected a number%s up to %" PRIu64, word,
				  value,
				  o->is_size ? " of bytes, or with K, M, G, T or KB, MB, ...," : "",
				  o->max);
			return -EINVAL;
		}
		*(uint64_t *)(void *)((char *)g + o->offset) = number;
		return 0;
	}
	near = zf_parse_nearest_name(word, ZF_ARRAY_SIZE(options), option_name, NULL);
	zf_report(report, ZF_REPORT_ERROR, "geometry: unknown key '%s'%s%s%s", word,
		  near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	return -EINVAL;
}

/* Reports sizes that would be valid. */
static int wrong_multiple(const struct zf_report *report, uint64_t size, uint64_t zone_size)
{
	char sizes[4][ZF_SIZE_TEXT_MAX];
	uint64_t below = zf_align_down(size, zone_size);

	zf_report(report, ZF_REPORT_ERROR,
		  "geometry: size %s is not a multiple of the zone size %s; try %s%s%s",
		  zf_parse_size_text(size, sizes[0]), zf_parse_size_text(zone_size, sizes[1]),
		  below ? zf_parse_size_text(below, sizes[2]) : "", below ? " or " : "",
		  zf_parse_size_text(below + zone_size, sizes[3]));
	return -EINVAL;
}

static int convert(const struct text_geometry *text, const struct zf_report *report,
		   struct zf_geometry *ret_geometry)
{
	struct zf_geometry g = {
		.zone_size = text->zone_size,
		.zone_capacity = text->zone_capacity ? text->zone_capacity : text->zone_size,
		.conventional = (uint32_t)text->conventional,
		.max_open = (uint32_t)text->max_open,
		.max_active = (uint32_t)text->max_active,
		.append_limit = (uint32_t)text->append_limit,
		.volatile_cache = true,
	};
	int r;

	if (text->zone_size == 0)
		return wrong(report, "zone size", 0, "a multiple of 4096 up to 8 TiB");
	if (text->size == 0)
		return wrong(report, "size", 0, "a multiple of the zone size");
	if (text->size % text->zone_size != 0)
		return wrong_multiple(report, text->size, text->zone_size);
	if (text->size / text->zone_size > ZF_ZONE_COUNT_MAX)
		return wrong(report, "number of zones", text->size / text->zone_size,
			     "4194304 at most");
	g.zone_count = (uint32_t)(text->size / text->zone_size);
	r = zf_geometry_check(&g, report);
	if (r == 0)
		*ret_geometry = g;
	return r;
}

static int parse(const char *text, const struct zf_report *report, struct text_geometry *ret_g)
{
	struct text_geometry g = {.zone_size = 64 << 20, .append_limit = 1 << 20};
	_zf_free_ char *copy = strdup(text);
	char *word, *rest = copy;
	int r;

	if (!copy)
		return -ENOMEM;
	while ((word = strsep(&rest, ","))) {
		r = parse_option(word, report, &g);
		if (r < 0)
			return r;
	}
	*ret_g = g;
	return 0;
}

int zf_image_parse_geometry(const char *text, const struct zf_report *report,
			    struct zf_geometry *ret_geometry)
{
	struct text_geometry g;
	int r = parse(text, report, &g);

	return r < 0 ? r : convert(&g, report, ret_geometry);
}

int zf_image_parse_zones(const char *text, uint32_t zone_count, const struct zf_report *report,
			 struct zf_geometry *ret_geometry)
{
	struct text_geometry g;
	int r = parse(text, report, &g);

	if (r < 0)
		return r;
	if (g.size != 0) {
		r = convert(&g, report, ret_geometry);
		return r < 0 ? r : 1;
	}
	g.size = zone_count * g.zone_size;
	return convert(&g, report, ret_geometry);
}
