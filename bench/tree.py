# SPDX-License-Identifier: MIT
"""A tree of real files that needs no network: this project's sources four times, then /usr/include and /usr/share/doc,
up to a bound. Entries are copied in the order of their names. Everything is committed to a git repository in the tree,
and the tree is packed as a tar.
"""
import os
import pathlib
import shutil

from bench.peers import run

# passthrough_hp keeps a descriptor for each entry, and may have 20,000 descriptors on most machines.
ENTRIES_MAX = 16000
BYTES_MAX = 160 << 20
COPIES = 4
GIT = ("git", "-c", "safe.directory=*", "-c", "user.name=bench", "-c", "user.email=bench@localhost",
       "-c", "core.autocrlf=false", "-c", "commit.gpgSign=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false")
GIT_ENV = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_OPTIONAL_LOCKS": "1",
           "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}


class Full(Exception):
    """The tree has reached its bound."""


def take(left, size):
    """Counts one more entry of so many bytes; raises Full if there is no room for it."""
    if left["entries"] < 1 or left["bytes"] < size:
        raise Full
    left["entries"] -= 1
    left["bytes"] -= size


def copy_into(source, target, left):
    """Copies a directory with its directories, files and links (links as links); leaves others out. `left` counts
    entries and bytes down."""
    take(left, 0)
    target.mkdir(parents=True)
    for entry in sorted(os.scandir(source), key=lambda e: e.name):
        if entry.name in (".git", "fuse3", "__pycache__") or entry.name.startswith("build"):
            continue
        if entry.is_dir(follow_symlinks=False):
            copy_into(entry.path, target / entry.name, left)
        elif entry.is_file() or entry.is_symlink():
            take(left, entry.stat(follow_symlinks=False).st_size)
            shutil.copy2(entry.path, target / entry.name, follow_symlinks=False)


def sources(project, quick):
    if quick:
        return [(project / "src", "src")]
    copies = [(project, f"zfuse-{n}") for n in range(1, COPIES + 1)]
    return copies + [(pathlib.Path(p), p[1:]) for p in ("/usr/include", "/usr/share/doc") if os.path.isdir(p)]


class Tree:
    """The tar `path`. It contains `entries` files, directories and links; the tar has `size` bytes."""

    def __init__(self, place, project, quick):
        tree = place / "tree"
        tree.mkdir(parents=True)
        left = {"entries": ENTRIES_MAX, "bytes": BYTES_MAX}
        try:
            for source, name in sources(project, quick):
                copy_into(source, tree / name, left)
        except Full:
            pass
        for command in (("init", "-q", "-b", "main"), ("add", "-A", "-f"), ("commit", "-q", "-m", "all"),
                        ("repack", "-a", "-d", "-q"), ("prune-packed", "-q")):
            run(*GIT, "-C", tree, *command, timeout=600, env=GIT_ENV)
        self.path = place / "tree.tar"
        run("tar", "-cf", self.path, "-C", place, "--sort=name", "tree", timeout=600)
        shutil.rmtree(tree)
        self.entries = len(run("tar", "-tf", self.path).splitlines())
        self.size = self.path.stat().st_size


def git_status(directory):
    """What `git status` prints: nothing, unless the file system lost or changed something."""
    return run(*GIT, "-C", directory, "status", "--porcelain", timeout=600, env=GIT_ENV)
