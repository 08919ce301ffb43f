"""The alerts of a node: one that goes on keeps its time, and only new ones are told."""

from __future__ import annotations

import django

django.setup()

from workers.control.reports.nodes import alerts_now  # noqa: E402

DISK = {"message": "The disk is full.", "since": "before"}


def test_one_that_goes_on_keeps_its_time_and_a_new_one_begins_now() -> None:
    alerts, new = alerts_now([DISK], ["Its clock is wrong.", DISK["message"]], "now")
    assert alerts == [{"message": "Its clock is wrong.", "since": "now"}, DISK]
    assert new == ["Its clock is wrong."]


def test_one_that_is_over_goes_and_begins_again_when_it_comes_back() -> None:
    assert alerts_now([DISK], [], "now") == ([], [])
    assert alerts_now([], [DISK["message"]], "now") == (
        [{"message": "The disk is full.", "since": "now"}],
        [DISK["message"]],
    )


def test_one_that_is_reported_twice_is_told_once() -> None:
    assert alerts_now([], [DISK["message"], DISK["message"]], "now")[1] == [DISK["message"]]
