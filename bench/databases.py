# SPDX-License-Identifier: MIT
"""The suite `databases`: programs whose speed depends on fsync. These are PostgreSQL, SQLite, and dbench, which acts as
clients of a file server."""
import os
import pathlib
import pwd
import re
import shutil
import signal
import sqlite3
import subprocess
import time

from bench.operation import MIB, RATE, Operation
from bench.peers import PeerError, Unsupported, end_with_us, run

PGBENCH = [
    Operation("pgbench, TPC-B", "databases", RATE, ("-b", "tpcb-like"), is_durable=True),
    # Rows of 4 KiB. PostgreSQL's log does not reuse its files here: it always makes new ones.
    Operation("pgbench, much WAL", "databases", RATE, ("-f", "{place}/wal.sql"), is_durable=True),
]
SQLITE = [
    Operation("sqlite, WAL", "databases", RATE, ("journal_mode = wal", "synchronous = full"), is_durable=True),
    Operation("sqlite, rollback", "databases", RATE, ("journal_mode = delete", "synchronous = full"), is_durable=True),
]
DBENCH = [
    Operation("dbench, O_SYNC", "databases", MIB, ("-s",), is_durable=True),
    Operation("dbench, fsync", "databases", MIB, ("-F",), is_durable=True),
]
DATABASES = [*PGBENCH, *SQLITE, *DBENCH]

CLIENTS = 4
SETTINGS = {"listen_addresses": "", "shared_buffers": "128MB", "max_wal_size": "512MB", "wal_recycle": "off",
            "autovacuum": "off", "log_min_messages": "panic"}
START_WAIT_S = 60
WAL_SCRIPT = "insert into filler select string_agg(md5(random()::text), '') from generate_series(1, 128);\n"


def run_databases(jobs, peer):
    jobs.attempt(peer, lambda: run_pgbench(jobs, peer))
    for operation in SQLITE:
        jobs.measured(peer, operation, lambda o=operation: transact(peer.mnt / f"{o.name}.db", o.arguments,
                                                                    jobs.sizes.durable_s))
    for operation in DBENCH:
        jobs.attempt(peer, lambda o=operation: run_dbench(jobs, peer, o))


# ---- PostgreSQL ----

def postgres_program(name):
    """The path of a PostgreSQL program: the newest of Debian's, which are not in PATH, else the one in PATH."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda p: float(p.parts[-3]))
    path = str(found[-1]) if found else shutil.which(name)
    if not path:
        raise Unsupported(f"PostgreSQL's {name} is not installed")
    return path


class Postgres:
    """A server on the peer, as its user; the socket lies beside the mount."""

    def __init__(self, peer, scale):
        self.place = peer.place
        self.data = peer.mnt / "postgres"
        self.scale = scale
        names = [u.pw_name for u in pwd.getpwall()]
        user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
        self.identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": (), "cwd": "/",
                         "env": {**os.environ, "PGHOST": str(self.place / "socket"), "PGUSER": "postgres",
                                 "PGDATABASE": "postgres", "HOME": "/", "LC_ALL": "C"}}

    def ask(self, name, *arguments):
        return run(postgres_program(name), *arguments, timeout=600, **self.identity)

    def __enter__(self):
        # The user postgres must be able to reach the directory.
        os.chmod(self.place.parent, 0o711)
        for path in (self.data, self.place / "socket"):
            path.mkdir()
            os.chown(path, self.identity["user"], self.identity["group"])
        self.ask("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "--no-sync")
        settings = [word for item in SETTINGS.items() for word in ("-c", "=".join(item))]
        self.server = subprocess.Popen(
            [postgres_program("postgres"), "-D", self.data, "-k", self.place / "socket", *settings],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=end_with_us, **self.identity)
        try:
            self.wait_answers()
            self.ask("pgbench", "-i", "-q", "-s", self.scale)
            self.ask("psql", "-Xqc", "create table filler (t text)", "-c",
                     "alter table filler alter t set storage external", "-c", "checkpoint")
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_answers(self):
        for _ in range(START_WAIT_S * 20):
            if subprocess.run([postgres_program("pg_isready"), "-q"], check=False, **self.identity).returncode == 0:
                return
            if self.server.poll() is not None:
                break
            time.sleep(0.05)
        raise PeerError("PostgreSQL did not start")

    def __exit__(self, *_):
        self.server.send_signal(signal.SIGINT)
        try:
            self.server.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.server.send_signal(signal.SIGQUIT)
            self.server.wait()

    def bench(self, seconds, arguments):
        """(count, seconds, latencies)"""
        said = self.ask("pgbench", "-n", "-c", CLIENTS, "-j", 2, "-T", max(1, round(seconds)), *arguments)
        count = int(re.search(r"number of transactions actually processed: (\d+)", said)[1])
        rate = float(re.search(r"tps = ([\d.]+)", said)[1])
        mean = float(re.search(r"latency average = ([\d.]+) ms", said)[1])
        return count, count / rate, {"mean": mean * 1000, "p99": None}


def run_pgbench(jobs, peer):
    with Postgres(peer, jobs.sizes.pgbench_scale) as server:
        (peer.place / "wal.sql").write_text(WAL_SCRIPT)
        for operation in PGBENCH:
            arguments = [word.format(place=peer.place) for word in operation.arguments]
            jobs.measured(peer, operation, lambda a=arguments: server.bench(jobs.sizes.pgbench_s, a))
    shutil.rmtree(server.data)


# ---- SQLite ----

def transact(path, pragmas, seconds):
    """Inserts rows, each in a transaction of its own, for so long."""
    base = sqlite3.connect(path, isolation_level=None)
    for pragma in pragmas:
        base.execute(f"pragma {pragma}").fetchall()
    base.execute("create table t (i integer primary key, filler text)")
    count, began = 0, time.monotonic()
    while time.monotonic() < began + seconds:
        base.execute("insert into t (filler) values (?)", ("x" * 100,))
        count += 1
    took = time.monotonic() - began
    base.close()
    return count, took


# ---- dbench ----

def run_dbench(jobs, peer, operation):
    if not shutil.which("dbench"):
        raise Unsupported("dbench is not installed")
    directory = peer.mnt / operation.name.replace(" ", "")
    directory.mkdir()

    def bench():
        seconds = max(1, round(jobs.sizes.dbench_s))
        said = run("dbench", *operation.arguments, "-t", seconds, "-D", directory, CLIENTS, timeout=300)
        found = re.search(r"Throughput ([\d.]+) MB/sec", said)
        if not found or float(found[1]) == 0:
            raise PeerError(f"dbench did nothing: {said[-200:]}")
        return float(found[1]) * seconds, seconds
    jobs.measured(peer, operation, bench)
