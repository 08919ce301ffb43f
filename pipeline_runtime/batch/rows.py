"""The rows that a group's processor gets, and the rows that it returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from pipeline_runtime.batch.decode import TIMESTAMP, arrow_schema
from pipeline_runtime.batch.gate_messages import Request
from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.model.texts import texts
from pipeline_runtime.operators.expressions.values import floored
from pipeline_runtime.operators.sdk import Processor
from pipeline_runtime.operators.tables import About, quoted, with_column

BY_OFFSET = [("_partition", "ascending"), ("_offset", "ascending")]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

A = TypeVar("A")

Inputs = Sequence[tuple[str, StreamSchema]]
"""The connected ports of a processor and the schema of what comes there, the first port first."""
Ports = Mapping[str, pa.Table]
"""The rows of each connected port: its columns, `_key`, `_time`, `_partition` and `_offset`."""


class Letter(NamedTuple):
    """A row that its element could not take, and what is known of the row (tables.About)."""

    reason: str
    raw: str  # the row as text
    partition: int | None = None  # among all that the group reads (GroupInput.number_of)
    offset: int | None = None
    key: str | None = None
    time_ms: int | None = None


def port_schema(schema: StreamSchema) -> pa.Schema:
    """The columns of a port's table."""
    meta = [("_key", pa.string()), ("_time", TIMESTAMP), ("_partition", pa.int32()), ("_offset", pa.int64())]
    return pa.schema([*arrow_schema(schema), *meta])


@dataclass(frozen=True)
class Processed:
    """What a processor makes of a batch's rows."""

    rows: pa.Table  # the output's columns, `_key`, and `_time` in whole milliseconds, as a record has them
    letters: Sequence[Letter]


class Asked(Protocol):
    """The gate: a processor's work asks it for states (`StatesOf`, `StatesBetween`, `KeysBetween`), and says
    which of them the batch changes (`KeepStates`)."""

    def ask(self, request: Request[A]) -> A: ...

    def tell(self, request: Request[None]) -> None:
        """Asks what nobody has to wait for. What is asked or told later is answered after it."""
        ...


class ProcessorWork(Protocol):
    """A group's processor, as one worker process runs it."""

    def process(
        self, ports: Ports, gate: Asked, task: int = 0, *, at_end: bool = False, batch_time_ms: int = 0
    ) -> Processed:
        """Run it on the rows of the batch that began at `batch_time_ms`. It reads its states from the gate,
        and leaves the new ones there."""
        ...


def current_state(state: Any, version: int, processor: Processor) -> Any:
    """A key's state, kept as `version`, as the processor keeps it now. ValueError: it is of a later one."""
    if version > processor.state_version:
        raise ValueError(
            f"this state was kept by version {version} of the operator, "
            f"and this is version {processor.state_version}: install the later one"
        )
    return processor.migrate(state, version) if version < processor.state_version else state


def rejected(data: Mapping[str, Any], error: Exception, about: About) -> Letter:
    return Letter(f"{type(error).__name__}: {error}", quoted(data), *about)


def in_order(table: pa.Table) -> pa.Table:
    """Returns the rows of a port in the order of their offsets. Most often they have it already, and to sort
    them would take a large part of a batch's time."""
    if table.num_rows < 2:
        return table
    partitions, offsets = table["_partition"].to_numpy(), table["_offset"].to_numpy()
    if (partitions == partitions[0]).all() and (offsets[1:] > offsets[:-1]).all():
        return table
    return table.sort_by(BY_OFFSET)


def keyed(rows: pa.Table, schema: StreamSchema) -> pa.Table:
    """`_key` as it would be read from the stream's topic: elements of one group give what they give apart."""
    field = None if schema.key is None else schema.field(schema.key)
    return rows if field is None else with_column(rows, "_key", texts(rows[field.name]))


def in_ms(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Points in time in whole milliseconds, as a record has them, rounded down."""
    unit = pa.timestamp("ms", tz="UTC")
    try:
        return times.cast(unit)  # most often they are, since they come from records
    except pa.ArrowInvalid:
        return floored(times.cast(TIMESTAMP).cast(pa.int64()), 1000).cast(unit)


def python_values(values: pa.ChunkedArray, type_: FieldType) -> list[Any]:
    if type_ in (FieldType.NUMBER, FieldType.INTEGER) and not values.null_count:
        return values.to_numpy().tolist()  # type: ignore[no-any-return]
    if type_ is not FieldType.TIMESTAMP:
        return values.to_pylist()  # type: ignore[no-any-return]
    return instants(values.cast(pa.int64()).to_pylist())


def instants(times_us: Iterable[int | None]) -> list[datetime | None]:
    # A product takes half of what it takes to make a timedelta of so many.
    return [None if time_us is None else EPOCH + time_us * _MICROSECOND for time_us in times_us]
