# SPDX-License-Identifier: MIT
"""Zones: a map of a used filesystem, and the life of one zone."""
from bench.curves import Axis, nice
from bench.picture import GRID, INK, MUTED
from bench.pictures.sheet import BLUE, GREEN, GREY, HEAD, MARGIN, ORANGE, PINK, RED, SKY, begin, kib

COLUMNS, CELL, CELL_GAP = 16, 50, 7
WHITE = ("#ffffff", "#8a95a1")
ROLES = {"super": ("superblocks", PINK), "meta": ("metadata", GREEN), "log": ("log", RED),
         "hot": ("data as it comes", BLUE),
         "cold": ("data that reclaim has moved", ORANGE), "none": ("empty", WHITE)}


# ---- the map ----

def draw_zone(svg, x, y, number, zone, size):
    """Draws live bytes in the full tone at the bottom, garbage in the light tone above; the part that can still be
    written is white."""
    role, pointer, live = zone
    colour = ROLES.get(role, ("", GREY))[1]
    written, live = pointer / size * CELL, live / size * CELL
    if role == "super":
        live = 0  # superblock records do not count as live
    svg.rect(float(x), float(y), float(CELL), float(CELL), "#ffffff", stroke=colour[1], stroke_width=1.2)
    if written > 0:
        svg.rect(float(x), float(y + CELL - written), float(CELL), float(written), colour[0], fill_opacity=0.55)
    if live > 0:
        svg.rect(float(x), float(y + CELL - live), float(CELL), float(live), colour[1], fill_opacity=0.75)
    svg.text(float(x + 4), float(y + 12), str(number), 9.5, INK)


def draw_map(found):
    zones, size = found["zones"], found["zone_bytes"]
    width = 2 * MARGIN + COLUMNS * (CELL + CELL_GAP)
    svg = begin("What is in the zones",
                f"{len(zones)} zones of {kib(size)}, full to 80 % of what data can have, after files were written and "
                "deleted for a while.", "Dark: live bytes. Light: written, and garbage until the zone is reset. White: "
                "not written.")
    x = MARGIN
    for role, (words, colour) in ROLES.items():
        if any(zone[0] == role for zone in zones):
            svg.rect(float(x), HEAD + 18.0, 12.0, 12.0, colour[1] if role != "none" else "#ffffff", stroke=colour[1])
            svg.text(float(x + 18), HEAD + 28.0, words, 12)
            x += 18 + 6.4 * len(words) + 22
    top = HEAD + 48
    for number, zone in enumerate(zones):
        row, column = divmod(number, COLUMNS)
        draw_zone(svg, MARGIN + column * (CELL + CELL_GAP), top + row * (CELL + CELL_GAP), number, zone, size)
    rows = (len(zones) + COLUMNS - 1) // COLUMNS
    return svg.document(width, top + rows * (CELL + CELL_GAP) + 14,
                        "A map of zones, each with its role, its live bytes and its garbage")


# ---- a life ----

WIDTH, HEIGHT = 760, 260
LEFT = 62
AFTER = 8  # samples that are shown before the zone is opened, and after it is reset


def lives(samples):
    """[(zone, first, last)] of the zones of data that were opened and later reset; first and last are samples."""
    found = []
    for zone in range(len(samples[0]["zones"])):
        opened = None
        for i, sample in enumerate(samples):
            role, pointer, _ = sample["zones"][zone]
            if opened is None and role == "hot" and i > 0 and samples[i - 1]["zones"][zone][1] == 0:
                opened = i
            elif opened is not None and pointer == 0:
                found.append((zone, opened, i))
                opened = None
    return found


def choose(samples):
    """Of the zones that were filled, the one whose life has the median length: a typical zone."""
    full = [life for life in lives(samples)
            if max(s["zones"][life[0]][1] for s in samples[life[1]:life[2]]) == samples[0]["zone_bytes"]]
    return sorted(full, key=lambda life: (life[2] - life[1], life))[len(full) // 2]


def area(svg, points, base, colour, opacity):
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in [(points[0][0], base), *points, (points[-1][0], base)])
    svg.add("polygon", points=text, fill=colour, fill_opacity=opacity)


def mark(svg, x, top, bottom, words, row, anchor="end"):
    """Draws a line at a moment, with words on what happens then."""
    svg.line(float(x), float(top - 4 - 15 * row), float(x), float(bottom), INK, 1.0, stroke_dasharray="3 3")
    svg.text(float(x + (4 if anchor == "start" else -4)), float(top - 6 - 15 * row), words, 11.5, INK, anchor)


def first(samples, zone, test):
    return next(i for i, s in enumerate(samples) if test(s["zones"][zone]))


def draw_life(samples):
    zone, opened, reset = choose(samples)
    shown = samples[max(opened - AFTER, 0):reset + AFTER]
    size = samples[0]["zone_bytes"]
    start = shown[0]["user_bytes"]
    across = Axis(0, shown[-1]["user_bytes"] - start)
    left, top = float(MARGIN + LEFT), float(HEAD + 74)
    bottom = top + HEIGHT

    def at(sample, value):
        return left + across.part(sample["user_bytes"] - start) * WIDTH, bottom - value / size * HEIGHT

    svg = begin("The life of a zone",
                f"Zone {zone} of {len(samples[0]['zones'])}, of {kib(size)} each, while the blocks of one file are "
                "overwritten at random, in a filesystem that is 70 % full.", "A commit every 2 MiB.")
    for part in (0, 0.25, 0.5, 0.75, 1):
        y = bottom - part * HEIGHT
        svg.line(left, y, left + WIDTH, y, GRID)
        svg.text(left - 6, y + 4, kib(int(size * part)) if part else "0", 11, MUTED, "end")
    step = nice(across.high / 7 / (1 << 20)) * (1 << 20)
    for n in range(int(across.high / step) + 1):
        x = left + across.part(n * step) * WIDTH
        svg.text(x, bottom + 17, kib(int(n * step)) if n else "0", 11, MUTED, "middle")
    written = [at(s, s["zones"][zone][1]) for s in shown]
    live = [at(s, s["zones"][zone][2]) for s in shown]
    area(svg, written, bottom, ORANGE[0], 0.75)
    area(svg, live, bottom, BLUE[1], 0.75)
    full = first(shown, zone, lambda z: z[1] == size)
    emptied = full + first(shown[full:], zone, lambda z: z[2] == 0)
    mark(svg, at(shown[full], 0)[0], top, bottom, "full: overwriting takes from it", 0, "start")
    mark(svg, at(shown[emptied], 0)[0], top, bottom, "reclaim has moved what was live", 1)
    mark(svg, at(shown[-AFTER], 0)[0], top, bottom, "reset, after the next commit", 0)
    svg.line(left, bottom, left + WIDTH, bottom, INK, 1.2)
    svg.text(left + WIDTH / 2, bottom + 36, "bytes that the user has written meanwhile, to all zones", 11.5, MUTED,
             "middle")
    y = bottom + 62
    for words, colour, opacity in (("live bytes", BLUE[1], 0.75),
                                   ("written, and not live any more: garbage", ORANGE[0], 0.75)):
        x = left if colour == BLUE[1] else left + 120
        svg.rect(x, y - 10, 12.0, 12.0, colour, fill_opacity=opacity)
        svg.text(x + 18, y, words, 12)
    return svg.document(left + WIDTH + MARGIN, y + 20,
                        "Live bytes and garbage of one zone: it fills, loses live bytes, is emptied, and reset")
