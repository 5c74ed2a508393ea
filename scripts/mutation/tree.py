# SPDX-License-Identifier: MIT
"""A copy of the tree, with a build of its own. Mutants only change the copy; the working tree is never touched."""
import json
import os
import shutil
import subprocess

# The builds of the working tree have paths of the same depth, so that a compiler cache can use their objects.
BUILD = "build/release"
# Without debugging information a program is linked in a third of the time.
SETUP = ["--native-file", "scripts/native/release.ini", "-Dc_link_args=-Wl,-S"]
FETCHED = ("subprojects/fuse3",)  # git ignores it, but the build needs it


class BuildFailed(Exception):
    """The build failed; the text is the compiler's output."""


def _listed(root):
    out = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                         check=True, stdout=subprocess.PIPE).stdout
    for name in filter(None, out.decode().split("\0")):
        if os.path.lexists(os.path.join(root, name)):
            yield name
    for folder in FETCHED:
        for path, _, names in os.walk(os.path.join(root, folder)):
            yield from (os.path.relpath(os.path.join(path, name), root) for name in names)


def _same(a, b):
    try:
        with open(a, "rb") as x, open(b, "rb") as y:
            return x.read() == y.read()
    except OSError:
        return False


def _with_quick_linker():
    """The environment with mold as the linker, if it is installed. Compiling a mutant is quick; linking the test
    programs takes most of the time, and mold is the fastest linker."""
    return {**os.environ, **({"CC_LD": "mold"} if shutil.which("mold") else {})}


class Tree:
    def __init__(self, root, path):
        self.root, self.path = root, path
        self.build = os.path.join(path, BUILD)

    def update(self):
        """Makes the copy equal to the working tree. Files that are equal keep their times, so that only the others are
        built again."""
        wanted = set(_listed(self.root))
        for name in wanted:
            source, target = os.path.join(self.root, name), os.path.join(self.path, name)
            if os.path.islink(source) or not _same(source, target):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                if os.path.lexists(target):
                    os.unlink(target)
                shutil.copy(source, target, follow_symlinks=False)
        for folder in ("src", "tests", "tools", "mkfs", "bench", "scripts"):
            for path, _, names in os.walk(os.path.join(self.path, folder)):
                for name in names:
                    if os.path.relpath(os.path.join(path, name), self.path) not in wanted:
                        os.unlink(os.path.join(path, name))

    def configure(self):
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            subprocess.run(["meson", "setup", self.build] + SETUP, cwd=self.path, env=_with_quick_linker(),
                           check=True, stdout=subprocess.DEVNULL)

    def introspect(self, what):
        return json.loads(subprocess.run(["meson", "introspect", self.build, what], check=True,
                                         stdout=subprocess.PIPE).stdout)

    def ninja(self, targets, jobs):
        """Builds targets. A compiler that runs when this process is killed ends by itself."""
        made = subprocess.run(["ninja", "-C", self.build, f"-j{jobs}"] + sorted(targets), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")
        if made.returncode != 0:
            raise BuildFailed(made.stdout)

    def write(self, name, text):
        with open(os.path.join(self.path, name), "w", encoding="utf-8") as file:
            file.write(text)
