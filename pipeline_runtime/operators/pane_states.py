"""The state of a window aggregate's panes: as columns, and as the states of their keys."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline_runtime.operators.accumulators import Accumulation, Columns, Group, Groups, Kept
from pipeline_runtime.operators.event_time import DIGITS, of_sortable, sortable
from pipeline_runtime.operators.sdk import States
from pipeline_runtime.operators.sliding import Whole, put_together

_as_json = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps would make an encoder for each key


class Keys:
    """Numbers for what rows have in common."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}  # by the values as JSON

    @property
    def texts(self) -> list[str]:
        """Returns the values of each number as JSON."""
        return list(self._numbers)

    def groups(self) -> list[Group]:
        """Returns the values of each number."""
        return [json.loads(text) for text in self._numbers]

    def of_texts(self, texts: Sequence[str]) -> Whole:
        numbers = self._numbers
        return np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)

    def of_columns(self, columns: Sequence[pa.Array], count: int) -> Whole:
        """Returns the numbers of `count` rows that have these values."""
        codes = np.zeros(count, np.int64)
        for column in columns:
            encoded = pc.dictionary_encode(column, null_encoding="encode")
            codes = np.unique(codes, return_inverse=True)[1] * len(encoded.dictionary)
            codes += encoded.indices.to_numpy()
        _, firsts, codes = np.unique(codes, return_index=True, return_inverse=True)
        some = [column.take(pa.array(firsts)).to_pylist() for column in columns]
        groups = zip(*some, strict=True) if some else [()] * len(firsts)
        return self.of_texts([_as_json(group) for group in groups])[codes]


@dataclass(frozen=True)
class Entries:
    """What is kept for some places of some keys, ordered by key and then by place. A place is the number of a
    pane, or where a window begins."""

    keys: Whole  # their numbers
    places: Whole
    kept: Columns
    is_new: NDArray[np.bool_]  # whether it has rows of this batch

    def __len__(self) -> int:
        return len(self.keys)

    def where(self, which: NDArray[np.bool_]) -> Entries:
        kept = tuple(each[which] for each in self.kept)
        return Entries(self.keys[which], self.places[which], kept, self.is_new[which])


def entries_of(groups: Groups, keys: Keys) -> Entries:
    """`groups`: by the place, and then by what their rows have in common. The entries are in no order."""
    places, *values = groups.values
    numbers = keys.of_columns(values, len(places))
    return Entries(numbers, places.to_numpy(), groups.kept, np.ones(len(places), bool))


def merged(accumulation: Accumulation, *parts: Entries) -> Entries:
    """Returns one entry for each place of each key. The parts are in any order; what is kept came before what
    is kept in a later part."""
    parts = tuple(part for part in parts if len(part)) or parts[:1]
    keys, places, is_new = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("keys", "places", "is_new")
    )
    kept = tuple(map(np.concatenate, zip(*(part.kept for part in parts), strict=True)))
    order = np.lexsort((places, keys))
    keys, places, kept = keys[order], places[order], tuple(each[order] for each in kept)
    is_first = np.append(True, (keys[1:] != keys[:-1]) | (places[1:] != places[:-1]))[: len(keys)]
    firsts = np.flatnonzero(is_first)
    if len(firsts) == len(keys):
        return Entries(keys, places, kept, is_new[order])
    counts = np.diff(firsts, append=len(keys))
    together = rows_together(accumulation, kept, firsts, counts)
    return Entries(keys[firsts], places[firsts], together, np.logical_or.reduceat(is_new[order], firsts))


def rows_together(accumulation: Accumulation, kept: Columns, firsts: Whole, counts: Whole) -> Columns:
    """Returns what is kept for each run of rows that follow one another: the first, and how many. How they
    are put together depends on the run alone, and so do the last digits of a sum."""
    if (counts == 1).all():
        return tuple(each[firsts] for each in kept)
    nothing = accumulation.of_states([None] * len(firsts))
    return put_together(kept, nothing, firsts, counts, accumulation.merged)


class Panes:
    """What is kept for each pane and key. A state has the rows of the batches before."""

    def __init__(self, states: States, accumulation: Accumulation, keys: Keys, at_once: range) -> None:
        """`at_once`: the panes that are read at once. Others are read when rows are added to them."""
        self._states = states
        self._accumulation = accumulation
        self._keys = keys
        self._at_once = at_once
        self._read: set[str] = set()  # the states that were asked for one by one
        self._before: set[str] = set()  # the states that there are, of those that were read
        found = states.between(sortable(at_once.start), sortable(at_once.stop)) if at_once else {}
        self.entries = merged(accumulation, self._of_states(found))

    def add(self, groups: Groups) -> None:
        """Adds what is kept for more rows."""
        new = entries_of(groups, self._keys)
        beyond = (new.places < self._at_once.start) | (new.places >= self._at_once.stop)
        asked = [name for name in self._names(new.where(beyond)) if name not in self._read]
        self._read.update(asked)
        states = zip(asked, self._states.get(asked) if asked else (), strict=True)
        before = self._of_states({name: state for name, state in states if state is not None})
        self.entries = merged(self._accumulation, self.entries, before, new)

    def keep(self, first: int) -> None:
        """Stores what is new of the panes from `first` on, and deletes what is stored of the others."""
        kept = self.entries.where(self.entries.is_new & (self.entries.places >= first))
        for name, state in zip(self._names(kept), self._accumulation.states(kept.kept), strict=True):
            self._states.put(name, state)
        low = sortable(first)
        for name in self._before:
            if name < low:
                self._states.put(name, None)

    def _of_states(self, states: Mapping[str, Kept]) -> Entries:
        self._before.update(states)
        keys = self._keys.of_texts([name[DIGITS:] for name in states])
        places = np.array([of_sortable(name[:DIGITS]) for name in states], np.int64)
        kept = self._accumulation.of_states([*states.values()])
        return Entries(keys, places, kept, np.zeros(len(keys), bool))

    def _names(self, entries: Entries) -> list[str]:
        """Returns the keys of the states: the number of the pane and what its rows have in common. They are
        in the order of the panes."""
        texts = self._keys.texts
        both = zip(entries.places.tolist(), entries.keys.tolist(), strict=True)
        return [f"{sortable(place)}{texts[key]}" for place, key in both]
