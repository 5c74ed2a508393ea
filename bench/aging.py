# SPDX-License-Identifier: MIT
"""Runs of bench/age: what the program printed, the numbers of an old filesystem, tables, goals.

A run is {"load", "full", "threads", "periods"}. "periods" has the lines that bench/age printed, in order: the plan, the
filling, one for each turnover (as much written as the device holds), all turnovers together, pairs of the same work
without reclaim and beside it, the end. The numbers of a run come from its second half, on which its beginning has no
influence any more.
"""
import dataclasses
import json
import statistics
import subprocess

from bench.report import table

LOADS = {"uniform": "uniform", "zipf:0.99": "Zipf 0.99", "mix": "mixed files", "seq": "in order"}
LEVELS = (50, 80, 90, 95)
KINDS = ("data", "cold", "log", "meta", "super")


class AgeError(Exception):
    pass


def measure(program, arguments):
    """One run. A program that fails, finds wrong data, or leaves errors for the checker is an error here."""
    done = subprocess.run([program, "--format", "json", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode != 0:
        raise AgeError(f"{' '.join(map(str, arguments))}: {done.stderr.strip() or done.returncode}")
    return as_run(done.stdout)


def as_run(text):
    periods = [json.loads(line) for line in text.splitlines()]
    plan, end = periods[0], periods[-1]
    if plan.get("period") != "plan" or end.get("period") != "end":
        raise AgeError("not all of a run")
    return {"load": plan["load"], "full": plan["full"], "threads": plan["threads"], "periods": periods}


def period(run, name):
    return next(p for p in run["periods"] if p["period"] == name)


def turnovers(run):
    return [p for p in run["periods"] if p["period"] == "turnover"]


def second_half(run):
    found = turnovers(run)
    return found[len(found) // 2:]


def amplification(periods, kinds=KINDS):
    """Bytes of these kinds that reached the device, for each byte that the user wrote."""
    return sum(p[f"{kind}_bytes"] for p in periods for kind in kinds) / sum(p["user_bytes"] for p in periods)


@dataclasses.dataclass(frozen=True)
class Old:
    """An old filesystem, in numbers."""
    data: float      # bytes written for each byte that the user wrote
    meta: float
    all: float
    used: float      # live part of the zones that hold data
    ratio: float     # of cleaning to greedy cleaning in theory; None: the theory does not hold for this load
    p50: float       # ms
    p99: float
    p999: float
    max: float
    stalls: int
    empty_low: int   # zones
    extents: float   # of a file
    extent_kib: float
    wait_ms: float   # how long writers waited for room, for each GiB
    cpu_s: float     # for each GiB
    reclaim: float   # time beside reclaim to time without it, median of the pairs; None: there are none

    @classmethod
    def of(cls, run):
        half, end = second_half(run), period(run, "end")
        pairs = [p["on_s"] / p["off_s"] for p in run["periods"] if p["period"] == "pair"]
        gib = sum(p["user_bytes"] for p in half) / (1 << 30)

        def mean(key):
            return sum(p[key] for p in half) / len(half)

        return cls(data=amplification(half, ("data", "cold", "log")), meta=amplification(half, ("meta", "super")),
                   all=amplification(half), used=mean("u"), ratio=mean("ratio") if "ratio" in half[0] else None,
                   p50=mean("p50_ms"), p99=mean("p99_ms"), p999=max(p["p999_ms"] for p in half),
                   max=max(p["max_ms"] for p in half), stalls=sum(p["stalls"] for p in half),
                   empty_low=min(p["empty_low"] for p in half), extents=end["extents"] / max(end["files"], 1),
                   extent_kib=end["file_bytes"] / max(end["extents"], 1) / 1024,
                   wait_ms=sum(p["reclaim"]["wait_ms"] for p in half) / gib, cpu_s=sum(p["cpu_s"] for p in half) / gib,
                   reclaim=statistics.median(pairs) if pairs else None)


# ---- tables ----

def name_of(run):
    return f"{LOADS.get(run['load'], run['load'])}, {run['full']:g} %"


def written_table(runs):
    rows = [["load", "of the device", "live", "data", "of theory", "metadata", "in all", "empty zones",
             "extents a file", "KiB an extent", "CPU s/GiB"]]
    for run in runs:
        old = Old.of(run)
        rows.append([name_of(run), f"{period(run, 'plan')['of_device']:.0f} %", f"{old.used:.3f}", f"{old.data:.2f}",
                     "–" if old.ratio is None else f"{old.ratio:.2f}", f"{old.meta:.2f}", f"{old.all:.2f}",
                     str(old.empty_low), f"{old.extents:,.1f}", f"{old.extent_kib:,.1f}", f"{old.cpu_s:.1f}"])
    return table(rows[0], rows[1:])


def latency_table(runs):
    rows = [[name_of(run), f"{old.p50:.3f}", f"{old.p99:.3f}", f"{old.p999:.2f}", f"{old.max:.1f}", str(old.stalls),
             f"{old.wait_ms:.0f}"] for run, old in ((run, Old.of(run)) for run in runs)]
    return table(["ms of a write", "p50", "p99", "p99.9", "longest", "over 200 ms", "waited, ms/GiB"], rows)


def tables(runs):
    parts = []
    still = [run for run in runs if not run["threads"]]
    threaded = [run for run in runs if run["threads"]]
    if still:
        parts.append(written_table(still))
    if threaded:
        parts.append(latency_table(threaded))
        parts.append(written_table(threaded))
    return "\n\n".join(parts)


# ---- goals ----

@dataclasses.dataclass(frozen=True)
class Goal:
    load: str
    full: float
    threads: bool
    what: str  # a field of Old
    most: float
    words: str

    def __str__(self):
        return f"{LOADS[self.load]}, {self.full:g} %: {self.words}"


GOALS = [
    Goal("uniform", 80, False, "ratio", 1.1, "cleaning, to greedy cleaning in theory"),
    Goal("uniform", 80, False, "all", 3.5, "written in all"),
    Goal("zipf:0.99", 80, False, "all", 2.2, "written in all"),
    Goal("uniform", 50, False, "all", 1.6, "written in all"),
    Goal("uniform", 80, True, "p999", 200, "p99.9 of a write, ms"),
    Goal("uniform", 80, True, "max", 2000, "longest write, ms"),
    Goal("uniform", 50, True, "reclaim", 1.1, "time beside reclaim, to time without it"),
]


def check(runs):
    """[(goal, the number that was reached; None: not measured)]"""
    found = []
    for goal in GOALS:
        kind = (goal.load, goal.full, goal.threads)
        same = [run for run in runs if (run["load"], run["full"], run["threads"]) == kind]
        found.append((goal, getattr(Old.of(same[-1]), goal.what) if same else None))
    return found


def is_short(goal, reached):
    return reached is not None and reached > goal.most


def check_table(found):
    rows = [[str(goal), f"{goal.most:g}", "–" if reached is None else f"{reached:.2f}",
             "not measured" if reached is None else "short" if is_short(goal, reached) else "met"]
            for goal, reached in found]
    return table(["goal", "at most", "reached", ""], rows)
