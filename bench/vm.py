# SPDX-License-Identifier: MIT
"""The run in a virtual machine that has a zoned drive. Outside the machine, measure() starts scripts/vm. Inside, this
file is the program that does the rounds. The results come back as JSON.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types

from bench.jobs import QUICK, VM
from bench.peers import PeerError
from bench.run import Run, say

ROOT = pathlib.Path(__file__).resolve().parent.parent
# A zoned drive of 3 GiB; a plain drive for XFS, which needs 300 MiB; a plain drive that only holds f2fs's metadata.
DEVICES = ("zns,zones=48,size=64", "plain,zones=64,size=8", "plain,zones=16,size=8")
MEMORY_MIB = 3072
ROUND_LIMIT_S = {False: 1200, True: 900}  # a run that hangs is ended; True: of a quick run


def run_outside(command, environment=None):
    """Runs a command. Returns its exit status. If this program is told to end, it ends the command with SIGTERM, and
    the command takes down what it has made."""
    with subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=sys.stderr,
                          env=environment) as process:
        try:
            return process.wait()
        finally:
            process.terminate()


def measure(settings):
    """The run, as Run.run() returns it."""
    if "xfs" in settings.peers and run_outside([ROOT / "scripts/fetch-xfsprogs"]) != 0:
        say("XFS will be left out")
    with tempfile.TemporaryDirectory(prefix="zfuse-bench-") as results:
        command = [ROOT / "scripts/vm", "run", "--timeout", 120 + ROUND_LIMIT_S[settings.quick] * settings.rounds,
                   "--memory", MEMORY_MIB, *(word for device in DEVICES for word in ("--device", device)),
                   "--results", results,
                   "--", sys.executable, "-m", "bench.vm", json.dumps(vars(settings), default=str)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        status = run_outside(command, environment)
        if status != 0:
            raise PeerError(f"the virtual machine ended with {status}")
        return json.loads((pathlib.Path(results) / "run.json").read_text())


def main():
    settings = types.SimpleNamespace(**json.loads(sys.argv[1]))
    settings.root, settings.build = pathlib.Path(settings.root), pathlib.Path(settings.build)
    found = Run(settings, "vm", "/dev/shm", QUICK if settings.quick else VM, None).run()
    (pathlib.Path(os.environ["ZF_RESULTS"]) / "run.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
