"""Tests the pace of rows: the limit of a batch, the lag that is shown, and pauses."""

from __future__ import annotations

import itertools
from pathlib import Path
from time import time
from uuid import uuid4

import pytest

from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.ids import Epoch
from pipeline_runtime.model.spec import LATENCY_MS_MIN, Pace
from pipeline_runtime.replica.replica import Replica
from tests.directing import tell
from tests.integration.runtime.documents import by_key, events
from tests.integration.runtime.engine import (
    STOP_S,
    Deployed,
    Node,
    create_topic,
    owning,
    produce,
    read_all,
    wait_for_status,
)
from tests.tables import as_table
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

RATE = 100
PAUSE_MS = 1_500


def until_it_is_long(begun_ms: float) -> None:
    """A pause: what it would hold back is more than what a batch takes."""
    wait_until(lambda: time() * 1000 >= begun_ms + PAUSE_MS)


def test_no_batch_is_larger_than_the_limit_and_the_lag_shows(kafka: str, node: Node) -> None:
    topic = create_topic(kafka, 3)
    rows = [{"k": f"k{n % 3}", "v": n} for n in range(6_000)]
    produce(kafka, topic, rows, key=lambda row: row["k"], partition=lambda row: row["v"] % 3)
    pace = Pace(latency_ms=LATENCY_MS_MIN, batch_rows_max=400)
    deployed = Deployed(kafka, [events(topic, partitions=3)], pace=pace)
    replica = node.own(deployed.specs["events"])
    wait_for_status(replica, lambda status: 0 < (status.lag_rows or 0) < 6_000, "to show its lag")
    wait_for_status(replica, lambda status: status.rows_in_total >= 6_000, "to catch up")
    assert by_key(deployed.records("events")) == by_key(rows)
    commits = deployed.commits("events")
    rows_in = [commit.rows_in for commit in commits]
    assert max(rows_in[:3]) <= 400
    assert max(rows_in) <= 800, "two batches as one"
    # Partitions that lag reach the present together.
    ends = commits[len(commits) // 2].boundary.ends
    half = [end for end in ends.values() if isinstance(end, int)]
    assert max(half) - min(half) <= 800
    wait_for_status(replica, lambda status: status.lag_rows == 0, "to have no lag")


def test_a_pause_stops_the_clock_of_a_recording(
    kafka: str, node: Node, files: dict[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "endless"
    facts = as_table("n\n" + "".join(f"{n}\n" for n in range(100)), path, {"n": "integer"})
    reference = f"upload:{uuid4().hex}"
    files[reference] = path
    replay = {"path": reference, "rate": RATE, "loops": 0, "table": facts.model_dump(mode="json")}
    deployed = Deployed(kafka, [{"id": "replay", "type": "csv-replay", "params": replay}], files=[reference])
    replica = deployed.run(node)["replay"]
    wait_for_status(replica, lambda status: status.rows_out_total >= 100, "to replay")

    before_ms = time() * 1000
    tell(replica, paused_since_ms=0)
    begun_ms = time() * 1000
    wait_for_status(replica, lambda status: status.paused, "to be paused")
    until_it_is_long(begun_ms)
    seq = replica.status().seq
    assert replica.status().role == "owner"
    resumed_ms = time() * 1000
    tell(replica, paused_since_ms=None)
    shortest_ms, longest_ms = resumed_ms - begun_ms, time() * 1000 - before_ms
    wait_for_status(replica, lambda status: status.seq >= seq + 4, "to go on")
    node.stop_all()

    records = read_all(kafka, f"fl.{deployed.id}.replay.out")
    steps = [b.timestamp - a.timestamp for a, b in itertools.pairwise(records)]
    [jump] = [step for step in steps if step > 1000 / RATE + 1]
    assert shortest_ms - 2 <= jump - 1000 / RATE <= longest_ms + 2, "each time is rounded to a millisecond"
    # No burst: at no time has more been released than the clock allows that stood still meanwhile.
    released = 0
    start_ms = deployed.claims("replay")[0].start["replay"]["t0"]
    for commit in deployed.commits("replay"):
        released += commit.rows_in
        ran_ms = commit.boundary.batch_time_ms - start_ms
        if commit.boundary.batch_time_ms > resumed_ms:
            ran_ms -= shortest_ms
        assert released <= ran_ms * RATE / 1000 + 2
    assert released == len(records)


def test_a_live_source_catches_up_after_a_pause(kafka: str, node: Node) -> None:
    topic = create_topic(kafka)
    deployed = Deployed(kafka, [events(topic)])
    replica = node.own(deployed.specs["events"])
    owning(replica)
    produce(kafka, topic, [{"k": "a", "v": 0}])
    wait_until(lambda: len(deployed.records("events")) == 1, "the first row")
    tell(replica, paused_since_ms=0)
    produce(kafka, topic, [{"k": "a", "v": v} for v in range(1, 500)])
    run = replica._run
    assert run is not None
    wait_until(lambda: run.offsets.waiting, "the rows to be before it")
    wait_for_status(replica, lambda status: status.paused, "to be paused")
    assert len(deployed.records("events")) == 1
    tell(replica, paused_since_ms=None)
    wait_until(lambda: len(deployed.records("events")) >= 500, "all rows")
    assert [row["v"] for row in deployed.records("events")] == list(range(500))


@pytest.mark.full
def test_what_a_pause_has_held_back_does_not_burst_out_of_a_replica_that_started_meanwhile(
    kafka: str, node: Node
) -> None:
    deployed = Deployed(kafka, [{"id": "held", "type": "generator", "params": {"rate": RATE}}])
    held = deployed.run(node)["held"]
    wait_for_status(held, lambda status: status.rows_out_total >= RATE, "to run")
    held.stop(STOP_S)
    paused_ms = int(time() * 1000)
    until_it_is_long(paused_ms)

    spec = deployed.specs["held"]
    again = Replica(spec, node.replica_directory(spec), node.host)
    node.running.append(again)
    tell(again, paused_since_ms=paused_ms)
    tell(again, order=ClaimOrder(id="again", over=Epoch(1)))
    again.start()
    wait_for_status(again, lambda status: status.role == "owner", "to own, paused")
    resumed_ms = time() * 1000
    tell(again, paused_since_ms=None)
    wait_for_status(again, lambda status: status.rows_processed_total >= RATE, "to go on")
    node.stop_all()

    commits = deployed.commits("held")
    # What was due when it was stopped, and not in a batch yet, comes first.
    due_ms = paused_ms - max(commit.boundary.batch_time_ms for commit in commits if commit.epoch == 1)
    released = 0
    for commit in commits:
        if commit.epoch == 2:
            released += commit.rows_in
            ran_ms = due_ms + commit.boundary.batch_time_ms - resumed_ms
            assert released <= ran_ms * RATE / 1000 + 2
    assert released >= RATE
