# SPDX-License-Identifier: MIT
"""The goals of zfuse in comparison with its peers, and whether a run reached them."""
import dataclasses

from bench.databases import DATABASES
from bench.durable import CLIENTS, FOREGROUND, GROWING, PREPARED
from bench.jobs import OPERATIONS, SCATTERED, TREE
from bench.report import against, cheaper, short_ratio, summarize, table, within
from bench.scrub import CREATES, PAIRS, RANDOM
from bench.traced import TRACED
from bench.zoned import DBENCH, DURABLE, EXTEND_MANY, RAW


@dataclasses.dataclass(frozen=True)
class Goal:
    """A goal for an operation on a medium. One of:

    - The speed of zfuse is at least `least` times that of the peer, at the same operation or at the operation `beside`.
      The peer may be zfuse itself; `us` may be another kind of zfuse.
    - seconds: the operation takes at most so long. `least` is 1.
    - cost (a key of a cell in report.py): the cost of the peer is at least `least` times that of zfuse.
    - cost and most: the cost of zfuse is at most `most` for each operation. `least` is 1.
    - more_ms: the 99.9th percentile of the latency is at most so much longer than that of the operation `beside`.
      `least` is 1."""
    medium: str
    operation: str
    peer: str
    least: float
    beside: str = None
    seconds: float = None
    cost: str = None
    us: str = "zfuse"
    more_ms: float = None
    most: float = None

    @property
    def of_speed(self):
        """Whether the goal compares speeds at the same operation."""
        return not (self.beside or self.seconds or self.cost)

    def reached(self, summary):
        """The factor that was reached, to be compared with `least`; None: not measured."""
        if self.most is not None:
            cost = summary.get(self.operation, {}).get("zfuse", {}).get(self.cost)
            return self.most / cost if cost else None
        if self.cost:
            return cheaper(self.operation, summary, self.peer, self.cost)
        if self.more_ms is not None:
            return within(self.operation, self.beside, summary, self.more_ms * 1000)
        if self.seconds is None:
            return against(self.operation, self.beside or self.operation, summary, self.peer, self.us)
        cell = summary.get(self.operation, {}).get("zfuse")
        return self.seconds / cell["speed"] if cell else None

    def __str__(self):
        if self.seconds is not None:
            return f"{self.medium}: {self.operation}, within {self.seconds * 1000:.0f} ms"
        if self.more_ms is not None:
            return f"{self.medium}: {self.operation}, 99.9th percentile at most {self.more_ms:.0f} ms longer"
        if self.most is not None:
            return f"{self.medium}: {self.operation}, {COSTS[self.cost]}, at most {self.most} each"
        other = [] if self.peer == "zfuse" else [self.peer]
        other += [self.beside] if self.beside else []
        what = [self.operation] + ([COSTS[self.cost]] if self.cost else []) + ([self.us] if self.us != "zfuse" else [])
        return f"{self.medium}: {', '.join(what)}, beside {': '.join(other)}"


COSTS = {"device_writes": "write commands", "device_write_bytes": "bytes written"}


def tmpfs_goals():
    """Goals on tmpfs, where the device only costs a copy in memory, so that FUSE limits the speed."""
    names = {"create file": 1.3, "stat file, cold": 1.1, "unlink file": 1.8, "create 4 KiB file": 1.4,
             "read 4 KiB file, cold": 1.2, "write 1 MiB": 1.3, "read 1 MiB": 1.0, "read 1 MiB, cold": 1.0}
    for verb in ("write", "read"):
        for cache in ("direct", "buffered"):
            names |= {f"{verb} 4 KiB {cache}": 1.2, f"{verb} 4 KiB {cache}, depth 16": 1.0}
    found = [Goal("tmpfs", name, "passthrough_hp", least) for name, least in names.items()]
    found += [Goal("tmpfs", name, "fuse2fs", 5.0) for name in ("create file", "stat file, cold", "unlink file")]
    found += [Goal("tmpfs", o.name, peer, 1 / most) for peer, most in (("passthrough_hp", 0.9), ("btrfs", 2.5))
              for o in TREE]
    return found + [Goal("tmpfs", traced.name, "zfuse", 0.9, without.name) for without, traced in TRACED]


def disk_goals():
    """Goals on a disk."""
    found = [Goal("disk", "write 1 MiB", "plain", 1.3), Goal("disk", "read 1 MiB", "plain", 1.0),
             Goal("disk", "read 1 MiB, cold", "ext4", 0.95), Goal("disk", "read 1 MiB, cold", "btrfs", 1.2),
             Goal("disk", "read 4 KiB direct", "btrfs", 1.0), Goal("disk", "read 4 KiB direct, depth 16", "btrfs", 1.0),
             Goal("disk", "read 4 KiB buffered", "btrfs", 0.9),
             Goal("disk", "read 4 KiB buffered, depth 16", "btrfs", 0.8), Goal("disk", SCATTERED.name, "btrfs", 1.0)]
    return found + durable_goals() + shared_goals()


# The factor to ext4's speed, for the operations where the goal is not 2.
OF_EXT4 = {"create + fsync, 16 clients": 1.0, "create + fsync, 1 client": 1.8, "overwrite direct, depth 32": 0.9,
           "overwrite buffered, depth 32": 0.9, "sqlite, WAL": 0.9, "sqlite, rollback": 1.0, "pgbench, TPC-B": 1.0,
           "pgbench, much WAL": 1.0}


