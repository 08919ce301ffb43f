"""tests/words.py finds each opening that it names, and leaves code alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import words


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.py", '"""Of each input its rows."""', 1),
        ("a.py", "x = 1\n# Of the newest one.", 2),
        ("a.py", "x = 1  # Of the newest one.", 1),
        ("a.py", 'def f():\n    r"""Of a pattern."""', 2),
        ("a.ts", "/** Of a pipeline. */", 1),
        ("a.tsx", "/*\n * Of a pipeline.\n */", 2),
        ("a.css", "a { } /* Of a link. */", 1),
        ("a.html", "<!-- Of a page. -->", 1),
        ("a.py", 'log("it begins anew")', 1),
        ("a.md", "Then it starts Anew.", 1),
        ("a.py", "# It stops. Likewise the other.", 1),
        ("a.md", "What the node shall run.", 1),
        ("a.ts", "// it looks each 2 s", 1),
        ("a.py", '"""The newest. None: there is none."""', 1),
        ("a.py", "x: int | None  # None: not known", 1),
        ("a.md", "word " * 25, 1),
        ("a.md", "- [text](" + "x" * 20 + ") " + "word " * 25, 1),
    ],
)
def test_each_is_found_in_its_line(name: str, text: str, line: int) -> None:
    assert [number for number, _ in words.faults(Path(name), text)] == [line]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "match x:\n    case None: pass\ndef f() -> None: ..."),
        ("a.py", '"""One of each. `x` is None when nothing is known."""'),
        ("a.py", 'text = "Of course"'),
        ("a.ts", "const share = 1 // one of two"),
        ("a.md", "The average of each 10 s, and of all rows within each 24 h."),
        ("a.md", "Of 200 handovers none failed."),
        ("a.md", "| " + "cell | " * 40),
        ("a.md", "```\n" + "code " * 40 + "\n```"),
        ("a.md", "see [this](" + "x" * 200 + ")"),
    ],
)
def test_code_tables_and_links_are_left_alone(name: str, text: str) -> None:
    assert [*words.faults(Path(name), text)] == []
