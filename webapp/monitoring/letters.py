"""The dead letters of an element: grouped by reason for the eye, and all of them as a file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

from pipeline_runtime.batch.replayed import cells_of
from pipeline_runtime.kafka.letters import each_open_letter, letters_behind, open_letters, records_at
from pipeline_runtime.kafka.peek import PeekedRecord
from pipeline_runtime.model.dead_letters import (
    REASON_MAX,
    Place,
    WayIn,
    WaysIn,
    offsets_in,
    place_of,
    reason_of,
)
from pipeline_runtime.model.ids import dead_letter_topic
from pipeline_runtime.model.plain_data import exact
from webapp.backends.kafka import asked_of_kafka
from webapp.handovers.letters import KEPT, order_json, order_of, orders_of, topics_read, ways_of
from webapp.json_types import Allowed
from webapp.moments import iso_of_ms
from webapp.monitoring.schemas import (
    DeadLetters,
    GroupedLetters,
    LetterGroup,
    LetterOrderProgress,
    LetterRow,
    LetterRows,
)
from webapp.monitoring.streams import (
    deployed_element,
    fields_of,
    read_of,
    record_json,
)
from webapp.problems import Conflict

LOOKED_MAX = 1000
"""How many letters are grouped. One may have 100,000 characters."""
GROUPS_MAX = 50
MENDED_MAX = 500
"""How many rows are mended in one go."""
RAW_MAX = 10_000
"""Characters of a row as its letter quotes it."""
AGAIN_OFFSETS_MAX = 30_000
"""How many offsets of the topic are searched for letters of rows that came back."""
FILE_OFFSETS_MAX = 100_000
"""How many offsets of the topic one file holds, at most."""
_FILE_S = 300.0
_COLUMNS = ("at", "reason", "raw", "time", "key", "topic", "partition", "offset", "input", "letter")
"""The columns of a file. `at` is when the letter was written, and `letter` its offset; the rest is about its
row."""
Format = Literal["csv", "json-lines"]


def letters_of(name: str, element: str, limit: int, text: str = "", reason: str = "") -> DeadLetters:
    """Returns the newest open letters of an element, whether they can be replayed, and what was done about
    others."""
    deployment, found = deployed_element(name, element)
    topic = dead_letter_topic(deployment.pk, found["id"])
    records = asked_of_kafka(lambda kafka: open_letters(kafka, topic, LOOKED_MAX))
    ways = ways_of(deployment, found["id"])
    title = deployment.name_of(found["id"])
    return {
        **grouped(records, limit, text, reason),
        "topics": topics_read(deployment, found["id"]),
        "replay": _allowed(ways, title),
        "orders": orders_of(deployment, found["id"]),
    }


def _allowed(ways: WaysIn | str, title: str) -> Allowed:
    if isinstance(ways, str):
        return {"allowed": False, "reason": ways, "note": None}
    to_it_alone = all(way.consumer is not None for way in ways.each)
    taker = title if to_it_alone else f"each element behind {title}"
    note = (
        f"The rows keep their event times, and come after those that wait for {taker}. What goes by time, "
        "such as a window or a join, may find them late: they are dead letters again then."
    )
    return {"allowed": True, "reason": None, "note": note}


def rows_to_mend(name: str, element: str, text: str, reason: str) -> LetterRows:
    """Returns the rows of the letters of a reason, with the cells that can be read. If the element has
    several inputs, returns the rows of the input from which the newest letter came. Raises Conflict if no row
    can come back."""
    deployment, found = deployed_element(name, element)
    ways = ways_of(deployment, found["id"])
    if isinstance(ways, str):
        raise _stays(ways)
    topic = dead_letter_topic(deployment.pk, found["id"])
    letters = asked_of_kafka(lambda kafka: open_letters(kafka, topic, LOOKED_MAX))
    wanted = [
        each
        for each in letters
        if text.casefold() in each.value.casefold() and (not reason or reason_of(each.value) == reason)
    ]
    said = {each.offset: place_of(fields_of(each)) for each in wanted}
    found_ways = [ways.of(place) for place in reversed(said.values())]
    way = next((each for each in found_ways if isinstance(each, WayIn)), None)
    if way is None and found_ways:
        raise _stays(str(found_ways[0]))
    way = way or ways.each[0]
    mended = [each for each in wanted if ways.of(said[each.offset]) == way][-MENDED_MAX:]
    places = {each.offset: place for each in mended if (place := said[each.offset]) is not None}
    lie_at = [(place.partition, place.offset) for place in places.values()]
    originals = asked_of_kafka(lambda kafka: records_at(kafka, way.read_from, lie_at))
    rows = []
    for each in mended:
        place = places.get(each.offset)
        original = None if place is None else originals.get((place.partition, place.offset))
        rows.append(_row_to_mend(each, original, way))
    more = len(mended) < len(wanted)
    return {"columns": [*way.schema.fields], "rows": rows, "more": more, "topic": way.read_from}


def _stays(why: str) -> Conflict:
    return Conflict(why, safe=KEPT, next="Download the letters, or drop them.")


def _row_to_mend(letter: PeekedRecord, original: PeekedRecord | None, way: WayIn) -> LetterRow:
    fields = fields_of(letter)
    raw = str(fields.get("raw") or letter.value)
    cells, at_ms = cells_of(original, raw, way)
    place = place_of(fields)
    if at_ms is None and way.reading is None:  # the topic no longer has the row, and its letter says its time
        at_ms = _time_ms(fields)
    return {
        "offset": letter.offset,
        "key": _key(fields),
        "lies_at": None if place is None else {"partition": place.partition, "offset": place.offset},
        "raw": raw[:RAW_MAX],
        "reason": str(fields.get("reason") or "")[:REASON_MAX],
        "at": iso_of_ms(at_ms),
        "cells": exact(cells),
    }


def _key(letter: Mapping[str, Any]) -> str | None:
    key = letter.get("key")
    return key if isinstance(key, str) else None


def _time_ms(letter: Mapping[str, Any]) -> int | None:
    """Returns the time of a letter's row, if the letter says one."""
    time_ms = letter.get("time_ms")
    return time_ms if isinstance(time_ms, int) and not isinstance(time_ms, bool) else None