def durable_goals():
    """Goals for operations that are durable when they are answered."""
    raw = "overwrite, written file"
    found = [Goal("disk", o.name, peer, OF_EXT4.get(o.name, 2.0) if peer == "ext4" else 2.0)
             for o in (*GROWING, *PREPARED.values(), *CLIENTS, *DATABASES) for peer in ("ext4", "btrfs")
             if not o.needs_zeroes]
    found.append(Goal("disk", "create + fsync, 16 clients", "zfuse", 1.0, cost="device_writes", most=0.35))
    # With one write at a time, zfuse needs as many device writes as the raw file, and most of the time is the disk's.
    found += [Goal("disk", o.name, "plain", 0.5, None if o.is_raw else raw)
              for o in (*GROWING, *PREPARED.values()) if "depth" not in o.name]
    found += [Goal("disk", o.name, "plain", 0.5) for o in GROWING if o.is_raw and "depth" in o.name]
    found += [Goal("disk", o.name, "plain", 0.5, raw) for o in CLIENTS if o.arguments[1] == 1]
    for extend, overwrite in zip(GROWING[::2], GROWING[1::2]):
        if extend.name != "extend direct, depth 32":
            found.append(Goal("disk", extend.name, "zfuse", 0.9, overwrite.name))
    return found + [Goal("disk", PREPARED[how].name, "zfuse", 0.9, PREPARED["written"].name)
                    for how in ("zeroed", "allocated")]


def shared_goals():
    """Goals for writers that share the device with zeroing, or with a scrub."""
    found = [Goal("disk", "write-zeroes 10 GiB", "zfuse", 1.0, seconds=0.010)]
    found += [Goal("disk", beside.name, "zfuse", 0.97, alone.name) for alone, beside in FOREGROUND]
    found += [Goal("disk", beside.name, "zfuse", 0.95, alone.name) for alone, beside in PAIRS]
    return found + [Goal("disk", beside.name, "zfuse", 1.0, alone.name, more_ms=50)
                    for alone, beside in (RANDOM, CREATES)]


def drive_goals():
    """Goals on the zoned drive of the virtual machine."""
    found = [Goal("vm", o.name, "btrfs", 1.5) for o in DURABLE]
    found += [Goal("vm", o.name, peer, 1.0, cost=cost) for cost in COSTS for o in DURABLE
              for peer in ("btrfs", "xfs", "f2fs")]
    found += [Goal("vm", o.name, "btrfs", 1.0) for o in DBENCH]
    found += [Goal("vm", "read 1 MiB, cold", "btrfs", 0.8), Goal("vm", "write 1 MiB", "xfs", 0.7),
              Goal("vm", "create + fsync, 4 clients", "xfs", 1.0), Goal("vm", "extend buffered", "f2fs", 1.0)]
    found += [Goal("vm", EXTEND_MANY.name, "zfuse-locked", 1.36)]
    return found + [Goal("vm", RAW.name, "zfuse-locked", 1.36, us=us) for us in ("zfuse", "zfuse-emulated")]


GOALS = [*tmpfs_goals(), *disk_goals(), *drive_goals()]
assert all(name in OPERATIONS for goal in GOALS for name in (goal.operation, goal.beside or goal.operation))


@dataclasses.dataclass(frozen=True)
class Limit:
    """The upper bound of a value that pages.py measures."""
    name: str
    words: str
    most: float
    unit: str


PAGE_LIMITS = (
    Limit("size", "the page", 8, "MiB"),
    Limit("shown", "from the navigation to the first step", 3, "s"),
    Limit("heap", "JavaScript heap, at the end and after playing", 200, "MiB"),
    Limit("frame", "from frame to frame while it plays, 95 % at most", 50, "ms"),
)


def page_table(found):
    """`found`: {name of a limit: value}"""
    return table(["a page of 100,000 events", "at most", "reached", ""],
                 [[limit.words, f"{limit.most:g} {limit.unit}", f"{found[limit.name]:.2f} {limit.unit}",
                   "met" if found[limit.name] <= limit.most else "short"] for limit in PAGE_LIMITS])


def check(runs):
    """[(goal, transport, ratio)], one for each run that measured the goal; ratio None: no run measured it. Goals of the
    virtual machine count only if a run was made in it; the other goals count only if a run was made outside. The goals
    are for FUSE over io_uring: a run over /dev/fuse counts only if its medium has no run over io_uring."""
    over_uring = {run["medium"] for run in runs if run["transport"] == "io_uring"}
    runs = [run for run in runs if run["transport"] == "io_uring" or run["medium"] not in over_uring]
    in_vm = {run["medium"] == "vm" for run in runs}
    summaries = {id(run): summarize(run) for run in runs}
    found = []
    for goal in (g for g in GOALS if (g.medium == "vm") in in_vm):
        of_goal = []
        for run in runs:
            if run["medium"] == goal.medium:
                of_goal.append((goal, run["transport"], goal.reached(summaries[id(run)])))
        found += [row for row in of_goal if row[2] is not None] or [(goal, "–", None)]
    return found


def verdict(goal, reached):
    return "not measured" if reached is None else "met" if reached >= goal.least else "short"


def check_table(found):
    return table(["goal", "transport", "at least", "reached", ""],
                 [[str(g), transport, short_ratio(g.least), short_ratio(reached),
                   verdict(g, reached)] for g, transport, reached in found])
