"""The part of a draft that a preview of one element needs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pipeline_runtime.model.document import parse_reference
from pipeline_runtime.model.ids import INTAKE
from pipeline_runtime.model.spec import GroupSpec, InputStream, OutputStream
from pipeline_runtime.planning.draft import DraftElement, read_draft

_KEPT = ("id", "type", "title", "params", "inputs")


def path_document(document: Mapping[str, Any], element: str) -> dict[str, Any]:
    """Returns a document with the element and all before it, each in a group of its own and without a place.
    Faults elsewhere in the draft do not matter to it. Raises KeyError if there is no such element."""
    elements, _ = read_draft(document)
    by_id: dict[str, DraftElement] = {}
    for each in elements:
        by_id.setdefault(each.id, each)
    wanted: set[str] = set()
    left = [by_id[element].id]
    while left:
        id = left.pop()
        if id in wanted or id not in by_id:
            continue
        wanted.add(id)
        left += [parse_reference(reference)[0] for reference in by_id[id].inputs.values()]
    drawn = document["spec"]["elements"]
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "preview"},
        "spec": {
            "elements": [
                {name: raw[name] for name in _KEPT if name in raw}
                for raw in (drawn[each.index] for each in by_id.values() if each.id in wanted)
            ]
        },
    }


def reads_of(document: Mapping[str, Any], element: str) -> dict[str, str]:
    """Returns the streams that the element reads, "element.port" by its port."""
    found = next(each for each in read_draft(document)[0] if each.id == element)
    return {port: ".".join(parse_reference(reference)) for port, reference in found.inputs.items()}


def running_streams(specs: Iterable[GroupSpec]) -> dict[str, OutputStream]:
    """Returns the streams of a deployment that a topic has, "element.port" -> the stream. Records that a
    connector has brought are the stream "element.intake"."""
    specs = tuple(specs)
    brought = [
        OutputStream(source=f"{each.consumer}.{INTAKE}", topic=each.topic, data_schema=each.data_schema)
        for spec in specs
        for each in spec.inputs
        if each.intake
    ]
    made = [each for spec in specs for each in spec.outputs if not each.external]
    return {each.source: each for each in (*made, *brought)}


def from_running(
    groups: Collection[GroupSpec], element: str, running: Mapping[str, OutputStream]
) -> tuple[GroupSpec, ...]:
    """Returns the groups that are still needed when streams that run are read from their topics: a preview
    begins at the last ones before the element. A stream with other columns than it has in the draft is made
    by the preview.

    `groups`: of one element each, producers first. The dashboard reads for a view, which has no group: all
    elements that nothing else reads are needed for it.
    """
    by_id = {each.elements[0].id: each for each in groups}
    read = {stream.source.partition(".")[0] for each in groups for stream in each.inputs}
    kept: dict[str, GroupSpec] = {}
    left = [element] if element in by_id else [id for id in by_id if id not in read]
    while left:
        id = left.pop()
        if id in kept:
            continue
        inputs = []
        for stream in by_id[id].inputs:
            runs = running.get(f"{stream.consumer}.{INTAKE}" if stream.intake else stream.source)
            if (stream.intake and runs is not None) or (
                not stream.external and runs is not None and runs.data_schema == stream.data_schema
            ):
                inputs.append(_from(stream, runs))
            else:
                inputs.append(stream)
                left += [] if stream.external else [stream.source.partition(".")[0]]
        kept[id] = by_id[id].model_copy(update={"inputs": tuple(inputs)})
    return tuple(kept[id] for id in by_id if id in kept)


def _from(stream: InputStream, runs: OutputStream) -> InputStream:
    return stream.model_copy(update={"topic": runs.topic, "partitions": runs.partitions})
