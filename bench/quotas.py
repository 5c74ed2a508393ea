# SPDX-License-Identifier: MIT
"""Bounds that control groups set on processor time. A group that has used up its part of a period is stopped for the
rest of it, some tens of milliseconds, which distorts the measurement.
"""
import pathlib


def mounts(mountinfo):
    """The mounts of control groups: [(mount point, group at its root, controllers)]; controllers None: version 2."""
    found = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split()[:3]
        root, where = before.split()[3:5]
        if kind == "cgroup2":
            found.append((pathlib.Path(where), root, None))
        elif kind == "cgroup":
            found.append((pathlib.Path(where), root, options.split(",")))
    return found


def own_groups(mountinfo, cgroup):
    """Yields (mount point, directory) of each group of this process that has the controller of processors."""
    paths = {}
    for line in cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        paths[controllers] = path
    for where, root, controllers in mounts(mountinfo):
        if controllers is None:
            path = paths.get("")
        else:
            path = next((p for names, p in paths.items() if "cpu" in names.split(",") and "cpu" in controllers), None)
        if path is not None:
            inside = path.removeprefix(root) if root != "/" else path
            yield where, where / inside.lstrip("/")


def read(path):
    try:
        return path.read_text().split()
    except OSError:
        return []


def quota_of(directory):
    """The quota of a group, in processors; None: no bound."""
    words = read(directory / "cpu.max") or read(directory / "cpu.cfs_quota_us") + read(directory / "cpu.cfs_period_us")
    if len(words) != 2 or words[0] in ("max", "-1"):
        return None
    return int(words[0]) / int(words[1])


def smallest(mountinfo=None, cgroup=None):
    """(processors, directory) of the tightest quota that holds for this process, or None."""
    found = []
    mountinfo = pathlib.Path("/proc/self/mountinfo").read_text() if mountinfo is None else mountinfo
    cgroup = pathlib.Path("/proc/self/cgroup").read_text() if cgroup is None else cgroup
    for top, directory in own_groups(mountinfo, cgroup):
        for group in (directory, *directory.parents):
            quota = quota_of(group)
            if quota is not None:
                found.append((quota, group))
            if group == top:
                break
    return min(found, default=None)
