# SPDX-License-Identifier: MIT
"""Makes the gallery of scripts/replays: each page shows what its text says, and two runs side by side differ as theirs
says.

    test_gallery.py SCENES ZFUSECTL
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from gallery import PAIRS, Gallery  # noqa: E402 (the path comes first)
from replay import state_of  # noqa: E402

SCENES, ZFUSECTL = sys.argv[1:3]


class TestGallery(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.gallery = Gallery(SCENES, ZFUSECTL, pathlib.Path(cls.directory.name))
        cls.gallery.make()
        variants = [scene for _, both, _ in PAIRS for scene in both]
        names = {name for name, *_ in cls.gallery.scenes} | set(variants)
        cls.facts = {name: state_of(cls.gallery.path(name, "html"), "facts.js") for name in names}

    def test_no_event_contradicts_another(self):
        for name, facts in self.facts.items():
            self.assertEqual(facts["misfits"], [], name)

    def test_a_first_write(self):
        facts = self.facts["first-write"]
        self.assertLess(facts["events"], 100)
        self.assertEqual((facts["commits"], facts["written"], facts["sent"]["data"]), (1, 20480, 20480))

    def test_appends_overtake_each_other(self):
        facts = self.facts["overtaking"]
        self.assertGreater(facts["overtakings"], 10)
        self.assertGreater(facts["landedOtherwise"], 10)
        self.assertEqual(facts["extentsFixed"], 24)

    def test_a_commit_has_holes(self):
        self.assertGreater(self.facts["holes"]["holes"], 4)
        self.assertEqual(self.facts["holes"]["commits"], 1)

    def test_the_ring_turns_and_what_is_full_is_reset(self):
        self.assertEqual((self.facts["ring"]["ringTurns"], self.facts["ring"]["ringResets"]), (2, 1))

    def test_an_fsync_is_one_append(self):
        self.assertEqual(self.facts["fsync"]["fsyncs"], {"all": 6, "oneAppend": 6})
        self.assertEqual(self.facts["fsync"]["commits"], 0)

    def test_a_mount_replays_what_was_durable_by_the_log(self):
        self.assertEqual(self.facts["crash"]["fsyncs"]["all"], 3)
        self.assertEqual(self.facts["recovery"]["replayed"], 3)

    def test_the_run_that_a_power_cut_ends_can_be_cut(self):
        said = state_of(self.gallery.path("crash", "html"), "page.js")["cuts"]
        self.assertEqual(len(said), 6)
        self.assertTrue(all(promised.endswith("All of that is there.") for _, promised, *_ in said))

    def test_reclaim_moves_what_is_live_and_empties_zones(self):
        facts = self.facts["reclaim"]
        self.assertEqual((facts["victims"], facts["moved"] > 100, facts["swapped"]), (12, True, facts["moved"]))
        self.assertGreater(facts["emptied"], 5)

    def test_a_zeroed_range_is_overwritten_in_place(self):
        facts = self.facts["write-zeroes"]
        self.assertEqual((facts["zeroes"], facts["writesInPlace"], facts["extentsSet"]), (1, 4, 1))

    def test_what_the_role_of_a_zone_tells_is_told(self):
        of_all = self.facts["all"]["purposes"]
        for purpose in ("read nodes", "reset data", "reset nodes"):
            self.assertIn(purpose, of_all)
        self.assertIn("reset superblock", self.facts["ring"]["purposes"])
        self.assertEqual(self.facts["write-zeroes"]["purposes"][-1], "zeroes data")
        self.assertEqual([purpose for facts in self.facts.values() for purpose in facts["purposes"] if purpose.endswith("zone")], [])

    def test_the_long_run_shows_all_of_it(self):
        facts = self.facts["all"]
        for name in ("overtakings", "landedOtherwise", "holes", "moved", "swapped", "emptied", "ringTurns"):
            self.assertGreater(facts[name], 0, name)

    # ---- side by side ----

    def test_behind_a_lock_nothing_overtakes(self):
        locked = self.facts["overtaking:one-by-one"]
        self.assertEqual((locked["overtakings"], locked["landedOtherwise"], locked["mostInFlight"]), (0, 0, 1))
        self.assertGreater(self.facts["overtaking"]["mostInFlight"], 10)
        self.assertEqual(locked["written"], self.facts["overtaking"]["written"])

    def test_a_commit_for_each_fsync_writes_more(self):
        log, commit = (sum(self.facts[name]["sent"].values()) for name in ("fsync", "fsync:by-commit"))
        self.assertEqual(self.facts["fsync:by-commit"]["commits"], 6)
        self.assertGreater(commit, 2 * log)

    def test_the_greedy_choice_is_another_one(self):
        self.assertNotEqual(self.facts["reclaim"]["moved"], self.facts["reclaim:greedy"]["moved"])
        self.assertEqual(self.facts["reclaim"]["written"], self.facts["reclaim:greedy"]["written"])

    # ---- the files ----

    def test_the_index_leads_to_each_page(self):
        index = (self.gallery.directory / "index.html").read_text()
        named = re.findall(r'href="([^"]+)"', index)
        self.assertEqual(len(named), len(self.gallery.scenes) + len(PAIRS))
        for name in named:
            self.assertTrue((self.gallery.directory / name).exists(), name)

    def test_the_same_run_gives_the_same_trace(self):
        again = self.gallery.directory / "again"
        for name in ("overtaking", "reclaim"):
            subprocess.run([SCENES, name, again], check=True)
            self.assertEqual(again.read_bytes(), self.gallery.path(name, "trace").read_bytes())

    def test_an_unknown_scene_is_refused(self):
        for name in ("no-such", "ring:greedy", "reclaim:no-such", ""):
            ran = subprocess.run([SCENES, name, self.gallery.directory / "none"], stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual((ran.returncode, json.dumps(ran.stderr)[1:6]), (2, "usage"))


unittest.main(argv=sys.argv[:1])
