# SPDX-License-Identifier: MIT
"""The colours of a replay's page: colour-blind people can tell them apart, in each theme and on paper.

    test_palette.py PAGE.css

The simulation of colour blindness: Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of Color
Vision Deficiency" (2009), for the full deficiency. The distance of two colours is measured in CIE L*a*b*, where people
can just see a distance of about 2.
"""
import itertools
import pathlib
import re
import sys
import unittest

CSS = pathlib.Path(sys.argv[1]).read_text()
FAR = 15
TOLD_APART = ("super", "meta", "log", "hot", "cold", "overwrite", "reclaim")
SIGHTS = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
TO_XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE = (0.95047, 1, 1.08883)


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def linear(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[i:i + 2], 16) / 255 for i in (0, 2, 4)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def lab(colour, sight):
    seen = [min(1, max(0, part)) for part in times(SIGHTS[sight], linear(colour))]
    x, y, z = ((part / white) ** (1 / 3) if part / white > 0.008856 else 7.787 * part / white + 16 / 116
               for part, white in zip(times(TO_XYZ, seen), WHITE))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def themes():
    light, dark, paper = (dict(re.findall(r"--(\w+): (#\w+)", block)) for block in re.findall(r":root \{([^}]*)\}", CSS))
    # "paper, dark": printed by a user who prefers the dark theme.
    return {"light": light, "dark": {**light, **dark}, "paper": {**light, **paper}, "paper, dark": {**light, **dark, **paper}}


class Palette(unittest.TestCase):
    def test_colours_are_told_apart(self):
        for (theme, colours), sight in itertools.product(themes().items(), SIGHTS):
            for one, other in itertools.combinations(TOLD_APART, 2):
                distance = sum((a - b) ** 2 for a, b in zip(lab(colours[one], sight), lab(colours[other], sight))) ** 0.5
                self.assertGreater(distance, FAR, f"{theme}, {sight}: {one} and {other}")

    def test_paper_is_the_same_whatever_somebody_prefers(self):
        self.assertEqual(themes()["paper"], themes()["paper, dark"])


unittest.main(argv=sys.argv[:1])
