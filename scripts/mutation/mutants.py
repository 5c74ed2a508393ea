# SPDX-License-Identifier: MIT
"""The mutants of scripts/mutate: those that have a name (tests/mutants), and random ones that follow from a seed."""
import collections
import glob
import hashlib
import os
import re

from mutation import source

# The files of random mutants: those on which durability depends.
FILES = """src/log/*.c src/txn/*.c src/alloc/zone.c src/alloc/release.c src/alloc/log_zone.c src/alloc/retire.c
    src/alloc/stream.c src/alloc/append.c src/alloc/reserve.c src/alloc/room.c src/alloc/node_room.c src/alloc/kept.c
    src/alloc/load.c src/alloc/reclaim_meta.c src/superblock/ring*.c src/io/flush.c src/io/dev.c src/io/append_queue.c src/io/zone_rules.c src/io/image*.c src/io/zbd*.c src/io/nvme*.c
    src/fs/data/durable*.c src/fs/data/flush*.c src/fs/data/land*.c src/fs/data/append*.c src/fs/data/close.c
    src/fs/data/tail.c src/fs/data/in_place.c src/fs/data/describe.c src/fs/core/changes.c
    src/fs/mount/replay*.c src/fs/mount/recover.c src/fs/mount/mount.c src/fs/data/drop.c
    src/fs/ops/file/truncate.c src/fs/space/room*.c src/fs/space/reclaim*.c""".split()
NO_CODE = ("_fields.c",)

# key: identifies the mutant in the results. It is a name, or the text that a random mutant changes, so it stays the
# same when other code changes.
Mutant = collections.namedtuple("Mutant", "key file function find replace breaks")


class Stale(Exception):
    """The code that the mutant changes is missing, or is there more than once."""


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8") as file:
        return file.read()


# ---- by name ----

def parse_named(text):
    """The mutants of one list. tests/mutants/log.txt describes the format."""
    named, mutant = [], None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("["):
            mutant = {"key": line.strip("[]"), "find": [], "replace": []}
            named.append(mutant)
        elif mutant and line[0] in "-+":
            mutant["find" if line[0] == "-" else "replace"].append(line[1:])
        elif mutant and ":" in line:
            field, _, value = line.partition(":")
            mutant[field] = value.strip()
        else:
            raise ValueError(f"line {number}: {line}")
    keys = [mutant["key"] for mutant in named]
    if len(set(keys)) < len(keys):
        raise ValueError(f"twice: {sorted(key for key in set(keys) if keys.count(key) > 1)}")
    return [Mutant(m["key"], m["file"], m["function"], "\n".join(m["find"]), "\n".join(m["replace"]), m["breaks"])
            for m in named]


def named(root):
    return [mutant for name in sorted(glob.glob(os.path.join(root, "tests/mutants/*.txt")))
            for mutant in parse_named(read("", name))]


def _apply_named(mutant, text):
    body = source.functions(source.mask(text)).get(mutant.function)
    if not body:
        raise Stale(f"{mutant.file} has no function {mutant.function}()")
    # Any blanks match, because the formatter may break lines elsewhere.
    pattern = re.compile(r"\s+".join(re.escape(word) for word in mutant.find.split()))
    found = list(pattern.finditer(text, *body))
    if len(found) != 1:
        raise Stale(f"{mutant.function}() in {mutant.file} has its text {len(found)} times, expected once")
    return text[:found[0].start()] + mutant.replace + text[found[0].end():]


# ---- at random ----

SAME = "\0"  # in a replacement: the original text


def _swap(pairs):
    """Replaces words and operators. An operator counts only with a blank before it, and a blank, a bracket, a comma, a
    semicolon or the end of the line behind it."""
    words = "|".join(re.escape(word) for word in pairs)
    pattern = re.compile(rf"(?<![\w.>])({words})(?!\w)")

    def find(code):
        for match in pattern.finditer(code):
            if match.group()[0].isalpha() or code[match.start() - 1] == " " and code[match.end():match.end() + 1] in " \n);,]":
                yield match.start(), match.end(), pairs[match.group()]
    return find


