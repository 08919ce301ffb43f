"""Refuses words and openings of sentences that make a reader stop, and lines of docs that are too long.

    python -m tests.words        `make check` runs it too

Prints file, line and what to write instead. Exit code 1 when it printed something.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUFFIXES = {".py", ".ts", ".tsx", ".css", ".html", ".md"}
LEFT_OUT = {".git", ".venv", ".fogline", "build", "node_modules", "dist", "__pycache__"}
DOCS_LINE_MAX = 120

# They name what is refused.
NAMES_THEM = ("tests/words.py", "tests/unit/test_words.py")

_OPENING = re.compile(r'(?:^\s*[rR]?"""|(?:^|\s)(?:#|//|/\*\*?|<!--)\s|^\s*\*\s)\s*Of\s')
_ANEW = re.compile(r"\banew\b", re.IGNORECASE)
_LIKEWISE = re.compile(r"\bLikewise\b")
_SHALL = re.compile(r"\bshall\b", re.IGNORECASE)
_EACH = re.compile(
    r"(?<!\b(?:of|in) )(?<!\bfor )(?<!\bwithin )\beach \d[\d,.]* (?:ms|s|min|minutes|seconds|h)\b"
)
_NONE = re.compile(r"(?<![\w`])None: ")
_LINK_TARGET = re.compile(r"\]\([^)]*\)|https?://\S+")


def faults(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yields the number of each line with a fault, and what to do about it. Lines are counted from 1."""
    prose = _prose_of_python(text) if path.suffix == ".py" else dict(enumerate(text.splitlines(), 1))
    for number, line in enumerate(text.splitlines(), 1):
        if _OPENING.search(line):
            yield number, 'begins with "Of": begin with the subject'
        if _ANEW.search(line):
            yield number, '"anew": write "again", "from the start" or "fresh"'
        if _LIKEWISE.search(line):
            yield number, '"Likewise": say it in full'
        if _SHALL.search(line):
            yield number, '"shall": write "is to", "must", "may" or "should"'
        if _EACH.search(line):
            yield number, '"each 5 s": write "every 5 s"'
        if _NONE.search(prose.get(number, "")):
            yield number, '"None: ...": write "Returns None if ..." or "`x` is None when ..."'
    if path.suffix == ".md":
        yield from _long_lines(text)


def _prose_of_python(text: str) -> dict[int, str]:
    """Returns line number -> the comments and texts on it, so that `case None: ` is no sentence."""
    prose: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            for number, line in enumerate(token.string.splitlines(), token.start[0]):
                prose[number] = f"{prose.get(number, '')} {line}"
    return prose


def _long_lines(text: str) -> Iterator[tuple[int, str]]:
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        shown = _LINK_TARGET.sub("", line)
        if not in_code and not line.lstrip().startswith("|") and len(shown) > DOCS_LINE_MAX:
            yield (
                number,
                f"{len(shown)} characters: one sentence per line, at most {DOCS_LINE_MAX} characters",
            )


def _files() -> Iterator[Path]:
    for folder in sorted(ROOT.iterdir()):
        if folder.name not in LEFT_OUT:
            inside = [folder] if folder.is_file() else sorted(folder.rglob("*"))
            yield from (
                path
                for path in inside
                if path.suffix in SUFFIXES and path.is_file() and not LEFT_OUT & {*path.parts}
            )


def main() -> int:
    found = 0
    for path in _files():
        name = path.relative_to(ROOT).as_posix()
        if name in NAMES_THEM:
            continue
        for number, fault in faults(path, path.read_text()):
            print(f"{name}:{number}: {fault}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
