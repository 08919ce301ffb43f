"""Every interleaving of a small world, breadth first: what is found broken has the shortest trace."""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import dropwhile
from typing import Generic, TypeVar

from tests.simulation.mutants import Decide
from tests.simulation.small_world import Actor, Journal, Outcome, cached, outcomes

T = TypeVar("T", bound=Hashable)
BITS = 21
MASK = (1 << BITS) - 1


class Numbers(Generic[T]):
    """Each different thing gets a number, so that a world is a few of them in one int."""

    def __init__(self) -> None:
        self.things: list[T] = []
        self._numbers: dict[T, int] = {}

    def of(self, thing: T) -> int:
        number = self._numbers.setdefault(thing, len(self.things))
        if number == len(self.things):
            assert number < 1 << BITS
            self.things.append(thing)
        return number


@dataclass(frozen=True)
class World:
    actors: tuple[Actor, ...]
    journal: Journal = ()
    length_max: int = 5  # of commits and grants; ARMED is not counted


@dataclass(frozen=True)
class Explored:
    states: int
    trace: tuple[str, ...] | None  # the shortest to a broken law


def is_lawful(journal: Journal) -> bool:
    """Each seq is committed once, in order, and so at one epoch; a group that was ended stays so."""
    seqs = [line.seq for line in journal if line.kind == "COMMIT"]
    after_its_end = list(dropwhile(lambda line: line.kind != "RETIRE", journal))[1:]
    return seqs == list(range(1, len(seqs) + 1)) and all(line.kind == "ARMED" for line in after_its_end)


class Explorer:
    def __init__(self, world: World, decide: Decide) -> None:
        self._told = cached(decide)
        self._length_max = world.length_max
        self._actors: Numbers[Actor] = Numbers()
        self._journals: Numbers[Journal] = Numbers()
        self._shifts = [BITS * (index + 1) for index in range(len(world.actors))]
        self._next: dict[int, list[tuple[int, int, int]]] = {}
        self._fenced: dict[tuple[int, int], int] = {}
        start = self._journals.of(world.journal)
        for shift, actor in zip(self._shifts, world.actors, strict=True):
            start |= self._actors.of(actor) << shift
        self._worlds = [start]
        self._seen = {start}
        self._parents = array("I", [0])

    def run(self) -> Explored:
        lawful: list[bool] = []  # by the journal's number
        for at, world in enumerate(self._worlds):  # which grows meanwhile
            for after in self._after(world):
                if after in self._seen:
                    continue
                self._seen.add(after)
                self._worlds.append(after)
                self._parents.append(at)
                lawful += map(is_lawful, self._journals.things[len(lawful) :])
                if not lawful[after & MASK]:
                    return Explored(len(self._worlds), self._trace())
        return Explored(len(self._worlds), None)

    def _after(self, world: int) -> list[int]:
        journal = world & MASK
        numbers = [world >> shift & MASK for shift in self._shifts]
        found = []
        for index, number in enumerate(numbers):
            for after, written, initialised in self._outcomes(journal, number):
                packed = written
                for other, shift in enumerate(self._shifts):
                    now = after if other == index else numbers[other]
                    if initialised and other != index:
                        now = self._without_handle(now, initialised)
                    packed |= now << shift
                found.append(packed)
        return found

    def _outcomes(self, journal: int, actor: int) -> list[tuple[int, int, int]]:
        """What may happen to an actor depends on itself and the journal alone: thought out once."""
        key = journal << BITS | actor
        known = self._next.get(key)
        if known is None:
            known = self._next[key] = [
                (self._actors.of(item.actor), self._journals.of(item.journal), item.initialised)
                for item in self._labelled(journal, actor)
            ]
        return known

    def _labelled(self, journal: int, actor: int) -> list[Outcome]:
        return list(
            outcomes(self._journals.things[journal], self._actors.things[actor], self._told, self._length_max)
        )

    def _without_handle(self, actor: int, initialised: int) -> int:
        key = (actor, initialised)
        if key not in self._fenced:
            whole = self._actors.things[actor]
            fenced = whole._replace(handle=0) if whole.handle == initialised else whole
            self._fenced[key] = self._actors.of(fenced)
        return self._fenced[key]

    def _trace(self) -> tuple[str, ...]:
        """The steps to the newest world."""
        labels: list[str] = []
        at = len(self._worlds) - 1
        while at:
            parent = self._parents[at]
            labels.append(self._label(self._worlds[parent], self._worlds[at]))
            at = parent
        return tuple(reversed(labels))

    def _label(self, world: int, after: int) -> str:
        step = self._after(world).index(after)
        for shift in self._shifts:
            number = world >> shift & MASK
            possible = self._labelled(world & MASK, number)
            if step < len(possible):
                return f"{self._actors.things[number].name} {possible[step].label}"
            step -= len(possible)
        raise AssertionError("no step leads there")
