#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Puts the parts into the pages, and the pages into C. In C a page is an array of texts; zfusectl writes the trace between
them.

    embed.py PAGE.html COMPARE.html PART...

A page contains @NAME@ where the part NAME goes. @page@ stands for PAGE.html itself, as JSON of its texts. zfusectl replaces
all other places of the form @NAME@.
"""
import json
import pathlib
import re
import sys

page, compare, *parts = map(pathlib.Path, sys.argv[1:])
parts = {part.name: part.read_text() for part in parts}
used = set()
FILLED = "@trace@|@records@|@names@"


def texts_of(path):
    def fill(found):
        used.update({found[1]} & parts.keys())
        return parts.get(found[1], found[0])
    return re.split(FILLED, re.sub(r"@([\w.]+)@", fill, path.read_text()))


def print_array(name, texts):
    print(f"const char *const zf_replay_{name}[{len(texts)}] = {{")
    for text in texts:
        print(f"\t(const char[]){{{', '.join(str((byte ^ 128) - 128) for byte in text.encode())}, 0}},")
    print("};")


page_texts = texts_of(page)
parts["page"] = json.dumps(page_texts).replace("<", "\\u003c")
used.add("page")
compare_texts = texts_of(compare)
if parts.keys() - used:
    sys.exit(f"no page has a place for {', '.join(parts.keys() - used)}")
print('#include "replay/page.h"')
print_array("page", page_texts)
print_array("compare", compare_texts)
