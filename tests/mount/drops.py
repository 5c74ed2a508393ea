#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What programs do until the filesystem is gone from under them, and what must be there afterwards.

    drops.py prepare NAME                     before there is a filesystem
    drops.py work NAME DIRECTORY LOG SEED     works until then; exit status 0 if nothing but that ended it
    drops.py judge NAME DIRECTORY LOG         afterwards; says what is wrong, or what was found

LOG is a file outside the filesystem. A worker notes there what it is about to do ("try"), and what it was told is
durable ("done"), each before it goes on. Whatever was done must be there; what was tried may be; nothing else.
"""
import ctypes
import errno
import mmap
import os
import pathlib
import pwd
import random
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import time

# What a program is told when the daemon is gone, over either transport.
GONE = (errno.ENOTCONN, errno.ECONNABORTED, errno.ECANCELED, errno.EIO)
FALLOC_ZERO_RANGE, FALLOC_PUNCH_HOLE_KEEP = 0x10, 0x03
BLOCK = 4096


class Broken(Exception):
    """A promise."""


def check(holds, text):
    if not holds:
        raise Broken(text)


class Work:
    """In `directory`, which is the worker's own. Numbers and words in the log are what each work makes of them."""

    def __init__(self, directory, log, seed=0):
        self.directory = directory
        self.log_path = log
        self.random = random.Random(seed)

    def open_log(self):
        self.log = os.open(self.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, kind, *words):
        os.write(self.log, (" ".join([kind, *map(str, words)]) + "\n").encode())

    def read_log(self):
        """[(kind, words)]; a line that the kill cut short never came to pass."""
        text = self.log_path.read_text() if self.log_path.exists() else ""
        return [(line.split()[0], line.split()[1:]) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def last(self, kind, *which):
        """The last number noted, of those whose first words are `which`; -1: none."""
        found = [words for k, words in self.read_log() if k == kind and words[:len(which)] == list(map(str, which))]
        return int(found[-1][len(which)]) if found else -1

    def sync_directory(self, path=None):
        fd = os.open(path or self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    @staticmethod
    def write(path, data, flags=0, sync=False):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o600)
        try:
            for at in range(0, len(data), 50000):
                os.write(fd, data[at:at + 50000])
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)

    @staticmethod
    def prepare():
        pass

    def work(self):
        raise NotImplementedError

    def judge(self):
        """Returns how much there was to judge, in words."""
        raise NotImplementedError

    def verdict(self):
        if not self.directory.exists():
            check(all(kind != "done" for kind, _ in self.read_log()), "what was durable is not there at all")
            return "nothing was done"
        try:
            return self.judge()
        except FileNotFoundError as e:
            raise Broken(f"{e.filename} is not there") from None


