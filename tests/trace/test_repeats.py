# SPDX-License-Identifier: MIT
"""A run without threads makes the same trace each time, and the trace has everything that the run changed.

    test_repeats.py CRASH ZFUSECTL EVENTS_H
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from replay import Trace  # noqa: E402 (the path comes first)

CRASH, ZFUSECTL, EVENTS = sys.argv[1:4]
OPS = "400"
SEEDS = ("1", "3", "13", "20", "26", "31", "95", "116")  # 26 resets a conventional zone


class Repeats(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)

    def run_crash(self, *args):
        return subprocess.run([CRASH, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)

    def trace(self, record, name="trace"):
        path = self.path / name
        ran = self.run_crash("--ops", OPS, "--repeat", record, "--trace", path)
        self.assertEqual(ran.returncode, 0, ran.stdout[-2000:])
        return path

    def test_a_seed_gives_the_same_bytes_again(self):
        for seed in SEEDS[:3]:
            self.assertEqual(self.trace(seed).read_bytes(), self.trace(seed, "again").read_bytes())

    def test_another_seed_gives_others(self):
        self.assertNotEqual(self.trace("1").read_bytes(), self.trace("3", "other").read_bytes())

    def test_it_says_how_to_run_it_again(self):
        header = Trace(ZFUSECTL, self.trace("13")).header
        self.assertEqual((header["clock"], header["seeded"], header["seed"]), (1, 1, 13))
        self.assertEqual(header["workload"], f"crash --ops {OPS} --repeat 13")

    def test_zones_extents_and_log_follow_from_the_events(self):
        for seed in SEEDS:
            with self.subTest(seed):
                trace = Trace(ZFUSECTL, self.trace(seed)).read()
                trace.check_whole()
                live = trace.data_live()
                for number, zone in trace.zones.items():
                    if zone.role in ("hot", "cold", "log", "overwrite"):
                        self.assertEqual(zone.live, live.pop(number, 0), f"zone {number}")
                self.assertEqual(live, {})
                self.assertFalse([e for e in trace.events if e.get("submitted") == 0])
                self.assertGreater(trace.count("committed"), 1)

    def test_a_finished_zone_is_full_until_its_reset(self):
        finished = set()
        for seed in SEEDS:
            trace = Trace(ZFUSECTL, self.trace(seed)).read()
            for event in trace.events:
                if event["event"] == "zone_finished" and event["result"] == 0:
                    finished.add((seed, event["address_zone"]))
                if event["event"] == "zone_reset":
                    finished.discard((seed, event["address_zone"]))
            for zone in (zone for of, zone in finished if of == seed):
                self.assertEqual(trace.zone(zone).written, trace.header["zone_capacity"], f"zone {zone}")
        self.assertGreater(len(finished), 0)

    def test_every_event_is_told_somewhere(self):
        """The traces have every kind of event, except those that only occur with threads."""
        seen = set()
        for record in (*SEEDS, self.find_cut_with_replay()):
            seen |= {event["event"] for event in Trace(ZFUSECTL, self.trace(record)).events}
        names = set(re.findall(r"ZF_TRACE_EVENT\(\d+, (\w+),", pathlib.Path(EVENTS).read_text()))
        self.assertEqual(names - seen, {"dropped", "thread"})

    def find_cut_with_replay(self):
        for cut in range(40, 400, 20):
            record = f"1:{cut}:0"
            if self.run_crash("--ops", OPS, "--repeat", record, "--trace", self.path / "cut").returncode != 0:
                continue
            if Trace(ZFUSECTL, self.path / "cut").count("log_replayed") > 0:
                return record
        raise AssertionError("no cut of seed 1 leaves anything to replay")

    def test_a_recovery_can_be_traced(self):
        trace = Trace(ZFUSECTL, self.trace(self.find_cut_with_replay())).read()
        trace.check_whole()
        self.assertEqual(trace.count("operation_began"), 0)

    def test_what_is_not_to_be_repeated_has_no_trace(self):
        ran = self.run_crash("--records", "1", "--trace", self.path / "trace")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("--trace is for --repeat", ran.stdout)
        ran = self.run_crash("--repeat", "1", "--trace", "/nowhere/trace")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("/nowhere/trace: No such file or directory", ran.stdout)


unittest.main(argv=sys.argv[:1])
