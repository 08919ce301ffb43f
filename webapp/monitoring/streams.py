"""Reads the streams of what runs: records, how far a reader has read them, and dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline_runtime.journal.positions import last_positions
from pipeline_runtime.journal.records import decode
from pipeline_runtime.kafka.peek import PeekedRecord, peek
from pipeline_runtime.kafka.queue import Wanted, look
from pipeline_runtime.model.document import parse_reference
from pipeline_runtime.model.ids import position_key, stream_topic
from pipeline_runtime.model.plain_data import data_in, exact, object_in
from pipeline_runtime.model.schema import Field
from pipeline_runtime.model.spec import GroupSpec, InputStream
from pipeline_runtime.operators.registry import OperatorUnknown, default_registry
from webapp.backends.kafka import asked_of_kafka
from webapp.moments import iso_of_ms
from webapp.monitoring.schemas import PeekedRecord as PeekedJson, Queue, StreamSchemas
from webapp.pipelines.models import Pipeline
from webapp.pipelines.selectors import pipeline_named
from webapp.pipelines.shape import element_of
from webapp.placements.models import Deployment
from webapp.placements.selectors import active_deployment, specs_of
from webapp.problems import Conflict, Missing

JOURNAL_TAIL = 50
"""How many of a journal's newest records are read to find its last COMMIT."""


def stream_of(name: str, stream: str) -> tuple[Deployment, str, str]:
    """Returns the deployment, the stream (`element.port`) and its topic. `stream` may be an element alone.
    One without an output stands for what it reads."""
    pipeline, deployment = _deployed(name)
    return deployment, *stream_in(deployment, pipeline.title, stream)


def stream_in(deployment: Deployment, title: str, stream: str) -> tuple[str, str]:
    """Returns a stream of the deployment and its topic. `title` is the pipeline's."""
    element = _element_in(deployment, title, stream.partition(".")[0])
    source = stream if "." in stream else _shown_source(deployment, element)
    return source, stream_topic(deployment.pk, *parse_reference(source))


def deployed_element(name: str, id: str) -> tuple[Deployment, dict[str, Any]]:
    """Returns the deployment and the element in its document."""
    pipeline, deployment = _deployed(name)
    return deployment, _element_in(deployment, pipeline.title, id)


def not_deployed(title: str) -> Conflict:
    """Returns the error which says that the pipeline is not deployed."""
    return Conflict(
        f'"{title}" is not deployed, so it has no streams to look at.', next="Deploy the pipeline first."
    )


def _deployed(name: str) -> tuple[Pipeline, Deployment]:
    pipeline = pipeline_named(name)
    deployment = active_deployment(pipeline)
    if deployment is None:
        raise not_deployed(pipeline.title)
    return pipeline, deployment


def _element_in(deployment: Deployment, title: str, id: str) -> dict[str, Any]:
    found = element_of(deployment.version.document, id)
    if found is None:
        raise Missing(
            f'There is no element "{id}" in the deployed version of "{title}".',
            next="Deploy a version with this element, or choose another element.",
        )
    return found


def value_of(record: PeekedRecord) -> Any:
    """Returns a record's value as JSON data, or as the text that it is."""
    return data_in(record.value)


def fields_of(record: PeekedRecord) -> dict[str, Any]:
    """Returns a record's columns, or none if it is no row."""
    return object_in(record.value)


def record_json(record: PeekedRecord) -> PeekedJson:
    """Returns a record as every table of rows shows it."""
    return {
        "offset": record.offset,
        "partition": record.partition,
        "at": iso_of_ms(record.timestamp_ms),
        "key": record.key,
        "value": exact(value_of(record)),
    }


def schemas_of(name: str) -> StreamSchemas:
    """Returns the columns of each stream of what runs, as they were when it was deployed."""
    _, deployment = _deployed(name)
    schemas = {source: each for spec in specs_of(deployment) for source, each in spec.schemas.items()}
    return {"version": deployment.version.number, "schemas": schemas}


def queue_of(name: str, stream: str, reader: str, wanted: Wanted) -> Queue:
    """Returns what a reader of a stream has read of it last, and what waits for it."""
    deployment, _ = deployed_element(name, stream.partition(".")[0])
    source = ".".join(parse_reference(stream))
    specs = specs_of(deployment)
    spec, item = _reader(specs, source, reader)
    topic = item.topic if item is not None else stream_topic(deployment.pk, *parse_reference(source))
    if item is None and not any(output.topic == topic for each in specs for output in each.outputs):
        maker, taker = deployment.name_of(source.partition(".")[0]), deployment.name_of(reader)
        raise Conflict(
            f"{taker} runs as one with {maker}, so nothing waits between them.",
            next="Look at the records of the last element that runs as one with them.",
        )
    # A view has no group: the dashboard reads for it.
    position = _position(spec, item) if spec is not None and item is not None else None
    found = asked_of_kafka(lambda kafka: look(kafka, topic, position, wanted))
    return {
        "stream": source,
        "columns": columns_of(specs, source),
        "known": position is not None,
        "records": [{**record_json(each), "waits": _waits(each, position)} for each in found.records],
        "looked": found.looked,
        "more": found.more,
    }


def read_of(deployment: Deployment, topic: str, element: str) -> dict[int, int] | None:
    """Returns where the group of an element reads on in a topic, by partition, or None if nobody knows."""
    specs = specs_of(deployment)
    spec = next((each for each in specs if any(item.id == element for item in each.elements)), None)
    item = next((each for each in spec.inputs if each.topic == topic), None) if spec is not None else None
    return _position(spec, item) if spec is not None and item is not None else None


def _waits(record: PeekedRecord, position: Mapping[int, int] | None) -> bool:
    return position is not None and record.offset >= position.get(record.partition, 0)


def columns_of(specs: tuple[GroupSpec, ...], source: str) -> list[Field] | None:
    """Returns the columns of a stream that runs, or None if nobody has said them."""
    schemas = (each.schemas.get(source) for each in specs)
    return next(([*schema.fields] for schema in schemas if schema is not None), None)


def _reader(
    specs: tuple[GroupSpec, ...], source: str, reader: str
) -> tuple[GroupSpec | None, InputStream | None]:
    for spec in specs:
        if any(element.id == reader for element in spec.elements):
            return spec, next((each for each in spec.inputs if each.source == source), None)
    return None, None


def _position(spec: GroupSpec, item: InputStream) -> dict[int, int] | None:
    """Returns where the group reads on, by partition, or None if its journal does not say it."""
    newest = asked_of_kafka(lambda kafka: peek(kafka, spec.journal, JOURNAL_TAIL))
    ends = last_positions([decode(record.value.encode()) for record in newest])
    found: dict[int, int] = {}
    while (at := ends.get(position_key(item.topic, len(found)))) is not None:
        found[len(found)] = at
    return found or None


UNKNOWN_OPERATOR = "Install the package that has this operator, and start the web again."


def _shown_source(deployment: Deployment, element: dict[str, Any]) -> str:
    try:
        outputs = default_registry().get(element["type"]).outputs
    except OperatorUnknown as error:
        raise Missing(str(error), next=UNKNOWN_OPERATOR) from error
    if outputs:
        return str(element["id"])
    inputs = list((element.get("inputs") or {}).values())
    if not inputs:
        raise Missing(
            f'"{deployment.name_of(element["id"])}" has neither an output nor a connected input.',
            next="Connect its input, and deploy again.",
        )
    return str(inputs[0])
