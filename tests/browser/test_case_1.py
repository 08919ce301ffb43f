"""Case 1, by keyboard alone: numbers of a CSV file, the average of the last n, a CSV file; moved to another
lane under load, dragged back by mouse, and to the other lane by touch."""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

LAST, NOTE = 1000, 1000
"""Rows in a window, and characters of each row's note: the window is a state of about 1 MiB."""
IN_FILE, LOOPS = 3000, 40
ROWS = IN_FILE * LOOPS
# rows per second while it moves, so that they last on a machine that takes minutes, and for the rest
RATE, RATE_AFTER = 200, 1_000_000
NAME = "Count window aggregate"
TAKES = re.compile(r"Getting ready(about|less).*Pause(about|less).*Copied first.*CPU of edge-")


def of_last(values: list[float], notes: list[str], n: int) -> list[tuple[float, int]]:
    """The oracle: the average of the last n values, and how many of the last n rows have a note."""
    sums = [0.0, *accumulate(values)]
    noted = [0, *accumulate(map(bool, notes))]
    ends = range(n, len(values) + 1)
    return [((sums[end] - sums[end - n]) / n, noted[end] - noted[end - n]) for end in ends]


def test_case_1_drawn_deployed_and_moved_to_another_lane_and_back_writes_what_the_oracle_computes(
    open_dashboard: Callable[..., Dashboard], fogline: RunningFogline, tmp_path: Path
) -> None:
    dashboard = open_dashboard(*fogline.login(), has_touch=True)
    # quarters: their sums are exact in any order, so the result must be equal, not near
    chance = random.Random(1)
    values = [chance.randrange(4000) / 4 for _ in range(IN_FILE)]
    notes = [f"n{chance.randbytes(NOTE // 2).hex()}" if chance.random() < 0.9 else "" for _ in values]
    numbers = tmp_path / "numbers.csv"
    lines = [f"{value},{note}\n" for value, note in zip(values, notes, strict=True)]
    numbers.write_text("".join(["value,note\n", *lines]))

    dashboard.create_pipeline("case-1")
    draw(dashboard, numbers)
    dashboard.run_command("deploy", "Deploy")
    dialog = dashboard.page.get_by_role("dialog", name=re.compile("^Deploy "))
    dashboard.tab_to(dialog.get_by_role("button", name="Deploy", exact=True))
    dashboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(dashboard.live_panel).to_be_visible()

    # live: the elements run and rows flow through the aggregate
    aggregate = dashboard.card("count-window-aggregate")
    dashboard.expect_status("count-window-aggregate", "running")
    figures = aggregate.locator(".el-card__figures")
    expect(figures).to_contain_text(re.compile(r"^(?!0 )[\d.]+ in/s"), timeout=SLOW_MS)
    origin = node_of(fogline, "case-1", "count-window-aggregate")
    target = {"edge-a": "edge-b", "edge-b": "edge-a"}[origin]
    wait_until(lambda: written(fogline, "case-1"), "a window that is full", SLOW_MS / 1000)
    assert written(fogline, "case-1") < ROWS - LAST, "the replay is over: a move would show nothing"

    move_by_keyboard(dashboard, aggregate, origin, target)
    expect(aggregate).to_contain_text(target)
    drag_back(dashboard, aggregate, origin)
    expect(aggregate).to_contain_text(origin)
    drag_by_finger(dashboard, target)
    expect(aggregate).to_contain_text(target)
    move_back(dashboard, aggregate, origin)
    expect(aggregate).to_contain_text(origin)
    dashboard.expect_status("count-window-aggregate", re.compile("running|lagging|ended"))

    # an element has ended when its inputs have and it has processed them: the file is complete
    play_faster(fogline, "case-1")
    dashboard.expect_status("csv-sink", "ended")
    output = dashboard.download_output("csv-sink", tmp_path / "averages.csv")
    with output.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["average", "notes"]
    assert [(float(row[0]), int(row[1])) for row in rows] == of_last(values * LOOPS, notes * LOOPS, LAST)


def draw(dashboard: Dashboard, numbers: Path) -> None:
    """From the empty canvas: each element is connected with the one before as it is added."""
    dashboard.add_by_keyboard("csv replay", "csv-replay")
    dashboard.open_parameters()
    with dashboard.page.expect_file_chooser() as chooser:
        dashboard.tab_to(dashboard.inspector.get_by_role("button", name="Upload"))
        dashboard.press("Enter")
    chooser.value.set_files(numbers)
    dashboard.expect_uploaded(numbers)
    dashboard.type_into(dashboard.field("Rate"), str(RATE))
    dashboard.type_into(dashboard.field("Loops"), str(LOOPS))
    dashboard.press("Escape")
    expect(dashboard.card("csv-replay")).to_be_focused()

    dashboard.add_by_keyboard("count window", "count-window-aggregate")
    dashboard.open_parameters()
    dashboard.type_into(dashboard.field("Rows in a window"), str(LAST))
    for number, aggregate in enumerate((("avg", "value", "average"), ("count", "note", "notes")), 1):
        add_aggregate(dashboard, number, *aggregate)
    dashboard.press("Escape")

    dashboard.add_by_keyboard("csv file", "csv-sink")
    dashboard.press("F2")
    dashboard.page.keyboard.type("Averages")
    dashboard.press("Enter")
    expect(dashboard.card("csv-sink")).to_contain_text("Averages")
    dashboard.open_parameters()
    dashboard.type_into(dashboard.field("Name of the file"), "averages.csv")

    expect(dashboard.canvas.locator(".react-flow__edge")).to_have_count(2)
    expect(dashboard.problems).to_contain_text("No problems")


