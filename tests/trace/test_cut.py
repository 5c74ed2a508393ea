# SPDX-License-Identifier: MIT
"""Cuts of seeded runs: the page's model agrees with the real mount of the image that `zfusectl lab crash` makes.

    test_cut.py CRASH ZFUSECTL MOUNTED [--cuts N] [--of-each N] [--browse N] [--seed S] [--run TRACE DATA]

Both have the same superblock generation, the same replayed records, and the same paths with types and sizes. For each
block both have the same last surviving write: the mount reads the bytes that this write has in the data of the trace.
At least --of-each cuts are in each class: inside a commit, at the ring's turn, in reclaim, with several appends in
flight, in a write in place, in recovery.
Prints the number of cuts in each class.
"""
import argparse
import collections
import html
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from replay import NODE  # noqa: E402 (the path comes first)

BLOCK, SECTOR, HEADER, ZONE, PIECE = 4096, 512, 72, 24, 24
TRACE_HEADER, TRACE_RECORD, EVENT_AT, LOG_REPLAYED = 248, 64, 20, 61
CLASSES = ("commit", "ring", "reclaim", "appends", "place", "recovery")
RUNS = ("1", "3", "13", "20", "31", "47", "95", "5", "8", "102", "117")  # the last two write in place
NO_LIMIT = "3"  # of active zones
CUTS_A_RUN = 20  # more cuts need more runs
OPS = "400"
CUT = str(pathlib.Path(__file__).parent / "cut.js")

parser = argparse.ArgumentParser()
parser.add_argument("crash")
parser.add_argument("zfusectl")
parser.add_argument("mounted")
parser.add_argument("--cuts", type=int, default=60)
parser.add_argument("--of-each", type=int, default=5)
parser.add_argument("--run", nargs=2, metavar=("TRACE", "DATA"), help="of this one, whatever classes it has")
parser.add_argument("--browse", type=int, default=0, help="so many of them also in Chromium, if it is installed")
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args()
draw = random.Random(args.seed)


