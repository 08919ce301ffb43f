"""Aggregates that grow batch by batch, made from many rows at once as Arrow columns.

What is kept for a group of rows (a window, a key) is a list of JSON values, one for each `Part`. Parts of two
batches are merged, and results are made from the parts. Timestamps are in microseconds until then.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.aggregates import Aggregate, Function
from pipeline_runtime.operators.recording import arrow_type

Kept = list[Any]
"""The values kept for one group, in the order of the Accumulation's parts. A part without values is None."""
Group = tuple[Any, ...]
"""The values that the group's rows have in common."""


_ORDER = ("_time", "_partition", "_offset")
_INT64_MAX = 2**63 - 1


class Kind(StrEnum):
    ROWS = "rows"  # the number of rows
    COUNT = "count"  # the number of rows with a value
    SUM = "sum"  # for integers: exact, however large
    TOTAL = "total"  # as doubles
    MIN = "min"
    MAX = "max"
    FIRST = "first"  # [time_us, partition, offset, value]
    LAST = "last"
    MOMENTS = "moments"  # [count, mean, sum of the squared differences from the mean]


@dataclass(frozen=True)
class Part:
    kind: Kind
    column: str | None = None


class Accumulation:
    """The parts of some aggregates over rows of one schema."""

    def __init__(self, aggregates: Sequence[Aggregate], schema: StreamSchema, *more: Part) -> None:
        """`more` are parts needed besides those of the aggregates."""
        self._aggregates = aggregates
        self._of = {item: _parts(item, schema) for item in aggregates}
        self.parts: tuple[Part, ...] = tuple(dict.fromkeys([*sum(self._of.values(), ()), *more]))

    def of(self, rows: pa.Table, by: Sequence[str]) -> dict[Group, Kept]:
        """Returns what is kept, separately for each group of rows with the same values in `by`."""
        groups = [_as_group(rows[name]) for name in by]
        if any(part.kind in (Kind.FIRST, Kind.LAST) for part in self.parts):
            order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in _ORDER])
            rows, groups = rows.take(order), [each.take(order) for each in groups]
        columns = {f"g{place}": each for place, each in enumerate(groups)}
        asked: list[tuple[Any, str]] = []
        for place, part in enumerate(self.parts):
            inputs = _columns_of(rows, part)
            columns |= {f"p{place}_{index}": each for index, each in enumerate(inputs)}
            asked += [
                (f"p{place}_{index}" if inputs else [], function)
                for index, functions in enumerate(_ARROW[part.kind])
                for function in functions
            ]
        made = pa.table(columns).group_by(list(columns)[: len(by)], use_threads=False).aggregate(asked)
        values = [made[f"g{place}"].to_pylist() for place in range(len(by))]
        kept = [self._kept(made, place) for place in range(len(self.parts))]
        return dict(zip(zip(*values, strict=True), map(list, zip(*kept, strict=True)), strict=True))

    def _kept(self, made: pa.Table, place: int) -> Iterator[Any]:
        part = self.parts[place]
        names = [name for name in made.column_names if name.startswith(f"p{place}_")]
        values = [made[name].to_pylist() for name in names]
        match part.kind:
            case Kind.ROWS:
                return iter(made["count_all"].to_pylist())
            case Kind.SUM:
                return (None if each is None else int(each) for each in values[0])
            case Kind.FIRST | Kind.LAST:
                return (None if each[-1] is None else list(each) for each in zip(*values, strict=True))
            case Kind.MOMENTS:
                return (
                    [count, mean, variance * count] if count else None
                    for count, mean, variance in zip(*values, strict=True)
                )
            case _:
                return iter(values[0])

    def merged(self, one: Kept | None, other: Kept) -> Kept:
        """Returns what is kept for the rows of both; `one` came before."""
        if one is None:
            return other
        return [_merged(*each) for each in zip((part.kind for part in self.parts), one, other, strict=True)]

    def results(self, kept: Sequence[Kept], outputs: StreamSchema) -> dict[str, pa.Array]:
        """Returns the aggregates' columns, with the types of `outputs`."""
        parts = dict(
            zip(self.parts, zip(*kept, strict=True) if kept else [()] * len(self.parts), strict=True)
        )
        return {
            item.name: _array(
                _results(item.function, {part.kind: parts[part] for part in self._of[item]}),
                _type(outputs, item.name),
            )
            for item in self._aggregates
        }

    def readable(self, kept: Kept, outputs: StreamSchema) -> dict[str, Any]:
        """Returns the aggregates so far, for a user who looks at the state."""
        found = {name: column[0].as_py() for name, column in self.results([kept], outputs).items()}
        return {name: str(each) if isinstance(each, datetime) else each for name, each in found.items()}

    def value(self, part: Part, kept: Kept) -> Any:
        return kept[self.parts.index(part)]


def readable(group: Group) -> str:
    """Returns the group's values for a user who looks at its state."""
    return ", ".join(value if isinstance(value, str) else json.dumps(value) for value in group)


def column_of(values: Sequence[Any], name: str, outputs: StreamSchema) -> pa.Array:
    """Returns a column of the output from the groups' values, which `Accumulation.of` returned."""
    return _array(values, _type(outputs, name))


