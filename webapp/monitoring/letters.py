"""The dead letters of an element: grouped by reason for the eye, and all of them as a file."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal

from pipeline_runtime.kafka.peek import PeekedRecord, each_newest
from pipeline_runtime.model.ids import dead_letter_topic
from webapp.moments import iso_of_ms
from webapp.monitoring.schemas import DeadLetters, LetterGroup
from webapp.monitoring.streams import asked_of_kafka, deployed_element, fields_of, record_json

LOOKED_MAX = 1000
"""How many letters are grouped. One may have 100,000 characters."""
GROUPS_MAX = 50
REASON_MAX = 500
"""Characters of a reason by which letters are grouped."""
FILE_OFFSETS_MAX = 100_000
"""How many offsets of the topic one file holds, at most."""
_QUOTED = re.compile(
    r'(?P<column>columns? )?"[^"]*"'  # a text, or the name of a column
    r"|(?<=begins with ).*"
    r"|(?<!\w)[-+]?\d(?:[\w.:+-]*\w)?"  # a number or a time
)
"""What a reason quotes of its row."""
_FILE_S = 300.0
_COLUMNS = ("at", "reason", "input", "raw", "partition", "offset")
Format = Literal["csv", "json-lines"]


def grouped(records: Sequence[PeekedRecord], limit: int, text: str = "", reason: str = "") -> DeadLetters:
    """Returns the letters of each reason, the most frequent reason first, and the newest `limit` letters,
    oldest first. With `text` only those in which it stands; with `reason` the letters are those of that group
    alone. `records`: oldest first. Pure."""
    found = [each for each in records if text.casefold() in each.value.casefold()]
    groups: dict[str, LetterGroup] = {}
    for each in found:
        so_far = groups.get(name := reason_of(each))
        count = so_far["count"] + 1 if so_far else 1
        groups[name] = {"reason": name, "count": count, "newest": record_json(each)}
    by_count = sorted(groups.values(), key=lambda group: -group["count"])
    shown = [each for each in found if not reason or reason_of(each) == reason][-limit:]
    return {
        "records": [record_json(each) for each in shown],
        "groups": by_count[:GROUPS_MAX],
        "groups_left_out": max(0, len(by_count) - GROUPS_MAX),
        "looked": len(records),
        "more": len(records) >= LOOKED_MAX,
    }


def reason_of(record: PeekedRecord) -> str:
    """Returns why the row became a letter, as its group is called: without what is quoted of the row, so that
    rows with the same fault are one group. Names of columns stay."""
    told = str(fields_of(record).get("reason") or "No reason given")[:REASON_MAX]
    return _QUOTED.sub(_left_out, told)[:REASON_MAX]


def _left_out(found: re.Match[str]) -> str:
    if found["column"]:
        return found[0]
    return '"…"' if found[0].startswith('"') else "…"


def letters_file(name: str, element: str, format: Format) -> Iterator[bytes]:
    """Yields the letters of an element as a file, oldest first. Raises BackendAway before the first part."""
    deployment, found = deployed_element(name, element)
    topic = dead_letter_topic(deployment.pk, found["id"])

    def begun(kafka: Any) -> Iterator[PeekedRecord]:
        records = each_newest(kafka, topic, FILE_OFFSETS_MAX, _FILE_S)
        first = next(records, None)
        return chain(() if first is None else (first,), records)

    return file_parts(asked_of_kafka(begun), format)


def file_parts(records: Iterable[PeekedRecord], format: Format) -> Iterator[bytes]:
    """Yields the lines of a file of letters. Pure."""
    line: Callable[[Sequence[Any]], str] = _csv_line if format == "csv" else _json_line
    if format == "csv":
        yield _csv_line(_COLUMNS).encode()
    for each in records:
        fields = fields_of(each)
        at = iso_of_ms(each.timestamp_ms)
        raw = fields.get("raw", each.value)
        values = (at, fields.get("reason"), fields.get("input"), raw, each.partition, each.offset)
        yield line(values).encode()


def _json_line(values: Sequence[Any]) -> str:
    return json.dumps(dict(zip(_COLUMNS, values, strict=True)), ensure_ascii=False) + "\n"


def _csv_line(values: Sequence[Any]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(values)
    return text.getvalue()
