"""Case 1, by mouse: numbers of a CSV file, the average of the last n, a CSV file; moved while it runs."""

from __future__ import annotations

import csv
import random
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.running import RunningFogline

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ROWS, RATE, LAST = 2700, 30, 10


def averages_of_last(values: list[float], n: int) -> list[float]:
    """The oracle: what the pipeline shall compute."""
    return [sum(values[end - n : end]) / n for end in range(n, len(values) + 1)]


def test_case_1_drawn_deployed_and_moved_writes_what_the_oracle_computes(
    dashboard: Dashboard, fogline: RunningFogline, tmp_path: Path
) -> None:
    # quarters: their sums are exact in any order, so the result must be equal, not near
    values = [random.Random(row).randrange(4000) / 4 for row in range(ROWS)]
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("value\n" + "".join(f"{value}\n" for value in values))

    draw(dashboard, "case-1", numbers)
    dashboard.deploy_button.click()
    expect(dashboard.live_panel).to_be_visible()

    # live: the elements run and rows flow through the aggregate
    aggregate = dashboard.card("count-window-aggregate")
    dashboard.expect_status("count-window-aggregate", "running")
    figures = aggregate.locator(".el-card__figures")
    expect(figures).to_contain_text(re.compile(r"^(?!0 )[\d.]+ in/s"), timeout=SLOW_MS)
    origin = node_of(fogline, "case-1", "count-window-aggregate")
    target = {"edge-a": "edge-b", "edge-b": "edge-a"}[origin]
    assert written(fogline, "case-1") < ROWS - LAST, "the replay is over: a move would show nothing"

    dashboard.migrate("count-window-aggregate", target)
    expect(aggregate).to_contain_text(target, timeout=SLOW_MS)
    expect(dashboard.live_panel.locator(".handover--done")).to_be_visible(timeout=SLOW_MS)
    dashboard.expect_status("count-window-aggregate", re.compile("running|lagging|ended"))

    # an element has ended when its inputs have and it has processed them: the file is complete
    dashboard.expect_status("csv-sink", "ended")
    output = dashboard.download_output("csv-sink", tmp_path / "averages.csv")
    with output.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["average"]
    assert [float(row[0]) for row in rows] == averages_of_last(values, LAST)


def draw(dashboard: Dashboard, name: str, numbers: Path) -> None:
    dashboard.create_pipeline(name)
    dashboard.drag_from_palette("CSV replay", 160, 160)
    dashboard.upload(numbers)
    dashboard.field("Rate").fill(str(RATE))

    dashboard.drag_from_palette("Count window aggregate", 420, 320)
    dashboard.field("Size").fill(str(LAST))
    dashboard.add_average("value", "average")

    dashboard.drag_from_palette("CSV file", 680, 480)
    dashboard.field("File").fill("averages.csv")

    dashboard.connect("csv-replay", "count-window-aggregate")
    dashboard.connect("count-window-aggregate", "csv-sink")
    expect(dashboard.problems).to_contain_text("No problems")


def element(fogline: RunningFogline, pipeline: str, id: str) -> dict[str, object]:
    with fogline.client() as client:
        found: dict[str, object] = (
            client.get(f"/api/v1/pipelines/{pipeline}/elements/{id}").raise_for_status().json()
        )
    return found


def node_of(fogline: RunningFogline, pipeline: str, id: str) -> str:
    return str(element(fogline, pipeline, id)["node"])


def written(fogline: RunningFogline, pipeline: str) -> int:
    """Rows in the sink's file by now."""
    with fogline.client() as client:
        text = client.get(f"/api/v1/pipelines/{pipeline}/elements/csv-sink/output").text
    return max(len(text.splitlines()) - 1, 0)
