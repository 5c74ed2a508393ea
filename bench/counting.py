# SPDX-License-Identifier: MIT
"""Counts what bench/instructions executes, and compares with a baseline.

A simulator counts (valgrind's callgrind), not a processor. It counts in the function counted() of the program and in
the functions that counted() calls. So the same program gives the same count on a busy machine as on an idle one.

There is a baseline file for each compiler. It begins with the surroundings of the counts, as the program prints them;
then it has a line for each operation: its name and its instructions. A baseline holds only for the same compiler,
libraries and kind of processor.
"""
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess

from bench.report import table

DIRECTORY = pathlib.Path(__file__).resolve().parent / "instructions"
BOUND = 1.05  # of a baseline
HEADER = """\
# Instructions of each operation. scripts/instructions --update writes this file; a commit that raises a number says why.
"""


class CountingError(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Count:
    operation: str
    unit: str           # the object of one operation
    instructions: int   # of one operation
    surroundings: str   # the compiler first
    files: tuple        # the sources whose instructions were executed: paths from src/ on, sorted


def valgrind_version():
    """None where there is none."""
    try:
        return subprocess.run(["valgrind", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def operations_of(program):
    return subprocess.run([program, "--list"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()


def parse(operation, printed, profile):
    """The Count, from the program's output and callgrind's profile."""
    divisor, surroundings = printed.splitlines()
    number, unit = divisor.split(" ", 1)
    total = re.search(r"^(?:summary|totals): (\d+)$", profile, re.M)
    if not total or int(total[1]) < int(number):
        raise CountingError(f"{operation}: callgrind has counted nothing")
    return Count(operation, unit, round(int(total[1]) / int(number)), surroundings, files_executed(profile))


def files_executed(profile):
    """The files of src/ whose own instructions a profile counts. A file that only appears as the target of calls is not
    among them."""
    names, current, found, is_call = {}, None, set(), False
    for line in profile.splitlines():
        position = re.match(r"(c?f[lie])=\((\d+)\)(?: (.*))?$", line)
        if position:
            kind, number, name = position.groups()
            if name:
                names[number] = name
            if kind in ("fl", "fi", "fe"):
                current = names[number]
        elif line.startswith("calls="):
            is_call = True
        elif re.match(r"[+*\-\d]\S* \d+$", line):
            # The line behind calls= has the cost of the called function.
            if not is_call and "/src/" in current:
                found.add("src/" + current.rsplit("/src/", 1)[1])
            is_call = False
    return tuple(sorted(found))


def count(program, operation, profile):
    """Counts one operation; callgrind writes the file `profile`."""
    command = ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=counted",
               f"--callgrind-out-file={profile}", f"./{program.name}", operation]
    # The stack's start address depends on the environment and the command, so these are always the same.
    done = subprocess.run(command, cwd=program.parent, env={"PATH": os.environ["PATH"], "LC_ALL": "C"}, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise CountingError(f"{operation}: ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return parse(operation, done.stdout, profile.read_text())


def count_all(program, operations, directory):
    """Counts all operations, as many at once as there are processors. callgrind's files stay in `directory`."""
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(lambda o: count(program, o, directory / f"{o}.callgrind"), operations))


def difference(counts, again):
    """The counts that were different the second time, in words; None if all were the same."""
    found = [f"{a.operation}: {a.instructions:,} and {b.instructions:,}" for a, b in zip(counts, again) if a != b]
    return "; ".join(found) or None


# ---- baselines ----

def baseline_path(surroundings, directory=DIRECTORY):
    return directory / f"{surroundings.split()[0]}.baseline"


def write_baseline(counts, directory=DIRECTORY):
    path = baseline_path(counts[0].surroundings, directory)
    lines = "".join(f"{c.operation} {c.instructions}\n" for c in counts)
    path.write_text(f"{HEADER}{counts[0].surroundings}\n{lines}")
    return path


def read_baseline(surroundings, directory=DIRECTORY):
    """{operation: instructions}; None: there is no baseline for these surroundings."""
    path = baseline_path(surroundings, directory)
    if not path.exists():
        return None
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    if lines[0] != surroundings:
        return None
    return {name: int(number) for name, number in map(str.split, lines[1:])}


def worse(counts, baseline):
    """The operations whose counts are above their bounds, in words."""
    found = []
    for c in counts:
        if c.operation not in baseline:
            found.append(f"{c.operation} is not in the baseline")
        elif c.instructions > BOUND * baseline[c.operation]:
            found.append(f"{c.operation} takes {c.instructions:,} instructions, {share(c, baseline)} of the baseline")
    return found


def better(counts, baseline):
    """The operations, in words, whose counts are so low that they could rise by more than BOUND unnoticed."""
    return [f"{c.operation} takes {c.instructions:,} instructions, {share(c, baseline)} of the baseline"
            for c in counts if c.operation in baseline and BOUND * c.instructions < baseline[c.operation]]


def share(one, baseline):
    return f"{one.instructions / baseline[one.operation]:.1%}"


# ---- tables ----

def counts_table(counts, baseline=None):
    head = ["operation", "of one", "instructions"] + (["of the baseline"] if baseline else [])
    rows = [[c.operation, c.unit, f"{c.instructions:,}"]
            + ([share(c, baseline) if c.operation in baseline else "–"] if baseline else []) for c in counts]
    return table(head, rows)


def markdown(counts, version):
    return f"Counted with {version}; {counts[0].surroundings}.\n\n{counts_table(counts)}"
