# SPDX-License-Identifier: MIT
"""The rounds. In each round every suite is done to every peer in turn; the peer is freshly made each time. Each round
begins with another peer, so that no peer always gets the machine in the same state. However the program ends, it leaves
nothing behind: mounts are in a mount namespace of its own, the kernel tells daemons when the program dies, loop devices
end with their mounts, and the next run removes the files of a run that was killed.
"""
import datetime
import fcntl
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile

from bench import peers
from bench.drives import ON_DRIVE
from bench.jobs import DISK_SUITES, SUITES, VM_SUITES, Jobs
from bench.peers import PEERS, SPARSE, SPARSE_LARGE, WRITTEN, WRITTEN_SMALL, PeerError, Passthrough

PREFIX = "zfuse-bench-"
URING = pathlib.Path("/sys/module/fuse/parameters/enable_uring")


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def in_own_namespace():
    """Starts this program again in a mount namespace of its own: the mounts end with the last process in it."""
    if os.environ.get("ZFUSE_BENCH_NAMESPACE") == "1":
        return
    os.environ["ZFUSE_BENCH_NAMESPACE"] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])


def end_cleanly():
    """Makes a signal raise SystemExit, so that everything is taken down."""
    def stop(number, _frame):
        for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(s, signal.SIG_IGN)
        sys.exit(128 + number)
    for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, stop)


def use_uring():
    """Turns FUSE over io_uring on, which many kernels have off by default. Returns the value to restore, or None."""
    if not URING.exists():
        subprocess.run(["modprobe", "-q", "fuse"], check=False)
    if not URING.exists():
        raise PeerError("this kernel has no FUSE over io_uring")
    before = URING.read_text().strip()
    if before == "Y":
        return None
    URING.write_text("Y")
    return before


def machine():
    model = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
             if line.startswith("model name")]
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "kernel": platform.release(),
        "processors": os.cpu_count(),
        "model": model[0] if model else platform.machine(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def rotated(items, by):
    by %= max(len(items), 1)
    return items[by:] + items[:by]


class Place:
    """A new directory in `base`, which stays locked while this program runs."""

    def __init__(self, base):
        self.base = pathlib.Path(base)
        self.clear_stale()
        self.path = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
        self.fd = self.lock(self.path)

    @staticmethod
    def lock(path):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return fd

    def clear_stale(self):
        for path in self.base.glob(PREFIX + "*"):
            fd = self.lock(path)
            if fd is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(fd)

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.fd)


def peers_of(medium):
    return ON_DRIVE if medium == "vm" else PEERS


def suites_of(medium):
    if medium == "vm":
        return list(VM_SUITES)
    return [s for s in SUITES if s not in VM_SUITES and (medium == "disk" or s not in DISK_SUITES)]


def takes_part(peer, suite, round_number):
    if peer.rounds_max is not None and round_number >= peer.rounds_max:
        return False
    return any(peer.does(operation) for operation in SUITES[suite])


class Run:
    """All rounds on one medium: tmpfs, disk, or vm (the drives of the virtual machine in which this program runs).
    `settings`: see scripts/bench; `tar`: the Tree, or None if no suite needs it."""

    def __init__(self, settings, medium, directory, sizes, tar):
        self.settings = settings
        self.suites = settings.suites or suites_of(medium)
        self.peers = peers_of(medium)
        self.directory = directory
        self.sizes = sizes
        self.tar = tar
        self.result = {"medium": medium, "filesystem": filesystem_type(directory), "transport": settings.transport,
                       "options": settings.options, "rounds": settings.rounds, "quick": settings.quick,
                       "polling": settings.polling,
                       # The load before the run, caused by other programs: it tells how far the numbers can be trusted.
                       "machine": {**machine(), "load": settings.load}, "left_out": {}, "notes": list(settings.notes),
                       "failures": [], "samples": []}

    def note(self, text):
        if text not in self.result["notes"]:
            self.result["notes"].append(text)
            say(text)

    def choose_peers(self):
        chosen = []
        for name in self.settings.peers:
            reason = self.peers[name].lacks(self.settings)
            if reason:
                self.result["left_out"][name] = reason
                say(f"{name} is left out: {reason}")
            else:
                chosen.append(name)
        if Passthrough.name in chosen and "files" in self.suites \
                and self.sizes.files > Passthrough.files_max():
            self.sizes.files = Passthrough.files_max()
            self.note(f"{self.sizes.files:,} files instead of {type(self.sizes)().files:,}: passthrough_hp keeps a "
                      "descriptor open for each, and more are not allowed here")
        for name in chosen:
            if self.peers[name].rounds_max and self.settings.rounds > self.peers[name].rounds_max:
                self.note(f"{name} took part in the first {self.peers[name].rounds_max} rounds only: it is slow")
        self.result["peers"] = chosen
        self.result["files"] = self.sizes.files
        return chosen

    def run(self):
        chosen = self.choose_peers()
        if self.tar:
            self.note(f"the tree has {self.tar.entries:,} entries, {self.tar.size / (1 << 20):.0f} MiB as a tar")
        with Place(self.directory) as place:
            for number in range(self.settings.rounds):
                for suite in self.suites:
                    for name in rotated(chosen, number):
                        if not takes_part(self.peers[name], suite, number):
                            continue
                        say(f"{self.result['medium']}, round {number + 1} of {self.settings.rounds}: {suite}, {name}")
                        self.run_suite(number, suite, name, place)
        return self.result

    def run_suite(self, number, suite, name, place):
        def sink(operation, count, seconds, costs, pair):
            numbers = {"round": number} if pair is None else {"round": number, "pair": pair}
            self.result["samples"].append({"peer": name, "operation": operation.name, **numbers, "count": count,
                                           "seconds": seconds, "costs": costs})

        try:
            with self.peers[name](place / name, self.settings, self.kind_of_image(suite)) as peer:
                Jobs(self.settings.build, self.sizes, self.tar, number, sink, self.note).run_suite(suite, peer)
        except PeerError as e:
            done = [s["operation"] for s in self.result["samples"] if s["peer"] == name and s["round"] == number]
            missing = [o.name for o in SUITES[suite] if o.name not in done and self.peers[name].does(o)]
            self.result["failures"].append({"peer": name, "round": number, "suite": suite, "error": str(e)})
            say(f"{name} failed at {missing[0] if missing else 'its end'}: {e}")


    def kind_of_image(self, suite):
        if suite not in ("durable", "databases"):
            return SPARSE_LARGE if suite in ("zeroes", "scrub") else SPARSE
        return WRITTEN_SMALL if self.settings.quick else WRITTEN


def filesystem_type(directory):
    name = peers.run("stat", "-f", "-c", "%T", directory).strip()
    # ext2, ext3 and ext4 have the same magic number.
    return "ext4" if name == "ext2/ext3" else name
