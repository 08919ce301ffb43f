"""Which connection of an edge node counts."""

from __future__ import annotations

import pytest

from pipeline_runtime.connectors.sdk import ConnectorError
from pipeline_runtime.connectors.sparkplug_lives import LEFT_MAX, Life, alone, life_of, next_life


def test_lives_are_numbered_from_0_to_255_over_all_owners_and_name_those_that_may_be_left() -> None:
    first = next_life(life_of({}), None, "g", 1)
    assert first == Life(0, "g", 1)
    second = next_life(first, None, "g", 2)
    assert second == Life(1, "g", 2, left=(1,))
    assert life_of(second.mark()) == second
    # The second owner has died before it could end the connection of the first.
    assert next_life(second, None, "g", 3) == Life(2, "g", 3, left=(1, 2))
    settled = alone(second, second)
    assert settled == Life(1, "g", 2)
    again = next_life(settled, second, "g", 2)
    assert again == Life(2, "g", 2)
    assert next_life(Life(255, "g", 2), second, "g", 2).number == 0


def test_an_owner_does_not_begin_after_a_later_one() -> None:
    with pytest.raises(ConnectorError, match=r"later owner of this element \(epoch 3\)"):
        next_life(Life(5, "g", 3), None, "g", 2)
    # The epochs of another group are others.
    assert next_life(Life(5, "g", 3), None, "other", 1) == Life(6, "other", 1, left=(3,))
    with pytest.raises(ConnectorError, match="in another group now"):
        next_life(Life(6, "other", 1), Life(5, "g", 3), "g", 3)


def test_a_life_is_not_alone_when_another_one_was_noted() -> None:
    life = Life(5, "g", 2, left=(1,))
    for other in (None, Life(6, "g", 3, left=(2,)), Life(6, "g", 2)):
        with pytest.raises(ConnectorError, match="so this one sends nothing"):
            alone(other, life)


def test_of_very_many_owners_the_last_ones_are_named() -> None:
    last = Life(0, "g", 1)
    for epoch in range(2, 50):
        last = next_life(last, None, "g", epoch)
    assert last.left == tuple(range(49 - LEFT_MAX, 49))
