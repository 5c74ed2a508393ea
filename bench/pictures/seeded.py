# SPDX-License-Identifier: MIT
"""The pictures that follow from a seed: the same programs make the same pictures, and a test compares them."""
import json
import pathlib
import shutil
import subprocess
import tempfile

from bench.pictures import record, tree, zones

FILES = 120


class Failed(Exception):
    pass


class Programs:
    """Runs the programs of a build; `folder` is for images."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder

    def run(self, *command):
        done = subprocess.run([str(self.build / command[0]), *map(str, command[1:])], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE,
                              text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.returncode}")
        return done.stdout

    def scene(self, *arguments):
        return self.run("bench/scenes/scenes", *arguments)

    def look(self, *arguments):
        return json.loads(self.run("tools/zfusectl/zfusectl", *arguments, "--format", "json"))


def tree_picture(programs):
    before, after = programs.folder / "before.img", programs.folder / "after.img"
    programs.scene("tree", before, FILES)
    shutil.copyfile(before, after)
    programs.scene("change", after)
    return tree.draw(programs.look("tree", before), programs.look("tree", after))


def record_picture(programs):
    image = programs.folder / "record.img"
    programs.scene("record", image)
    records = programs.look("log", image, "--hex")["records"]
    return record.draw(next(r for r in records if r.get("fate") == "to replay"),
                       programs.look("zones", image)["geometry"]["zone_size"])


def map_picture(programs):
    return zones.draw_map(json.loads(programs.scene("map")))


def life_picture(programs):
    return zones.draw_life([json.loads(line) for line in programs.scene("life").splitlines()])


PICTURES = {"tree": tree_picture, "log-record": record_picture, "zone-map": map_picture, "zone-life": life_picture}


def make(build, names):
    """{name: SVG}"""
    with tempfile.TemporaryDirectory(prefix="zfuse-pictures-") as folder:
        programs = Programs(build, pathlib.Path(folder))
        return {name: PICTURES[name](programs) for name in names}
