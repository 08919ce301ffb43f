"""Rows of one key after another, as columns. Shared by operators that look at the events of each key in turn.

A batch's rows are sorted by key. An operator then goes through the columns of one key as plain lists, which
saves a dict for each row. The rows of a key are taken one by one in their order, so results do not depend on
how the input is cut into batches.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.model.texts import texts
from pipeline_runtime.operators.by_key import EPOCH, KeyParameter
from pipeline_runtime.operators.event_time import untimed
from pipeline_runtime.operators.recording import arrow_type
from pipeline_runtime.operators.sdk import BatchProcessor, OperatorContext, States
from pipeline_runtime.operators.tables import rejects, with_rejects

# The states of so many keys are in memory together: a state may be large.
_KEYS_AT_ONCE = 1_000
_MICROSECOND = timedelta(microseconds=1)
_TIME = pa.timestamp("us", "UTC")
_NUMBER = FieldType.NUMBER

Made = tuple[Any, ...]
"""An output row: the place of the input row that it comes from, its event time in ms, and its values."""


class KeyedRows:
    """The rows of a batch that came to one port, sorted by key. A place is a number of a row, from 0."""

    def __init__(self, table: pa.Table, schema: StreamSchema, spans: Mapping[str, tuple[int, int]]) -> None:
        """`spans` says where the rows of each key are: the first place, and the place after the last."""
        self.table = table
        self.spans = spans
        self._schema = schema
        self._lists: dict[Any, list[Any]] = {}
        self.times_ms: list[int] = (table["_time"].cast(pa.int64()).to_numpy() // 1000).tolist()
        self.made: list[Made] = []
        self.rejected: list[tuple[int, str]] = []
        self._earlier: list[tuple[str, Sequence[Any]]] = []

    def values(self, name: str) -> list[Any]:
        """Returns a column's values. Points in time are datetimes."""
        if name not in self._lists:
            self._lists[name] = _values(self.table[name])
        return self._lists[name]

    def numbers(self, name: str) -> list[Any]:
        """Returns a column of numbers, in which true is 1."""
        return self._of_type(name, pa.int64()) if self.is_boolean(name) else self.values(name)

    def floats(self, name: str) -> list[float | None]:
        """Returns a column of numbers as floats."""
        return self._of_type(name, pa.float64())

    def kept_values(self) -> list[list[Any]]:
        """Returns the data columns in the form that a state holds. Points in time are in us."""
        return [
            self._of_type(field.name, pa.int64())
            if field.type is FieldType.TIMESTAMP
            else self.values(field.name)
            for field in self._schema.fields
        ]

    def add_earlier(self, key: str, values: Sequence[Any]) -> int:
        """Adds a row of an earlier batch, with its value of each of the columns of `kept_values`. Returns its
        place, for an output row."""
        self._earlier.append((key, values))
        return len(self.times_ms) + len(self._earlier) - 1

    def with_earlier(self) -> pa.Table:
        """Returns the data columns and `_key` of the rows, and behind them those that were added."""
        table = self.table.select([*self.names, "_key"])
        if not self._earlier:
            return table
        keys, values = zip(*self._earlier, strict=True)
        columns = {"_key": pa.array(keys, pa.string())}
        for field, column in zip(self._schema.fields, zip(*values, strict=True), strict=True):
            stored = pa.int64() if field.type is FieldType.TIMESTAMP else arrow_type(field.type)
            columns[field.name] = pa.array(column, stored).cast(arrow_type(field.type))
        return pa.concat_tables([table, pa.table(columns).select(table.column_names).cast(table.schema)])

    def is_boolean(self, name: str) -> bool:
        return bool(pa.types.is_boolean(self.table.schema.field(name).type))

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the data columns."""
        return self._schema.names

    def _of_type(self, name: str, type_: pa.DataType) -> list[Any]:
        found = self._lists.get((name, type_))  # it is asked for each key
        if found is None:
            is_it = self.table.schema.field(name).type == type_
            found = self.values(name) if is_it else _values(self.table[name].cast(type_, safe=False))
            self._lists[name, type_] = found
        return found

    def reject(self, place: int, error: Exception) -> None:
        self.rejected.append((place, f"{type(error).__name__}: {error}"))


class KeySegments(KeyParameter, BatchProcessor):
    """The base of operators that take a batch's rows sorted by key, and keep their states as they like.

    `params.key` names the column to group by. Without that, the record's key counts.
    """

    follow = "coalesced"
    passes_on: ClassVar[bool] = True
    """Whether the output has the columns of input `in`. The values that follow them are the last fields."""

    @abstractmethod
    def process_keys(self, ports: Mapping[str, KeyedRows], states: States) -> None:
        """Processes the rows of all keys. Output rows are appended to `made` of the first port's rows."""

    def numbers_of(self) -> tuple[str, ...]:
        """Returns the columns whose numbers have to be finite. Other rows go to the dead letters."""
        return (self.params.column,)

    def process_batch(
        self, inputs: Mapping[str, pa.Table], states: States, ctx: OperatorContext, *, at_end: bool
    ) -> pa.Table:
        rejected: list[pa.Table | None] = []
        ports = {
            port: self._sorted(inputs[port], ctx.input_schemas[port], needed, rejected)
            for port, needed in self._needed(ctx.input_schemas["in"]).items()
        }
        self.process_keys(ports, states)
        for rows in ports.values():
            if rows.rejected:
                places, reasons = zip(*rows.rejected, strict=True)
                rejected.append(rejects(rows.table.take(pa.array(places, pa.int64())), rows.names, reasons))
        return with_rejects(self._output(ports["in"], ctx), *rejected)

    def _needed(self, schema: StreamSchema) -> dict[str, Collection[str]]:
        """Returns for each port the columns whose numbers have to be finite."""
        needed = schema.names if self.passes_on else self.numbers_of()
        return {port.name: needed if port.name == "in" else () for port in self.inputs}

    def _sorted(
        self,
        table: pa.Table,
        schema: StreamSchema,
        needed: Collection[str],
        rejected: list[pa.Table | None],
    ) -> KeyedRows:
        """Returns a port's rows. Those that no operator can take go to `rejected`."""
        no_time = untimed(table, schema.names)
        if no_time is not None:
            rejected.append(no_time)
            table = table.filter(pc.is_valid(table["_time"]))
        keys, codes = _encoded(self._keys(table, schema))
        wrong = _not_finite(table, schema, needed)
        if wrong is not None:
            found = table.filter(pc.is_valid(wrong))
            rejected.append(rejects(found, schema.names, wrong.drop_null().to_pylist()))
            fits = pc.is_null(wrong)
            table, codes = table.filter(fits), codes[fits.to_numpy()]
        if len(keys) > 1:
            table = table.take(pa.array(np.argsort(codes, kind="stable")))
        ends = np.cumsum(np.bincount(codes, minlength=len(keys))).tolist()
        spans = zip([0, *ends], ends)  # noqa: B905 - ends go on
        return KeyedRows(
            table, schema, {key: span for key, span in zip(keys, spans, strict=True) if span[0] < span[1]}
        )

    def _keys(self, table: pa.Table, schema: StreamSchema) -> pa.ChunkedArray:
        """Returns the key of each row. A row without one has the empty text."""
        name = self.key_field()
        keys = table["_key"] if name is None or schema.field(name) is None else texts(table[name])
        return pc.fill_null(keys, "") if keys.null_count else keys

    def _output(self, rows: KeyedRows, ctx: OperatorContext) -> pa.Table:
        outputs = ctx.output_schema
        key = () if outputs.key is None else (outputs.key,)
        passed = ctx.input_schemas["in"].names if self.passes_on else key
        new = [field for field in outputs.fields if field.name not in passed]
        nothing = [()] * (2 + len(new))
        places, times_ms, *values = zip(*rows.made, strict=True) if rows.made else nothing
        given = rows.with_earlier().select([*dict.fromkeys((*passed, "_key"))])
        taken = np.array(places, np.int64)
        if len(taken) != len(given) or not np.array_equal(taken, np.arange(len(given))):
            given = given.take(pa.array(taken))
        columns = {name: given[name] for name in passed} | _columns(new, values)
        columns["_key"] = given["_key"]
        return pa.table({**columns, "_time": _column(times_ms, FieldType.TIMESTAMP)})


