# SPDX-License-Identifier: MIT
"""The file systems that are compared on a zoned drive of a virtual machine (scripts/vm).

All use the same drive, one after the other; each resets it first. XFS and f2fs keep their metadata on a second drive,
without zones; the commands to that drive are counted too. f2fs fills its first drive before it goes on to the second,
so its first drive is only large enough for the metadata.

The drives count writes, in their SMART logs. The block layer counts bytes, and is told to count passthrough commands
too. Flushes and FUA writes of the kernel's file systems are counted by the block layer; those of zfuse are counted by
zfuse itself, because the block layer does not see the flags of its native appends.
"""
import os
import pathlib
import re
import subprocess

from bench import measure
from bench.peers import STOP_WAIT_S, Peer, PeerError, Zfuse, lacks_command, lacks_filesystem, run

XFS_ZONED = (6, 15)  # the first version of mkfs.xfs that supports zones


class OnDrive(Peer):
    """A mixin: `beside` is the variable that names the drive without zones."""
    beside = None

    @classmethod
    def does(cls, operation):
        return not operation.name.startswith("raw")

    @property
    def zoned(self):
        return os.environ["ZF_ZNS"]

    @property
    def plain(self):
        return os.environ[self.beside]

    def drives(self):
        return [self.zoned] + ([self.plain] if self.beside else [])

    def reset(self):
        run("blkzone", "reset", self.zoned)
        for path in self.drives():
            (queue_of(path) / "iostats_passthrough").write_text("1")

    def device(self):
        found = count(self.drives())
        found.flushes = self.flushes()
        return found


def queue_of(path):
    return pathlib.Path("/sys/block", os.path.basename(path), "queue")


def count(paths):
    """The commands and bytes that reached these drives, without flushes."""
    found = measure.Device()
    for path in paths:
        counted = measure.block_device(os.path.basename(path))
        found.reads += counted.reads
        found.read_bytes += counted.read_bytes
        found.write_bytes += counted.write_bytes
        found.writes += measure.nvme_writes(path)
    return found


class RawDrive:
    """A drive that is not mounted. It has the part of a peer's interface that bench.measure and bench.jobs use."""
    pid = None

    def __init__(self, path):
        self.path = path

    def device(self):
        return count([self.path])

    def sync(self):
        pass


class ZfuseNative(OnDrive, Zfuse):
    append = "native"
    more_options = ("append=native",)

    @classmethod
    def does(cls, operation):
        return True

    @classmethod
    def lacks(cls, settings):
        if not (queue_of(os.environ["ZF_ZNS"]) / "iostats_passthrough").exists():
            return "this kernel does not count what goes past its block layer"
        return super().lacks(settings)

    def make(self):
        self.reset()
        self.mkfs(self.zoned)
        return self.zoned

    def flushes(self):
        return Zfuse.device(self).flushes

    def raw_drive(self):
        """Unmounts the file system and resets the drive; returns the empty drive."""
        failure = self.unmount()
        if failure:
            raise PeerError(failure)
        try:
            self.process.wait(timeout=STOP_WAIT_S)
        except subprocess.TimeoutExpired as e:
            raise PeerError(str(e)) from e
        self.reset()
        return RawDrive(self.zoned)


class ZfuseEmulated(ZfuseNative):
    name = "zfuse-emulated"
    append = "emulated"
    more_options = ("append=emulated",)


class ZfuseLocked(ZfuseNative):
    """zfuse with one write at a time in each zone, for comparison where many writers share a zone."""
    name = "zfuse-locked"
    append = "locked"
    more_options = ("append=locked",)

    @classmethod
    def does(cls, operation):
        return operation.name.endswith(("16 jobs", "16 writers"))


class OfKernel(OnDrive):
    is_kernel = True
    fua_writes = None

    def start(self):
        self.reset()
        source, options = self.make()
        names = [os.path.basename(path) for path in self.drives()]
        self.fua_writes = measure.TracedRequests(names, measure.FUA_WRITE, self.place / "tracing")
        run("mount", "-t", self.name, "-o", ",".join(["noatime", *options]), source, self.mnt)

    def flushes(self):
        counted = [measure.block_device(os.path.basename(path)).flushes for path in self.drives()]
        return sum(counted) + self.fua_writes.count()

    def stop(self):
        if self.fua_writes:
            self.fua_writes.close()
        super().stop()


class Btrfs(OfKernel):
    name = "btrfs"

    @classmethod
    def lacks(cls, settings):
        return lacks_filesystem("btrfs") or lacks_command("mkfs.btrfs")

    def make(self):
        run("mkfs.btrfs", "-q", "-f", "-m", "single", self.zoned)
        return self.zoned, ()


def parse_version(text):
    """(6, 15) of "mkfs.xfs version 6.15.0"."""
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


class Xfs(OfKernel):
    name = "xfs"
    beside = "ZF_PLAIN"

    @classmethod
    def program(cls, settings):
        """The system's mkfs.xfs, or that of scripts/fetch-xfsprogs; None if neither supports zones."""
        for path in ("mkfs.xfs", settings.root / "build/vm/xfsprogs/mkfs.xfs"):
            if not lacks_command(str(path)) and parse_version(run(path, "-V")) >= XFS_ZONED:
                return path
        return None

    @classmethod
    def lacks(cls, settings):
        if not cls.program(settings):
            return f"mkfs.xfs of version {XFS_ZONED[0]}.{XFS_ZONED[1]} is missing: scripts/fetch-xfsprogs"
        return lacks_filesystem("xfs")

    def make(self):
        run(self.program(self.settings), "-q", "-f", "-r", f"zoned=1,rtdev={self.zoned}", self.plain)
        return self.plain, (f"rtdev={self.zoned}",)


class F2fs(OfKernel):
    name = "f2fs"
    beside = "ZF_PLAIN_2"

    @classmethod
    def lacks(cls, settings):
        return lacks_filesystem("f2fs") or lacks_command("mkfs.f2fs")

    def make(self):
        run("mkfs.f2fs", "-q", "-f", "-m", "-c", self.zoned, self.plain)
        return self.plain, ()


ON_DRIVE = {peer.name: peer for peer in (ZfuseNative, ZfuseEmulated, ZfuseLocked, Btrfs, Xfs, F2fs)}
