"""Tests how much longer rows waited because an element's owner changed."""

from __future__ import annotations

from webapp.handovers.pause import pause_of

MEASURED = {
    "last_commit_at_ms": 10_000,
    "first_commit_at_ms": 10_283,
    "first_wait_ms": 260,
    "usual_wait_ms": 80,
}


def test_rows_that_waited_longer_than_usual_are_a_pause() -> None:
    expected = {"ms": 180, "at_most": False, "gap_ms": 283, "waited_ms": 260, "usual_ms": 80}
    assert pause_of(MEASURED) == expected


def test_rows_that_waited_no_longer_than_usual_are_no_pause() -> None:
    pause = pause_of(MEASURED | {"usual_wait_ms": 450})
    assert pause is not None
    assert (pause["ms"], pause["at_most"]) == (0, False)


def test_time_without_input_does_not_count() -> None:
    pause = pause_of(MEASURED | {"first_commit_at_ms": 21_600})
    assert pause is not None
    assert (pause["ms"], pause["gap_ms"]) == (180, 11_600)


def test_time_before_the_old_owners_last_batch_does_not_count() -> None:
    pause = pause_of(MEASURED | {"first_wait_ms": 900})
    assert pause is not None
    assert (pause["ms"], pause["waited_ms"]) == (203, 283)


def test_it_is_an_upper_bound_where_too_little_is_known() -> None:
    unseen = pause_of(MEASURED | {"first_wait_ms": None})
    young = pause_of(MEASURED | {"usual_wait_ms": None})
    assert unseen is not None
    assert young is not None
    assert (unseen["ms"], unseen["at_most"], unseen["waited_ms"]) == (203, True, None)
    assert (young["ms"], young["at_most"]) == (260, True)


def test_before_a_stop_and_copy_the_old_owner_processed_what_came() -> None:
    seldom = MEASURED | {"first_commit_at_ms": 40_000, "first_wait_ms": None, "stopped_at_ms": 36_000}
    pause = pause_of(seldom)
    assert pause is not None
    assert (pause["ms"], pause["gap_ms"]) == (3_920, 30_000)


def test_where_nothing_came_to_process_no_pause_is_made_up() -> None:
    assert pause_of(MEASURED | {"first_commit_at_ms": None}) is None
    assert pause_of(MEASURED | {"last_commit_at_ms": None}) is None
    assert pause_of({}) is None
