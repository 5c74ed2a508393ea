#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Metrics of made-up filesystems, and files that name metrics: alerts, the dashboard, docs/monitoring.md.

usage: test_metrics.py PRINT_METRICS ROOT [UNITTEST-ARGUMENT...]
"""

import json
import os
import re
import subprocess
import sys
import unittest

import exposition

PRINT_METRICS = ROOT = ""
DEVICE = '/dev/a "quoted" \\ name'


def filesystem(device=DEVICE):
    """A made-up filesystem whose answers have all members, each with another number."""
    return {
        "device": device,
        "up": True,
        "daemon": {"mountpoint": "/mnt/two\nlines", "transport": "io_uring", "version": "1.2"},
        "status": {"device_kind": "zbd", "append": "native", "uuid": "1-2", "label": "größe", "read_only": True,
                   "failed": "writing the superblock", "error": "Input/output error", "retired_zones": 3,
                   "lost_bytes": 4096, "node_size": 16384},
        "df": {"total": 1000, "live_data": 100, "live_metadata": 10, "in_place": 1, "kept": 2, "reserved": 3,
               "reclaimable": 4, "free": 880, "available": 800, "inodes": 5, "inodes_max": 50},
        "gc_status": {"paused": False, "room": {"empty": 7, "coming": 2, "target": 8}},
        "zones": {"summary": [{"role": "hot", "condition_name": "full", "zones": 4, "written": 64, "live": 32}]},
        "requests": {"lookup": 12, "write": 18446744073709551615, "waited": 3},
        "latencies": {"bounds_ns": [10000, 300000000, 10000000000], "write_bytes": 77, "requests": {
            "lookup": {"counts": [5, 4, 0, 3], "total_ns": 1500000000}, "write": {"counts": [0, 0, 0, 0], "total_ns": 0}}},
        "stats": {
            "device": {"reads": 1, "read_bytes": 2, "appends": 3, "append_bytes": 4, "writes": 5, "write_bytes": 6,
                       "fua_writes": 7, "flushes": 8, "resets": 9, "finishes": 10, "ahead_bytes": 11, "errors": 12},
            "faults": {"read": 1, "write": 2, "other": 3, "data_checksum": 4, "damaged_nodes": 5},
            "written": {"meta": 1, "log": 2, "hot": 3, "cold": 4},
            "commits": {"count": 6, "total_ns": 1, "longest_ns": 2000000000, "longest_freeze_ns": 30, "nodes_written": 9},
            "log": {"records": 1, "bodies": 2, "bytes": 3, "parts": 4, "commits_instead": 5, "failures": 6, "switches": 7},
            "cache": {"hits": 1, "misses": 2, "nodes": 3, "nodes_max": 4, "dirty_nodes": 5},
            "dirty": {"bytes": 1, "flight_bytes": 2, "bytes_max": 3},
            "reclaim": {"victims": 1, "meta_victims": 2, "emptied": 3, "stuck": 4, "moved_bytes": 5, "changed_bytes": 6,
                        "waits": 7, "wait_ns": 123456789},
            "scrub": {"data_bytes": 1, "node_bytes": 2, "errors": 3, "repaired": 4, "skipped": 5, "finished_at": 1700000000},
        },
    }


def print_metrics(*filesystems):
    return subprocess.run([PRINT_METRICS], input=json.dumps(filesystems), capture_output=True, text=True, timeout=60,
                          check=True).stdout


def promtool(*args, **kwargs):
    program = subprocess.run([os.path.join(ROOT, "scripts/fetch-promtool")], stdout=subprocess.PIPE, text=True,
                             timeout=240, check=True).stdout.strip()
    return subprocess.run([program, *args], capture_output=True, text=True, timeout=60, check=False, **kwargs)


class Format(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = print_metrics(filesystem(), filesystem("/dev/b"))
        cls.found = exposition.Exposition(cls.text)

    def test_every_family_has_samples_of_both(self):
        for device in (DEVICE, "/dev/b"):
            named = {self.found.family_of(n) for n, labels in self.found.samples if ("device", device) in labels}
            self.assertEqual(named, set(self.found.types))

    def test_promtool_finds_nothing_wrong(self):
        done = promtool("check", "metrics", input=self.text)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_labels_are_escaped(self):
        self.assertIn('device="/dev/a \\"quoted\\" \\\\ name"', self.text)
        self.assertIn('mountpoint="/mnt/two\\nlines"', self.text)
        self.assertEqual(self.found.get("zfuse_info", device=DEVICE, label="größe", mountpoint="/mnt/two\nlines"), 1)

    def test_what_is_no_utf8_is_replaced(self):
        made = json.dumps([{"device": "/dev/X", "up": False}]).encode().replace(b"X", b"\xff\xc3\xc3\xa4\xe2\x82")
        done = subprocess.run([PRINT_METRICS], input=made, capture_output=True, timeout=60, check=True)
        self.assertIn('zfuse_up{device="/dev/\ufffd\ufffdä\ufffd\ufffd"} 0', done.stdout.decode())

    def test_numbers_are_exact(self):
        self.assertIn('operation="write"} 18446744073709551615\n', self.text)
        self.assertIn('zfuse_room_wait_seconds_total{device="/dev/b"} 0.123456789\n', self.text)
        self.assertIn('zfuse_commit_seconds_total{device="/dev/b"} 0.000000001\n', self.text)
        self.assertIn('zfuse_commit_longest_seconds{device="/dev/b"} 2\n', self.text)
        self.assertEqual(self.found.get("zfuse_cache_bytes", device="/dev/b"), 3 * 16384)

    def test_histograms(self):
        lines = [line for line in self.text.splitlines() if 'device="/dev/b",operation="lookup"' in line]
        begin = 'zfuse_request_duration_seconds_bucket{device="/dev/b",operation="lookup",le='
        self.assertEqual(lines[1:5], [f'{begin}"0.00001"}} 5', f'{begin}"0.3"}} 9', f'{begin}"10"}} 9', f'{begin}"+Inf"}} 12'])
        self.assertEqual(self.found.get("zfuse_request_duration_seconds_sum", device="/dev/b", operation="lookup"), 1.5)

    def test_requests_are_those_of_an_operation(self):
        self.assertEqual({dict(labels)["operation"] for name, labels in self.found.samples if name == "zfuse_requests_total"},
                         {"lookup", "write"})

    def test_a_failure_has_its_reason(self):
        reason = "writing the superblock: Input/output error"
        self.assertEqual(self.found.get("zfuse_failed", device=DEVICE, reason=reason), 1)
        well = filesystem()
        for key in ("failed", "error", "retired_zones", "lost_bytes"):
            del well["status"][key]
        well["status"]["read_only"] = False
        found = exposition.Exposition(print_metrics(well))
        for name in ("zfuse_failed", "zfuse_read_only", "zfuse_retired_zones", "zfuse_lost_bytes"):
            self.assertEqual(found.get(name, device=DEVICE), 0)
        self.assertIn(("zfuse_failed", (("device", DEVICE),)), found.samples)

    def test_what_is_not_there_is_left_out(self):
        read_only = filesystem()
        del read_only["stats"]["log"], read_only["latencies"]
        missing = self.found.names() - exposition.Exposition(print_metrics(read_only)).names()
        self.assertEqual({re.sub("_log_.*|_request_.*", "", name) for name in missing}, {"zfuse", "zfuse_user_written_bytes_total"})
        self.assertEqual(exposition.Exposition(print_metrics({"device": "x", "up": False})).samples,
                         {("zfuse_up", (("device", "x"),)): 0})
        self.assertEqual(exposition.Exposition(print_metrics()).samples, {})


class Named(unittest.TestCase):
    """The names of metrics in other files."""

    RULES = "contrib/prometheus/zfuse-alerts.yml"
    TESTS = ("contrib/prometheus/zfuse-alerts-test.yml", "contrib/prometheus/zfuse-alerts-test-days.yml")

    @classmethod
    def setUpClass(cls):
        cls.found = exposition.Exposition(print_metrics(filesystem()))

    def read(self, name):
        with open(os.path.join(ROOT, name), encoding="utf-8") as f:
            return f.read()

    def alerts(self):
        return re.findall(r"(?m)^ +- alert: (\w+)$", self.read(self.RULES))

    def test_rules_and_dashboard_name_what_there_is(self):
        for name in (self.RULES, "contrib/grafana/zfuse.json"):
            self.assertEqual(exposition.names_in(os.path.join(ROOT, name)) - self.found.names(), set(), name)

    def test_the_rules_are_right(self):
        done = promtool("check", "rules", os.path.join(ROOT, self.RULES))
        self.assertEqual(done.returncode, 0, done)
        self.assertIn(f"{len(self.alerts())} rules found", done.stdout)

    def test_each_alert_fires_and_is_quiet(self):
        done = promtool("test", "rules", *(os.path.join(ROOT, name) for name in self.TESTS))
        self.assertEqual(done.returncode, 0, done)
        text = "".join(self.read(name) for name in self.TESTS)
        fires = re.findall(r"(?m)^ +- alertname: (\w+)\n +eval_time: \w+\n +exp_alerts:\n +- exp_labels", text)
        quiet = re.findall(r"\{alertname: (\w+), eval_time: \w+, exp_alerts: \[\]\}", text)
        self.assertEqual((sorted(fires), sorted(quiet)), (sorted(self.alerts()),) * 2)

    def test_each_alert_is_explained(self):
        rows = re.findall(r"(?m)^\| `(Zfuse\w+)` \| \S", self.read("docs/monitoring.md"))
        self.assertEqual(rows, self.alerts())

    def test_each_metric_is_documented(self):
        rows = re.findall(r"(?m)^\| `(zfuse_\w+)` \| (\w+) \| (.*?) \| (.*) \|$", self.read("docs/monitoring.md"))
        labels = {}
        for name, has in self.found.samples:
            labels.setdefault(self.found.family_of(name), set()).update(dict(has).keys() - {"device"})
        self.assertEqual([(name, kind, text) for name, kind, _, text in rows],
                         [(name, kind, self.found.helps[name]) for name, kind in self.found.types.items()])
        self.assertEqual({name: set(re.findall(r"`(\w+)`", text)) for name, _, text, _ in rows}, labels)


if __name__ == "__main__":
    PRINT_METRICS, ROOT = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
