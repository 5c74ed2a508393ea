# SPDX-License-Identifier: MIT
"""From samples to medians, and from medians to tables.

A speed is operations per second, MiB per second, or the seconds that an operation took; the unit tells whether more is
better. A ratio is always the speed of zfuse as a multiple of a peer's: above 1, zfuse is faster. A ratio is the median
of the ratios of the rounds, because zfuse and the peer ran close to each other only within a round.
"""
import statistics
import textwrap

from bench.jobs import DISK_SUITES, OPERATIONS
from bench.operation import RATE, SECONDS

LINE_MAX = 120
SPEED = ("Per second, where no unit is named. In brackets: zfuse's speed as a multiple of the peer's, the median of "
         "the rounds' ratios; above 1, zfuse is faster.")
LATENCY = {False: "Mean / 99th percentile.", True: "Mean / 99th / 99.9th percentile."}
PER = "per operation, for 1 MiB jobs per MiB, for the tree in all"


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def speed(operation, sample):
    return sample["seconds"] if operation.unit == SECONDS else sample["count"] / sample["seconds"]


def per_count(sample, *keys):
    """A cost of a sample, per operation or MiB; None where it was not counted."""
    value = sample["costs"]
    for key in keys:
        value = value.get(key) if value else None
    return value / sample["count"] if value is not None else None


def round_of(sample):
    """The round of a sample, or the pair within it. Samples with the same value ran close to each other."""
    return f"{sample['round']}.{sample['pair']}" if "pair" in sample else sample["round"]


def latency(sample, which):
    found = sample["costs"].get("latency_us") if sample["costs"] else None
    return found.get(which) if found else None


def cell_of(operation, samples):
    """The medians and other numbers of the samples of one operation on one peer."""
    return {
        "speed": median(speed(operation, s) for s in samples),
        "by_round": {round_of(s): speed(operation, s) for s in samples},
        "lowest": min(speed(operation, s) for s in samples),
        "highest": max(speed(operation, s) for s in samples),
        "samples": len(samples),
        "device_writes": median(per_count(s, "device", "writes") for s in samples),
        "device_write_bytes": median(per_count(s, "device", "write_bytes") for s in samples),
        "device_flushes": median(per_count(s, "device", "flushes") for s in samples),
        "device_reads": median(per_count(s, "device", "reads") for s in samples),
        "device_read_bytes": median(per_count(s, "device", "read_bytes") for s in samples),
        "machine_cpu_s": median(per_count(s, "machine_cpu_s") for s in samples),
        "daemon_cpu_s": median(per_count(s, "daemon_cpu_s") for s in samples),
        "daemon_peak_bytes": median((s["costs"] or {}).get("daemon_peak_bytes") for s in samples),
        "latency_mean_us": median(latency(s, "mean") for s in samples),
        "latency_p99_us": median(latency(s, "p99") for s in samples),
        "latency_p999_us": median(latency(s, "p999") for s in samples),
        "p999_us_by_round": {round_of(s): latency(s, "p999") for s in samples},
    }


def summarize(run):
    """{operation: {peer: cell}}, in the order of OPERATIONS and of the run's peers. An operation that a peer did not do
    has no cell."""
    summary = {}
    for name, operation in OPERATIONS.items():
        for peer in run["peers"]:
            samples = [s for s in run["samples"] if s["operation"] == name and s["peer"] == peer]
            if samples:
                summary.setdefault(name, {})[peer] = cell_of(operation, samples)
    return summary


def ratio(name, cells, peer):
    """zfuse's speed over the peer's, or None."""
    if "zfuse" not in cells or peer not in cells:
        return None
    ours, theirs = cells["zfuse"]["by_round"], cells[peer]["by_round"]
    is_time = OPERATIONS[name].unit == SECONDS
    return median(theirs[n] / ours[n] if is_time else ours[n] / theirs[n] for n in ours if n in theirs)


def against(name, other, summary, peer, us="zfuse"):
    """The speed of zfuse at the operation `name` over the speed of a peer (or of zfuse itself) at the operation
    `other`. Both operations have the same unit."""
    ours = summary.get(name, {}).get(us, {}).get("by_round", {})
    theirs = summary.get(other, {}).get(peer, {}).get("by_round", {})
    is_time = OPERATIONS[name].unit == SECONDS
    return median(theirs[n] / ours[n] if is_time else ours[n] / theirs[n] for n in ours if n in theirs)


