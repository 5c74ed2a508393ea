/* SPDX-License-Identifier: MIT */
#include "exposition.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

#define SECOND_NS UINT64_C(1000000000)

void zf_expo_family(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_character(FILE *out, const char *p, size_t len)
{
	if (len == 0)
		fputs("\xef\xbf\xbd", out);
	else if (*p == '\n')
		fputs("\\n", out);
	else if (*p == '"' || *p == '\\')
		fprintf(out, "\\%c", *p);
	else
		fwrite(p, 1, len, out);
}

static void print_label(FILE *out, const struct zf_expo_label *label)
{
	size_t left = strlen(label->value);

	fprintf(out, "%s=\"", label->name);
	for (const char *p = label->value; left > 0;) {
		size_t len = zf_utf8_length((const uint8_t *)p, left);

		print_character(out, p, len);
		p += len ? len : 1;
		left -= len ? len : 1;
	}
	fputc('"', out);
}

void zf_expo_name(FILE *out, const char *name, const char *suffix,
		  const struct zf_expo_label *labels, size_t label_count)
{
	const char *separator = "{";

	fprintf(out, "%s%s", name, suffix);
	for (size_t i = 0; i < label_count; i++) {
		if (!labels[i].value || !*labels[i].value)
			continue;
		fputs(separator, out);
		print_label(out, &labels[i]);
		separator = ",";
	}
	fputs(*separator == ',' ? "} " : " ", out);
}

void zf_expo_number(FILE *out, uint64_t value)
{
	fprintf(out, "%" PRIu64 "\n", value);
}

const char *zf_expo_print_seconds(uint64_t ns, char buf[ZF_EXPO_SECONDS_MAX])
{
	int len = snprintf(buf, ZF_EXPO_SECONDS_MAX, "%" PRIu64 ".%09" PRIu64, ns / SECOND_NS,
			   ns % SECOND_NS);

	while (buf[len - 1] == '0')
		len--;
	buf[buf[len - 1] == '.' ? len - 1 : len] = '\0';
	return buf;
}

void zf_expo_seconds(FILE *out, uint64_t ns)
{
	char buf[ZF_EXPO_SECONDS_MAX];

	fprintf(out, "%s\n", zf_expo_print_seconds(ns, buf));
}
