# SPDX-License-Identifier: MIT
"""The operations, in suites. A suite runs on a freshly made peer; each of its operations is measured in turn.

After each operation everything is made durable, off the clock; so the device's counters and the processors' time hold
what the operation left to be written later.
"""
import dataclasses
import json
import time

from bench import measure, tree
from bench.peers import PeerError, run

RATE, MIB, SECONDS = "op/s", "MiB/s", "s"
JOB_TIMEOUT_S = 900


@dataclasses.dataclass(frozen=True)
class Operation:
    name: str
    suite: str
    unit: str
    arguments: tuple = ()
    is_cold: bool = False  # all caches of the machine are dropped before

    @property
    def per(self):
        """What its costs are counted per."""
        return {RATE: "op", MIB: "MiB", SECONDS: "run"}[self.unit]


def random_job(verb, cache, depth):
    return Operation(f"{verb} 4 KiB {cache}" + (f", depth {depth}" if depth > 1 else ""), "data", RATE,
                     (f"--rw=rand{verb}", "--bs=4k", f"--direct={int(cache == 'direct')}", f"--iodepth={depth}",
                      f"--ioengine={'io_uring' if depth > 1 else 'psync'}"))


DATA = [
    # With its fsync: what counts is when the data is safe.
    Operation("write 1 MiB", "data", MIB, ("--rw=write", "--bs=1M", "--end_fsync=1")),
    # The kernel's pages of the file are dropped before; what a daemon or the layer below keeps is not.
    Operation("read 1 MiB", "data", MIB, ("--rw=read", "--bs=1M")),
    Operation("read 1 MiB, cold", "data", MIB, ("--rw=read", "--bs=1M"), is_cold=True),
    *(random_job(verb, cache, depth) for verb in ("write", "read") for cache in ("direct", "buffered")
      for depth in (1, 16)),
]
FILES = [
    Operation("create file", "files", RATE, ("create", 0)),
    Operation("stat file, cold", "files", RATE, ("stat", 0), is_cold=True),
    Operation("unlink file", "files", RATE, ("unlink", 0)),
    Operation("create 4 KiB file", "files", RATE, ("create", 4096)),
    Operation("read 4 KiB file, cold", "files", RATE, ("read", 4096), is_cold=True),
    Operation("unlink 4 KiB file", "files", RATE, ("unlink", 4096)),
]
TREE = [
    Operation("untar", "tree", SECONDS),
    Operation("untar and sync", "tree", SECONDS),
    # The index has another place's inode numbers and times, so every file is read.
    Operation("git status, first", "tree", SECONDS),
    Operation("git status, cold", "tree", SECONDS, is_cold=True),
    Operation("git status, warm", "tree", SECONDS),
    Operation("rm -r", "tree", SECONDS),
]
MIXES = [
    Operation("fileserver mix", "mix", RATE, ("fileserver",)),
    Operation("mail mix", "mix", RATE, ("mail",)),
]
SUITES = {"data": DATA, "files": FILES, "tree": TREE, "mix": MIXES}
OPERATIONS = {o.name: o for suite in SUITES.values() for o in suite}


@dataclasses.dataclass
class Sizes:
    """How much of everything."""
    data_mib: int = 512    # of the file; sequential jobs write and read all of it
    random_mib: int = 256  # a random job touches so much of it, each block once at most ...
    random_s: float = 1.5  # ... or what it can in this time
    files: int = 20000     # empty ones; of those with contents there are a quarter as many
    mix_s: float = 3.0
    mix_files: int = 1000
    mix_threads: int = 4


QUICK = Sizes(data_mib=32, random_mib=8, random_s=0.3, files=500, mix_s=0.3, mix_files=50)


class Jobs:
    """Does suites to peers. `sink(operation, count, seconds, costs)` takes each sample."""

    def __init__(self, build, sizes, tar, sink):
        self.build = build
        self.sizes = sizes
        self.tar = tar
        self.sink = sink

    def run_suite(self, name, peer):
        {"data": self.data, "files": self.files, "tree": self.tree, "mix": self.mix}[name](peer)

    def measured(self, peer, operation, fn):
        """fn() does it and returns (count, seconds); or nothing, then it counts once and is timed here."""
        if operation.is_cold:
            measure.drop_caches(3)
        meter = measure.Meter(peer)
        began = time.monotonic()
        count, seconds = fn() or (1, None)
        done = time.monotonic()
        peer.sync()
        synced = time.monotonic()
        if seconds is None:
            seconds = done - began
        self.sink(operation, count, seconds, meter.stop())
        return seconds + synced - done

    def data(self, peer):
        for operation in DATA:
            if peer.sequential_only and operation.unit != MIB:
                continue
            self.measured(peer, operation, lambda o=operation: self.fio(peer, o))

    def fio(self, peer, operation):
        random = []
        if operation.unit == RATE:
            random = [f"--io_size={self.sizes.random_mib}M", f"--runtime={int(self.sizes.random_s * 1000)}ms"]
        out = run("fio", "--name=bench", f"--directory={peer.mnt}", "--filename=data", f"--size={self.sizes.data_mib}M",
                  "--thread", "--invalidate=1", "--fallocate=none", "--randseed=1", "--output-format=json",
                  *operation.arguments, *random, timeout=JOB_TIMEOUT_S)
        job = json.loads(out[out.index("{"):])["jobs"][0]
        side = job["write"] if job["write"]["total_ios"] else job["read"]
        if job["error"] or not side["total_ios"]:
            raise PeerError(f"fio did nothing, error {job['error']}")
        count = side["io_bytes"] / (1 << 20) if operation.unit == MIB else side["total_ios"]
        # The runtime is in whole milliseconds; the rate is not.
        rate = side["bw_bytes"] / (1 << 20) if operation.unit == MIB else side["iops"]
        return count, count / rate

    def files(self, peer):
        directory = peer.mnt / "files"
        directory.mkdir()
        for operation in FILES:
            verb, size = operation.arguments
            arguments = ("files", verb, directory, self.sizes.files // (4 if size else 1), size)
            self.measured(peer, operation, lambda a=arguments: self.program(*a))

    def mix(self, peer):
        for operation in MIXES:
            directory = peer.mnt / operation.arguments[0]
            directory.mkdir()
            arguments = (directory, self.sizes.mix_threads, self.sizes.mix_files)
            self.program("mix", operation.arguments[0], "fill", *arguments)
            peer.sync()
            self.measured(peer, operation, lambda o=operation, a=arguments:
                          self.program("mix", o.arguments[0], "run", *a, int(self.sizes.mix_s * 1000)))

    def program(self, name, *arguments):
        """One of ours; it prints how many operations took how many seconds."""
        words = run(self.build / "bench" / name, *arguments, timeout=JOB_TIMEOUT_S).split()
        return int(words[0]), float(words[1])

    def tree(self, peer):
        target = peer.mnt / "tree"
        untar, and_sync, first, cold, warm, remove = TREE
        seconds = self.measured(peer, untar, lambda: self.quietly("tar", "-xf", self.tar.path, "-C", peer.mnt))
        if peer.sync_is_durable:
            self.sink(and_sync, 1, seconds, None)
        for operation in (first, cold, warm):
            self.measured(peer, operation, lambda: self.git_status(target))
        self.measured(peer, remove, lambda: self.quietly("rm", "-r", target))

    @staticmethod
    def quietly(*command):
        run(*command, timeout=JOB_TIMEOUT_S)

    @staticmethod
    def git_status(directory):
        changes = tree.git_status(directory)
        if changes:
            raise PeerError(f"git finds the tree changed: {changes[:200]}")
