"""The inputs of a group, in one order. Gate, source and frame use the same order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pipeline_runtime.model.ids import position_key
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import ElementSpec, GroupSpec, RecordReading
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.operators.sdk import Operator, OperatorContext, SourceOperator, SourceReader

_PARTITIONS_MAX = 2**20
"""More than a topic has partitions."""


@dataclass(frozen=True)
class GroupInput:
    """A stream that the group's query reads: a topic, or a source operator inside the group."""

    index: int
    source: str  # "element.port"
    schema: StreamSchema
    topic: str | None = None
    partitions: int = 1
    consumer: str = ""  # whose dead letters take what cannot be read
    external: bool = False
    start: Literal["earliest", "latest"] = "earliest"
    all_partitions: bool = False  # also those that a user's own topic gets later
    reading: RecordReading | None = None  # how the records of such a topic are read
    gap: Literal["skip", "stop"] = "skip"  # what to do about records of such a topic that were deleted

    @property
    def element(self) -> str:
        return self.source.partition(".")[0]

    @property
    def key_field(self) -> str | None:
        """Returns the field whose text is the key of its rows, or None if the record's key is. Records in
        Fogline's own topics have the stream's key. Records in a user's topic may have any key."""
        return self.schema.key if self.topic is None or self.external else None

    def number_of(self, partition: int) -> int:
        """Returns the number of a partition among those of all inputs, as it stands in `_partition`. Of the
        first input it is the partition itself."""
        return self.index * _PARTITIONS_MAX + partition

    def end_keys(self) -> list[str]:
        """The names under which this input's positions stand in a boundary's `ends`."""
        if self.topic is None:
            return [self.element]
        return [position_key(self.topic, partition) for partition in range(self.partitions)]


def stream_and_partition(spec: GroupSpec, number: int) -> tuple[str | None, int]:
    """Returns the stream from outside the group, and its partition, of which `GroupInput.number_of` made the
    number. Returns None for rows that come from no topic."""
    index, partition = divmod(number, _PARTITIONS_MAX)
    sources = [*dict.fromkeys(each.source for each in spec.inputs)]  # in the order of `group_inputs`
    return (sources[index] if 0 <= index < len(sources) else None), partition


def operator_of(spec: GroupSpec, element: str) -> Operator:
    found = _element(spec, element)
    return default_registry().create(found.type, found.params)


def input_schemas(spec: GroupSpec, element: str) -> dict[str, StreamSchema]:
    """Returns the schemas of the element's inputs, by port."""
    found = _element(spec, element)
    return {port: spec.schemas[source] for port, source in found.inputs.items() if source in spec.schemas}


def _element(spec: GroupSpec, element: str) -> ElementSpec:
    return next(item for item in spec.elements if item.id == element)


def group_inputs(spec: GroupSpec) -> tuple[GroupInput, ...]:
    inputs: dict[str, GroupInput] = {}
    for stream in spec.inputs:
        if stream.source not in inputs:
            inputs[stream.source] = GroupInput(
                index=len(inputs),
                source=stream.source,
                schema=stream.data_schema,
                topic=stream.topic,
                partitions=stream.partitions,
                consumer=stream.consumer,
                external=stream.external,
                start=stream.start,
                all_partitions=stream.all_partitions,
                gap=stream.gap,
                reading=stream.reading,
            )
    for element in spec.elements:
        source = f"{element.id}.out"
        if source not in inputs and isinstance(operator_of(spec, element.id), SourceOperator):
            inputs[source] = GroupInput(
                index=len(inputs), source=source, schema=spec.schemas[source], consumer=element.id
            )
    return tuple(inputs.values())


def position_keys(ends: Mapping[str, Any], topic: str) -> list[str]:
    """The keys under which a position has the topic's partitions, in their order."""
    keys: list[str] = []
    while (key := position_key(topic, len(keys))) in ends:
        keys.append(key)
    return keys


def as_positioned(inputs: tuple[GroupInput, ...], ends: Mapping[str, Any]) -> tuple[GroupInput, ...]:
    """The inputs with as many partitions of the users' own topics as the position has. A definition may name
    fewer: a topic can get more while it is read."""
    return tuple(
        replace(item, partitions=len(keys))
        if item.topic is not None and item.external and (keys := position_keys(ends, item.topic))
        else item
        for item in inputs
    )


def operator_context(
    spec: GroupSpec, element: str, files: Mapping[str, str], directory: Path
) -> OperatorContext:
    """`files`: file reference -> path on this machine. `directory`: the replica's."""

    def resolve(reference: str) -> Path:
        if reference not in files:
            raise FileNotFoundError(f"{element}: the file {reference} is not on this node")
        return Path(files[reference])

    return OperatorContext(
        element=element,
        output_schema=spec.schemas.get(f"{element}.out", StreamSchema(fields=())),
        input_schemas=input_schemas(spec, element),
        directory=directory / "elements" / element,
        resolve_file=resolve,
    )


def open_source(spec: GroupSpec, item: GroupInput, files: Mapping[str, str], directory: Path) -> SourceReader:
    operator = operator_of(spec, item.element)
    assert isinstance(operator, SourceOperator)
    return operator.open(operator_context(spec, item.element, files, directory))
