#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Idle processors poll while bench/idle.py requests it; bench/quotas.py finds quotas of processor time."""
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench import idle, quotas  # noqa: E402 (the path comes first)

class Polling(unittest.TestCase):
    """Tests with files of their own in place of the kernel's."""

    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        for name, text in (("LATENCY", ""), ("STATE", "POLL\n")):
            path = pathlib.Path(made.name) / name
            path.write_text(text)
            replaced = unittest.mock.patch.object(idle, name, path)
            replaced.start()
            self.addCleanup(replaced.stop)

    def test_asks_for_no_latency_while_the_file_is_open(self):
        with self.assertRaises(ZeroDivisionError), idle.Polling() as polling:
            self.assertEqual(idle.LATENCY.read_bytes(), bytes(4))
            os.fstat(polling.file)
            raise ZeroDivisionError
        with self.assertRaises(OSError):
            os.fstat(polling.file)

    def test_needs_a_state_that_polls(self):
        self.assertTrue(idle.can_poll())
        idle.STATE.write_text("C1\n")
        self.assertFalse(idle.can_poll())
        idle.STATE.unlink()
        self.assertFalse(idle.can_poll())

    def test_needs_the_right_to_ask(self):
        idle.LATENCY.unlink()
        self.assertFalse(idle.can_poll())


class Quotas(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.top = pathlib.Path(made.name)

    def write(self, name, text):
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def smallest(self, kind, cgroup, root="/"):
        mountinfo = f"31 23 0:28 / /elsewhere rw - tmpfs tmpfs rw\n41 31 0:38 {root} {self.top} rw shared:1 - {kind}\n"
        return quotas.smallest(mountinfo, cgroup)

    def test_finds_one_of_a_group_above(self):
        self.write("user/cpu.max", "150000 100000\n")
        self.write("user/session/cpu.max", "max 100000\n")
        self.assertEqual(self.smallest("cgroup2 cgroup2 rw", "0::/user/session\n"), (1.5, self.top / "user"))

    def test_the_smallest_counts(self):
        self.write("user/cpu.max", "150000 100000\n")
        self.write("user/session/cpu.max", "50000 100000\n")
        self.assertEqual(self.smallest("cgroup2 cgroup2 rw", "0::/user/session\n"), (0.5, self.top / "user/session"))

    def test_finds_one_in_a_container(self):
        self.write("cpu.max", "50000 100000\n")
        self.assertEqual(self.smallest("cgroup2 cgroup2 rw", "0::/box\n", root="/box"), (0.5, self.top))

    def test_finds_one_of_version_1(self):
        self.write("group/cpu.cfs_quota_us", "200000\n")
        self.write("group/cpu.cfs_period_us", "100000\n")
        found = self.smallest("cgroup cgroup rw,cpu,cpuacct", "0::/\n3:cpu,cpuacct:/group\n")
        self.assertEqual(found, (2.0, self.top / "group"))

    def test_without_a_bound_there_is_none(self):
        self.write("cpu.max", "max 100000\n")
        self.write("cpu.cfs_quota_us", "-1\n")
        self.write("cpu.cfs_period_us", "100000\n")
        self.assertIsNone(self.smallest("cgroup2 cgroup2 rw", "0::/\n"))
        self.assertIsNone(self.smallest("cgroup cgroup rw,cpu", "3:cpu:/\n"))
        self.assertIsNone(self.smallest("cgroup cgroup rw,memory", "3:memory:/\n"))


unittest.main()
