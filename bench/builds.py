# SPDX-License-Identifier: MIT
"""The build that is measured: build/bench, as users have it (scripts/native/release.ini)."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIRECTORY = ROOT / "build/bench"
LOG = ROOT / "build/bench.log"


class BuildError(Exception):
    pass


def build(*targets, fetch=()):
    """Builds these targets, or all. Configures the build first if necessary; `fetch`: a command to run before that."""
    LOG.parent.mkdir(exist_ok=True)
    steps = [["ninja", "-C", DIRECTORY, *targets]]
    if not (DIRECTORY / "build.ninja").exists():
        steps.insert(0, ["meson", "setup", DIRECTORY, ROOT, "--native-file", ROOT / "scripts/native/release.ini",
                         "-Dbench=true"])
    if fetch:
        steps.insert(0, fetch)
    with open(LOG, "wb") as out:
        for step in steps:
            if subprocess.run(step, check=False, stdout=out, stderr=out).returncode != 0:
                raise BuildError(f"{' '.join(map(str, step))} failed: see {LOG}")
    return DIRECTORY
