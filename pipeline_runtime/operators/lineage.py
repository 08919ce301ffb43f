"""Finds the input rows from which an output row was made, by the values of the rows. Pure.

An operator answers `came_from` with a `Came` for each of its inputs: in which time to look, and which rows
to take. Those rows, given to a new operator of the same parameters, make the output row again. Where
nobody can know them so exactly, `Found.bound` says why there may be more of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class TracedRow:
    """A row as its record has it. `values`: times are ISO texts."""

    time_ms: int
    values: Mapping[str, Any]
    key: str | None = None
    partition: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Found:
    rows: Sequence[TracedRow]
    bound: str = ""  # why not all of them need to have taken part; empty if they have
    whole: bool = False  # no row that is older than those that were given can belong to them


Fits = Callable[[TracedRow], bool]


@dataclass(frozen=True)
class Came:
    """Where an output row came from in one input."""

    from_ms: int | None  # the earliest event time that counts; None if older rows may count, however old
    until_ms: int | None  # the latest one; None if newer rows may count
    chosen: Callable[[Sequence[TracedRow]], Found]
    """Returns the rows among all of that time, of all keys, in the order in which they came."""
    row: TracedRow | None = (
        None  # the one row that it came from, with the columns that are in the output, too
    )


ONE_OF_THEM = "These rows are equal. It came from one of them."
SAME_TIME = "Several rows have the time of this row. It came with one of them."
SAYS_NO_MORE = "The operator does not say which rows it uses, so these are all that it may have used."


def same_row(made: TracedRow, names: Mapping[str, str]) -> Came:
    """A row that became an output row. `names`: output column -> input column with the same value."""

    def chosen(rows: Sequence[TracedRow]) -> Found:
        fits = is_same(made, names)
        found = [row for row in rows if fits(row)]
        return Found(found, ONE_OF_THEM if len(found) > 1 else "", whole=bool(found))

    values = {column: made.values[name] for name, column in names.items() if name in made.values}
    return Came(made.time_ms, made.time_ms, chosen, TracedRow(made.time_ms, values))


def is_same(made: TracedRow, names: Mapping[str, str]) -> Fits:
    """Returns what tells whether a row has the time of `made`, and the same values."""
    same = has_values(made, names)
    return lambda row: row.time_ms == made.time_ms and same(row)


def has_values(made: TracedRow, names: Mapping[str, str]) -> Fits:
    """Returns what tells whether a row has the values of `made`. `names`: its columns -> those of the row."""
    wanted = [(column, made.values.get(name)) for name, column in names.items()]
    return lambda row: all(row.values.get(column) == value for column, value in wanted)


def equal(made: TracedRow, names: Iterable[str]) -> Fits:
    """Returns what tells whether a row has the values of `made` in these columns."""
    return has_values(made, named(names))


def named(names: Iterable[str]) -> dict[str, str]:
    """Returns columns that have the same name in the output and in the input."""
    return {name: name for name in names}


def up_to(
    mine: Fits, is_trigger: Fits, then: Callable[[Sequence[TracedRow]], Sequence[TracedRow]]
) -> Callable[[Sequence[TracedRow]], Found]:
    """Takes of the rows that are `mine` those up to the last one with which the output row came, and of these
    what `then` returns. Without such a row it takes nothing."""

    def chosen(rows: Sequence[TracedRow]) -> Found:
        own = [row for row in rows if mine(row)]
        places = [place for place, row in enumerate(own) if is_trigger(row)]
        if not places:
            return Found(())
        found = then(own[: places[-1] + 1])
        whole = bool(found) and found[0] is not own[0]
        return Found(found, SAME_TIME if len(places) > 1 else "", whole)

    return chosen


def everything(rows: Sequence[TracedRow]) -> Sequence[TracedRow]:
    """Takes all rows."""
    return rows


def may_be_all(rows: Sequence[TracedRow]) -> Found:
    """Takes all rows, for an operator that does not say which ones it uses."""
    return Found(rows, SAYS_NO_MORE)


def newest(count: int, column: str | None = None) -> Callable[[Sequence[TracedRow]], Sequence[TracedRow]]:
    """Takes the newest `count` rows that have a value in `column`."""

    def then(rows: Sequence[TracedRow]) -> Sequence[TracedRow]:
        found = rows if column is None else with_value(rows, column)
        return found[max(0, len(found) - count) :]

    return then


def with_value(rows: Iterable[TracedRow], column: str) -> list[TracedRow]:
    """Returns the rows whose column is not null."""
    return [row for row in rows if row.values.get(column) is not None]


def between(rows: Iterable[TracedRow], from_ms: int, until_ms: int) -> list[TracedRow]:
    """Returns the rows of a time, both ends included."""
    return [row for row in rows if from_ms <= row.time_ms <= until_ms]


def not_forgotten(rows: Sequence[TracedRow], window_ms: int) -> Sequence[TracedRow]:
    """Returns what an operator with a window still has of a key's rows when the last of them comes. A row
    that was not late made it forget all that was older than the window."""
    newest_place = max(range(len(rows)), key=lambda place: (rows[place].time_ms, place), default=0)
    if newest_place == len(rows) - 1:
        return rows
    least_ms = rows[newest_place].time_ms - window_ms
    return [row for place, row in enumerate(rows) if place >= newest_place or row.time_ms >= least_ms]


def in_time(rows: Iterable[TracedRow], closed_ms: int) -> list[TracedRow]:
    """Returns the rows that came before one whose time is `closed_ms` or later, in each partition."""
    closed: set[int] = set()
    found = []
    for row in rows:
        if row.partition in closed:
            continue
        if row.time_ms >= closed_ms:
            closed.add(row.partition)
        else:
            found.append(row)
    return found


def first_place(rows: Sequence[TracedRow], from_ms: int) -> int:
    """Returns the place of the first row that has come with this time or a later one. Returns the number of
    rows if there is none."""
    return next((place for place, row in enumerate(rows) if row.time_ms >= from_ms), len(rows))


def whole_steps(size: int, every: int) -> int:
    """Returns how many rows an operator needs that gives a row after `every` so many, about `size` of them:
    it counts them from the first on."""
    return -(-size // every) * every


def ms_of(value: Any) -> int | None:
    """Returns a time of a record, in ms since 1970, or None if it says none."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    return round(value.timestamp() * 1000) if isinstance(value, datetime) else None


def ms_in(value: Any) -> int | None:
    """Returns a number of seconds in ms, or None if it is no number."""
    return round(value * 1000) if isinstance(value, int | float) else None
