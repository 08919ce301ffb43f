"""The ownership protocol, exhaustively, in a small scope (see small_world.py).

The law: each seq is committed exactly once, in order, so at one epoch, and nothing follows a RETIRE.
"""

from __future__ import annotations

import pytest

from pipeline_runtime.handover import protocol
from pipeline_runtime.handover.protocol import Owning
from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.ids import Epoch
from tests.simulation.exploring import Explorer, World
from tests.simulation.mutants import (
    MUTANTS,
    Decide,
    blind_to_the_end,
    with_epochs_from_elsewhere,
    without_the_second_read,
)
from tests.simulation.small_world import Actor, Line

OWNER = Actor("A", Owning(ClaimOrder(id="A", over=Epoch(0)), Epoch(1)), handle=1)
OWNED = (Line("CLAIM", 1, order="A"),)

TWO_SUCCESSORS = World((OWNER, Actor("B", arms=1), Actor("C", arms=1, tries=0)), OWNED, length_max=5)
THREE_THAT_CLAIM = World((Actor("A", tries=2), Actor("B"), Actor("C")), length_max=5)
ONE_THAT_RETIRES = World(
    (OWNER._replace(retires=True), Actor("B", arms=1, retires=True), Actor("C")), OWNED, length_max=4
)

# Wide in what each does, or in how many they are, or in how long it goes on: all at once takes hours.
WORLDS = {
    "an owner, its successor, a bystander": World(
        (OWNER, Actor("B", arms=2), Actor("C")), OWNED, length_max=6
    ),
    "an owner, two successors": TWO_SUCCESSORS,
    "an empty journal, a successor, a bystander": World(
        (Actor("A", tries=2), Actor("B", arms=1), Actor("C")), length_max=6
    ),
    "an owner that ends the group, its successor, a bystander": ONE_THAT_RETIRES,
    "two that claim again and again": World((Actor("A", tries=3), Actor("B", tries=2)), length_max=5),
    "three that claim": THREE_THAT_CLAIM,
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_each_seq_is_committed_exactly_once_in_every_interleaving(world: World) -> None:
    explored = Explorer(world, protocol.decide).run()
    assert explored.trace is None, " | ".join(explored.trace or ())
    print(f"{explored.states} states")
    assert explored.states > 100_000


WORLD_OF: dict[Decide, World] = {
    without_the_second_read: THREE_THAT_CLAIM,
    with_epochs_from_elsewhere: THREE_THAT_CLAIM,
    blind_to_the_end: ONE_THAT_RETIRES,
}


@pytest.mark.parametrize("broken", [*MUTANTS, blind_to_the_end], ids=lambda mutant: mutant.__name__)
def test_a_protocol_without_one_of_its_rules_is_found_out(broken: Decide) -> None:
    explored = Explorer(WORLD_OF.get(broken, TWO_SUCCESSORS), broken).run()
    assert explored.trace is not None
    print(" | ".join(explored.trace))