# For each column that `_columns_of` returns: what Arrow makes of it.
_ARROW: dict[Kind, tuple[tuple[str, ...], ...]] = {
    Kind.ROWS: (("count_all",),),
    Kind.COUNT: (("count",),),
    Kind.SUM: (("sum",),),
    Kind.TOTAL: (("sum",),),
    Kind.MIN: (("min",),),
    Kind.MAX: (("max",),),
    Kind.FIRST: (("first",),) * 4,
    Kind.LAST: (("last",),) * 4,
    Kind.MOMENTS: (("count", "mean", "variance"),),
}


def _parts(aggregate: Aggregate, schema: StreamSchema) -> tuple[Part, ...]:
    column = aggregate.column
    if column is None:
        return (Part(Kind.ROWS),)
    field = schema.field(column)
    exact = field is not None and field.type is FieldType.INTEGER
    kinds: tuple[Kind, ...]
    match aggregate.function:
        case Function.AVG:
            kinds = (Kind.TOTAL, Kind.COUNT)
        case Function.SUM:
            kinds = (Kind.SUM,) if exact else (Kind.TOTAL,)
        case Function.STDDEV:
            kinds = (Kind.MOMENTS,)
        case Function.RELATIVE_VARIATION:
            kinds = (Kind.MIN, Kind.MAX, Kind.TOTAL, Kind.COUNT)
        case alike:
            kinds = (Kind(alike.value),)
    return tuple(Part(kind, column) for kind in kinds)


def _columns_of(rows: pa.Table, part: Part) -> list[pa.ChunkedArray]:
    """Returns the columns from which Arrow makes the part."""
    if part.column is None:
        return []
    values = rows[part.column]
    match part.kind:
        case Kind.TOTAL | Kind.MOMENTS:
            return [values.cast(pa.float64(), safe=False)]  # as near as doubles come
        case Kind.SUM:
            return [_wide(values)]
        case Kind.FIRST | Kind.LAST:
            # Arrow takes the first row that is not null, and all columns from that row.
            given = pc.is_valid(values)
            none = pa.scalar(None, pa.int64())
            return [
                *(pc.if_else(given, _plain(rows[name]).cast(pa.int64()), none) for name in _ORDER),
                _plain(values),
            ]
        case _:
            return [_plain(values)]


def _wide(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns integers whose sum is right: an int64 would overflow to the lowest value."""
    ends = pc.min_max(values).as_py()
    largest = max(abs(ends["min"] or 0), abs(ends["max"] or 0))
    return values if largest * len(values) <= _INT64_MAX else values.cast(pa.decimal128(38, 0))


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values


def _as_group(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Makes 0.0 and -0.0 one group. Only Arrow takes them for two."""
    return pc.add(values, 0.0) if pa.types.is_floating(values.type) else _plain(values)


def _merged(kind: Kind, one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    match kind:
        case Kind.MIN | Kind.FIRST:
            return min(one, other)
        case Kind.MAX | Kind.LAST:
            return max(one, other)
        case Kind.MOMENTS:
            return _merged_moments(one, other)
        case _:
            return one + other


def _merged_moments(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing sample variances
    (1979)."""
    (count_a, mean_a, squares_a), (count_b, mean_b, squares_b) = one, other
    count, apart = count_a + count_b, mean_b - mean_a
    mean = mean_a + apart * count_b / count
    return [count, mean, squares_a + squares_b + apart * apart * count_a * count_b / count]


def _results(function: Function, of: Mapping[Kind, Sequence[Any]]) -> Sequence[Any]:
    """Returns the result for each group. It is None if it is no number that JSON can hold, or if there is
    nothing to make it from. `of` has the groups' values of each part."""
    match function:
        case Function.FIRST | Function.LAST:
            [found] = of.values()
            return [None if each is None else each[-1] for each in found]
        case Function.MIN | Function.MAX:
            [found] = of.values()
            return found
        case Function.COUNT:
            return of[Kind.ROWS] if Kind.ROWS in of else of[Kind.COUNT]
        case Function.SUM if Kind.SUM in of:
            return [None if each is None else _whole(each) for each in of[Kind.SUM]]
        case Function.SUM:
            made = of[Kind.TOTAL]
        case Function.AVG:
            made = _averages(of)
        case Function.RELATIVE_VARIATION:
            ends = zip(of[Kind.MIN], of[Kind.MAX], _averages(of), strict=True)
            made = [(float(most) - float(least)) / mean * 100 if mean else None for least, most, mean in ends]
        case Function.STDDEV:
            made = [_deviation(*(each or (0, 0, 0))) for each in of[Kind.MOMENTS]]
    return [each if each is None or math.isfinite(each) else None for each in made]


def _averages(of: Mapping[Kind, Sequence[Any]]) -> list[float | None]:
    both = zip(of[Kind.TOTAL], of[Kind.COUNT], strict=True)
    return [total / count if count else None for total, count in both]


def _whole(total: int) -> int | None:
    return total if -(2**63) <= total <= _INT64_MAX else None


def _deviation(count: int, _: float, squares: float) -> float | None:
    return math.sqrt(squares / (count - 1)) if count > 1 else None


def _type(outputs: StreamSchema, name: str) -> pa.DataType:
    field = outputs.field(name)
    assert field is not None, name
    return arrow_type(field.type)


def _array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(type_):
        return pa.array(values, pa.int64()).cast(type_)
    return pa.array(values, type_)
