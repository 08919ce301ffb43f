"""The pipeline of the tutorial can be drawn as its page says."""

from __future__ import annotations

import re

import pytest

from tests.browser.dashboard import Dashboard
from tests.pictures import tutorial
from tests.running import PROJECT, RunningFogline

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

PAGE = PROJECT / "docs" / "tutorial" / "from-a-csv-to-an-alarm.md"


def test_the_steps_of_the_tutorial_draw_a_pipeline_without_a_problem(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    pictures = []
    tutorial.draw(dashboard, lambda name, *_: pictures.append(name))
    with fogline.client() as client:
        draft = client.get(f"/api/v1/pipelines/{tutorial.PIPELINE}").raise_for_status().json()["document"]
    elements = {each["id"]: each for each in draft["spec"]["elements"]}
    assert set(elements) == {"csv-replay", "window-aggregate", "live-chart", "hysteresis-alarm", "live-table"}
    assert elements["window-aggregate"]["params"]["keys"] == ["store"]
    assert elements["hysteresis-alarm"]["params"]["raise_at"] == -15
    assert elements["live-table"]["inputs"] == {"in": "hysteresis-alarm"}
    shown = re.findall(r"images/tutorial-(\w+)\.png", PAGE.read_text(encoding="utf-8"))
    assert shown[: len(pictures)] == pictures, "the page shows its pictures in the order of its steps"
