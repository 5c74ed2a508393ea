/* SPDX-License-Identifier: MIT */
#include "known.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADING	  "What a checker cannot know"
#define KNOWN_MAX 192u

static struct {
	char structure[64], field[64];
	bool needed;
} known[KNOWN_MAX];
static unsigned int known_count;

static void fail(const char *path, const char *what)
{
	fprintf(stderr, "%s: %s\n", path, what);
	exit(2);
}

/* Removes blanks and backquotes around the text. */
static char *strip(char *text)
{
	size_t len;

	text += strspn(text, " `");
	for (len = strlen(text); len > 0 && strchr(" `", text[len - 1]); len--)
		text[len - 1] = '\0';
	return text;
}

static void take_row(const char *path, char *line)
{
	char *save, *rest, *structure = strtok_r(line, "|", &save);
	char *fields = strtok_r(NULL, "|", &save), *why = strtok_r(NULL, "|", &save);

	if (!structure || !fields || !why || strip(why)[0] == '\0')
		fail(path, "a row under \"" HEADING "\" must be | structure | fields | why |");
	structure = strip(structure);
	for (char *field = strtok_r(fields, ",", &rest); field;
	     field = strtok_r(NULL, ",", &rest)) {
		if (known_count == KNOWN_MAX)
			fail(path,
			     "the table \"" HEADING "\" has too many fields: raise KNOWN_MAX");
		snprintf(known[known_count].structure, sizeof(known[0].structure), "%s", structure);
		snprintf(known[known_count].field, sizeof(known[0].field), "%s", strip(field));
		known_count++;
	}
}

void known_read(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[4096];
	bool inside = false;

	if (!file)
		fail(path, "cannot be opened");
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '#')
			inside = strstr(line, HEADING) != NULL;
		else if (inside && line[0] == '|' && strchr(line, '`'))
			take_row(path, line);
	}
	fclose(file);
	if (known_count == 0)
		fail(path, "has no table under \"" HEADING "\"");
}

bool known_has(const char *structure, const char *field)
{
	for (unsigned int i = 0; i < known_count; i++) {
		if (strcmp(known[i].structure, structure) != 0 ||
		    strcmp(known[i].field, field) != 0)
			continue;
		known[i].needed = true;
		return true;
	}
	return false;
}

unsigned int known_tell_unneeded(void)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < known_count; i++) {
		if (known[i].needed)
			continue;
		printf("%s, %s: every lie was found; remove the field from the table \"" HEADING
		       "\"\n",
		       known[i].structure, known[i].field);
		count++;
	}
	return count;
}
