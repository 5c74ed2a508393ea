# SPDX-License-Identifier: MIT
"""What a page of `zfusectl replay` costs a browser: 100,000 events of a seeded run, in a headless Chromium without GPU.

The page is opened, goes to its end and back, and plays 300 frames. Each round has a browser of its own; the result is
the median.
"""
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/trace"))

from browser import CHROMIUM, Browser  # noqa: E402 (the path comes first)

EVENTS = 100000
HEADER, RECORD = 248, 64  # bytes (docs/trace.md)
OPERATIONS = "12000"      # of the seeded run: more than enough for so many events
FRAMES = 300
SPEED = 5000              # events a second: the fastest that the page offers
MIB = 1 << 20

# Notes when the first step was on the screen, because a program outside the page cannot see that.
WATCH = """addEventListener("DOMContentLoaded", () => {
    const note = () => { globalThis.shownAt = performance.now(); };
    const look = () => requestAnimationFrame(document.getElementById("main")?.hidden === false ? note : look);
    look();
});"""
PLAY = f"""new Promise((resolve) => {{
    replay.go(0);
    document.getElementById("speed").value = "{SPEED}";
    replay.play();
    const times = [];
    const note = (now) => {{
        times.push(now);
        if (times.length <= {FRAMES}) return requestAnimationFrame(note);
        replay.pause();
        resolve(times);
    }};
    requestAnimationFrame(note);
}})"""
SHOWN = """new Promise((resolve) => {
    const look = () => (globalThis.shownAt ? resolve(shownAt) : setTimeout(look, 10));
    look();
})"""


class PageError(Exception):
    pass


def make_page(build, directory):
    """Makes the page of the first EVENTS events. Returns its path."""
    trace, page = directory / "trace", directory / "page.html"
    subprocess.run([build / "tests/crash/crash", "--ops", OPERATIONS, "--repeat", "3", "--trace", trace], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    data = trace.read_bytes()[:HEADER + EVENTS * RECORD]
    if len(data) < HEADER + EVENTS * RECORD:
        raise PageError(f"the run has {(len(data) - HEADER) // RECORD} events only")
    trace.write_bytes(data)
    subprocess.run([build / "tools/zfusectl/zfusectl", "replay", trace, "--output", page], check=True)
    return page


def percentile(values, part):
    return sorted(values)[math.ceil(len(values) * part) - 1]


def play(page):
    """Plays the page in a new browser. Returns {name of a limit: value}."""
    with Browser(width=1300, height=900) as browser:
        browser.ask("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        browser.open(page)
        if browser.evaluate("replay.trace.count") != EVENTS:
            raise PageError("the page has not all events")
        shown = browser.evaluate(SHOWN)
        browser.evaluate(f"replay.go({EVENTS})")
        heap = browser.metrics()["JSHeapUsedSize"]
        times = browser.evaluate(PLAY)
        heap = max(heap, browser.metrics()["JSHeapUsedSize"])
        if browser.evaluate("replay.model.position") < EVENTS // 100:
            raise PageError("the page has not played")
    frames = [after - before for before, after in zip(times, times[1:])]
    return {"shown": shown / 1000, "heap": heap / MIB, "frame": percentile(frames, 0.95)}


def measure(build, rounds):
    """{name: [value of each round]}"""
    if not CHROMIUM:
        raise PageError("chromium is not installed: scripts/install-deps")
    with tempfile.TemporaryDirectory() as directory:
        page = make_page(build, pathlib.Path(directory))
        played = [play(page) for _ in range(rounds)]
        found = {name: [one[name] for one in played] for name in played[0]}
        found["size"] = [page.stat().st_size / MIB]
    return found


def medians(found):
    return {name: statistics.median(values) for name, values in found.items()}
