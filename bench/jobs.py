# SPDX-License-Identifier: MIT
"""The operations, in suites. A suite runs on a freshly made peer; each of its operations is measured in turn.

After each operation everything is made durable. This time does not count, but the device's counters and the processors'
time include it, and so the data that the operation left to be written later.
"""
import dataclasses
import json
import time

from bench import databases, durable, measure, scrub, traced, tree, zoned
from bench.operation import MIB, RATE, SECONDS, Operation
from bench.peers import PeerError, Unsupported, run

JOB_TIMEOUT_S = 900


def random_job(verb, cache, depth):
    return Operation(f"{verb} 4 KiB {cache}" + (f", depth {depth}" if depth > 1 else ""), "data", RATE,
                     (f"--rw=rand{verb}", "--bs=4k", f"--direct={int(cache == 'direct')}", f"--iodepth={depth}",
                      f"--ioengine={'io_uring' if depth > 1 else 'psync'}"))


DATA = [
    # The fsync counts: the operation ends when the data is durable.
    Operation("write 1 MiB", "data", MIB, ("--rw=write", "--bs=1M", "--end_fsync=1"), is_raw=True,
              written=1 << 20),
    # The kernel's pages of the file are dropped first; the caches of a daemon and of the layers below are not.
    Operation("read 1 MiB", "data", MIB, ("--rw=read", "--bs=1M"), is_raw=True),
    Operation("read 1 MiB, cold", "data", MIB, ("--rw=read", "--bs=1M"), is_cold=True, is_raw=True),
    *(random_job(verb, cache, depth) for verb in ("write", "read") for cache in ("direct", "buffered")
      for depth in (1, 16)),
]
# Each block of the file was overwritten before, in random order: neighbours in the file are not adjacent on the device.
SCATTERED = Operation("read scattered, cold", "data", MIB, ("--rw=read", "--bs=1M"), is_cold=True)
FILES = [
    Operation("create file", "files", RATE, ("create", 0)),
    Operation("stat file, cold", "files", RATE, ("stat", 0), is_cold=True),
    Operation("unlink file", "files", RATE, ("unlink", 0)),
    Operation("create 4 KiB file", "files", RATE, ("create", 4096), written=4096),
    Operation("read 4 KiB file, cold", "files", RATE, ("read", 4096), is_cold=True),
    Operation("unlink 4 KiB file", "files", RATE, ("unlink", 4096)),
]
TREE = [
    Operation("untar", "tree", SECONDS),
    Operation("untar and sync", "tree", SECONDS),
    # The inode numbers and times in the index are not those of this copy of the tree, so git reads every file.
    Operation("git status, first", "tree", SECONDS),
    Operation("git status, cold", "tree", SECONDS, is_cold=True),
    Operation("git status, warm", "tree", SECONDS),
    Operation("rm -r", "tree", SECONDS),
]
MIXES = [
    Operation("fileserver mix", "mix", RATE, ("fileserver",)),
    Operation("mail mix", "mix", RATE, ("mail",)),
]
SEQUENTIAL = [o for o in DATA if o.name in ("write 1 MiB", "read 1 MiB, cold")]
SMALL_FILES = [o for o in FILES if o.name == "create 4 KiB file"]
SUITES = {"data": [*DATA, SCATTERED], "files": FILES, "tree": TREE, "mix": MIXES, "durable": durable.DURABLE,
          "databases": databases.DATABASES, "zeroes": durable.ZEROES, "scrub": scrub.SCRUB,
          "traced": traced.OPERATIONS,
          "zoned": [*zoned.DURABLE, *zoned.RANDOM, *zoned.MANY, *zoned.CREATE, *SMALL_FILES, *SEQUENTIAL,
                   *zoned.DBENCH, zoned.RAW]}
# Durable writes, and sharing the device, cost something only on a disk.
DISK_SUITES = ("durable", "databases", "zeroes", "scrub")
# On the drive of the virtual machine: some operations of all other suites, and more.
VM_SUITES = ("zoned",)
OPERATIONS = {o.name: o for suite in SUITES.values() for o in suite}


@dataclasses.dataclass
class Sizes:
    """The sizes, counts and durations of the jobs."""
    data_mib: int = 512    # of the file; sequential jobs write and read all of it
    random_mib: int = 256  # a random job touches at most this, each block at most once; the size of the scattered file
    random_s: float = 1.5  # a random job ends after this time at the latest
    files: int = 20000     # empty files; of files with contents there are a quarter as many
    mix_s: float = 3.0
    mix_files: int = 1000
    mix_threads: int = 4
    durable_s: float = 1.5
    pgbench_s: float = 10.0
    pgbench_scale: int = 10
    dbench_s: float = 4.0
    zero_mib: int = 1024
    zero_large_mib: int = 10240
    zero_pairs: int = 4
    scrub_mib: int = 2048
    scrub_s: float = 4.0
    scrub_pairs: int = 5


QUICK = Sizes(data_mib=32, random_mib=8, random_s=0.3, files=500, mix_s=0.3, mix_files=50, durable_s=0.2, pgbench_s=1.0,
              pgbench_scale=1, zero_mib=8, zero_large_mib=32, zero_pairs=1, scrub_mib=32, scrub_s=0.3,
              scrub_pairs=1)
# The durable jobs are so long that the commit at the end of each matters little.
VM = Sizes(data_mib=128, files=2000, durable_s=4.0)