def order_progress(name: str, element: str, id: str) -> LetterOrderProgress:
    """Returns an order, and what the element has made of its rows."""
    deployment, found = deployed_element(name, element)
    order = order_of(deployment, found["id"], id)
    read = again = None
    if order.places is not None:
        places = {
            (topic, int(partition), offset)
            for topic, by_partition in order.places.items()
            for partition, spans in by_partition.items()
            for offset in offsets_in(spans)
        }
        topics = topics_read(deployment, found["id"])
        positions = {topic: read_of(deployment, topic, found["id"]) for topic in order.places}
        if all(position is not None for position in positions.values()):
            read = sum(
                offset < (positions[topic] or {}).get(partition, 0) for topic, partition, offset in places
            )
        topic, behind = dead_letter_topic(deployment.pk, found["id"]), order.until
        newer = asked_of_kafka(lambda kafka: letters_behind(kafka, topic, behind, AGAIN_OFFSETS_MAX))
        back = [place for each in newer if (place := place_of(fields_of(each))) is not None]
        again = len({(topics.get(each.source), each.partition, each.offset) for each in back} & places)
    return {**order_json(order), "read": read, "again": again}


def grouped(records: Sequence[PeekedRecord], limit: int, text: str = "", reason: str = "") -> GroupedLetters:
    """Returns the number of letters of each reason, the most frequent reason first, and the newest `limit`
    letters, oldest first. With `text`, only letters that contain it; with `reason`, only letters of that
    group. `records`: oldest first. Pure."""
    found = [each for each in records if text.casefold() in each.value.casefold()]
    groups: dict[str, LetterGroup] = {}
    for each in found:
        so_far = groups.get(name := reason_of(each.value))
        count = so_far["count"] + 1 if so_far else 1
        groups[name] = {"reason": name, "count": count, "newest": record_json(each)}
    by_count = sorted(groups.values(), key=lambda group: -group["count"])
    shown = [each for each in found if not reason or reason_of(each.value) == reason][-limit:]
    return {
        "records": [record_json(each) for each in shown],
        "groups": by_count[:GROUPS_MAX],
        "groups_left_out": max(0, len(by_count) - GROUPS_MAX),
        "looked": len(records),
        "more": len(records) >= LOOKED_MAX,
    }


def letters_file(name: str, element: str, format: Format) -> Iterator[bytes]:
    """Yields the letters of an element as a file, oldest first. Raises BackendAway before the first part."""
    deployment, found = deployed_element(name, element)
    topic = dead_letter_topic(deployment.pk, found["id"])

    def begun(kafka: Any) -> Iterator[PeekedRecord]:
        records = each_open_letter(kafka, topic, FILE_OFFSETS_MAX, _FILE_S)
        first = next(records, None)
        return chain(() if first is None else (first,), records)

    return file_parts(asked_of_kafka(begun), format, topics_read(deployment, found["id"]))


def file_parts(
    records: Iterable[PeekedRecord], format: Format, topics: Mapping[str, str] | None = None
) -> Iterator[bytes]:
    """Yields the lines of a file of letters. `topics`: the topics in which their rows lie, by stream.
    Pure."""
    line: Callable[[Sequence[Any]], str] = _csv_line if format == "csv" else _json_line
    if format == "csv":
        yield _csv_line(_COLUMNS).encode()
    for each in records:
        fields = fields_of(each)
        place = place_of(fields)
        lies_at = (None, None, None) if place is None else _lies_at(place, topics or {})
        time, at = iso_of_ms(_time_ms(fields)), iso_of_ms(each.timestamp_ms)
        raw = fields.get("raw", each.value)
        about_row = (time, _key(fields), *lies_at, fields.get("input"))
        yield line((at, fields.get("reason"), raw, *about_row, each.offset)).encode()


def _lies_at(place: Place, topics: Mapping[str, str]) -> tuple[str | None, int, int]:
    return topics.get(place.source), place.partition, place.offset


def _json_line(values: Sequence[Any]) -> str:
    return json.dumps(dict(zip(_COLUMNS, values, strict=True)), ensure_ascii=False) + "\n"


def _csv_line(values: Sequence[Any]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(values)
    return text.getvalue()
