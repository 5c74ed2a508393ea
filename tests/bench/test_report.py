#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How scripts/bench evaluates samples (medians, ratios, tables, goals, the picture), and how it prepares and clears its
directories. The test has the samples ready, and measures nothing.
"""
import os
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench import drives, goals, measure, peers, picture, report, run, tree  # noqa: E402 (the path comes first)
from bench.drives import ON_DRIVE  # noqa: E402
from bench.jobs import DISK_SUITES, OPERATIONS, SUITES, VM_SUITES  # noqa: E402
from bench.operation import SECONDS  # noqa: E402
from bench.peers import PEERS  # noqa: E402


def sample(peer, operation, number, count, seconds, costs=None):
    return {"peer": peer, "operation": operation, "round": number, "count": count, "seconds": seconds, "costs": costs}


def costs(writes=None, peak=None, latencies=None):
    device = None if writes is None else {"writes": writes, "write_bytes": writes * 4096, "flushes": 2, "reads": 0,
                                          "read_bytes": 0}
    return {"device": device, "machine_cpu_s": 0.5, "daemon_cpu_s": 0.25 if peak else None, "daemon_peak_bytes": peak,
            "latency_us": latencies}


def a_run(samples, peers=("zfuse", "btrfs"), **more):
    return {"medium": "tmpfs", "filesystem": "tmpfs", "transport": "io_uring", "options": "", "rounds": 3,
            "quick": False,
            "machine": {"date": "2026-01-01 00:00 UTC", "kernel": "6.18", "processors": 2, "model": "x",
                        "memory_bytes": 1 << 34, "load": 0.5},
            "left_out": {}, "notes": [], "failures": [], "peers": list(peers), "samples": samples, **more}


def full_run(speed=50000.0, **more):
    """A run with every operation of every peer, all with the same speed, and with the widest numbers that are
    possible."""
    samples = [sample(peer, o.name, 0, 1 if o.unit == SECONDS else speed, 1234.5 if o.unit == SECONDS else 1.0,
                      costs(writes=120000 if peer in ("zfuse", "zfuse-flush", "ext4", "btrfs") else None,
                            peak=700 << 20 if peer in ("zfuse", "passthrough_hp", "fuse2fs") else None,
                            latencies={"mean": 25012.0, "p99": 25012.0, "p999": 25012.0} if o.suite in DISK_SUITES
                            else None))
               for peer in PEERS for o in OPERATIONS.values() if PEERS[peer].does(o)]
    return a_run(samples, PEERS, **more)


def full_run_in_vm():
    """The same run for the zoned drive."""
    samples = [sample(peer, o.name, 0, 50000.0, 1.0, costs(writes=120000, latencies={"mean": 25012.0, "p99": 25012.0}))
               for peer in ON_DRIVE for o in SUITES["zoned"] if ON_DRIVE[peer].does(o)]
    return a_run(samples, ON_DRIVE, medium="vm")


class Medians(unittest.TestCase):
    def test_takes_the_middle_sample_of_each_peer(self):
        samples = [sample("zfuse", "create file", i, 100, seconds) for i, seconds in enumerate((1.0, 50.0, 2.0))]
        samples += [sample("btrfs", "create file", i, 100, 4.0) for i in range(3)]
        cells = report.summarize(a_run(samples))["create file"]
        self.assertEqual(cells["zfuse"]["speed"], 50)
        self.assertEqual((cells["zfuse"]["lowest"], cells["zfuse"]["highest"]), (2, 100))
        self.assertEqual(report.ratio("create file", cells, "btrfs"), 2.0)

    def test_compares_within_rounds(self):
        samples = [sample("zfuse", "create file", i, 100, seconds) for i, seconds in enumerate((1.0, 10.0, 10.0))]
        samples += [sample("btrfs", "create file", i, 100, seconds) for i, seconds in enumerate((2.0, 20.0, 2.0))]
        samples += [sample("ext4", "create file", 1, 100, 30.0)]
        cells = report.summarize(a_run(samples, ("zfuse", "btrfs", "ext4")))["create file"]
        self.assertEqual(report.ratio("create file", cells, "btrfs"), 2.0)
        self.assertEqual(report.ratio("create file", cells, "ext4"), 3.0)

    def test_of_two_takes_the_mean(self):
        samples = [sample("zfuse", "create file", i, count, 1.0) for i, count in enumerate((10, 20))]
        self.assertEqual(report.summarize(a_run(samples))["create file"]["zfuse"]["speed"], 15)

    def test_the_shorter_time_is_the_faster(self):
        samples = [sample("zfuse", "untar", 0, 1, 2.0), sample("btrfs", "untar", 0, 1, 1.0)]
        cells = report.summarize(a_run(samples))["untar"]
        self.assertEqual(report.ratio("untar", cells, "btrfs"), 0.5)

    def test_costs_are_per_operation_and_unknown_ones_stay_unknown(self):
        samples = [sample("zfuse", "create file", 0, 100, 1.0, costs(writes=50, peak=1 << 20)),
                   sample("btrfs", "create file", 0, 100, 1.0, costs())]
        cells = report.summarize(a_run(samples))["create file"]
        self.assertEqual(cells["zfuse"]["device_writes"], 0.5)
        self.assertEqual(cells["zfuse"]["device_flushes"], 0.02)
        self.assertEqual(cells["zfuse"]["daemon_peak_bytes"], 1 << 20)
        self.assertIsNone(cells["btrfs"]["device_writes"])
        self.assertIsNone(cells["btrfs"]["daemon_peak_bytes"])

    def test_compares_within_pairs_of_a_round(self):
        samples = [{**sample("zfuse", name, 0, 100, seconds), "pair": pair}
                   for name, by_pair in (("4 KiB writes alone", (1.0, 10.0, 1.0)),
                                         ("4 KiB writes beside zeroing", (2.0, 20.0, 50.0)))
                   for pair, seconds in enumerate(by_pair)]
        summary = report.summarize(a_run(samples))
        self.assertEqual(report.against("4 KiB writes beside zeroing", "4 KiB writes alone", summary,
                                        "zfuse"), 0.5)

    def test_what_a_peer_did_not_do_has_no_ratio(self):
        cells = report.summarize(a_run([sample("zfuse", "untar", 0, 1, 2.0)]))["untar"]
        self.assertIsNone(report.ratio("untar", cells, "btrfs"))

    def test_runs_of_the_same_setting_become_one(self):
        first = a_run([sample("zfuse", "untar", 0, 1, 1.0)], rounds=1)
        second = a_run([sample("zfuse", "untar", 0, 1, 3.0)], rounds=1)
        other = a_run([sample("zfuse", "untar", 0, 1, 9.0)], rounds=1, transport="dev")
        merged = report.merge([first, second, other])
        self.assertEqual([(r["transport"], r["rounds"]) for r in merged], [("io_uring", 2), ("dev", 1)])
        self.assertEqual(report.summarize(merged[0])["untar"]["zfuse"]["speed"], 2.0)

    def test_runs_of_different_operations_become_one_with_as_many_rounds(self):
        runs = [a_run([sample("zfuse", name, number, 1, 1.0) for number in range(2)], rounds=2)
                for name in ("untar", "rm -r")]
        merged, = report.merge([*runs, runs[1]])
        self.assertEqual((merged["rounds"], len(merged["samples"])), (4, 6))
        self.assertEqual(report.merge(runs)[0]["rounds"], 2)


class Tables(unittest.TestCase):
    def test_show_value_and_ratio(self):
        samples = [sample("zfuse", "create file", 0, 24148, 1.0), sample("btrfs", "create file", 0, 16000, 1.0)]
        made = report.speed_table(a_run(samples), report.summarize(a_run(samples)))
        self.assertIn("| create file | 24.1k | 16.0k (1.51) |", made)

    def test_show_what_takes_no_time_at_all(self):
        samples = [sample("zfuse", "write-zeroes 1 GiB", 0, 1, 0.000213), sample("zfuse", "untar", 0, 1, 1.5)]
        made = report.speed_table(a_run(samples), report.summarize(a_run(samples)))
        self.assertIn("| 0.000213 |", made)
        self.assertIn("|     1.50 |", made)

    def test_tell_the_device_only_of_those_that_have_one(self):
        samples = [sample("zfuse", "create file", 0, 100, 1.0, costs(writes=50)),
                   sample("btrfs", "create file", 0, 100, 1.0, costs())]
        made = report.device_table(a_run(samples), report.summarize(a_run(samples)))
        self.assertIn("| create file | 0.50 / 2.00 / 0.020 |", made)
        self.assertNotIn("btrfs", made)

    def test_tell_durable_writes_apart_and_only_of_those_that_did_them(self):
        samples = [sample("zfuse", "create file", 0, 100, 1.0), sample("fuse2fs", "create file", 0, 100, 1.0),
                   sample("zfuse", "extend direct", 0, 100, 1.0, costs(latencies={"mean": 12.0, "p99": 99.0})),
                   sample("ext4", "extend direct", 0, 50, 1.0)]
        found = {heading: made for heading, _, made in
                 report.sections(a_run(samples, ("zfuse", "fuse2fs", "ext4")))}
        self.assertNotIn("extend", found["Speed"])
        self.assertIn("| extend direct |   100 | 50.0 (2.00) |", found["Durable writes: speed"])
        self.assertNotIn("fuse2fs", found["Durable writes: speed"])
        self.assertIn("| extend direct | 12.0 / 99.0 |", found["Durable writes: latency"])

    def test_tell_what_is_beside_a_scrub_apart_with_one_percentile_more(self):
        samples = [sample("zfuse", "create + fsync beside a scrub", 0, 100, 1.0,
                          costs(latencies={"mean": 12.0, "p99": 99.0, "p999": 1000.0}))]
        found = {heading: made for heading, _, made in report.sections(a_run(samples, medium="disk"))}
        self.assertIn("| create + fsync beside a scrub | 12.0 / 99.0 / 1,000 |", found["Beside a scrub: latency"])
        self.assertNotIn("Durable writes: speed", found)

    def test_tell_what_reached_the_drive_of_those_that_wrote(self):
        names = "write 1 MiB", "read 1 MiB, cold", "extend direct", "dbench"
        samples = [sample("zfuse", name, 0, 100, 1.0, costs(writes=0 if "read" in name else 300)) for name in names]
        found = {heading: made for heading, _, made in report.sections(a_run(samples, medium="vm"))}
        self.assertIn("read 1 MiB, cold", found["Speed"])
        self.assertNotIn("read 1 MiB, cold", found["Write commands"])
        self.assertIn("| extend direct |  3.00 |", found["Write commands"])
        self.assertIn("| extend direct |  12.0 |", found["KiB written"])
        self.assertIn("| extend direct | 0.020 |", found["Flushes"])
        self.assertIn("| extend direct |  3.00 |", found["Write amplification"])
        self.assertIn("| write 1 MiB   | 0.012 |", found["Write amplification"])
        self.assertNotIn("dbench", found["Write amplification"])

    def test_numbers_keep_about_three_digits(self):
        self.assertEqual([report.short(v) for v in (0, 0.0123, 0.123, 9.994, 9.996, 99.96, 24148.4, 10543210, None)],
                         ["0.00", "0.012", "0.12", "9.99", "10.0", "100", "24.1k", "10.5M", "–"])
        self.assertEqual([report.short_seconds(*v) for v in ((2, None), (0.0634, 0.005), (9.7e-6, 0), (None, None))],
                         ["2.00 s", "63.4 (5.00) ms", "9.70 (0.00) µs", "–"])

    def test_fit_the_lines_of_a_document(self):
        wide = full_run(notes=["19,500 files instead of 20,000"], left_out={"ext4": "this kernel has no ext4"})
        lines = report.markdown([wide, full_run_in_vm()]).splitlines()
        self.assertGreater(len(lines), 120)
        self.assertEqual([line for line in lines if len(line) > report.LINE_MAX], [])

    def test_tell_what_was_left_out_and_what_failed(self):
        failed = a_run([], left_out={"btrfs": "this kernel has no btrfs"},
                       failures=[{"peer": "fuse2fs", "round": 0, "suite": "mix", "error": "mix failed:\nno"}])
        lines = report.circumstances(failed)
        self.assertIn("2 processors, 16 GiB of memory; load 0.5 when it began; idle processors halt.", lines[0])
        self.assertIn("; idle processors poll.", report.circumstances({**failed, "polling": True})[0])
        self.assertIn("Left out: btrfs: this kernel has no btrfs.", lines)
        self.assertIn("Failed: fuse2fs, mix, round 1: mix failed: no.", lines)


class Documents(unittest.TestCase):
    def test_a_block_is_replaced_and_the_rest_is_kept(self):
        before = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n"
        after = report.replace_block(before, "x", "new\n")
        self.assertEqual(after, "a\n<!-- x -->\n\nnew\n\n<!-- end of x -->\nb\n")
        self.assertEqual(report.replace_block(after, "x", "new"), after)

    def test_a_missing_block_is_an_error(self):
        with self.assertRaises(ValueError):
            report.replace_block("a", "x", "new")

    def test_docs_performance_has_the_blocks(self):
        document = (ROOT / "docs/performance.md").read_text()
        for name in ("scripts/bench: goals", "scripts/bench: tables", "scripts/bench in the virtual machine: goals",
                     "scripts/bench in the virtual machine: tables"):
            report.replace_block(document, name, "new")


class Goals(unittest.TestCase):
    def verdicts(self, runs):
        return {(g.medium, g.operation, g.peer): goals.verdict(g, r) for g, _, r in goals.check(runs)}

    def test_are_met_from_the_bound_on(self):
        for seconds, expected in ((2.5, "met"), (2.501, "short")):
            samples = [sample("zfuse", "untar", 0, 1, seconds), sample("btrfs", "untar", 0, 1, 1.0)]
            self.assertEqual(self.verdicts([a_run(samples)])["tmpfs", "untar", "btrfs"], expected)

    def test_count_only_on_their_medium(self):
        samples = [sample("zfuse", "write 1 MiB", 0, 512, 1.0), sample("plain", "write 1 MiB", 0, 512, 1.3)]
        verdicts = self.verdicts([a_run(samples, ("zfuse", "plain"))])
        self.assertEqual(verdicts["disk", "write 1 MiB", "plain"], "not measured")
        verdicts = self.verdicts([a_run(samples, ("zfuse", "plain"), medium="disk")])
        self.assertEqual(verdicts["disk", "write 1 MiB", "plain"], "met")

    def test_are_for_io_uring_where_a_run_has_it(self):
        samples = [sample("zfuse", "untar", 0, 1, 1.0), sample("btrfs", "untar", 0, 1, 1.0)]
        over_uring, over_dev = a_run(samples), a_run(samples, transport="dev")
        for runs, transport in (([over_uring, over_dev], "io_uring"), ([over_dev], "dev")):
            rows = [(t, reached) for goal, t, reached in goals.check(runs)
                    if (goal.operation, goal.peer) == ("untar", "btrfs")]
            self.assertEqual(rows, [(transport, 1.0)])

    def reached(self, text, samples):
        found = goals.check([a_run(samples, ("zfuse", "plain"), medium="disk")])
        return [reached for goal, _, reached in found if str(goal) == text]

    def test_may_compare_two_operations(self):
        samples = [sample("zfuse", "extend direct", 0, 90, 1.0), sample("zfuse", "overwrite direct", 0, 100, 1.0),
                   sample("plain", "overwrite, written file", 0, 180, 1.0)]
        self.assertEqual(self.reached("disk: extend direct, beside overwrite direct", samples), [0.9])
        self.assertEqual(self.reached("disk: extend direct, beside plain: overwrite, written file", samples),
                         [0.5])

    def test_may_be_a_time(self):
        samples = [sample("zfuse", "write-zeroes 10 GiB", 0, 1, 0.02)]
        self.assertEqual(self.reached("disk: write-zeroes 10 GiB, within 10 ms", samples), [0.5])

    def test_may_be_a_latency_beside_another(self):
        rounds = ((1000.0, 41000.0), (1000.0, 102000.0), (2000.0, 26000.0))
        samples = [sample("zfuse", f"4 KiB writes {how} a scrub", number, 100, 1.0,
                          costs(latencies={"mean": 9.0, "p99": 9.0, "p999": p999}))
                   for number, of_round in enumerate(rounds) for how, p999 in zip(("without", "beside"), of_round)]
        self.assertEqual(self.reached("disk: 4 KiB writes beside a scrub, 99.9th percentile at most 50 ms longer",
                                      samples), [51 / 41])

    def test_may_be_a_cost_of_which_the_peer_has_more(self):
        samples = [sample("zfuse", "extend direct", 0, 100, 1.0, costs(writes=100)),
                   sample("btrfs", "extend direct", 0, 50, 9.0, costs(writes=150))]
        reached = {str(goal): reached for goal, _, reached in goals.check([a_run(samples, medium="vm")])}
        self.assertEqual(reached["vm: extend direct, write commands, beside btrfs"], 3.0)
        self.assertEqual(reached["vm: extend direct, bytes written, beside btrfs"], 3.0)
        self.assertEqual(reached["vm: extend direct, beside btrfs"], 18.0)
        self.assertIsNone(reached["vm: extend direct, write commands, beside xfs"])

    def test_may_be_a_cost_of_zfuse_itself(self):
        samples = [sample("zfuse", "create + fsync, 16 clients", 0, 100, 1.0, costs(writes=70))]
        self.assertEqual(self.reached("disk: create + fsync, 16 clients, write commands, at most 0.35 each", samples),
                         [0.5])

    def test_may_be_of_another_kind_of_zfuse(self):
        samples = [sample(peer, "raw append 4 KiB, 16 writers", 0, count, 1.0)
                   for peer, count in (("zfuse", 200), ("zfuse-emulated", 150), ("zfuse-locked", 100))]
        reached = {goal.us: reached for goal, _, reached in goals.check([a_run(samples, ON_DRIVE, medium="vm")])
                   if (goal.operation, goal.peer) == ("raw append 4 KiB, 16 writers", "zfuse-locked")}
        self.assertEqual(reached, {"zfuse": 2.0, "zfuse-emulated": 1.5})

    def test_of_a_trace_compare_with_the_same_without_one(self):
        samples = [{**sample("zfuse", name, 0, count, 1.0), "pair": pair} for pair in range(3)
                   for name, count in (("untraced write 4 KiB", 100), ("traced write 4 KiB", 80 + 10 * pair))]
        found = goals.check([a_run(samples, ("zfuse",))])
        self.assertEqual([reached for goal, _, reached in found if goal.operation == "traced write 4 KiB"], [0.9])

    def test_of_a_page_say_what_falls_short(self):
        lines = goals.page_table({"size": 7.9, "shown": 0.5, "heap": 200.5, "frame": 50.0}).splitlines()[2:]
        self.assertEqual([line.split("|")[-2].strip() for line in lines], ["met", "met", "short", "met"])

    def test_of_images_and_of_the_virtual_machine_are_told_apart(self):
        for runs, expected in (([a_run([], medium="vm")], {"vm"}), ([a_run([])], {"tmpfs", "disk"})):
            self.assertEqual({goal.medium for goal, _, _ in goals.check(runs)}, expected)

    def test_all_can_be_measured(self):
        verdicts = self.verdicts([full_run(), full_run(medium="disk"), full_run_in_vm()])
        self.assertNotIn("not measured", verdicts.values())


class Picture(unittest.TestCase):
    @staticmethod
    def marks(root, colour):
        """The x of each mark of the peer with this colour."""
        return [float(e.get("cx") or e.get("points").split(",")[0]) for tag in ("circle", "polygon")
                for e in root.iter("{http://www.w3.org/2000/svg}" + tag) if e.get("fill") == colour]

    def test_is_well_formed_and_has_a_mark_for_each_ratio(self):
        runs = [full_run(), full_run(medium="disk")]
        root = xml.etree.ElementTree.fromstring(picture.draw(runs))
        for peer in (p for p in PEERS if p != "zfuse"):
            does = [o for o in OPERATIONS.values() if PEERS[peer].does(o)]
            self.assertEqual(len(self.marks(root, picture.COLOURS[peer])), 2 * len(does) + 1,
                             peer)  # and one in the legend

    def test_has_one_panel_for_each_medium_in_the_order_of_the_runs(self):
        runs = [full_run(), full_run(medium="disk"), full_run(transport="dev")]
        self.assertEqual(picture.draw(runs), picture.draw(runs[:2]))
        drawn = picture.draw(runs)
        self.assertLess(drawn.index("Images on tmpfs"), drawn.index("Images on disk"))

    def test_shows_images_alone(self):
        self.assertEqual(picture.draw([full_run(), full_run_in_vm()]), picture.draw([full_run()]))
        xml.etree.ElementTree.fromstring(picture.draw([full_run_in_vm()]))

    def test_stays_on_the_canvas_whatever_the_ratio(self):
        samples = [sample("zfuse", "untar", 0, 1, 1.0), sample("btrfs", "untar", 0, 1, 1e6),
                   sample("zfuse", "rm -r", 0, 1, 1e6), sample("btrfs", "rm -r", 0, 1, 1.0)]
        root = xml.etree.ElementTree.fromstring(picture.draw([a_run(samples)]))
        marks = self.marks(root, picture.COLOURS["btrfs"])
        self.assertEqual(len(marks), 3)
        for at in marks:
            self.assertTrue(0 <= at <= float(root.get("width")), at)

    def test_is_drawn_of_zfuse_alone(self):
        xml.etree.ElementTree.fromstring(picture.draw([a_run([sample("zfuse", "untar", 0, 1, 1.0)], ["zfuse"])]))


class Counters(unittest.TestCase):
    def test_reads_the_time_of_a_process_whatever_its_name(self):
        stat = "7 (a) b) S " + " ".join(["0"] * 10) + f" {3 * measure.TICKS} {measure.TICKS} 0"
        self.assertEqual(measure.parse_process_cpu(stat), 4.0)

    def test_idle_time_is_not_busy(self):
        stat = f"cpu  {measure.TICKS} {measure.TICKS} {measure.TICKS} 99999 99999 0 {measure.TICKS} 0 0 0\ncpu0 1 1 1 1\n"
        self.assertEqual(measure.parse_machine_busy(stat), 4.0)

    def test_finds_the_high_water_of_memory(self):
        self.assertEqual(measure.parse_peak("Name:\tx\nVmHWM:\t  1234 kB\nVmRSS:\t  9 kB\n"), 1234 * 1024)

    def test_finds_the_writes_in_what_a_drive_counts(self):
        log = bytearray(512)
        log[48:64] = (7).to_bytes(16, "little")  # units of data
        log[64:80] = (8).to_bytes(16, "little")  # reads
        log[80:96] = (2**64 + 9).to_bytes(16, "little")
        self.assertEqual(measure.parse_smart_writes(bytes(log)), 2**64 + 9)

    def test_subtracts_what_was_counted_before(self):
        after = measure.Device(reads=5, read_bytes=50, writes=7, write_bytes=70, flushes=3)
        self.assertEqual(after.since(measure.Device(reads=1, writes=2)),
                         {"reads": 4, "read_bytes": 50, "writes": 5, "write_bytes": 70, "flushes": 3})


class Images(unittest.TestCase):
    def test_are_written_wherever_they_had_holes(self):
        with tempfile.NamedTemporaryFile() as f:
            f.truncate(9 << 20)
            os.pwrite(f.fileno(), b"x" * 4096, 5 << 20)
            peers.prepare(f.name, peers.Image(9 << 20, False))
            self.assertEqual(os.lseek(f.fileno(), 0, os.SEEK_HOLE), 0)
            peers.prepare(f.name, peers.Image(9 << 20, True))
            self.assertEqual(os.lseek(f.fileno(), 0, os.SEEK_HOLE), 9 << 20)
            self.assertEqual(os.pread(f.fileno(), 4096, 5 << 20), b"x" * 4096)
            self.assertEqual(os.pread(f.fileno(), 9 << 20, 0).count(b"x"), 4096)


class Rounds(unittest.TestCase):
    def test_leave_out_who_has_nothing_to_do(self):
        self.assertTrue(run.takes_part(PEERS["plain"], "durable", 0))
        self.assertFalse(run.takes_part(PEERS["plain"], "databases", 0))
        self.assertFalse(run.takes_part(PEERS["passthrough_hp"], "durable", 0))
        self.assertFalse(run.takes_part(PEERS["zfuse-flush"], "data", 0))
        self.assertTrue(run.takes_part(PEERS["fuse2fs"], "files", 2))
        self.assertFalse(run.takes_part(PEERS["fuse2fs"], "files", 3))
        self.assertTrue(all(run.takes_part(PEERS["zfuse"], suite, 9) for suite in SUITES))

    def test_have_suites_and_peers_for_each_medium(self):
        self.assertEqual(run.suites_of("vm"), list(VM_SUITES))
        self.assertEqual([s for s in SUITES if s not in run.suites_of("disk")], list(VM_SUITES))
        self.assertFalse(set(run.suites_of("tmpfs")) & {*DISK_SUITES, *VM_SUITES})
        self.assertIn("plain", run.peers_of("disk"))
        self.assertIn("xfs", run.peers_of("vm"))
        self.assertTrue(run.peers_of("vm")["zfuse-locked"].does(OPERATIONS["extend direct, 16 jobs"]))
        self.assertFalse(run.peers_of("vm")["zfuse-locked"].does(OPERATIONS["extend direct"]))

    def test_ask_mkfs_for_its_version(self):
        self.assertLess(drives.parse_version("mkfs.xfs version 6.1.0"), drives.XFS_ZONED)
        self.assertGreaterEqual(drives.parse_version("mkfs.xfs version 6.15.0"), drives.XFS_ZONED)
        self.assertGreaterEqual(drives.parse_version("mkfs.xfs version 7.2.0"), drives.XFS_ZONED)

    def test_who_begins_rotates(self):
        self.assertEqual([run.rotated([1, 2, 3], n) for n in range(4)],
                         [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 2, 3]])

    def test_what_a_killed_run_left_is_removed_and_what_a_living_one_has_is_not(self):
        with tempfile.TemporaryDirectory() as base:
            (pathlib.Path(base) / (run.PREFIX + "left") / "deep").mkdir(parents=True)
            (pathlib.Path(base) / "other").mkdir()
            with run.Place(base) as first, run.Place(base) as second:
                self.assertEqual(sorted(os.listdir(base)), sorted([first.name, second.name, "other"]))
            self.assertEqual(os.listdir(base), ["other"])


class Trees(unittest.TestCase):
    def copied(self, entries, size):
        with tempfile.TemporaryDirectory() as base:
            source = pathlib.Path(base) / "source"
            for name in ("a/one", "a/two", "b/three", ".git/config", "build/x", "build-y/z"):
                (source / name).parent.mkdir(parents=True, exist_ok=True)
                (source / name).write_bytes(b"x" * 100)
            (source / "c").symlink_to("nowhere")
            target = pathlib.Path(base) / "target"
            try:
                tree.copy_into(source, target, {"entries": entries, "bytes": size})
            except tree.Full:
                pass
            return sorted(str(p.relative_to(target)) for p in target.rglob("*"))

    def test_take_files_and_links_but_nothing_that_was_built(self):
        self.assertEqual(self.copied(100, 10000), ["a", "a/one", "a/two", "b", "b/three", "c"])

    def test_stop_at_their_bounds(self):
        self.assertEqual(self.copied(4, 10000), ["a", "a/one", "a/two"])  # the top is an entry too
        self.assertEqual(self.copied(100, 250), ["a", "a/one", "a/two", "b"])


unittest.main()
