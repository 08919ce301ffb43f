"""The ownership protocol, exhaustively, in a small scope (see small_world.py).

The law: each seq is committed exactly once and in order, and so at one epoch; nothing follows a RETIRE.
EACH_JOURNAL=1 explores each journal by itself, including those that no replica can tell apart. Two
worlds run with up to six commits and grants only in `make check-full`, and up to five on the build server.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from pipeline_runtime.handover import protocol
from pipeline_runtime.handover.protocol import Owning
from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.ids import Epoch
from tests.chosen import chosen
from tests.simulation.exploring import Explorer, World
from tests.simulation.mutants import (
    MUTANTS,
    Decide,
    blind_to_the_end,
    with_epochs_from_elsewhere,
    without_the_second_read,
)
from tests.simulation.small_world import Actor, Line

EACH_JOURNAL = bool(os.environ.get("EACH_JOURNAL"))

OWNER = Actor("A", Owning(ClaimOrder(id="A", over=Epoch(0)), Epoch(1)), handle=1)
OWNED = (Line("CLAIM", 1, order="A"),)

SUCCESSOR_AND_BYSTANDER = World((OWNER, Actor("B", arms=2), Actor("C")), OWNED, length_max=5)
FROM_NOTHING = World((Actor("A", tries=2), Actor("B", arms=1), Actor("C")), length_max=5)
TWO_SUCCESSORS = World((OWNER, Actor("B", arms=1), Actor("C", arms=1, tries=0)), OWNED, length_max=5)
THREE_THAT_CLAIM = World((Actor("A", tries=2), Actor("B"), Actor("C")), length_max=5)
ONE_THAT_RETIRES = World(
    (OWNER._replace(retires=True), Actor("B", arms=1, retires=True), Actor("C")), OWNED, length_max=4
)

# Each world is large in one way: what each replica does, how many there are, or how long it goes on. All at
# once takes hours.
WORLDS = {
    "an owner, its successor, a bystander": SUCCESSOR_AND_BYSTANDER,
    "the same, one step longer": replace(SUCCESSOR_AND_BYSTANDER, length_max=6),
    "an owner, two successors": TWO_SUCCESSORS,
    "an empty journal, a successor, a bystander": FROM_NOTHING,
    "an empty journal, one step longer": replace(FROM_NOTHING, length_max=6),
    "an owner that ends the group, its successor, a bystander": ONE_THAT_RETIRES,
    "two that claim again and again": World((Actor("A", tries=3), Actor("B", tries=2)), length_max=5),
    "three that claim": THREE_THAT_CLAIM,
}


STATES = {
    "an owner, its successor, a bystander": (739_461, 3_486_366),
    "the same, one step longer": (1_078_677, 7_702_450),
    "an owner, two successors": (176_884, 741_293),
    "an empty journal, a successor, a bystander": (1_387_500, 3_926_575),
    "an empty journal, one step longer": (1_974_723, 7_486_184),
    "an owner that ends the group, its successor, a bystander": (247_091, 569_822),
    "two that claim again and again": (138_151, 404_622),
    "three that claim": (311_967, 560_459),
}
"""The number of states explored, and how many they stand for, journal by journal. When a change of the rules
or of the small world changes a number, look at the reason and write the new number down here."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", chosen(WORLDS, [name for name in WORLDS if "longer" not in name]))
def test_each_seq_is_committed_exactly_once_in_every_interleaving(name: str) -> None:
    explored = Explorer(WORLDS[name], protocol.decide, merges=not EACH_JOURNAL).run()
    assert explored.trace is None, " | ".join(explored.trace or ())
    print(f"{explored.states} states")
    assert explored.states == STATES[name][EACH_JOURNAL]


WORLD_OF: dict[Decide, World] = {
    without_the_second_read: THREE_THAT_CLAIM,
    with_epochs_from_elsewhere: THREE_THAT_CLAIM,
    blind_to_the_end: ONE_THAT_RETIRES,
}


@pytest.mark.parametrize("broken", [*MUTANTS, blind_to_the_end], ids=lambda mutant: mutant.__name__)
def test_a_protocol_without_one_of_its_rules_is_found_out(broken: Decide) -> None:
    """A broken rule is found after as many steps as when each journal is explored by itself."""
    world = WORLD_OF.get(broken, TWO_SUCCESSORS)
    explored = Explorer(world, broken).run()
    assert explored.trace is not None
    print(" | ".join(explored.trace))
    each_journal = Explorer(world, broken, merges=False).run()
    assert each_journal.trace is not None
    assert len(explored.trace) == len(each_journal.trace)
