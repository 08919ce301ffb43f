"""Refuses files that hold a table in a form that Fogline does not read, and says what to do."""

from __future__ import annotations

import json
import re

from webapp.imports.faults import ImportFault
from webapp.imports.shapes import shape

_BEGIN_CHARACTERS, _LINES = 4_000, 20
_FRAMES = re.compile(
    r'"frames"\s*:\s*\[|"fields"\s*:\s*\[\s*\{[^{}\[\]]{0,400}"values"\s*:\s*\['
    r'|"columns"\s*:\s*\[\s*\{[^{}]{0,200}"text"|"datapoints"\s*:\s*\[\s*\['
    r'|"series"\s*:\s*\[\s*\{[^\[\]]{0,400}"columns"\s*:\s*\['
)
"""Answers of Grafana and InfluxDB. Their lists of values stand beside the list of names."""

_ROW_IN_QUOTES = re.compile(r'"((?:[^"]|"")*)"')
_NAME_AND_VALUE = re.compile(r'(?:^|\s)[A-Za-z_][\w.]{0,40}=(?:"(?:[^"\\]|\\.)*"|\S*)')
_SPACED_VALUE = re.compile(r'\s[A-Za-z_][\w.]{0,40}="[^"]*\s[^"]*"')
_RECORD_SEPARATOR, _BETWEEN_DOCUMENTS = "\x1e", " \t\r\n,\x1e"
_INSERT = re.compile(r"\s*INSERT\s+INTO\s", re.IGNORECASE)


_SENML = re.compile(r'\s*\[\s*\{[^{}]*"(?:bn|bt)"\s*:[^{}]*\}')
"""The first record of a pack of SenML. It has the base of the names and times of all records."""


def refuse_document(text: str) -> None:
    """Raises ImportFault if the text is an answer of Grafana or InfluxDB, SenML, or several documents one
    after the other."""
    _refuse_several(text)
    if _SENML.match(text[:_BEGIN_CHARACTERS]):
        raise ImportFault(
            "The document is SenML. Names and times of its records count from a base name and a base time "
            "(bn, bt).",
            "line 1",
            "Resolve the records (RFC 8428, 4.6), so that each has its whole name and time, and upload them.",
        )
    if _FRAMES.search(text[:_BEGIN_CHARACTERS]):
        raise ImportFault(
            "The document is an answer of Grafana or InfluxDB, whose values stand apart from their names.",
            "line 1",
            "In Grafana, open the panel's menu, choose Inspect, Data, Download CSV, and upload that file. "
            "From InfluxDB, ask for CSV.",
        )


def _refuse_several(text: str) -> None:
    """Raises ImportFault if JSON documents of several lines stand one after the other."""
    begin = text.lstrip()
    try:
        end = json.JSONDecoder().raw_decode(begin)[1]
    except (ValueError, RecursionError):
        return
    rest = begin[end:].lstrip(_BETWEEN_DOCUMENTS)
    first, between = begin[:end], begin[end : len(begin) - len(rest)]
    is_of_lines = first.startswith("{") and "\n" not in first and "\n" in between
    is_another = rest.startswith(("{", "[")) and not is_of_lines
    if is_another or text.startswith(_RECORD_SEPARATOR):
        line = text[: len(text) - len(rest)].count("\n") + 1
        raise ImportFault(
            "The file holds several JSON documents one after the other, and not one in each line.",
            f"line {line:,}",
            "Write each record into a line of its own, and upload that file. For objects, `jq -c . FILE` "
            "does so, and for arrays of objects `jq -c '.[]' FILE`.",
        )


def refuse_lines(text: str) -> None:
    """Raises ImportFault if the lines are rows within quotes, SQL statements, or names with texts."""
    some = [line.strip() for line in text[: _BEGIN_CHARACTERS * 4].splitlines()[: _LINES + 1] if line.strip()]
    some = some[:-1] if len(some) > _LINES else some
    if len(some) < 2:
        return
    inner = [found[1] for line in some if (found := _ROW_IN_QUOTES.fullmatch(line))]
    if len(inner) == len(some) and any(_are_rows(inner, mark) for mark in ",;\t"):
        raise ImportFault(
            "Each whole row is in quotes, so it is one text.",
            "line 1",
            "Write the file without these quotes. In Excel, choose the column, then Data, Text to Columns, "
            "and save it as CSV.",
        )
    if all(map(_INSERT.match, some)):
        raise ImportFault(
            "The lines are statements of SQL.", "line 1", "Export the table as CSV, with its column names."
        )
    named = [line for line in some if len(_NAME_AND_VALUE.findall(line)) >= 2 and _SPACED_VALUE.search(line)]
    if len(named) * 2 > len(some):
        raise ImportFault(
            'The lines hold names with their values, such as level=info msg="pump started". Spaces stand '
            "between them, and within texts as well.",
            "line 1",
            "Let the program write JSON lines, or CSV.",
        )


def _are_rows(lines: list[str], mark: str) -> bool:
    """Returns whether the lines have equally many cells, and mostly numbers or times in them."""
    cells = [line.split(mark) for line in lines]
    typed = sum(any(shape(cell) in ("number", "time", "clock") for cell in row) for row in cells[1:])
    return len(cells[0]) > 1 and typed * 2 > len(cells) - 1 and all(len(row) > 1 for row in cells)