def words_of(number, size):
    """Contents that tell their number everywhere: 8 bytes, over and over."""
    return struct.pack("<Q", number + 1) * (size // 8)


def number_in(data, name):
    """The number that whole contents tell."""
    check(data, f"{name} is empty")
    check(len(data) % 8 == 0 and data == data[:8] * (len(data) // 8), f"{name}: its contents are mixed")
    number = struct.unpack("<Q", data[:8])[0] - 1
    check(number >= 0, f"{name} has zeroes")
    return number


def size_of(number):
    """Of contents with this number: all kinds, from inline to several appends."""
    return (8, 1024, 2048, 4096, 12288, 65536, 300000, 8 * 701)[number * 7 % 8] // 8 * 8


class Renamer(Work):
    """Writes beside, and renames over: with fsync of file and directory (P1, P2)."""
    FILES = 6
    SYNCS = True

    def path(self, n):
        return self.directory / f"file{n}"

    def work(self):
        for n in range(self.FILES):
            self.write(self.path(n), words_of(0, size_of(0)), sync=True)
        self.sync_directory()
        self.note("done", "start", 0)
        for number in range(1, 1 << 30):
            n = self.random.randrange(self.FILES)
            self.note("try", n, number)
            self.write(self.directory / "new", words_of(number, size_of(number)), os.O_TRUNC, sync=self.SYNCS)
            os.rename(self.directory / "new", self.path(n))
            if self.SYNCS and self.random.random() < 0.7:
                self.sync_directory()
                self.note("done", n, number)
            elif not self.SYNCS and self.random.random() < 0.05:
                self.write(self.directory / "other", words_of(number, 8), sync=True)

    def judge(self):
        if self.last("done", "start") < 0:
            return "nothing was done"
        latest = 0
        for n in range(self.FILES):
            data = self.path(n).read_bytes()
            number = number_in(data, f"file{n}")
            check(len(data) == size_of(number), f"file{n}, version {number}: {len(data)} bytes")
            check(number >= self.last("done", n), f"file{n} is {number}, {self.last('done', n)} was durable")
            check(number <= self.last("try", n) or number == 0, f"file{n} is {number}, of another file")
            latest = max(latest, number)
        # The versions form a prefix: everything that was done before the latest version found is there as well.
        tried = [(int(words[0]), int(words[1])) for kind, words in self.read_log() if kind == "try"]
        state = dict.fromkeys(range(self.FILES), 0)
        for n, number in tried:
            if number <= latest:
                state[n] = number
        for n in range(self.FILES):
            check(number_in(self.path(n).read_bytes(), "") == state[n], f"file{n} is older than {latest}, later is there")
        return f"{latest} versions"


class CarelessRenamer(Renamer):
    """With neither: what makes the renames durable is the fsync of something else (P2)."""
    SYNCS = False


class Truncater(Work):
    """Truncates, writes again and closes; sometimes fsyncs the file, sometimes another one (P1, P2, P3)."""

    def work(self):
        self.write(self.directory / "file", b"", sync=True)
        self.write(self.directory / "other", b"", sync=True)
        self.sync_directory()
        self.note("done", "start", 0)
        for number in range(1 << 30):
            self.note("try", "file", number)
            own = self.random.random() < 0.5
            self.write(self.directory / "file", words_of(number, size_of(number)), os.O_TRUNC, sync=own)
            if own:
                self.note("done", "file", number)
            else:
                fd = os.open(self.directory / "other", os.O_RDWR)
                os.pwrite(fd, struct.pack("<Q", number), 0)
                os.fsync(fd)
                os.close(fd)
                self.note("done", "other", number)

    def judge(self):
        if self.last("done", "start") < 0:
            return "nothing was done"
        done, tried, other = self.last("done", "file"), self.last("try", "file"), self.last("done", "other")
        data = (self.directory / "file").read_bytes()
        words = set(struct.unpack(f"<{len(data) // 8}Q", data[:len(data) // 8 * 8])) - {0}
        check(len(words) <= 1, f"file holds several versions: {sorted(words)[:4]}")
        number = words.pop() - 1 if words else None
        if number is not None:
            check(done <= number <= tried, f"file is {number}, {done} was durable, {tried} was tried")
            check(len(data) <= size_of(number), f"file, version {number}: {len(data)} bytes")
            check(number > done or data == words_of(done, size_of(done)), f"file, version {done}, is not whole")
        else:
            check(done < tried or done < 0, f"file, version {done}, is lost")
        data = (self.directory / "other").read_bytes()
        check(other < 0 or len(data) == 8 and struct.unpack("<Q", data)[0] >= other, f"other is older than {other}")
        return f"{tried + 1} versions"


class Mapper(Work):
    """Stores through a shared mapping, and msync (P1)."""
    PAGES = 64

    def work(self):
        path = self.directory / "mapped"
        self.write(path, bytes(self.PAGES * BLOCK), sync=True)
        self.sync_directory()
        fd = os.open(path, os.O_RDWR)
        with mmap.mmap(fd, self.PAGES * BLOCK) as pages:
            for number in range(1, 1 << 30):
                first = self.random.randrange(self.PAGES)
                count = min(self.random.choice((1, 1, 3)), self.PAGES - first)
                for page in range(first, first + count):
                    self.note("try", page, number)
                    pages[page * BLOCK:page * BLOCK + 8] = struct.pack("<Q", number)
                    pages[(page + 1) * BLOCK - 8:(page + 1) * BLOCK] = struct.pack("<Q", number)
                pages.flush(first * BLOCK, count * BLOCK)
                for page in range(first, first + count):
                    self.note("done", page, number)

    def judge(self):
        found = 0
        log = self.read_log()
        done = {int(w[0]): int(w[1]) for kind, w in log if kind == "done"}
        tried = {int(w[0]): int(w[1]) for kind, w in log if kind == "try"}
        if not tried:
            return "nothing was done"
        data = (self.directory / "mapped").read_bytes()
        check(len(data) == self.PAGES * BLOCK, f"mapped has {len(data)} bytes")
        for page in range(self.PAGES):
            ends = (struct.unpack_from("<Q", data, page * BLOCK)[0], struct.unpack_from("<Q", data, (page + 1) * BLOCK - 8)[0])
            for number in ends:
                check(done.get(page, 0) <= number <= tried.get(page, 0),
                      f"page {page} is {number}, {done.get(page, 0)} was durable, {tried.get(page, 0)} tried")
            found += ends[0] > 0
        return f"{len(done)} pages, {self.last('done', 0)}, {found} stored"


class Zeroer(Work):
    """Zeroes and writes parts of a file, with fsync or without (P1, P3); against the same on paper."""
    BLOCKS = 512

    @staticmethod
    def fallocate(fd, mode, offset, length):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.fallocate(fd, mode, ctypes.c_int64(offset), ctypes.c_int64(length)) != 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))

    def write_zeroes(self, fd, path, offset, length):
        """By the tool, which knows how; by ZERO_RANGE where there is none that does."""
        tool = os.environ.get("ZFUSECTL")
        if tool and self.random.random() < 0.2:
            command = [tool, "fallocate", "--write-zeroes", "-o", str(offset), "-l", str(length), str(path)]
            if subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return
        self.fallocate(fd, FALLOC_ZERO_RANGE, offset, length)

    def work(self):
        path = self.directory / "zeroed"
        self.write(path, bytes(self.BLOCKS * BLOCK), sync=True)
        self.sync_directory()
        self.note("done", 0)
        fd = os.open(path, os.O_RDWR)
        for number in range(1, 1 << 30):
            first = self.random.randrange(self.BLOCKS)
            count = min(self.random.choice((1, 2, 8, 100)), self.BLOCKS - first)
            kind = self.random.choice(("zero", "write", "write", "punch", "dsync"))
            self.note("try", number, kind, first, count)
            offset, length = first * BLOCK, count * BLOCK
            if kind == "zero":
                self.write_zeroes(fd, path, offset, length)
            elif kind == "punch":
                self.fallocate(fd, FALLOC_PUNCH_HOLE_KEEP, offset, length)
            elif kind == "write":
                os.pwrite(fd, words_of(number, length), offset)
            else:
                os.pwritev(fd, [words_of(number, length)], offset, os.RWF_DSYNC)
            if kind != "dsync" and self.random.random() < 0.4:
                os.fsync(fd)
                self.note("done", number)
            elif kind == "dsync":
                # This write is durable. Earlier changes of the file may not be.
                self.note("one", number)

    def judge(self):
        done = self.last("done")
        if done < 0:
            return "nothing was done"
        allowed = [{0} for _ in range(self.BLOCKS)]
        log = self.read_log()
        alone = {int(words[0]) for kind, words in log if kind == "one"}
        number = 0
        for kind, words in log:
            if kind != "try":
                continue
            number, what, first, count = int(words[0]), words[1], int(words[2]), int(words[3])
            value = number + 1 if what in ("write", "dsync") else 0
            for block in range(first, first + count):
                # After a durable write nothing older may be there.
                allowed[block] = {value} if number <= done or number in alone else allowed[block] | {value}
        data = (self.directory / "zeroed").read_bytes()
        check(len(data) == self.BLOCKS * BLOCK, f"zeroed has {len(data)} bytes")
        for block in range(self.BLOCKS):
            words = set(struct.unpack(f"<{BLOCK // 8}Q", data[block * BLOCK:(block + 1) * BLOCK]))
            check(len(words) == 1, f"block {block} is mixed: {sorted(words)[:4]}")
            check(words <= allowed[block], f"block {block} is {words}, not one of {sorted(allowed[block])}")
        return f"{number} changes, {done} of them durable"


class Syncer(Work):
    """Makes files, and then `zfusectl sync` (P1); syncfs(2) reaches no daemon but that of a block device. The oldest go
    when many are durable, so that no device is filled, however late the kill is: 150 MiB, and what is being made."""
    PER_DIRECTORY = 50
    DIRECTORIES = 60

    def path(self, number):
        return self.directory / f"d{number // self.PER_DIRECTORY}" / f"f{number}"

    def work(self):
        made, gone = 0, 0
        while True:
            for _ in range(self.random.randrange(1, 40)):
                self.path(made).parent.mkdir(exist_ok=True)
                self.note("try", made)
                self.write(self.path(made), words_of(made, size_of(made)), os.O_EXCL)
                made += 1
            if subprocess.run([os.environ["ZFUSECTL"], "sync", self.directory], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode != 0:
                continue
            self.note("done", made)
            while made - gone > self.PER_DIRECTORY * self.DIRECTORIES:
                gone += self.PER_DIRECTORY
                self.note("gone", gone)
                for number in range(gone - self.PER_DIRECTORY, gone):
                    self.path(number).unlink()
                self.path(gone - 1).parent.rmdir()

    def judge(self):
        done, gone = max(self.last("done"), 0), self.last("gone")
        for number in range(done):
            if number < gone and not self.path(number).exists():
                continue
            check(self.path(number).exists(), f"file {number} is lost, {done} were durable, {gone} removed")
            check(self.path(number).read_bytes() == words_of(number, size_of(number)),
                  f"file {number} is not what it was")
        return f"{done} files"


class Appender(Work):
    """Appends records with O_DSYNC; several at once, some with O_DIRECT (P1). From time to time in a new file, and the
    last but one goes, so that no device is filled, however late the kill is: 96 MiB."""
    SIZES = (8, 100 * 8, BLOCK, 3 * BLOCK, BLOCK, 16 * BLOCK)
    DIRECT = (False, False, False, False, True, True)
    FILE_BYTES = 8 << 20

    def work(self):
        children = []
        for n in range(len(self.SIZES)):
            pid = os.fork()
            if pid == 0:
                os._exit(run(lambda n=n: self.append(n), self.directory))
            children.append(pid)
        wait_for(children)

    def path(self, n, file):
        return self.directory / f"records{n}.{file}"

    def append(self, n):
        for file in range(1 << 30):
            if file >= 2:
                self.path(n, file - 2).unlink()
            self.fill(n, file)

    def fill(self, n, file):
        flags = os.O_WRONLY | os.O_CREAT | os.O_DSYNC | (os.O_DIRECT if self.DIRECT[n] else os.O_APPEND)
        fd = os.open(self.path(n, file), flags, 0o600)
        self.sync_directory()
        size, count = self.SIZES[n], self.FILE_BYTES // self.SIZES[n]
        buffer = mmap.mmap(-1, max(size, BLOCK))
        for at in range(count):
            number = file * count + at
            buffer[:size] = words_of(number, size)
            if self.DIRECT[n]:
                os.pwrite(fd, buffer, at * size)
            else:
                os.write(fd, buffer[:size])
            self.note("done", n, number)
        os.close(fd)

    def judge(self):
        found = 0
        for n in range(len(self.SIZES)):
            done = self.last("done", n)
            if done < 0:
                continue
            last, at = divmod(done, self.FILE_BYTES // self.SIZES[n])
            for file in range(max(last - 1, 0), last + 1):
                # After the last record of a file append() deletes the file before it, without a note.
                may_be_gone = file < last and at == self.FILE_BYTES // self.SIZES[n] - 1
                if not may_be_gone or self.path(n, file).exists():
                    self.judge_file(n, file, done)
            found += done + 1
        return f"{found} records"

    def judge_file(self, n, file, done):
        size, count = self.SIZES[n], self.FILE_BYTES // self.SIZES[n]
        data = self.path(n, file).read_bytes()
        durable = min(done - file * count + 1, count)
        check(len(data) >= durable * size, f"records{n}.{file}: {len(data)} bytes, record {done} of {size} was durable")
        for at in range(durable):
            check(data[at * size:(at + 1) * size] == words_of(file * count + at, size), f"records{n}.{file}: record {at}")
        rest = data[durable * size:]
        check(len(rest) <= size and rest == words_of(done + 1, size)[:len(rest)], f"records{n}.{file}: behind the last")


class Linker(Work):
    """Makes, links, renames and removes names; an fsync of a directory now and then (P1, P2): what is there is what
    there was after one of the operations, and not before the last durable one."""

    def work(self):
        for name in ("a", "b"):
            (self.directory / name).mkdir()
        self.sync_directory()
        self.note("done", 0)
        state = {}
        for number in range(1, 1 << 30):
            operation = self.draw(state, number)
            self.note("try", number, *operation)
            self.carry_out(operation)
            self.on_paper(state, operation, number)
            if self.random.random() < 0.15:
                self.sync_directory(self.directory / self.random.choice("ab"))
                self.note("done", number)

    def draw(self, state, number):
        names = [n for n, inode in state.items() if inode is not None]
        free = f"{self.random.choice('ab')}/n{number}"
        kind = self.random.choice(("make", "make", "link", "link", "unlink", "rename", "replace"))
        if kind == "make" or len(names) < 2:
            return "make", free
        if len(names) > 60:
            kind = "unlink"
        one, other = self.random.sample(names, 2)
        if kind == "replace" and state[one] == state[other]:
            kind = "unlink"  # a rename to another name of the same file does nothing
        return {"link": ("link", one, free), "unlink": ("unlink", one), "rename": ("rename", one, free),
                "replace": ("rename", one, other)}[kind]

    def carry_out(self, operation):
        paths = [self.directory / name for name in operation[1:]]
        if operation[0] == "make":
            self.write(paths[0], b"", os.O_EXCL)
        else:
            {"link": os.link, "unlink": os.unlink, "rename": os.rename}[operation[0]](*paths)

    @staticmethod
    def on_paper(state, operation, number):
        """state: {name: inode}, where an inode is the number of the operation that made it."""
        if operation[0] == "make":
            state[operation[1]] = number
        elif operation[0] == "link":
            state[operation[2]] = state[operation[1]]
        elif operation[0] == "unlink":
            del state[operation[1]]
        else:
            state[operation[2]] = state.pop(operation[1])

    @staticmethod
    def groups(state):
        """The sets of names that are one file: how it can be told apart from outside."""
        by_inode = {}
        for name, inode in state.items():
            by_inode.setdefault(inode, set()).add(name)
        return {frozenset(names) for names in by_inode.values()}

    def judge(self):
        done = self.last("done")
        if done < 0:
            return "nothing was done"
        found = {}
        for parent in "ab":
            for entry in os.scandir(self.directory / parent):
                found[f"{parent}/{entry.name}"] = entry.inode()
        for group in self.groups(found):
            for name in group:
                links = os.stat(self.directory / name).st_nlink
                check(links == len(group), f"{name} has {links} links, and {len(group)} names")
        state, number, wanted = {}, 0, self.groups(found)
        matches = done == 0 and not found
        for kind, words in self.read_log():
            if kind != "try":
                continue
            number = int(words[0])
            self.on_paper(state, tuple(words[1:]), number)
            matches = matches or number >= done and self.groups(state) == wanted
        check(matches, f"the names are those of no moment from {done} to {number}")
        return f"{number} operations, {done} of them durable"


class Sqlite(Work):
    """One transaction after the other; each that was committed is there (P1)."""
    PRAGMAS = ("journal_mode = wal", "synchronous = full")

    def connect(self):
        base = sqlite3.connect(self.directory / "base.db", timeout=60)
        for pragma in self.PRAGMAS:
            base.execute(f"pragma {pragma}").fetchall()
        return base

    def work(self):
        base = self.connect()
        base.execute("create table if not exists t (i integer primary key, filler text)")
        base.commit()
        self.sync_directory()
        self.note("done", 0)
        for number in range(1, 1 << 30):
            with base:
                base.execute("insert into t values (?, ?)", (number, "x" * (number % 3000)))
            # SQLite ignores it if it cannot open the directory for the sync. After a power cut no program would go on, but
            # after a kill of the daemon SQLite does. This open then fails, too, and the transaction is not noted.
            os.close(os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY))
            self.note("done", number)

    def judge(self):
        done = self.last("done")
        if done < 0:
            return "nothing was done"
        base = self.connect()
        result = base.execute("pragma integrity_check").fetchone()[0]
        check(result == "ok", f"integrity_check: {result}")
        rows = {i for i, filler in base.execute("select i, filler from t") if len(filler) == i % 3000}
        missing = set(range(1, done + 1)) - rows
        check(not missing, f"{len(missing)} committed rows of {done} are missing, such as {min(missing or [0])}")
        base.close()
        return f"{done} transactions"


class SqliteRollback(Sqlite):
    # With a lower level SQLite does not sync the directory after it has deleted the journal, so the last transaction is
    # not durable.
    PRAGMAS = ("journal_mode = delete", "synchronous = extra")


class Postgres(Work):
    """PostgreSQL, with pgbench for company: every transaction that a client saw committed is there, and what pgbench
    keeps equal is equal (P1). The cluster is made outside, and copied."""
    CLIENTS = 3
    CLUSTER = pathlib.Path(os.environ.get("ZFUSE_CLUSTER", "/nonexistent"))
    WAIT_S = 120
    SETTINGS = ("-c", "listen_addresses=", "-c", "shared_buffers=32MB", "-c", "max_wal_size=64MB", "-c",
                "min_wal_size=32MB", "-c", "checkpoint_timeout=30s", "-c", "log_min_messages=panic")

    @classmethod
    def as_user(cls):
        """PostgreSQL refuses to be root."""
        names = [u.pw_name for u in pwd.getpwall()]
        user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": (), "cwd": "/",
                "env": {**os.environ, "PGHOST": str(cls.CLUSTER.parent / "socket"), "PGDATABASE": "postgres",
                        "HOME": "/", "LC_ALL": "C", "PGUSER": "postgres"}}

    @classmethod
    def program(cls, name):
        found = sorted(pathlib.Path("/usr/lib/postgresql").glob(f"*/bin/{name}"),
                       key=lambda p: float(p.parts[-3]))
        return found[-1] if found else name

    @classmethod
    def ask(cls, name, *arguments):
        done = subprocess.run([cls.program(name), *arguments], check=False, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **cls.as_user())
        check(done.returncode == 0, f"{name}: {done.stderr.strip()[-500:]}")
        return done.stdout.strip()

    @classmethod
    def query(cls, text):
        return cls.ask("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", text)

    @classmethod
    def prepare(cls):
        user = cls.as_user()
        for path in (cls.CLUSTER, cls.CLUSTER.parent / "socket"):
            path.mkdir()
            os.chown(path, user["user"], user["group"])
        cls.ask("initdb", "-D", str(cls.CLUSTER), "-U", "postgres", "--no-sync", "-A", "trust")
        server = cls.start(cls.CLUSTER, "-c", "fsync=off")
        cls.query("create table acknowledged (client int, i int, filler text, primary key (client, i))")
        cls.ask("pgbench", "-i", "-q", "-s", "1")
        cls.stop(server)

    @classmethod
    def start(cls, data, *more):
        server = subprocess.Popen([cls.program("postgres"), "-D", data, "-k", cls.as_user()["env"]["PGHOST"],
                                   *cls.SETTINGS, *more], stdin=subprocess.DEVNULL, start_new_session=True,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **cls.as_user())
        until = time.monotonic() + cls.WAIT_S
        while server.poll() is None and time.monotonic() < until:
            if subprocess.run([cls.program("pg_isready"), "-q"], check=False, **cls.as_user()).returncode == 0:
                return server
            time.sleep(0.05)
        server.kill()
        raise Broken(f"the server does not start: {server.stderr.read().decode(errors='replace')[-500:]}")

    @staticmethod
    def stop(server, how=signal.SIGINT):
        server.send_signal(how)
        try:
            server.wait(timeout=30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()

    def work(self):
        data = self.directory / "data"
        subprocess.run(["cp", "-a", self.CLUSTER, data], check=True, stderr=subprocess.DEVNULL)
        subprocess.run([os.environ["ZFUSECTL"], "sync", self.directory], check=True, stdout=subprocess.DEVNULL)
        self.note("done", "start", 0)
        server = self.start(data)
        self.note("started")
        self.use(server)
        self.stop(server, signal.SIGQUIT)
        check(is_gone(self.directory), "PostgreSQL failed, and the filesystem did not")

    def use(self, server):
        """Until the first client fails: that ends it for all, for others may wait for what never comes."""
        load = subprocess.Popen([self.program("pgbench"), "-n", "-c", "2", "-T", "600"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self.as_user())
        programs = [subprocess.Popen([self.program("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1"], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1,
                                     **self.as_user()) for _ in range(self.CLIENTS)]
        ended = threading.Event()
        clients = [threading.Thread(target=self.insert, args=(n, psql, ended)) for n, psql in enumerate(programs)]
        for client in clients:
            client.start()
        while server.poll() is None and not ended.wait(0.1):
            pass
        for program in (load, *programs):
            program.kill()
            program.wait()
        for client in clients:
            client.join()

    def insert(self, client, psql, ended):
        """One transaction after the other, until one fails."""
        for i in range(1 << 30):
            try:
                psql.stdin.write(f"insert into acknowledged values ({client}, {i}, repeat('x', {i * 37 % 3000}))"
                                 " returning i;\n")
            except BrokenPipeError:
                break
            if psql.stdout.readline().strip() != str(i):
                break
            self.note("done", client, i)
        ended.set()

    def judge(self):
        if not any(kind == "started" for kind, _ in self.read_log()):
            return "nothing was done"
        server = self.start(self.directory / "data")
        try:
            found = 0
            for client in range(self.CLIENTS):
                done = self.last("done", client)
                rows = set(self.query(f"select i from acknowledged where client = {client}").split())
                missing = {str(i) for i in range(done + 1)} - rows
                check(not missing, f"{len(missing)} committed rows of {done + 1} are missing, such as {min(missing or '-')}")
                found += done + 1
            sums = self.query("select (select sum(abalance) from pgbench_accounts), (select sum(bbalance) from "
                              "pgbench_branches), (select sum(tbalance) from pgbench_tellers), (select "
                              "coalesce(sum(delta), 0) from pgbench_history)").split("|")
            check(len(set(sums)) == 1, f"pgbench's sums differ: {sums}")
            self.ask("pg_amcheck", "--install-missing", "--heapallindexed", "-d", "postgres")
            others = self.query("select count(*) from pgbench_history")
            return f"{found} transactions, {others} of pgbench"
        finally:
            self.stop(server)


class All(Work):
    """All of these at once, each in a directory of its own."""

    def parts(self):
        for name, work in WORKS.items():
            if work not in (All, Postgres):
                yield work(self.directory / name, self.log_path.with_name(f"{self.log_path.name}.{name}"),
                           self.random.random())

    def work(self):
        children = []
        for part in self.parts():
            part.directory.mkdir()
            self.sync_directory()
            pid = os.fork()
            if pid == 0:
                part.open_log()
                os._exit(run(part.work, part.directory))
            children.append(pid)
        wait_for(children)

    def judge(self):
        return "; ".join(f"{part.directory.name}: {part.verdict()}" for part in self.parts())


WORKS = {"renamer": Renamer, "careless-renamer": CarelessRenamer, "truncater": Truncater, "mapper": Mapper,
         "zeroer": Zeroer, "syncer": Syncer, "appender": Appender, "linker": Linker, "sqlite-wal": Sqlite,
         "sqlite-rollback": SqliteRollback, "postgres": Postgres, "all-at-once": All}


def wait_for(children):
    """For a mapping, the filesystem's end is a signal."""
    for pid in children:
        status = os.waitpid(pid, 0)[1]
        if status not in (0, signal.SIGBUS):
            sys.exit(f"a worker ended with status {status}")


def is_gone(directory):
    """The filesystem that it is in: what programs have met may have had another cause."""
    try:
        os.statvfs(directory)
    except OSError as e:
        return e.errno in GONE
    return False


def run(fn, directory):
    """Until the filesystem that `directory` is in is gone; 0 if that is what ended it."""
    try:
        fn()
    except OSError as e:
        if e.errno in GONE:
            return 0
        sys.excepthook(*sys.exc_info())
        return 1
    except (subprocess.CalledProcessError, Broken):
        if is_gone(directory):
            return 0
        sys.excepthook(*sys.exc_info())
        return 1
    except (sqlite3.OperationalError, sqlite3.DatabaseError) as e:
        if "disk I/O error" in str(e) or "unable to open" in str(e) or "readonly" in str(e):
            return 0
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    verb, name = sys.argv[1:3]
    if verb == "prepare":
        return WORKS[name].prepare()
    directory, log = sys.argv[3:5]
    work = WORKS[name](pathlib.Path(directory), pathlib.Path(log), *map(int, sys.argv[5:6]))
    if verb == "work":
        work.open_log()
        sys.exit(run(work.work, work.directory))
    try:
        print(work.verdict())
    except Broken as e:
        sys.exit(f"{name}: {e}")


main()
