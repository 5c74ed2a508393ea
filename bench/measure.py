# SPDX-License-Identifier: MIT
"""Counters, read before and after an operation. What cannot be counted for a peer is None, never 0."""
import dataclasses
import os
import pathlib
import subprocess

TICKS = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass
class Device:
    """What reached the device. A write with FUA counts as a flush too: that is what it costs most disks."""
    reads: int = 0
    read_bytes: int = 0
    writes: int = 0
    write_bytes: int = 0
    flushes: int = 0

    def since(self, before):
        return {f.name: getattr(self, f.name) - getattr(before, f.name) for f in dataclasses.fields(self)}


def block_device(name):
    """Of a block device, from its line in sysfs (the kernel's Documentation/block/stat.rst); sectors are 512 bytes."""
    f = [int(word) for word in pathlib.Path(f"/sys/block/{name}/stat").read_text().split()]
    return Device(reads=f[0], read_bytes=f[2] * 512, writes=f[4], write_bytes=f[6] * 512,
                  flushes=f[15] if len(f) > 15 else 0)


class EmptyFlushes:
    """A flush without data is counted by the kernel as a write of nothing, too. This counts those of one block device,
    by a tracing instance of our own; 0 where the kernel has no tracing."""
    PREFIX = "zfuse-bench-"

    def __init__(self, name, directory):
        self.mount = directory
        self.instance = directory / "instances" / f"{self.PREFIX}{os.getpid()}"
        directory.mkdir()
        if subprocess.run(["mount", "-t", "tracefs", "tracefs", directory], check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.mount = self.instance = None
            return
        self.clear_stale()
        self.instance.mkdir()
        numbers = pathlib.Path(f"/sys/block/{name}/dev").read_text().split(":")
        event = self.instance / "events/block/block_io_start"
        (event / "filter").write_text(f"nr_sector == 0 && dev == {int(numbers[0]) << 20 | int(numbers[1])}")
        (event / "enable").write_text("1")

    def clear_stale(self):
        for path in self.instance.parent.glob(self.PREFIX + "*"):
            if not pathlib.Path("/proc", path.name[len(self.PREFIX):]).exists() or path == self.instance:
                path.rmdir()

    def count(self):
        if not self.instance:
            return 0
        lines = [line for path in self.instance.glob("per_cpu/cpu*/stats") for line in path.read_text().splitlines()]
        return sum(int(line.split(":")[1]) for line in lines if line.startswith(("entries:", "overrun:")))

    def close(self):
        if self.instance and self.instance.exists():
            (self.instance / "events/block/block_io_start/enable").write_text("0")
            self.instance.rmdir()
        if self.mount:
            subprocess.run(["umount", self.mount], check=False)


def parse_process_cpu(stat):
    """Seconds of user and system time in the text of /proc/PID/stat, whose second field may hold anything."""
    fields = stat[stat.rindex(")") + 2:].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def parse_machine_busy(stat):
    """Seconds that all processors together were busy, from the text of /proc/stat."""
    user, nice, system, _idle, _iowait, irq, softirq = (int(word) for word in stat.split("\n", 1)[0].split()[1:8])
    return (user + nice + system + irq + softirq) / TICKS


def parse_peak(status):
    """The high water of resident memory, in bytes, in the text of /proc/PID/status."""
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def drop_caches(what):
    """1: pages; 2: entries and inodes; 3: both. Of the whole machine: what is dirty stays, so sync first."""
    pathlib.Path("/proc/sys/vm/drop_caches").write_text(str(what))


class Meter:
    """Counts for one peer from its making to stop()."""

    def __init__(self, peer):
        self.peer = peer
        self.proc = pathlib.Path(f"/proc/{peer.pid}") if peer.pid else None
        if self.proc:
            (self.proc / "clear_refs").write_text("5")  # the high water begins anew
        self.device = peer.device()
        self.machine_s, self.daemon_s = self._cpu()

    def _cpu(self):
        machine = parse_machine_busy(pathlib.Path("/proc/stat").read_text())
        return machine, parse_process_cpu((self.proc / "stat").read_text()) if self.proc else None

    def stop(self):
        machine_s, daemon_s = self._cpu()
        device = self.peer.device()
        return {
            "device": device.since(self.device) if device and self.device else None,
            "machine_cpu_s": round(machine_s - self.machine_s, 3),
            "daemon_cpu_s": round(daemon_s - self.daemon_s, 3) if self.proc else None,
            "daemon_peak_bytes": parse_peak((self.proc / "status").read_text()) if self.proc else None,
        }
