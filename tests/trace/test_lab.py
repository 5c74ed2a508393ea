# SPDX-License-Identifier: MIT
"""`zfusectl lab crash`: the images that it makes, and the requests that it refuses.

    test_lab.py CRASH ZFUSECTL
"""
import hashlib
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

CRASH, ZFUSECTL = sys.argv[1:3]
HEADER, ZONE, PIECE = 72, 24, 24
TRACE_HEADER, RECORD = 248, 64


class Lab(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.path = pathlib.Path(cls.directory.name)
        for seed in ("3", "13"):
            subprocess.run([CRASH, "--ops", "200", "--repeat", seed, "--trace", cls.path / f"trace{seed}",
                            "--trace-data", cls.path / f"data{seed}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        cls.trace, cls.data = cls.path / "trace3", cls.path / "data3"

    def run_lab(self, *more, trace=None, data=None, image="image", command=("lab", "crash")):
        return subprocess.run([ZFUSECTL, *command, trace or self.trace, self.path / image, "--trace-data", data or self.data, *more],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)

    def refuses(self, text, *more, status=1, **named):
        ran = self.run_lab(*(more or ("--at", "500")), image="none", **named)
        self.assertEqual((ran.returncode, ran.stdout), (status, ""), ran.stderr)
        self.assertIn(text, ran.stderr)
        self.assertFalse((self.path / "none").exists())

    def file(self, name, data):
        (self.path / name).write_bytes(data)
        return self.path / name

    # ---- what it makes ----

    def image_of(self, at, outcome):
        """Makes an image. The checker must find no error in it. Returns its digest."""
        ran = self.run_lab("--at", str(at), "--outcome", str(outcome), "--force")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        subprocess.run([ZFUSECTL, "check", "--data", self.path / "image"], stdout=subprocess.DEVNULL, check=True)
        return hashlib.sha256((self.path / "image").read_bytes()).hexdigest()

    def test_an_outcome_is_the_same_image_again(self):
        differ = 0
        for at in range(300, 1300, 200):
            images = [self.image_of(at, outcome) for outcome in (7, 7, 8, 9)]
            self.assertEqual(images[0], images[1])
            differ += len(set(images)) > 1
        self.assertGreater(differ, 0, "every outcome is the same")

    def test_every_event_can_be_the_last(self):
        count = (self.trace.stat().st_size - TRACE_HEADER) // RECORD
        for at in (1, 2, count - 1, count):
            self.assertEqual(self.run_lab("--at", str(at), "--force").returncode, 0)
        self.refuses(f"the trace has no event {count + 1}", "--at", str(count + 1))

    def test_a_file_that_is_there_stays(self):
        there = self.file("there", b"something")
        ran = self.run_lab("--at", "500", image="there")
        self.assertEqual((ran.returncode, there.read_bytes()), (1, b"something"))
        self.assertIn("not empty", ran.stderr)

    def test_it_does_not_overwrite_what_it_reads(self):
        for there in (self.trace, self.data):
            before = there.read_bytes()
            ran = self.run_lab("--at", "500", "--force", image=there)
            self.assertEqual(ran.returncode, 2)
            self.assertIn("name another file", ran.stderr)
            self.assertTrue(there.read_bytes() == before)

    # ---- what it refuses ----

    def test_it_says_what_is_missing(self):
        ran = subprocess.run([ZFUSECTL, "lab", "crash", self.trace, "image", "--at", "5"], stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("--trace-data=FILE is missing", ran.stderr)
        self.refuses("--at=N is missing", "--force", status=2)

    def test_data_of_another_run(self):
        self.refuses("this is the data of another trace", data=self.path / "data13")
        self.refuses("this is not the data of a trace", data=self.trace)
        self.refuses("No such file or directory", data=self.path / "nothing")
        data = self.data.read_bytes()
        self.refuses("of another version", data=self.file("version", data[:8] + b"\2" + data[9:]))
        self.refuses("this is not the data of a trace", data=self.file("short", data[:20]))
        trace = self.trace.read_bytes()
        self.refuses("more than 64 GiB", trace=self.file("large", trace[:40] + bytes(4) + b"\1" + trace[45:]),
                     data=self.file("large-data", data[:32] + bytes(4) + b"\1" + data[37:]))
        self.refuses("the header is damaged", data=self.file("short", data[:HEADER + 5]))

    def test_data_that_was_cut_off(self):
        data = self.data.read_bytes()
        self.refuses("the data lacks the bytes", "--at", "1200", data=self.file("part", data[:len(data) // 3]))
        self.assertEqual(self.run_lab("--at", "20", "--force", data=self.path / "part").returncode, 0)

    def test_a_trace_with_gaps(self):
        trace = self.trace.read_bytes()
        gap = trace[:TRACE_HEADER + 300 * RECORD] + trace[TRACE_HEADER + 301 * RECORD:]
        self.refuses("events before 400 are not in the trace", "--at", "400", trace=self.file("gap", gap))
        self.assertEqual(self.run_lab("--at", "300", "--force", trace=self.path / "gap").returncode, 0)

    def test_it_bears_any_files(self):
        draw = random.Random(5)
        for _ in range(40):
            files = []
            for source, name, first in ((self.trace, "t", TRACE_HEADER), (self.data, "d", 8)):
                data = bytearray(source.read_bytes())
                for _ in range(draw.choice((0, 1, 30))):
                    data[draw.randrange(first, len(data))] = draw.randrange(256)
                for _ in range(draw.choice((0, 4))):
                    data[draw.randrange(first, min(len(data), 3000))] = draw.randrange(256)
                files.append(self.file(name, bytes(data)))
            for command in (("lab", "crash"), ("replay", "-o")):
                self.bears(command, *files)

    def bears(self, command, trace, data):
        end = [self.path / "image", "--at", "900", "--force"] if command[0] == "lab" else []
        head = [ZFUSECTL, *command, trace] if command[0] == "lab" else [ZFUSECTL, "replay", trace, "-o", self.path / "page"]
        ran = subprocess.run([*head, *end, "--trace-data", data], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        self.assertIn(ran.returncode, (0, 1), ran.stderr)


unittest.main(argv=sys.argv[:1])
