# SPDX-License-Identifier: MIT
"""The picture: for every operation, zfuse's speed as a multiple of each peer's.

A bar to the right of the line of 1 means that zfuse is faster, one to the left that it is slower; the scale is
logarithmic, so that twice as fast and half as fast are equally long. One panel for each medium of images, of its first
run; one group of bars for each operation. A thin mark is a goal of goals.py.
"""
import html
import math

from bench import goals
from bench.jobs import OPERATIONS
from bench.report import ratio, short, short_ratio, summarize

FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
INK, MUTED, GRID, BAND = "#1f2933", "#5f6c7b", "#dde3ea", "#f4f6f9"
COLOURS = {"zfuse-flush": "#c25b6e", "passthrough_hp": "#3b6fb6", "fuse2fs": "#a9b8c9", "ext4": "#d9823b",
           "btrfs": "#4f9d69", "plain": "#8d6bb0"}
SUITE_TITLES = {"data": "One file", "files": "Many files", "tree": "A tree of real files", "mix": "Servers",
                "durable": "Durable writes", "databases": "Databases", "zeroes": "Zeroes",
                "traced": "With a trace"}

MARGIN = 28
LABEL_WIDTH = 212
PANEL_WIDTH = 400
PANEL_GAP = 60
BAR = 9
BAR_GAP = 1.5
NUMBER_WIDTH = 34
GROUP_PAD = 6
TITLE_HEIGHT = 142
SUITE_HEIGHT = 30
FOOT_HEIGHT = 34
LOW, HIGH = 1 / 16, 64  # what the scale shows; longer bars are cut, their numbers are not


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
    """Of a ratio on the scale, 0 to 1."""
    value = min(max(value, LOW), HIGH)
    return math.log(value / LOW) / math.log(HIGH / LOW)


def groups_of(summaries, peers):
    """[(suite, [operation])], only those that some run compares with some peer."""
    found = []
    for suite in SUITE_TITLES:
        names = [name for name, operation in OPERATIONS.items() if operation.suite == suite
                 and any(ratio(name, s.get(name, {}), peer) for s in summaries for peer in peers)]
        if names:
            found.append((suite, names))
    return found


def peers_of(name, summaries, peers):
    """Those that have a bar in some panel: all panels leave the same room."""
    return [p for p in peers if any(ratio(name, s.get(name, {}), p) for s in summaries)]


def group_height(count):
    return 2 * GROUP_PAD + count * BAR + (count - 1) * BAR_GAP


def draw_scale(svg, x, top, bottom):
    """Vertical lines, named above and below."""
    value = LOW
    while value <= HIGH:
        at = x + position(value) * PANEL_WIDTH
        is_one = value == 1
        svg.line(at, top, at, bottom, INK if is_one else GRID, 1.4 if is_one else 1.0)
        name = f"1/{round(1 / value)}" if value < 1 else f"{value:.0f}"
        for y in (top - 7, bottom + 16):
            svg.text(at, y, f"{name}×", 11, INK if is_one else MUTED, "middle", "bold" if is_one else "normal")
        value *= 2


def draw_bar(svg, x, y, value, colour, goal):
    one, at = x + position(1) * PANEL_WIDTH, x + position(value) * PANEL_WIDTH
    svg.rect(min(one, at), y, abs(at - one), BAR, colour)
    side = 1 if value >= 1 else -1
    end = at
    if goal:
        mark = x + position(goal) * PANEL_WIDTH
        svg.line(mark, y - 1, mark, y + BAR + 1, INK, 1.6)
        if 0 <= (mark - at) * side < NUMBER_WIDTH:
            end = mark  # the number goes behind the mark, not under it
    svg.text(end + 4 * side, y + BAR - 1, short_ratio(value), 9.5, MUTED, "start" if side > 0 else "end")


def goal_of(run, name, peer):
    for goal in goals.GOALS:
        if (goal.medium, goal.operation, goal.peer) == (run["medium"], name, peer) and goal.of_speed:
            return goal.least
    return None


