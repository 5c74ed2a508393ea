#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Idle loops run as they have to, and end with the process that started them; quotas of processor time are found."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench import idle, quotas  # noqa: E402 (the path comes first)

STARTS_LOOPS = """
import time
from bench.idle import IdleLoops
with IdleLoops() as started:
    print(*(loop.pid for loop in started.loops), flush=True)
    time.sleep(600)
"""


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def end_within_seconds(pids, seconds=30):
    until = time.monotonic() + seconds
    while any(map(is_running, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(is_running, pids))


class Loops(unittest.TestCase):
    def test_each_processor_has_one_that_yields_to_all_others(self):
        with idle.IdleLoops() as started:
            pids = [loop.pid for loop in started.loops]
            self.assertEqual({pid: os.sched_getaffinity(pid) for pid in pids},
                             {pid: {processor} for pid, processor in zip(pids, sorted(os.sched_getaffinity(0)))})
            self.assertEqual({os.sched_getscheduler(pid) for pid in pids}, {os.SCHED_IDLE})
            self.assertEqual({os.getpriority(os.PRIO_PROCESS, pid) for pid in pids}, {idle.NICEST})
            self.assertEqual({pid: os.getsid(pid) for pid in pids}, {pid: pid for pid in pids})
        self.assertFalse(any(map(is_running, pids)))

    def test_they_end_when_the_block_fails(self):
        with self.assertRaises(ZeroDivisionError), idle.IdleLoops() as started:
            pids = [loop.pid for loop in started.loops]
            raise ZeroDivisionError
        self.assertFalse(any(map(is_running, pids)))

    def test_they_end_when_who_started_them_is_killed(self):
        with subprocess.Popen([sys.executable, "-c", STARTS_LOOPS], cwd=ROOT, stdout=subprocess.PIPE) as starter:
            pids = [int(word) for word in starter.stdout.readline().split()]
            self.assertTrue(pids and all(map(is_running, pids)))
            starter.send_signal(signal.SIGKILL)
        self.assertTrue(end_within_seconds(pids))

    def test_one_that_does_not_begin_is_an_error(self):
        class Broken(idle.IdleLoops):
            @staticmethod
            def start(_processor):
                return subprocess.Popen(["false"], stdout=subprocess.PIPE)
        with self.assertRaises(idle.IdleError), Broken():
            self.fail("it began")


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
