"""Finds the streams within a group that leave the group, and the elements at which they leave it."""

from __future__ import annotations

from pipeline_runtime.batch.inputs import operator_of
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.sdk import SinkOperator


def sink_streams(spec: GroupSpec) -> dict[str, str]:
    """Sink element -> the stream ("element.port") that it writes."""
    return {
        item.id: item.inputs["in"]
        for item in spec.elements
        if isinstance(operator_of(spec, item.id), SinkOperator)
    }


def needed_streams(spec: GroupSpec) -> frozenset[str]:
    """Returns the streams that leave the query, into a topic or into a sink of the group."""
    return frozenset({output.source for output in spec.outputs} | set(sink_streams(spec).values()))


def behind(spec: GroupSpec, element: str | None) -> tuple[str, ...]:
    """The elements that stand behind that one, in topological order. Sinks are no part of a query: they are
    handed the rows of their stream."""
    found: list[str] = []
    for item in spec.elements:
        sources = {source.partition(".")[0] for source in item.inputs.values()}
        is_behind = element is not None and bool(sources & {element, *found})
        if is_behind and not isinstance(operator_of(spec, item.id), SinkOperator):
            found.append(item.id)
    return tuple(found)
