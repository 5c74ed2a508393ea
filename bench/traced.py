# SPDX-License-Identifier: MIT
"""The suite `traced`: what a running trace costs. Each operation is measured without and with a trace."""
import json

from bench.operation import RATE, Operation
from bench.peers import PeerError, run

PAIRS = 3


def pair(verb, depth):
    name = f"{verb} 4 KiB" + (f", depth {depth}" if depth > 1 else "")
    arguments = (f"--rw=rand{verb}", "--bs=4k", "--direct=1", f"--iodepth={depth}",
                 f"--ioengine={'io_uring' if depth > 1 else 'psync'}")
    return tuple(Operation(f"{how} {name}", "traced", RATE, arguments) for how in ("untraced", "traced"))


TRACED = [pair(verb, depth) for verb in ("write", "read") for depth in (1, 16)]
OPERATIONS = [operation for both in TRACED for operation in both]


def run_traced(jobs, peer):
    """Measures in pairs. In every second round the order of a pair is reversed."""
    run("dd", "if=/dev/zero", f"of={peer.mnt / 'data'}", "bs=1M", f"count={jobs.sizes.random_mib}", "conv=fsync")
    for number in range(PAIRS):
        for without, traced in TRACED:
            both = [lambda o=without, n=number: measure(jobs, peer, o, n),
                    lambda o=traced, n=number: measure_traced(jobs, peer, o, n)]
            for fn in both if number % 2 == 0 else reversed(both):
                fn()


def measure(jobs, peer, operation, number):
    jobs.measured(peer, operation, lambda: jobs.fio_job(
        peer, RATE, "--filename=data", f"--size={jobs.sizes.random_mib}M", "--time_based",
        f"--runtime={int(jobs.sizes.random_s * 1000)}ms", *operation.arguments), pair=number)


def measure_traced(jobs, peer, operation, number):
    """Measures with a trace, in a file beside the image. If the trace dropped events, it cost less than a whole trace,
    so that is an error."""
    trace = peer.place / "run.trace"
    zfusectl = jobs.build / "tools/zfusectl/zfusectl"
    run(zfusectl, "trace", "start", peer.mnt, trace)
    try:
        measure(jobs, peer, operation, number)
    finally:
        told = json.loads(run(zfusectl, "trace", "stop", "--format", "json", peer.mnt))
        trace.unlink()
    if told["dropped"]:
        raise PeerError(f"of {told['events']} events the trace dropped {told['dropped']}")
