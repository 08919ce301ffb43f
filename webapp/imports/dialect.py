"""Finds out which character divides the cells of a line.

Each candidate gets a score. The score is high if the lines have equally many cells, and if the cells look
like data.

The score is that of clevercsv (van den Burg and others, "Wrangling messy CSV files by detecting row and type
patterns", 2019): pattern times type. The code is our own, because the lines above a table must not count, and
because cells may be divided by runs of spaces.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from webapp.imports.shapes import shape

LINES_SCORED = 400
CELLS_SCORED = 40  # so many cells of a line are scored
QUOTED_LINES_MAX = 200
CANDIDATES = ("\t", ";", ",", "|", "whitespace")
RARE = ("^", "~", "\u00a6", "\u00a7", "\x1f")  # a candidate only if each line has it
_SEP = re.compile(r'"?sep=(.)"?;*', re.IGNORECASE)
_LINE_END = re.compile("\r*\n|\r")
_ESCAPED_QUOTE = re.compile(r'\\"[^,;\t|\s]')
KEPT = "\ufdd0"
"""Stands for a delimiter that belongs to a cell, until the cell is in quotes. No text contains it."""

_WORTH = {"number": 1.0, "time": 1.0, "clock": 1.0, "near": 0.7, "none": 0.8, "words": 0.4}
_WORTH_UNDIVIDED = -0.2
_DIVIDES = re.compile(r'[;\t|]|,\S|, ?\d|\d,|",')
"""A character that probably should divide a text into cells."""

_MAY_DIVIDE = re.compile("[,;\t|]")
_WHITESPACE_FACTOR = 0.9  # spaces score less, because texts and times have spaces, too
_NO_COMMENT = re.compile(
    r"#(?:n/?a|value|div|ref|num|name|null)\b|#{2,}[,;|\t]", re.IGNORECASE
)  # errors that Excel writes in cells
COMMENTS = ("#", "//", "%", "!", "*", "'")


@dataclass(frozen=True)
class Line:
    """A row of cells. `number` is the line in which the row begins, from 1."""

    number: int
    cells: tuple[str, ...]
    text: str

    @property
    def blank(self) -> bool:
        return not self.text.strip()


@dataclass(frozen=True)
class Dialect:
    delimiter: str
    quote: str
    comment: str
    sep_line: bool = False

    @property
    def marks(self) -> tuple[str, str]:
        return self.delimiter, self.quote


def lines_of(text: str, *, cut: bool) -> list[str]:
    """Returns the lines without their ends. With `cut`, the last line is left out, because it may be
    incomplete."""
    lines = _LINE_END.split(text)
    if lines and (cut or not lines[-1]):
        lines.pop()
    return lines


def has_escapes(lines: Sequence[str]) -> bool:
    """Returns whether the file writes a quote within quotes as \\" and does not double it."""
    return any(_ESCAPED_QUOTE.search(line) for line in lines[:LINES_SCORED])


def escapes_delimiter(lines: Sequence[str], dialect: Dialect) -> bool:
    """Returns whether a delimiter after a backslash belongs to a cell. That is so if only then all rows have
    as many cells as the rows without a backslash."""
    mark = f"\\{dialect.delimiter}"
    if len(dialect.delimiter) > 1 or dialect.quote != '"' or not any(mark in line for line in lines):
        return False
    some = lines[:LINES_SCORED]
    plain = Counter(len(row.cells) for row in divided(some, *dialect.marks) if mark not in row.text)
    width = plain.most_common(1)[0][0] if plain else 0
    odd = [line for line in some if mark in line]
    kept = [unescaped(line, dialect.delimiter) for line in odd]
    return bool(odd) and all(
        len(before.cells) != width and len(after.cells) == width
        for before, after in zip(divided(odd, *dialect.marks), divided(kept, *dialect.marks), strict=False)
    )


def unescaped(text: str, delimiter: str) -> str:
    """Returns the text with doubled quotes in place of quotes after a backslash. Cells with a delimiter after
    a backslash get quotes."""
    return in_quotes(without_backslashes(text, delimiter), delimiter)


