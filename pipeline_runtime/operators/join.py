"""Join: two streams on a key within a time bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field

from pipeline_runtime.model.faults import words_for_pattern
from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import finite
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, SchemaCheck
from pipeline_runtime.operators.event_time import (
    DIGITS,
    FIRST_US,
    in_us,
    newest_before,
    of_sortable,
    sortable,
    times_us,
    too_late,
    untimed,
    utc,
)
from pipeline_runtime.operators.lineage import ONE_OF_THEM, Came, Found, TracedRow, between, has_values, named
from pipeline_runtime.operators.recording import arrow_type
from pipeline_runtime.operators.sdk import BatchProcessor, OperatorContext, Params, Port, States
from pipeline_runtime.operators.tables import with_rejects

_LEFT, _RIGHT = "left", "right"
# Besides the data columns of a side's rows: what they are paired by, as text, and their time.
_KEY, _TIME = "_pairs_by", "_time"
_SLOT_US_MIN = 1_000_000
_DROPPED_MAX = 10_000  # the most slots in one batch
_TIMESTAMP = arrow_type(FieldType.TIMESTAMP)

Kept = dict[str, list[Any]]
"""Rows of one side, by column; times in us since 1970."""

_PREFIX = words_for_pattern(r"^[^_`.\x00-\x1f]", "it must not begin with an underscore, a dot or a backquote")


class JoinParams(Params):
    left_key: ColumnName = Field(
        title="Column of left", description="the column of left by which rows are paired"
    )
    right_key: ColumnName = Field(
        title="Column of right",
        description="the column of right whose value has to be equal; of the same type, or both are numbers",
    )
    within_s: float = Field(
        ge=0,
        le=7 * 86400,
        title="How far apart two rows may be, in seconds",
        description="how far apart the two event times may be",
    )
    delay_s: float = Field(
        default=0.0,
        ge=0,
        le=7 * 86400,
        title="How late a row may come, in seconds",
        description="how late a row may arrive",
    )
    right_prefix: str = Field(
        default="right_",
        min_length=1,
        max_length=40,
        pattern=_PREFIX,
        title="Put before names of right that left has, too",
        description="what is put before the name of a right column if left has that name, too",
    )


class Join(BatchProcessor):
    """Pairs each row of `left` with each row of `right` that has the same key and whose event time is at most
    `within_s` away.

    The element emits a pair as soon as both rows are there. It drops a row without a partner when no partner
    can arrive any more. A row whose key is null has no partner. A row goes to the dead letters if its event
    time is more than `delay_s` before that of an earlier row of its stream, or if it has no event time.

    The element keeps a row until the other stream's event time is `within_s` + `delay_s` past it. So if one
    stream stops, the rows of the other one wait.

    Output: the left columns, then the right columns without the right key. A right column whose name is taken
    gets `right_prefix`. The event time is the later one of the two.
    """

    type = "join"
    title = "Join"
    summary = "Pairs rows of two streams that have the same key and are close in time"
    category = "join"
    icon = "merge"
    Params = JoinParams
    inputs = (Port(_LEFT), Port(_RIGHT))
    state_params = frozenset({"left_key", "right_key", "within_s", "right_prefix"})
    keeps = "the rows that wait for a partner: they are no longer paired"
    follow = "exact"
    example = {"left_key": "key", "right_key": "key", "within_s": 5}

    params: JoinParams

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        within_ms = -(-self._within_us // 1000)
        right = {output.name: name for name, output in self.right_fields(inputs[_LEFT], inputs[_RIGHT])}
        sides = {
            _LEFT: named(inputs[_LEFT].names),
            _RIGHT: {**right, self.params.left_key: self.params.right_key},
        }

        def of(names: Mapping[str, str]) -> Came:
            def chosen(rows: Sequence[TracedRow]) -> Found:
                near = between(rows, made.time_ms - within_ms, made.time_ms)
                found = [row for row in near if has_values(made, names)(row)]
                return Found(found, ONE_OF_THEM if len(found) > 1 else "")

            return Came(made.time_ms - within_ms, made.time_ms, chosen)

        return {port: of(names) for port, names in sides.items()}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        left, right = inputs["left"], inputs["right"]
        with SchemaCheck() as check:
            a = check.column(left, self.params.left_key, "params.left_key")
            b = check.column(right, self.params.right_key, "params.right_key")
            if a and b and a.type != b.type and not (a.type in NUMERIC and b.type in NUMERIC):
                message = f'"{b.name}" is {b.type.words}, but the left key "{a.name}" is {a.type.words}'
                check.fail("params.right_key", message)
            fields = (*left.fields, *(field for _, field in self.right_fields(left, right)))
            check.unique([field.name for field in fields], "params.right_prefix")
        return StreamSchema(fields=fields, key=self.params.left_key)

    def right_fields(self, left: StreamSchema, right: StreamSchema) -> list[tuple[str, SchemaField]]:
        """(name in the right stream, output field) of each right column that is kept."""
        taken = {name.lower() for name in left.names}
        found = []
        for item in right.fields:
            if item.name != self.params.right_key:
                clash = item.name.lower() in taken
                name = f"{self.params.right_prefix}{item.name}" if clash else item.name
                found.append((item.name, item.model_copy(update={"name": name})))
        return found

    def process_batch(
        self, inputs: Mapping[str, pa.Table], states: States, ctx: OperatorContext, *, at_end: bool
    ) -> pa.Table:
        sides = self.sides(ctx.input_schemas)
        progress = Progress(*(states.get([None])[0] or ()))
        new, rejected = zip(
            *(side.taken(inputs[side.port], progress, self.delay_us) for side in sides), strict=True
        )
        slots = [side.slots(rows) for side, rows in zip(sides, new, strict=True)]
        names = sorted({name for side in sides for name in side.touched(slots)})
        kept = {name: found for name, found in zip(names, states.get(names), strict=True) if found}
        of_left, of_right = (side.table(kept) for side in sides)
        pairs = [
            self._paired(new[0], pa.concat_tables([of_right, new[1]]), ctx),
            self._paired(of_left, new[1], ctx),
        ]
        for side in sides:
            progress.came(side, inputs[side.port])
        for side in sides:
            self._keep(side, slots[side.place], kept, progress, states)
        states.put(None, progress.kept())
        made = pa.concat_tables(pairs)
        made = made.take(pa.array(np.argsort(times_us(made[_TIME]), kind="stable")))
        return with_rejects(made, *(letters for of_side in rejected for letters in of_side))

    def sides(self, schemas: Mapping[str, StreamSchema]) -> tuple[Side, Side]:
        names = {_LEFT: self.params.left_key, _RIGHT: self.params.right_key}
        types = {schema.fields[schema.names.index(names[port])].type for port, schema in schemas.items()}
        left, right = (
            Side(place, port, names[port], len(types) > 1, schemas[port], self._slot_us)
            for place, port in enumerate((_LEFT, _RIGHT))
        )
        return left, right

    def _paired(self, left: pa.Table, right: pa.Table, ctx: OperatorContext) -> pa.Table:
        of_left, of_right = pair_places(left, right, self._within_us)
        first, second = left.take(pa.array(of_left)), right.take(pa.array(of_right))
        schemas = ctx.input_schemas
        columns = {name: first[name] for name in schemas[_LEFT].names}
        for name, output in self.right_fields(schemas[_LEFT], schemas[_RIGHT]):
            columns[output.name] = second[name]
        later = np.maximum(times_us(first[_TIME]), times_us(second[_TIME]))
        return pa.table({**columns, _TIME: pa.array(later).cast(_TIMESTAMP)})

    def _keep(
        self, side: Side, slots: Slots, kept: Mapping[str, Kept], progress: Progress, states: States
    ) -> None:
        """Keeps the new rows, and drops slots for whose rows no partner can come. There may be many after a
        stream that stood still, so only some of them go with each batch."""
        dropped_us = progress.dropped_us[side.place]
        until_us = progress.newest_us[1 - side.place] - self.delay_us - self._within_us
        until_us = max(until_us - until_us % side.slot_us, dropped_us)
        for (slot_us, key), rows in slots.items():
            if slot_us >= until_us:
                name = side.name(slot_us, key)
                before = kept.get(name, {})
                states.put(name, {column: before.get(column, []) + values for column, values in rows.items()})
        if until_us == dropped_us:
            return
        dropped = states.keys(side.name(dropped_us), side.name(until_us), _DROPPED_MAX)
        for name in dropped:
            states.put(name, None)
        is_all = len(dropped) < _DROPPED_MAX
        progress.dropped_us[side.place] = until_us if is_all else _slot_of(dropped[-1])[0]

    def readable_key(self, key: str) -> str:
        begin_us, of_key = _slot_of(key)
        port = _LEFT if key[0] == _LEFT[0] else _RIGHT
        return f"{port}, {utc(begin_us)} to {utc(begin_us + self._slot_us)} UTC, {of_key}"

    def readable_state(self, state: Kept, inputs: Mapping[str, StreamSchema]) -> Any:
        fields = [each for schema in inputs.values() for each in schema.fields]
        others = {each.name for each in fields if each.type is not FieldType.TIMESTAMP}
        times = {_TIME, *(each.name for each in fields)} - others
        return {
            name: [utc(each) if name in times and each is not None else _finite(each) for each in column]
            for name, column in state.items()
        }

    @property
    def delay_us(self) -> int:
        return in_us(self.params.delay_s)

    @property
    def _within_us(self) -> int:
        return in_us(self.params.within_s)

    @property
    def _slot_us(self) -> int:
        return max(self._within_us, _SLOT_US_MIN)


@dataclass
class Progress:
    """The progress of event time, in us, for left and right."""

    newest_us: list[int] = field(default_factory=lambda: [FIRST_US, FIRST_US])  # of all rows so far
    # slots that begin before this are dropped
    dropped_us: list[int] = field(default_factory=lambda: [FIRST_US, FIRST_US])

    def kept(self) -> list[list[int]]:
        return [self.newest_us, self.dropped_us]

    def came(self, side: Side, rows: pa.Table) -> None:
        newest = pc.max(rows[_TIME]).cast(pa.int64()).as_py()
        if newest is not None:
            self.newest_us[side.place] = max(self.newest_us[side.place], newest)


Slots = dict[tuple[int, str], Kept]
"""(when a slot begins in us, what its rows are paired by) -> the rows."""


@dataclass(frozen=True)
class Side:
    """One of the two streams. Its rows are kept in slots of event time, separately for each key. A slot is at
    least as long as partners may be apart, so a row's partners are in its own slot and the two beside it."""

    place: int
    port: str
    key: str  # the column
    as_number: bool  # the other side's key is of another type of number
    schema: StreamSchema
    slot_us: int

    def taken(
        self, rows: pa.Table, progress: Progress, delay_us: int
    ) -> tuple[pa.Table, tuple[pa.Table | None, ...]]:
        """Returns the rows that may have a partner (data columns, `_KEY` and `_TIME`), and dead letters for
        rows without a time and rows that came too late."""
        names, without_time = self.schema.names, untimed(rows, self.schema.names)
        rows = rows.filter(pc.is_valid(rows[_TIME]))
        newest = newest_before(
            times_us(rows[_TIME]), rows["_partition"].to_numpy(), progress.newest_us[self.place]
        )
        late = times_us(rows[_TIME]) < newest - delay_us
        rejected = without_time, too_late(rows, names, newest, delay_us, late)
        return self.keyed(rows.filter(pa.array(~late))), rejected

    def keyed(self, rows: pa.Table) -> pa.Table:
        """Returns the rows that have a key, with `_KEY`."""
        rows = rows.filter(pc.is_valid(rows[self.key]))
        values = rows[self.key].cast(pa.float64(), safe=False) if self.as_number else rows[self.key]
        if pa.types.is_floating(values.type):
            values = pc.add(values, 0.0)  # so that there is one zero
        return rows.select([*self.schema.names, _TIME]).append_column(_KEY, values.cast(pa.string()))

    def slots(self, rows: pa.Table) -> Slots:
        times = times_us(rows[_TIME])
        begins_us = (times - times % self.slot_us).tolist()
        places: dict[tuple[int, str], list[int]] = {}
        for place, slot in enumerate(zip(begins_us, rows[_KEY].to_pylist(), strict=True)):
            places.setdefault(slot, []).append(place)
        columns = {name: _plain(rows[name]) for name in (*self.schema.names, _TIME)}
        return {
            slot: {name: [values[place] for place in mine] for name, values in columns.items()}
            for slot, mine in places.items()
        }

    def name(self, slot_us: int, key: str = "") -> str:
        """Returns the name of a slot's state. Names are in the order of the slots."""
        return f"{self.port[0]}{sortable(slot_us)}{key}"

    def touched(self, slots: Sequence[Slots]) -> Iterable[str]:
        """Yields the slots that new rows go to, and those where partners of the other side's new rows may
        be."""
        for slot_us, key in slots[self.place]:
            yield self.name(slot_us, key)
        for slot_us, key in slots[1 - self.place]:
            for beside_us in (-self.slot_us, 0, self.slot_us):
                yield self.name(slot_us + beside_us, key)

    def table(self, kept: Mapping[str, Kept]) -> pa.Table:
        """Returns the rows of its slots among `kept`, in the form that `taken` returns."""
        mine = {name: found for name, found in kept.items() if name[0] == self.port[0]}
        columns: dict[str, pa.Array] = {}
        for name in (*self.schema.names, _TIME):
            of_schema = self.schema.field(name)
            type_ = _TIMESTAMP if of_schema is None else arrow_type(of_schema.type)
            columns[name] = pa.array([each for found in mine.values() for each in found[name]], type_)
        keys = [_slot_of(name)[1] for name, found in mine.items() for _ in found[_TIME]]
        return pa.table({**columns, _KEY: pa.array(keys, pa.string())})


