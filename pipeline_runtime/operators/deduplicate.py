"""State: rows that have come before are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.by_key import EACH_KEY, KEPT_MAX, TooManyKept
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.key_columns import KeyArrays
from pipeline_runtime.operators.key_states import Column, Joined, KeyStates, Lists
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.lineage import Came, TracedRow, named, same_row
from pipeline_runtime.operators.row_digests import numbered, row_digests
from pipeline_runtime.operators.sdk import OtherColumns, Params


class DeduplicateParams(Params):
    columns: tuple[ColumnName, ...] = Field(
        default=(),
        max_length=50,
        description="rows with equal values in these columns are duplicates; empty: all columns",
    )
    within_s: float = Field(
        default=3600.0,
        gt=0,
        le=31 * 86_400,
        title="How long duplicates are dropped, in seconds",
        description="how long duplicates of a row are dropped",
    )
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)


class Deduplicate(KeyArrays):
    """Passes on the first of several equal rows, and drops the others.

    Two rows of a key are equal if their given columns are equal. Null equals null. After the element has
    passed on a row, it drops the row's duplicates whose event time is at most `within_s` later. It passes on
    the next duplicate after that, and the time starts again. It also drops a duplicate that arrives late, as
    long as it keeps the row that it passed on: until a row of the same key arrives whose event time is
    `within_s` later.

    The element keeps at most 20,000 different rows for each key (a digest of each). A further row goes to the
    dead letters until older rows have left.

    Output: the input's columns.
    """

    type = "deduplicate"
    title = "Deduplicate"
    summary = "Keeps the first of several equal rows"
    category = "state"
    icon = "copy-minus"
    Params = DeduplicateParams
    state_params = frozenset({"columns", "key"})
    keeps = "which rows it has passed on: their duplicates are passed on once more"
    example = {"columns": ["id"], "within_s": 3600}

    params: DeduplicateParams

    @classmethod
    def columns_may_change(cls, params: Mapping[str, Any]) -> OtherColumns:
        """Without `columns`, a row's duplicates are equal in all columns that there were when it came."""
        return "more" if params.get("columns") else "none"

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        return {"in": same_row(made, named(inputs["in"].names))}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            for index, name in enumerate(self.params.columns):
                check.column(schema, name, f"params.columns[{index}]")
            self.key_of(schema, check)
        return StreamSchema(fields=schema.fields, key=self.params.key or schema.key)

    def state_columns(self, schema: StreamSchema) -> Mapping[str, Column]:
        return _STATE

    def process_rows(self, rows: KeyedRows, states: KeyStates) -> None:
        within_ms = round(self.params.within_s * 1000)
        new = rows.by_place(row_digests(rows.table, self.params.columns or rows.names))
        kept_times, kept_digests = states["times_ms"], states["digests"]
        joined = Joined(kept_times.counts, rows.counts)
        times = joined.lists(kept_times.numbers, rows.times)
        digests = joined.lists(kept_digests.numbers, new)
        stays, in_turn = _passed_on(times, digests, joined, within_ms)
        found = [np.flatnonzero(stays[joined.new])]
        # What is kept is what can still drop a row, as of the last one that was passed on.
        now_ms = np.full(len(rows.keys), _INT64_MIN + within_ms)
        now_ms[rows.key_numbers[found[0]]] = rows.times[found[0]]
        stays &= times.numbers >= np.repeat(now_ms - within_ms, joined.counts)
        others = {}
        for key in np.flatnonzero(~in_turn).tolist():
            seen = dict(zip(kept_digests.of(key).tolist(), kept_times.of(key).tolist(), strict=True))
            first, end = rows.spans[rows.keys[key]]
            places, others[key] = _one_by_one(rows, first, new[first:end].tolist(), seen, within_ms)
            found.append(places)
        out = np.sort(np.concatenate(found))
        rows.give(out, rows.times[out])
        states["times_ms"] = times.chosen(stays).replaced(
            {key: [*seen.values()] for key, seen in others.items()}
        )
        states["digests"] = digests.chosen(stays).replaced({key: [*seen] for key, seen in others.items()})

    def numbers_of(self) -> tuple[str, ...]:
        return ()

    def readable_state(self, state: Any, inputs: Mapping[str, StreamSchema]) -> Any:
        found = super().readable_state(state, inputs)
        return dict(zip(found["digests"], found["times_ms"], strict=True))