def cheaper(name, summary, peer, cost):
    """The cost of a peer as a multiple of the cost of zfuse."""
    ours, theirs = (summary.get(name, {}).get(p, {}).get(cost) for p in ("zfuse", peer))
    return theirs / ours if ours and theirs is not None else None


def within(name, other, summary, more_us):
    """For zfuse: (99.9th percentile of the operation `other` + more_us) / (99.9th percentile of `name`)."""
    ours, others = (summary.get(o, {}).get("zfuse", {}).get("p999_us_by_round", {}) for o in (name, other))
    return median((others[n] + more_us) / ours[n] for n in ours if ours[n] and others.get(n) is not None)


def operations_of(run):
    return {s["operation"] for s in run["samples"]}


def merge(runs):
    """Merges runs with the same medium, transport, options and sizes, if idle processors polled in all of them or in
    none. The rounds of runs with common operations are added up."""
    merged = {}
    for run in runs:
        key = (run["medium"], run["transport"], run["options"], run["quick"], polls(run))
        if key not in merged:
            merged[key] = {**run, "samples": list(run["samples"]), "peers": list(run["peers"]),
                           "failures": list(run["failures"]), "notes": list(run["notes"])}
            continue
        into = merged[key]
        before = into["rounds"] if operations_of(into) & operations_of(run) else 0
        into["samples"] += [{**s, "round": s["round"] + before} for s in run["samples"]]
        into["rounds"] = max(into["rounds"], before + run["rounds"])
        into["peers"] += [p for p in run["peers"] if p not in into["peers"]]
        into["failures"] += run["failures"]
        into["notes"] += [n for n in run["notes"] if n not in into["notes"]]
        into["left_out"] = {p: why for p, why in {**into["left_out"], **run["left_out"]}.items()
                            if p not in into["peers"]}
    return list(merged.values())


# ---- numbers as text ----

def short(value):
    """The value with about three digits: more digits would be noise."""
    if value is None:
        return "–"
    if value >= 9999500:
        return f"{short(value / 1000000)}M"
    if value >= 9999.5:
        return f"{short(value / 1000)}k"
    if value >= 99.95:
        return f"{value:,.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.0995 or value == 0 else f"{value:.3f}"


def short_speed(operation, value):
    """A speed as text. Times below 9.5 ms get six digits, because times range from microseconds to minutes."""
    return f"{value:.6f}" if operation.unit == SECONDS and value < 0.0095 else short(value)


def short_ratio(value):
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"


def short_seconds(whole, part):
    """A time, and in parentheses a part of it if that is known, both in the unit that suits the whole."""
    if whole is None:
        return "–"
    factor, unit = next(((f, u) for f, u in ((1, "s"), (1e3, "ms")) if whole * f >= 1), (1e6, "µs"))
    return f"{short(whole * factor)} ({short(part * factor)}) {unit}" if part is not None \
        else f"{short(whole * factor)} {unit}"


