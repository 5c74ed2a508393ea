# SPDX-License-Identifier: MIT
"""The page of `zfusectl replay`: its contents; and no trace, however damaged, breaks the page or the model.

    test_replay.py CRASH ZFUSECTL DOCS
"""
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from replay import page_of, state_of  # noqa: E402 (the path comes first)

CRASH, ZFUSECTL, DOCS = sys.argv[1:4]
HEADER, RECORD = 248, 64
WORKLOAD = slice(120, 184)


class Replay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.path = pathlib.Path(cls.directory.name)
        seeded = cls.path / "seeded"
        subprocess.run([CRASH, "--ops", "400", "--repeat", "3", "--trace", seeded], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        cls.bytes = seeded.read_bytes()
        cls.page = page_of(ZFUSECTL, seeded, cls.path / "seeded.html").read_text()
        cls.state = state_of(cls.path / "seeded.html")

    def page_of_bytes(self, data):
        (self.path / "trace").write_bytes(data)
        return page_of(ZFUSECTL, self.path / "trace", self.path / "page.html")

    def records(self):
        return [self.bytes[at:at + RECORD] for at in range(HEADER, len(self.bytes), RECORD)]

    def run_replay(self, *args):
        return subprocess.run([ZFUSECTL, "replay", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)

    # ---- what is in it ----

    def test_it_needs_nothing_else(self):
        self.assertIn("default-src 'none'", self.page)
        self.assertIsNone(re.search(r"https?:|\bsrc\s*=|\bhref\s*=|@import|url\(", self.page))
        self.assertIsNone(re.search(r"@\w+(\.\w+)?@", self.page), "a place that nothing filled")

    def test_every_event_has_a_mark(self):
        self.assertEqual(self.state["unmarked"], [])

    def test_every_event_says_why(self):
        self.assertGreater(len(self.state["sections"]), 20)
        for mark in self.state["sections"]:
            document = (pathlib.Path(DOCS) / mark["document"]).read_text()
            headings = re.findall(r"^#+ (.*)$", document, re.M)
            self.assertIn(mark["section"], headings, f"{mark['name']}: docs/{mark['document']}")

    def test_every_control_is_in_the_page(self):
        script = self.page[self.page.index("const $ ="):]
        asked = set(re.findall(r"""\$\("([\w-]+)"\)|clear\("(\w+)"|rows\("(\w+)"|onPress\("(\w+)\"""", script))
        for name in {name for names in asked for name in names if name}:
            self.assertIn(f'id="{name}"', self.page)

    def test_without_a_file_it_is_printed(self):
        self.assertEqual(self.run_replay(self.path / "seeded").stdout, self.page)

    def test_the_same_trace_gives_the_same_page(self):
        self.assertEqual(self.page_of_bytes(self.bytes).read_text(), self.page)

    def test_every_step_is_drawn_and_every_control_works(self):
        said = state_of(self.path / "seeded.html", "page.js")
        self.assertEqual(said["warning"], "")
        self.assertGreater(len(said["steps"]), 20)
        for step in said["steps"]:
            self.assertTrue(step["marked"], step)
            self.assertRegex(step["sentence"], r"^[^\0]{15,}\.$")
            self.assertNotRegex(step["sentence"], "undefined|NaN|null")
        self.assertIn("one 3", said["found"])
        self.assertRegex(said["position"], r"^\d+ of 4,124$")

    def test_the_power_can_be_cut_at_every_step(self):
        trace, data = self.path / "cut", self.path / "cut.data"
        subprocess.run([CRASH, "--ops", "400", "--repeat", "3", "--trace", trace, "--trace-data", data], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        self.assertEqual(trace.read_bytes(), self.bytes)
        page = self.path / "cut.html"
        subprocess.run([ZFUSECTL, "replay", trace, "--trace-data", data, "-o", page], check=True)
        said = state_of(page, "page.js")["cuts"]
        self.assertEqual(len(said), 6)
        for number, (found, promised, survived, gone, command) in enumerate(said):
            event, outcome = re.match(r"The power is cut after event ([\d,]+), outcome (\d+)\. A mount picks the superblock of "
                                      r"generation \d+, in zone [01] ", found).groups()
            self.assertEqual(int(outcome), 1 + (number + 1) // 2)
            self.assertIn(f"--at {event.replace(',', '')} --outcome {outcome}", command)
            self.assertTrue(promised.endswith("All of that is there."), promised)
            self.assertRegex(survived, r"^Survived: of \d+ commands? in flight \d+ w")
            self.assertRegex(gone, r"^Gone: .*\.$")

    def test_without_the_data_it_says_how_to_get_it(self):
        said = state_of(self.path / "seeded.html", "page.js")["cuts"]
        self.assertTrue(all("zfusectl replay TRACE --trace-data FILE" in found for found, *_ in said))

    # ---- traces that are not whole ----

    def test_a_trace_without_events(self):
        state = state_of(self.page_of_bytes(self.bytes[:HEADER]))
        self.assertEqual((state["count"], state["zones"], state["superblock"]), (0, [], None))
        said = state_of(self.path / "page.html", "page.js")
        self.assertEqual((said["steps"], said["found"]), ([], "The trace has no events."))

    def test_a_trace_that_was_cut_off(self):
        state = state_of(self.page_of_bytes(self.bytes[:HEADER + 1010 * RECORD + 17]))
        self.assertEqual((state["count"], state["missing"], state["ended"], state["misfits"]), (1010, 0, None, []))
        self.assertEqual(state["commands"] + state["operations"], [])

    def test_what_is_missing_is_counted_and_what_contradicts_is_said(self):
        completions = [i for i, r in enumerate(self.records()) if struct.unpack_from("<H", r, 20)[0] == 21]
        left = [r for i, r in enumerate(self.records()) if i not in completions[5:25]]
        state = state_of(self.page_of_bytes(self.bytes[:HEADER] + b"".join(left)))
        self.assertEqual((state["missing"], len(state["commands"])), (20, 20))
        self.assertIn("its command has not completed", {event["misfit"] for event in state["misfits"]})
        said = state_of(self.path / "page.html", "page.js")
        self.assertIn("20 events are not in it", said["warning"])
        self.assertIn("contradict", said["warning"])

    # ---- traces of anybody ----

    def test_what_is_no_trace_is_refused(self):
        for data, text in ((b"x" * 1000, "is no trace of zfuse"), (b"", "is no trace of zfuse"),
                           (self.bytes[:8] + b"\2" + self.bytes[9:], "is a trace of version 2"),
                           (self.bytes[:16] + b"\1" + self.bytes[17:], "damaged")):
            (self.path / "trace").write_bytes(data)
            ran = self.run_replay(self.path / "trace", "-o", self.path / "none.html")
            self.assertEqual(ran.returncode, 1)
            self.assertIn(text, ran.stderr)
            self.assertFalse((self.path / "none.html").exists())

    def test_too_many_events_are_refused(self):
        with open(self.path / "long", "wb") as file:
            file.write(self.bytes[:HEADER])
            file.truncate(HEADER + 2000001 * RECORD)
        ran = self.run_replay(self.path / "long")
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertIn("has 2000001 events, and a page can play 2000000: trace a shorter run", ran.stderr)

    def test_a_page_that_cannot_be_written_is_said(self):
        ran = self.run_replay(self.path / "seeded", "--output", "/nowhere/page.html")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("/nowhere/page.html: No such file or directory", ran.stderr)

    def test_text_of_a_trace_ends_no_script(self):
        text = b"</script><!--<script>alert(1)</script>"
        data = bytearray(self.bytes)
        data[WORKLOAD] = text.ljust(64, b"\0")
        page = self.page_of_bytes(bytes(data))
        self.assertEqual(len(re.findall("<script|<!--", page.read_text())), len(re.findall("<script|<!--", self.page)))
        self.assertEqual(state_of(page)["header"]["workload"], text.decode())

    def test_the_model_bears_any_records(self):
        draw = random.Random(7)
        data = bytearray(self.bytes)
        for _ in range(3000):
            data[draw.randrange(HEADER, len(data))] = draw.randrange(256)
        self.assertGreater(len(state_of(self.page_of_bytes(bytes(data)))["misfits"]), 0)
        noise = b"".join(draw.randbytes(16) + struct.pack("<IHH", i % 3, draw.randrange(96), 0) + draw.randbytes(40) for i in range(4000))
        self.assertEqual(state_of(self.page_of_bytes(self.bytes[:HEADER] + noise))["count"], 4000)
        self.assertGreater(len(state_of(self.path / "page.html", "page.js")["steps"]), 50)


unittest.main(argv=sys.argv[:1])
