# SPDX-License-Identifier: MIT
"""The picture: for every operation, zfuse's speed as a multiple of each peer's.

A mark to the right of the line of 1 means that zfuse is faster, one to the left that it is slower; the scale is
logarithmic, so that twice as fast and half as fast are equally far from 1. There is one panel for each medium of
images, which shows the first run on it, and one row for each operation, with a mark for each peer. A goal of goals.py
is a bracket in the colour of its peer: the goal is met if the mark is not to the left of the bracket.
"""
import html
import math

from bench import goals
from bench.jobs import OPERATIONS
from bench.report import ratio, short, short_ratio, summarize

FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
INK, MUTED, GRID, BAND, THREAD = "#1f2933", "#5f6c7b", "#dde3ea", "#f4f6f9", "#b6c0cb"
COLOURS = {"zfuse-flush": "#c25b6e", "passthrough_hp": "#3b6fb6", "fuse2fs": "#a9b8c9", "ext4": "#d9823b",
           "btrfs": "#4f9d69", "plain": "#8d6bb0"}
SUITE_TITLES = {"data": "One file", "files": "Many files", "tree": "A tree of real files", "mix": "Servers",
                "durable": "Durable writes", "databases": "Databases", "zeroes": "Zeroes",
                "traced": "With a trace"}

SHAPES = {"passthrough_hp": "circle", "ext4": "square", "btrfs": "diamond", "plain": "triangle", "fuse2fs": "triangle",
          "zfuse-flush": "square"}

MARGIN = 28
NAME_WIDTH = 196
SPEED_WIDTH = 92         # of zfuse's own speed, for each panel
PANEL_WIDTH = 360
PANEL_GAP = 44
ROW = 20
MARK = 4.4               # half of a mark's width
TITLE_HEIGHT = 150
SUITE_HEIGHT = 26
FOOT_HEIGHT = 34
LOW, HIGH = 1 / 16, 32  # the ends of the scale; a mark beyond an end is drawn there, with its number


class Svg:
    def __init__(self):
        self.parts = []

    def rect(self, x, y, width, height, fill, **more):
        self.add("rect", x=x, y=y, width=max(width, 0.5), height=height, fill=fill, **more)

    def line(self, x1, y1, x2, y2, colour, width=1.0, **more):
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour, stroke_width=width, **more)

    def text(self, x, y, words, size=12, colour=INK, anchor="start", weight="normal"):
        self.add("text", html.escape(words), x=x, y=y, font_size=size, fill=colour, text_anchor=anchor,
                 font_weight=weight)

    def add(self, tag, content=None, **attributes):
        text = " ".join(f'{key.replace("_", "-")}="{self.number(value)}"' for key, value in attributes.items())
        self.parts.append(f"<{tag} {text}/>" if content is None else f"<{tag} {text}>{content}</{tag}>")

    @staticmethod
    def number(value):
        return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value

    def document(self, width, height, label):
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{html.escape(label)}" '
            f'font-family="{FONT}">',
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>', *self.parts, "</svg>\n"])


def position(value):
    """The position of a ratio on the scale, 0 to 1."""
    value = min(max(value, LOW), HIGH)
    return math.log(value / LOW) / math.log(HIGH / LOW)


def groups_of(summaries, peers):
    """[(suite, [operation])], only operations that some run compares with some peer."""
    found = []
    for suite in SUITE_TITLES:
        names = [name for name, operation in OPERATIONS.items() if operation.suite == suite
                 and any(ratio(name, s.get(name, {}), peer) for s in summaries for peer in peers)]
        if names:
            found.append((suite, names))
    return found


def draw_scale(svg, x, top, bottom):
    """Vertical lines, named above and below; each stands for twice as much as the one before."""
    one = x + position(1) * PANEL_WIDTH
    svg.text(one - 8, top - 22, "\u2190 zfuse is slower", 11, MUTED, "end")
    svg.text(one + 8, top - 22, "zfuse is faster \u2192", 11, MUTED)
    value = LOW
    while value <= HIGH:
        at = x + position(value) * PANEL_WIDTH
        is_one = value == 1
        svg.line(at, top, at, bottom, INK if is_one else GRID, 1.4 if is_one else 1.0)
        name = f"1/{round(1 / value)}" if value < 1 else f"{value:.0f}"
        for y in (top - 7, bottom + 16):
            svg.text(at, y, f"{name}×", 11, INK if is_one else MUTED, "middle", "bold" if is_one else "normal")
        value *= 2


