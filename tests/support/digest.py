#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A digest of a sparse file: of what is written in it, and where. Holes take no time.

    digest.py FILE [BYTES]      of the first BYTES; default: all
"""
import hashlib
import os
import sys


def digest(path, limit=None):
    whole, end = hashlib.sha256(), 0
    with open(path, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        limit = size if limit is None else min(limit, size)
        while end < limit:
            try:
                start = os.lseek(f.fileno(), end, os.SEEK_DATA)
            except OSError:
                break
            if start >= limit:
                break
            end = min(os.lseek(f.fileno(), start, os.SEEK_HOLE), limit)
            whole.update(b"%d %d:" % (start, size))
            for at in range(start, end, CHUNK):
                whole.update(os.pread(f.fileno(), min(CHUNK, end - at), at))
    return whole.hexdigest()


CHUNK = 1 << 20

if __name__ == "__main__":
    print(digest(sys.argv[1], *map(int, sys.argv[2:3])))
