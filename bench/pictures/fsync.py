# SPDX-License-Identifier: MIT
"""The latency of fsync, for each peer: a curve of the part of all calls that took longer than a given time."""
import types

from bench import peers
from bench.curves import Axis
from bench.picture import COLOURS, GRID, INK, MUTED
from bench.pictures.sheet import HEAD, MARGIN, begin
from bench.run import URING, Place, machine, rotated, use_uring

NAMES = ("zfuse", "ext4", "btrfs")
ROUNDS, MILLISECONDS = 3, 5000
IMAGE = peers.Image(1 << 30, True)
WIDTH, HEIGHT, LEFT = 640, 340, 62
OWN = "#1f2933"
LEAST = 1e-4  # the smallest part that is drawn


def measure(programs):
    """{"peers": {name: {microseconds: count}}, "machine"}: interleaved rounds, on images in files of the same disk."""
    settings = types.SimpleNamespace(build=programs.build, transport="io_uring", options=None)
    found = {name: {} for name in NAMES}
    before = use_uring()
    try:
        with Place("/var/tmp") as place:
            for number in range(ROUNDS):
                for name in rotated(list(NAMES), number):
                    one_round(programs, place, settings, name, found[name])
    finally:
        if before:
            URING.write_text(before)
    return {"peers": found, "machine": machine(), "load": open("/proc/loadavg", encoding="ascii").read().split()[0]}


def one_round(programs, place, settings, name, histogram):
    with peers.PEERS[name](place / name, settings, IMAGE) as peer:
        lines = programs.run("bench/durable", "append", peer.mnt, 1, MILLISECONDS, "histogram").splitlines()
    for line in lines[1:]:
        microseconds, count = line.split()
        histogram[microseconds] = histogram.get(microseconds, 0) + int(count)


def slower(histogram):
    """[(ms, the part of the calls that took so long or longer)], by ms."""
    left = total = sum(histogram.values())
    points = []
    for text in sorted(histogram, key=float):
        points.append((float(text) / 1000, left / total))
        left -= histogram[text]
    return points


def at_part(points, part):
    return next((ms for ms, slower_part in points if slower_part <= part), points[-1][0])


def name_of(ms):
    return f"{ms:g} ms" if ms >= 1 else f"{ms * 1000:g} µs"


def draw(found):
    curves = {name: slower(histogram) for name, histogram in found["peers"].items()}
    counts = {name: sum(histogram.values()) for name, histogram in found["peers"].items()}
    svg = begin("How long fsync takes",
                "One client appends 4 KiB to a file and calls fsync, again and again: zfuse over FUSE, the others in "
                "the kernel on loop",
                f"devices, each on an image of 1 GiB in a file of the same disk. {ROUNDS} interleaved rounds of "
                f"{MILLISECONDS // 1000} s; load average {found['load']}.")
    left, top = float(MARGIN + LEFT), float(HEAD + 76)
    low = min(points[0][0] for points in curves.values())
    high = max(points[-1][0] for points in curves.values())
    across = Axis(10.0 ** int_floor(low), 10.0 ** -int_floor(1 / high), logarithmic=True)
    up = Axis(LEAST, 1.0, logarithmic=True)

    def at(ms, part):
        return left + across.part(ms) * WIDTH, top + HEIGHT - up.part(part) * HEIGHT

    for part in up.ticks():
        y = at(low, part)[1]
        svg.line(left, y, left + WIDTH, y, GRID)
        svg.text(left - 6, y + 4, f"{part * 100:g} %", 11, MUTED, "end")
    for ms in across.ticks():
        x = at(ms, 1.0)[0]
        svg.line(x, top, x, top + HEIGHT, GRID)
        svg.text(x, top + HEIGHT + 17, name_of(ms), 11, MUTED, "middle")
    svg.line(left, top + HEIGHT, left + WIDTH, top + HEIGHT, INK, 1.2)
    svg.text(left - 6, top - 12, "this part of them took longer than ...", 11.5, MUTED)
    svg.text(left + WIDTH, top + HEIGHT + 34, "... so long", 11.5, MUTED, "end")
    for number, (name, points) in enumerate(curves.items()):
        colour = COLOURS.get(name, OWN)
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(ms, part) for ms, part in points if part >= LEAST))
        svg.add("polyline", points=places, fill="none", stroke=colour, stroke_width=3.0 if name == "zfuse" else 2.0)
        x = left + number * 230
        svg.line(x, top - 38, x + 22, top - 38, colour, 3.0 if name == "zfuse" else 2.0)
        svg.text(x + 28, top - 34, f"{name}: {counts[name]:,}, median {name_of(round(at_part(points, 0.5), 2))}", 12)
    return svg.document(left + WIDTH + MARGIN, top + HEIGHT + 50,
                        "Distribution of the latencies of fsync, of zfuse, ext4 and btrfs")


def int_floor(value):
    """The exponent of the largest power of ten that is not above the value."""
    n = 0
    while 10.0 ** n > value:
        n -= 1
    while 10.0 ** (n + 1) <= value:
        n += 1
    return n
