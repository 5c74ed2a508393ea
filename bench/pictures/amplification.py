# SPDX-License-Identifier: MIT
"""Write amplification of uniform overwrites, from half full to nearly full, against theory.

Theory, for many zones of many blocks: greedy cleaning chooses the zone with the fewest live bytes as its victim. If the
part u of all zones is live, then the live part v of the victim satisfies u = (v - 1) / ln v, and each write costs
1 / (1 - v): Menon, "A performance comparison of RAID-5 and log-structured arrays", 1995; Bux and Iliadis, "Performance
of greedy garbage collection in flash-based solid-state drives", 2010; Desnoyers, "Analytic modeling of SSD write
performance", 2012. If the victim is as full as the average zone, each write costs 1 / (1 - u).
"""
import math

from bench.aging import amplification, as_run, period, second_half
from bench.curves import Axis
from bench.picture import GRID, INK, MUTED
from bench.pictures.sheet import BLUE, HEAD, MARGIN, ORANGE, begin, kib

LEVELS = (50, 60, 70, 80, 85, 90, 95)
PLAN = ["--size", "512M", "--zone", "8M", "--cache", "64M", "--dirty", "4M", "--commit-bytes", "20M",
        "--load", "uniform", "--turnovers", "6", "--seed", "1", "--format", "json"]
WIDTH, HEIGHT, LEFT = 620, 380, 40
TOP = 15  # the upper end of the scale


def measure(programs):
    """A point for each level: the live part of the zones with data, and the bytes written for each byte of the user."""
    points = []
    for level in LEVELS:
        run = as_run(programs.run("bench/age/age", "--full", level, *PLAN))
        half = second_half(run)
        moved = sum(p["cold_bytes"] for p in half) / sum(p["data_bytes"] + p["log_bytes"] for p in half)
        plan = period(run, "plan")
        points.append({"level": level, "live": sum(p["u"] for p in half) / len(half), "data": 1 + moved,
                       "all": amplification(half), "size": plan["size"], "zone": plan["zone"]})
    return points


def victim(live):
    """The live part v of the emptiest zone, by bisection: (v - 1) / ln v grows with v."""
    low, high = 0.0, 1.0
    for _ in range(60):
        v = (low + high) / 2
        low, high = (v, high) if (v - 1) / math.log(v) < live else (low, v)
    return low


def curve(svg, at, function, colour, dashes=None):
    points = [(u / 200, function(u / 200)) for u in range(100, 198)]
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(at, (p for p in points if p[1] <= TOP)))
    more = {"stroke_dasharray": dashes} if dashes else {}
    svg.add("polyline", points=text, fill="none", stroke=colour, stroke_width=1.8, **more)


def draw_data(svg, x, y):
    svg.add("circle", cx=x, cy=y, r=5, fill=BLUE[1])


def draw_all(svg, x, y):
    svg.rect(x - 4.5, y - 4.5, 9.0, 9.0, "#ffffff", stroke=ORANGE[1], stroke_width=2)


def draw_legend(svg, x, y):
    draw_data(svg, x + 14, y - 4)
    svg.text(x + 32, y, "data that zfuse wrote", 12)
    draw_all(svg, x + 244, y - 4)
    svg.text(x + 262, y, "with its metadata", 12)
    svg.line(x, y + 16, x + 26, y + 16, INK, 1.8)
    svg.text(x + 32, y + 20, "theory: greedy cleaning", 12)
    svg.line(x + 230, y + 16, x + 256, y + 16, MUTED, 1.8, stroke_dasharray="2 3")
    svg.text(x + 262, y + 20, "theory: victims as full as the average", 12)


def draw(points):
    svg = begin("Write amplification against theory",
                "A file as large as so many percent of what data can have is overwritten at random, in pieces of "
                "4 KiB.",
                f"A memory device of {kib(points[0]['size'])} in zones of {kib(points[0]['zone'])}; bytes are counted, "
                "and nothing is timed.")
    left, top = float(MARGIN + LEFT), float(HEAD + 94)
    across, up = Axis(0.5, 1.0), Axis(1.0, TOP)

    def at(point):
        return left + across.part(point[0]) * WIDTH, top + HEIGHT - up.part(point[1]) * HEIGHT

    for value in range(1, TOP + 1, 2):
        y = at((0.5, value))[1]
        svg.line(left, y, left + WIDTH, y, GRID)
        svg.text(left - 6, y + 4, str(value), 11, MUTED, "end")
    for percent in range(50, 101, 10):
        svg.text(at((percent / 100, 1))[0], top + HEIGHT + 17, f"{percent} %", 11, MUTED, "middle")
    svg.line(left, top + HEIGHT, left + WIDTH, top + HEIGHT, INK, 1.2)
    svg.text(left + WIDTH / 2, top + HEIGHT + 36, "live part of the zones that hold data", 11.5, MUTED, "middle")
    svg.text(left - 6, top - 12, "bytes written for each byte of the user's", 11.5, MUTED)
    curve(svg, at, lambda u: 1 / (1 - u), MUTED, "2 3")
    curve(svg, at, lambda u: 1 / (1 - victim(u)), INK)
    for point in points:
        x, y = at((point["live"], min(point["data"], TOP)))
        draw_data(svg, x, y)
        ax, ay = at((point["live"], min(point["all"], TOP)))
        draw_all(svg, ax, ay)
        svg.text(ax, ay - 10, f"{point['level']} %", 11, INK, "middle")
    draw_legend(svg, left, float(HEAD + 38))
    return svg.document(left + WIDTH + MARGIN, top + HEIGHT + 54,
                        "Write amplification over how full the zones are: measured, and as theory has it")
