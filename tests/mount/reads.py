#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads files of a mount at random with many threads, and compares.

  reads.py make FILE COPY MIB          a file, and its copy elsewhere
  reads.py compare FILE COPY COUNT     COUNT direct and buffered reads by each of 16 threads
  reads.py race FILE SECONDS           8 readers of a file that 2 writers write whole blocks of: each block is of one write
  reads.py leave MOUNTPOINT FILE...    has the files read ahead, and unmounts
  reads.py until-gone FILE             16 readers, until the mount fails; prints "reading" when they do
"""
import ctypes
import mmap
import os
import random
import sys
import threading
import time

BLOCK = 4096
READERS = 16


def in_threads(count, run):
    errors = []

    def guarded(number):
        try:
            run(number)
        except Exception as e:  # a thread's end is told by the main one
            errors.append(e)
    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        sys.exit(f"{len(errors)} threads failed, the first with {errors[0]!r}")


def read_at(fd, buf, offset, length):
    got = os.preadv(fd, [memoryview(buf)[:length]], offset)
    return bytes(buf[:got])


def make(path, copy, mib):
    content = os.urandom(int(mib) << 20)
    for name in (path, copy):
        with open(name, "wb") as f:
            f.write(content)
            os.fsync(f.fileno())


def compare(path, copy, count):
    with open(copy, "rb") as f:
        content = f.read()

    def run(number):
        rng = random.Random(number)
        direct = number % 2 == 0
        fd = os.open(path, os.O_RDONLY | (os.O_DIRECT if direct else 0))
        if not direct:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        buf = mmap.mmap(-1, 4 * BLOCK)
        for _ in range(int(count)):
            offset = rng.randrange(len(content) // BLOCK) * BLOCK
            length = rng.randint(1, 4) * BLOCK if rng.random() < 0.2 else BLOCK
            if not direct:
                offset += rng.randrange(BLOCK)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            got = read_at(fd, buf, offset, length)
            assert got == content[offset:offset + length], f"offset {offset}, length {length}: other bytes"
        os.close(fd)
    in_threads(READERS, run)


def race(path, seconds):
    end = time.monotonic() + float(seconds)
    blocks = os.stat(path).st_size // BLOCK
    counts = [0, 0]

    def write(number):
        rng = random.Random(number)
        fd = os.open(path, os.O_WRONLY | os.O_DIRECT)
        buf = mmap.mmap(-1, BLOCK)
        while time.monotonic() < end:
            buf[:] = bytes([rng.randrange(256)]) * BLOCK
            os.pwritev(fd, [buf], rng.randrange(blocks) * BLOCK)
            if rng.random() < 0.02:
                os.fsync(fd)
            counts[0] += 1
        os.close(fd)

    def read(number):
        rng = random.Random(number)
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
        buf = mmap.mmap(-1, BLOCK)
        while time.monotonic() < end:
            got = read_at(fd, buf, rng.randrange(blocks) * BLOCK, BLOCK)
            assert got == got[:1] * BLOCK, "a block of two writes"
            counts[1] += 1
        os.close(fd)

    with open(path, "r+b") as f:
        f.write(b"\0" * blocks * BLOCK)
        os.fsync(f.fileno())
    in_threads(10, lambda number: (write if number < 2 else read)(number))
    assert min(counts) > 0, counts


def until_gone(path):
    begun = threading.Barrier(READERS + 1)

    def read(number):
        rng = random.Random(number)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
            blocks = os.fstat(fd).st_size // BLOCK
            buf = mmap.mmap(-1, BLOCK)
            read_at(fd, buf, 0, BLOCK)
        except OSError:
            begun.abort()
            raise
        begun.wait()
        try:
            while True:
                read_at(fd, buf, rng.randrange(blocks) * BLOCK, BLOCK)
        except OSError:
            pass
    threads = [threading.Thread(target=read, args=(number,)) for number in range(READERS)]
    for thread in threads:
        thread.start()
    begun.wait()
    print("reading", flush=True)
    for thread in threads:
        thread.join()


def leave(mountpoint, *paths):
    fds = [os.open(path, os.O_RDONLY) for path in paths]
    for fd in fds:
        os.posix_fadvise(fd, 0, 2 * BLOCK, os.POSIX_FADV_WILLNEED)
    for fd in fds:
        os.close(fd)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(mountpoint.encode(), 0) != 0:
        sys.exit(f"umount2: {os.strerror(ctypes.get_errno())}")


def main():
    actions = {"make": make, "compare": compare, "race": race, "leave": leave, "until-gone": until_gone}
    actions[sys.argv[1]](*sys.argv[2:])


main()
