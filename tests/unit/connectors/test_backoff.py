"""How long a connector waits before it tries again."""

from __future__ import annotations

from hypothesis import given, strategies as st

from pipeline_runtime.connectors.backoff import LASTING_S, MOST_S, STEADY_S, YOUNG, YOUNG_MOST_S, Backoff


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_waits_grow_up_to_a_bound_and_never_vanish(chances: list[float]) -> None:
    backoff, waits = Backoff(), []
    for chance in chances:
        backoff, wait_s = backoff.failed(0.0, lasting=False, chance=chance)
        waits.append(wait_s)
    # The system may be back at any moment, so a young outage is not waited for long.
    assert all(0.2 < wait_s <= YOUNG_MOST_S for wait_s in waits[:YOUNG])
    assert all(MOST_S / 2 <= wait_s <= MOST_S for wait_s in waits[YOUNG:])
    assert len(waits) < 8 or waits[-1] >= YOUNG_MOST_S / 2
    assert waits[-1] <= backoff.within_s(lasting=False)


def test_who_was_connected_for_a_while_begins_with_a_short_wait_again() -> None:
    backoff = Backoff(failures=99)
    assert backoff.failed(STEADY_S, lasting=False, chance=1.0) == (Backoff(1), 0.5)
    assert backoff.failed(STEADY_S - 1, lasting=False, chance=1.0)[1] == MOST_S


def test_what_only_a_person_can_mend_is_tried_once_a_minute() -> None:
    assert Backoff().failed(0.0, lasting=True, chance=0.0)[1] == LASTING_S
    assert Backoff().within_s(lasting=True) == LASTING_S
