"""Every interleaving of a small world, breadth first, so that a violation is found with its shortest trace.

A world is one int: the number of its journal, then those of its actors. An actor's next steps depend only on
itself and the journal. So they are worked out once for each such pair, as differences of such ints. Journals
that its replicas cannot tell apart are one (merging.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import Generic, NamedTuple, TypeVar

from tests.simulation import merging
from tests.simulation.mutants import Decide
from tests.simulation.small_world import Actor, Journal, cached, outcomes

T = TypeVar("T", bound=Hashable)
OF_THE_NEEDS = 10
BITS = OF_THE_NEEDS + 10
ACTOR = (1 << BITS) - 1
NEEDS = ACTOR >> OF_THE_NEEDS << OF_THE_NEEDS
JOURNAL = (1 << 30) - 1
"""An actor's number: the number of its needs, then its own among those with the same needs."""


def needs_in(number: int) -> int:
    return number >> OF_THE_NEEDS


class Numbers(Generic[T]):
    """Gives each different thing a number."""

    def __init__(self) -> None:
        self.things: list[T] = []
        self._numbers: dict[T, int] = {}

    def of(self, thing: T) -> int:
        number = self._numbers.setdefault(thing, len(self.things))
        if number == len(self.things):
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
    trace: tuple[str, ...] | None  # the shortest one to a broken law


class LawBroken(Exception):
    """The step `label` from `world` broke the law."""

    def __init__(self, world: int, label: str) -> None:
        super().__init__(label)
        self.world, self.label = world, label


def is_lawful(journal: Journal) -> bool:
    """Returns whether each seq is committed once and in order, and so at one epoch, and whether an ended
    group stays ended."""
    seqs = [line.seq for line in journal if line.kind == "COMMIT"]
    after_its_end = list(dropwhile(lambda line: line.kind != "RETIRE", journal))[1:]
    return seqs == list(range(1, len(seqs) + 1)) and all(line.kind == "ARMED" for line in after_its_end)


class Step(NamedTuple):
    label: str
    delta: int  # from one world to the next
    initialised: int  # the epoch whose id it initialises, which fences others; 0 when it does not
    is_plain: bool  # the next world is `delta` away, and no journal has to be looked at


@dataclass(slots=True)
class Steps:
    """The steps of one actor, by world & mask: by the actor and the journal."""

    shift: int
    mask: int
    known: dict[int, tuple[list[int], list[Step]]] = field(default_factory=dict)  # plain ones, others


