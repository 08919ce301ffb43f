"""The output of a KeyedProcessor for a batch, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from pipeline_runtime.batch.fields import Fields
from pipeline_runtime.batch.rows import EPOCH, Inputs, Letter
from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.row import OutputRow, RowPlus

_MILLISECOND = timedelta(milliseconds=1)
_BEFORE_FIELDS = 3  # key, time and place


class Given(Protocol):
    """The rows of one port."""

    table: pa.Table

    @property
    def not_finite(self) -> frozenset[int]:
        """The places of the rows that have a number which JSON cannot hold."""
        ...


class _Form:
    """A form of output rows. They pass on columns of their input row if its `schema` is given."""

    def __init__(self, outputs: StreamSchema, schema: StreamSchema | None = None) -> None:
        given = {} if schema is None else {field.name: field.type for field in schema.fields}
        passed = [field.name for field in outputs.fields if given.get(field.name) is field.type]
        self.passed = frozenset(passed)
        self.numbers_passed = any(given[name] is FieldType.NUMBER for name in passed)
        # Columns whose type is another in the output are converted value by value.
        self.read = [name for name in outputs.names if name in given and name not in self.passed]
        self.fields = Fields(outputs, passed)


class OutputForms:
    """The forms of an operator's output rows: those that give all their values, and for each port those that
    add values to one of its rows."""

    def __init__(self, outputs: StreamSchema, inputs: Inputs) -> None:
        self.whole = _Form(outputs)
        self.plus = [_Form(outputs, schema) for _, schema in inputs]


class KeyOutput:
    """The rows that come out of a batch, and the dead letters."""

    def __init__(self, forms: OutputForms, ports: Sequence[Given]) -> None:
        self.letters: list[Letter] = []
        self._ports = ports
        self._whole = _Part(forms.whole)
        self._plus = [_Part(form) for form in forms.plus]
        self._count = 0

    def add(
        self,
        key: str,
        port: int,
        time_ms: int,
        made: Iterable[OutputRow],
        fired: Iterable[tuple[int, OutputRow]] = (),
    ) -> None:
        """Takes all that came of one row of this port: of timers that fired before it, each behind its time,
        and of the row itself. Raises TypeError or ValueError where a value does not fit its field, and then
        takes nothing."""
        found = [self._fitted(key, port, due_ms, row) for due_ms, row in fired] if fired else []
        for row in made:
            found.append(self._fitted(key, port, time_ms, row))
        for part, values in found:
            part.numbers.append(self._count)
            part.values += values
            self._count += 1

    def table(self) -> pa.Table:
        """Returns the rows in the order in which they came: the output's fields, `_key` and `_time`."""
        tables = [(self._whole, None), *zip(self._plus, self._ports, strict=True)]
        found = [(part, part.table(port)) for part, port in tables if part.numbers]
        if len(found) < 2:
            return found[0][1] if found else self._whole.table(None)
        numbers = np.concatenate([part.numbers for part, _ in found])
        return pa.concat_tables([table for _, table in found]).take(pa.array(np.argsort(numbers)))

    def _fitted(self, key: str, port: int, when_ms: int, row: OutputRow) -> tuple[_Part, tuple[Any, ...]]:
        """Returns where the row belongs, and its values there."""
        if isinstance(row, RowPlus):
            part, place, values = self._plus[port], row.place, row.values
            form = part.form
            if form.numbers_passed and place in self._ports[port].not_finite:
                raise ValueError("a number is infinite or NaN, which JSON does not have")
            if not form.passed.isdisjoint(values):
                part, values = self._whole, {**row.row, **values}
            elif form.read:
                values = {**{name: row.row[name] for name in form.read}, **values}
        else:
            part, place, values = self._whole, 0, row
        if "_time" in values:
            when_ms = (values["_time"] - EPOCH) // _MILLISECOND
        return part, (key, when_ms, place, *part.form.fields.fitted(values))


class _Part:
    """The output rows of one form."""

    def __init__(self, form: _Form) -> None:
        self.form = form
        # One list costs less than a tuple for each row, which Python's garbage collector would look at.
        self.values: list[Any] = []  # of each row: key, time in ms, place of the input row, and the fields
        self.numbers: list[int] = []  # of the rows, among all that come out

    def table(self, port: Given | None) -> pa.Table:
        width = _BEFORE_FIELDS + self.form.fields.count
        keys, times_ms, places, *columns = (self.values[first::width] for first in range(width))
        passed: Mapping[str, pa.ChunkedArray] = {}
        if port is not None and self.form.passed:
            taken = port.table.select([*self.form.passed]).take(pa.array(places, pa.int64()))
            passed = dict(zip(taken.column_names, taken.columns, strict=True))
        return self.form.fields.table(columns, keys, times_ms, passed)
