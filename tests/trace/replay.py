# SPDX-License-Identifier: MIT
"""Traces, for tests: the events, from `zfusectl trace print`, and the state after them, from the model of the page of
`zfusectl replay` (state.js runs the model)."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types

NODE = shutil.which("node")
if not NODE:
    print("skipped: there is no node, which scripts/install-deps --test installs")
    sys.exit(77)


class Misfit(AssertionError):
    """An event contradicts those before it."""


def page_of(zfusectl, trace, page):
    subprocess.run([zfusectl, "replay", trace, "--output", page], check=True)
    return page


def state_of(page, program="state.js"):
    """The output of state.js or page.js for a page."""
    program = pathlib.Path(__file__).parent / program
    return json.loads(subprocess.run([NODE, program, page], stdout=subprocess.PIPE, check=True, timeout=60).stdout)


class Trace:
    """A whole trace; read() adds the state at its end."""

    def __init__(self, zfusectl, path):
        out = subprocess.run([zfusectl, "trace", "print", path], stdout=subprocess.PIPE, text=True, check=True).stdout
        header, *self.events = map(json.loads, out.splitlines())
        self.header = header["trace"]
        self.zfusectl, self.path = zfusectl, path

    def read(self):
        with tempfile.TemporaryDirectory() as directory:
            self.state = state_of(page_of(self.zfusectl, self.path, pathlib.Path(directory) / "page.html"))
        if self.state["misfits"]:
            raise Misfit(json.dumps(self.state["misfits"][0]))
        self.zones = {zone["number"]: types.SimpleNamespace(**zone) for zone in self.state["zones"]}
        self.ended = self.state["ended"]
        return self

    def zone(self, number):
        return self.zones.get(number, types.SimpleNamespace(role="none", written=0, live=0, resets=0))

    def count(self, name):
        return sum(event["event"] == name for event in self.events)

    def extents(self):
        """The extents: {inode: [(offset, bytes, address, type)]}, in order. Raises Misfit if they overlap."""
        extents = {}
        for of_inode in self.state["extents"]:
            found = [(e["offset"], e["bytes"], e["address"], e["type"]) for e in of_inode["extents"]]
            for left, right in zip(found, found[1:]):
                if left[0] + left[1] > right[0]:
                    raise Misfit(f"extents of inode {of_inode['inode']} overlap: {left}, {right}")
            extents[of_inode["inode"]] = found
        return extents

    def data_live(self):
        """The bytes of each zone that extents name, shared ones once: {zone: bytes}. It is only right if the trace has
        all extents."""
        block, blocks = self.header["block_size"], set()
        for found in self.extents().values():
            for _, size, address, kind in found:
                if kind == "data":
                    blocks.update(range(address // block, (address + size) // block))
        live = {}
        for number in blocks:
            zone = number * block // self.header["zone_size"]
            live[zone] = live.get(zone, 0) + block
        return live

    def check_whole(self):
        """Raises Misfit if events were dropped, or if a command or an operation has not ended."""
        if not self.ended or self.ended["dropped"] or self.state["missing"]:
            raise Misfit(f"dropped, or not ended: {self.ended}, {self.state['missing']} missing")
        for left in (self.state["commands"], self.state["operations"]):
            if left:
                raise Misfit(f"without an end: {left[:3]}")
