"""Aggregates that grow batch by batch, made from many rows at once as columns.

What is kept for a group of rows (a window, a key) is made of `Part`s. Here it is in arrays, with a row for
each group. A state holds what is kept for one group, as a list of JSON values, one for each part. Parts of
two batches are merged, and results are made from the parts. Timestamps are in microseconds until then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.aggregates import Aggregate, Function
from pipeline_runtime.operators.recording import arrow_type

Kept = list[Any]
"""What a state holds for one group, in the order of the Accumulation's parts. A part without values is
None."""
Group = tuple[Any, ...]
"""The values that the group's rows have in common."""
Columns = tuple[NDArray[Any], ...]
"""What is kept for many groups: the arrays of each part, in the order of the Accumulation's parts."""


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
    """Its arrays: COUNT and ROWS have the counts alone, MOMENTS three of the same name. The others have which
    groups have a value, and the values."""

    kind: Kind
    column: str | None = None


@dataclass(frozen=True)
class Groups:
    """Groups of rows: the values that the rows of each have in common, column by column, and what is kept."""

    values: list[pa.Array]
    kept: Columns

    def tuples(self) -> list[Group]:
        return list(zip(*(each.to_pylist() for each in self.values), strict=True))


@dataclass(frozen=True)
class _Form:
    """How the values of a part stand in an array."""

    dtype: type
    fill: Any  # stands for no value; added to one, it leaves it as it is

    def array(self, values: Sequence[Any]) -> Columns:
        given = np.array([value is not None for value in values], bool)
        filled = (self.fill if value is None else value for value in values)
        return given, np.fromiter(filled, self.dtype, len(values))

    def array_of(self, values: pa.ChunkedArray) -> Columns:
        if self.dtype is object:
            return self.array(values.to_pylist())
        given = values.is_valid().to_numpy()
        return given, (values.fill_null(self.fill) if values.null_count else values).to_numpy()


class Accumulation:
    """The parts of some aggregates over rows of one schema."""

    def __init__(self, aggregates: Sequence[Aggregate], schema: StreamSchema, *more: Part) -> None:
        """`more` are parts needed besides those of the aggregates."""
        self._aggregates = aggregates
        self._of = {item: _parts(item, schema) for item in aggregates}
        self.parts: tuple[Part, ...] = tuple(dict.fromkeys([*sum(self._of.values(), ()), *more]))
        self._forms = [_form(part, schema) for part in self.parts]
        ends = accumulate((_ARRAYS.get(part.kind, 2) for part in self.parts), initial=0)
        self._places = {part: slice(*each) for part, each in zip(self.parts, pairwise(ends), strict=True)}

    def of(self, rows: pa.Table, by: Sequence[str]) -> Groups:
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
        values = [made[f"g{place}"].combine_chunks() for place in range(len(by))]
        return Groups(values, sum((self._made(made, place) for place in range(len(self.parts))), ()))

    def _made(self, made: pa.Table, place: int) -> Columns:
        part, form = self.parts[place], self._forms[place]
        found = [made[name] for name in made.column_names if name.startswith(f"p{place}_")]
        match part.kind:
            case Kind.ROWS:
                return (made["count_all"].to_numpy(),)
            case Kind.COUNT:
                return (found[0].to_numpy(),)
            case Kind.SUM:
                return form.array([None if each is None else int(each) for each in found[0].to_pylist()])
            case Kind.FIRST | Kind.LAST:
                values = zip(*(each.to_pylist() for each in found), strict=True)
                return form.array([None if each[-1] is None else list(each) for each in values])
            case Kind.MOMENTS:
                count, mean, variance = (each.fill_null(0).to_numpy() for each in found)
                return count, mean, variance * count
            case _:
                return form.array_of(found[0])

    def of_states(self, kept: Sequence[Kept | None]) -> Columns:
        """Returns columns of what states hold. None stands for a group without rows."""
        columns: Columns = ()
        for place, (part, form) in enumerate(zip(self.parts, self._forms, strict=True)):
            values = [None if each is None else each[place] for each in kept]
            match part.kind:
                case Kind.ROWS | Kind.COUNT:
                    columns += (np.array([each or 0 for each in values], np.int64),)
                case Kind.MOMENTS:
                    count, *others = np.array([each or (0, 0, 0) for each in values], float).reshape(-1, 3).T
                    columns += (count.astype(np.int64), *others)
                case _:
                    columns += form.array(values)
        return columns

    def states(self, columns: Columns) -> list[Kept]:
        """Returns what states hold, group by group."""
        found: list[Iterable[Any]] = []
        for part, place in self._places.items():
            lists = [each.tolist() for each in columns[place]]
            match part.kind:
                case Kind.ROWS | Kind.COUNT:
                    found += lists
                case Kind.MOMENTS:
                    found.append([[*each] if each[0] else None for each in zip(*lists, strict=True)])
                case _:
                    found.append([each if given else None for given, each in zip(*lists, strict=True)])
        return list(map(list, zip(*found, strict=True)))

    def merged(self, one: Columns, other: Columns) -> Columns:
        """Returns what is kept for the rows of both, group by group; those of `one` came before."""
        columns: Columns = ()
        with np.errstate(all="ignore"):  # what is too large for a number is null in the result
            for part, place in self._places.items():
                columns += _merged(part.kind, one[place], other[place])
        return columns

    def results(self, columns: Columns, outputs: StreamSchema) -> dict[str, pa.Array]:
        """Returns the aggregates' columns, with the types of `outputs`."""
        with np.errstate(all="ignore"):
            return {
                item.name: _result(
                    item.function,
                    {part.kind: columns[self._places[part]] for part in self._of[item]},
                    _type(outputs, item.name),
                )
                for item in self._aggregates
            }

    def readable(self, kept: Kept, outputs: StreamSchema) -> dict[str, Any]:
        """Returns the aggregates so far, for a user who looks at the state."""
        results = self.results(self.of_states([kept]), outputs)
        found = {name: column[0].as_py() for name, column in results.items()}
        return {name: str(each) if isinstance(each, datetime) else each for name, each in found.items()}

    def arrays(self, part: Part, columns: Columns) -> Columns:
        """Returns the arrays of a part."""
        return columns[self._places[part]]


