# SPDX-License-Identifier: MIT
"""What an operation is: its name, and what is counted."""
import dataclasses

RATE, MIB, SECONDS = "op/s", "MiB/s", "s"


@dataclasses.dataclass(frozen=True)
class Operation:
    name: str
    suite: str
    unit: str
    arguments: tuple = ()
    is_cold: bool = False  # all caches of the machine are dropped before
    is_raw: bool = False   # asks nothing of a file system but a file that is there, so that `plain` does it too
    is_durable: bool = False  # each one is durable when it is answered
    needs_scrub: bool = False  # beside it, or to be compared with that
    needs_zeroes: bool = False  # fallocate's write-zeroes, which few file systems have
    written: int = None  # bytes of a user's that each writes

    @property
    def per(self):
        """What its costs are counted per."""
        return {RATE: "op", MIB: "MiB", SECONDS: "run"}[self.unit]
