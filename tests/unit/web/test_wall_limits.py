"""Which limit a wall draws of an alarm."""

from typing import Any

import pytest

from webapp.walls.limits import limits_of


@pytest.mark.parametrize(
    ("type_", "params", "limits"),
    [
        ("hysteresis-alarm", {"raise_at": 80}, {"low": None, "high": 80}),
        ("hysteresis-alarm", {"raise_at": -2.5, "direction": "below"}, {"low": -2.5, "high": None}),
        ("threshold-alert", {"limit": 3}, {"low": None, "high": 3}),
        ("threshold-alert", {"limit": 3, "operator": "<="}, {"low": 3, "high": None}),
        ("threshold-alert", {"limit": 3, "operator": "="}, None),
        ("hysteresis-alarm", {"raise_at": "80"}, None),
        ("hysteresis-alarm", {"raise_at": True}, None),
        ("filter", {"limit": 3}, None),
        ("hysteresis-alarm", None, None),
    ],
)
def test_the_limit_of_an_alarm_is_on_the_side_on_which_it_is_raised(
    type_: str, params: Any, limits: Any
) -> None:
    assert limits_of([{"id": "other"}, {"id": "alarm", "type": type_, "params": params}], "alarm") == limits


def test_there_is_no_limit_of_an_element_that_is_not_there() -> None:
    assert limits_of([{"id": "alarm", "type": "hysteresis-alarm", "params": {"raise_at": 1}}], "gone") is None
