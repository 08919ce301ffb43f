"""A deployed pipeline in one word."""

from __future__ import annotations

import pytest

from webapp.monitoring.board import running_status


@pytest.mark.parametrize(
    ("elements", "status"),
    [
        ({"running"}, "running"),
        ({"running", "ended", "view"}, "running"),
        ({"ended", "view"}, "ended"),
        ({"view"}, "running"),
        ({"paused", "view"}, "paused"),
        ({"paused", "ended"}, "paused"),
        ({"paused", "running"}, "running"),
        ({"paused", "failed"}, "attention"),
        ({"ended", "failed"}, "attention"),
        ({"running", "silent"}, "attention"),
        ({"unheard"}, "attention"),
        ({"lagging"}, "attention"),
        ({"running", "starting"}, "attention"),
        ({"running", "restoring"}, "attention"),
        ({"running", "moving"}, "running"),
    ],
)
def test_a_pipeline_is_what_all_of_it_is_and_wants_attention_when_any_of_it_does(
    elements: set[str], status: str
) -> None:
    assert running_status(elements) == status
