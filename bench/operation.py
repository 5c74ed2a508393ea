# SPDX-License-Identifier: MIT
"""The type of an operation: its name, and what is counted."""
import dataclasses

RATE, MIB, SECONDS = "op/s", "MiB/s", "s"


@dataclasses.dataclass(frozen=True)
class Operation:
    name: str
    suite: str
    unit: str
    arguments: tuple = ()
    is_cold: bool = False  # all caches of the machine are dropped before
    is_raw: bool = False   # needs nothing but an existing file, so that `plain` does it too
    is_durable: bool = False  # each one is durable when it is answered
    needs_scrub: bool = False  # runs beside a scrub, or is compared with an operation that does
    needs_zeroes: bool = False  # fallocate's write-zeroes, which few file systems have
    written: int = None  # bytes of the user that each operation writes

    @property
    def per(self):
        """The unit that costs are divided by."""
        return {RATE: "op", MIB: "MiB", SECONDS: "run"}[self.unit]
