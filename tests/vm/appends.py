#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files whose appends are in flight together, and checks of these appends in the drive's own trace.

    appends.py write DIRECTORY COPIES     writes files, all at the same time, and the same bytes to COPIES
    appends.py order TRACE                fails unless appends to one zone came back out of order
    appends.py extents TRACE DISK COPIES  fails unless each extent of COPIES/NAME.json (zfusectl file) lies where
                                          the drive said that appends have landed, and has the file's bytes

TRACE is QEMU's: its events pci_nvme_io_cmd, pci_nvme_write and pci_nvme_enqueue_req_completion, in the order in which
the drive took commands and answered them.
"""
import collections
import concurrent.futures
import json
import mmap
import os
import pathlib
import random
import re
import sys

BLOCK = 4096
FILES, FILE_BLOCKS = 6, 512
DURABLE_FILES, DURABLE_BLOCKS = 4, 24

TAKEN = re.compile(r"pci_nvme_io_cmd cid (\d+) .*sqid (\d+) opc (0x[0-9a-f]+)")
LENGTH = re.compile(r"pci_nvme_write cid (\d+) .* nlb (\d+) .* lba (0x[0-9a-f]+)")
ANSWERED = re.compile(r"pci_nvme_enqueue_req_completion cid (\d+) cqid (\d+) dw0 (\w+) dw1 (\w+) status (\w+)")
ZONE_APPEND = 0x7d

# `taken` counts the commands; `zone`, `at` and `blocks` are in blocks.
Append = collections.namedtuple("Append", "taken zone at blocks")


# ---- the files ----


def write_file(path, data, sizes, flags):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | flags)
    offset = 0
    for size in sizes:
        offset += os.pwrite(fd, data[offset : offset + size * BLOCK], offset)
    os.fsync(fd)
    os.close(fd)
    assert offset == len(data)


def pieces(blocks, most):
    while blocks > 0:
        size = min(blocks, random.randint(1, most))
        blocks -= size
        yield size


def write(directory, copies):
    """Writes the files: some in pieces of many sizes with one fsync, some with each piece durable before the next."""
    with concurrent.futures.ThreadPoolExecutor(FILES + DURABLE_FILES) as pool:
        running = []
        for i in range(FILES + DURABLE_FILES):
            blocks, most, flags = (FILE_BLOCKS, 64, 0) if i < FILES else (DURABLE_BLOCKS, 4, os.O_DSYNC)
            data = os.urandom(blocks * BLOCK)
            (copies / f"file{i}").write_bytes(data)
            running.append(pool.submit(write_file, directory / f"file{i}", data, list(pieces(blocks, most)), flags))
        for r in running:
            r.result()


# ---- the drive's trace ----


def appends_of(trace):
    """The appends in the order of their completions. The drive's trace uses the number of a command again only after
    its completion."""
    queue_of, underway, answered = {}, {}, []
    for n, line in enumerate(trace.read_text().splitlines()):
        if m := TAKEN.search(line):
            if int(m[3], 16) == ZONE_APPEND:
                queue_of[m[1]] = m[2]
        elif m := LENGTH.search(line):
            if m[1] in queue_of:
                underway[queue_of.pop(m[1]), m[1]] = n, int(m[3], 16), int(m[2])
        elif m := ANSWERED.search(line):
            command = underway.pop((m[2], m[1]), None)
            if command and int(m[5], 16) == 0:
                taken, zone, blocks = command
                answered.append(Append(taken, zone, int(m[4], 16) << 32 | int(m[3], 16), blocks))
    return answered


def order(trace):
    appends = appends_of(trace)
    overtaken = lower = 0
    newest = {}
    before = {}
    for a in appends:
        overtaken += a.taken < newest.get(a.zone, 0)
        lower += a.at < before.get(a.zone, 0)
        newest[a.zone] = max(a.taken, newest.get(a.zone, 0))
        before[a.zone] = a.at
    print(f"{len(appends)} appends to {len(newest)} zones: {overtaken} were answered after one taken later,")
    print(f"{lower} with a lower address than the answer before")
    if not overtaken or not lower:
        sys.exit("all came back in order")


# ---- the extents ----


def bytes_on(disk, at, length):
    buffer = mmap.mmap(-1, length)
    assert os.preadv(disk, [buffer], at) == length
    return buffer[:]


def extents(trace, disk_path, copies):
    landed = {a.at + i for a in appends_of(trace) for i in range(a.blocks)}
    disk = os.open(disk_path, os.O_RDONLY | os.O_DIRECT)
    count = 0
    for listing in sorted(copies.glob("*.json")):
        name = listing.stem
        data = (copies / name).read_bytes()
        end = 0
        for extent in json.loads(listing.read_text())["extents"]:
            if extent["type"] != "data" or extent["offset"] != end:
                sys.exit(f"{name}: not what was written: {extent}")
            at, end = extent["address"], end + extent["length"]
            count += 1
            for block in range(at // BLOCK, (at + extent["length"]) // BLOCK):
                if block not in landed:
                    sys.exit(f"{name}: no append has landed at block {block:#x}, which {extent} has")
            if bytes_on(disk, at, extent["length"]) != data[extent["offset"] : end]:
                sys.exit(f"{name}: other bytes are at {extent}")
        if end != len(data):
            sys.exit(f"{name}: its extents end at {end}")
    print(f"{count} extents of {FILES + DURABLE_FILES} files")
    if count <= FILES + DURABLE_FILES:
        sys.exit("each file has one: too few to show anything")


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    paths = [pathlib.Path(a) for a in arguments]
    {"write": write, "order": order, "extents": extents}[command](*paths)
