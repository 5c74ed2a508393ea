# SPDX-License-Identifier: MIT
"""Checks that a browser draws the whole trace: no event contradicts another, none is missing, and each has a mark.

    drawn.py ZFUSECTL TRACE
"""
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from browser import Browser, skip_without  # noqa: E402 (the path comes first)
from replay import page_of  # noqa: E402

skip_without()

with tempfile.TemporaryDirectory() as directory, Browser(width=2400, height=900) as browser:
    browser.open(page_of(*sys.argv[1:3], pathlib.Path(directory) / "page.html"))
    if not browser.evaluate("document.getElementById('warning').hidden"):
        sys.exit(browser.evaluate("document.getElementById('warning').textContent"))
    browser.evaluate((pathlib.Path(__file__).parent / "marks.js").read_text())
    unmarked = browser.evaluate("unmarked()")
    if unmarked:
        sys.exit(f"events without a mark, by their places in the trace: {unmarked}")
    print(f"{browser.evaluate('replay.trace.count')} events, each with a mark")
