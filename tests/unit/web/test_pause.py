"""What a change of owner cost whoever reads the outputs."""

from __future__ import annotations

from webapp.handovers.pause import Pause, pause_of

OFTEN = {
    "last_output_at_ms": 10_000,
    "first_output_at_ms": 11_300,
    "usual_output_ms": 1_000,
    "last_commit_at_ms": 10_050,
    "first_commit_at_ms": 10_400,
    "usual_commit_ms": 100,
}


def test_a_window_per_second_pauses_for_what_goes_beyond_its_second() -> None:
    assert pause_of(OFTEN) == Pause(300, "outputs", 1_300, 1_000)


def test_an_output_that_came_no_later_than_usual_is_no_pause() -> None:
    assert pause_of(OFTEN | {"first_output_at_ms": 10_700}) == Pause(0, "outputs", 700, 1_000)


def test_of_what_writes_once_a_minute_the_time_counts_in_which_nobody_processed() -> None:
    by_commits = Pause(250, "commits", 350, 100)
    seldom = OFTEN | {"usual_output_ms": 60_000, "first_output_at_ms": None}
    assert pause_of(seldom) == by_commits
    assert pause_of(seldom | {"first_output_at_ms": 69_000}) == by_commits, "its output says nothing of it"
    assert pause_of(seldom | {"last_output_at_ms": None, "usual_output_ms": None}) == by_commits


def test_with_too_few_outputs_its_commits_tell_more() -> None:
    assert pause_of(OFTEN | {"usual_output_ms": None}) == Pause(250, "commits", 350, 100)


def test_without_what_is_usual_it_is_an_upper_bound() -> None:
    few = OFTEN | {"usual_output_ms": None, "usual_commit_ms": None}
    assert pause_of(few) == Pause(350, "commits", 350, None)
    assert pause_of({"last_output_at_ms": 1, "first_output_at_ms": 9}) == Pause(8, "outputs", 8, None)


def test_where_nothing_came_to_process_no_pause_is_made_up() -> None:
    assert pause_of(OFTEN | {"first_output_at_ms": None, "first_commit_at_ms": None}) is None
    assert pause_of({}) is None
