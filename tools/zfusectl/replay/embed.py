#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Puts the parts of the page into it, and the page into C: one array before the trace's place, one after each.

    embed.py PAGE.html PART...

A part stands in the page as @its name@. What is left of the form @name@ is for zfusectl to fill.
"""
import pathlib
import re
import sys

page, *parts = map(pathlib.Path, sys.argv[1:])
parts = {part.name: part.read_text() for part in parts}
html = re.sub(r"@([\w.]+)@", lambda found: parts.pop(found[1], found[0]), page.read_text())
if parts:
    sys.exit(f"{page} has no place for {', '.join(parts)}")

print('#include "replay/page.h"')
pieces = re.split(r"@trace@|@records@", html)
if len(pieces) != 3:
    sys.exit(f"{page} has no @trace@ and @records@")
for name, piece in zip(("head", "middle", "tail"), pieces):
    print(f"const char zf_replay_{name}[] = {{{', '.join(str((byte ^ 128) - 128) for byte in piece.encode())}, 0}};")
