# SPDX-License-Identifier: MIT
"""The suites `durable` and `zeroes`: writes that are durable when they are answered, and fallocate's write-zeroes.

A database extends its log, or makes the log in advance and overwrites it. The suite `durable` measures both.
"""
import dataclasses
import subprocess
import time

from bench.operation import MIB, RATE, SECONDS, Operation
from bench.peers import PeerError, Unsupported, run

FILE_MIB = 64
BACKGROUND_GIB = 1       # that much is zeroed ...
BACKGROUND_EVERY_MS = 100  # ... that often
TIMEOUT_S = 900
# PostgreSQL's log can be compressed to some 55 % (decision 0027).
CONTENT = ("--refill_buffers", "--buffer_compress_percentage=45")


def dsync(verb, cache, depth, **more):
    """The writes of PostgreSQL's log, done by fio: pieces of 4 KiB, which overwrite a file or extend it."""
    name = f"{verb} {cache}" + (f", depth {depth}" if depth > 1 else "")
    return Operation(name, "durable", RATE, (*CONTENT, "--rw=write", "--bs=4k", "--sync=dsync",
                                             f"--direct={int(cache == 'direct')}",
                                             f"--overwrite={int(verb == 'overwrite')}", f"--iodepth={depth}",
                                             f"--ioengine={'io_uring' if depth > 1 else 'psync'}"),
                     is_raw=verb == "overwrite", is_durable=True, written=4096, **more)


def prepared(how, **more):
    """The operation that overwrites, with direct I/O and depth 1, a file that was prepared in the way `how`."""
    return Operation(f"overwrite, {how} file", "durable", RATE, dsync("overwrite", "direct", 1).arguments,
                     is_durable=True, written=4096, **more)


def clients(verb, count):
    return Operation(f"{verb} + fsync, {count} client{'s' if count > 1 else ''}", "durable", RATE, (verb, count),
                     is_durable=True, written=4096 if verb == "append" else 2048)


GROWING = [dsync(verb, cache, depth) for cache in ("direct", "buffered") for depth in (1, 32)
           for verb in ("extend", "overwrite")]
PREPARED = {"written": prepared("written", is_raw=True), "zeroed": prepared("zeroed", needs_zeroes=True),
            "allocated": prepared("allocated")}
CLIENTS = [clients(verb, count) for verb in ("append", "create") for count in (1, 4, 16)]
DURABLE = [*GROWING, *PREPARED.values(), *CLIENTS]

ZERO = {size: (Operation(f"write-zeroes {size} GiB", "zeroes", SECONDS, needs_zeroes=True),
               Operation(f"dd of zeroes {size} GiB", "zeroes", SECONDS)) for size in (1, 10)}
FOREGROUND = [
    (Operation("1 MiB writes alone", "zeroes", MIB, ("--rw=write", "--bs=1M", "--end_fsync=1", "--size={data_mib}M")),
     Operation("1 MiB writes beside zeroing", "zeroes", MIB, needs_zeroes=True)),
    (Operation("4 KiB writes alone", "zeroes", RATE, ("--rw=randwrite", "--bs=4k", "--direct=1",
                                                      "--size={random_mib}M")),
     Operation("4 KiB writes beside zeroing", "zeroes", RATE, needs_zeroes=True)),
]
ZEROES = [*(o for pair in ZERO.values() for o in pair), *(o for pair in FOREGROUND for o in pair)]


# ---- durable writes ----

def run_durable(jobs, peer):
    lay_out(peer, "written")
    for operation in GROWING:
        if peer.does(operation):
            run_growing(jobs, peer, operation)
    for how, operation in PREPARED.items():
        if peer.does(operation):
            jobs.attempt(peer, lambda h=how, o=operation: overwrite(jobs, peer, h, o))
    for operation in CLIENTS:
        if peer.does(operation):
            run_clients(jobs, peer, operation)


def run_growing(jobs, peer, operation):
    name = "written" if operation.is_raw else "growing"
    try:
        jobs.measured(peer, operation, lambda: fio(jobs, peer, name, operation))
    finally:
        (peer.mnt / "growing").unlink(missing_ok=True)


def run_clients(jobs, peer, operation):
    directory = peer.mnt / operation.name.replace(" ", "")
    directory.mkdir()
    verb, count = operation.arguments
    jobs.measured(peer, operation, lambda: jobs.program("durable", verb, directory, count,
                                                        int(jobs.sizes.durable_s * 1000)))