class KeyColumns(KeySegments):
    """The base of operators that go through the rows of each key in their order, as columns."""

    @abstractmethod
    def process_key(self, rows: KeyedRows, first: int, end: int, state: dict[str, Any]) -> None:
        """Processes the rows of one key: those from place `first` to before `end`.

        It changes `state` in place, appends output rows to `rows.made`, and calls `rows.reject` for a
        row that goes to the dead letters, which then has to leave `state` as it was. It must not raise.
        """

    def process_keys(self, ports: Mapping[str, KeyedRows], states: States) -> None:
        rows = ports["in"]
        for some in key_portions(rows.spans):
            for key, stored in zip(some, states.get(some), strict=True):
                state = stored or {}
                self.process_key(rows, *rows.spans[key], state)
                states.put(key, state)


def key_portions(keys: Iterable[str]) -> Iterator[list[str]]:
    """Yields the keys, so many at a time as may have their states in memory together."""
    names = iter(keys)
    while some := list(islice(names, _KEYS_AT_ONCE)):
        yield some


def _not_finite(table: pa.Table, schema: StreamSchema, needed: Collection[str]) -> pa.ChunkedArray | None:
    """Returns for each row why it goes to the dead letters, or null if its numbers are finite. Returns
    None if all rows have finite numbers."""
    found = None
    for field in schema.fields:
        if field.name not in needed or field.type is not FieldType.NUMBER:
            continue
        values = table[field.name]
        fits = pc.is_finite(values)
        if pc.all(fits).as_py() is not False:  # it looks at no nulls
            continue
        said = pc.binary_join_element_wise(
            "ValueError:", values.cast(pa.string()), "is not a finite number", " "
        )
        why = pc.if_else(pc.fill_null(fits, fill_value=True), pa.scalar(None, pa.string()), said)
        found = why if found is None else pc.coalesce(found, why)
    return found


