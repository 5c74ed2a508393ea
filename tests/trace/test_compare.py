# SPDX-License-Identifier: MIT
"""The page of two traces, in a headless Chromium and on the command line.

    test_compare.py SCENES ZFUSECTL
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from browser import Browser, skip_without  # noqa: E402 (the path comes first)
from gallery import PAIRS, Gallery  # noqa: E402

skip_without()

SCENES, ZFUSECTL = sys.argv[1:3]
FITTED = """new Promise((resolve) => {
    const isFitted = (frame) => Math.abs(frame.clientHeight - frame.contentDocument.body.clientHeight) <= 2;
    const look = () => ([...document.querySelectorAll("iframe")].every(isFitted) ? resolve() : requestAnimationFrame(look));
    look();
})"""


class TestCompare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.path = pathlib.Path(cls.directory.name)
        cls.gallery = Gallery(SCENES, ZFUSECTL, cls.path)
        cls.gallery.make()
        cls.browser = cls.enterClassContext(Browser(width=1600, height=900))

    def open(self, name, fragment="", width=1600):
        self.browser.look(width, 900)
        self.browser.open(self.path / f"{name}.html", fragment)
        self.assertTrue(self.js("document.getElementById('warning').hidden"))

    def js(self, expression):
        return self.browser.evaluate(expression)

    def positions(self):
        return self.js("replay.sides().map((side) => side.model.position)")

    def numbers(self):
        """{words: [left, right]}"""
        rows = self.js("[...document.querySelectorAll('#numbers tr')].slice(1).map((row) => [...row.cells].map((c) => c.textContent))")
        return {words: sides for words, *sides in rows}

    # ---- side by side ----

    def test_every_pair_of_the_gallery_plays_to_its_end(self):
        for name, _, _ in PAIRS:
            self.open(name)
            counts = self.js("replay.sides().map((side) => side.trace.count)")
            self.browser.press("End")
            self.assertEqual(self.positions(), counts, name)
            self.browser.press("Home")
            self.assertEqual(self.positions(), [0, 0], name)

    def test_by_operation_both_stand_behind_the_same_one(self):
        self.open("log-or-commit")
        self.assertEqual(self.js("replay.alignment.operations"), [12, 12])
        ended = self.js("""Array.from({length: replay.alignment.count + 1}, (_, step) => { replay.go(step);
            return replay.sides().flatMap(({trace, model}) => [model.state.ended_operations, trace.event(Math.max(0, model.position - 1)).event]);
            })""")
        for operations in range(1, 13):
            self.assertIn([operations, "operation_ended"] * 2, ended)
        steps = self.js("replay.alignment.positions")
        for side in steps:
            self.assertTrue(all(0 <= b - a <= 1 for a, b in zip(side, side[1:])), "a step is one event at most")

    def test_by_time_both_stand_as_long_after_their_beginning(self):
        self.open("log-or-commit")
        self.js("document.getElementById('by').value = 'time'; document.getElementById('by').dispatchEvent(new Event('change'))")
        for step in (1, 40, 80):
            self.js(f"replay.go({step})")
            times = self.js("replay.sides().map(({trace, model}) => trace.time(model.position - 1) - trace.time(0))")
            self.assertEqual(times, [step - 1, step - 1])
        self.browser.press("End")
        self.assertEqual(self.positions(), self.js("replay.sides().map((side) => side.trace.count)"))

    def test_who_moves_one_moves_the_other(self):
        self.open("append-or-lock", "#100")
        for side, other in ((0, 1), (1, 0)):
            before = self.positions()
            self.js(f"replay.sides()[{side}].go({before[side] + 20})")
            after = self.positions()
            self.assertEqual(after[side], before[side] + 20)
            self.assertGreater(after[other], before[other])
            self.assertEqual(after, self.js("replay.alignment.positions.map((list) => list[replay.step])"))

    def test_keys_in_a_frame_move_both(self):
        self.open("append-or-lock", "#100")
        self.js("document.querySelector('iframe').contentWindow.focus()")
        before = self.js("replay.step")
        self.browser.press("ArrowRight")
        self.assertEqual(self.js("replay.step"), before + 1)
        self.browser.press("Home")
        self.assertEqual(self.positions(), [0, 0])

    def test_it_plays(self):
        self.open("append-or-lock")
        self.js("document.getElementById('speed').value = '500'; document.getElementById('play').click()")
        self.js("new Promise((resolve) => { const look = () => (replay.step > 50 ? resolve() : requestAnimationFrame(look)); look(); })")
        self.js("document.getElementById('play').click()")
        self.assertEqual(self.positions(), self.js("replay.alignment.positions.map((list) => list[replay.step])"))

    # ---- what the issue wants compared ----

    def test_the_numbers_of_append_and_lock(self):
        self.open("append-or-lock", "#99999")
        left, right = self.numbers()["commands in flight at once, at most"]
        self.assertGreater(int(left), 10)
        self.assertEqual(right, "1")
        self.assertEqual(*self.numbers()["bytes that programs wrote"])

    def test_the_numbers_of_log_and_commit(self):
        self.open("log-or-commit", "#99999")
        left, right = (float(value) for value in self.numbers()["bytes to the device for each that programs wrote"])
        self.assertGreater(right, 2 * left)
        self.assertEqual(self.numbers()["for the log"][1], "0")
        self.assertEqual(self.numbers()["for nodes"][0], "0")

    def test_the_numbers_of_reclaim(self):
        self.open("cost-benefit-or-greedy", "#99999")
        self.assertNotEqual(*self.numbers()["moved by reclaim"])

    # ---- how it looks ----

    def test_frames_are_as_high_as_their_pages_and_no_wider_than_the_window(self):
        for width in (400, 1000, 1600):
            self.open("append-or-lock", "#150", width)
            self.js(FITTED)
            self.assertLessEqual(self.js("document.documentElement.scrollWidth"), width)
            for height in self.js("[...document.querySelectorAll('iframe')].map((frame) => frame.clientHeight)"):
                self.assertGreater(height, 1000)
            tops = self.js("[...document.querySelectorAll('iframe')].map((f) => f.getBoundingClientRect().top)")
            self.assertEqual(tops[0] == tops[1], width >= 1000)

    def test_who_does_not_see_is_told(self):
        self.open("append-or-lock", "#150")
        self.assertIn("operations that have ended: 2", self.js("document.getElementById('curves').getAttribute('aria-label')"))
        self.assertEqual(self.js("[...document.querySelectorAll('iframe')].map((f) => f.title)"),
                         ["Left: overtaking.trace", "Right: overtaking-one-by-one.trace"])

    # ---- the command ----

    def run_replay(self, *args):
        return subprocess.run([ZFUSECTL, "replay", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)

    def test_it_needs_nothing_else_and_is_the_same_each_time(self):
        traces = [self.path / "fsync.trace", self.path / "fsync-by-commit.trace"]
        page = (self.path / "log-or-commit.html").read_text()
        self.assertEqual(self.run_replay(*traces).stdout, page)
        self.assertIsNone(re.search(r"https?:|\bsrc\s*=|\bhref\s*=|@import|url\(", page))
        self.assertIsNone(re.search(r"@\w+(\.\w+)?@", page), "a place that nothing filled")

    def test_a_name_of_a_file_ends_no_script(self):
        name = self.path / "<script>alert(1)<!--.trace"
        name.write_bytes((self.path / "fsync.trace").read_bytes())
        page = self.path / "named.html"
        self.assertEqual(self.run_replay(name, name, "-o", page).returncode, 0)
        self.browser.open(page)
        self.assertIn("<script>alert(1)<!--.trace", self.js("document.querySelector('iframe').title"))

    def test_data_is_for_one_trace(self):
        ran = self.run_replay(self.path / "crash.trace", self.path / "crash.trace", "--trace-data", self.path / "crash.data")
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertIn("--trace-data is for a page of one trace", ran.stderr)

    def test_each_of_the_two_must_be_a_trace(self):
        good, bad = self.path / "fsync.trace", self.path / "fsync.html"
        for pair in ((good, bad), (bad, good)):
            ran = self.run_replay(*pair, "-o", self.path / "none.html")
            self.assertEqual(ran.returncode, 1)
            self.assertIn("is no trace of zfuse", ran.stderr)
            self.assertFalse((self.path / "none.html").exists())

    def test_an_empty_trace_beside_a_whole_one(self):
        empty = self.path / "empty.trace"
        empty.write_bytes((self.path / "fsync.trace").read_bytes()[:248])
        page = self.path / "with-empty.html"
        self.assertEqual(self.run_replay(empty, self.path / "fsync.trace", "-o", page).returncode, 0)
        for by in ("operation", "time"):
            self.browser.open(page)
            self.js(f"document.getElementById('by').value = '{by}'; document.getElementById('by').dispatchEvent(new Event('change'))")
            self.js("replay.go(99999)")
            self.assertEqual(self.positions(), [0, self.js("replay.sides()[1].trace.count")])


unittest.main(argv=sys.argv[:1])
