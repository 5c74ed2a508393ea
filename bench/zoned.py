# SPDX-License-Identifier: MIT
"""The suite `zoned`: some operations of each kind on a zoned drive, in a virtual machine, where all are slow."""
import dataclasses

from bench import databases, durable
from bench.operation import MIB, RATE, Operation
from bench.peers import PeerError

FILE_MIB = 16  # the file of each job, where several run at once

# Durable writes that extend or overwrite a file.
DURABLE = [o for o in durable.GROWING if "depth" not in o.name]
# The same with random bytes, which cannot be compressed.
RANDOM = [dataclasses.replace(o, name=f"{o.name.split()[0]}, random bytes",
                              arguments=("--refill_buffers", *o.arguments[len(durable.CONTENT):]))
          for o in DURABLE if "direct" in o.name]
EXTEND_MANY = Operation("extend direct, 16 jobs", "zoned", RATE, (*durable.CONTENT, "--rw=write", "--sync=dsync"),
                        is_durable=True, written=4096)
MANY = [Operation("write 4 KiB, 16 jobs", "zoned", RATE, ("--rw=randwrite", "--end_fsync=1"), written=4096), EXTEND_MANY]
# Without a filesystem: the speed of a kind of append (native, emulated, locked) by itself.
RAW = Operation("raw append 4 KiB, 16 writers", "zoned", RATE, ("16",), written=4096)
CREATE = [o for o in durable.CLIENTS if o.arguments in (("create", 1), ("create", 4))]
DBENCH = [Operation("dbench", "zoned", MIB), *databases.DBENCH]


def run_zoned(jobs, peer, small_files, sequential):
    """Runs the suite. `small_files` and `sequential` are the operations of jobs.py that belong to it. After an
    operation that fails, the others still run."""
    work = [(o, durable.run_growing) for o in [*DURABLE, *RANDOM]] + [(o, run_many) for o in MANY]
    work += [(o, durable.run_clients) for o in CREATE]
    work += [(o, lambda j, p, o: j.run_file(p, o)) for o in small_files]
    work += [(o, lambda j, p, o: j.measured(p, o, lambda: j.fio(p, o))) for o in sequential]
    work += [(o, databases.run_dbench) for o in DBENCH]
    work += [(RAW, run_raw)]  # the last, because it resets the drive
    durable.lay_out(peer, "written")
    failures = []
    for operation, fn in work:
        if peer.does(operation):
            try:
                jobs.attempt(peer, lambda f=fn, o=operation: f(jobs, peer, o))
            except PeerError as e:
                failures.append(f"{operation.name}: {e}")
    if failures:
        raise PeerError("; ".join(failures))


def run_many(jobs, peer, operation):
    """Runs 16 jobs at once, each in a file of its own."""
    jobs.measured(peer, operation, lambda: jobs.fio_job(
        peer, operation.unit, "--numjobs=16", "--group_reporting", "--bs=4k", "--direct=1", f"--size={FILE_MIB}M",
        "--unlink=1", f"--runtime={int(jobs.sizes.durable_s * 1000)}ms", *operation.arguments))


def run_raw(jobs, peer, operation):
    drive = peer.raw_drive()
    jobs.measured(drive, operation, lambda: jobs.program("appends", peer.zoned, peer.append, *operation.arguments,
                                                         int(jobs.sizes.durable_s * 1000)))
