# SPDX-License-Identifier: MIT
"""The suite `scrub`: what a scrub at its default rate costs the programs that write meanwhile.

Each job runs alone and beside a scrub of existing data, in pairs. In every second pair the order is reversed.
"""
import dataclasses
import threading

from bench.operation import MIB, RATE, Operation
from bench.peers import PeerError, run

FILL_TIMEOUT_S = 900
FINISHED = "finished"
LOOK_S = 0.5


def writes(name, unit, *arguments):
    """(the job without a scrub, the job beside one)"""
    return tuple(Operation(f"{name} {how}", "scrub", unit, arguments, needs_scrub=True)
                 for how in ("without a scrub", "beside a scrub"))


SEQUENTIAL = writes("1 MiB writes", MIB, "--rw=write", "--bs=1M", "--direct=1", "--time_based", "--size={data_mib}M")
RANDOM = writes("4 KiB writes", RATE, "--rw=randwrite", "--bs=4k", "--direct=1", "--time_based",
                "--size={random_mib}M")
CREATES = writes("create + fsync", RATE)
PAIRS = [SEQUENTIAL, RANDOM, CREATES]
SCRUB = [operation for pair in PAIRS for operation in pair]


def run_scrub(jobs, peer):
    fill(peer, "scrubbed", jobs.sizes.scrub_mib)
    fill(peer, "foreground", jobs.sizes.data_mib)
    for alone, beside in PAIRS:
        # The first run after a pause is quicker than the runs after it, so it does not count.
        do(jobs, peer, alone, "first")
        peer.sync()
        for pair in range(jobs.sizes.scrub_pairs):
            both = [lambda a=alone, p=pair: job(jobs, peer, a, p),
                    lambda b=beside, p=pair: job_beside(jobs, peer, b, p)]
            for fn in both if pair % 2 == 0 else reversed(both):
                fn()


def fill(peer, name, mib):
    run("dd", "if=/dev/urandom", f"of={peer.mnt / name}", "bs=1M", f"count={mib}", "conv=fsync",
        timeout=FILL_TIMEOUT_S)
    peer.sync()


def job(jobs, peer, operation, pair):
    jobs.measured(peer, operation, lambda: do(jobs, peer, operation, pair), pair=pair)


def do(jobs, peer, operation, pair):
    return (create if operation in CREATES else overwrite)(jobs, peer, operation, pair)


def overwrite(jobs, peer, operation, _pair):
    sizes = dataclasses.asdict(jobs.sizes)
    return jobs.fio_job(peer, operation.unit, "--filename=foreground", "--overwrite=1",
                        f"--runtime={int(jobs.sizes.scrub_s * 1000)}ms",
                        *(word.format(**sizes) for word in operation.arguments))


def create(jobs, peer, operation, pair):
    directory = peer.mnt / f"{operation.name.replace(' ', '')}-{pair}"
    directory.mkdir()
    return jobs.program("durable", "create", directory, 1, int(jobs.sizes.scrub_s * 1000))


class Scrubbing:
    """Keeps a scrub running from the beginning of a `with` block to its end: starts a new one when it has finished."""

    def __init__(self, peer):
        self.peer = peer
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.keep_running)
        self.failure = None

    def keep_running(self):
        try:
            while not self.over.wait(LOOK_S):
                if self.peer.scrub("status")["state"] == FINISHED:
                    self.peer.scrub("start")
        except PeerError as e:
            self.failure = e

    def __enter__(self):
        self.peer.scrub("start")
        self.thread.start()

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        state = self.peer.scrub("status")
        if state["state"] != FINISHED:
            self.peer.scrub("cancel")
        if self.failure:
            raise self.failure
        if state["done_bytes"] == 0:
            raise PeerError("the scrub has verified nothing beside the writer")


def job_beside(jobs, peer, operation, pair):
    with Scrubbing(peer):
        job(jobs, peer, operation, pair)
