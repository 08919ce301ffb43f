"""A node falls silent while one looks at the lanes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.axe import Axe
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

NAME = "stranded"
PATH = f"/api/v1/pipelines/{NAME}"
DOCUMENT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": NAME},
    "spec": {
        "elements": [
            {"id": "numbers", "type": "generator", "params": {"rate": 5}, "node": "edge-a"},
            {
                "id": "keep",
                "type": "filter",
                "params": {"condition": "value > -2"},
                "inputs": {"in": "numbers"},
                "node": "edge-b",
            },
        ]
    },
}


@pytest.fixture
def runs(fogline: RunningFogline) -> Iterator[httpx.Client]:
    with fogline.client() as client:
        client.post("/api/v1/pipelines", json={"name": NAME, "document": DOCUMENT}).raise_for_status()
        client.post(f"{PATH}/deploy").raise_for_status()
        wait_until(lambda: rows_out(client), "the first rows", 180)
        yield client


@pytest.fixture
def silenced(fogline: RunningFogline) -> Iterator[int]:
    """The process of edge-b, which is killed and started again after the test."""
    pid = fogline.pid("edge-b")
    yield pid
    os.kill(pid, signal.SIGKILL)
    with fogline.client() as client:
        wait_until(
            lambda: client.get("/api/v1/nodes/edge-b").json()["ready"] and fogline.pid("edge-b") != pid,
            "edge-b to be ready again",
            180,
        )


def rows_out(client: httpx.Client) -> int:
    return int(client.get(f"{PATH}/elements/keep").json()["rows_out_total"] or 0)


def test_the_lane_of_a_dead_node_greys_and_its_elements_leave_it_for_where_they_are_restored(
    runs: httpx.Client, dashboard: Dashboard, silenced: int
) -> None:
    page, axe = dashboard.page, Axe(dashboard.page)
    page.goto(f"/pipelines/{NAME}?mode=live&arranged=lanes")
    dashboard.expect_status("keep", "running")
    dead, lives = dashboard.lane("edge-b"), dashboard.lane("edge-a")
    expect(dead).not_to_contain_class("lane-box--dead")

    os.kill(silenced, signal.SIGSTOP)  # a killed one is back before anybody misses it
    expect(dead).to_contain_text("Last heard", timeout=SLOW_MS)
    expect(dead).to_contain_class("lane-box--dead")
    expect(dashboard.canvas.locator(".react-flow__node-card.stranded")).to_have_count(1)
    expect(lives).not_to_contain_class("lane-box--dead")
    axe.look("the lane of a dead node")

    before = rows_out(runs)
    runs.post(f"{PATH}/elements/keep/restore", json={"target": "edge-a"}).raise_for_status()
    left = dashboard.canvas.locator(".ghost--left")
    expect(left).to_contain_text("restored on edge-a", timeout=SLOW_MS)
    arrow = dashboard.canvas.locator(".threads > path")
    expect(arrow).to_have_attribute("data-arrived", "true")
    expect(arrow).to_have_count(1)
    dashboard.expect_status("keep", "running")
    expect(dashboard.canvas.locator(".react-flow__node-card.stranded")).to_have_count(0)
    wait_until(lambda: rows_out(runs) > before, "rows from where it was restored")
    axe.look("what left a dead node")
    axe.expect_nothing()
