# SPDX-License-Identifier: MIT
"""What zfuse is to reach beside its peers, and whether it did."""
import dataclasses

from bench.databases import DATABASES
from bench.durable import CLIENTS, FOREGROUND, GROWING, PREPARED
from bench.jobs import OPERATIONS
from bench.report import against, cheaper, short_ratio, summarize, table, within
from bench.scrub import CREATES, PAIRS, RANDOM
from bench.traced import TRACED
from bench.zoned import DBENCH, DURABLE, EXTEND_MANY, RAW


@dataclasses.dataclass(frozen=True)
class Goal:
    """zfuse's speed at an operation on a medium is at least so many times the peer's at the same, or at another
    (`beside`); the peer may be zfuse itself, and `us` another kind of it. Or the operation takes at most `seconds`, and
    `least` is 1. Or the peer's `cost`, of those in a cell of report.py, is so many times zfuse's. Or of a thousand
    operations all but the slowest take at most `more_ms` longer than of the one `beside`, and `least` is 1."""
    medium: str
    operation: str
    peer: str
    least: float
    beside: str = None
    seconds: float = None
    cost: str = None
    us: str = "zfuse"
    more_ms: float = None

    @property
    def of_speed(self):
        """At the same operation."""
        return not (self.beside or self.seconds or self.cost)

    def reached(self, summary):
        """As many times; None: not measured."""
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
        other = [] if self.peer == "zfuse" else [self.peer]
        other += [self.beside] if self.beside else []
        what = [self.operation] + ([COSTS[self.cost]] if self.cost else []) + ([self.us] if self.us != "zfuse" else [])
        return f"{self.medium}: {', '.join(what)}, beside {': '.join(other)}"


COSTS = {"device_writes": "write commands", "device_write_bytes": "bytes written"}


def disk_goals():
    """Of what is durable when it is answered, and of those who share the device."""
    raw = "overwrite, written file"
    found = [Goal("disk", o.name, peer, 2.0) for o in (*GROWING, *PREPARED.values(), *CLIENTS, *DATABASES)
             for peer in ("ext4", "btrfs") if not o.needs_zeroes]
    # As many device writes as the raw file's, and what waits for the disk is most of it; one at a time.
    found += [Goal("disk", o.name, "plain", 0.5, None if o.is_raw else raw)
              for o in (*GROWING, *PREPARED.values()) if "depth" not in o.name]
    found += [Goal("disk", o.name, "plain", 0.5) for o in GROWING if o.is_raw and "depth" in o.name]
    found += [Goal("disk", o.name, "plain", 0.5, raw) for o in CLIENTS if o.arguments[1] == 1]
    for extend, overwrite in zip(GROWING[::2], GROWING[1::2]):
        if extend.name != "extend direct, depth 32":
            found.append(Goal("disk", extend.name, "zfuse", 0.9, overwrite.name))
    found += [Goal("disk", PREPARED[how].name, "zfuse", 0.9, PREPARED["written"].name)
              for how in ("zeroed", "allocated")]
    found.append(Goal("disk", "write-zeroes 10 GiB", "zfuse", 1.0, seconds=0.010))
    found += [Goal("disk", beside.name, "zfuse", 0.97, alone.name) for alone, beside in FOREGROUND]
    found += [Goal("disk", beside.name, "zfuse", 0.95, alone.name) for alone, beside in PAIRS]
    found += [Goal("disk", beside.name, "zfuse", 1.0, alone.name, more_ms=50) for alone, beside in (RANDOM, CREATES)]
    return found


def drive_goals():
    """On the zoned drive of the virtual machine."""
    found = [Goal("vm", o.name, "btrfs", 1.5) for o in DURABLE]
    found += [Goal("vm", o.name, peer, 1.0, cost=cost) for cost in COSTS for o in DURABLE
              for peer in ("btrfs", "xfs", "f2fs")]
    found += [Goal("vm", o.name, "btrfs", 1.0) for o in DBENCH]
    found += [Goal("vm", EXTEND_MANY.name, "zfuse-locked", 1.36)]
    found += [Goal("vm", RAW.name, "zfuse-locked", 1.36, us=us) for us in ("zfuse", "zfuse-emulated")]
    return found


GOALS = [
    *(Goal("tmpfs", f"{verb} file{', cold' if verb == 'stat' else ''}", peer, least)
      for peer, least in (("passthrough_hp", 0.7), ("fuse2fs", 5.0)) for verb in ("create", "stat", "unlink")),
    Goal("tmpfs", "write 1 MiB", "passthrough_hp", 0.9),
    Goal("tmpfs", "read 1 MiB", "passthrough_hp", 0.9),
    Goal("tmpfs", "write 4 KiB direct", "passthrough_hp", 0.7),
    Goal("tmpfs", "write 4 KiB direct, depth 16", "passthrough_hp", 0.7),
    *(Goal("tmpfs", name, "btrfs", 1 / 1.5)
      for name in ("untar", "untar and sync", "git status, first", "git status, cold", "git status, warm", "rm -r")),
    *(Goal("tmpfs", traced.name, "zfuse", 0.9, without.name) for without, traced in TRACED),
    Goal("disk", "write 1 MiB", "plain", 0.9),
    Goal("disk", "read 1 MiB", "plain", 0.9),
    *disk_goals(),
    *drive_goals(),
]
assert all(name in OPERATIONS for goal in GOALS for name in (goal.operation, goal.beside or goal.operation))


@dataclasses.dataclass(frozen=True)
class Limit:
    """Of what pages.py measures: at most so much."""
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
    """[(goal, transport, ratio)] of every run that measured it; ratio None for what none did. Those of the virtual
    machine count only where there is a run in it, the others only where there is another."""
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