def table(head, rows):
    """A table in Markdown with aligned source: the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    def line(row):
        return "| " + " | ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))]) + " |"
    rule = "|" + "|".join(["-" * (widths[0] + 2), *("-" * (w + 1) + ":" for w in widths[1:])]) + "|"
    return "\n".join([line(head), rule, *map(line, rows)])


def label(name):
    """The operation with its unit. Operations per second get none, to keep lines short."""
    unit = OPERATIONS[name].unit
    return name if unit == RATE else f"{name}, {unit}"


# ---- tables ----

def peers_in(run, summary):
    return [p for p in run["peers"] if any(p in cells for cells in summary.values())]


def speed_table(run, summary):
    rows, peers = [], peers_in(run, summary)
    for name, cells in summary.items():
        row = [label(name)]
        for peer in peers:
            text = short_speed(OPERATIONS[name], cells[peer]["speed"]) if peer in cells else "–"
            times = ratio(name, cells, peer)
            row.append(text if peer == "zfuse" or times is None else f"{text} ({short_ratio(times)})")
        rows.append(row)
    return table(["", *peers], rows)


def has(summary, peer, key):
    return any(cells.get(peer, {}).get(key) is not None for cells in summary.values())


def device_table(run, summary):
    """Writes, KiB written and flushes, of the peers whose device has counters. Operations that write nothing are left
    out."""
    peers = [p for p in run["peers"] if has(summary, p, "device_writes")]
    rows = []
    for name, cells in summary.items():
        if not any(cells.get(p, {}).get("device_write_bytes") for p in peers):
            continue
        row = [name]
        for peer in peers:
            cell = cells.get(peer, {})
            kib = cell.get("device_write_bytes")
            row.append(" / ".join([short(cell.get("device_writes")), short(kib / 1024 if kib is not None else None),
                                   short(cell.get("device_flushes"))]))
        rows.append(row)
    return table(["", *peers], rows) if rows else None


def cost_table(run, summary, cost):
    """A table of `cost(operation, cell)`. Operations for which it is None at all peers are left out."""
    rows = []
    peers = peers_in(run, summary)
    for name, cells in summary.items():
        found = [cost(OPERATIONS[name], cells[p]) if p in cells else None for p in peers]
        if any(value is not None for value in found):
            rows.append([name, *map(short, found)])
    return table(["", *peers], rows) if rows else None


def kib_written(_operation, cell):
    return cell["device_write_bytes"] / 1024 if cell["device_write_bytes"] is not None else None


def amplification(operation, cell):
    if operation.written is None or cell["device_write_bytes"] is None:
        return None
    return cell["device_write_bytes"] / operation.written


def latency_text(name, cell):
    which = ["mean", "p99"] + (["p999"] if OPERATIONS[name].needs_scrub else [])
    return " / ".join(short(cell.get(f"latency_{w}_us")) for w in which)


def latency_table(run, summary):
    """Mean and percentiles of the operations that measure latencies."""
    peers = [p for p in run["peers"] if has(summary, p, "latency_mean_us")]
    rows = []
    for name, cells in summary.items():
        if any(cell["latency_mean_us"] is not None for cell in cells.values()):
            rows.append([name, *(latency_text(name, cells.get(peer, {})) for peer in peers)])
    return table(["µs", *peers], rows) if rows else None


def cpu_table(run, summary):
    """Processor time: of the whole machine, and in parentheses of the daemon."""
    rows, peers = [], peers_in(run, summary)
    for name, cells in summary.items():
        if all(cell["machine_cpu_s"] is None for cell in cells.values()):
            continue
        found = (cells.get(peer, {}) for peer in peers)
        rows.append([name, *(short_seconds(c.get("machine_cpu_s"), c.get("daemon_cpu_s")) for c in found)])
    return table(["", *peers], rows) if rows else None


def memory_table(run, summary):
    """The peak of a daemon's resident memory, by suite: the largest of the medians of its operations."""
    peers = [p for p in run["peers"] if has(summary, p, "daemon_peak_bytes")]
    peaks = {}
    for name, cells in summary.items():
        for peer in peers:
            value = cells.get(peer, {}).get("daemon_peak_bytes")
            if value is not None:
                suite = peaks.setdefault(OPERATIONS[name].suite, {})
                suite[peer] = max(value, suite.get(peer, 0))
    rows = [[suite, *(short(by[p] / (1 << 20)) if p in by else "–" for p in peers)] for suite, by in peaks.items()]
    return table(["suite, MiB", *peers], rows) if rows else None


# ---- reports ----

def title(run):
    where = {"tmpfs": "images on tmpfs", "disk": f"images on disk ({run['filesystem']})",
             "vm": "a zoned NVMe drive of a virtual machine"}[run["medium"]]
    over = "FUSE over io_uring" if run["transport"] == "io_uring" else "/dev/fuse"
    options = f", zfuse with {run['options']}" if run["options"] else ""
    return f"{where}, {over}{options}"


def polls(run):
    return run.get("polling", False)  # the oldest reports do not have this


def circumstances(run):
    """The conditions of a run, in lines."""
    m = run["machine"]
    rounds = f"{run['rounds']} round{'s' if run['rounds'] != 1 else ''}"
    lines = [f"Medians of {rounds}{' of a quick run, which says little' if run['quick'] else ''}; {m['date']}; "
             f"Linux {m['kernel']}, {m['processors']} processors, {m['memory_bytes'] / (1 << 30):.0f} GiB of memory"
             + (f"; load {m['load']:.1f} when it began" if "load" in m else "")
             + f"; idle processors {'poll' if polls(run) else 'halt'}."]
    lines += [f"Left out: {peer}: {why}." for peer, why in run["left_out"].items()]
    lines += [f"Note: {note}." for note in run["notes"]]
    lines += [f"Failed: {f['peer']}, {f['suite']}, round {f['round'] + 1}: {' '.join(f['error'].split())[:60]}."
              for f in run["failures"]]
    return lines