def readable(group: Group) -> str:
    """Returns the group's values for a user who looks at its state."""
    return ", ".join(value if isinstance(value, str) else json.dumps(value) for value in group)


def column_of(values: Sequence[Any], name: str, outputs: StreamSchema) -> pa.Array:
    """Returns a column of the output from the groups' values, which `Accumulation.of` returned."""
    type_ = _type(outputs, name)
    return pa.array(values, pa.int64() if pa.types.is_timestamp(type_) else type_).cast(type_)


_ARRAYS = {Kind.ROWS: 1, Kind.COUNT: 1, Kind.MOMENTS: 3}  # the others have 2
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


def _form(part: Part, schema: StreamSchema) -> _Form:
    match part.kind:
        case Kind.SUM:
            return _Form(object, 0)  # as large as it may become
        case Kind.TOTAL:
            return _Form(float, -0.0)
        case Kind.FIRST | Kind.LAST:
            return _Form(object, [])
    field = schema.field(part.column or "")
    match None if field is None else field.type:
        case FieldType.NUMBER:
            return _Form(float, 0.0)
        case FieldType.STRING:
            return _Form(object, "")
        case FieldType.BOOLEAN:
            return _Form(bool, False)
        case _:  # also the event time
            return _Form(np.int64, 0)


def _merged(kind: Kind, one: Columns, other: Columns) -> Columns:
    match kind:
        case Kind.MIN | Kind.FIRST:
            return _chosen(one, other, other[1] < one[1])
        case Kind.MAX | Kind.LAST:
            return _chosen(one, other, other[1] > one[1])
        case Kind.MOMENTS:
            return _merged_moments(one, other)
        case Kind.SUM | Kind.TOTAL:
            return one[0] | other[0], one[1] + other[1]
        case _:
            return (one[0] + other[0],)


def _chosen(one: Columns, other: Columns, is_better: NDArray[Any]) -> Columns:
    takes_other = other[0] & (~one[0] | is_better.astype(bool))
    return one[0] | other[0], np.where(takes_other, other[1], one[1])


def _merged_moments(one: Columns, other: Columns) -> Columns:
    """Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing sample variances
    (1979)."""
    (count_a, mean_a, squares_a), (count_b, mean_b, squares_b) = one, other
    count, apart = count_a + count_b, mean_b - mean_a
    mean = mean_a + apart * count_b / count
    squares = squares_a + squares_b + apart * apart * count_a * count_b / count
    alone_a, alone_b = count_b == 0, count_a == 0
    return (
        count,
        np.where(alone_a, mean_a, np.where(alone_b, mean_b, mean)),
        np.where(alone_a, squares_a, np.where(alone_b, squares_b, squares)),
    )


def _result(function: Function, of: Mapping[Kind, Columns], type_: pa.DataType) -> pa.Array:
    """Returns the result for each group. It is null if it is no number that JSON can hold, or if there is
    nothing to make it from. `of` has the arrays of each part."""
    match function:
        case Function.COUNT:
            [[counts]] = of.values()
            return pa.array(counts, type_)
        case Function.MIN | Function.MAX | Function.FIRST | Function.LAST:
            [[given, values]] = of.values()
            found = [each[-1] if each else None for each in values] if _is_placed(function) else values
            return _array(found, type_, given)
        case Function.SUM if Kind.SUM in of:
            given, values = of[Kind.SUM]
            return _array(values, type_, given & np.array([_is_64_bits(each) for each in values], bool))
        case Function.SUM:
            given, values = of[Kind.TOTAL]
        case Function.AVG:
            given, values = _averages(of)
        case Function.RELATIVE_VARIATION:
            given, means = _averages(of)
            given = given & (means != 0)
            values = (of[Kind.MAX][1].astype(float) - of[Kind.MIN][1].astype(float)) / means * 100
        case Function.STDDEV:
            counts, _, squares = of[Kind.MOMENTS]
            given, values = counts > 1, np.sqrt(squares / (counts - 1))
    return _array(values, type_, given & np.isfinite(values))


def _is_placed(function: Function) -> bool:
    """Whether the values are kept with where they come from."""
    return function in (Function.FIRST, Function.LAST)


def _averages(of: Mapping[Kind, Columns]) -> Columns:
    totals, [counts] = of[Kind.TOTAL][1], of[Kind.COUNT]
    return counts > 0, totals / counts


def _is_64_bits(total: int) -> bool:
    return -(2**63) <= total <= _INT64_MAX


def _type(outputs: StreamSchema, name: str) -> pa.DataType:
    field = outputs.field(name)
    assert field is not None, name
    return arrow_type(field.type)


def _array(values: Sequence[Any] | NDArray[Any], type_: pa.DataType, given: NDArray[Any]) -> pa.Array:
    """Returns a column of the values. Those that are not given are null."""
    stored = pa.int64() if pa.types.is_timestamp(type_) else type_
    return pa.array(values, stored, mask=~given).cast(type_)
