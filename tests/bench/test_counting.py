#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How bench/counting.py reads counts, compares them with a baseline, and writes a baseline. The test has the counts
ready, and runs no simulator.
"""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from bench import counting  # noqa: E402 (the path comes first)

HERE = "gcc-12 x86_64, libc 2.36, xxhash 801, avx2"


def counts(surroundings=HERE, **instructions):
    return [counting.Count(name, "file", number, surroundings, ()) for name, number in instructions.items()]


class Parsing(unittest.TestCase):
    def test_divides_by_how_many_there_were(self):
        one = counting.parse("create", f"1000 file\n{HERE}\n", "events: Ir\nsummary: 1234567\n")
        self.assertEqual(one, counting.Count("create", "file", 1235, HERE, ()))

    def test_the_unit_may_have_several_words(self):
        self.assertEqual(counting.parse("read", f"2 4 KiB block\n{HERE}\n", "totals: 8\n").unit, "4 KiB block")

    def test_a_file_counts_by_instructions_of_its_own(self):
        profile = """fl=(1) /build/../../src/fs/a.c
fn=(1) zf_a
10 5
fi=(2) /build/../../src/base/b.h
+3 2
fe=(1)
cfi=(3) /build/../../src/fs/only_called.c
cfn=(2) zf_c
calls=1 40
* 70
cfi=(4) /build/../../src/fs/d.c
cfn=(3) zf_d
calls=1 7
-2 9

fl=(4)
fn=(3)
7 9

fl=(5) /usr/include/x.h
fn=(4) memcpy
1 4
"""
        self.assertEqual(counting.files_executed(profile), ("src/base/b.h", "src/fs/a.c", "src/fs/d.c"))

    def test_what_counted_nothing_is_an_error(self):
        for profile in ("events: Ir\n", "summary: 0\n", "summary: 999\n"):
            with self.assertRaises(counting.CountingError):
                counting.parse("create", f"1000 file\n{HERE}\n", profile)

    def test_a_program_that_fails_is_an_error(self):
        with tempfile.TemporaryDirectory() as directory, self.assertRaises(counting.CountingError):
            counting.count(pathlib.Path("/bin/false"), "create", pathlib.Path(directory, "profile"))


class Twice(unittest.TestCase):
    def test_the_same_twice_is_no_difference(self):
        self.assertIsNone(counting.difference(counts(create=5, read=6), counts(create=5, read=6)))

    def test_one_instruction_is_a_difference(self):
        self.assertEqual(counting.difference(counts(create=5, read=6), counts(create=5, read=7)), "read: 6 and 7")


class Baselines(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.directory = pathlib.Path(made.name)

    def write(self, **instructions):
        return counting.write_baseline(counts(**instructions), self.directory)

    def test_reads_what_it_wrote(self):
        self.assertEqual(self.write(create=1000, read=2000).name, "gcc-12.baseline")
        self.assertEqual(counting.read_baseline(HERE, self.directory), {"create": 1000, "read": 2000})

    def test_there_is_none_of_another_compiler(self):
        self.write(create=1000)
        self.assertIsNone(counting.read_baseline(HERE.replace("gcc-12", "gcc-14"), self.directory))

    def test_there_is_none_with_other_libraries_or_processors(self):
        self.write(create=1000)
        for other in (HERE.replace("2.36", "2.41"), HERE.replace(", avx2", "")):
            self.assertIsNone(counting.read_baseline(other, self.directory))

    def test_five_percent_more_are_allowed(self):
        self.assertEqual(counting.worse(counts(create=1050), {"create": 1000}), [])

    def test_more_than_five_percent_are_not(self):
        found = counting.worse(counts(create=1051, read=2000), {"create": 1000, "read": 2000})
        self.assertEqual(found, ["create takes 1,051 instructions, 105.1% of the baseline"])

    def test_an_operation_without_a_baseline_is_not_allowed(self):
        self.assertEqual(counting.worse(counts(create=1), {"read": 2000}), ["create is not in the baseline"])

    def test_tells_what_the_bound_no_longer_holds(self):
        self.assertEqual(counting.better(counts(create=953), {"create": 1000}), [])
        self.assertEqual(len(counting.better(counts(create=952), {"create": 1000})), 1)


class Tables(unittest.TestCase):
    def test_has_the_share_of_a_baseline_that_there_is(self):
        self.assertIn("110.0%", counting.counts_table(counts(create=1100), {"create": 1000}))
        self.assertNotIn("baseline", counting.counts_table(counts(create=1100)))


unittest.main()
