"""Laws of the decision which element may be what ends its nodes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pipeline_runtime.model.desired import is_held
from workers.control.handovers.culprits import SOON, Stay, ends_of

FELL_AT = datetime(2026, 11, 28, 3, 0, tzinfo=UTC)
POWER, HEAT = ("d", "power"), ("d", "heat")
STAY = Stay(POWER, "edge-a", FELL_AT - timedelta(seconds=20), came_through=False, reads="t, offset 3")


def held(*stays: Stay, group: tuple[str, str] = POWER) -> bool:
    return is_held(ends_of(group, "edge-b", FELL_AT, stays))


def test_the_only_one_that_came_and_committed_nothing_is_held_with_what_it_was_reading() -> None:
    first, last = ends_of(POWER, "edge-b", FELL_AT, [STAY])
    assert (first.node, last.node, last.reads) == ("edge-a", "edge-b", "t, offset 3")
    assert held(STAY)


def test_what_ran_there_before_or_came_through_is_no_suspect() -> None:
    assert not held(STAY, group=HEAT)
    assert not held(replace(STAY, came_through=True))
    assert held(STAY, replace(STAY, group=HEAT, came_through=True))


def test_a_node_that_falls_silent_long_after_says_nothing() -> None:
    assert not held(replace(STAY, began_at=FELL_AT - SOON - timedelta(seconds=1)))
    assert not held(replace(STAY, began_at=FELL_AT + timedelta(seconds=1)))


def test_of_two_suspects_neither_is_held_but_both_are_noted() -> None:
    stays = [STAY, replace(STAY, group=HEAT)]
    assert not held(*stays)
    assert len(ends_of(POWER, "edge-b", FELL_AT, stays)) == 2
