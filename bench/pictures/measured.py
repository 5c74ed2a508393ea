# SPDX-License-Identifier: MIT
"""The pictures that are measured: their numbers are different each time, or take minutes to count."""
import json
import pathlib
import tempfile

from bench.pictures import amplification, burst, fsync
from bench.pictures.seeded import Programs

PICTURES = {"amplification": amplification, "burst": burst, "fsync": fsync}


def make(name, build, source=None, keep=None):
    """The SVG, from a new measurement or from the numbers in the folder `source`. `keep`: the folder that gets new
    numbers."""
    picture = PICTURES[name]
    if source:
        return picture.draw(json.loads((source / f"{name}.json").read_text()))
    with tempfile.TemporaryDirectory(prefix="zfuse-pictures-") as folder:
        found = picture.measure(Programs(build, pathlib.Path(folder)))
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{name}.json").write_text(json.dumps(found) + "\n")
    return picture.draw(found)
