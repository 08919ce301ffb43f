"""From one row of what runs back to the rows it came from, as far as topics still hold them."""

from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import TypedDict

from pipeline_runtime.kafka.arrived import read_arrived, record_at
from pipeline_runtime.kafka.peek import PeekedRecord, SharedConsumer
from pipeline_runtime.model.document import parse_reference
from pipeline_runtime.model.schema import Field
from pipeline_runtime.model.spec import ElementSpec, GroupSpec
from pipeline_runtime.operators.connected import ConnectorSource
from pipeline_runtime.operators.lineage import TracedRow
from pipeline_runtime.operators.registry import OperatorUnknown, default_registry
from pipeline_runtime.planning.lineage import ROWS_MAX, Held, Looked, TracedStream, latest, trace
from webapp.backends.kafka import asked_of_kafka, kafka_settings
from webapp.monitoring.schemas import PeekedRecord as PeekedJson
from webapp.monitoring.streams import UNKNOWN_OPERATOR, columns_of, fields_of, record_json, stream_of
from webapp.placements.models import Deployment
from webapp.placements.selectors import specs_of
from webapp.problems import Missing

SHOWN_MAX = 200
"""How many rows of a stream are shown: the newest ones."""


class TracedStep(TypedDict):
    """The rows that an element made the row of, or some rows behind it."""

    element: str
    title: str
    port: str
    stream: str
    """`element.port` of what it read"""
    source_title: str
    """the name of the element that wrote these rows"""
    columns: list[Field]
    records: list[PeekedJson]
    """by the order in which they came"""
    count: int
    """how many rows there are; of more than are shown, the newest are shown"""
    kept: bool
    """false if the two elements run as one and nobody else reads the stream: it has no topic"""
    notes: list[str]
    """why some of the rows need not have taken part, or others may be missing"""


class TraceEnd(TypedDict):
    """A source to which the trace leads."""

    element: str
    title: str
    message: str


class Trace(TypedDict):
    """Where a row came from, from its element back to the sources."""

    stream: str
    element: str
    title: str
    columns: list[Field] | None
    record: PeekedJson
    steps: list[TracedStep]
    ends: list[TraceEnd]


def trace_of(name: str, stream: str, partition: int, offset: int) -> Trace:
    """Raises Missing, Conflict and BackendAway."""
    deployment, source, topic = stream_of(name, stream)
    source = ".".join(parse_reference(source))
    specs = specs_of(deployment)
    kept: dict[tuple[str, int, int], PeekedRecord] = {}
    with SharedConsumer(kafka_settings()) as consumer:
        record = asked_of_kafka(lambda _: record_at(consumer, topic, partition, offset))
        if record is None:
            raise Missing(
                f"The topic of {deployment.name_of(source.partition('.')[0])} has no row {offset} in "
                f"partition {partition} any more.",
                next="Topics remove their oldest rows. Choose a newer row.",
            )

        def read(held: Held, from_ms: int | None, until_ms: int | None, near_ms: int) -> Looked:
            found = asked_of_kafka(
                lambda _: read_arrived(consumer, held.topic, from_ms, until_ms, near_ms, ROWS_MAX)
            )
            kept.update({(held.source, each.partition, each.offset): each for each in found.records})
            rows = [_traced(each) for each in found.records]
            return Looked(rows, found.removed, found.left_out, found.late)

        try:
            streams = [*trace(specs, default_registry(), _traced(record), source, read)]
        except OperatorUnknown as error:
            raise Missing(str(error), next=UNKNOWN_OPERATOR) from error
    found = {each.element for each in streams if each.rows}
    passed = {source.partition(".")[0], *(each.source.partition(".")[0] for each in streams)}
    return {
        "stream": source,
        "element": source.partition(".")[0],
        "title": deployment.name_of(source.partition(".")[0]),
        "columns": columns_of(specs, source),
        "record": record_json(record),
        "steps": [_step(deployment, each, kept, is_found=each.element in found) for each in streams],
        "ends": _ends(deployment, specs, passed),
    }


def _ends(deployment: Deployment, specs: tuple[GroupSpec, ...], passed: set[str]) -> list[TraceEnd]:
    """Returns the sources among the elements that the trace has passed."""
    elements = [each for spec in specs for each in spec.elements if each.id in passed]
    return [_end(deployment, each) for each in elements if not each.inputs]


def _end(deployment: Deployment, element: ElementSpec) -> TraceEnd:
    title = deployment.name_of(element.id)
    operator = default_registry().get(element.type)
    if issubclass(operator, ConnectorSource):
        words = f"{title} read the rows from outside ({element.params.get('connection')})."
    elif operator.external == "in":
        words = f"{title} read the rows from the topic {element.params.get('topic')}."
    elif element.params.get("path"):
        words = f"{title} read the rows from its file."
    else:
        words = f"{title} made the rows."
    return {"element": element.id, "title": title, "message": words}


def _traced(record: PeekedRecord) -> TracedRow:
    return TracedRow(record.timestamp_ms, fields_of(record), record.key, record.partition, record.offset)


def _step(
    deployment: Deployment,
    found: TracedStream,
    kept: Mapping[tuple[str, int, int], PeekedRecord],
    *,
    is_found: bool,
) -> TracedStep:
    """`is_found`: whether any input of the element has rows that belong here."""
    shown = latest(found.rows, SHOWN_MAX)
    return {
        "element": found.element,
        "title": deployment.name_of(found.element),
        "port": found.port,
        "stream": found.source,
        "source_title": deployment.name_of(found.source.partition(".")[0]),
        "columns": [*found.schema.fields],
        "records": [record_json(kept[found.source, row.partition, row.offset]) for row in shown],
        "count": len(found.rows),
        "kept": found.kept,
        "notes": _notes(found, deployment.name_of(found.element), is_found=is_found),
    }


def _notes(found: TracedStream, title: str, *, is_found: bool) -> list[str]:
    """`title`: what the element is called."""
    notes = [*found.bounds]
    if found.removed:
        notes.append("The topic has removed its oldest rows. Some that belong here may be among them.")
    if found.left_out:
        notes.append(f"Of this time only {ROWS_MAX:,} rows were looked through. Others may belong here.")
    if found.late:
        notes.append("Kafka did not give all rows in time. Others may belong here: open the trace again.")
    if found.kept and not is_found and not notes:
        notes.append(f"{title} may have made the row before its last change, by other parameters.")
    if found.rows and found.untraced:
        notes.append(
            f"These are traced from the newest {found.followed} of {found.followed + found.untraced} rows."
        )
    return notes