def _passed_on(
    times: Lists, digests: Lists, joined: Joined, within_ms: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Returns which rows were or are passed on, and for each key whether that is known: no row is late, and
    none is too many. Of a key for which it is not known, no row of the batch is said to be passed on."""
    chosen = np.zeros(len(times.numbers), bool)
    chosen[joined.kept] = True
    if len(chosen) < ARRAYS_MIN:
        return chosen, np.zeros(len(joined.counts), bool)
    keys = np.repeat(np.arange(len(joined.counts)), joined.counts)
    codes = numbered(digests.numbers)
    groups = keys * (int(codes.max()) + 1) + codes
    # The rows that are equal stand together, each group behind the one before it.
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    apart = Lists(sizes, times.numbers[order]).apart(within_ms)
    if apart is None:
        return chosen, np.zeros(len(joined.counts), bool)
    in_turn = times.in_turn()
    # Further rows of a group are passed on only where it is longer than that.
    spans = apart[starts + sizes - 1] - apart[starts]
    longer = np.flatnonzero((spans > within_ms) & in_turn[keys[order[starts]]])
    passed = [starts]
    if len(longer):
        rises = np.maximum.accumulate(apart)
        following = np.searchsorted(rises, apart + within_ms, side="right").tolist()
        more = []
        for place, end in zip(starts[longer].tolist(), (starts + sizes)[longer].tolist(), strict=True):
            while (place := following[place]) < end:
                more.append(place)
        passed.append(np.array(more, np.int64))
    chosen[order[np.concatenate(passed)]] = True
    in_turn &= ~_too_many(times.chosen(chosen), within_ms)
    chosen[joined.new] &= in_turn[keys[joined.new]]
    return chosen, in_turn


def _too_many(times: Lists, within_ms: int) -> NDArray[np.bool_]:
    """Returns for each key whether a row that was passed on had too many others within the time before it."""
    if times.counts.max() <= KEPT_MAX:
        return np.zeros(len(times.counts), bool)
    apart = times.apart(within_ms)
    assert apart is not None, "there was room for more lists"
    apart = np.maximum.accumulate(apart)
    before = np.arange(len(apart)) - np.searchsorted(apart, apart - within_ms, side="left")
    found = np.zeros(len(times.counts), bool)
    found[np.repeat(np.arange(len(found)), times.counts)[before >= KEPT_MAX]] = True
    return found


def _one_by_one(
    rows: KeyedRows, first: int, digests: Sequence[bytes], seen: dict[bytes, int], within_ms: int
) -> tuple[NDArray[np.int64], dict[bytes, int]]:
    """Takes the rows of one key from place `first` on: some are late, or there are too many. Returns the
    places of those that are passed on, and what is kept then."""
    found = []
    full: tuple[int, int] | None = None  # the oldest and the newest of them, since none could go
    for place, what in enumerate(digests, first):
        now_ms = rows.times_ms[place]
        least_ms, first_ms = now_ms - within_ms, seen.get(what)
        if first_ms is not None and first_ms >= least_ms:
            continue
        # Each stands after those that came before it, so the oldest stand first.
        gone = _first_before(least_ms, seen)
        if first_ms is not None and what not in gone:
            gone.append(what)
        if len(seen) - len(gone) < KEPT_MAX:
            for each in gone:
                del seen[each]
        else:
            # Rows from a clock that is ahead stand before those that may go.
            kept = seen
            if full is None or full[0] < least_ms or now_ms < full[1]:
                kept = {each: at_ms for each, at_ms in seen.items() if least_ms <= at_ms <= now_ms}
                full = min(seen.values()), max(seen.values())
            if len(kept) >= KEPT_MAX:
                rows.reject(place, TooManyKept(_TOO_MANY.format(KEPT_MAX)))
                continue
            seen = kept
        seen[what], full = now_ms, None
        found.append(place)
    return np.array(found, np.int64), seen


def _first_before(least_ms: int, seen: Mapping[bytes, int]) -> list[bytes]:
    """Returns those that stand before the first one of `least_ms` or later."""
    return [each for each, _ in takewhile(lambda item: item[1] < least_ms, seen.items())]


ARRAYS_MIN = 128
"""With fewer rows and states a loop over them costs less than NumPy's calls."""
_STATE = {"times_ms": Column.WHOLES, "digests": Column.DIGESTS}
_INT64_MIN = -(2**63)
_TOO_MANY = "{} different rows are kept already; look for duplicates within a shorter time"
