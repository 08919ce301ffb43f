"""When what has failed is tried again: the one policy of drains and restorations."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from workers.control.handovers.retries import (
    TRIES_MAX,
    TRY_AGAIN_S,
    Attempt,
    GivenUp,
    Later,
    Now,
    tries_again,
)

T0 = datetime(2026, 11, 23, tzinfo=UTC)
FAILED = Attempt("edge-b", "The target fell silent.", T0)


def verdict(*attempts: Attempt, after_s: float = 0.0) -> Now | Later | GivenUp:
    """Newest first, as the function takes them."""
    now = T0 + timedelta(seconds=after_s)
    return tries_again(attempts, now, doing="move", by_hand="drain edge-a again")


def test_what_was_not_tried_yet_goes_at_once() -> None:
    assert verdict() == Now(frozenset())


def test_the_pause_is_twice_as_long_after_each_failure_and_ends_at_a_stored_instant() -> None:
    for failures in range(1, TRIES_MAX):
        pause_s = TRY_AGAIN_S * 2 ** (failures - 1)
        attempts = [FAILED] * failures
        later = verdict(*attempts, after_s=pause_s - 0.001)
        assert isinstance(later, Later)
        assert later.at == T0 + timedelta(seconds=pause_s)
        assert later.why == "its move to edge-b failed: The target fell silent. It is tried again"
        assert isinstance(verdict(*attempts, after_s=pause_s), Now)


def test_the_pause_begins_when_the_newest_has_ended() -> None:
    older = replace(FAILED, ended_at=T0 - timedelta(hours=1))
    assert isinstance(verdict(FAILED, older), Later)


def test_other_targets_come_first() -> None:
    again = verdict(FAILED, replace(FAILED, target="edge-c"), after_s=3600)
    assert again == Now(frozenset({"edge-b", "edge-c"}))


def test_it_gives_up_after_some_tries_however_long_ago_and_says_why_and_what_to_do() -> None:
    assert verdict(*[FAILED] * TRIES_MAX, after_s=86_400) == GivenUp(
        "its move to edge-b failed: The target fell silent. Tried 5 times; mend the cause, then "
        "drain edge-a again"
    )


def test_what_stops_the_element_is_tried_once() -> None:
    given_up = verdict(replace(FAILED, stops=True), after_s=3600)
    assert isinstance(given_up, GivenUp)
    assert given_up.why.endswith("Each try stops it for a while; drain edge-a again to try again")


def test_what_a_user_has_cancelled_is_not_tried_again_whatever_failed_before_or_after() -> None:
    cancelled = replace(FAILED, cancelled=True)
    for attempts in ([cancelled], [FAILED, cancelled], [cancelled, FAILED]):
        assert verdict(*attempts, after_s=3600) == GivenUp(
            "its move was cancelled; drain edge-a again to try again", cancelled=True
        )
