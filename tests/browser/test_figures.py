"""The dashboard's figures beside an oracle that counts in Kafka: paused, killed, restored, drained, moved."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import httpx
import pytest
from kafka import KafkaConsumer, TopicPartition
from playwright.sync_api import Locator, expect

from pipeline_runtime.journal.records import Commit, decode
from pipeline_runtime.model.ids import journal_topic, stream_topic
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.full, pytest.mark.timeout(600)]

NAME = "counted"
PATH = f"/api/v1/pipelines/{NAME}"
KEEP = f"{PATH}/elements/keep"
RATE = 40
START_S = 180
DOCUMENT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": NAME},
    "spec": {
        "elements": [
            {"id": "numbers", "type": "generator", "params": {"rate": RATE}, "node": "edge-a"},
            {
                "id": "keep",
                "type": "filter",
                # rare output: the pause of its moves has nothing to do with how often it writes
                "params": {"condition": "n % 400 == 0"},
                "inputs": {"in": "numbers"},
                "node": "edge-b",
            },
        ]
    },
}


class Oracle:
    """Counts the rows of a stream and reads a journal, record by record. Both must be untrimmed."""

    def __init__(self, bootstrap: str, deployment: str) -> None:
        self._stream = TopicPartition(stream_topic(deployment, "numbers"), 0)
        self._journal = TopicPartition(journal_topic(deployment, "keep"), 0)
        self._consumer = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
        self._consumer.assign([self._stream, self._journal])
        first = self._consumer.beginning_offsets([self._stream, self._journal])
        assert set(first.values()) == {0}, f"records were trimmed that are to be counted: {first}"
        self._consumer.seek_to_beginning()
        self._offsets: list[int] = []
        self.commits: dict[int, Commit] = {}  # by the broker's time

    def look(self) -> None:
        """Reads all that was committed before it was called."""
        ends = self._consumer.end_offsets([self._stream, self._journal])
        while any(self._consumer.position(tp) < end for tp, end in ends.items()):
            for tp, records in self._consumer.poll(200).items():
                for record in records:
                    if tp == self._stream:
                        self._offsets.append(record.offset)
                    elif isinstance(entry := decode(record.value), Commit):
                        self.commits[record.timestamp] = entry

    @property
    def waiting(self) -> int:
        """Rows behind the last batch."""
        self.look()
        newest = list(self.commits.values())[-1]
        end = newest.boundary.ends[f"{self._stream.topic}-0"]
        return sum(offset >= end for offset in self._offsets)

    @property
    def processed(self) -> int:
        self.look()
        return sum(commit.rows_in for commit in self.commits.values())

    def pause_of(self, measured: dict[str, Any]) -> dict[str, Any]:
        """Computed again from the journal, for the change of owner with this last and this first commit."""
        self.look()
        last_ms, first_ms = measured["last_commit_at_ms"], measured["first_commit_at_ms"]
        times = list(self.commits)
        assert times[times.index(last_ms) + 1] == first_ms
        waits = [commit.wait_ms for at, commit in self.commits.items() if at <= last_ms]
        usual_ms = round(median([wait for wait in waits if wait is not None][-20:]))
        gap_ms, wait_ms = first_ms - last_ms, self.commits[first_ms].wait_ms
        waited_ms = gap_ms if wait_ms is None else min(gap_ms, wait_ms)
        return {
            "gap_ms": gap_ms,
            "waited_ms": None if wait_ms is None else waited_ms,
            "usual_ms": usual_ms,
            "ms": max(0, waited_ms - usual_ms),
            "at_most": wait_ms is None,
        }

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def client(fogline: RunningFogline) -> Iterator[httpx.Client]:
    """Signed in; the pipeline runs, and rows have come to its end."""
    with fogline.client() as client:
        client.post("/api/v1/pipelines", json={"name": NAME, "document": DOCUMENT}).raise_for_status()
        client.post(f"{PATH}/deploy").raise_for_status()
        wait_until(lambda: client.get(KEEP).json()["rows_in_total"] > 10 * RATE, "the first rows", START_S)
        yield client


@pytest.fixture
def oracle(fogline: RunningFogline, client: httpx.Client) -> Iterator[Oracle]:
    made = Oracle(fogline.bootstrap, client.get(PATH).json()["deployment"])
    yield made
    made.close()


def shown_number(place: Locator) -> int:
    """The first number in what is shown; -1 if there is none."""
    found = re.search(r"\d[\d,]*", place.inner_text())
    return int(found[0].replace(",", "")) if found else -1


def expect_count(place: Locator, counted: Callable[[], int], what: str, *, ratio: float = 1.0) -> None:
    """What is shown comes to be at least what the oracle counted before, and at most what it counts now.

    `ratio`: how far from that an estimate may be."""
    at_least = counted()

    def reached() -> bool:
        shown = shown_number(place)
        assert shown <= counted() * ratio + 1, f"{what}: more is shown than there is"
        return shown >= at_least / ratio

    wait_until(reached, f"{what}: at least {at_least}, but {place.inner_text()!r} is shown")


def test_figures_are_what_an_oracle_counts_while_an_element_is_paused_killed_restored_drained_and_moved_back(
    client: httpx.Client, oracle: Oracle, dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page, panel = dashboard.page, dashboard.live_panel
    page.goto(f"/pipelines/{NAME}?mode=live&element=keep")
    dashboard.expect_status("keep", "running")

    # paused: rows wait, and are counted from the topic's end
    panel.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog", name="Pause keep?").get_by_role("button", name="Pause").click()
    dashboard.expect_status("keep", "paused")
    words = dashboard.card("keep").get_by_text("rows wait")
    for _ in range(2):  # the second time there are more of them
        expect_count(words, lambda: oracle.waiting, "rows that wait for a paused element")
    panel.get_by_role("button", name="Resume").click()
    dashboard.expect_status("keep", "running")

    # its node's process is killed: it is not said to run, in any place, until it does again
    overview = page.context.new_page()
    overview.goto("/")
    tile = overview.locator("a.tile").filter(has_text=NAME)
    expect(tile.locator(".status")).to_have_text("running")
    before = oracle.processed
    with fogline.kept_down("edge-b"):
        stands = re.compile("does not process yet|node does not answer")
        expect(dashboard.card("keep").locator(".status")).to_have_text(stands)
        lines = [line["message"] for line in client.get("/api/v1/overview").json()["attention"]]
        assert any(f"keep of {NAME}" in line for line in lines), lines
        expect(tile.locator(".status")).to_have_text("needs attention")
        expect(tile).to_contain_text(re.compile("(Does not process yet|Node does not answer): keep"))
        expect(page.locator(".page__head .status")).to_have_text("needs attention")
        waits = tile.locator(".figure").filter(has_text="Waits").locator(".figure__value")
        expect_count(waits, lambda: oracle.waiting, "rows that wait, on the overview", ratio=1.1)
        lag = panel.locator(".figure").filter(has_text="Lag").locator(".figure__value")
        expect_count(lag, lambda: oracle.waiting, "rows that wait for an element that is down", ratio=1.1)
    dashboard.expect_status("keep", "running")
    total = client.get(KEEP).json()["rows_in_total"]
    assert before <= total <= oracle.processed, "its rows are counted over the restart"
    expect(tile.locator(".status")).to_have_text("running")

    # restored on another node from a checkpoint, then moved back: what it repeats is not counted again
    def has_caught_up() -> bool:
        waiting = client.get(KEEP).json()["lag_rows"]
        return waiting is not None and waiting < RATE  # null until its owner knows it again

    wait_until(has_caught_up, "what had waited to be processed")
    before = oracle.processed
    client.post(f"{KEEP}/restore", json={"target": "edge-a"}).raise_for_status()
    dashboard.expect_handover_done("edge-a")
    dashboard.expect_status("keep", "running")
    total = client.get(KEEP).json()["rows_in_total"]
    assert before <= total <= oracle.processed, "its rows are counted over the restoration"
    dashboard.migrate("keep", "edge-b")
    dashboard.expect_handover_done("edge-b")

    # drained, then moved back: the pause is what the journal shows, however seldom it writes
    client.post("/api/v1/nodes/edge-b/drain").raise_for_status()
    try:
        dashboard.expect_handover_done("edge-a")
    finally:
        client.post("/api/v1/nodes/edge-b/uncordon").raise_for_status()
    dashboard.migrate("keep", "edge-b")
    dashboard.expect_handover_done("edge-b")
    moved = [each for each in client.get("/api/v1/handovers").json() if each["pipeline"] == NAME]
    assert [(each["kind"], each["origin"], each["target"]) for each in moved] == [
        ("migration", "edge-a", "edge-b"),
        ("migration", "edge-b", "edge-a"),
        ("migration", "edge-a", "edge-b"),
        ("restoration", "edge-b", "edge-a"),
    ]
    for handover in moved[:3]:
        assert handover["pause"] == oracle.pause_of(handover["measured"])
    page.goto(f"/handovers/{moved[0]['id']}")
    told = moved[0]["pause"]
    expect(page.get_by_text(f"it took {millis(told['gap_ms'])}.").first).to_be_visible(timeout=SLOW_MS)

    # both nodes' batches, as they stand in the journal, and how former moves went
    moments = page.get_by_role("table", name="Moments of this move")
    first = moved[0]["measured"]["first_commit_at_ms"] - moved[0]["measured"]["at_ms"]
    expect(moments.get_by_role("row", name=f"First output of edge-b +{millis(first)}")).to_be_visible()
    expect(page.get_by_text("Each bar is a batch")).to_be_visible(timeout=SLOW_MS)
    written = client.get(f"/api/v1/handovers/{moved[0]['id']}/details").json()["written"]
    nodes = [each["node"] for each in written["batches"]]
    assert set(nodes) == {"edge-a", "edge-b"}
    assert nodes == sorted(nodes)
    expect(page.get_by_role("table", name="Former moves").get_by_role("row")).to_have_count(3)

    # nothing was counted twice or lost on the way
    def all_counted() -> bool:
        least, shown = oracle.processed, client.get(KEEP).json()["rows_in_total"]
        return bool(least <= shown <= oracle.processed)

    wait_until(all_counted, "the total to be the journal's")


def millis(ms: int) -> str:
    """As the dashboard writes it."""
    return f"{ms} ms" if ms < 1000 else f"{ms / 1000:.2f} s"
