# SPDX-License-Identifier: MIT
"""Curves of how a filesystem ages, as an SVG. The upper row has a panel for each load: the bytes written for each byte
of the user, over the turnovers of the device. The lower row shows over the levels: the bytes written for each byte of
the user, the latency of writes, and the number of empty zones.
"""
import dataclasses
import math

from bench.aging import LOADS, Old, amplification, period, turnovers
from bench.picture import GRID, INK, MUTED, Svg

LEVEL_COLOURS = {50: "#4f9d69", 80: "#3b6fb6", 90: "#d9823b", 95: "#c25b6e"}
LOAD_COLOURS = {"uniform": "#8d6bb0", "zipf:0.99": "#8a6d3b", "mix": "#2a8f8f", "seq": "#5f6c7b"}

MARGIN = 28
PANEL_WIDTH, PANEL_HEIGHT = 290, 190
LEFT, GAP = 44, 40  # of a panel: the width of its scale, and the distance to the next panel
HEAD, ROW_GAP = 92, 104


@dataclasses.dataclass
class Axis:
    low: float
    high: float
    logarithmic: bool = False

    def part(self, value):
        """0 at the low end, 1 at the high end; a value beyond an end counts as that end."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self):
        if self.logarithmic:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            return [10.0 ** n for n in range(first, last + 1)]
        step = nice((self.high - self.low) / 5)
        return [self.low + i * step for i in range(int((self.high - self.low) / step + 1e-6) + 1)]


def nice(value):
    """1, 2 or 5 times a power of ten, at least `value`."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(n * power for n in (1, 2, 5, 10) if n * power >= value * 0.999)


def axis_to(values, low=0.0):
    high = max([v for v in values if v is not None], default=1.0)
    step = nice(max(high - low, 1e-9) / 5)
    return Axis(low, low + step * math.ceil(max(high - low, 1e-9) / step - 1e-6))


