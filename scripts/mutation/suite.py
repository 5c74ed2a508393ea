# SPDX-License-Identifier: MIT
"""The tests that are run with a mutant, their order, and how they are run so that they leave nothing behind."""
import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

PR_SET_PDEATHSIG = 1
SKIPPED = 77
# A test hangs if it takes more than HANG_TIMES its time without a mutant, and more than HANG_SECONDS.
HANG_TIMES, HANG_SECONDS = 8, 15
QUICK_SECONDS = 3
# Options of random tests: smaller numbers than in the suite.
FEWER = {"--cuts": "20000", "--schedules": "6000", "--ops": "150000", "--hours": "4"}
MOUNT_TESTS = ("basics io_uring off", "drops io_uring 2 files")
VM_TESTS = ("vm backends", "vm faults", "vm refusals", "vm a drive pulled out")
# The code that uses zoned disks of the kernel.
DISKS = re.compile("src/io/(nvme|zbd)")
# The tests that run first for a mutant in a folder of src/.
TESTS_OF = {"src/log": ("tests/log",), "src/txn": ("tests/txn",), "src/alloc": ("tests/alloc",),
            "src/superblock": ("tests/superblock",), "src/io": ("tests/io",), "src/fs": ("tests/fs",)}


class Test:
    def __init__(self, entry, build, files):
        self.name, self.env, self.folder = entry["name"], entry["env"], entry.get("workdir") or build
        self.suites = {suite.partition(":")[2] for suite in entry["suite"]}
        self.command = list(entry["cmd"])
        for i, word in enumerate(self.command[:-1]):
            self.command[i + 1] = FEWER.get(word, self.command[i + 1])
        self.program = os.path.relpath(self.command[0], build)
        self.targets = {os.path.relpath(name, build) for target in entry["depends"] for name in files.get(target, [])}

    def tells(self):
        """Whether the test tests the code: tests of planted bugs and of documents do not."""
        if self.suites & {"planted", "variant", "long", "workloads"}:
            return False
        if self.suites & {"mount", "vm"}:
            return self.name in MOUNT_TESTS + VM_TESTS and os.geteuid() == 0
        return self.program.startswith("tests/") and bool(self.targets) and "bite" not in self.program

    def concerns(self, mutated):
        """Whether the test may run the mutated file. Only unit tests of io and virtual machines run the code for disks;
        virtual machines take long, so they are used for nothing else."""
        if DISKS.match(mutated):
            return "vm" in self.suites or self.program.startswith("tests/io/")
        return "vm" not in self.suites

    def stage(self, mutated, seconds):
        """The stage in which the test is run; a lower stage is run earlier."""
        own = os.path.dirname(self.program) in TESTS_OF.get("/".join(mutated.split("/")[:2]), ())
        unit, quick = "unit" in self.suites, seconds < QUICK_SECONDS
        if self.suites & {"mount", "vm"}:
            return 5
        if unit and quick:
            return 0 if own else 1
        if quick or unit and own:
            return 2
        return 3 if "crash" in self.suites else 4


def tests_of(tree):
    files = {target["id"]: target["filename"] for target in tree.introspect("--targets")}
    tests = [Test(entry, tree.build, files) for entry in tree.introspect("--tests")]
    return [test for test in tests if test.tells()]


def ordered(tests, mutated, baseline, kills):
    """The tests by stage; in a stage, tests that have killed many mutants in little time come first."""
    def key(test):
        seconds = baseline[test.name]
        return test.stage(mutated, seconds), -kills.get(test.name, 0) / (seconds + 1), seconds
    return sorted((test for test in tests if test.name in baseline and test.concerns(mutated)), key=key)


# ---- running ----

def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _alone(command):
    """If this is root, runs the command in its own PID and mount namespaces, so that it leaves no processes and mounts
    when it is killed."""
    if os.geteuid() != 0:
        return command
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"] + command


class Run:
    """One test, from its start to its end. It has a TMPDIR of its own."""

    def __init__(self, test, limit):
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.test, self.limit, self.began = test, limit, time.monotonic()
        self.temporary = tempfile.mkdtemp(prefix="zfuse-mutate-", dir=memory)
        os.chmod(self.temporary, 0o755)
        with open(os.path.join(self.temporary, "output"), "wb") as output:
            self.process = subprocess.Popen(
                _alone(test.command), cwd=test.folder, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, env={**os.environ, **test.env, "TMPDIR": self.temporary},
                start_new_session=True, preexec_fn=_die_with_parent)

    def poll(self):
        """The state of the test: None (it still runs), "passed", "failed" or "hangs"."""
        status = self.process.poll()
        if status is None:
            return "hangs" if self.seconds() > self.limit else None
        return "passed" if status in (0, SKIPPED) and not self._says_not_ok() else "failed"

    def seconds(self):
        return time.monotonic() - self.began

    def _says_not_ok(self):
        with open(os.path.join(self.temporary, "output"), "rb") as output:
            return self.test.suites & {"mount", "vm"} and any(line.startswith(b"not ok") for line in output)

    def end(self):
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        shutil.rmtree(self.temporary, ignore_errors=True)


class Outcome:
    def __init__(self):
        self.killer, self.how, self.passed, self.seconds = None, None, {}, 0.0


def run(tests, limit_of, jobs, seconds, stop_at_first=True):
    """Runs tests, up to `jobs` at once, until one fails or `seconds` are over. No test runs on after the end, also if
    that is an exception."""
    outcome, running, waiting, began = Outcome(), [], list(tests), time.monotonic()
    try:
        while (running or waiting) and time.monotonic() - began < seconds:
            while waiting and len(running) < jobs:
                test = waiting.pop(0)
                running.append(Run(test, limit_of(test)))
            for one in list(running):
                how = one.poll()
                if how is None:
                    continue
                running.remove(one)
                one.end()
                if how == "passed":
                    outcome.passed[one.test.name] = one.seconds()
                elif stop_at_first:
                    outcome.killer, outcome.how = one.test.name, how
                    return outcome
            time.sleep(0.01)
    finally:
        for one in running:
            one.end()
        outcome.seconds = time.monotonic() - began
    return outcome


def hang_limit(baseline, slower=1.0):
    return lambda test: max(HANG_SECONDS, HANG_TIMES * baseline.get(test.name, 0)) * slower
