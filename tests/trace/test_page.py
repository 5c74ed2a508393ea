# SPDX-License-Identifier: MIT
"""The page of `zfusectl replay` in a headless Chromium. The tests read the contents from the page itself.

    test_page.py SCENES ZFUSECTL [--every-mark]

--every-mark: also checks that each event of a long run has a mark.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from browser import Browser, skip_without  # noqa: E402 (the path comes first)
from gallery import Gallery  # noqa: E402

skip_without()

SCENES, ZFUSECTL = sys.argv[1:3]
HERE = pathlib.Path(__file__).parent
FACTS = (HERE / "facts.js").read_text()
MARKS = (HERE / "marks.js").read_text()
WIDTHS = (360, 800, 1300, 2400)


class TestPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.gallery = Gallery(SCENES, ZFUSECTL, pathlib.Path(cls.directory.name))
        cls.browser = cls.enterClassContext(Browser(width=1300, height=900))
        for scene in ("overtaking", "crash", "holes", "all"):
            cls.gallery.record(scene)
            cls.gallery.replay(scene)

    def open(self, scene, fragment="", width=1300, dark=False, media=""):
        self.browser.look(width, 900, dark, media)
        self.browser.open(self.gallery.path(scene, "html"), fragment)
        self.assertTrue(self.browser.evaluate("document.getElementById('warning').hidden"))

    def js(self, expression):
        return self.browser.evaluate(expression)

    def text(self, name):
        return self.js(f"document.getElementById('{name}').textContent")

    def label(self, name):
        return self.js(f"document.getElementById('{name}').getAttribute('aria-label')")

    def table(self, name):
        """The rows of a table without the first one, as lists of cells."""
        return self.js(f"[...document.querySelectorAll('#{name} tr')].slice(1).map((row) => [...row.cells].map((c) => c.textContent))")

    # ---- the long run: 1 MiB zones, completions out of order ----

    def test_the_page_counts_what_happened(self):
        self.open("all")
        self.js(FACTS)
        facts = json.loads(self.js("JSON.stringify(facts(replay.trace))"))
        self.assertEqual(facts["misfits"], [])
        for name in ("overtakings", "landedOtherwise", "holes", "moved", "swapped", "emptied", "ringTurns"):
            self.assertGreater(facts[name], 0, name)

    def test_every_event_of_short_runs_has_a_mark(self):
        for scene in ("overtaking", "crash", "holes"):
            self.check_marks(scene)

    def check_marks(self, scene):
        self.open(scene)
        self.js(MARKS)
        self.assertEqual(self.js("unmarked()"), [], scene)
        self.assertGreater(self.js("replay.trace.count"), 50)

    def test_every_event_of_a_long_run_has_a_mark(self):
        if "--every-mark" not in sys.argv:
            self.skipTest("only with --every-mark")
        self.check_marks("all")

    def test_the_ring_turns_on_the_page(self):
        self.open("all", "#99999")
        zones = [place.split(" + ")[0] for _, place, _, _ in self.table("ring")]
        self.assertIn("zone 1", zones)
        self.assertTrue(self.js("[...replay.model.state.ring.values()].some(({address}) => replay.trace.zoneOf(address) === 0)"))

    def test_reclaim_and_its_moves_are_on_the_page(self):
        self.open("all")
        for event in ("victim_chosen", "block_moved", "block_swapped", "zone_reset"):
            self.js("""replay.go(0); document.getElementById('search').value = '%s'; document.getElementById('find-next').click()""" % event)
            self.assertEqual(self.js("replay.trace.event(replay.model.position - 1).event"), event)
            self.assertIn("zone", self.text("sentence").lower())
            self.assertGreater(len(self.text("why")), 10)

    def test_every_hole_is_on_the_page(self):
        self.open("holes", "#99999")
        holes = self.js("replay.trace.kinds && Array.from({length: replay.trace.count}, (_, i) => replay.trace.event(i)).filter((e) => e.event === 'hole_written').length")
        self.assertGreater(holes, 4)
        self.assertEqual(self.js("replay.drawn.stream.holes"), holes)
        self.assertEqual(self.label("stream").split(", ").count("hole"), holes)
        self.assertIn(f"{holes} holes", self.text("stream-said"))

    # ---- appends that overtake ----

    def test_what_is_submitted_and_what_landed_have_different_orders(self):
        self.open("overtaking")
        orders = set()
        for position in range(100, self.js("replay.trace.count"), 10):
            self.js(f"replay.go({position})")
            submitted, landed = [part.split(": ")[1] for part in self.label("strip").rstrip(".").replace("Landed, by address: ", "Landed: ").split(". ")]
            orders.add((submitted, landed))
        self.assertTrue(any(landed and landed.split(", ") != sorted(landed.split(", "), key=int) for _, landed in orders), orders)
        self.assertTrue(any(submitted != landed for submitted, landed in orders))

    def test_each_extent_is_at_the_address_of_its_completion(self):
        self.open("overtaking", "#99999")
        fixed = self.js("""Array.from({length: replay.trace.count}, (_, i) => replay.trace.event(i)).filter((e) => e.event === 'extent_fixed').map((e) => ({
            ...e, landed: replay.trace.event(replay.trace.partner[replay.trace.indexOf(e.submitted)]).address}))""")
        self.assertEqual(len(fixed), 24)
        self.assertTrue(all(event["landed"] == event["address"] for event in fixed))
        inode = fixed[0]["inode"]
        self.js(f"document.getElementById('inode').value = {inode}; document.getElementById('inode').dispatchEvent(new Event('input'))")
        zone = self.js("replay.trace.header.zone_size")
        places = {f"zone {e['address'] // zone} + 0x{e['address'] % zone:x}" for e in fixed if e["inode"] == inode}
        self.assertEqual({row[3] for row in self.table("extents")}, places)

    # ---- keys, buttons ----

    def position(self):
        return self.js("replay.model.position")

    def test_keys(self):
        self.open("crash", "#30")
        for key, position in (("ArrowRight", 31), ("ArrowLeft", 30), ("End", self.js("replay.trace.count")), ("Home", 0)):
            self.browser.press(key)
            self.assertEqual(self.position(), position, key)
        self.browser.press("/")
        self.assertEqual(self.js("document.activeElement.id"), "search")
        for letter in "append":
            self.browser.press(letter)
        self.browser.press("Enter")
        self.assertIn("Append", self.text("sentence"))
        before = self.position()
        self.js("document.activeElement.blur()")
        self.browser.press("]")
        self.assertGreater(self.position(), before)
        self.browser.press("x")
        self.assertIn("The power is cut after event", self.text("cut-said"))
        self.assertGreater(len(self.table("cut-paths")), 2)

    def test_it_plays_and_pauses(self):
        self.open("all")
        self.js("document.getElementById('speed').value = '5000'; document.body.focus()")
        self.browser.press(" ")
        self.js("new Promise((resolve) => { const look = () => (replay.model.position > 50 ? resolve() : requestAnimationFrame(look)); look(); })")
        self.browser.press(" ")
        self.assertEqual(self.text("play"), "Play")
        position = self.position()
        self.js("new Promise((resolve) => setTimeout(resolve, 100))")
        self.assertEqual(self.position(), position)

    def test_a_press_on_a_mark_goes_there(self):
        self.open("overtaking", "#150")
        for _ in range(2):
            last = self.js("replay.drawn.lanes.last")
            x, y = self.js("(() => { const r = document.getElementById('lanes').getBoundingClientRect(); return [r.right - 40, r.top + 20]; })()")
            self.js(f"document.getElementById('lanes').dispatchEvent(new MouseEvent('click', {{clientX: {x}, clientY: {y}}}))")
            self.assertLess(abs(self.position() - last), 6)

    # ---- how it looks, and how it is read ----

    def test_nothing_is_wider_than_the_window(self):
        for width in WIDTHS:
            self.open("crash", "#60/2", width=width)
            self.assertLessEqual(self.js("document.documentElement.scrollWidth"), width)
            cut_off = self.js("""[...document.querySelectorAll('section')].filter((s) => !s.hidden && s.scrollWidth > s.clientWidth + 1
                && getComputedStyle(s).overflowX === 'hidden').map((s) => s.getAttribute('aria-labelledby'))""")
            self.assertEqual(cut_off, [], f"at {width}")

    def test_dark_and_light_and_print(self):
        seen = {}
        for name, dark, media in (("light", False, ""), ("dark", True, ""), ("print", True, "print")):
            self.open("crash", "#60", dark=dark, media=media)
            seen[name] = self.js("getComputedStyle(document.body).backgroundColor")
            ratios = self.js("""(() => {
                const light = (text) => { const c = text.match(/[\\d.]+/g).slice(0, 3).map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92
                    : ((v / 255 + 0.055) / 1.055) ** 2.4)); return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]; };
                const back = (element) => (/, 0\\)$/.test(getComputedStyle(element).backgroundColor) ? back(element.parentElement) : getComputedStyle(element).backgroundColor);
                return ['.legend', '.legend i', '#meaning', '#inode', '#cut-said', 'th'].map((selector) => {
                    const element = document.querySelector(selector);
                    const [a, b] = [light(getComputedStyle(element).color), light(back(element))].sort((x, y) => y - x);
                    return [selector, (a + 0.05) / (b + 0.05)]; }); })()""")
            for selector, ratio in ratios:
                self.assertGreater(ratio, 4.5, f"{name}: {selector}")
        self.assertEqual(seen["print"], "rgb(255, 255, 255)")
        self.assertNotEqual(seen["light"], seen["dark"])
        self.assertEqual(self.js("getComputedStyle(document.getElementById('controls')).display"), "none")

    def test_who_does_not_see_is_told(self):
        self.open("overtaking", "#150")
        self.assertEqual(self.js("[...document.querySelectorAll('canvas')].filter((c) => c.getAttribute('role') !== 'img' || !c.getAttribute('aria-label')).map((c) => c.id)"), [])
        self.assertEqual(self.js("[...document.querySelectorAll('input, select')].filter((i) => !i.labels.length && !i.getAttribute('aria-label')).map((i) => i.id)"), [])
        self.assertEqual(self.js("[...document.querySelectorAll('button')].filter((b) => !/[a-z]/i.test(b.textContent)).map((b) => b.id)"), [])
        self.assertEqual(self.js("[...document.querySelectorAll('section')].filter((s) => !s.getAttribute('aria-label') && !document.getElementById(s.getAttribute('aria-labelledby')) && !s.querySelector('h2')).length"), 0)
        self.assertEqual(self.js("document.getElementById('said').getAttribute('aria-live')"), "polite")

    def test_it_asks_nobody_for_anything(self):
        self.browser.ask("Network.enable")
        self.browser.events.clear()
        self.open("crash", "#60")
        asked = [e["params"]["request"]["url"] for e in self.browser.events if e.get("method") == "Network.requestWillBeSent"]
        self.browser.ask("Network.disable")
        self.assertGreater(len(asked), 0)
        self.assertEqual([url for url in asked if not url.startswith(("file:", "about:"))], [])
        self.assertEqual(len({url for url in asked if url.startswith("file:")}), 1)

    def test_many_operations_at_once_all_have_marks(self):
        """A made trace: 40 operations begin before any ends."""
        trace = self.gallery.path("overtaking", "trace").read_bytes()
        header, records = trace[:248], bytearray()
        for sequence in range(1, 81):
            number = 10 if sequence <= 40 else 11
            payload = (b"" if sequence <= 40 else (sequence - 40).to_bytes(8, "little")) + bytes(8)
            records += sequence.to_bytes(8, "little") * 2 + bytes(4) + number.to_bytes(2, "little") + bytes(2) + payload.ljust(40, b"\0")
        self.gallery.path("many", "trace").write_bytes(header + records)
        subprocess.run([ZFUSECTL, "replay", self.gallery.path("many", "trace"), "-o", self.gallery.path("many", "html")], check=True)
        self.browser.look(1300, 900)
        self.browser.open(self.gallery.path("many", "html"))
        self.js(MARKS)
        self.assertEqual(self.js("unmarked()"), [])


every = [argument for argument in sys.argv[3:] if argument != "--every-mark"]
unittest.main(argv=[sys.argv[0], *every])