def draw_group(svg, x, y, run, cells, name, peers):
    for i, peer in enumerate(peers):
        at = y + GROUP_PAD + i * (BAR + BAR_GAP)
        value = ratio(name, cells, peer)
        if value is None:
            continue
        draw_bar(svg, x, at, value, COLOURS[peer], goal_of(run, name, peer))


def draw_legend(svg, x, y, peers):
    for peer in peers:
        svg.rect(x, y - 9, 11, 11, COLOURS[peer])
        svg.text(x + 16, y, peer, 12.5)
        x += 16 + 7.2 * len(peer) + 22
    svg.line(x + 4, y - 10, x + 4, y + 3, INK, 1.6)
    svg.text(x + 13, y, "goal", 12.5)


def panel_title(run):
    where = "Images on tmpfs" if run["medium"] == "tmpfs" else "Images on disk"
    return where, "FUSE over io_uring" if run["transport"] == "io_uring" else "/dev/fuse"


def draw_panel_head(svg, x, run):
    where, over = panel_title(run)
    svg.text(x, TITLE_HEIGHT - 30, where, 14, weight="bold")
    svg.text(x + PANEL_WIDTH, TITLE_HEIGHT - 30, over, 12, MUTED, "end")


def own_speed(name, summaries):
    """What zfuse itself reaches, of each run, as the label's second line."""
    values = [short(s[name]["zfuse"]["speed"]) if "zfuse" in s.get(name, {}) else "–" for s in summaries]
    return f"{' | '.join(values)} {OPERATIONS[name].unit}"


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
    left = MARGIN + LABEL_WIDTH
    width = left + len(runs) * (PANEL_WIDTH + PANEL_GAP) - PANEL_GAP + MARGIN + 14
    panels = [left + i * (PANEL_WIDTH + PANEL_GAP) for i in range(len(runs))]

    rows, y = [], float(TITLE_HEIGHT)
    for suite, names in groups:
        rows.append((y, SUITE_HEIGHT, suite, None))
        y += SUITE_HEIGHT
        for name in names:
            height = max(group_height(len(peers_of(name, summaries, peers))), 30)
            rows.append((y, height, suite, name))
            y += height
    bottom = y + 6

    svg = Svg()
    svg.text(MARGIN, 34, "zfuse beside its peers", 20, weight="bold")
    svg.text(MARGIN, 55, "How many times as fast as each peer zfuse is: right of the line it is faster, left of it "
             "slower. Logarithmic scale; medians of interleaved rounds.", 12.5, MUTED)
    draw_legend(svg, MARGIN, 84, peers)
    media = " | ".join(run["medium"] for run in runs)
    svg.text(width - MARGIN - 14, 84, f"under each name: zfuse's own speed, {media}", 11, MUTED, "end")
    for number, (top, height, _, name) in enumerate(r for r in rows if r[3]):
        if number % 2 == 0:
            svg.rect(MARGIN - 8, top, width - 2 * MARGIN + 16, height, BAND)
    for x, run in zip(panels, runs):
        draw_panel_head(svg, x, run)
        draw_scale(svg, x, TITLE_HEIGHT, bottom)
    for top, height, suite, name in rows:
        if name is None:
            svg.text(MARGIN, top + 20, SUITE_TITLES[suite], 13, weight="bold")
            continue
        middle = top + height / 2
        svg.text(MARGIN, middle - 2, name, 12.5)
        svg.text(MARGIN, middle + 12, own_speed(name, summaries), 10.5, MUTED)
        shown = peers_of(name, summaries, peers)
        inner = top + (height - group_height(len(shown))) / 2
        for x, run, summary in zip(panels, runs, summaries):
            draw_group(svg, x, inner, run, summary.get(name, {}), name, shown)
    return svg.document(width, bottom + FOOT_HEIGHT, "zfuse's speed as a multiple of each peer's, by operation")
