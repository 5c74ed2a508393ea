# SPDX-License-Identifier: MIT
"""Rebuilds what a trace tells of, and checks that its events fit together.

A reader of a trace needs no more than this: zones, extents, the log and the superblock ring follow from the events
alone (docs/trace.md).
"""
import json
import subprocess


class Misfit(AssertionError):
    """An event contradicts those before it."""


class Zone:
    def __init__(self):
        self.role, self.written, self.live, self.resets = "none", 0, 0, 0


class Trace:
    """All of a trace; after read() the state at its end."""

    def __init__(self, zfusectl, path):
        out = subprocess.run([zfusectl, "trace", "print", path], stdout=subprocess.PIPE, text=True, check=True).stdout
        header, *self.events = map(json.loads, out.splitlines())
        self.header = header["trace"]
        self.zones = {}
        self.extents = {}  # of each inode: offset -> (bytes, address, type)
        self.submitted, self.completed, self.began = {}, {}, {}
        self.commits, self.records = [], []
        self.ended = None

    def zone(self, number):
        return self.zones.setdefault(number, Zone())

    def expect(self, event, is_so, what):
        if not is_so:
            raise Misfit(f"{what}: {json.dumps(event)}")

    def read(self):
        for event in self.events:
            getattr(self, f"on_{event['event']}", lambda _: None)(event)
        return self

    def count(self, name):
        return sum(event["event"] == name for event in self.events)

    # ---- operations and commands ----

    def on_operation_began(self, event):
        self.began[event["sequence"]] = event

    def on_operation_ended(self, event):
        began = self.began.pop(event["began"], None)
        self.expect(event, began or event["began"] == 0, "no such operation has begun")
        self.expect(event, not began or began["operation"] == event["operation"], "another operation began")

    def on_command_submitted(self, event):
        self.submitted[event["sequence"]] = event

    def on_command_completed(self, event):
        submitted = self.submitted.pop(event["submitted"], None)
        if event["submitted"] == 0:
            return
        self.expect(event, submitted, "no such command was submitted")
        for name in ("command", "bytes", "purpose", "fua", "address_zone"):
            self.expect(event, submitted[name] == event[name], f"submitted with another {name}")
        self.completed[event["submitted"]] = event
        if event["result"] == 0:
            self.moved_pointer(event)

    def moved_pointer(self, event):
        zone, start = self.zone(event["address_zone"]), event["address_zone"] * self.header["zone_size"]
        if event["command"] in ("append", "write", "zeroes"):
            zone.written = max(zone.written, event["address"] + event["bytes"] - start)
        elif event["command"] == "finish":
            zone.written = self.header["zone_capacity"]
        elif event["command"] == "reset":
            zone.written = 0

    def lies_in(self, event, address, size):
        """[address, address + size) was written by the command that the event names."""
        command = self.completed.get(event["submitted"])
        if event["submitted"] == 0:
            return
        self.expect(event, command and command["result"] == 0, "its command has not completed")
        self.expect(event, command["address"] <= address and address + size <= command["address"] + command["bytes"],
                    f"not where its command landed, {command}")

    # ---- zones ----

    def on_zone(self, event):
        zone = self.zone(event["address_zone"])
        zone.role, zone.written, zone.live = event["role"], event["written"], event["live"]
        zone.resets = event["resets"]

    def on_zone_role(self, event):
        zone = self.zone(event["address_zone"])
        self.expect(event, zone.role == event["before"], f"the role was {zone.role}")
        zone.role = event["role"]

    def on_zone_live(self, event):
        self.zone(event["address_zone"]).live = event["live"]
        self.expect(event, event["live"] <= self.header["zone_capacity"], "more than a zone has")

    def on_zone_reset(self, event):
        zone = self.zone(event["address_zone"])
        self.expect(event, event["result"] < 0 or zone.written == 0, "the device was not told to")
        self.expect(event, zone.live == 0, f"{zone.live} bytes are live")
        zone.resets = event["resets"]

    # ---- extents ----

    def on_extent_fixed(self, event):
        self.lies_in(event, event["address"], event["bytes"])

    def on_extent_set(self, event):
        self.extents.setdefault(event["inode"], {})[event["offset"]] = (event["bytes"], event["address"], event["type"])

    def on_extent_removed(self, event):
        self.extents.get(event["inode"], {}).pop(event["offset"], None)

    def on_block_moved(self, event):
        self.lies_in(event, event["to"], self.header["block_size"])

    def extents_of(self, inode):
        """[(offset, bytes, address, type)], in order; they do not overlap."""
        found = [(offset, *rest) for offset, rest in sorted(self.extents.get(inode, {}).items())]
        for left, right in zip(found, found[1:]):
            if left[0] + left[1] > right[0]:
                raise Misfit(f"extents of inode {inode} overlap: {left}, {right}")
        return found

    def data_live(self):
        """Bytes of each zone that extents name, once each: {zone: bytes}. Right if the trace has them all."""
        block, blocks = self.header["block_size"], set()
        for inode in self.extents:
            for _, size, address, kind in self.extents_of(inode):
                if kind == "data":
                    blocks.update(range(address // block, (address + size) // block))
        live = {}
        for number in blocks:
            zone = number * block // self.header["zone_size"]
            live[zone] = live.get(zone, 0) + block
        return live

    # ---- transactions and the log ----

    def on_committed(self, event):
        self.expect(event, event["address_zone"] in (0, 1), "no place for a superblock")
        self.expect(event, not self.commits or self.commits[-1]["generation"] < event["generation"], "not newer")
        self.commits.append(event)

    def on_log_appended(self, event):
        self.expect(event, self.zone(event["address_zone"]).role in ("log", "hot"), "no zone of the log")
        self.lies_in(event, event["address"], event["bytes"])
        self.records.append(event)

    def on_ended(self, event):
        self.ended = event
        self.expect(event, event is self.events[-1], "something follows")

    def check_whole(self):
        """Nothing was dropped, and all that began has ended."""
        self.expect(self.ended, self.ended and self.ended["dropped"] == 0, "dropped, or not ended")
        for i, event in enumerate(self.events):
            self.expect(event, event["sequence"] == i + 1, "a gap before it")
        for left in (self.submitted, self.began):
            if left:
                raise Misfit(f"without an end: {list(left.values())[:3]}")
