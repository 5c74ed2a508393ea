#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How scripts/age evaluates the output of bench/age. The test has this output ready, and ages no device."""
import json
import pathlib
import sys
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from bench import aging, curves  # noqa: E402 (the path comes first)


def turnover(number, cold, **more):
    return {"period": "turnover", "number": number, "user_bytes": 1 << 30, "data_bytes": 1 << 30,
            "cold_bytes": cold << 30, "log_bytes": 0, "meta_bytes": 1 << 29, "super_bytes": 0, "u": 0.8, "greedy": 2.7, "ratio": 1.05,
            "p50_ms": 0.01, "p99_ms": 1, "p999_ms": 10 * number, "max_ms": 100 * number, "stalls": number,
            "empty_low": 9 - number, "cpu_s": 4, "reclaim": {"wait_ms": 5}, **more}


def text(load="uniform", full=80, threads=False, count=4, pairs=()):
    plan = {"period": "plan", "load": load, "full": full, "threads": threads, "of_device": 68,
            "size": 8 << 30, "zone": 64 << 20}
    end = {"period": "end", "files": 2, "extents": 10, "file_bytes": 40960}
    return "\n".join(json.dumps(p) for p in [plan, *(turnover(n, n) for n in range(1, count + 1)),
                                                  *({"period": "pair", "off_s": off, "on_s": on} for off, on in pairs), end])


class Runs(unittest.TestCase):
    def test_a_run_that_did_not_end_is_none(self):
        with self.assertRaises(aging.AgeError):
            aging.as_run("\n".join(text().splitlines()[:-1]))

    def test_an_old_filesystem_is_the_second_half(self):
        old = aging.Old.of(aging.as_run(text()))
        self.assertEqual((old.data, old.meta, old.all), (4.5, 0.5, 5.0))
        self.assertEqual((old.p999, old.max, old.stalls, old.empty_low), (40, 400, 7, 5))
        self.assertEqual((old.extents, old.extent_kib), (5, 4))

    def test_goals_are_judged_by_runs_of_their_kind(self):
        found = {str(goal): reached for goal, reached in aging.check([aging.as_run(text())])}
        self.assertEqual(found["uniform, 80 %: written in all"], 5.0)
        self.assertIsNone(found["uniform, 50 %: written in all"])
        self.assertIn("short", aging.check_table(aging.check([aging.as_run(text())])))


    def test_reclaim_costs_what_the_median_of_the_pairs_says(self):
        run = aging.as_run(text(full=50, threads=True, pairs=[(2, 2.1), (1, 3), (1, 1.2)]))
        found = {str(goal): reached for goal, reached in aging.check([run])}
        self.assertAlmostEqual(found["uniform, 50 %: time beside reclaim, to time without it"], 1.2)
        self.assertIsNone(aging.Old.of(aging.as_run(text())).reclaim)


class Curves(unittest.TestCase):
    def test_scales_hold_their_values_at_round_steps(self):
        for high in (0.3, 1, 4.9, 17, 1234):
            axis = curves.axis_to([high])
            self.assertGreaterEqual(axis.high, high)
            self.assertLessEqual(len(axis.ticks()), 7)
            self.assertAlmostEqual(axis.ticks()[-1], axis.high)

    def test_a_picture_is_well_formed(self):
        runs = [aging.as_run(text(load, full, threads)) for load in aging.LOADS for full in (50, 80)
                for threads in (False, True)]
        root = xml.etree.ElementTree.fromstring(curves.draw(runs))
        # A line of turnovers for each load and level; the points of two levels are not joined.
        self.assertEqual(len(root.findall(".//{*}polyline")), 2 * len(aging.LOADS))
        more = [aging.as_run(text("uniform", full)) for full in (50, 80, 90)]
        root = xml.etree.ElementTree.fromstring(curves.draw(more))
        self.assertEqual(len(root.findall(".//{*}polyline")), 3 + 3)  # three are joined: in all, of data, empty zones


unittest.main()
