# SPDX-License-Identifier: MIT
"""Counters, read before and after an operation. A counter that a peer does not have is None, never 0."""
import ctypes
import dataclasses
import fcntl
import os
import pathlib
import struct
import subprocess

NVME_ADMIN_COMMAND = 0xC0484E41  # the ioctl of <linux/nvme_ioctl.h>
TICKS = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass
class Device:
    """The commands and bytes that reached the device. A FUA write also counts as a flush, because it costs one on most
    disks."""
    reads: int = 0
    read_bytes: int = 0
    writes: int = 0
    write_bytes: int = 0
    flushes: int = 0

    def since(self, before):
        return {f.name: getattr(self, f.name) - getattr(before, f.name) for f in dataclasses.fields(self)}


def block_device(name):
    """The counters of a block device, from its line in sysfs (the kernel's Documentation/block/stat.rst); sectors are
    512 bytes."""
    f = [int(word) for word in pathlib.Path(f"/sys/block/{name}/stat").read_text().split()]
    return Device(reads=f[0], read_bytes=f[2] * 512, writes=f[4], write_bytes=f[6] * 512,
                  flushes=f[15] if len(f) > 15 else 0)


def parse_smart_writes(log):
    """The number of host write commands in an NVMe drive's SMART log."""
    return int.from_bytes(log[80:96], "little")


def nvme_writes(path):
    """The number of write commands that an NVMe drive has counted, with zone appends and passthrough commands."""
    log = ctypes.create_string_buffer(512)
    get_log_page, smart, dwords = 0x02, 0x02, len(log) // 4
    command = bytearray(struct.pack("<BBHI8xQQII6III", get_log_page, 0, 0, 0xFFFFFFFF, 0, ctypes.addressof(log), 0,
                                    len(log), (dwords - 1) << 16 | smart, 0, 0, 0, 0, 0, 0, 0))
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if fcntl.ioctl(fd, NVME_ADMIN_COMMAND, command) != 0:
            raise OSError(f"{path} gives no SMART log")
    finally:
        os.close(fd)
    return parse_smart_writes(log.raw)


# The kernel counts a flush without data also as a write of no sectors.
EMPTY_FLUSH = "nr_sector == 0"
# In rwbs an F behind the operation (W: write, A: zone append) means FUA. An F before it means a flush that comes first.
FUA_WRITE = 'rwbs ~ "*[WA]F*"'


class TracedRequests:
    """Counts the requests to block devices that fulfil a condition, in a tracing instance of its own; 0 if the kernel
    has no tracing."""
    PREFIX = "zfuse-bench-"

    def __init__(self, names, condition, directory):
        self.mount = directory
        self.instance = directory / "instances" / f"{self.PREFIX}{os.getpid()}"
        directory.mkdir()
        if subprocess.run(["mount", "-t", "tracefs", "tracefs", directory], check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.mount = self.instance = None
            return
        self.clear_stale()
        self.instance.mkdir()
        devices = " || ".join(f"dev == {self.number(name)}" for name in names)
        event = self.instance / "events/block/block_io_start"
        (event / "filter").write_text(f"{condition} && ({devices})")
        (event / "enable").write_text("1")

    @staticmethod
    def number(name):
        major, minor = pathlib.Path(f"/sys/block/{name}/dev").read_text().split(":")
        return int(major) << 20 | int(minor)

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
    """Seconds of user and system time in the text of /proc/PID/stat. Its second field may contain any characters."""
    fields = stat[stat.rindex(")") + 2:].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def parse_machine_busy(stat):
    """Seconds that all processors together were busy, from the text of /proc/stat."""
    user, nice, system, _idle, _iowait, irq, softirq = (int(word) for word in stat.split("\n", 1)[0].split()[1:8])
    return (user + nice + system + irq + softirq) / TICKS


def parse_peak(status):
    """The peak of resident memory, in bytes, in the text of /proc/PID/status."""
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def drop_caches(what):
    """Drops caches of the whole machine. 1: pages; 2: dentries and inodes; 3: both. Dirty pages stay, so sync first."""
    pathlib.Path("/proc/sys/vm/drop_caches").write_text(str(what))


class Meter:
    """Counts for one peer from the meter's creation to stop()."""

    def __init__(self, peer):
        self.peer = peer
        self.proc = pathlib.Path(f"/proc/{peer.pid}") if peer.pid else None
        if self.proc:
            (self.proc / "clear_refs").write_text("5")  # the peak of resident memory begins anew
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