def decades(values):
    values = [v for v in values if v > 0] or [1.0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return Axis(10.0 ** low, 10.0 ** max(high, low + 1), logarithmic=True)


def short(value):
    return f"{value:g}" if abs(value) < 10000 else f"{value:.0e}"


@dataclasses.dataclass
class Line:
    points: list
    colour: str
    mark: str = "dot"  # ring, diamond, dash: for the other quantities in the same panel
    joined: bool = True


class Panel:
    def __init__(self, svg, x, y, across, up):
        self.svg, self.x, self.y, self.across, self.up = svg, x, y, across, up

    def at(self, point):
        return (self.x + self.across.part(point[0]) * PANEL_WIDTH,
                self.y + PANEL_HEIGHT - self.up.part(point[1]) * PANEL_HEIGHT)

    def frame(self, title, below, ticks_across):
        self.svg.text(self.x, self.y - 12, title, 13, weight="bold")
        for value in self.up.ticks():
            _, y = self.at((self.across.low, value))
            self.svg.line(self.x, y, self.x + PANEL_WIDTH, y, GRID)
            self.svg.text(self.x - 6, y + 4, short(value), 11, MUTED, "end")
        for value in ticks_across:
            x, _ = self.at((value, self.up.low))
            self.svg.text(x, self.y + PANEL_HEIGHT + 16, short(value), 11, MUTED, "middle")
        self.svg.line(self.x, self.y + PANEL_HEIGHT, self.x + PANEL_WIDTH, self.y + PANEL_HEIGHT, INK, 1.2)
        self.svg.text(self.x + PANEL_WIDTH / 2, self.y + PANEL_HEIGHT + 33, below, 11, MUTED, "middle")

    def draw(self, line):
        places = [self.at(point) for point in line.points]
        if line.joined:
            self.svg.add("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places), fill="none",
                         stroke=line.colour, stroke_width=1.8)
        for x, y in places:
            draw_mark(self.svg, x, y, line)


def draw_mark(svg, x, y, line):
    if line.mark == "ring":
        svg.add("circle", cx=x, cy=y, r=4, fill="#ffffff", stroke=line.colour, stroke_width=2)
    elif line.mark == "diamond":
        svg.add("polygon", points=f"{x:.1f},{y - 6:.1f} {x + 6:.1f},{y:.1f} {x:.1f},{y + 6:.1f} {x - 6:.1f},{y:.1f}",
                fill=line.colour)
    elif line.mark == "dash":
        svg.line(x - 9, y, x + 9, y, line.colour, 2.4)
    else:
        svg.add("circle", cx=x, cy=y, r=2.4 if line.joined else 4, fill=line.colour)


# ---- the panels ----

def of_loads(runs, threads):
    """{load: [its runs, by level]}, without loads that have no run."""
    found = {}
    for load in LOADS:
        same = sorted((r for r in runs if r["load"] == load and r["threads"] == threads), key=lambda r: r["full"])
        if same:
            found[load] = same
    return found


def colour_of_level(full):
    return LEVEL_COLOURS.get(round(full), "#8d6bb0")


def turnover_lines(runs):
    return [Line([(p["number"], amplification([p])) for p in turnovers(run)], colour_of_level(run["full"]))
            for run in runs]


def over_levels(loads, number, mark="dot"):
    """A line of points for each load. Two points are not joined: they do not show what lies between two levels."""
    lines = []
    for load, runs in loads.items():
        points = [(run["full"], number(Old.of(run), run)) for run in runs]
        points = [p for p in points if p[1] is not None]
        lines.append(Line(points, LOAD_COLOURS[load], mark, joined=len(points) > 2))
    return [line for line in lines if line.points]


def theory(runs):
    """Over the level: the write amplification of greedy cleaning, in theory, with as many live bytes as the run had."""
    points = [(run["full"], sum(p["greedy"] for p in turnovers(run)) / len(turnovers(run))) for run in runs]
    return [Line(points, INK, "dash", joined=False)] if points else []


def values(lines):
    return [y for line in lines for _, y in line.points]


def draw_panel(svg, place, title, below, lines, up, ticks=None, beside=0):
    """`beside`: how far the scale goes on to the left and right of the points."""
    across_values = [x for line in lines for x, _ in line.points] or [0, 1]
    low, high = min(across_values) - beside, max(across_values) + beside
    across = Axis(low, high if high > low else low + 1)
    panel = Panel(svg, place[0], place[1], across, up)
    panel.frame(title, below, ticks if ticks is not None else sorted(set(across_values)))
    for line in lines:
        panel.draw(line)


def few(count):
    """The numbers of the turnovers that the axis names: the first, and some of the others at equal distances."""
    step = max(1, round(count / 5))
    return [n for n in range(1, count + 1) if (n - 1) % step == 0]


def legend(svg, x, y, entries):
    """Draws a legend. entries: [(words, colour of the line)]."""
    for words, colour in entries:
        svg.line(x, y - 4, x + 18, y - 4, colour, 2.2)
        svg.text(x + 23, y, words, 12)
        x += 23 + 6.6 * len(words) + 20


def mark_legend(svg, x, y, entries):
    """Draws the legend of one panel, below it. entries: [(words, mark)]."""
    for words, mark in entries:
        draw_mark(svg, x + 9, y - 4, Line([], INK, mark, joined=False))
        svg.text(x + 23, y, words, 11)
        x += 23 + 5.6 * len(words) + 14


def place_of(column, row):
    return (float(MARGIN + LEFT + column * (PANEL_WIDTH + GAP + LEFT)),
            float(HEAD + 30 + row * (PANEL_HEIGHT + ROW_GAP)))


def level_panels(loads, threaded):
    """The panels of the lower row: [(title, lines, axis, [(words, mark)])]."""
    written = theory(loads.get("uniform", [])) + over_levels(loads, lambda old, _: old.all) + \
        over_levels(loads, lambda old, _: old.data, "ring")
    found = [("Bytes written for each byte, over the level", written, axis_to(values(written)),
              [("in all", "dot"), ("data only", "ring"), ("greedy, in theory", "dash")])]
    if threaded:
        waits = over_levels(threaded, lambda old, _: old.p999)
        waits += over_levels(threaded, lambda old, _: old.max, "diamond")
        found.append(("How long a write took, ms", waits, decades(values(waits)),
                      [("one of 1000 is longer", "dot"), ("the longest", "diamond")]))
    empty = over_levels(loads, lambda old, _: old.empty_low)
    found.append(("Empty zones, the fewest", empty, axis_to(values(empty)), []))
    return found


def draw(runs):
    svg = Svg()
    loads, threaded = of_loads(runs, False), of_loads(runs, True)
    svg.text(MARGIN, 34, "How zfuse ages", 20, weight="bold")
    plan = period(runs[0], "plan")
    svg.text(MARGIN, 55, f"A device of {plan['size'] / (1 << 30):g} GiB in zones of {plan['zone'] / (1 << 20):g} MiB, "
             "filled to a level (of what data can have) and written on. A turnover is as much as the device holds.",
             12.5, MUTED)
    levels = sorted({run["full"] for run in runs})
    legend(svg, MARGIN, HEAD - 12, [(f"{level:g} % full", colour_of_level(level)) for level in levels])
    lines = {load: turnover_lines(same) for load, same in loads.items()}
    up = axis_to([v for some in lines.values() for v in values(some)])
    for column, (load, some) in enumerate(lines.items()):
        longest = max(len(line.points) for line in some)
        draw_panel(svg, place_of(column, 0), f"{LOADS[load][0].upper()}{LOADS[load][1:]}: bytes written for each byte",
                   "turnover", some, up, few(longest))
    x, y = place_of(0, 1)
    panels = level_panels(loads, threaded)
    legend(svg, MARGIN, y - 40, [(LOADS[load], LOAD_COLOURS[load]) for load in {**loads, **threaded}])
    for column, (title, some, axis, marks) in enumerate(panels):
        place = place_of(column, 1)
        draw_panel(svg, place, title, "level, % of what data can have", some, axis,
                   sorted({x for line in some for x, _ in line.points}), 5)
        mark_legend(svg, place[0], place[1] + PANEL_HEIGHT + 52, marks)
    columns = max(len(lines), len(panels), 1)
    width = place_of(columns - 1, 0)[0] + PANEL_WIDTH + MARGIN
    return svg.document(width, y + PANEL_HEIGHT + 66, "write amplification, latency and empty zones of an old zfuse")
