"""Rows that an element could not take: counted on its card, grouped by reason in its panel, and a file."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from playwright.sync_api import expect

from tests.browser.axe import Axe
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.integration.pipelines.driving import create_topic, deploy
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


def test_dead_letters_are_counted_on_the_card_grouped_by_reason_and_downloaded(
    letters: str, dashboard: Dashboard, tmp_path: Path
) -> None:
    page, panel = dashboard.page, dashboard.live_panel
    axe = Axe(page)
    page.goto(f"/pipelines/{letters}?mode=live&element=events")
    expect(dashboard.card("events").get_by_role("img", name="4 dead letters")).to_be_visible(timeout=SLOW_MS)
    panel.get_by_role("tab", name=re.compile("Dead letters")).click()
    expect(panel.get_by_text("2 reasons in 4 letters.")).to_be_visible()
    reasons = panel.get_by_role("list", name="Reasons")
    newest = reasons.get_by_text("no JSON 2")
    expect(newest).to_be_visible()
    expect(reasons.get_by_text("no JSON 0")).to_have_count(0)

    more = reasons.get_by_role("button", name="More rows")
    expect(more).to_have_count(1)  # the other reason has one letter
    more.click()
    expect(reasons.get_by_text("no JSON 0")).to_be_visible()
    expect(reasons.get_by_text("from events.out partition 0 offset 0")).to_be_visible()
    axe.look("the dead letters")
    if shots := os.environ.get("SHOTS"):
        for scheme in ("light", "dark"):
            page.evaluate(f"document.documentElement.dataset.theme = '{scheme}'")
            for width in (1440, 760):
                page.set_viewport_size({"width": width, "height": 900})
                page.screenshot(path=f"{shots}/letters-{scheme}-{width}.png")
        page.set_viewport_size({"width": 1440, "height": 900})

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