def draw_mark(svg, x, y, peer):
    colour, r = COLOURS[peer], MARK
    more = {"fill": colour, "stroke": "#ffffff", "stroke_width": 0.8}
    corners = {"square": [(-1, -1), (1, -1), (1, 1), (-1, 1)], "diamond": [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
               "triangle": [(0, -1.2), (1.2, 1), (-1.2, 1)]}.get(SHAPES[peer])
    if corners:
        svg.add("polygon", points=" ".join(f"{x + a * r:.1f},{y + b * r:.1f}" for a, b in corners), **more)
    else:
        svg.add("circle", cx=x, cy=y, r=r, **more)


def draw_goal(svg, x, y, peer):
    svg.add("polyline", points=f"{x + 4:.1f},{y - 8:.1f} {x:.1f},{y - 8:.1f} {x:.1f},{y + 8:.1f} "
            f"{x + 4:.1f},{y + 8:.1f}", fill="none",
            stroke=COLOURS[peer], stroke_width=1.8)


def goal_of(run, name, peer):
    for goal in goals.GOALS:
        if (goal.medium, goal.operation, goal.peer) == (run["medium"], name, peer) and goal.of_speed:
            return goal.least
    return None


def draw_row(svg, x, y, run, cells, name, peers):
    """The marks of one operation, on a thread from the first to the last."""
    values = {peer: ratio(name, cells, peer) for peer in peers}
    values = {peer: value for peer, value in values.items() if value is not None}
    places = {peer: x + position(value) * PANEL_WIDTH for peer, value in values.items()}
    if places:
        svg.line(min(places.values()), y, max(places.values()), y, THREAD, 1.4)
    for peer in values:
        goal = goal_of(run, name, peer)
        if goal:
            draw_goal(svg, x + position(goal) * PANEL_WIDTH, y, peer)
    for peer, value in values.items():
        draw_mark(svg, places[peer], y, peer)
        if not LOW <= value <= HIGH:
            side = 1 if value > HIGH else -1
            svg.text(places[peer] + 8 * side, y + 4, short_ratio(value), 9.5, MUTED, "start" if side > 0 else "end")


def draw_legend(svg, x, y, peers):
    for peer in peers:
        draw_mark(svg, x + 5.0, y - 4.0, peer)
        svg.text(x + 16, y, peer, 12.5)
        x += 16 + 7.2 * len(peer) + 22
    draw_goal(svg, x + 4.0, y - 4.0, "passthrough_hp")
    svg.text(x + 15, y, "goal: the mark of this colour belongs here, or farther right", 12.5)


def panel_title(run):
    where = "Images on tmpfs" if run["medium"] == "tmpfs" else "Images on disk"
    return where, "FUSE over io_uring" if run["transport"] == "io_uring" else "/dev/fuse"


def draw_panel_head(svg, x, run):
    where, over = panel_title(run)
    svg.text(x, TITLE_HEIGHT - 40, where, 14, weight="bold")
    svg.text(x + PANEL_WIDTH, TITLE_HEIGHT - 40, over, 12, MUTED, "end")
    svg.text(x - 14, TITLE_HEIGHT - 22, "zfuse itself", 11, MUTED, "end")


def own_speed(name, summary):
    """The speed of zfuse itself, as text."""
    if "zfuse" not in summary.get(name, {}):
        return ""
    return f"{short(summary[name]['zfuse']['speed'])} {OPERATIONS[name].unit}"


def of_images(runs):
    return [run for run in runs if run["medium"] != "vm"]


def draw(runs):
    first = {}
    for run in of_images(runs):
        first.setdefault(run["medium"], run)
    runs = list(first.values())
    summaries = [summarize(run) for run in runs]
    peers = [p for p in COLOURS if any(p in run["peers"] for run in runs)]
    groups = groups_of(summaries, peers)
    left = MARGIN + NAME_WIDTH
    panels = [left + i * (SPEED_WIDTH + PANEL_WIDTH + PANEL_GAP) + SPEED_WIDTH for i in range(len(runs))]
    width = left + len(runs) * (SPEED_WIDTH + PANEL_WIDTH + PANEL_GAP) - PANEL_GAP + MARGIN + 14

    rows, y = [], float(TITLE_HEIGHT)
    for suite, names in groups:
        rows.append((y, suite, None))
        y += SUITE_HEIGHT
        for name in names:
            rows.append((y, suite, name))
            y += ROW
    bottom = y + 6

    svg = Svg()
    svg.text(MARGIN, 34, "zfuse beside its peers", 20, weight="bold")
    svg.text(MARGIN, 55, "How many times as fast as each peer zfuse is. Each line of the scale stands for twice as "
             "much as the one before. Medians of interleaved rounds.", 12.5, MUTED)
    draw_legend(svg, MARGIN, 80, peers)
    for number, (top, _, _) in enumerate(r for r in rows if r[2]):
        if number % 2 == 0:
            svg.rect(MARGIN - 8, top, width - 2 * MARGIN + 16, ROW, BAND)
    for x, run in zip(panels, runs):
        draw_panel_head(svg, x, run)
        draw_scale(svg, x, TITLE_HEIGHT, bottom)
    for top, suite, name in rows:
        if name is None:
            svg.text(MARGIN, top + 18, SUITE_TITLES[suite], 13, weight="bold")
            continue
        middle = top + ROW / 2
        svg.text(MARGIN, middle + 4, name, 12.5)
        for x, run, summary in zip(panels, runs, summaries):
            svg.text(x - 14, middle + 4, own_speed(name, summary), 11, MUTED, "end")
            draw_row(svg, x, middle, run, summary.get(name, {}), name, peers)
    return svg.document(width, bottom + FOOT_HEIGHT, "zfuse's speed as a multiple of each peer's, by operation")