def _swap_jumps(code):
    """Swaps break and continue, but not in code with a switch, where most would not compile."""
    return _swap({"continue;": "break;", "break;": "continue;"})(code) if "switch (" not in code else ()


def _negated(code):
    for match in re.finditer(r"\bif (?=\()", code):
        yield match.end(), source.closing(code, match.end()), f"(!{SAME})"


# A statement that is a call. Calls that only end an object's life are left out: no test could see that they are
# missing.
_CALL = re.compile(r"(?<=[{};)e:])\s+(?:\(void\))?((?!if\b|while\b|for\b|switch\b|return\b|sizeof\b|free\b)\w+)\(")


def _dropped(code):
    for match in _CALL.finditer(code):
        end = source.closing(code, match.end() - 1)
        if code[end:end + 1] == ";" and "deinit" not in match.group(1):
            yield match.start(1), end, "(void)0"


# Each finds (start, end, replacement) in the masked body of a function.
OPERATORS = {
    "negate": _negated,
    "compare": _swap({"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}),
    "logic": _swap({"&&": "||", "||": "&&"}),
    "call": _dropped,
    "one": _swap({"+ 1": "", "- 1": ""}),
    "result": _swap({"return r;": "return 0;"}),
    "constant": _swap({"true": "false", "false": "true"}),
    "jump": _swap_jumps,
}


def _place(name, function, operator, masked, body):
    """Yields the same as _all_of(), for one operator in one function."""
    seen = collections.Counter()
    for start, end, replacement in OPERATORS[operator](masked[slice(*body)]):
        start, end = body[0] + start, body[0] + end
        line = masked[masked.rfind("\n", 0, start + 1) + 1:masked.find("\n", end)]
        text = " ".join(line.split())
        seen[text] += 1
        key = f"{name}:{function}:{operator}:{text}:{seen[text]}"
        was = " ".join(masked[start:end].split())
        breaks = f"`{was}` becomes `{replacement.replace(SAME, was)}`"
        yield Mutant(key, name, function, text, replacement, breaks), start, end


def _all_of(name, text):
    """Yields (mutant, start, end) for all random mutants that are possible in a file."""
    masked = source.mask(text)
    for function, body in source.functions(masked).items():
        for operator in OPERATORS:
            yield from _place(name, function, operator, masked, body)


def files(root):
    found = [name for pattern in FILES for name in glob.glob(os.path.join(root, pattern))]
    return sorted({os.path.relpath(name, root) for name in found if not name.endswith(NO_CODE)})


def drawn(root, count, seed):
    """Random mutants: equally many from each file, and in a file from each operator, while there are enough. The order
    follows from a hash of each key, so a change elsewhere replaces few mutants."""
    def order(key):
        return hashlib.sha256(f"{seed} {key}".encode()).digest()

    columns = []
    for name in sorted(files(root), key=order):
        by_operator = collections.defaultdict(list)
        for mutant, _, _ in _all_of(name, read(root, name)):
            by_operator[mutant.key.split(":")[2]].append(mutant)
        for mutants in by_operator.values():
            mutants.sort(key=lambda mutant: order(mutant.key))
        in_turn = sorted(by_operator, key=lambda operator: order(name + operator))
        columns.append([by_operator[operator][i] for i in range(1000) for operator in in_turn
                        if i < len(by_operator[operator])])
    rounds = range(max(map(len, columns), default=0))
    return [column[i] for i in rounds for column in columns if i < len(column)][:count]


def _apply_drawn(mutant, text):
    for other, start, end in _all_of(mutant.file, text):
        if other.key == mutant.key:
            return text[:start] + mutant.replace.replace(SAME, text[start:end]) + text[end:]
    raise Stale(f"{mutant.file} has it no more")


# ---- both ----

def is_named(mutant):
    return ":" not in mutant.key


def apply(mutant, root):
    """The text of the mutant's file with the mutant in it."""
    try:
        text = read(root, mutant.file)
    except FileNotFoundError:
        raise Stale(f"there is no {mutant.file}") from None
    return _apply_named(mutant, text) if is_named(mutant) else _apply_drawn(mutant, text)
