# SPDX-License-Identifier: MIT
"""Reads the text format of Prometheus, version 0.0.4, and reports everything in a text that the format forbids."""

import json
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def read_labels(text):
    labels, at = {}, 0
    while at < len(text):
        found = LABEL.match(text, at)
        assert found, f"no label at {text[at:]}"
        assert found[1] not in labels, f"label {found[1]} twice: {text}"
        labels[found[1]] = re.sub(r"\\.", lambda m: ESCAPES[m[0]], found[2])
        at = found.end()
    return labels


class Exposition:
    """`types` and `helps` by family; `samples`: {(name, ((label, value), ...)): number}, labels sorted."""

    def __init__(self, text):
        self.types, self.helps, self.samples = {}, {}, {}
        assert not text or text.endswith("\n"), "the last line does not end"
        family = None
        for line in text.splitlines():
            if line.startswith("# HELP "):
                _, _, family, text = line.split(" ", 3)
                assert family not in self.helps, f"{family} begins twice"
                self.helps[family] = text
            elif line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                assert name == family and name not in self.types, line
                assert kind in ("counter", "gauge", "histogram"), line
                self.types[name] = kind
            else:
                self.add(family, line)
        assert self.types.keys() == self.helps.keys()
        self.check_counters()
        self.check_histograms()

    def add(self, family, line):
        found = SAMPLE.fullmatch(line)
        assert found, f"no sample: {line}"
        name, labels = found[1], read_labels(found[2] or "")
        assert self.family_of(name) == family, f"{line} is among those of {family}"
        series = (name, tuple(sorted(labels.items())))
        assert series not in self.samples, f"twice: {line}"
        self.samples[series] = float(found[3])

    def family_of(self, name):
        base = re.sub("_(bucket|sum|count)$", "", name)
        return base if self.types.get(base) == "histogram" else name

    def check_counters(self):
        for name, kind in self.types.items():
            assert (kind == "counter") == name.endswith("_total"), f"{name} is a {kind}"
        for series, value in self.samples.items():
            assert value >= 0, series

    def check_histograms(self):
        histograms = {}
        for (name, labels), value in self.samples.items():
            if name.endswith("_bucket") and self.types[self.family_of(name)] == "histogram":
                rest = tuple(label for label in labels if label[0] != "le")
                histograms.setdefault((self.family_of(name), rest), []).append((float(dict(labels)["le"]), value))
        for (name, labels), buckets in histograms.items():
            assert buckets == sorted(buckets) and len({le for le, _ in buckets}) == len(buckets), (name, labels)
            assert [n for _, n in buckets] == sorted(n for _, n in buckets), f"{name}{labels} is not cumulative"
            assert buckets[-1][0] == float("inf"), (name, labels)
            assert buckets[-1][1] == self.samples[name + "_count", labels], (name, labels)
            assert (name + "_sum", labels) in self.samples, (name, labels)

    def get(self, name, **labels):
        """The only sample that has these labels; it may have others, too."""
        found = [value for (n, has), value in self.samples.items() if n == name and labels.items() <= dict(has).items()]
        assert len(found) == 1, f"{name} {labels}: {found}"
        return found[0]

    def names(self):
        return {name for name, _ in self.samples}

    def fallen(self, before):
        """The counters that have decreased or disappeared since `before`."""
        counts = {s: v for s, v in before.samples.items() if before.types[before.family_of(s[0])] != "gauge"}
        return [s for s, value in counts.items() if self.samples.get(s, -1) < value]


def names_in(path):
    """The metrics of zfuse that the expressions of a rule file or of a dashboard name."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if path.endswith(".json"):
        dashboard = json.loads(text)
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        expressions += [v["query"]["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"]
    else:
        expressions = re.findall(r"(?m)^ +expr: (.*)$", text)
    names = {name for expression in expressions for name in re.findall(r"\bzfuse_\w+", expression)}
    assert expressions and names, f"{path} names nothing"
    return names
