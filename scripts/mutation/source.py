# SPDX-License-Identifier: MIT
"""C source for scripts/mutate: which bytes are code, and where functions begin and end.

This is no parser: it relies on the style of this tree, where a brace alone in the first column begins and ends a
function.
"""
import re

_NO_CODE = re.compile(
    r"""/\*.*?\*/            # a comment
      | //[^\n]*
      | "(?:\\.|[^"\\\n])*"  # a string
      | '(?:\\.|[^'\\\n])*'
      | ^[ \t]*\#(?:\\\n|[^\n])*  # the preprocessor's
    """, re.S | re.M | re.X)
_IGNORED_CALL = re.compile(r"\b(?:assert|_Static_assert|zf_report|zf_report_corrupt)(?=\()")
_BODY = re.compile(r"^\{\n.*?^\}$", re.S | re.M)
_NAME = re.compile(r"(\w+)\(")


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def closing(text, at):
    """The index behind the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i + 1
    return len(text)


def mask(text):
    """The text with blanks in place of everything that is no code: same length, same lines. Assertions and messages do
    not count as code."""
    masked = _NO_CODE.sub(lambda match: _blank(match.group()), text)
    for match in _IGNORED_CALL.finditer(masked):
        end = closing(masked, match.end())
        masked = masked[:match.start()] + _blank(masked[match.start():end]) + masked[end:]
    return masked


def functions(masked):
    """{name: (start, end)} of the bodies in a masked text."""
    found = {}
    for match in _BODY.finditer(masked):
        head = re.split(r"^\}|;|\n[ \t]*\n", masked[:match.start()], flags=re.M)[-1]
        name = _NAME.search(head)
        if name:
            found[name.group(1)] = (match.start(), match.end())
    return found