def sections(run):
    """[(heading, explanation, table)]. The suites that are only measured on disk come after the others."""
    summary = summarize(run)
    if run["medium"] == "vm":
        return sections_on_drive(run, summary)
    kinds = {None: {}, "Durable writes": {}, "Beside a scrub": {}}
    for name, cells in summary.items():
        operation = OPERATIONS[name]
        of_disk = "Durable writes" if operation.suite in DISK_SUITES else None
        kinds["Beside a scrub" if operation.needs_scrub else of_disk][name] = cells
    return [(f"{kind}: {heading[0].lower()}{heading[1:]}" if kind else heading, text, made)
            for kind, of_kind in kinds.items() if of_kind
            for heading, text, made in general_sections(run, of_kind)]


def sections_on_drive(run, summary):
    """The sections of a run on the zoned drive, without processor time and memory, which mean nothing in an emulated
    machine."""
    changed = {name: cells for name, cells in summary.items() if any(c["device_writes"] for c in cells.values())}
    found = [
        ("Speed", SPEED, speed_table(run, summary)),
        ("Write commands", "As the drives count them; per operation, or per MiB.",
         cost_table(run, changed, lambda _, cell: cell["device_writes"])),
        ("KiB written", "To all drives; per operation, or per MiB.", cost_table(run, changed, kib_written)),
        ("Flushes", "A FUA write counts as one too; per operation, or per MiB.",
         cost_table(run, changed, lambda _, cell: cell["device_flushes"])),
        ("Write amplification", "Bytes that reached the drives for each byte that a user wrote.",
         cost_table(run, changed, amplification)),
        ("Latency", "99th percentile, in µs.", cost_table(run, summary, lambda _, cell: cell["latency_p99_us"])),
    ]
    return [(heading, text, made) for heading, text, made in found if made]


def general_sections(run, summary):
    found = [
        ("Speed", SPEED, speed_table(run, summary)),
        ("What reached the device", f"Writes / KiB written / flushes (a FUA write counts as one too), {PER}.",
         device_table(run, summary)),
        ("Latency", LATENCY[any(OPERATIONS[name].needs_scrub for name in summary)],
         latency_table(run, summary)),
        ("Time of the processors", f"Of the whole machine; in brackets, the daemon's part of it; {PER}.",
         cpu_table(run, summary)),
        ("Memory", "The most that the daemon had resident.", memory_table(run, summary)),
    ]
    return [(heading, text, made) for heading, text, made in found if made]


def wrap(line):
    return textwrap.fill(line, LINE_MAX, subsequent_indent="  " if line.startswith("- ") else "")


def markdown(runs, level=2):
    parts = []
    for run in runs:
        heading = title(run)
        parts.append(f"{'#' * level} {heading[0].upper()}{heading[1:]}")
        parts.append("\n".join(wrap(f"- {line}") for line in circumstances(run)))
        for name, explanation, made in sections(run):
            parts.append(wrap(f"**{name}.** {explanation}"))
            parts.append(made)
    return "\n\n".join(parts) + "\n"


def text(runs):
    parts = []
    for run in runs:
        parts.append("\n".join(wrap(line) for line in [title(run), *circumstances(run)]))
        for name, explanation, made in sections(run):
            parts.append(f"{wrap(f'{name}. {explanation}')}\n\n{made}")
    return "\n\n".join(parts) + "\n"


def as_json(runs):
    """The samples with their medians, as an object for JSON."""
    return {"version": 2, "runs": [{**run, "medians": {
        name: {"unit": OPERATIONS[name].unit, "per": OPERATIONS[name].per,
               "peers": {peer: {**cell, "zfuse_ratio": ratio(name, cells, peer)} for peer, cell in cells.items()}}
        for name, cells in summarize(run).items()}} for run in runs]}


def replace_block(document, name, content):
    """Puts content between the comments `<!-- NAME -->` and `<!-- end of NAME -->` of a document."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    if document.count(begin) != 1 or document.count(end) != 1:
        raise ValueError(f"expected {begin} and {end} once each")
    head, rest = document.split(begin)
    _, tail = rest.split(end)
    return f"{head}{begin}\n\n{content.strip()}\n\n{end}{tail}"
