"""Rows that an element could not take: counted on its card, grouped by reason in its panel, and a file."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from playwright.sync_api import Page, expect

from tests.browser.axe import Axe
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.integration.pipelines.driving import API, create_topic, deploy
from tests.running import RunningFogline

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

NAME = "with-letters"
TOPIC = "with-letters-in"
DOCUMENT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": NAME},
    "spec": {
        "elements": [
            {
                "id": "events",
                "type": "kafka-in",
                "params": {"topic": TOPIC, "columns": [{"name": "n", "type": "integer"}]},
                "node": "edge-a",
            },
        ]
    },
}
BROKEN = 3
MENDED = "with-mended-letters"
MENDED_TOPIC = "with-mended-letters-in"
MENDED_DOCUMENT: dict[str, Any] = {
    **DOCUMENT,
    "metadata": {"name": MENDED},
    "spec": {
        "elements": [
            {
                "id": "events",
                "type": "kafka-in",
                "params": {"topic": MENDED_TOPIC, "columns": [{"name": "n", "type": "number"}]},
                "node": "edge-a",
            },
            {
                "id": "share",
                "type": "derive",
                "params": {"columns": [{"name": "share", "expression": "100 / n"}]},
                "inputs": {"in": "events"},
                "node": "edge-a",
            },
        ]
    },
}


@pytest.fixture
def letters(fogline: RunningFogline) -> str:
    """The pipeline's name. Its source reads three records that are no JSON, and a text for a number."""
    create_topic(fogline.bootstrap, TOPIC)
    with fogline.client() as client:
        deploy(client, DOCUMENT)
    producer = KafkaProducer(bootstrap_servers=fogline.bootstrap)
    for n in range(BROKEN):
        producer.send(TOPIC, value=b"no JSON %d" % n)
    producer.send(TOPIC, value=b'{"n": "seven"}')
    producer.close()
    return NAME


@pytest.mark.full
def test_dead_letters_are_counted_on_the_card_grouped_by_reason_and_downloaded(
    letters: str, dashboard: Dashboard, tmp_path: Path
) -> None:
    page, panel = dashboard.page, dashboard.live_panel
    axe = Axe(page)
    page.goto(f"/pipelines/{letters}?mode=live&element=events")
    dashboard.card("events").get_by_role("button", name="4 dead letters").click(timeout=SLOW_MS)
    expect(panel.get_by_text("2 reasons in 4 letters.")).to_be_visible()
    reasons = panel.get_by_role("list", name="Reasons")
    newest = reasons.get_by_role("cell", name="no JSON 2")
    expect(newest).to_be_visible()
    expect(reasons.get_by_text("no JSON 0")).to_have_count(0)

    more = reasons.get_by_role("button", name="More rows")
    expect(more).to_have_count(1)  # the other reason has one letter
    more.click()
    expect(reasons.get_by_text("no JSON 0")).to_be_visible()
    oldest = reasons.get_by_role("region", name="The newest rows").get_by_role("row").last
    oldest.get_by_role("button", name=re.compile("^Open the row")).click()
    expect(panel.get_by_role("region", name="The row")).to_contain_text(
        f"Topic {TOPIC}, partition 0, offset 0"
    )
    axe.look("the dead letters")
    shoot(page, "letters", 1440, 760)

    panel.get_by_label("Text in the dead letters").fill("SEVEN")
    expect(panel.get_by_text("1 reason in 4 letters.")).to_be_visible()
    expect(newest).to_have_count(0)
    panel.get_by_label("Text in the dead letters").fill("nobody wrote this")
    expect(panel.get_by_text("None of 4 letters has this text.")).to_be_visible()

    with page.expect_download() as began:
        panel.get_by_role("link", name="JSON lines").click()
    assert began.value.suggested_filename == f"{NAME}-events-dead-letters.jsonl"
    began.value.save_as(tmp_path / "letters.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "letters.jsonl").read_text().splitlines()]
    assert [line["raw"] for line in lines][:BROKEN] == [f"no JSON {n}" for n in range(BROKEN)]
    assert len(lines) == BROKEN + 1
    axe.expect_nothing()


@pytest.fixture
def mended(fogline: RunningFogline) -> str:
    """The pipeline's name. Two of its records are no JSON, two have decimal commas, two are no divisors."""
    create_topic(fogline.bootstrap, MENDED_TOPIC)
    with fogline.client() as client:
        deploy(client, MENDED_DOCUMENT)
    producer = KafkaProducer(bootstrap_servers=fogline.bootstrap)
    numbers = ('"2,5"', '"12,5"', "0", "0", "4")
    for value in ("no JSON", "nor this", *(f'{{"n": {number}}}' for number in numbers)):
        producer.send(MENDED_TOPIC, value=value.encode())
    producer.close()
    return MENDED


def shoot(page: Page, name: str, *widths: int) -> None:
    """Pictures for whoever wants to look at them, light and dark."""
    shots = os.environ.get("SHOTS")
    if not shots:
        return
    for scheme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme = '{scheme}'")
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=f"{shots}/{name}-{scheme}-{width}.png")
    page.set_viewport_size({"width": 1440, "height": 900})


