#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What zfuse_id tells udev of a disk: the lines that libblkid would make, whatever the label is.

usage: test_zfuse_id.py ZFUSE_ID MKFS ZFUSECTL [UNITTEST-ARGUMENT...]
"""
import fcntl
import os
import subprocess
import sys
import tempfile
import unittest

ZFUSE_ID = ""
MKFS = ""
ZFUSECTL = ""
UUID = "01234567-89ab-cdef-0123-456789abcdef"
HEAD = ["ID_FS_TYPE=zfuse", "ID_FS_USAGE=filesystem", f"ID_FS_UUID={UUID}", f"ID_FS_UUID_ENC={UUID}"]


class ZfuseIdTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="zfuse-id-")
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "disk.img")

    def make(self, *args):
        subprocess.run([MKFS, "--image", "size=16M,zone-size=1M", "--uuid", UUID, *args, self.path], check=True,
                       stdout=subprocess.DEVNULL)

    def ask(self):
        done = subprocess.run([ZFUSE_ID, self.path], capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout.split("\n")[:-1], done.stderr

    def check_label(self, label, encoded):
        self.make("--force", "--label", label)
        self.assertEqual(self.ask(), (0, HEAD + [f"ID_FS_LABEL={encoded}", f"ID_FS_LABEL_ENC={encoded}"], ""))

    def test_without_a_label_there_is_no_line_of_it(self):
        self.make()
        self.assertEqual(self.ask(), (0, HEAD, ""))

    def test_labels_are_encoded_as_udev_does(self):
        self.check_label("home", "home")
        self.check_label("my disk", r"my\x20disk")
        self.check_label("../../etc", r"..\x2f..\x2fetc")
        self.check_label("Größe", "Größe")
        self.check_label("\\" * 63, r"\x5c" * 63)

    def test_a_changed_label_is_told(self):
        self.make("--label", "old")
        for label in ("new", "newer", ""):
            subprocess.run([ZFUSECTL, "label", self.path, label], check=True, stdout=subprocess.DEVNULL)
            lines = [f"ID_FS_LABEL={label}", f"ID_FS_LABEL_ENC={label}"] if label else []
            self.assertEqual(self.ask(), (0, HEAD + lines, ""))

    def test_no_label_is_taken_for_more_than_a_value(self):
        for label in ('"', "'", "$env{X}", "%k", "a\\x0aID_FS_TYPE=ext4", "`id`", ";=", "\u2028" * 21, "\\" * 63):
            with self.subTest(label=label):
                self.make("--force", "--label", label)
                status, lines, error = self.ask()
                self.assertEqual((status, lines[:4], error), (0, HEAD, ""))
                self.assertEqual([line.split("=")[0] for line in lines[4:]], ["ID_FS_LABEL", "ID_FS_LABEL_ENC"])
                for line in lines[4:]:
                    self.assertNotRegex(line.partition("=")[2], r"[ \n\"'$%`;/]")

    def test_a_disk_in_use_is_told_of_and_not_waited_for(self):
        self.make()
        with open(self.path, "rb") as disk:
            fcntl.flock(disk, fcntl.LOCK_EX)
            self.assertEqual(self.ask()[0], 0)

    def test_it_writes_nothing(self):
        self.make()
        os.chmod(self.path, 0o400)
        before = os.stat(self.path)
        self.ask()
        after = os.stat(self.path)
        self.assertEqual((after.st_mtime_ns, after.st_ctime_ns), (before.st_mtime_ns, before.st_ctime_ns))

    def test_other_disks_are_nothing(self):
        with open(self.path, "wb") as disk:
            disk.write(os.urandom(1 << 20))
        self.assertEqual(self.ask(), (2, [], ""))

    def test_a_disk_that_cannot_be_read_is_an_error(self):
        status, lines, error = self.ask()
        self.assertEqual((status, lines), (1, []))
        self.assertIn("No such file", error)


if __name__ == "__main__":
    ZFUSE_ID, MKFS, ZFUSECTL = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
