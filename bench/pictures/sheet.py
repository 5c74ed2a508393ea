# SPDX-License-Identifier: MIT
"""Parts that all pictures use: a head, a legend, boxes, notes."""
from bench.picture import INK, MUTED, Svg

MARGIN = 28
HEAD = 74
# (light tone, full tone) of colours from the palette of Okabe and Ito, which colour-blind people can tell apart.
BLUE, ORANGE, GREEN, YELLOW, PINK, SKY, RED, GREY = (
    ("#80b8d8", "#0072b2"), ("#f4cf80", "#b87d00"), ("#80ceb9", "#009e73"), ("#f8f1a1", "#a39a10"),
    ("#e5bcd3", "#b0568a"), ("#c3e4f8", "#56b4e9"), ("#eaae80", "#d55e00"), ("#e3e7ec", "#8a95a1"))


def kib(count):
    """A number of bytes as text, in the unit that suits it."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def begin(title, *lines):
    svg = Svg()
    svg.text(MARGIN, 34, title, 20, weight="bold")
    for i, line in enumerate(lines):
        svg.text(MARGIN, 55 + 17 * i, line, 12.5, MUTED)
    return svg


def box(svg, x, y, width, height, colour, lines=(), size=10.5, bold=False, dashes=None):
    more = {"stroke_dasharray": dashes} if dashes else {}
    svg.rect(float(x), float(y), float(width), float(height), colour[0], stroke=colour[1],
             stroke_width=2.4 if bold else 1.0, **more)
    top = y + height / 2 - (len(lines) - 1) * (size + 2.5) / 2 + size * 0.36
    for i, line in enumerate(lines):
        svg.text(float(x + width / 2), float(top + i * (size + 2.5)), line, size, INK, "middle")


def legend(svg, x, y, entries):
    """Draws entries, [(words, colour)], side by side. Returns the x at which the legend ends."""
    for words, colour in entries:
        svg.rect(float(x), float(y - 10), 12.0, 12.0, colour[0], stroke=colour[1])
        svg.text(float(x + 18), float(y), words, 12)
        x += 18 + 6.4 * len(words) + 20
    return x
