# SPDX-License-Identifier: MIT
"""Idle loops: one busy loop on each processor, which runs only when nothing else wants that processor.

A processor that waits halts. On a virtual machine the host then takes it away, and 15 to 30 us pass until it runs
again: so on a quiet machine every hand-over between client and daemon would be measured with that on top, and on a busy
machine without. With the loops no processor halts.

Each loop is a process of its own, this file as a program. It has the policy SCHED_IDLE. It is also nice: then the
kernel counts its time apart (`nice` in /proc/stat), and bench/measure.py leaves that out. It is the only process of its
session, because the kernel weighs sessions against each other (autogroup), and its session is nice, too. However the
process that started it ends, the kernel kills it then.
"""
import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
NICEST = 19
READY = b"ready\n"


class IdleError(Exception):
    pass


class IdleLoops:
    """They run from the beginning of a `with` block to its end."""

    def __enter__(self):
        self.loops = [self.start(processor) for processor in sorted(os.sched_getaffinity(0))]
        for loop in self.loops:
            if loop.stdout.readline() != READY:
                self.stop()
                raise IdleError("an idle loop does not begin")
        return self

    def __exit__(self, *_):
        self.stop()

    @staticmethod
    def start(processor):
        return subprocess.Popen([sys.executable, "-I", __file__, str(processor), str(os.getpid())],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)

    def stop(self):
        for loop in self.loops:
            loop.kill()
            loop.wait()
            loop.stdout.close()


def run(processor, parent):
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        return
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    os.nice(NICEST)
    with contextlib.suppress(OSError):  # kernels without autogroup
        pathlib.Path("/proc/self/autogroup").write_text(str(NICEST))
    os.write(sys.stdout.fileno(), READY)
    while True:
        pass


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]))
