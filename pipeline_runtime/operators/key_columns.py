"""Rows of a batch by key, as columns. Shared by operators that look at the events of each key in turn.

A batch's rows are sorted by key. An operator then goes through the columns of one key as plain lists, which
saves a dict for each row, or takes all keys at once as arrays. The rows of a key are taken in their order, so
results do not depend on how the input is cut into batches. Output rows leave in the order of the input rows
that they come with.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.model.texts import texts
from pipeline_runtime.operators.by_key import KeyParameter
from pipeline_runtime.operators.event_time import untimed
from pipeline_runtime.operators.key_states import Column, KeyStates, readable
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.sdk import BatchProcessor, OperatorContext, States
from pipeline_runtime.operators.tables import rejects, with_rejects

# The states of so many keys are in memory together: a state may be large.
_KEYS_AT_ONCE = 1_000


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
        rejected += [rows.dead_letters() for rows in ports.values()]
        passed = ctx.input_schemas["in"].names if self.passes_on else ()
        return with_rejects(ports["in"].output(ctx.output_schema, passed), *rejected)

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
        return KeyedRows(table, schema, keys, codes)

    def _keys(self, table: pa.Table, schema: StreamSchema) -> pa.ChunkedArray:
        """Returns the key of each row. A row without one has the empty text."""
        name = self.key_field()
        keys = table["_key"] if name is None or schema.field(name) is None else texts(table[name])
        return pc.fill_null(keys, "") if keys.null_count else keys


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


class KeyArrays(KeySegments):
    """The base of operators that take the rows of all keys at once, as arrays, and their states, too."""

    @abstractmethod
    def state_columns(self, schema: StreamSchema) -> Mapping[str, Column]:
        """Returns what the state of a key has, by name. `schema` is that of the input `in`."""

    @abstractmethod
    def process_rows(self, rows: KeyedRows, states: KeyStates) -> None:
        """Processes the rows of all keys.

        `states` has the state of each of `rows.keys`, and is given the new ones. Output rows go to
        `rows.give`. A row that goes to the dead letters has to leave the state as it was.
        """

    def process_keys(self, ports: Mapping[str, KeyedRows], states: States) -> None:
        rows = ports["in"]
        if rows.keys:
            found = KeyStates(self.state_columns(rows.schema), states.get(rows.keys))
            self.process_rows(rows, found)
            for key, kept in zip(rows.keys, found.kept(), strict=True):
                states.put(key, kept)

    def readable_state(self, state: Any, inputs: Mapping[str, StreamSchema]) -> Any:
        return readable(self.state_columns(inputs["in"]), state)


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
