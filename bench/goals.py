# SPDX-License-Identifier: MIT
"""What zfuse is to reach beside its peers, and whether it did."""
import dataclasses

from bench.jobs import OPERATIONS
from bench.report import ratio, short_ratio, summarize, table


@dataclasses.dataclass(frozen=True)
class Goal:
    """zfuse's speed at an operation on a medium is at least so many times the peer's."""
    medium: str
    operation: str
    peer: str
    least: float


GOALS = [
    *(Goal("tmpfs", f"{verb} file{', cold' if verb == 'stat' else ''}", peer, least)
      for peer, least in (("passthrough_hp", 0.7), ("fuse2fs", 5.0)) for verb in ("create", "stat", "unlink")),
    Goal("tmpfs", "write 1 MiB", "passthrough_hp", 0.9),
    Goal("tmpfs", "read 1 MiB", "passthrough_hp", 0.9),
    Goal("tmpfs", "write 4 KiB direct", "passthrough_hp", 0.7),
    Goal("tmpfs", "write 4 KiB direct, depth 16", "passthrough_hp", 0.7),
    *(Goal("tmpfs", name, "btrfs", 1 / 1.5)
      for name in ("untar", "untar and sync", "git status, first", "git status, cold", "git status, warm", "rm -r")),
    Goal("disk", "write 1 MiB", "plain", 0.9),
    Goal("disk", "read 1 MiB", "plain", 0.9),
]
assert all(goal.operation in OPERATIONS for goal in GOALS)


def check(runs):
    """[(goal, transport, ratio)] of every run that measured it; ratio None for what none did."""
    found = []
    for goal in GOALS:
        of_goal = []
        for run in runs:
            if run["medium"] == goal.medium:
                cells = summarize(run).get(goal.operation, {})
                of_goal.append((goal, run["transport"], ratio(goal.operation, cells, goal.peer)))
        found += [row for row in of_goal if row[2] is not None] or [(goal, "–", None)]
    return found


def verdict(goal, reached):
    return "not measured" if reached is None else "met" if reached >= goal.least else "short"


def check_table(found):
    return table(["goal", "transport", "at least", "reached", ""],
                 [[f"{g.medium}: {g.operation}, beside {g.peer}", transport, short_ratio(g.least), short_ratio(reached),
                   verdict(g, reached)] for g, transport, reached in found])