def without_backslashes(text: str, delimiter: str) -> str:
    """Returns the text without backslashes: a quote after one is doubled, and a delimiter after one becomes
    KEPT."""
    kept = {'"': '""', "\\": "\\"} | ({delimiter: KEPT} if delimiter else {})
    return _escaped(delimiter).sub(lambda found: kept[found[1]], text)


def in_quotes(text: str, delimiter: str) -> str:
    """Returns the text with quotes around each cell that has KEPT. KEPT becomes the delimiter again."""
    if KEPT not in text:
        return text
    mark = re.escape(delimiter)
    cells = rf'(?:^|(?<={mark}))[^"\n{mark}]*{KEPT}[^"\n{mark}]*'
    quoted = re.sub(cells, lambda found: f'"{found[0]}"', text, flags=re.MULTILINE)
    return quoted.replace(KEPT, delimiter)


@lru_cache(maxsize=16)
def _escaped(delimiter: str) -> re.Pattern[str]:
    return re.compile(rf'\\([\\"{re.escape(delimiter)}])')


def divided(lines: Sequence[str], delimiter: str, quote: str, first: int = 1) -> Iterator[Line]:
    """Yields the rows. A quoted cell may have several lines. A blank line is a row without cells."""
    at = 0
    while at < len(lines):
        taken = 1
        cells = _cells(lines[at : at + 1], delimiter, quote)
        if quote and delimiter != "whitespace" and _is_open(lines[at], delimiter, quote):
            cells = _cells(lines[at : at + 1], delimiter, "")  # a quote without a closing quote is text
            for more in range(2, min(QUOTED_LINES_MAX, len(lines) - at) + 1):
                if quote in lines[at + more - 1] and not _is_open(
                    "\n".join(lines[at : at + more]), delimiter, quote
                ):
                    cells, taken = _cells(lines[at : at + more], delimiter, quote), more
                    break
        text = "\n".join(lines[at : at + taken])
        yield Line(first + at, tuple(cells) if text.strip() else (), text)
        at += taken


def lost_quote(rows: Sequence[Line], delimiter: str, quote: str) -> int | None:
    """Returns the number of the first line with a quote that is never closed, or None."""
    if not quote or len(delimiter) > 1:
        return None
    return next((row.number for row in rows if _is_open(row.text, delimiter, quote)), None)


def _is_open(text: str, delimiter: str, quote: str) -> bool:
    """Returns whether a quoted cell is still open at the end of the text. A quote within a cell, as in 5",
    opens none."""
    if quote not in text:
        return False
    cells = list(_quoted_cells(delimiter, quote).finditer(text))
    return bool(cells) and not cells[-1]["closed"] and cells[-1].end() == len(text)


@lru_cache(maxsize=64)
def _quoted_cells(delimiter: str, quote: str) -> re.Pattern[str]:
    q, d = re.escape(quote), re.escape(delimiter)
    return re.compile(rf"(?:\A|(?<=\n)|(?<={d})){q}(?:[^{q}]|{q}{q})*(?:(?P<closed>{q})|\Z)")


def _cells(lines: Sequence[str], delimiter: str, quote: str) -> list[str]:
    if delimiter == "places":
        return list(lines[:1])
    if delimiter == "whitespace":
        line = lines[0].strip()
        if not quote or quote not in line:
            return line.split()
        q = re.escape(quote)
        found = re.findall(rf"{q}([^{q}]*){q}|(\S+)", line)
        return [quoted or bare for quoted, bare in found]
    options: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    if quote and f"{delimiter} {quote}" in lines[0]:
        options["skipinitialspace"] = True  # DuckDB does so, too
    try:
        rows = list(csv.reader([line + "\n" for line in lines], delimiter=delimiter, **options))
    except csv.Error:
        return lines[0].split(delimiter)
    return [cell.rstrip("\n") if cell.endswith("\n") else cell for cell in rows[0]] if rows else []