class Jobs:
    """Does suites to peers. `sink(operation, count, seconds, costs, pair)` takes each sample; `note(text)` takes a
    remark on the whole run."""

    def __init__(self, build, sizes, tar, round_number, sink, note):
        self.build = build
        self.sizes = sizes
        self.tar = tar
        self.round_number = round_number
        self.sink = sink
        self.note = note

    def run_suite(self, name, peer):
        {"data": self.data, "files": self.files, "tree": self.tree, "mix": self.mix,
         "durable": lambda p: durable.run_durable(self, p), "databases": lambda p: databases.run_databases(self, p),
         "zeroes": lambda p: durable.run_zeroes(self, p), "scrub": lambda p: scrub.run_scrub(self, p),
         "traced": lambda p: traced.run_traced(self, p),
         "zoned": lambda p: zoned.run_zoned(self, p, SMALL_FILES, SEQUENTIAL)}[name](peer)

    def attempt(self, _peer, fn):
        """Calls fn(). If the peer or this machine cannot do it, notes that and goes on."""
        try:
            fn()
        except Unsupported as e:
            self.note(str(e))

    def measured(self, peer, operation, fn, pair=None):
        """fn() does the operation and returns (count, seconds), or (count, seconds, latencies), latencies being
        {"mean", "p99", "p999"} in microseconds. If fn() returns nothing, the count is 1 and this function measures the
        time. `pair`: the number of the pair, where a round has several."""
        if operation.is_cold:
            measure.drop_caches(3)
        meter = measure.Meter(peer)
        began = time.monotonic()
        count, seconds, *latencies = fn() or (1, None)
        done = time.monotonic()
        peer.sync()
        synced = time.monotonic()
        if seconds is None:
            seconds = done - began
        costs = meter.stop()
        costs["latency_us"] = latencies[0] if latencies else None
        self.sink(operation, count, seconds, costs, pair)
        return seconds + synced - done

    def data(self, peer):
        for operation in DATA:
            if peer.does(operation):
                self.measured(peer, operation, lambda o=operation: self.fio(peer, o))
        if peer.does(SCATTERED):
            self.scattered(peer)

    def scattered(self, peer):
        def job(*arguments):
            return self.fio_job(peer, MIB, "--filename=scattered", f"--size={self.sizes.random_mib}M", *arguments)[:2]

        job("--rw=write", "--bs=1M", "--end_fsync=1")
        job("--rw=randwrite", "--bs=4k", "--direct=1", "--ioengine=io_uring", "--iodepth=16", "--end_fsync=1")
        peer.sync()
        self.measured(peer, SCATTERED, lambda: job(*SCATTERED.arguments))

    def fio(self, peer, operation):
        random = []
        if operation.unit == RATE:
            random = [f"--io_size={self.sizes.random_mib}M", f"--runtime={int(self.sizes.random_s * 1000)}ms"]
        return self.fio_job(peer, operation.unit, "--filename=data", f"--size={self.sizes.data_mib}M",
                            *operation.arguments, *random)[:2]

    def fio_job(self, peer, unit, *arguments):
        """(count, seconds, latencies)"""
        # If the job's name were that of a directory in the current folder, fio would use it as the file of all jobs.
        out = run("fio", "--name=zfuse-bench-job", f"--directory={peer.mnt}", "--thread", "--invalidate=1",
                  "--fallocate=none", "--randseed=1", "--output-format=json", *arguments, timeout=JOB_TIMEOUT_S)
        job = json.loads(out[out.index("{"):])["jobs"][0]
        side = job["write"] if job["write"]["total_ios"] else job["read"]
        if job["error"] or not side["total_ios"]:
            raise PeerError(f"fio did nothing, error {job['error']}")
        count = side["io_bytes"] / (1 << 20) if unit == MIB else side["total_ios"]
        # fio gives the runtime in whole milliseconds, so its rate is more exact.
        rate = side["bw_bytes"] / (1 << 20) if unit == MIB else side["iops"]
        percentiles = side["clat_ns"].get("percentile", {})
        latencies = {"mean": side["lat_ns"]["mean"] / 1000, "p99": percentiles.get("99.000000", 0) / 1000,
                     "p999": percentiles.get("99.900000", 0) / 1000}
        return count, count / rate, latencies

    def files(self, peer):
        for operation in FILES:
            self.run_file(peer, operation)

    def run_file(self, peer, operation):
        directory = peer.mnt / "files"
        directory.mkdir(exist_ok=True)
        verb, size = operation.arguments
        count = self.sizes.files // (4 if size else 1)
        self.measured(peer, operation, lambda: self.program("files", verb, directory, count, size))

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
        """Runs a program of bench/. It prints the number of operations, their seconds, and maybe their latencies."""
        words = run(self.build / "bench" / name, *arguments, timeout=JOB_TIMEOUT_S).split()
        latencies = [dict(zip(("mean", "p99", "p999"), map(float, words[2:])))] if len(words) > 2 else []
        return int(words[0]), float(words[1]), *latencies

    def tree(self, peer):
        target = peer.mnt / "tree"
        untar, and_sync, first, cold, warm, remove = TREE
        seconds = self.measured(peer, untar, lambda: self.quietly("tar", "-xf", self.tar.path, "-C", peer.mnt))
        if peer.sync_is_durable:
            self.sink(and_sync, 1, seconds, None, None)
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