def add_aggregate(dashboard: Dashboard, number: int, name: str, column: str, result: str) -> None:
    dashboard.tab_to(dashboard.inspector.get_by_role("button", name="Add aggregate"))
    dashboard.press("Enter")
    aggregate = dashboard.inspector.get_by_role("group", name=f"Aggregate {number}").first
    function = aggregate.get_by_label("Function")
    dashboard.tab_to(function)
    dashboard.page.keyboard.type(name)
    expect(function).to_have_value(name)
    dashboard.type_into(aggregate.get_by_label("Column"), column)
    dashboard.type_into(aggregate.get_by_label("Name of the result (optional)"), result)


def move_by_keyboard(dashboard: Dashboard, card: Locator, origin: str, target: str) -> None:
    """By the Tab key to the card, M, and the arrow keys to the lane, which says what the move will take."""
    page = dashboard.page
    dashboard.tab_to(card)
    dashboard.press("Space", "m")
    question = page.get_by_role("dialog", name=f"Move {NAME} to {target}")
    expect(question.get_by_role("button", name=f"Move to {target}")).to_be_focused()
    expect(question).to_contain_text(TAKES)
    dashboard.press("ArrowDown")
    there = page.get_by_role("dialog", name=f"Move {NAME} to {origin}")
    expect(there).to_contain_text("It runs here already.")
    dashboard.press("ArrowUp")
    expect(question).to_be_visible()
    dashboard.press("Enter")
    expect(question).to_have_count(0)
    expect(card).to_be_focused()
    expect(dashboard.told_moves).to_contain_text(f"{NAME} runs on {target}. Pause: ", timeout=SLOW_MS)


def drag_back(dashboard: Dashboard, card: Locator, target: str) -> None:
    """By mouse: while it hangs over the lane, that says what the move will take. It is dropped twice: the
    first time that asks, the second time it moves at once."""
    page = dashboard.page
    dashboard.drag_to_lane("count-window-aggregate", target)
    hanging = page.get_by_role("region", name=f"Move {NAME} to {target}")
    expect(hanging).to_contain_text(TAKES)
    page.mouse.up()
    question = page.get_by_role("dialog", name=f"Move {NAME} to {target}")
    expect(question.get_by_role("button", name=f"Move to {target}")).to_be_focused()
    at_once = question.get_by_role("checkbox", name="Do not ask after a drop")
    at_once.check()
    dashboard.press("Escape")
    expect(question).to_have_count(0)
    dashboard.drag_to_lane("count-window-aggregate", target)
    expect(hanging).to_be_visible()
    page.mouse.up()
    expect(hanging).to_have_count(0)
    expect(question).to_have_count(0)
    expect(dashboard.told_moves).to_contain_text(f"{NAME} runs on {target}. Pause: ", timeout=SLOW_MS)
    strip = card.locator(".move-strip")
    expect(strip).to_contain_text(re.compile(r"No row waited longer|Pause (at most )?[\d.]+ m?s"))
    expect(strip.get_by_role("button", name=re.compile(f"^Move back {NAME} to "))).to_be_visible()

    # the box is where it was ticked: in the question, by keyboard
    dashboard.tab_to(card)
    dashboard.press("Space", "m")
    page.get_by_role("checkbox", name="Do not ask after a drop").uncheck()
    dashboard.press("Escape")


def move_back(dashboard: Dashboard, card: Locator, target: str) -> None:
    """By the button on the card, below which its pause is written."""
    card.locator(".move-strip").get_by_role("button", name=f"Move back {NAME} to {target}").click()
    question = dashboard.page.get_by_role("dialog", name=f"Move {NAME} back to {target}?")
    question.get_by_role("button", name=f"Move back to {target}").click()
    expect(dashboard.told_moves).to_contain_text(f"{NAME} runs on {target}. Pause: ", timeout=SLOW_MS)


def drag_by_finger(dashboard: Dashboard, target: str) -> None:
    dashboard.drag_to_lane_by_finger("count-window-aggregate", target)
    question = dashboard.page.get_by_role("dialog", name=f"Move {NAME} to {target}")
    question.get_by_role("button", name=f"Move to {target}").tap()
    expect(dashboard.told_moves).to_contain_text(f"{NAME} runs on {target}. Pause: ", timeout=SLOW_MS)


def element(fogline: RunningFogline, pipeline: str, id: str) -> dict[str, object]:
    with fogline.client() as client:
        found: dict[str, object] = (
            client.get(f"/api/v1/pipelines/{pipeline}/elements/{id}").raise_for_status().json()
        )
    return found


def node_of(fogline: RunningFogline, pipeline: str, id: str) -> str:
    return str(element(fogline, pipeline, id)["node"])


def play_faster(fogline: RunningFogline, pipeline: str) -> None:
    """Deploys it with another rate: the source goes on where it is."""
    path = f"/api/v1/pipelines/{pipeline}"
    with fogline.client() as client:
        found = client.get(path).raise_for_status()
        document = found.json()["document"]
        document["spec"]["elements"][0]["params"]["rate"] = RATE_AFTER
        tag = {"If-Match": found.headers["ETag"]}
        client.put(path, json={"document": document}, headers=tag).raise_for_status()
        client.post(f"{path}/deploy").raise_for_status()


def written(fogline: RunningFogline, pipeline: str) -> int:
    """Rows in the sink's file by now."""
    with fogline.client() as client:
        text = client.get(f"/api/v1/pipelines/{pipeline}/elements/csv-sink/output").text
    return max(len(text.splitlines()) - 1, 0)
