#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mkfs.zfuse from outside: what it refuses and how it says so, what it prints, what it leaves alone.

usage: test_mkfs.py MKFS [UNITTEST-ARGUMENT...]
"""

import fcntl
import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

MKFS = ""
BLOCK = 4096
SMALL = "size=16M,zone-size=1M"
FSID = "01234567-89ab-cdef-0123-456789abcdef"
# The header of a swap area: version 1, 99 pages.
SWAP = ((1024, struct.pack("<II", 1, 99)), (BLOCK - 10, b"SWAPSPACE2"))


class MkfsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="zfuse-mkfs-")
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "disk.img")
        self.folder = os.path.join(folder.name, "folder")
        os.mkdir(self.folder)
        with open(os.path.join(self.folder, "letter"), "w", encoding="ascii") as f:
            f.write("Dear\n")

    def run_mkfs(self, *args, env=None):
        env = {**{k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}, **(env or {})}
        return subprocess.run([MKFS, *args], capture_output=True, text=True, env=env, timeout=60,
                              check=False)

    def make(self, *args, **kwargs):
        done = self.run_mkfs(*args, self.path, **kwargs)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout

    def refused(self, code, *args, says, **kwargs):
        """Exits with `code`, prints nothing on stdout, says each of `says`, changes no byte."""
        before = self.digest()
        done = self.run_mkfs(*args, **kwargs)
        self.assertEqual(done.returncode, code, done)
        self.assertEqual(done.stdout, "")
        for text in says:
            self.assertIn(text, done.stderr)
        self.assertEqual(self.digest(), before, "a refusal changed the file")

    def digest(self):
        if not os.path.exists(self.path):
            return None
        with open(self.path, "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()

    def read(self, offset, size):
        with open(self.path, "rb") as f:
            f.seek(offset)
            return f.read(size)

    def write_file(self, size, *pieces):
        with open(self.path, "wb") as f:
            f.truncate(size)
            for offset, data in pieces:
                f.seek(offset)
                f.write(data)


class CommandLine(MkfsTest):
    def test_no_device_is_a_usage_error(self):
        self.refused(2, says=["no device given", "--help"])

    def test_two_devices_are_a_usage_error(self):
        self.refused(2, "a", "b", says=["more than one device"])

    def test_unknown_options_are_a_usage_error(self):
        self.refused(2, "--frobnicate", self.path, says=["frobnicate", "--help"])

    def test_option_values_that_make_no_sense_are_usage_errors_and_named(self):
        for args, says in (
            (("-U", "1234"), "'1234' is not a UUID"),
            (("-U", "00000000-0000-0000-0000-000000000000"), "is not a UUID"),
            (("-L", "x" * 64), "at most 63 bytes"),
            (("-L", "a\x1bb"), "control characters"),
            (("--format", "xml"), "choose text or json"),
            (("--node-size", "5000"), "choose 4096, 8192, 16384 or 32768"),
            (("--node-size", "64K"), "choose 4096"),
            (("--metadata-copies", "3"), "choose 1 or 2"),
            (("--image", "size=4X"), "size is '4X'"),
            (("--image", "zone-size=1M"), "size"),
            (("--image", "size=16M,zone-size=1000"), "zone size"),
        ):
            with self.subTest(args):
                self.refused(2, *args, self.path, says=[says])
                self.assertFalse(os.path.exists(self.path))

    def test_only_a_directory_to_copy_makes_up_for_a_size(self):
        self.refused(2, "--image", "zone-size=1M,max-open=8", self.path, says=["size is 0"])
        out = self.make("--image", "zone-size=1M", "-r", self.folder, "--format", "json")
        self.assertEqual((json.loads(out)["copied_files"], json.loads(out)["copied_bytes"]), (1, 5))

    def test_help_and_version_go_to_stdout(self):
        for option, says in (("--help", "Usage: mkfs.zfuse"), ("--version", "mkfs.zfuse 0.")):
            done = self.run_mkfs(option)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(says, done.stdout)


class Geometry(MkfsTest):
    """Every device that cannot hold a filesystem, with the numbers in the message."""

    def refuse(self, geometry, *args, says):
        self.refused(1, "--image", geometry, *args, self.path, says=says)
        self.assertFalse(os.path.exists(self.path), "a refused image was made")

    def test_too_few_zones(self):
        self.refuse("size=15M,zone-size=1M", says=["has 15 zones", "needs at least 16"])

    def test_zones_too_small_for_the_nodes(self):
        self.refuse("size=16M,zone-size=128K", says=["131072", "262144", "--node-size"])
        self.refuse("size=16M,zone-size=1M,zone-capacity=128K", says=["131072", "262144"])

    def test_zones_of_64k_do_for_nodes_of_4k_and_not_less(self):
        self.make("-n", "--image", "size=1M,zone-size=64K", "--node-size", "4K")
        self.refuse("size=960K,zone-size=60K", "--node-size", "4K", says=["61440", "65536"])

    def test_too_few_active_zones(self):
        self.refuse(SMALL + ",max-active=5", says=["allows 5 open or active zones", "1 metadata copy needs 6",
                                                   "cannot be used"])
        self.make("-n", "--image", SMALL + ",max-active=6")

    def test_too_few_open_zones(self):
        self.refuse(SMALL + ",max-open=5,max-active=14", says=["allows 5 open or active zones", "max_open 5"])
        self.make("-n", "--image", SMALL + ",max-open=6,max-active=14")

    def test_two_metadata_copies_need_one_zone_more(self):
        self.refuse(SMALL + ",max-active=6", "--metadata-copies", "2",
                    says=["2 metadata copies need 7", "--metadata-copies 1"])
        self.make("-n", "--image", SMALL + ",max-active=7", "--metadata-copies", "2")

    def test_no_limit_is_no_limit(self):
        self.make("-n", "--image", SMALL + ",max-open=0,max-active=0")

    def test_an_image_that_is_there_is_checked_too(self):
        self.make("--image", "size=16M,zone-size=64K", "--node-size", "4K")
        self.refused(1, "-f", self.path, says=["65536", "262144"])


class Contents(MkfsTest):
    """What is there is named, and kept without -f."""

    def test_a_zfuse_filesystem(self):
        self.make("--image", SMALL, "-L", "photos", "-U", FSID)
        for args in ((), ("-n",), ("--image", SMALL)):
            self.refused(1, *args, self.path,
                         says=[self.path, "zfuse filesystem 'photos'", FSID, "-f"])
        self.make("-f")

    def test_a_damaged_zfuse_filesystem(self):
        self.make("--image", SMALL)
        with open(self.path, "r+b") as f:
            f.seek(200)
            f.write(b"x")
        self.refused(1, self.path, says=["damaged or newer zfuse filesystem", "-f"])

    def test_zones_with_data_of_unknown_origin(self):
        self.make("--image", SMALL)
        with open(self.path, "r+b") as f:
            f.write(bytes(BLOCK))
        self.refused(1, self.path, says=["zones with data", "-f"])

    def test_a_foreign_signature(self):
        self.write_file(100 * BLOCK, *SWAP)
        self.refused(1, "--image", SMALL, self.path, says=["signature of swap", "-f"])
        self.refused(1, self.path, says=["signature of swap"])
        self.make("-f", "--image", SMALL)

    def test_a_partition_table(self):
        entry = struct.pack("<B3sB3sII", 0, b"\0\2\0", 0x83, b"\0\3\0", 1, 100)
        self.write_file(1 << 20, (446, entry), (510, b"\x55\xaa"))
        self.refused(1, "--image", SMALL, self.path, says=["partition table (dos)", "-f"])

    def test_a_foreign_signature_in_a_conventional_zone(self):
        self.make("--image", SMALL + ",conventional=16")
        with open(self.path, "r+b") as f:
            f.write(bytes(2 << 20))  # the superblock's zones
            for offset, data in SWAP:
                f.seek(offset)
                f.write(data)
        self.refused(1, self.path, says=["signature of swap", "-f"])
        self.make("-f")
        self.assertEqual(self.read(BLOCK - 10, 10), bytes(10))

    def test_a_file_of_anything(self):
        self.write_file(10000, (0, b"letters to my mother"))
        self.refused(1, "--image", SMALL, self.path, says=["10000 bytes", "-f"])

    def test_an_empty_file_is_no_loss(self):
        self.write_file(0)
        self.make("--image", SMALL)

    def test_no_image_says_how_to_make_one(self):
        self.write_file(1 << 20)
        self.refused(1, self.path, says=["not a zoned image"])

    def test_a_path_that_is_not_there(self):
        self.refused(1, self.path, says=[self.path, "No such file"])
        self.refused(1, "-n", self.path, says=[self.path, "No such file"])

    def test_a_folder(self):
        self.refused(1, "-f", "--image", SMALL, os.path.dirname(self.path), says=["error"])

    def test_it_waits_for_the_last_owner(self):
        self.make("--image", SMALL)
        with open(self.path, "rb") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX)
            timer = threading.Timer(0.5, fcntl.flock, (owner, fcntl.LOCK_UN))
            timer.start()
            self.make("-f")
            self.assertFalse(timer.is_alive(), "mkfs did not wait")
            timer.join()


class Result(MkfsTest):
    def test_a_dry_run_makes_nothing(self):
        out = self.make("-n", "--image", SMALL)
        self.assertIn("Would make", out)
        self.assertFalse(os.path.exists(self.path))

    def test_a_dry_run_changes_nothing(self):
        self.make("--image", SMALL)
        before = self.digest()
        out = self.make("-n", "-f", "--metadata-copies", "2")
        self.assertIn("would lose   a zfuse filesystem", out)
        self.make("-n", "-f", "--image", "size=32M,zone-size=1M")
        self.assertEqual(self.digest(), before)

    def test_quiet_is_quiet(self):
        self.assertEqual(self.make("-q", "--image", SMALL), "")
        self.assertEqual(self.make("-q", "-f", "--format", "json"), "")

    def test_the_text_has_the_numbers(self):
        out = self.make("--image", "size=64M,zone-size=2M,zone-capacity=1M,conventional=3,"
                        "max-open=8,max-active=9", "-L", "Gr\u00fc\u00dfe", "-U", FSID)
        for line in ("label        Gr\u00fc\u00dfe", "UUID         " + FSID,
                     "zones        32 of 2 MiB, capacity 1 MiB", "conventional 3",
                     "max open     8 (6 needed)", "max active   9 (6 needed)",
                     "node size    16 KiB", "metadata     1 copy", "superblock   2 zones, 2 MiB",
                     "written by   image, appends emulated",
                     "reserve      6 zones, 6 MiB",
                     "usable       24 zones, 24 MiB (25165824 bytes)"):
            self.assertIn("  " + line + "\n", out)

    def test_json_has_the_same_with_numbers_as_numbers(self):
        out = self.make("--image", SMALL + ",max-open=8", "-L", 'a"b', "-U", FSID,
                        "--metadata-copies", "2", "--node-size", "8K", "--format", "json")
        self.assertEqual(json.loads(out), {
            "device": self.path, "dry_run": False, "new_image": True, "replaced": "",
            "uuid": FSID, "label": 'a"b', "device_kind": "image", "append": "emulated",
            "zone_count": 16, "zone_size": 1 << 20,
            "zone_capacity": 1 << 20, "conventional_zones": 0, "max_open": 8, "max_active": 0,
            "active_needed": 7, "node_size": 8192, "metadata_copies": 2, "superblock_zones": 2,
            "reserved_zones": 7, "usable_zones": 7, "usable_bytes": 7 << 20})

    def test_the_superblock_says_what_was_asked_for(self):
        self.make("--image", SMALL, "-L", "photos", "-U", FSID, "--node-size", "4096",
                  env={"SOURCE_DATE_EPOCH": "1767225600"})
        record = self.read(0, BLOCK)
        self.assertEqual(record[8:16], b"zfuse\0SB")
        self.assertEqual(record[24:40].hex(), FSID.replace("-", ""))
        self.assertEqual(struct.unpack_from("<QQII", record, 80), (1 << 20, 1 << 20, 16, 0))
        self.assertEqual(struct.unpack_from("<II", record, 104), (4096, 4096))
        self.assertEqual(struct.unpack_from("<Q", record, 160), (1767225600,))
        self.assertEqual(record[168:232], b"photos".ljust(64, b"\0"))

    def test_random_by_default(self):
        self.make("--image", SMALL)
        first = self.read(0, BLOCK)
        self.make("-f")
        second = self.read(0, BLOCK)
        for name, offset, size in (("fsid", 24, 16), ("seed", 120, 8), ("secret", 128, 32)):
            self.assertNotEqual(first[offset:offset + size], second[offset:offset + size], name)

    def test_a_uuid_alone_does_not_give_the_secrets_away(self):
        self.make("--image", SMALL, "-U", FSID)
        first = self.read(120, 40)
        self.make("-f", "-U", FSID)
        self.assertNotEqual(self.read(120, 40), first)

    def test_uuid_and_time_given_a_new_image_is_the_same_every_time(self):
        epoch = {"SOURCE_DATE_EPOCH": "1767225600"}
        self.make("--image", SMALL, "-U", FSID, env=epoch)
        first = self.digest()
        os.unlink(self.path)
        self.make("--image", SMALL, "-U", FSID, env=epoch)
        self.assertEqual(self.digest(), first)

    def test_a_time_that_is_none(self):
        self.refused(1, "--image", SMALL, self.path, says=["SOURCE_DATE_EPOCH is 'noon'"],
                     env={"SOURCE_DATE_EPOCH": "noon"})


if __name__ == "__main__":
    MKFS = sys.argv[1]
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