def detected(lines: Sequence[str], delimiter: str | None = None, quote: str | None = None) -> Dialect:
    """Returns the dialect of these lines. A given delimiter or quote is kept."""
    sep = _SEP.fullmatch(lines[0].strip()) if lines else None
    body = list(lines[1:] if sep else lines)
    comment = _comment(body)
    if comment:
        body = [line for line in body if not line.lstrip().startswith(comment)]
    if delimiter is None and sep:
        delimiter = sep[1]
    scored = _scored_lines(body)
    if delimiter is None and _are_times_alone(scored):
        delimiter = "\t"
    candidates = _candidates(scored) if delimiter is None else (delimiter,)
    best, best_score = (delimiter or ",", '"' if quote is None else quote), -1.0
    for candidate in candidates:
        for mark in ('"', "'", "") if quote is None else (quote,):
            if mark == "'" and not _quoted_by_apostrophes(scored, candidate):
                continue
            if mark == "" and not any(_is_open(line, candidate, '"') for line in scored):
                continue
            score = _score(scored, candidate, mark)
            if score > best_score + 1e-9:
                best, best_score = (candidate, mark), score
    return Dialect(best[0], best[1], comment, sep is not None)


def _candidates(lines: Sequence[str]) -> tuple[str, ...]:
    rare = tuple(mark for mark in RARE if lines and all(mark in line for line in lines))
    if any(_divides_evenly(lines, mark) for mark in "\t;|"):
        return tuple(mark for mark in (*CANDIDATES, *rare) if mark != "whitespace")
    return (*CANDIDATES, *rare)


def _are_times_alone(lines: Sequence[str]) -> bool:
    """Returns whether nearly each line is one time in which a space stands between the date and the time of
    day."""
    times = sum(shape(line) == "time" and not _MAY_DIVIDE.search(line) for line in lines)
    return times >= max(1, 0.9 * (len(lines) - 1))


def _divides_evenly(lines: Sequence[str], mark: str) -> bool:
    """Returns whether all lines have the mark, and equally often. The spaces then stand within the cells."""
    return len({line.count(mark) for line in lines}) == 1 and bool(lines) and mark in lines[0]


def _scored_lines(lines: Sequence[str]) -> list[str]:
    """Returns the last lines, because lines above a table must not count as much."""
    some = [line for line in lines if line.strip()]
    return some[max(0, min(len(some) // 4, 100)) :][:LINES_SCORED] if len(some) > 20 else list(some)


def _score(lines: Sequence[str], delimiter: str, quote: str) -> float:
    rows = [line.cells for line in divided(lines, delimiter, quote) if line.cells]
    if not rows:
        return 0.0
    widths = Counter(len(row) for row in rows)
    width, _ = max(widths.items(), key=lambda each: (each[1] * min(each[0], 3), each[0]))
    even = [row for row in rows if len(row) == width]
    # The last rows may lack their last cells. The text above a table is shorter than the table.
    regular = len(even) / len(rows)
    if width == 1:
        regular *= 0.3
    cells = [cell for row in even for cell in row[:CELLS_SCORED]]
    worth = sum(_worth(cell, quote) for cell in cells) / len(cells)
    factor = _WHITESPACE_FACTOR if delimiter == "whitespace" else 1.0
    return regular * worth * factor


def _worth(cell: str, quote: str) -> float:
    kind = shape(cell[2:-1] if cell.startswith('="') and cell.endswith('"') else cell)
    if kind == "words" and (
        _DIVIDES.search(cell) or (quote and quote in (cell[0], cell[-1]) and cell[:1] != "=")
    ):
        return _WORTH_UNDIVIDED
    return _WORTH[kind]


def _quoted_by_apostrophes(lines: Sequence[str], delimiter: str) -> bool:
    mark = r"\s" if delimiter == "whitespace" else re.escape(delimiter)
    pattern = re.compile(rf"(?:^|{mark})'[^']*'(?={mark}|$)")
    return bool(lines) and sum(bool(pattern.search(line)) for line in lines) > len(lines) / 2


def _comment(lines: Sequence[str]) -> str:
    """Returns the mark with which several first lines begin, or single lines further below, and no row of
    data."""
    some = [line.strip() for line in lines if line.strip()]
    for mark in COMMENTS:
        marked = [line.startswith(mark) and not _NO_COMMENT.match(line) for line in some]
        # If each line begins with the mark, the mark is a part of the data, or of the only line of names.
        if any(marked) and not all(marked) and marked.count(True) <= len(some) / 2:
            if mark in "*'!%" and not (marked[0] and marked.count(True) > 1):
                continue
            return mark
    return ""
