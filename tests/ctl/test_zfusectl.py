#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs zfusectl and fsck.zfuse on devices that are not mounted: the output of every command, as text and as JSON, its
exit status, and how it refuses invalid requests.

usage: test_zfusectl.py ZFUSECTL FSCK MAKE_IMAGE MKFS MAKE_LOG COMMANDS MANUAL [UNITTEST-ARGUMENT...]
"""

import fcntl
import json
import os
import pathlib
import pty
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from digest import digest  # noqa: E402

ZFUSECTL = FSCK = MAKE_IMAGE = MKFS = MAKE_LOG = COMMANDS = MANUAL = ""
TREES = ("root", "fs", "summary", "share", "zone")
ZONES, ZONE_SIZE = 32, 2 << 20
MANY = 300


def flip(path, offset):
    with open(path, "r+b") as f:
        f.seek(offset)
        byte = f.read(1)
        f.seek(offset)
        f.write(bytes([byte[0] ^ 0x10]))


class ImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="zfuse-ctl-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.original = os.path.join(cls.folder.name, "original.img")
        subprocess.run([MAKE_IMAGE, cls.original], check=True, timeout=60)

    def setUp(self):
        self.path = self.original

    def damaged_copy(self):
        self.path = os.path.join(self.folder.name, self.id() + ".img")
        shutil.copyfile(self.original, self.path)
        self.addCleanup(os.unlink, self.path)

    def run_tool(self, *args, program=None):
        return subprocess.run([program or ZFUSECTL, *args], capture_output=True, text=True,
                              timeout=60, check=False)

    def text(self, *args):
        """Runs a command that must succeed, print no message, and change nothing on the device."""
        before = digest(self.path)
        done = self.run_tool(*args)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertEqual(digest(self.path), before, "looking changed the image")
        return done.stdout

    def json(self, *args):
        return json.loads(self.text(*args, "--format", "json"))

    def refused(self, code, *args, says, program=None):
        done = self.run_tool(*args, program=program)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done)
        for text in says:
            self.assertIn(text, done.stderr)


class Commands(ImageTest):
    def test_super_tells_every_record_and_which_one_wins(self):
        found = self.json("super", self.path)
        self.assertEqual(found["zones"], ["in use", "empty"])
        self.assertGreaterEqual(len(found["records"]), 2)
        generations = [record["generation"] for record in found["records"]]
        self.assertEqual(generations, sorted(generations, reverse=True))
        winners = [record for record in found["records"] if record["wins"]]
        self.assertEqual([w["generation"] for w in winners], [max(generations)])
        self.assertEqual(found["newest"]["generation"], max(generations))
        self.assertEqual(found["newest"]["zone_count"], ZONES)
        self.assertEqual(found["newest"]["label"], "sample")
        self.assertNotIn("log_secret", found["newest"])
        self.assertEqual(found["stepped_over"], 0)
        text = self.text("super", self.path)
        self.assertIn("GENERATION", text)
        self.assertIn("is valid", text)
        self.assertEqual(text.count("\n*"), 2)

    def test_super_steps_over_a_damaged_record(self):
        address = [r for r in self.json("super", self.path)["records"] if r["wins"]][0]["address"]
        self.damaged_copy()
        flip(self.path, address + 100)
        done = self.run_tool("super", "--format", "json", self.path)
        self.assertEqual(done.returncode, 0, done)
        found = json.loads(done.stdout)
        self.assertEqual(found["stepped_over"], 1)
        self.assertIn("1 newer slot is damaged", found["reason"])
        self.assertEqual([r["status"] for r in found["records"]][:2], ["damaged", "valid"])
        self.assertTrue(found["records"][1]["wins"])

    def test_log_of_a_clean_filesystem_is_empty(self):
        found = self.json("log", self.path)
        self.assertEqual((found["records"], found["to_replay"]), ([], 0))
        self.assertIn("bodies to replay: 0", self.text("log", self.path))

    def test_log_shows_what_a_mount_would_replay(self):
        self.damaged_copy()
        subprocess.run([MAKE_LOG, self.path], check=True, timeout=60)
        found = self.json("log", self.path)
        first, second, _, last = found["records"]
        self.assertEqual(found["to_replay"], 2)
        self.assertEqual([r["sequence"] - found["sequence"] for r in found["records"]], [1, 2, 4, 5])
        self.assertEqual([r["fate"] for r in found["records"]], ["to replay"] * 2 + ["behind a gap"] * 2)
        self.assertEqual([r["data_blocks"] for r in found["records"]], [0, 1, 0, 1])
        self.assertEqual([r["carried_bytes"] > 0 for r in found["records"]], [False] * 3 + [True])
        self.assertEqual([r["offset"] for r in found["records"]], [0, 4096, 12288, 16384])
        self.assertEqual([z["end"] for z in found["zones"]], [20480, 0])
        self.assertEqual(first["zone"], found["zones"][0]["zone"])
        self.assertEqual(first["address"], first["zone"] * ZONE_SIZE)
        self.assertEqual(first["bodies"], [{
            "number": found["number"] + 1, "type": "operation", "edits": [
                {"kind": "resize", "inode": 777, "size": 12345},
                {"kind": "set", "key": {"objectid": 777, "type": 1, "offset": 0}, "type": "inode", "value_bytes": 4},
                {"kind": "delete", "key": {"objectid": 777, "type": 7, "offset": 4096}, "type": "extent"}]}])
        data, hole = second["bodies"][0]["ranges"]
        self.assertEqual((data["address"], data["riding"]), (second["address"] + 4096, True))
        self.assertEqual(last["bodies"][0]["ranges"][0]["address"], last["address"])
        self.assertEqual((hole["type"], hole["offset"], hole["length"]), ("hole", 4096, 8192))
        text = self.text("log", self.path)
        self.assertIn("extents of inode 778", text)
        self.assertIn("delete (777 extent 4096)", text)
        self.assertIn("set (777 inode 0) 4 bytes", text)
        self.assertIn("1 header block, 1 data block (the first compressed into the header): behind a gap", text)

    def test_zones_have_roles_conditions_and_pointers(self):
        found = self.json("zones", self.path)
        self.assertEqual(found["geometry"]["zone_count"], ZONES)
        zones = found["zones"]
        self.assertEqual([z["zone"] for z in zones], list(range(ZONES)))
        self.assertEqual([z["role"] for z in zones[:2]], ["super", "super"])
        roles = {z["role"] for z in zones}
        self.assertEqual(roles, {"super", "meta", "hot", "log", "none"})
        for zone in zones:
            self.assertIn(zone["condition"], ("em", "oi", "oe", "cl", "fu"))
            self.assertLessEqual(zone["live"] + zone["unusable"], zone["write_pointer"] or ZONE_SIZE)
            if zone["role"] == "none":
                self.assertEqual((zone["live"], zone["unusable"]), (0, 0))
        lines = self.text("zones", self.path).splitlines()
        self.assertEqual(len(lines), ZONES + 1)
        self.assertIn("CONDITION", lines[0])
        # Aligned: every line has the same columns.
        self.assertEqual(len({len(line) for line in lines}), 1)

    def test_zones_of_a_role_or_in_a_condition(self):
        zones = self.json("zones", self.path)["zones"]
        for option, key in (("--role", "role"), ("--condition", "condition")):
            for value in {zone[key] for zone in zones}:
                with self.subTest(option=option, value=value):
                    self.assertEqual(self.json("zones", option, value, self.path)["zones"],
                                     [zone for zone in zones if zone[key] == value])
        found = self.json("zones", "--role", "none", "--condition", "cl", self.path)
        self.assertEqual(found["zones"], [zone for zone in zones if (zone["role"], zone["condition"]) == ("none", "cl")])

    def test_a_summary_of_the_zones_adds_up(self):
        zones, sums = (self.json("zones", *option, self.path) for option in ((), ("--summary",)))
        self.assertEqual((sums["zones"], sums["geometry"]), ([], zones["geometry"]))
        self.assertEqual(sum(s["zones"] for s in sums["summary"]), ZONES)
        for of_zone, of_sum in (("capacity",) * 2, ("live",) * 2, ("unusable",) * 2, ("write_pointer", "written")):
            for line in sums["summary"]:
                same = [z for z in zones["zones"] if all(z[key] == line[key] for key in ("role", "condition_name"))]
                self.assertEqual((line["zones"], line[of_sum]), (len(same), sum(z[of_zone] for z in same)))
        self.assertEqual(self.text("zones", "-s", self.path).count("\n"), len(sums["summary"]) + 1)

    def test_a_map_of_the_zones(self):
        letters = {"super": "S", "meta": "M", "log": "L", "hot": "h", "none": "."}
        zones = self.json("zones", self.path)["zones"]
        lines = self.text("zones", "--map", self.path).splitlines()
        self.assertEqual(lines[0], "       0  " + "".join(letters[zone["role"]] for zone in zones))
        self.assertIn("a letter: 1 zone;", lines[-1])
        self.refused(2, "zones", "--map", "--role", "hot", self.path, says=["--map and --role exclude"])

    def test_a_map_of_many_zones_fits_a_page(self):
        self.damaged_copy()
        self.assertEqual(self.run_tool("grow", "--size", f"{3000 * ZONE_SIZE}", self.path).returncode, 0)
        lines = self.text("zones", "--map", self.path).splitlines()
        self.assertLess(len(lines), 24)
        cells = "".join(line[10:] for line in lines[:-2])
        self.assertEqual((len(cells), cells[0]), (1000, "S"))
        self.assertEqual(lines[1][:10], "     192  ")
        self.assertIn("a letter: 3 zones;", lines[-1])

    def printed_on_a_terminal(self, rows, *args):
        """The output of zfusectl on a terminal with so many rows."""
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
        subprocess.run([ZFUSECTL, *args], stdout=slave, timeout=60, check=True)
        os.close(slave)
        text = os.read(master, 1 << 16).decode()
        self.assertEqual([line for line in text.splitlines() if len(line) > 80], [])
        return text

    def test_on_a_small_terminal_zones_are_summed_up(self):
        self.assertIn("ZONES", self.printed_on_a_terminal(ZONES - 1, "zones", self.path))
        self.assertNotIn("ZONES", self.printed_on_a_terminal(ZONES, "zones", self.path))
        self.assertIn("START", self.printed_on_a_terminal(ZONES - 1, "zones", "--role", "none", self.path))
        for command in ("df", "check", "status", "super"):
            self.printed_on_a_terminal(24, command, self.path)

    def test_every_tree_as_text_json_and_graph(self):
        for tree in TREES:
            with self.subTest(tree=tree):
                found = self.json("tree", "--tree", tree, self.path)
                self.assertEqual((found["tree"], found["errors"]), (tree, 0))
                self.assertTrue(all(node["tree"] == tree for node in found["nodes"]))
                text = self.text("tree", "--tree", tree, self.path)
                self.assertEqual(len(re.findall(r"^ *node \d+: tree", text, re.M)), len(found["nodes"]))
                dot = self.text("tree", "--tree", tree, "--format", "dot", "--fold", "1000", self.path)
                edges = sum(len(node.get("children", ())) for node in found["nodes"])
                self.assertEqual((dot.count("label=\""), dot.count("->"), dot.count("more")), (len(found["nodes"]), edges, 0))
                self.assertTrue(dot.startswith("digraph"))

    def graph(self, *options):
        """Returns (the lines of the fs tree's nodes, all lines)."""
        dot = self.text("tree", "--format", "dot", *options, self.path)
        return re.findall(r"^\tn\d+ \[.*$", dot, re.M), dot

    def test_a_graph_tells_of_each_node(self):
        root = self.json("tree", self.path)["nodes"][0]
        nodes, dot = self.graph()
        address, generation = root["address"][0], root["header"]["generation"]
        first, last = root["children"][0]["key"], root["children"][-1]["key"]
        self.assertIn(f"n{address} ", nodes[0])
        self.assertIn(f"level 1, {len(root['children'])} children, generation {generation}\\n({first['objectid']} inode "
                      f"{first['offset']})\\nto ({last['objectid']} ", nodes[0])
        self.assertIn(f"zone {address // ZONE_SIZE} + {address % ZONE_SIZE}", nodes[0])
        leaf = next(n for n in self.json("tree", self.path)["nodes"] if n["level"] == 0)
        keys = [item["key"] for item in leaf["items"]]
        self.assertTrue(any(f"leaf, {len(keys)} items" in n and f"({keys[0]['objectid']} inode {keys[0]['offset']})\\nto "
                            f"({keys[-1]['objectid']} " in n for n in nodes))
        self.assertIn(f"new: generation {generation} or later", dot)

    def test_a_graph_folds_siblings(self):
        children = len(self.json("tree", self.path)["nodes"][0]["children"])
        nodes, dot = self.graph("--fold", "3")
        self.assertEqual(len(nodes), 4)
        self.assertIn(f"... {children - 3} more leaves", dot)
        self.assertIn(f"{children + 1} nodes, 4 drawn", dot)
        self.assertEqual(len(self.graph()[0]), 9)

    def test_a_graph_tells_new_nodes_from_shared_ones(self):
        tree = self.json("tree", self.path)["nodes"]
        newest = max(node["header"]["generation"] for node in tree)
        for since, new in ((1, len(tree)), (newest + 1, 0)):
            nodes, dot = self.graph("--fold", "1000", "--since", str(since))
            self.assertEqual((sum("penwidth=3" in n for n in nodes), sum("dashed" in n for n in nodes)),
                             (new, len(tree) - new))
            self.assertIn(f"new: generation {since} or later", dot)

    @unittest.skipUnless(shutil.which("dot"), "graphviz is not installed")
    def test_graphviz_draws_the_graphs(self):
        for tree in TREES:
            dot = self.text("tree", "--tree", tree, "--format", "dot", self.path)
            done = subprocess.run(["dot", "-Tsvg"], input=dot, capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done)
            self.assertIn("</svg>", done.stdout)
            self.assertIn("shared: older", done.stdout)

    def test_the_fs_tree_shows_what_is_in_it(self):
        items = [item for node in self.json("tree", self.path)["nodes"]
                 for item in node.get("items", ())]
        inodes = [item for item in items if item["type"] == "inode"]
        self.assertEqual(len(inodes), 10 + MANY)
        names = {entry["name"] for item in items if item["type"] == "dir-name"
                 for entry in item["value"]}
        self.assertTrue({"file", "hard", "deep", "sym"} <= names)
        data = [item for item in items if item["type"] == "extent" and item["value"]["type"] == 2]
        self.assertTrue(all(item["value"]["address"] >= 2 * ZONE_SIZE for item in data))
        self.assertGreaterEqual(len(data), 2)

    def test_a_node_by_its_address(self):
        root = self.json("tree", self.path)["nodes"][0]
        address = root["address"][0]
        found = self.json("node", self.path, str(address))
        self.assertTrue(found["valid"])
        self.assertEqual(found["header"], root["header"])
        self.assertEqual(self.json("node", self.path, hex(address)), found)
        self.assertIn(f"node {address}: tree fs", self.text("node", self.path, str(address)))
        found = self.json("node", self.path, str(ZONE_SIZE * (ZONES - 1)))
        self.assertFalse(found["valid"])
        self.assertIn("not valid", self.text("node", self.path, str(ZONE_SIZE * (ZONES - 1))))

    # ---- byte by byte ----

    def field_names(self):
        """The field names of each struct, from its table in docs/format.md."""
        text = (pathlib.Path(__file__).resolve().parents[2] / "docs/format.md").read_text()
        return {name: set(re.findall(r"^\| \d+ \| \d+ \| [^|]+ \| `([^`]+)` \|", section, re.M))
                for name, section in re.findall(r"^### [^\n]*`struct (\w+)`(.*?)(?=^#)", text, re.M | re.S)}

    def expect_dump(self, dump, size):
        """Checks that each byte belongs to exactly one field, and that each field has its name in docs/format.md."""
        names, at = self.field_names(), 0
        for entry in dump:
            self.assertEqual(entry["offset"], at, entry)
            at += entry["size"]
            if "struct" in entry:
                self.assertIn(entry["field"], names[entry["struct"]])
            if "withheld" not in entry:
                self.assertEqual(len(entry["bytes"]), 2 * entry["size"], entry)
        self.assertEqual(at, size)

    def expect_lines(self, text, size):
        """Checks a dump as text: no line is too wide, and the bytes are those of the device."""
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        at = 0
        for offset, rest in re.findall(r"^([0-9a-f]{4,})  (.{,47})", text, re.M):
            self.assertEqual(int(offset, 16), at)
            run = re.match(r"(?:00|--) \* (\d+)", rest)
            at += int(run.group(1)) if run else len(rest.split())
        self.assertEqual(at, size)

    def test_nodes_byte_by_byte(self):
        with open(self.path, "rb") as f:
            image = f.read()
        for tree in TREES:
            for node in self.json("tree", "--tree", tree, self.path)["nodes"]:
                address, size = node["address"][0], 16384
                found = self.json("node", "--hex", self.path, str(address))
                self.assertEqual((found["valid"], found["tree"]), (True, tree))
                self.expect_dump(found["dump"], size)
                self.assertEqual("".join(e["bytes"] for e in found["dump"]), image[address:address + size].hex())
        text = self.text("node", "--hex", self.path, str(address))
        self.assertTrue(text.startswith(f"node {address} of tree zone\n"))
        self.expect_lines(text, size)
        self.assertRegex(text, r"(?m)^0008  5a 46 4e 44 +magic \"ZFND\"$")
        self.assertRegex(text, r"(?m)^0048 .* item 0 key.objectid 0$")
        self.assertRegex(text, r"(?m) value 0 role 1$")

    def test_superblocks_byte_by_byte(self):
        found = self.json("super", "--hex", self.path)
        self.assertEqual([r["wins"] for r in found["records"] if "dump" in r], [True])
        winner = next(r for r in found["records"] if r["wins"])
        self.expect_dump(winner["dump"], 4096)
        secret = next(e for e in winner["dump"] if e["field"] == "log_secret")
        self.assertEqual((secret["withheld"], "bytes" in secret, "value" in secret), (True, False, False))
        text = self.text("super", "--hex", self.path)
        self.expect_lines(text, 4096)
        self.assertIn("label \"sample\"", text)
        self.assertRegex(text, r"(?m)^0080  -- \* 32 +log_secret \(not shown\)$")
        self.assertRegex(text, r"\n\* the newest record, at \d+, is valid\n$")

    def test_a_damaged_superblock_byte_by_byte(self):
        address = next(r for r in self.json("super", self.path)["records"] if r["wins"])["address"]
        self.damaged_copy()
        flip(self.path, address + 100)
        found = json.loads(self.run_tool("super", "--hex", "--format", "json", self.path).stdout)
        damaged, winner = [r for r in found["records"] if "dump" in r]
        self.assertEqual((damaged["address"], winner["wins"]), (address, True))
        self.assertRegex(damaged["error"], rf"corrupt superblock at {address}: csum has [0-9a-f]{{16}}, expected [0-9a-f]{{16}}")
        self.expect_dump(damaged["dump"], 4096)
        self.assertIn(f"record at {address}, damaged: corrupt superblock", self.run_tool("super", "--hex", self.path).stdout)

    def test_a_damaged_node_byte_by_byte(self):
        leaf = [n for n in self.json("tree", self.path)["nodes"] if n["level"] == 0][0]["address"][0]
        self.damaged_copy()
        flip(self.path, leaf + 64)  # the count
        done = self.run_tool("node", "--hex", self.path, str(leaf))
        self.assertRegex(done.stdout, rf"^node {leaf} is damaged: corrupt node at {leaf}: csum has [0-9a-f]{{16}}, "
                                      r"expected [0-9a-f]{16}\n")
        self.expect_lines(done.stdout[done.stdout.index("\n") + 1:], 16384)
        self.expect_dump(self.json("node", "--hex", self.path, str(leaf))["dump"], 16384)
        self.assertIn("csum has", self.text("node", self.path, str(leaf)))

    def test_the_log_byte_by_byte(self):
        self.damaged_copy()
        subprocess.run([MAKE_LOG, self.path], check=True, timeout=60)
        plain = self.json("log", self.path)
        found = self.json("log", "--hex", self.path)
        self.assertEqual([r["fate"] for r in found["records"]], [r["fate"] for r in plain["records"]])
        for record in found["records"]:
            self.assertNotIn("bodies", record)
            self.expect_dump(record["dump"], 4096)
        carried = [e for e in found["records"][3]["dump"] if e["field"] == "packed block"]
        self.assertEqual([e["size"] for e in carried], [found["records"][3]["carried_bytes"]])
        text = self.text("log", "--hex", self.path)
        self.assertLessEqual(max(len(line) for line in text.splitlines() if re.match("[0-9a-f]{4}  ", line)), 100)
        self.assertRegex(text, r"(?m) body 0 edit 0 kind 3$")
        self.assertRegex(text, r"(?m) body 0 range 0 checksums$")

    def test_damaged_log_records_byte_by_byte(self):
        self.damaged_copy()
        subprocess.run([MAKE_LOG, self.path], check=True, timeout=60)
        records = self.json("log", self.path)["records"]
        flip(self.path, records[0]["address"] + 120)   # a body
        flip(self.path, records[1]["address"] + 4096)  # data
        found = json.loads(self.run_tool("log", "--hex", "--format", "json", self.path).stdout)["records"]
        damaged = [r for r in found if "error" in r]
        self.assertEqual([(r["address"], r["error"]) for r in damaged], [
            (records[0]["address"], "torn: its hash does not match its bytes"),
            (records[1]["address"], "torn: its data does not match its checksums")])
        for record in damaged:
            self.expect_dump(record["dump"], 4096)
        self.assertIn("torn: its hash", self.run_tool("log", "--hex", self.path).stdout)
        self.assertNotIn("torn", self.run_tool("log", self.path).stdout)

    def test_a_file_tells_where_its_data_lies(self):
        found = self.json("file", self.path, "/file")
        self.assertEqual(found["size"], 40 * 4096)
        self.assertEqual(sum(e["length"] for e in found["extents"]), 40 * 4096)
        offset = 0
        for extent in found["extents"]:
            self.assertEqual((extent["offset"], extent["type"]), (offset, "data"))
            self.assertEqual(extent["zone"], extent["address"] // ZONE_SIZE)
            offset += extent["length"]
        self.assertEqual(self.json("file", self.path, "dir/hard")["ino"], found["ino"])
        small = self.json("file", self.path, "/small")["extents"]
        self.assertEqual([e["type"] for e in small], ["inline"])
        self.assertNotIn("address", small[0])
        self.assertIn(str(found["extents"][0]["address"]), self.text("file", self.path, "/file"))

    def test_an_inode_has_a_path(self):
        ino = self.json("file", self.path, "/dir/sub/deep")["ino"]
        self.assertEqual(self.json("path", self.path, str(ino)), {"ino": ino, "path": "/dir/sub/deep"})
        self.assertEqual(self.text("path", self.path, hex(ino)), "/dir/sub/deep\n")
        self.assertEqual(self.text("path", self.path, "1"), "/\n")
        self.refused(1, "path", self.path, "999999", says=["there is no inode 999999"])
        for number in ("0", "1x", "x", ""):
            self.refused(2, "path", self.path, number, says=["is no inode number"])

    def test_an_address_leads_to_its_file(self):
        found = self.json("file", self.path, "/file")
        for extent in found["extents"]:
            for byte in (0, 1, 4096 * (extent["length"] // 4096 // 2), extent["length"] - 1):
                answer = self.json("resolve", self.path, str(extent["address"] + byte))
                self.assertEqual(answer["zone"], extent["zone"])
                self.assertEqual([(f["ino"], f["offset"]) for f in answer["files"]],
                                 [(found["ino"], extent["offset"] + byte)])
                self.assertIn(answer["files"][0]["path"], ("/file", "/dir/hard"))
        address = self.json("file", self.path, "/other")["extents"][0]["address"]
        self.assertEqual(self.text("resolve", self.path, hex(address + 5000)), "/other: offset 5000\n")

    def test_an_address_that_no_file_has(self):
        node = self.json("tree", self.path)["nodes"][0]["address"][0]
        self.assertIn("role meta", self.text("resolve", self.path, str(node)))
        self.assertIn("zone 0, role super", self.text("resolve", self.path, "0"))
        self.assertIn("no file has this byte", self.text("resolve", self.path, str(ZONE_SIZE * (ZONES - 1))))
        self.refused(2, "resolve", self.path, str(ZONE_SIZE * ZONES), says=["is beyond the last zone"])
        self.refused(2, "resolve", self.path, "here", says=["is no address"])

    def test_df_adds_up(self):
        found = self.json("df", self.path)
        self.assertEqual(found["total"], (ZONES - 2) * ZONE_SIZE)
        parts = ("live_data", "live_metadata", "kept", "in_place", "reserved", "reclaimable", "free")
        self.assertEqual(sum(found[part] for part in parts), found["total"])
        # fallocate gets less space than writes do, because it also reserves space for metadata.
        writable = found["free"] + found["reclaimable"]
        self.assertTrue(writable * 0.9 < found["available"] < writable, found)
        self.assertEqual(sum(found["zones"].values()), ZONES)
        self.assertEqual(found["inodes"], 10 + MANY)
        zones = self.json("zones", self.path)["zones"]
        for part, roles in (("live_metadata", ("meta",)), ("live_data", ("hot", "cold", "log", "overwrite"))):
            self.assertEqual(found[part], sum(z["live"] for z in zones if z["role"] in roles), part)
        text = self.text("df", self.path)
        for part in ("total", *parts, "available"):
            self.assertRegex(text, rf"(?m)^{part}\b")

    def test_check_finds_nothing_wrong(self):
        found = self.json("check", "--data", self.path)
        self.assertEqual((found["errors"], found["messages"]), (0, []))
        self.assertEqual(found["inodes"], 10 + MANY)
        self.assertEqual(found["data_bytes"], found["verified_bytes"])
        self.assertGreater(found["data_bytes"], 40 * 4096)
        self.assertIn("no errors", self.text("check", self.path))

    def test_check_tells_how_far_it_has_come(self):
        done = self.run_tool("check", "--data", "--progress=json", self.path)
        self.assertEqual(done.returncode, 0, done)
        last = json.loads(done.stderr.splitlines()[-1])
        live = sum(zone["live"] for zone in self.json("zones", self.path)["zones"] if zone["role"] in ("hot", "meta"))
        self.assertEqual((last["unit"], last["done"]), ("bytes", last["total"]))
        # The total does not include the nodes of the root and zone trees, which are not known in advance.
        self.assertTrue(live - 16 * 16384 < last["total"] <= live, (last, live))
        self.assertNotIn("progress", done.stdout)

    def test_scrub_reads_everything(self):
        found = self.json("scrub", self.path)
        self.assertEqual((found["errors"], found["skipped"], found["damage"]), (0, 0, []))
        check = self.json("check", self.path)
        self.assertEqual(found["data_bytes"], check["data_bytes"])
        self.assertEqual(found["node_bytes"], check["nodes"] * 16384)
        self.assertIn("no damage", self.text("scrub", self.path))

    def test_scrub_tells_how_far_it_has_come(self):
        done = self.run_tool("scrub", "--progress=json", "--rate", "64M", self.path)
        self.assertEqual(done.returncode, 0, done)
        last = json.loads(done.stderr.splitlines()[-1])
        self.assertEqual((last["unit"], last["done"]), ("bytes", last["total"]))

    def test_status_of_what_is_not_mounted(self):
        found = self.json("status", self.path)
        self.assertEqual((found["mounted"], found["clean"], found["label"]), (False, True, "sample"))
        self.assertEqual(found["device"], self.path)
        self.assertEqual((found["device_kind"], found["append"]), ("image", "emulated"))
        self.assertIn("durable_generation", self.text("status", self.path))

    def test_stats_and_sync_need_a_mount(self):
        for command in ("stats", "sync"):
            with self.subTest(command=command):
                self.refused(1, command, self.path, says=[self.path, "not mounted"])

    def test_gc_needs_a_mount(self):
        for action in ("status", "run", "pause", "resume"):
            with self.subTest(action=action):
                self.refused(1, "gc", action, self.path, says=[self.path, "not mounted"])

    def test_version(self):
        self.assertRegex(self.text("--version"), r"^zfusectl \d")


class Damage(ImageTest):
    def setUp(self):
        super().setUp()
        self.damaged_copy()

    def leaf(self):
        nodes = self.json("tree", self.path)["nodes"]
        return [node for node in nodes if node["level"] == 0][-1]["address"][0]

    def test_a_damaged_leaf_is_told_by_check_and_tree(self):
        leaf = self.leaf()
        flip(self.path, leaf + 500)
        for args in (("check",), ("check", "--format", "json"), ("tree", "--format", "json"), ("tree",),
                     ("tree", "--format", "dot")):
            with self.subTest(args=args):
                done = self.run_tool(*args, self.path)
                self.assertEqual(done.returncode, 1, done)
                self.assertEqual(done.stderr, "")
        done = self.run_tool("check", "--format", "json", self.path)
        found = json.loads(done.stdout)
        errors = [m["text"] for m in found["messages"] if m["level"] == "error"]
        self.assertEqual((len(errors), found["errors"]), (1, 1))
        self.assertIn(f"corrupt node at {leaf}", errors[0])
        self.assertIn(f"corrupt node at {leaf}", self.run_tool("check", self.path).stdout)

    def test_damaged_data_is_told_when_data_is_read(self):
        address = self.json("file", self.path, "/file")["extents"][0]["address"]
        flip(self.path, address + 4096 + 1)
        self.assertEqual(self.json("check", self.path)["errors"], 0)
        done = self.run_tool("check", "--data", "--format", "json", self.path)
        self.assertEqual(done.returncode, 1)
        found = json.loads(done.stdout)
        self.assertEqual(found["errors"], 1)
        self.assertIn(f"corrupt data at {address + 4096}", found["messages"][0]["text"])
        self.assertIn("offset 4096", found["messages"][0]["text"])

    def test_a_scrub_names_the_file_of_damaged_data(self):
        address = self.json("file", self.path, "/file")["extents"][0]["address"]
        flip(self.path, address + 4096 + 1)
        done = self.run_tool("scrub", self.path)
        self.assertEqual(done.returncode, 1, done)
        # The file has two names.
        told = r"(?m)^/(file|dir/hard): 4096 bytes at offset 4096 are damaged \(device address %d\)$"
        self.assertRegex(done.stdout, told % (address + 4096))
        found = json.loads(self.run_tool("scrub", "--format", "json", self.path).stdout)
        self.assertEqual([(d["offset"], d["bytes"], d["address"]) for d in found["damage"]],
                         [(4096, 4096, address + 4096)])

    def test_a_scrub_tells_of_a_damaged_node(self):
        leaf = self.leaf()
        flip(self.path, leaf + 500)
        done = self.run_tool("scrub", self.path)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(f"node of the fs tree at device address {leaf}: damaged", done.stdout)
        self.assertNotIn("repaired from", done.stdout)

    def test_without_a_valid_superblock_everything_but_super_fails(self):
        for record in self.json("super", self.path)["records"]:
            flip(self.path, record["address"] + 200)
        done = self.run_tool("super", "--format", "json", self.path)
        self.assertEqual(done.returncode, 0, done)
        self.assertIsNone(json.loads(done.stdout)["newest"])
        for command in ("zones", "log", "tree", "df", "check", "status"):
            with self.subTest(command=command):
                self.refused(1, command, self.path, says=[self.path, "no superblock record is valid"])

    def test_fsck_exit_statuses(self):
        done = self.run_tool("-a", "-C0", self.path, program=FSCK)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertIn("no errors", done.stdout)
        flip(self.path, self.leaf() + 500)
        done = self.run_tool(self.path, program=FSCK)
        self.assertEqual(done.returncode, 4, done)
        self.assertIn("corrupt node", done.stdout)
        self.assertIn(f"zfusectl restore {self.path}", done.stdout)
        self.refused(8, "/nonexistent", program=FSCK, says=["/nonexistent", "No such file"])
        self.refused(16, program=FSCK, says=["Usage"])
        self.refused(16, "-Z", self.path, program=FSCK, says=["Usage"])
        self.refused(16, "-n", "-y", self.path, program=FSCK, says=["Usage"])
        self.refused(16, "-C-1", self.path, program=FSCK, says=["Usage"])
        self.refused(16, "--format", "xml", self.path, program=FSCK, says=["Usage"])
        self.refused(16, "--generation", "0", self.path, program=FSCK, says=["Usage"])


class Fsck(ImageTest):
    """Repairs, and the other writes of fsck.zfuse."""

    def setUp(self):
        super().setUp()
        self.damaged_copy()

    def leaf(self):
        nodes = self.json("tree", self.path)["nodes"]
        return [node for node in nodes if node["level"] == 0][-1]["address"][0]

    def fsck(self, status, *options, says=()):
        done = self.run_tool(*options, self.path, program=FSCK)
        self.assertEqual(done.returncode, status, done)
        for text in says:
            self.assertIn(text, done.stdout)
        return done

    def fsck_json(self, status, *options):
        return json.loads(self.fsck(status, "--format", "json", *options).stdout)

    def test_what_is_in_order_is_not_written_to(self):
        before = digest(self.path)
        for option in ("-n", "-p", "-a", "-y"):
            with self.subTest(option=option):
                self.fsck(0, "-f", option, says=["no errors", "not read"])
        self.assertEqual(digest(self.path), before)
        self.fsck(0, "--check-data", says=["no errors", "verified"])

    def test_a_damaged_leaf(self):
        flip(self.path, self.leaf() + 500)
        damaged = digest(self.path)
        for option in ("-n", "-p"):
            self.fsck(4, option, says=["corrupt node", f"fsck.zfuse -y {self.path}"])
        self.assertEqual(digest(self.path), damaged)
        self.fsck(1, "-y", "-v", says=["corrupt node", "repaired as generation", "no errors", "kept "])
        self.fsck(0, "-n")
        repaired = digest(self.path)
        self.fsck(0, "-y")
        self.assertEqual(digest(self.path), repaired)

    def spoil_summary(self):
        for node in self.json("tree", "--tree", "summary", self.path)["nodes"]:
            flip(self.path, node["address"][0] + 500)

    def test_what_is_said_of_a_file_names_its_path(self):
        self.spoil_summary()
        said = self.fsck_json(1, "-y")["repair"]["messages"]
        files = [m for m in said if "unverified" in m]
        self.assertTrue(files)
        named = r"inode \d+ \(/[^)]+\): \d+ blocks from offset"
        for message in files:
            self.assertRegex(message, named)
        shutil.copyfile(self.original, self.path)
        self.spoil_summary()
        self.assertEqual(len(re.findall(named, self.fsck(1, "-y").stdout)), len(files))

    def spoil_data(self):
        """Damages file data, which no repair restores."""
        flip(self.path, self.json("file", self.path, "file")["extents"][0]["address"] + 500)

    def test_data_alone_is_no_reason_for_a_repair(self):
        self.spoil_data()
        damaged = digest(self.path)
        self.fsck(0, "-y", says=["not read"])
        for option in ("-n", "-p", "-y"):
            self.fsck(4, "--check-data", option, says=["corrupt data", "which no repair restores"])
        found = self.fsck_json(4, "-y", "--check-data")
        self.assertEqual((found["check"]["errors"], found["check"]["data_errors"]), (1, 1))
        self.assertNotIn("repair", found)
        self.assertEqual(digest(self.path), damaged)

    def test_data_that_is_damaged_is_left_when_the_rest_is_repaired(self):
        self.spoil_data()
        flip(self.path, self.leaf() + 500)
        found = self.fsck_json(5, "-y", "--check-data")
        self.assertEqual((found["after"]["errors"], found["after"]["data_errors"]), (1, 1))
        self.fsck(0, "-n")

    def test_both_superblock_zones_are_gone(self):
        for zone in range(2):
            with open(self.path, "r+b") as f:
                f.seek(zone * ZONE_SIZE)
                f.write(bytes(1 << 20))
        before = json.loads(self.run_tool(self.original, "--format", "json", program=FSCK).stdout)["check"]
        found = self.fsck_json(1, "-y")
        self.assertEqual((found["status"], found["after"]["errors"]), (1, 0))
        for what in ("inodes", "names", "extents"):
            self.assertEqual(found["repair"][what], before[what])
        self.assertEqual(found["repair"]["lost_and_found"], 0)
        self.assertTrue(any("no superblock can be read" in m for m in found["repair"]["messages"]))
        self.fsck(0, "-n")

    def test_a_new_filesystem_where_the_zone_table_was_damaged(self):
        flip(self.path, ZONES * ZONE_SIZE + 20 * 32 + 8)
        self.assertIn("zone 20", self.run_tool("-n", self.path, program=FSCK).stderr)
        subprocess.run([MKFS, "-f", "-q", self.path], check=True, timeout=60, stderr=subprocess.DEVNULL)
        done = self.fsck(0, "-n")
        self.assertEqual(done.stderr, "")

    def test_a_generation_without_any_superblock(self):
        generation = self.json("super", self.path)["newest"]["generation"]
        before = self.fsck_json(0)["check"]
        with open(self.path, "r+b") as f:
            for zone in range(2):
                f.seek(zone * ZONE_SIZE)
                f.write(bytes(1 << 20))
        self.refused(8, "-n", "--generation", str(generation), self.path, program=FSCK, says=["no zfuse filesystem"])
        found = self.fsck_json(1, "-y", "--generation", str(generation))
        self.assertEqual([found["after"][what] for what in ("names", "errors")], [before["names"], 0])

    def test_a_log_that_no_mount_can_replay_is_given_up(self):
        subprocess.run([MAKE_LOG, self.path], check=True, timeout=60)
        self.fsck(4, "-p", says=["the filesystem cannot be mounted read-write"])
        self.assertEqual(self.json("log", self.path)["to_replay"], 2)
        shutil.copyfile(self.path, self.path + ".again")
        self.fsck(1, "-y", says=["the log is discarded", "no errors"])
        self.assertEqual(self.json("log", self.path)["to_replay"], 0)
        self.fsck(0, "-n")
        # The progress never goes back, also if the repair is tried several times.
        os.replace(self.path + ".again", self.path)
        places = [(number, done / total) for number, done, total in self.progress(1, "-y")]
        self.assertEqual(places, sorted(places))

    def test_an_older_generation(self):
        records = self.json("super", self.path)["records"]
        older = str(min(record["generation"] for record in records))
        self.fsck(8, "--generation", "999999")
        done = self.fsck_json(0, "--generation", str(max(record["generation"] for record in records)))
        self.assertEqual(done["check"]["errors"], 0)
        self.assertEqual(self.fsck_json(0, "--generation", older)["check"]["generation"], int(older))

    def test_an_older_generation_becomes_the_newest(self):
        generations = [record["generation"] for record in self.json("super", self.path)["records"]]
        before = self.fsck_json(0, "--generation", str(min(generations)))["check"]
        found = self.fsck_json(1, "-y", "--generation", str(min(generations)))
        self.assertGreater(found["after"]["generation"], max(generations))
        self.assertEqual([found["after"][what] for what in ("inodes", "names", "errors")],
                         [before["inodes"], before["names"], 0])
        self.fsck(0, "-n")

    def newest(self):
        return self.json("super", self.path)["newest"]

    def test_a_damaged_newest_superblock_is_told(self):
        """A damaged newest record is no error, because a power cut may have torn it. But its generation can be
        restored."""
        lost, before = self.newest(), self.fsck_json(0)["check"]
        self.assertEqual(before["messages"], [])
        flip(self.path, lost["address"] + 300)
        check = self.fsck_json(0, "-n")["check"]
        older = self.newest()["generation"]
        self.assertEqual((check["errors"], check["generation"]), (0, older))
        self.assertLess(older, lost["generation"])
        said = [message["text"] for message in check["messages"]]
        self.assertRegex(said[0], rf"^1 superblock record newer than generation {older} is damaged\. .* from generation {older},")
        self.assertIn(f"fsck.zfuse -y --generation {lost['generation']} {self.path}'", said[1])
        self.assertEqual(len(said), 2)
        self.fsck(8, "-n", "--generation", str(lost["generation"]))
        self.fsck(8, "-y", "--generation", str(lost["generation"] + 1))
        found = self.fsck_json(1, "-y", "--generation", str(lost["generation"]))
        self.assertEqual([found["after"][what] for what in ("inodes", "names", "extents", "messages")],
                         [before[what] for what in ("inodes", "names", "extents", "messages")])
        self.assertGreater(found["after"]["generation"], lost["generation"])

    def test_a_damaged_newest_superblock_of_files_that_cannot_be_read(self):
        address, leaf = self.newest()["address"], self.leaf()
        flip(self.path, address + 300)
        flip(self.path, leaf + 500)
        messages = self.fsck_json(0, "-n")["check"]["messages"]
        self.assertEqual([message["level"] for message in messages], ["warning"])

    def progress(self, status, *options):
        """The lines of progress on a descriptor: (pass, done, total)."""
        with open(os.path.join(self.folder.name, "progress"), "w+") as f:
            done = subprocess.run([FSCK, *options, f"-C{f.fileno()}", self.path], pass_fds=[f.fileno()], timeout=60,
                                  capture_output=True, check=False)
            self.assertEqual(done.returncode, status, done)
            f.seek(0)
            lines = [re.fullmatch(rf"(\d+) (\d+) (\d+) {re.escape(self.path)}", line.rstrip("\n")) for line in f]
        self.assertTrue(all(lines), lines)
        return [tuple(map(int, line.groups())) for line in lines]

    def test_progress(self):
        last = self.progress(0)[-1]
        self.assertEqual((last[0], last[1]), (1, last[2]))

    def test_progress_of_a_repair_never_goes_back(self):
        flip(self.path, self.leaf() + 500)
        told = self.progress(1, "-y")
        places = [(number, done / total) for number, done, total in told]
        self.assertEqual(places, sorted(places))
        self.assertEqual({number for number, _ in places}, {1, 2, 3})
        for number in (2, 3):
            self.assertEqual(max(place for place in places if place[0] == number)[1], 1)
        parts = [place for number, place in places if number == 2]
        # In the trial and in the repair itself, while they read and while they write.
        for low, high in ((0, 0.15), (0.15, 0.4), (0.4, 0.5), (0.5, 0.65), (0.65, 1)):
            self.assertTrue(any(low < part <= high for part in parts), (low, high, parts))

    def test_what_is_no_filesystem(self):
        with open(self.path, "r+b") as f:
            for zone in range(ZONES):
                f.seek(zone * ZONE_SIZE)
                f.write(bytes(ZONE_SIZE))
        done = self.fsck(8, "-y")
        self.assertIn("no zfuse filesystem", done.stderr)


class Label(ImageTest):
    """Labels of images that are not mounted; tests/mount/zfusectl has mounted ones."""

    def setUp(self):
        super().setUp()
        self.damaged_copy()

    def change(self, label):
        done = self.run_tool("label", self.path, label)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), done)
        self.assertEqual(self.text("label", self.path), label + "\n")
        self.assertEqual(self.json("status", self.path)["label"], label)
        self.assertIn("no errors", self.text("check", self.path))

    def test_it_is_changed_and_taken_away(self):
        self.assertEqual(self.text("label", self.path), "sample\n")
        for label in ("other", "Größe 1", "x" * 63, ""):
            with self.subTest(label=label):
                self.change(label)
        self.assertTrue(self.json("status", self.path)["clean"])

    def test_what_is_no_label_is_refused(self):
        for label in ("x" * 64, "ä" * 32, "two\nlines", "\x1b[31m", "\udcff"):
            with self.subTest(label=label):
                self.refused(2, "label", self.path, label, says=["UTF-8 of at most 63 bytes"])
        self.assertEqual(self.text("label", self.path), "sample\n")

    def test_one_in_use_says_how(self):
        with open(self.path, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            self.refused(1, "label", self.path, "new", says=[str(os.getpid()), "give the directory"])


class Grow(ImageTest):
    """An image that is not mounted becomes larger; tests/mount/grow has mounted ones."""

    def setUp(self):
        super().setUp()
        self.damaged_copy()

    def grown(self, *args):
        done = self.run_tool("grow", *args, self.path)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertIn("no errors", self.text("check", "--data", self.path))
        return done.stdout

    def zone_count(self):
        return self.json("status", self.path)["zone_count"]

    def test_to_a_size(self):
        self.assertEqual(self.grown("--size", "100M"), f"grown from {ZONES * 2}M to 100M, {ZONES} to 50 zones\n")
        self.assertEqual((self.zone_count(), len(self.json("zones", self.path)["zones"])), (50, 50))
        self.assertEqual(self.grown("--size", "100M"), "it has 100M already, 50 zones\n")
        self.assertEqual(json.loads(self.grown("-s", "160M", "--format", "json")),
                         {"zones_before": 50, "zones": 80, "bytes_before": 100 << 20, "bytes": 160 << 20})

    def test_to_the_end_of_its_file(self):
        self.grown("--size", "100M")
        os.truncate(self.path, 140 << 20)
        self.assertEqual(self.zone_count(), 50)
        self.assertEqual(self.grown(), "grown from 100M to 138M, 50 to 69 zones\n")
        self.assertEqual(self.zone_count(), 69)

    def test_what_cannot_be_changes_nothing(self):
        for code, args, says in (
                (1, ("grow", self.path), f"has all {ZONES} zones of its device"),
                (2, ("grow", "--size", "10M", self.path), "cannot become smaller"),
                (2, ("grow", "--size", "67108865", self.path), "use 67108864 or 69206016"),
                (2, ("grow", "--size", "8E", self.path), "is not a size"),
                (2, ("grow", "--size", "9E", self.path), "is not a size"),
                (2, ("grow", "--size", "0", self.path), "is not a size"),
                (2, ("grow", "--size", "-1", self.path), "is not a size"),
                (2, ("grow", self.path, "100M"), "too many arguments"),
                (2, ("grow", "--format", "dot", self.path), "is none of text|json"),
                (2, ("grow",), "missing TARGET"),
                (1, ("grow", self.folder.name), f"{self.folder.name}: not a zfuse mount\n")):
            with self.subTest(args=args):
                self.refused(code, *args, says=[says])
                self.assertLessEqual(os.path.getsize(self.path), os.path.getsize(self.original))

    def test_more_zones_than_there_can_be(self):
        done = self.run_tool("grow", "--size", "4E", self.path)
        self.assertEqual(done.returncode, 2, done)
        self.assertIn("zones", done.stderr)
        self.assertEqual(self.zone_count(), ZONES)

    def test_one_in_use_says_how(self):
        with open(self.path, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            self.refused(1, "grow", "--size", "1G", self.path, says=[str(os.getpid()), "give the directory"])


class Image(ImageTest):
    """A filesystem moves to another image and back; tests/fs/test_copy.c tests the state after an interruption."""

    def setUp(self):
        super().setUp()
        self.copy = os.path.join(self.folder.name, self.id() + ".copy")

    def make_copy(self, *args):
        done = self.run_tool("image", *args)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertIn("no errors", self.text("check", "--data", self.copy))
        return done.stdout

    def make_disk(self, geometry):
        subprocess.run([MKFS, "-q", "--image", geometry, self.copy], check=True, timeout=60)

    def test_export_makes_the_same_zones_with_the_same_bytes(self):
        before = digest(self.path)
        self.assertEqual(self.make_copy("export", self.path, self.copy),
                         f"copied {ZONES} zones from {self.path} (image) to {self.copy} (image)\n")
        self.assertEqual(digest(self.path), before)
        self.assertEqual(self.json("zones", self.copy), self.json("zones", self.path))
        with open(self.path, "rb") as a, open(self.copy, "rb") as b:
            self.assertEqual(a.read(ZONES * ZONE_SIZE), b.read(ZONES * ZONE_SIZE))
        # Only the bytes below the write pointers take space.
        written = sum(z["write_pointer"] for z in self.json("zones", self.path)["zones"])
        self.assertLess(os.stat(self.copy).st_blocks * 512, written + (2 << 20))

    def test_a_copy_tells_how_far_it_has_come(self):
        done = self.run_tool("image", "export", "--progress=json", self.path, self.copy)
        self.assertEqual(done.returncode, 0, done)
        last = json.loads(done.stderr.splitlines()[-1])
        written = sum(z["write_pointer"] for z in self.json("zones", self.path)["zones"])
        self.assertEqual((last["unit"], last["done"], last["total"]), ("bytes", last["total"], written))
        self.assertGreater(last["per_second"], 0)
        self.assertEqual(last["seconds_left"], 0)
        os.unlink(self.copy)
        for quiet in (("-q", "--progress=json"), ("--progress=off",), ()):
            self.assertEqual(self.run_tool("image", "export", "-f", *quiet, self.path, self.copy).stderr, "")

    def test_export_of_what_the_log_holds(self):
        self.damaged_copy()
        subprocess.run([MAKE_LOG, self.path], check=True, timeout=60)
        done = self.run_tool("image", "export", self.path, self.copy)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertEqual(self.json("log", self.copy), self.json("log", self.path))

    def test_import_to_a_disk_of_another_make(self):
        self.make_disk("size=80M,zone-size=2M,max-open=9,max-active=9,append-limit=64K")
        self.refused(1, "image", "import", self.path, self.copy, says=[self.copy, "a zfuse filesystem", "give -f"])
        self.assertIn("has 40 zones: 'zfusectl grow", self.make_copy("import", "--force", self.path, self.copy))
        self.assertEqual(self.json("status", self.copy)["label"], "sample")
        done = self.run_tool("grow", self.copy)
        self.assertEqual((done.returncode, done.stdout), (0, "grown from 64M to 80M, 32 to 40 zones\n"), done)
        self.assertIn("no errors", self.text("check", "--data", self.copy))
        # Copies it back, to a third image.
        self.path, self.copy = self.copy, self.copy + ".back"
        self.assertEqual(self.make_copy("export", "--quiet", self.path, self.copy), "")

    def test_import_says_what_does_not_fit_and_changes_nothing(self):
        for geometry, says in (("size=128M,zone-size=4M", "zone size of 4194304, the filesystem"),
                               ("size=64M,zone-size=2M,zone-capacity=1M", "zone capacity of 1048576, the"),
                               ("size=62M,zone-size=2M", "number of zones of 31, the"),
                               ("size=64M,zone-size=2M,conventional=4", "conventional zones of 4, the")):
            with self.subTest(geometry=geometry):
                self.make_disk(geometry)
                before = digest(self.copy)
                self.refused(1, "image", "import", "-f", self.path, self.copy, says=[says])
                self.assertEqual(digest(self.copy), before)
                os.unlink(self.copy)

    def test_what_is_in_the_way_of_an_export_stays(self):
        with open(self.copy, "w", encoding="ascii") as f:
            f.write("precious")
        self.refused(1, "image", "export", self.path, self.copy, says=["8 bytes", "give -f"])
        self.refused(1, "image", "export", self.path, self.path, says=["are the same"])
        # Nothing is written, too, if the source is no filesystem.
        empty = self.copy + ".empty"
        with open(empty, "wb") as f:
            f.truncate(64 << 20)
        self.refused(1, "image", "export", "-f", empty, self.copy, says=["not a zoned image"])
        with open(self.copy, encoding="ascii") as f:
            self.assertEqual(f.read(), "precious")
        self.make_copy("export", "-f", self.path, self.copy)

    def test_an_image_without_a_filesystem_is_no_source(self):
        self.make_disk("size=64M,zone-size=2M")
        with open(self.copy, "r+b") as f:
            f.write(bytes(2 * ZONE_SIZE))
        target = self.copy + ".target"
        self.refused(1, "image", "export", self.copy, target, says=["no zfuse filesystem on it"])
        self.assertFalse(os.path.exists(target))

    def test_an_export_that_fails_leaves_no_file(self):
        target = os.path.join(self.folder.name, "no", "such", "folder")
        self.refused(1, "image", "export", self.path, target, says=[target])

    def test_usage(self):
        for args, says in (((), "missing COMMAND"), (("move", "a", "b"), "'image move'"), (("export", "a"), "missing FILE"),
                           (("import", "a", "b", "c"), "too many arguments: 'c'"), (("export", "-x"), "--help")):
            with self.subTest(args=args):
                self.refused(2, "image", *args, says=[says])


class Hostile(ImageTest):
    """Whatever an image contains, each command ends with an answer or a message, never with a signal or a hang (P7)."""

    COMMANDS = (("super",), ("zones",), ("log",), ("tree",), ("tree", "-t", "zone"), ("df",), ("check", "-d"),
                ("status",), ("restore", "--dry-run"))

    def survives(self, what):
        for args in self.COMMANDS:
            done = self.run_tool(*args, self.path)
            self.assertIn(done.returncode, (0, 1), (what, args, done))
            self.assertTrue(done.stdout or done.stderr, (what, args))
        done = self.run_tool(self.path, program=FSCK)
        self.assertIn(done.returncode, (0, 4, 8), (what, done))
        done = self.run_tool("-y", self.path, program=FSCK)
        self.assertIn(done.returncode, (0, 1, 4, 8), (what, done))
        if done.returncode <= 1:
            again = self.run_tool("-n", self.path, program=FSCK)
            self.assertEqual(again.returncode, 0, (what, done, again))

    def test_random_bytes_anywhere(self):
        seed = int(os.environ.get("ZF_SEED") or random.randrange(1 << 32))
        draw = random.Random(seed)
        size = os.path.getsize(self.original)
        meta = [z["start"] for z in self.json("zones", self.path)["zones"] if z["role"] == "meta"]
        places = [(0, 8192), (ZONES * ZONE_SIZE, size - ZONES * ZONE_SIZE)] + [(m, 300000) for m in meta]
        self.damaged_copy()
        for turn in range(12):
            start, length = places[turn % len(places)]
            offsets = [start + draw.randrange(length) for _ in range(1 << draw.randrange(5))]
            shutil.copyfile(self.original, self.path)
            for offset in offsets:
                flip(self.path, offset)
            self.survives(f"ZF_SEED={seed}, turn {turn}: bytes flipped at {offsets}")

    def test_a_truncated_image(self):
        self.damaged_copy()
        for size in (ZONES * ZONE_SIZE, ZONE_SIZE, 5000, 4096, 1, 0):
            os.truncate(self.path, size)
            for args in self.COMMANDS:
                self.refused(1, *args, self.path, says=[self.path])


class Table(ImageTest):
    """The help and the manual page agree with the table of commands, which the parser uses."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(COMMANDS, encoding="ascii") as f:
            cls.commands = json.load(f)

    def assert_fits_a_terminal(self, text):
        self.assertEqual([line for line in text.splitlines() if len(line) > 80], [])

    def test_help_lists_every_command(self):
        text = self.text("--help")
        self.assert_fits_a_terminal(text)
        self.assertEqual(text, self.text("help"))
        for command in self.commands:
            self.assertRegex(text, rf"(?m)^  {command['name']} .* {re.escape(command['help'])}$")

    def test_help_of_two_words_lists_what_they_begin(self):
        text = self.text("gc", "--help")
        self.assertEqual(text, self.text("help", "gc"))
        self.assertEqual(re.findall(r"(?m)^  (gc \w+)", text), ["gc status", "gc run", "gc pause", "gc resume"])
        self.assertNotIn("image", text.split("\n\n")[1])

    def test_each_command_tells_its_operands_and_options(self):
        for command in self.commands:
            with self.subTest(command=command["name"]):
                words = command["name"].split()
                text = self.text(*words, "--help")
                self.assertEqual(text, self.text("help", *words))
                self.assert_fits_a_terminal(text)
                self.assertIn(f"Usage: zfusectl {command['name']} [OPTIONS] {' '.join(command['operands'])}\n", text)
                listed = re.findall(r"(?m)^  (?:-(\w),)? +--([\w-]+)(?: (\S+))?(?:  |$)", text)
                self.assertEqual(listed, [(o["letter"], o["name"], o["value"] or "") for o in command["options"]])

    def test_help_comes_before_what_is_missing_or_wrong(self):
        self.assertIn("Usage: zfusectl node ", self.text("node", "--help"))
        self.assertIn("Usage: zfusectl node ", self.text("node", "a", "b", "c", "-h"))

    def test_the_manual_page_has_every_command_and_option(self):
        with open(MANUAL, encoding="utf-8") as f:
            page = f.read()
        lines = set(page.split("# DESCRIPTION")[0].replace("++\n", "\n").splitlines())
        expected = {"*zfusectl help* [_COMMAND_]", "*zfusectl* *--help*|*--version*"}
        for command in self.commands:
            operands = " ".join(re.sub(r"\w+", r"_\g<0>_", operand) for operand in command["operands"])
            expected.add(f"*zfusectl {command['name']}* [_OPTION_]... {operands}")
        self.assertEqual({line for line in lines if line.startswith("*zfusectl")}, expected)
        options = {(option["letter"], option["name"]) for command in self.commands for option in command["options"]}
        documented = re.findall(r"(?m)^(?:\*-(\w)\*, )?\*--([\w-]+)\*", page)
        self.assertEqual(set(documented) - {("V", "version")}, options)
        self.assertEqual(len(documented), len(set(documented)), "an option is there twice")


class Usage(ImageTest):
    def test_wrong_usage_is_refused_with_2(self):
        for args, says in (
                ((), "missing COMMAND"),
                (("frobnicate", self.path), "unknown command 'frobnicate'"),
                (("stat", self.path), "did you mean stats?"),
                (("super",), "zfusectl super: missing TARGET"),
                (("super", self.path, "more"), "too many arguments"),
                (("super", "--format", "yaml", self.path), "'yaml' is none of text|json"),
                (("super", "--format", "dot", self.path), "'dot' is none of text|json"),
                (("zones", "--tree", "fs", self.path), "unrecognized option '--tree'"),
                (("tree", "--data", self.path), "unrecognized option '--data'"),
                (("tree", "--tree", "oak", self.path), "'oak' is none of root|fs|summary|share|zone"),
                (("tree", "--hex", self.path), "unrecognized option '--hex'"),
                (("tree", "--fold", "0", "--format", "dot", self.path), "'0' is not a number"),
                (("tree", "--fold", "3", self.path), "--fold needs --format dot"),
                (("tree", "--since", "3", "--format", "json", self.path), "--since needs --format dot"),
                (("zones", "--hex", self.path), "unrecognized option '--hex'"),
                (("node", self.path), "missing ADDRESS"),
                (("node", self.path, "12three"), "no address"),
                (("node", self.path, "-4096"), "invalid option"),
                (("node", self.path, "4097"), "multiple of 4096"),
                (("node", self.path, str(1 << 60)), "below"),
                (("file", self.path), "missing PATH"),
                (("metrics", "--format", "json", self.path), "unrecognized option '--format'"),
                (("metrics", self.path, "more"), "too many arguments"),
                (("gc",), "zfusectl gc: missing COMMAND"),
                (("gc", "stop", self.path), "unknown command 'gc stop'"),
                (("gc", "run"), "missing MOUNTPOINT"),
                (("gc", "run", self.path, "more"), "too many arguments"),
                (("gc", "run", "--zones", "0", self.path), "'0' is not a number"),
                (("gc", "run", "--zones", "2x", self.path), "'2x' is not a number"),
                (("gc", "pause", "--all", self.path), "unrecognized option '--all'"),
                (("gc", "status", "--zones", "1", self.path), "unrecognized option '--zones'"),
                (("gc", "status", "--format", "dot", self.path), "'dot' is none of text|json"),
                (("gc", "status", "--frob", self.path), "unrecognized option"),
                # -f overwrites, in mkfs.zfuse and here.
                (("super", "-f", "json", self.path), "invalid option -- 'f'"),
                (("super", "--frob", self.path), "unrecognized option")):
            with self.subTest(args=args):
                self.refused(2, *args, says=[says])

    def test_what_is_not_there_or_no_device(self):
        missing = os.path.join(self.folder.name, "missing")
        self.refused(1, "super", missing, says=[missing, "No such file"])
        self.refused(1, "super", self.folder.name, says=[f"{self.folder.name}: not a zfuse mount\n"])
        self.refused(1, "metrics", self.folder.name, says=[f"{self.folder.name}: not a zfuse mount\n"])
        self.refused(1, "metrics", missing, says=[missing, "No such file"])
        self.refused(1, "super", "/dev/null", says=["/dev/null"])
        self.refused(1, "file", self.path, "/nowhere", says=["No such file"])
        text = os.path.join(self.folder.name, "text")
        with open(text, "w", encoding="ascii") as f:
            f.write("no image\n" * 10000)
        self.refused(1, "super", text, says=[text])

    def test_an_image_without_a_filesystem(self):
        path = os.path.join(self.folder.name, "empty.img")
        subprocess.run([MKFS, "--image", "size=64M,zone-size=2M", path], check=True, timeout=60,
                       stdout=subprocess.DEVNULL)
        with open(path, "r+b") as f:
            f.write(bytes(4096))
        done = self.run_tool("super", path)
        self.assertIn(done.returncode, (0, 1), done)
        self.refused(1, "check", path, says=[path])

    def test_a_device_in_use_is_waited_for_then_named(self):
        with open(self.path, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            self.refused(1, "status", self.path, says=[self.path, str(os.getpid())])


if __name__ == "__main__":
    ZFUSECTL, FSCK, MAKE_IMAGE, MKFS, MAKE_LOG, COMMANDS, MANUAL = sys.argv[1:8]
    unittest.main(argv=[sys.argv[0], *sys.argv[8:]], verbosity=2)
