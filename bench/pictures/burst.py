# SPDX-License-Identifier: MIT
"""Empty zones and latencies of writes, before, in and after a burst."""
import json

from bench.curves import Axis, axis_to, decades
from bench.picture import BAND, GRID, INK, MUTED
from bench.pictures.sheet import BLUE, GREEN, HEAD, MARGIN, ORANGE, begin

WIDTH, HEIGHT, LEFT, GAP = 720, 150, 54, 62
NAMES = {"calm": "1000 writes a second", "burst": "as many as there can be", "after": "1000 a second again"}


def measure(programs):
    load = open("/proc/loadavg", encoding="ascii").read().split()[0]
    return {"load": load, "samples": [json.loads(line) for line in programs.scene("burst").splitlines()]}


def name(value):
    return f"{value:g} ms" if value >= 1 else f"{value * 1000:g} µs"


class Panel:
    def __init__(self, svg, top, across, up):
        self.svg, self.top, self.across, self.up, self.left = svg, top, across, up, float(MARGIN + LEFT)

    def at(self, x, y):
        return self.left + self.across.part(x) * WIDTH, self.top + HEIGHT - self.up.part(y) * HEIGHT

    def frame(self, title, words):
        for value in self.up.ticks():
            y = self.at(0, value)[1]
            self.svg.line(self.left, y, self.left + WIDTH, y, GRID)
            self.svg.text(self.left - 6, y + 4, words(value), 11, MUTED, "end")
        self.svg.text(self.left, self.top - 10, title, 12.5, weight="bold")
        self.svg.line(self.left, self.top + HEIGHT, self.left + WIDTH, self.top + HEIGHT, INK, 1.2)

    def steps(self, samples, key, colour, dashes=None):
        places, last = [], None
        for sample in samples:
            x, y = self.at(sample["seconds"], sample[key])
            places += [(x, last), (x, y)] if last is not None else [(x, y)]
            last = y
        more = {"stroke_dasharray": dashes} if dashes else {}
        self.svg.add("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places), fill="none", stroke=colour,
                     stroke_width=1.8, **more)

    def dots(self, samples, key, colour, radius):
        for sample in samples:
            x, y = self.at(sample["seconds"], sample[key])
            self.svg.add("circle", cx=round(x, 1), cy=round(y, 1), r=radius, fill=colour, fill_opacity=0.8)


def draw_phases(svg, samples, across, top, bottom):
    left = float(MARGIN + LEFT)
    for phase, words in NAMES.items():
        times = [s["seconds"] for s in samples if s["phase"] == phase]
        x1, x2 = (left + across.part(t) * WIDTH for t in (times[0], times[-1]))
        if phase == "burst":
            svg.rect(x1, top, x2 - x1, bottom - top, BAND)
        rate = sum(s["writes"] for s in samples if s["phase"] == phase) / (times[-1] - times[0])
        svg.text((x1 + x2) / 2, top - 22, words, 11.5, INK, "middle")
        svg.text((x1 + x2) / 2, top - 8, f"{rate:,.0f} a second", 11, MUTED, "middle")


def draw(found):
    samples = [s for s in found["samples"] if s["writes"] > 0]
    svg = begin("A burst of writes",
                "One thread overwrites a file at random, in pieces of 4 KiB: 80 % of what data can have, in 128 zones "
                "of 8 MiB.",
                "Seen every 50 ms. The device takes no time: writes wait for reclaim, and for a processor "
                f"(load average {found['load']}).")
    across = Axis(0.0, samples[-1]["seconds"])
    top = float(HEAD + 84)
    lower = top + HEIGHT + GAP
    draw_phases(svg, samples, across, top - 26, lower + HEIGHT)
    empty = Panel(svg, top, across, axis_to([max(s["target"] for s in samples), max(s["empty"] for s in samples)]))
    empty.frame("Empty zones that data can have", lambda value: f"{value:g}")
    empty.steps(samples, "target", MUTED, "4 3")
    empty.steps(samples, "empty", GREEN[1])
    waits = Panel(svg, lower, across, decades([s["p50_ms"] for s in samples] + [s["max_ms"] for s in samples]))
    waits.frame("How long a write took", name)
    waits.dots(samples, "p50_ms", BLUE[1], 1.8)
    waits.dots(samples, "max_ms", ORANGE[1], 2.2)
    for second in range(0, int(samples[-1]["seconds"]) + 1, 2):
        svg.text(waits.at(second, 1)[0], lower + HEIGHT + 17, f"{second} s", 11, MUTED, "middle")
    y = lower + HEIGHT + 44
    x = float(MARGIN + LEFT)
    svg.line(x, y - 4, x + 20, y - 4, GREEN[1], 2.0)
    svg.text(x + 26, y, "empty", 12)
    svg.line(x + 90, y - 4, x + 110, y - 4, MUTED, 2.0, stroke_dasharray="4 3")
    svg.text(x + 116, y, "what reclaim aims at", 12)
    svg.add("circle", cx=x + 280, cy=y - 4, r=3.4, fill=BLUE[1])
    svg.text(x + 290, y, "median of 50 ms", 12)
    svg.add("circle", cx=x + 420, cy=y - 4, r=3.4, fill=ORANGE[1])
    svg.text(x + 430, y, "longest of 50 ms", 12)
    return svg.document(x + WIDTH + MARGIN, y + 20, "Empty zones and latencies of writes before, in and after a burst")
