# SPDX-License-Identifier: MIT
"""Makes the gallery: the scenes of scenes.c as traces and as pages, and an index of them.

    gallery.py SCENES ZFUSECTL DIRECTORY
"""
import html
import pathlib
import subprocess
import sys

WITH_DATA = ("crash",)  # scenes whose pages can cut the power
# Pages with two runs of the same operations side by side: name, the two scenes, what the user sees.
PAIRS = (
    ("append-or-lock", ("overtaking", "overtaking:one-by-one"),
     "Left: appends, which the device orders. Right: one write at a time, as behind a lock of the zone: one is in flight at most."),
    ("log-or-commit", ("fsync", "fsync:by-commit"),
     "Left: each fsync is one append to the log. Right: each is a commit, which writes the nodes of all trees and a superblock."),
    ("cost-benefit-or-greedy", ("reclaim", "reclaim:greedy"),
     "Left: reclaim weighs garbage against age. Right: it takes the zone with the most garbage."),
)
INDEX = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Runs of zfuse, replayed</title>
<style>:root {{ color-scheme: light dark; }} body {{ max-width: 50rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; }}</style>
</head><body><h1>Runs of zfuse, replayed</h1>
<h2>One thing each</h2><dl>
{scenes}
</dl><h2>Side by side</h2><dl>
{pairs}
</dl></body></html>
"""
ENTRY = '<dt><a href="{name}.html">{title}</a></dt><dd>{text}</dd>'


def file_name(scene):
    return scene.replace(":", "-")


class Gallery:
    def __init__(self, scenes, zfusectl, directory):
        self.program, self.zfusectl, self.directory = scenes, zfusectl, directory
        listed = subprocess.run([scenes], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.scenes = [line.split("\t") for line in listed.splitlines()]

    def path(self, scene, kind):
        return self.directory / f"{file_name(scene)}.{kind}"

    def record(self, scene):
        data = [self.path(scene, "data")] if scene in WITH_DATA else []
        subprocess.run([self.program, scene, self.path(scene, "trace"), *data], check=True)

    def replay(self, scene):
        data = ["--trace-data", self.path(scene, "data")] if scene in WITH_DATA else []
        subprocess.run([self.zfusectl, "replay", self.path(scene, "trace"), *data, "--output", self.path(scene, "html")], check=True)

    def make(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        variants = [scene for _, both, _ in PAIRS for scene in both if ":" in scene]
        for scene in [name for name, *_ in self.scenes] + variants:
            self.record(scene)
            self.replay(scene)
        for name, both, _ in PAIRS:
            traces = [self.path(scene, "trace") for scene in both]
            subprocess.run([self.zfusectl, "replay", *traces, "--output", self.path(name, "html")], check=True)
        (self.directory / "index.html").write_text(self.index())

    def index(self):
        entries = [ENTRY.format(name=name, title=html.escape(title), text=html.escape(f"{text[0].upper()}{text[1:]}."))
                   for name, title, text in self.scenes]
        pairs = [ENTRY.format(name=name, title=name.replace("-", " ").capitalize(), text=html.escape(text)) for name, _, text in PAIRS]
        return INDEX.format(scenes="\n".join(entries), pairs="\n".join(pairs))


if __name__ == "__main__":
    Gallery(*map(pathlib.Path, sys.argv[1:4])).make()