def test_dead_letters_are_dropped_put_back_and_mended_in_a_grid(
    mended: str, dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page, panel = dashboard.page, dashboard.live_panel
    axe = Axe(page)

    def open_letters(element: str, count: str) -> None:
        page.goto(f"/pipelines/{mended}?mode=live&element={element}")
        dashboard.card(element).get_by_role("button", name=count).click(timeout=SLOW_MS)

    open_letters("events", "4 dead letters")
    done = panel.get_by_role("region", name="What was done")
    unread = panel.get_by_role("group", name=re.compile("What to do about the rows: the record is not"))
    unread.get_by_role("button", name="Drop").click()
    page.get_by_role("dialog").get_by_role("button", name="Drop 2 rows").click()
    expect(done.get_by_text("2 rows dropped.")).to_be_visible(timeout=SLOW_MS)
    expect(unread).to_have_count(0)
    expect(dashboard.card("events").get_by_role("button", name="2 dead letters")).to_be_visible()
    done.get_by_role("button", name="Put back").click()
    expect(done.get_by_text("2 rows put back.")).to_be_visible(timeout=SLOW_MS)
    expect(unread).to_be_visible()
    expect(dashboard.card("events").get_by_role("button", name="4 dead letters")).to_be_visible()

    comma = panel.get_by_role("group", name=re.compile("What to do about the rows: its (field|column)"))
    comma.get_by_role("button", name="Mend").click()
    grid = page.get_by_role("dialog", name="Mend 2 rows")
    expect(grid.get_by_text("2 cells must be changed.")).to_be_visible()
    replay = grid.get_by_role("button", name="Replay 2 rows")
    expect(replay).to_have_attribute("aria-disabled", "true")
    # one of them whole, as it came
    grid.get_by_role("button", name=re.compile("^Open letter")).first.click()
    expect(grid.get_by_role("region", name="The row")).to_contain_text(re.compile('{"n": "1?2,5"}'))
    axe.look("rows to mend")
    shoot(page, "mend", 1440, 420)
    grid.get_by_label("replace").fill(",")
    grid.get_by_label("by", exact=True).fill(".")
    grid.get_by_role("button", name="Replace in all rows").click()
    expect(grid.get_by_text("All cells fit.")).to_be_visible()
    replay.click()
    expect(grid).to_have_count(0)
    expect(done.get_by_text("2 rows came back.")).to_be_visible(timeout=SLOW_MS)

    open_letters("share", "2 dead letters")
    zero = panel.get_by_role("group", name=re.compile("What to do about the rows"))
    zero.get_by_role("button", name="Mend").click()
    grid.get_by_label("by", exact=True).fill("50")
    grid.get_by_role("button", name="Replace in all rows").click()
    grid.get_by_role("button", name="Replay 2 rows").click()
    expect(done.get_by_text("2 rows came back. 2 of them read.")).to_be_visible(timeout=SLOW_MS)
    expect(dashboard.card("share").get_by_role("button", name=re.compile("dead letter"))).to_have_count(0)
    axe.look("what was done about dead letters")
    shoot(page, "letters-done", 1440)

    with fogline.client() as client:
        read = client.get(f"{API}/pipelines/{mended}/streams/share/peek?limit=100").json()["records"]
    assert sorted(record["value"]["n"] for record in read) == [2.5, 4.0, 12.5, 50.0, 50.0]
    axe.expect_nothing()