class Run:
    """A seeded run: its trace, data and page."""

    def __init__(self, directory, record, files=None):
        self.record, name = record, record.replace(":", "-")
        self.trace, self.data, self.page = (directory / f"{name}.{kind}" for kind in ("trace", "data", "html"))
        if files:
            self.trace, self.data, self.ok = *map(pathlib.Path, files), True
            return
        self.ok = subprocess.run([args.crash, "--ops", OPS, "--repeat", record, "--trace", self.trace, "--trace-data", self.data],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0

    def read(self):
        subprocess.run([args.zfusectl, "replay", self.trace, "--trace-data", self.data, "--output", self.page], check=True)
        self.classes = json.loads(subprocess.run([NODE, CUT, self.page, "classes"], stdout=subprocess.PIPE, check=True).stdout)
        self.sets = {name: set(self.classes[name]) for name in CLASSES}
        self.blocks = blocks_of(self.data.read_bytes())
        self.sectors = sectors_of(self.page.read_text(), self.blocks)
        return self

    def classes_of(self, events):
        return [name for name in CLASSES if events in self.sets[name]]


def blocks_of(data):
    """The blocks of a trace's data, by (write, index), or by (0, address) for contents from before the run."""
    blocks, zones = {}, struct.unpack_from("<I", data, 48)[0]
    at = HEADER + zones * ZONE
    while at + PIECE <= len(data):
        write, address, size = struct.unpack_from("<3Q", data, at)
        at += PIECE
        for i in range(0, size, BLOCK):
            blocks[(write, i // BLOCK) if write else (0, address + i)] = data[at + i:at + i + BLOCK]
        at += size
    return blocks


def sectors_of(page, blocks):
    """{number of a sector in the page: its bytes}"""
    facts = json.loads(re.search(r'<script id="trace"[^>]*>(.*?)</script>', page)[1])["facts"]
    sectors = {}

    def add(content, block):
        for i, sector in enumerate(facts["contents"][content]):
            sectors[sector] = block[i * SECTOR:(i + 1) * SECTOR]

    add(0, ZEROES)
    add(1, GARBAGE)
    for write, *contents in facts["writes"]:
        for i, content in enumerate(contents):
            add(content, blocks[write, i])
    for address, *contents in facts["lay"]:
        for i, content in enumerate(contents):
            add(content, blocks[0, address + i * BLOCK])
    return sectors


def splitmix(state, words):
    mask = 2 ** 64 - 1
    for _ in range(words):
        state = (state + 0x9e3779b97f4a7c15) & mask
        z = ((state ^ (state >> 30)) * 0xbf58476d1ce4e5b9) & mask
        z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & mask
        yield z ^ (z >> 31)


ZEROES = bytes(BLOCK)
GARBAGE = struct.pack(f"<{BLOCK // 8}Q", *splitmix(0, BLOCK // 8))


def has_replayed(trace):
    return any(struct.unpack_from("<H", trace, at)[0] == LOG_REPLAYED
               for at in range(TRACE_HEADER + EVENT_AT, len(trace), TRACE_RECORD))


def recoveries(directory):
    """Traces of recoveries that replay at least one record."""
    found, places = [], [(seed, cut) for seed in RUNS for cut in range(40, 400, 10)]
    draw.shuffle(places)
    for seed, cut in places:
        run = Run(directory, f"{seed}:{cut}:0")
        if run.ok and has_replayed(run.trace.read_bytes()):
            found.append(run)
        if len(found) > args.cuts // CUTS_A_RUN:
            return found
    raise AssertionError("too few recoveries replay anything")


def choose(runs):
    """The cuts, {run: [(events, seed)]}: --of-each cuts of each class, and then cuts at random."""
    chosen, counts = collections.defaultdict(list), collections.Counter()

    def take(run, events):
        chosen[run].append((events, draw.randrange(1, 2 ** 64)))
        counts.update(["all", *(run.classes_of(events) or ["other"])])

    for name in CLASSES:
        places = [(run, events) for run in runs for events in run.classes[name]]
        draw.shuffle(places)
        while places and counts[name] < args.of_each:
            for place in places[:args.of_each - counts[name]]:
                take(*place)
    short = [name for name in CLASSES if counts[name] < args.of_each]
    if short and not args.run:
        raise AssertionError(f"too few cuts of {short}: {counts}")
    while counts["all"] < args.cuts:
        run = draw.choice(runs)
        take(run, draw.randrange(1, run.classes["count"] + 1))
    return chosen, counts


def model_of(run, cuts):
    """The model's answer for each cut. Seeds are passed as text, because JavaScript's numbers do not have 64 bits."""
    asked = json.dumps([[events, str(seed)] for events, seed in cuts])
    out = subprocess.run([NODE, CUT, run.page, "cuts"], input=asked, stdout=subprocess.PIPE, text=True, check=True).stdout
    return list(map(json.loads, out.splitlines()))


class Disagree(AssertionError):
    pass


def same(what, model, mount):
    if model != mount:
        raise Disagree(f"{what}: the page says {model}, the mount {mount}")


def check_file(run, name, model, mount):
    addresses, others = {}, []
    model["others"] = [[kind, int(offset), size] for kind, offset, size in model["others"]]
    model["rewritten"] = list(map(int, model["rewritten"]))
    for block in model["blocks"]:
        block["offset"] = int(block["offset"])
    for kind, offset, size, address in mount["extents"]:
        if kind == 2:
            addresses.update((offset + i, address + i) for i in range(0, size, BLOCK))
        else:
            others.append([kind, offset, size])
    for offset in model["rewritten"]:
        addresses.pop(offset, None)
    blocks = {block["offset"]: block for block in model["blocks"] if block["offset"] not in model["rewritten"]}
    same(f"blocks of {name}", {offset: block["address"] for offset, block in blocks.items()}, addresses)
    same(f"inline and zero extents of {name}", sorted(merged(model["others"])), sorted(merged(others)))
    checked = 0
    for offset, block in blocks.items():
        read = mount["sums"].get(str(offset))
        if read is None or block["carried"] or block["torn"]:
            continue
        wrote = run.blocks.get((block["write"], block["index"]) if block["write"] else (0, block["address"]), ZEROES)
        same(f"bytes of {name} at {offset}, from {block}", zlib.crc32(wrote), read)
        checked += 1
    return checked


def merged(extents):
    """The extents in a form that can be compared: adjacent zero extents are one, inline extents have no size."""
    found = []
    for kind, offset, size in sorted(extents, key=lambda extent: extent[1]):
        if kind == 1:
            found.append([kind, offset])
        elif found and found[-1][0] == kind and found[-1][1] + found[-1][2] == offset:
            found[-1][2] += size
        else:
            found.append([kind, offset, size])
    return found


# ---- appends that overtake one another ----

APPEND, WRITE, SUBMITTED, COMPLETED = 2, 1, 20, 21


class Overtaken(Run):
    """A seeded run, followed by appends of which the later one completes first, and by two writes at one write
    pointer."""

    def __init__(self, directory, run):
        self.record, self.ok = f"{run.record}, overtaken", True
        self.trace, self.data, self.page = (directory / f"overtaken.{kind}" for kind in ("trace", "data", "html"))
        trace, self.added = run.trace.read_bytes()[:-TRACE_RECORD], bytearray()
        self.time = (len(trace) - TRACE_HEADER) // TRACE_RECORD
        self.pieces = bytearray()
        zone_size = struct.unpack_from("<Q", trace, 40)[0]
        empty = [number for number, wp in enumerate(model_of(run, [(run.classes["count"], 1)])[0]["wp"]) if wp == 0]
        first, second = (number * zone_size for number in empty[-2:])
        appends = [self.submit(APPEND, first) for _ in range(2)]
        for i in range(3):
            self.submit(WRITE, second + i * BLOCK)
        self.cuts = [self.time, self.complete(appends[1], APPEND, first + BLOCK), self.complete(appends[0], APPEND, first)]
        self.trace.write_bytes(trace + self.added)
        self.data.write_bytes(run.data.read_bytes() + self.pieces)

    def tell(self, event, payload):
        self.time += 1
        self.added += struct.pack("<QQIHH", self.time, self.time, 0, event, 0) + payload.ljust(40, b"\0")
        return self.time

    def submit(self, command, address):
        sequence = self.tell(SUBMITTED, struct.pack("<QQBBB", address, BLOCK, command, 1, 0))
        self.pieces += struct.pack("<QQQ", sequence, address, BLOCK) + draw.randbytes(BLOCK)
        return sequence

    def complete(self, submitted, command, address):
        return self.tell(COMPLETED, struct.pack("<QQQqBBB", submitted, address, BLOCK, 0, command, 1, 0))


# ---- in a browser ----

BROWSER = shutil.which("chromium")
TYPES = {0o040000: "directory", 0o100000: "file", 0o120000: "symbolic link", 0o020000: "character device",
         0o060000: "block device", 0o010000: "fifo", 0o140000: "socket"}


def browse(run, events, seed):
    """The texts of the page in a browser: the sentence, and the rows of the files."""
    with tempfile.TemporaryDirectory() as home:
        shown = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}",
                                "--virtual-time-budget=10000", "--dump-dom", f"file://{run.page}#{events}/{seed}"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, timeout=300).stdout
    said = re.search(r'id="cut-said"[^>]*>([^<]*)<', shown)[1]
    table = re.search(r'<table id="cut-paths">(.*?)</table>', shown, re.S)[1]
    return said, [[html.unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", row)] for row in table.split("</tr>")[1:-1]]


def shown_name(name):
    return re.sub(r"\\x([89a-f][0-9a-f])", lambda found: chr(int(found[1], 16)), name).encode("latin-1").decode()


def check_browser(run, events, seed, model):
    said, rows = browse(run, events, seed)
    records = model["records"]
    span = f"{records[0]} to {records[-1]}" if len(records) > 1 else str(*records)
    replays = f"replays {len(records)} record{'s' * (len(records) > 1)} of the log: {span}." if records else "replays no record"
    for words in (f"after event {events:,}, outcome {seed}.", f"generation {model['generation']}, ", replays):
        if words not in said:
            raise Disagree(f"in a browser the page says {said}, and not {words}")
    paths = [[TYPES[p["mode"] & 0o170000], p["size"], "/" + "/".join(map(shown_name, p["path"]))] for p in model["paths"]]
    same("paths in a browser", paths[:200], [[row[0], row[1], row[5]] for row in rows])


def check_image(run, model, image):
    """Checks that the image has the model's content in each block that was not durable."""
    with open(image, "rb") as file:
        for address, sectors in model["found"]:
            file.seek(address)
            same(f"block at {address}", b"".join(map(run.sectors.get, sectors)), file.read(BLOCK))


def check(run, model, mount):
    same("generation", model["generation"], mount["generation"])
    same("write pointers", model["wp"], mount["wp"])
    same("replayed records", model["records"], mount["records"])
    if not model["kept"]:
        raise Disagree(f"the page finds less than was promised: {model['promised']}")
    paths = [{tuple(p["path"]): p for p in side["paths"]} for side in (model, mount)]
    same("paths, types and sizes", *({path: (p["mode"] & 0o170000, int(p["size"])) for path, p in side.items()} for side in paths))
    return sum(check_file(run, path, p, paths[1][path]) for path, p in paths[0].items() if "blocks" in p)


def mount_images(mounted, run, cuts, models, image):
    """Yields for each cut: the disagreement of its image with the model, or None; and what its mount finds."""
    for (events, seed), model in zip(cuts, models):
        subprocess.run([args.zfusectl, "lab", "crash", run.trace, image, "--trace-data", run.data, "--at", str(events), "--outcome",
                        str(seed), "--force"], check=True)
        wrong = None
        try:
            check_image(run, model, image)
        except Disagree as disagree:
            wrong = disagree
        mounted.stdin.write(f"{image}\n")
        mounted.stdin.flush()
        line = mounted.stdout.readline()
        if not line:
            raise Disagree(f"the mount fails: run {run.record}, after event {events}, outcome {seed}")
        yield wrong, json.loads(line)


def seeded(directory):
    more = [str(seed) for seed in range(200, 200 + max(0, args.cuts // CUTS_A_RUN - len(RUNS)))]
    runs = [Run(directory, record) for record in (*RUNS, *more)] + recoveries(directory)
    return [run.read() for run in runs if run.ok]


def main(directory):
    runs = [Run(directory, "this", args.run).read()] if args.run else seeded(directory)
    chosen, counts = choose(runs)
    if not args.run:
        run = Overtaken(directory, next(run for run in runs if run.record == NO_LIMIT)).read()
        chosen[run] = [(events, draw.randrange(1, 2 ** 64)) for events in run.cuts for _ in range(8)]
        counts.update(overtaken=len(chosen[run]))
    mounted = subprocess.Popen([args.mounted], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    blocks = replayed = undecided = browsed = 0
    failed = []
    for run, cuts in chosen.items():
        models = model_of(run, cuts)
        images = mount_images(mounted, run, cuts, models, directory / "image")
        for (events, seed), model, (wrong, mount) in zip(cuts, models, images):
            try:
                if wrong:
                    raise wrong
                blocks += check(run, model, mount)
                undecided += len(model["found"])
                if BROWSER and browsed < args.browse and seed < 10 ** 19:
                    check_browser(run, events, seed, model)
                    browsed += 1
                replayed += len(model["records"])
            except Disagree as wrong:
                failed.append(f"--repeat {run.record}, after event {events}, outcome {seed}: {wrong}")
    mounted.stdin.close()
    mounted.wait()
    print(f"cuts: {dict(counts)}; {blocks} blocks of files and {undecided} that were not durable compared, {replayed} records replayed, {browsed} seen in a browser; {len(failed)} disagree")
    print("\n".join(failed[:10]))
    return 1 if failed or not blocks or not replayed and not args.run else 0


with tempfile.TemporaryDirectory() as made:
    sys.exit(main(pathlib.Path(made)))