def _encoded(keys: pa.ChunkedArray) -> tuple[list[str], NDArray[np.int32]]:
    """Returns the keys in the order in which they came first, and for each row the place of its key there."""
    encoded = pc.dictionary_encode(
        pa.concat_arrays(keys.chunks) if keys.num_chunks else pa.array([], pa.string())
    )
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        times_us = column.cast(pa.int64()).to_pylist()
        return [None if each is None else EPOCH + each * _MICROSECOND for each in times_us]
    if column.null_count or not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        return column.to_pylist()  # type: ignore[no-any-return]
    return column.to_numpy().tolist()  # type: ignore[no-any-return]


def _columns(fields: Sequence[Field], values: Sequence[Sequence[Any]]) -> dict[str, pa.Array]:
    """Returns the column of each field. Columns of numbers are made at once: in a batch of few rows it is the
    calls that take the time."""
    pairs = list(zip(fields, values, strict=True))
    found = {field.name: _column(each, field.type) for field, each in pairs if field.type is not _NUMBER}
    numbers = [(field.name, each) for field, each in pairs if field.type is _NUMBER]
    end_to_end = pa.array([value for _, column in numbers for value in column], pa.float64())
    for place, (name, column) in enumerate(numbers):
        found[name] = end_to_end.slice(place * len(column), len(column))
    return found


def _column(values: Sequence[Any], type_: FieldType) -> pa.Array:
    """Returns an output's column. Points in time are in ms, or datetimes."""
    if type_ is not FieldType.TIMESTAMP:
        return pa.array(values, arrow_type(type_))
    if any(isinstance(value, datetime) for value in values):
        return pa.array(values, _TIME)
    return pa.array(values, pa.int64()).cast(pa.timestamp("ms", "UTC")).cast(_TIME)