class Explorer:
    def __init__(self, world: World, decide: Decide, *, merges: bool = True) -> None:
        self._merges = merges
        self._told = cached(decide)
        self._length_max = world.length_max
        self._actors: dict[int, Actor] = {}
        self._numbers: dict[Actor, int] = {}
        self._journals: Numbers[Journal] = Numbers()
        self._needs: Numbers[merging.Needs] = Numbers()
        self._with_needs: Counter[int] = Counter()  # how many actors
        self._classes: dict[tuple[merging.Needs, Hashable], int] = {}  # -> the journal that stands for it
        self._merged: dict[int, int] = {}  # (a journal, the needs of each actor) -> what to add to the world
        self._journal_at = BITS * len(world.actors)
        self._steps = [
            Steps(shift, ACTOR << shift | JOURNAL << self._journal_at)
            for shift in range(0, self._journal_at, BITS)
        ]
        self._all_needs = JOURNAL << self._journal_at | sum(NEEDS << steps.shift for steps in self._steps)
        self.start = self.world(world.actors, world.journal)
        self.seen = {self.start}

    def run(self) -> Explored:
        layers = [[self.start]]
        try:
            while layers[-1]:
                found = self.beyond(layers[-1])
                found -= self.seen
                self.seen |= found
                layers.append(list(found))
        except LawBroken as broken:
            return Explored(len(self.seen), self._trace(layers, broken))
        return Explored(len(self.seen), None)

    def beyond(self, worlds: Iterable[int]) -> set[int]:
        """Returns all worlds that are one step away from one of these."""
        found: set[int] = set()
        for world in worlds:
            for actor in self._steps:
                key = world & actor.mask
                known = actor.known.get(key)
                if known is None:
                    known = actor.known[key] = self._thought_out(world, actor.shift)
                for delta in known[0]:
                    found.add(world + delta)
                for step in known[1]:
                    found.add(self._after(world, step, actor.shift))
        return found

    def world(self, actors: Iterable[Actor], journal: Journal) -> int:
        world = self._journals.of(journal) << self._journal_at
        for index, actor in enumerate(actors):
            world |= self._actor(actor) << BITS * index
        return self._as_merged(world)

    def parts(self, world: int) -> tuple[list[Actor], Journal]:
        numbers = [world >> steps.shift & ACTOR for steps in self._steps]
        return [self._actors[number] for number in numbers], self._journal(world)

    def _journal(self, world: int) -> Journal:
        return self._journals.things[world >> self._journal_at]

    def _actor(self, actor: Actor) -> int:
        number = self._numbers.get(actor)
        if number is None:
            needs = self._needs.of(merging.needs_of(actor))
            number = needs << OF_THE_NEEDS | self._with_needs[needs]
            assert number <= ACTOR
            assert self._with_needs[needs] < 1 << OF_THE_NEEDS
            self._with_needs[needs] += 1
            self._actors[number] = actor
            self._numbers[actor] = number
        return number

    def _thought_out(self, world: int, shift: int) -> tuple[list[int], list[Step]]:
        steps = list(self._possible(world, shift))
        return [step.delta for step in steps if step.is_plain], [step for step in steps if not step.is_plain]

    def _possible(self, world: int, shift: int) -> Iterator[Step]:
        """Raises LawBroken, by the journal as it was written."""
        number, journal = world >> shift & ACTOR, self._journal(world)
        for item in outcomes(journal, self._actors[number], self._told, self._length_max):
            if item.journal is not journal and not is_lawful(item.journal):
                raise LawBroken(world, f"{item.actor.name} {item.label}")
            after = self._actor(item.actor)
            written = self._journals.of(item.journal) - (world >> self._journal_at)
            yield Step(
                f"{item.actor.name} {item.label}",
                (after - number << shift) + (written << self._journal_at),
                item.initialised,
                not (item.initialised or written or needs_in(after) != needs_in(number)),
            )

    def _after(self, world: int, step: Step, actor_at: int) -> int:
        after = world + step.delta
        if step.initialised:
            for shift in range(0, self._journal_at, BITS):
                number = after >> shift & ACTOR
                if shift != actor_at and self._actors[number].handle == step.initialised:
                    fenced = self._actors[number]._replace(handle=0)
                    after += self._actor(fenced) - number << shift
        if not self._merges:
            return after
        merged = self._merged.get(after & self._all_needs)
        return self._as_merged(after) if merged is None else after + merged

    def _as_merged(self, world: int) -> int:
        """Returns the world with the journal that stands for its own."""
        if not self._merges:
            return world
        numbers = [world >> steps.shift & ACTOR for steps in self._steps]
        needs = merging.of_all(self._needs.things[needs_in(number)] for number in numbers)
        journal = world >> self._journal_at
        stands_for_it = self._classes.setdefault(
            (needs, merging.seen_by(needs, self._journals.things[journal])), journal
        )
        merged = self._merged[world & self._all_needs] = stands_for_it - journal << self._journal_at
        return world + merged

    def _trace(self, layers: list[list[int]], broken: LawBroken) -> tuple[str, ...]:
        labels, world = [broken.label], broken.world
        depth = next(depth for depth, layer in enumerate(layers) if world in layer)
        for layer in reversed(layers[:depth]):
            label, world = next(
                (step.label, before)
                for before in layer
                for steps in self._steps
                for step in self._possible(before, steps.shift)
                if self._after(before, step, steps.shift) == world
            )
            labels.append(label)
        return tuple(reversed(labels))