def fio(jobs, peer, name, operation):
    return jobs.fio_job(peer, operation.unit, f"--filename={name}", f"--size={FILE_MIB}M",
                        f"--runtime={int(jobs.sizes.durable_s * 1000)}ms", *operation.arguments)


def lay_out(peer, name):
    run("dd", "if=/dev/zero", f"of={peer.mnt / name}", "bs=1M", f"count={FILE_MIB}", "conv=fsync", timeout=TIMEOUT_S)
    peer.sync()


def overwrite(jobs, peer, how, operation):
    path = peer.mnt / how
    if how == "allocated":
        run("fallocate", "-l", f"{FILE_MIB}M", path)
    elif how == "zeroed":
        write_zeroes(jobs, peer, path, FILE_MIB)
    peer.sync()
    jobs.measured(peer, operation, lambda: fio(jobs, peer, how, operation))


# ---- write-zeroes ----

def write_zeroes(jobs, peer, path, mib):
    """Makes one call. Returns (1, seconds): the program that makes the call also times it."""
    command = peer.zeroing(jobs.build / "bench/durable")
    done = subprocess.run([*map(str, command), "zero", path, str(mib)], check=False, text=True, timeout=TIMEOUT_S,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=peer.zeroing_env())
    if done.returncode == 95:
        raise Unsupported(f"{peer.name} has no write-zeroes")
    if done.returncode != 0:
        raise PeerError(f"write-zeroes: {done.stderr.strip()}")
    count, seconds = done.stdout.split()[:2]
    return int(count), float(seconds)


def run_zeroes(jobs, peer):
    for operation, dd in ZERO.values():
        large = operation is not ZERO[1][0]
        mib = jobs.sizes.zero_large_mib if large else jobs.sizes.zero_mib
        path = peer.mnt / "zeroes"
        jobs.attempt(peer, lambda o=operation, m=mib: jobs.measured(peer, o, lambda: write_zeroes(jobs, peer, path, m)))
        path.unlink(missing_ok=True)
        if large and not has_time_and_room(jobs, peer, mib):
            continue
        peer.sync()
        jobs.measured(peer, dd, lambda m=mib: jobs.quietly("dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={m}",
                                                           "conv=fsync"))
        path.unlink()
        peer.sync()
    jobs.attempt(peer, lambda: run_foreground(jobs, peer))


def has_time_and_room(jobs, peer, mib):
    """Whether there is time and room to write so many MiB: only in the first round."""
    return jobs.round_number == 0 and peer.room_bytes() > (mib << 20) + (3 << 30)


def run_foreground(jobs, peer):
    """Runs each job alone and beside a loop that zeroes. In every second pair the order is reversed."""
    write_zeroes(jobs, peer, peer.mnt / "background", jobs.sizes.zero_mib)
    run("dd", "if=/dev/zero", f"of={peer.mnt / 'foreground'}", "bs=1M", f"count={jobs.sizes.data_mib}", "conv=fsync",
        timeout=TIMEOUT_S)
    for pair in range(jobs.sizes.zero_pairs):
        for alone, beside in FOREGROUND:
            both = [lambda a=alone, p=pair: foreground(jobs, peer, a, a, p),
                    lambda a=alone, b=beside, p=pair: foreground_beside(jobs, peer, a, b, p)]
            for fn in both if pair % 2 == 0 else reversed(both):
                fn()


def foreground(jobs, peer, job, operation, pair):
    sizes = dataclasses.asdict(jobs.sizes)
    jobs.measured(peer, operation, lambda: jobs.fio_job(
        peer, job.unit, "--filename=foreground", "--overwrite=1", f"--runtime={int(jobs.sizes.durable_s * 1000)}ms",
        *(word.format(**sizes) for word in job.arguments)), pair=pair)


def foreground_beside(jobs, peer, job, operation, pair):
    command = peer.zeroing(jobs.build / "bench/durable")
    with subprocess.Popen([*map(str, command), "zeroes", peer.mnt / "background", str(jobs.sizes.zero_mib),
                           str(BACKGROUND_EVERY_MS)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, env=peer.zeroing_env()) as background:
        try:
            time.sleep(0.1)
            foreground(jobs, peer, job, operation, pair)
            if background.poll() is not None:
                raise PeerError(f"the zeroing ended: {background.stderr.read().strip()}")
        finally:
            background.terminate()
