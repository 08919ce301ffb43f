"""Reads the rows that a chart needs of a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ninja import Schema
from pydantic import Field

from pipeline_runtime.kafka.peek import Kafka, PeekedRecord, RangeRead, read_new, read_span, read_window
from webapp.backends.kafka import asked_of_kafka
from webapp.monitoring.schemas import Curve
from webapp.monitoring.streams import record_json, value_of
from webapp.monitoring.thinning import Drawn, Row, thinned

ROWS_MAX = 30_000
"""The most rows that are read for one answer to a chart."""
TIME_MS_MAX = 253_402_300_799_999
"""The end of the year 9999."""


class CurveSpan(Schema):
    """Which rows a chart draws, and on how many pixels."""

    pixels: int = Field(default=600, ge=50, le=4000)
    window_ms: int = Field(default=300_000, ge=1, le=31 * 86_400_000)  # as a chart may show
    from_ms: int | None = Field(default=None, ge=0, le=TIME_MS_MAX)
    to_ms: int | None = Field(default=None, ge=0, le=TIME_MS_MAX)
    after: str = Field(default="", max_length=2000, pattern=r"^(\d{1,5}:\d{1,18}(,\d{1,5}:\d{1,18})*)?$")

    @property
    def length_ms(self) -> int:
        held = self.from_ms is not None and self.to_ms is not None and not self.after
        return max(1, self.to_ms - self.from_ms) if held else self.window_ms  # type: ignore[operator]

    @property
    def offsets(self) -> dict[int, int]:
        parts = (part.partition(":") for part in self.after.split(","))
        return {int(partition): int(offset) for partition, _, offset in parts}


def curve_of(source: str, topic: str, drawn: Drawn, span: CurveSpan) -> Curve:
    """Returns the rows of a topic that a chart needs. Raises BackendAway."""
    read = asked_of_kafka(lambda kafka: read_for(kafka, topic, span))
    return curve_from(read, source, drawn, span, value_of)


def read_for(kafka: Kafka, topic: str, span: CurveSpan) -> RangeRead:
    """Reads what a chart draws. Raises the Kafka client's errors."""
    if span.after:
        return read_new(kafka, topic, span.offsets, ROWS_MAX)
    if span.from_ms is not None and span.to_ms is not None:
        return read_span(kafka, topic, span.from_ms, span.to_ms, ROWS_MAX)
    return read_window(kafka, topic, span.window_ms, ROWS_MAX)


def curve_from(
    read: RangeRead, source: str, drawn: Drawn, span: CurveSpan, value: Callable[[PeekedRecord], Any]
) -> Curve:
    """Returns the rows that a chart needs, among the rows that were read. `value` returns what the chart
    draws of a record, or None if it draws nothing."""
    found = [(record, drawable) for record in read.records if (drawable := value(record)) is not None]
    rows = [Row(record.timestamp_ms, record.key or "", drawable) for record, drawable in found]
    kept = thinned(rows, drawn, span.length_ms, span.pixels)
    return {
        "stream": source,
        "records": [record_json(found[index][0]) for index in kept],
        "rows": len(read.records),
        "left_out": read.left_out,
        "cursor": ",".join(f"{partition}:{end}" for partition, end in sorted(read.ends.items())),
    }
