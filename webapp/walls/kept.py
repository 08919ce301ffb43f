"""Stores the histories of series, and reads the part that a chart needs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from webapp.moments import iso_of_ms
from webapp.monitoring.curves import CurveSpan
from webapp.monitoring.schemas import Curve, PeekedRecord
from webapp.monitoring.thinning import Drawn, Row, thinned
from webapp.walls.history import (
    CELLS,
    PART_CHARACTERS_MAX,
    Place,
    Point,
    points_between,
    step_for,
    unpacked,
)
from webapp.walls.models import KeptSeries, Wall
from webapp.walls.selectors import tiles_of
from webapp.walls.tiles import ChartTile, Series

FROM_TOPIC_MS = 300_000
"""A chart of no more than this is drawn from the topic, with all its rows."""
SERIES_MAX = 100


def series_id(topic: str, series: Series) -> str:
    """Returns the id of a history. A topic belongs to one deployment, so a history does, too."""
    named = json.dumps([topic, series.column, series.key, series.by])
    return hashlib.sha256(named.encode()).hexdigest()


def part_of(value: Any) -> str:
    """Returns the name of the curve to which a row belongs, by the value of the column `by`."""
    # PostgreSQL stores no NUL.
    return str(value).replace("\0", "")[:PART_CHARACTERS_MAX]


def wanted_series() -> Iterator[Series]:
    """Yields the series of charts that show more than a topic is asked for, by wall and tile."""
    for wall in Wall.objects.order_by("pk"):
        for tile in tiles_of(wall):
            if isinstance(tile, ChartTile) and tile.range_s * 1000 > FROM_TOPIC_MS:
                yield from tile.series


def kept_curve(source: str, topic: str, series: Series, span: CurveSpan) -> Curve | None:
    """Returns the rows that a chart needs, of the history. Returns None if the topic is to be asked: there is
    no history yet, or the span is short and new."""
    if span.after:
        return None
    row = KeptSeries.objects.filter(pk=series_id(topic, series)).first()
    if row is None or row.newest_ms is None:
        return None
    from_ms, to_ms = row.newest_ms - span.window_ms, row.newest_ms
    if span.from_ms is not None and span.to_ms is not None:
        from_ms, to_ms = span.from_ms, span.to_ms
    if row.newest_ms - from_ms <= FROM_TOPIC_MS:
        return None
    count, points = _points(row, step_for(row.newest_ms - from_ms), from_ms, to_ms)
    if not points:
        return None
    return {
        "stream": source,
        "records": list(_drawn(points, series, span)),
        "rows": count,
        "left_out": row.left_out,
        "cursor": ",".join(f"{partition}:{end}" for partition, end in sorted(row.positions.items())),
    }


def _points(row: KeptSeries, step_ms: int, from_ms: int, to_ms: int) -> tuple[int, list[tuple[str, Point]]]:
    """Returns (rows that they stand for, points with their parts, by time)."""
    found = row.blocks.filter(step_ms=step_ms, start_ms__gt=from_ms - CELLS * step_ms, start_ms__lte=to_ms)
    rows, points = 0, []
    for stored in found:
        for count, inside in points_between(unpacked(stored.cells), from_ms, to_ms):
            rows += count
            points += [(stored.part, point) for point in inside]
    points.sort(key=lambda each: (each[1].at_ms, each[1].partition, each[1].offset))
    return rows, points


def _drawn(points: list[tuple[str, Point]], series: Series, span: CurveSpan) -> Iterator[PeekedRecord]:
    rows = [Row(point.at_ms, "", _value(part, point, series)) for part, point in points]
    for index in thinned(rows, Drawn((series.column,), series.by), span.length_ms, span.pixels):
        point = points[index][1]
        yield {
            "offset": point.offset,
            "partition": point.partition,
            "at": iso_of_ms(point.at_ms),
            "key": None,
            "value": rows[index].value,
        }


def _value(part: str, point: Point, series: Series) -> dict[str, Any]:
    whole = point.value.is_integer() and abs(point.value) < 2**53
    value: dict[str, Any] = {series.column: int(point.value) if whole else point.value}
    return {**value, series.by: part} if series.by else value


def places_of(row: KeptSeries) -> Iterable[Place]:
    """Returns where the stored blocks of a series lie."""
    return [Place(*each) for each in row.blocks.values_list("part", "step_ms", "start_ms")]