def _slot_of(name: str) -> tuple[int, str]:
    """Returns when it begins, in us, and what its rows are paired by."""
    return of_sortable(name[1 : 1 + DIGITS]), name[1 + DIGITS :]


def pair_places(
    left: pa.Table, right: pa.Table, within_us: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the places of the two rows of each pair, ordered by the left ones' places, then by the right
    ones' times."""
    count = left.num_rows
    keys = pa.chunked_array([*left[_KEY].chunks, *right[_KEY].chunks], pa.string()).combine_chunks()
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    times, others = times_us(left[_TIME]), times_us(right[_TIME])
    # Ranks instead of times, so that a key and a time are one number, however wrong clocks are.
    every, ranks = np.unique(
        np.concatenate([times - within_us, times + within_us, others]), return_inverse=True
    )
    earliest, latest, of_others = np.split(ranks.reshape(-1), [count, 2 * count])
    places = codes[count:] * len(every) + of_others
    order = np.argsort(places, kind="stable")
    first = np.searchsorted(places[order], codes[:count] * len(every) + earliest, "left")
    behind = np.searchsorted(places[order], codes[:count] * len(every) + latest, "right")
    counts = behind - first
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(np.arange(count), counts), order[np.repeat(first, counts) + within]


def _plain(values: pa.ChunkedArray) -> list[Any]:
    is_time = pa.types.is_timestamp(values.type)
    return (values.cast(pa.int64()) if is_time else values).to_pylist()  # type: ignore[no-any-return]


def _finite(value: Any) -> Any:
    return finite(value) if isinstance(value, float) else value
