"""Routes about what lies in the streams of what runs."""

from __future__ import annotations

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from pipeline_runtime.kafka.peek import peek
from pipeline_runtime.kafka.queue import Wanted
from pipeline_runtime.model.dead_letters import REASON_MAX
from webapp.api.streaming import in_thread
from webapp.backends.kafka import asked_of_kafka
from webapp.monitoring.curves import TIME_MS_MAX, CurveSpan, curve_of
from webapp.monitoring.letters import Format, letters_file, letters_of
from webapp.monitoring.schemas import Curve, DeadLetters, Peeked, Queue, StreamSchemas
from webapp.monitoring.streams import (
    queue_of,
    record_json,
    schemas_of,
    stream_of,
)
from webapp.monitoring.thinning import Drawn
from webapp.monitoring.trace import Trace, trace_of

router = Router(tags=["streams"])


class CurveColumns(Schema):
    """What a chart draws."""

    columns: list[str] = Field(default=[], max_length=50)
    by: str | None = Field(default=None, max_length=200)
    marks: list[str] = Field(default=[], max_length=10)


class QueueLook(Schema):
    """What is wanted of a stream."""

    limit: int = Field(default=50, ge=1, le=500)
    key: str = Field(default="", max_length=1000)
    text: str = Field(default="", max_length=1000)
    from_ms: int | None = Field(default=None, ge=0, le=TIME_MS_MAX)


class LettersLook(Schema):
    """Which dead letters are wanted."""

    limit: int = Field(default=20, ge=1, le=500)
    text: str = Field(default="", max_length=1000)
    reason: str = Field(default="", max_length=REASON_MAX)


@router.get("/pipelines/{name}/streams", response=StreamSchemas)
def streams(request: HttpRequest, name: str) -> StreamSchemas:
    """Returns the columns of the streams that run, with their types and units."""
    return schemas_of(name)


@router.get("/pipelines/{name}/streams/{stream}/peek", response=Peeked)
def peek_stream(request: HttpRequest, name: str, stream: str, limit: int = Query(20, ge=1, le=500)) -> Peeked:
    """Returns the newest records of an element's output (`element` or `element.port`).

    For an element without an output, returns those of its input: the rows that a chart or table in the
    dashboard shows.
    """
    _, source, topic = stream_of(name, stream)
    read = asked_of_kafka(lambda kafka: peek(kafka, topic, limit))
    return {"stream": source, "records": [record_json(record) for record in read]}


@router.get("/pipelines/{name}/streams/{stream}/queue", response=Queue)
def queue(
    request: HttpRequest, name: str, stream: str, asked: Query[QueueLook], reader: str = Query(max_length=60)
) -> Queue:
    """Returns what the element `reader` has read last of a stream (`element` or `element.port`), and what
    waits for it.

    With `key` or `text`, returns the newest records with that key, or with that text anywhere. With
    `from_ms`, returns the first ones from that time on. One request looks through some ten thousand records.
    """
    return queue_of(name, stream, reader, Wanted(**asked.model_dump()))


@router.get("/pipelines/{name}/streams/{stream}/trace", response=Trace)
def trace_row(
    request: HttpRequest,
    name: str,
    stream: str,
    partition: int = Query(ge=0, le=100_000),
    offset: int = Query(ge=0, le=2**63 - 1),
) -> Trace:
    """Returns where a row of a stream (`element` or `element.port`) came from: at each element the rows of
    its inputs from which it made the rows behind it, back to the sources.

    Given to a new element, these rows make the row again. `notes` say where there may be others, and what
    topics no longer hold. From 20 rows of each stream it goes further back.
    """
    return trace_of(name, stream, partition, offset)


@router.get("/pipelines/{name}/streams/{stream}/curve", response=Curve)
def curve_of_stream(
    request: HttpRequest, name: str, stream: str, columns: Query[CurveColumns], span: Query[CurveSpan]
) -> Curve:
    """Returns the rows of an element's output that a chart needs.

    With `after`, those behind that cursor. With `from_ms` and `to_ms`, those of that span of the stream's own
    time. Else those of its newest `window_ms`.
    """
    _, source, topic = stream_of(name, stream)
    return curve_of(source, topic, Drawn(tuple(columns.columns), columns.by, tuple(columns.marks)), span)


@router.get("/pipelines/{name}/streams/{stream}/dead-letters", response=DeadLetters)
def dead_letters(request: HttpRequest, name: str, stream: str, asked: Query[LettersLook]) -> DeadLetters:
    """Returns the newest dead letters of an element: what it could not process, grouped by reason. Letters
    that were dropped or replayed are left out.

    With `text`, only those in which it stands. With `reason`, the records are those of that group. The newest
    thousand letters are looked at.
    """
    return letters_of(name, stream.partition(".")[0], **asked.model_dump())


@router.get("/pipelines/{name}/streams/{stream}/dead-letters/file")
def dead_letters_file(
    request: HttpRequest, name: str, stream: str, format: Format = "csv"
) -> StreamingHttpResponse:
    """Returns the dead letters of an element as CSV or JSON lines, oldest first: the open ones of the newest
    100,000 offsets."""
    id = stream.partition(".")[0]
    parts = letters_file(name, id, format)
    kind, ending = ("text/csv", "csv") if format == "csv" else ("application/x-ndjson", "jsonl")
    headers = {"content-disposition": f'attachment; filename="{name}-{id}-dead-letters.{ending}"'}
    return StreamingHttpResponse(in_thread(parts), content_type=kind, headers=headers)
