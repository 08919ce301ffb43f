"""Facts about a group that its gate, its sink and its engine need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline_runtime.batch.inputs import GroupInput, group_inputs, operator_context, operator_of
from pipeline_runtime.batch.streams import needed_streams, sink_streams
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.key_columns import KeyArrays, KeyColumns
from pipeline_runtime.operators.sdk import (
    DataFrameOperator,
    KeyedProcessor,
    Operator,
    OperatorContext,
    Processor,
    SinkOperator,
    SinkWriter,
)

_BY_KEY = KeyedProcessor | KeyColumns | KeyArrays


class GroupFacts:
    """`files`: file reference -> local path; `directory`: the replica's."""

    def __init__(
        self,
        spec: GroupSpec,
        files: Mapping[str, str],
        directory: Path,
        inputs: tuple[GroupInput, ...] | None = None,
    ) -> None:
        """`inputs`: with the partitions that are read now, if that is known."""
        self.spec = spec
        self.inputs: tuple[GroupInput, ...] = group_inputs(spec) if inputs is None else inputs
        self.operators: dict[str, Operator] = {item.id: operator_of(spec, item.id) for item in spec.elements}
        self._files = files
        self._directory = directory
        self.stateful = next((id for id, each in self.operators.items() if each.stateful), None)
        # Here, since each batch asks for them.
        self.sinks = sink_streams(spec)
        self.needed = needed_streams(spec)

    @property
    def is_planned(self) -> bool:
        """Whether Spark plans each batch, since the group has an operator that a user wrote as a DataFrame
        (spark.planned). Otherwise a task stays and runs all batches (batch.group)."""
        return any(isinstance(operator, DataFrameOperator) for operator in self.operators.values())

    @property
    def processor(self) -> str | None:
        """The group's processor, if it has one: the replica keeps its state. Spark keeps any other state."""
        found = self.stateful is not None and isinstance(self.operators[self.stateful], Processor)
        return self.stateful if found else None

    @property
    def is_kept_by_spark(self) -> bool:
        """Whether Spark's checkpoint says where the group stands, and holds its state."""
        return self.is_planned and self.processor is None

    @property
    def tasks_max(self) -> int:
        """How many tasks may share a batch."""
        return partitions_apart(self.spec, self.inputs, self.processor)

    @property
    def flushes(self) -> bool:
        return any(operator.flushes for operator in self.operators.values())

    @property
    def tick_ms(self) -> int | None:
        """How often a batch is to run although no row comes; None if that is not needed."""
        ticks = [operator.ticks_s() for operator in self.operators.values()]
        known = [int(tick * 1000) for tick in ticks if tick is not None]
        return None if self.is_planned else min(known, default=None)

    def context(self, element: str) -> OperatorContext:
        return operator_context(self.spec, element, self._files, self._directory)

    def open_sink(self, element: str) -> SinkWriter:
        operator = self.operators[element]
        assert isinstance(operator, SinkOperator), element
        return operator.open(self.context(element))


def grouped_by(operator: Operator) -> str | None:
    """The field by which an operator takes the rows of each key apart; None stands for the record's key."""
    return operator.key_field() if isinstance(operator, _BY_KEY) else None


def partitions_apart(spec: GroupSpec, inputs: Sequence[GroupInput], processor: str | None) -> int:
    """How many tasks may share a batch: each has whole partitions, and no key is in two of them, if they are
    written as they are said to be, by the key that the processor groups by. A row without a key may be in any
    of them; batch.tasks notices that."""
    if processor is None:
        return sum(len(item.end_keys()) for item in inputs)
    operator, [item, *others] = operator_of(spec, processor), inputs
    [element] = [each for each in spec.elements if each.id == processor]
    if not isinstance(operator, _BY_KEY) or others or set(element.inputs.values()) != {item.source}:
        return 1
    key = item.schema.key
    by_record = item.topic is not None and key is not None and grouped_by(operator) in (None, key)
    return item.partitions if by_record else 1
