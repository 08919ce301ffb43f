"""Rows as a processor is given them, and as they leave a task."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import pyarrow as pa

from pipeline_runtime.model.ids import DEAD
from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.sdk import Processor
from pipeline_runtime.operators.tables import json_instant, quoted

TAGGED = pa.schema(
    [("_out", pa.string()), ("_key", pa.string()), ("_time_ms", pa.int64()), ("_value", pa.string())]
)
BY_OFFSET = [("partition", "ascending"), ("offset", "ascending")]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

Inputs = Sequence[tuple[str, StreamSchema]]
"""The connected ports of a processor and what comes there, the first one first."""
PortRows = tuple[int, pa.RecordBatch]
"""Of one of the Inputs, by its place: `key`, `partition`, `offset`, `time_us`, and the input's columns."""
Tagged = tuple[str, str | None, int, str]
"""A row of TAGGED."""


class Asked(Protocol):
    """The gate: `states` gives those of `keys`, `between` those of the keys from `first` to before `end`, and
    `keys` the first `most` of these keys, as the newest committed batch has left them; `keep` tells it which
    this one changes (pipeline_runtime.replica.batch_planner)."""

    def ask(self, op: str, **arguments: Any) -> Any: ...


class ProcessorWork(Protocol):
    """A group's processor, as one worker process runs it."""

    def made_of(
        self, arrived: Iterable[PortRows], gate: Asked, task: int = 0, *, at_end: bool = False
    ) -> pa.Table:
        """What comes of a batch's rows, as TAGGED says; its states are the gate's then."""
        ...


def current_state(state: Any, version: int, processor: Processor) -> Any:
    """A key's state, kept as `version`, as the processor keeps it now. ValueError: it is of a later one."""
    if version > processor.state_version:
        raise ValueError(
            f"this state was kept by version {version} of the operator, "
            f"and this is version {processor.state_version}: install the later one"
        )
    return processor.migrate(state, version) if version < processor.state_version else state


def tagged(rows: Sequence[Tagged]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in TAGGED]
    return pa.Table.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, TAGGED, strict=True)],
        schema=TAGGED,
    )


def rejected(element: str, data: Mapping[str, Any], error: Exception) -> Tagged:
    return dead(element, f"{type(error).__name__}: {error}", quoted(data))


def dead(element: str, reason: str, raw: str) -> Tagged:
    letter = {"reason": reason, "raw": raw}
    no_time_ms = 0  # the broker sets it
    return (f"{element}.{DEAD}", None, no_time_ms, json.dumps(letter, ensure_ascii=False))


def key_text(value: Any) -> str | None:
    """A value as the key of a record."""
    return None if value is None else str(value)


def python_values(values: pa.ChunkedArray, type_: FieldType) -> list[Any]:
    if type_ is not FieldType.TIMESTAMP:
        return values.to_pylist()  # type: ignore[no-any-return]
    return instants(values.cast(pa.int64()).to_pylist())


def instants(times_us: Iterable[int | None]) -> list[datetime | None]:
    # A product takes half of what it takes to make a timedelta of so many.
    return [None if time_us is None else EPOCH + time_us * _MICROSECOND for time_us in times_us]


# One encoder for all rows: json.dumps with these arguments makes a new one for each.
encoded = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), default=json_instant, allow_nan=False
).encode
