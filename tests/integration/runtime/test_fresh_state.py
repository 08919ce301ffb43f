"""An upgrade that cannot keep a window's state begins it fresh. Nothing else is lost, nothing is repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline_runtime.model.desired import ClaimOrder, Role
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.local_state import beginning, last_committed
from pipeline_runtime.replica.replica import Replica
from tests.directing import tell
from tests.integration.runtime.copying import copy_state
from tests.integration.runtime.documents import by_key, events, running_sums, sums
from tests.integration.runtime.engine import (
    STOP_S,
    Deployed,
    Element,
    Node,
    create_topic,
    owning,
    produce,
    wait_for_status,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

START_MS = 1_700_000_000_000
ROW_MS = 50
AGGREGATES = [{"function": "count", "as": "n"}, {"function": "sum", "column": "v", "as": "total"}]


def window(size_s: float) -> Element:
    params = {"size_s": size_s, "aggregates": AGGREGATES}
    return {"id": "window", "type": "window-aggregate", "inputs": {"in": "events"}, "params": params}


def resized(spec: GroupSpec, size_s: float) -> GroupSpec:
    [element] = spec.elements
    changed = element.model_copy(update={"params": {**element.params, "size_s": size_s}})
    return spec.model_copy(update={"elements": (changed,), "version": f"{spec.version}-{size_s:g}"})


class Rows:
    """Numbered rows, one every 50 ms of event time."""

    def __init__(self, kafka: str, topic: str) -> None:
        self._kafka, self._topic = kafka, topic
        self.sent: list[dict[str, Any]] = []

    def send(self, count: int) -> None:
        rows = [{"k": f"k{n % 3}", "v": n} for n in range(len(self.sent), len(self.sent) + count)]
        produce(self._kafka, self._topic, rows, time_ms=lambda row: START_MS + ROW_MS * row["v"])
        self.sent += rows

    def close_windows(self, deployed: Deployed, count: int) -> None:
        """The last of them in a batch of its own: it closes the windows before it."""
        for part in (count - 1, 1):
            self.send(part)
            wait_until(lambda: rows_read(deployed) == len(self.sent), "the window has read all rows")


def rows_read(deployed: Deployed) -> int:
    return sum(commit.rows_in for commit in deployed.commits("window"))


def windows(deployed: Deployed) -> list[tuple[int, int]]:
    return [(row["n"], row["total"]) for row in deployed.records("window")]


def of(*ranges: range) -> list[tuple[int, int]]:
    return [(len(numbers), sum(numbers)) for numbers in ranges]


def resume(node: Node, spec: GroupSpec, over: int, *, fresh: bool = True) -> Replica:
    """Resumes as control orders it: each order for this definition says that it may begin fresh."""
    replica = node.start(spec)
    tell(replica, order=ClaimOrder(id=f"over-{over}", over=Epoch(over), fresh=fresh))
    return replica


def test_the_restarted_element_alone_begins_empty_and_reads_each_row_once(kafka: str, node: Node) -> None:
    topic = create_topic(kafka)
    deployed = Deployed(kafka, [events(topic), window(1), sums()])
    rows = Rows(kafka, topic)
    replicas = deployed.run(node)
    for replica in replicas.values():
        owning(replica)
    rows.close_windows(deployed, 70)
    assert windows(deployed) == of(range(20), range(20, 40), range(40, 60))

    replicas["window"].stop(STOP_S)
    stood = deployed.commits("window")[-1]
    spec = resized(deployed.specs["window"], 2)
    restarted = resume(node, spec, 1)
    status = wait_for_status(restarted, lambda s: s.role is Role.OWNER and s.fresh_from > 0, "to begin fresh")
    assert (status.fresh_from, status.seq) == (stood.seq, stood.seq)
    # Before it has processed anything: where it begins must not be lost with its process.
    restarted.stop(STOP_S)
    restarted = resume(node, spec, status.epoch)
    rows.close_windows(deployed, 61)
    # And after that: it goes on, and an order that says so again leaves nothing behind any more.
    restarted.stop(STOP_S)
    restarted = resume(node, spec, owning_epoch(deployed))
    rows.close_windows(deployed, 40)

    # Rows 60 to 69 stood in the window that was open, and are lost to it alone.
    after = of(range(70, 80), range(80, 120), range(120, 160))
    assert windows(deployed) == [*of(range(20), range(20, 40), range(40, 60)), *after]
    # Its inputs went on where they stood.
    commits = deployed.commits("window")
    assert [commit.seq for commit in commits] == list(range(1, len(commits) + 1))
    first = commits[stood.seq]
    assert (first.definition, stood.definition) == (spec.version, deployed.specs["window"].version)
    assert rows_read(deployed) == len(rows.sent)
    assert [claim.fresh for claim in deployed.claims("window")].count(True) == 1
    # The others were not touched: same epoch, and the state of all rows since the beginning.
    assert {commit.epoch for group in ("events", "sums") for commit in deployed.commits(group)} == {1}
    wait_until(lambda: len(deployed.records("sums")) == len(rows.sent), "the sums of all rows")
    assert by_key(deployed.records("sums")) == running_sums(rows.sent)
    for group in deployed.specs:
        deployed.assert_journal_lawful(group)


def owning_epoch(deployed: Deployed) -> int:
    return max(claim.epoch for claim in deployed.claims("window"))


def test_whoever_starts_from_a_copy_of_before_begins_anew_at_the_same_place(
    kafka: str, node: Node, other_node: Node, tmp_path: Path
) -> None:
    topic = create_topic(kafka)
    deployed = Deployed(kafka, [events(topic), window(1)])
    rows = Rows(kafka, topic)
    replicas = deployed.run(node)
    rows.close_windows(deployed, 30)
    former = deployed.specs["window"]
    wait_for_status(replicas["window"], lambda s: s.seq == len(deployed.commits("window")), "to finish")
    copied = copy_state(former, node, other_node, tmp_path)
    rows.close_windows(deployed, 40)
    replicas["window"].stop(STOP_S)
    stood = deployed.commits("window")[-1].seq
    assert stood > copied
    spec = resized(former, 2)
    restarted = resume(node, spec, 1)
    rows.close_windows(deployed, 30)
    restarted.stop(STOP_S)

    # A rewind to where its state is the former definition's is refused: nothing could go on from there.
    rewound = other_node.start(spec)
    tell(rewound, order=ClaimOrder(id="rewind", over=Epoch(9), rewind=Seq(copied), fresh=True))
    status = wait_for_status(rewound, lambda s: s.error is not None, "to refuse")
    assert status.error is not None
    assert f"its state was begun fresh at batch {stood}" in status.error.message
    rewound.stop(STOP_S)

    standby = resume(other_node, spec, owning_epoch(deployed))
    wait_for_status(standby, lambda s: s.role is Role.OWNER, "to own")
    assert standby.status().fresh_from == stood
    rows.close_windows(deployed, 40)
    seen = of(range(20), range(20, 40), range(40, 60), range(70, 80), range(80, 120))
    assert windows(deployed) == seen
    directory = other_node.replica_directory(spec)
    # Spark writes it down after the COMMIT.
    wait_until(
        lambda: (
            (newest := last_committed(directory)) is not None
            and newest.seq == deployed.commits("window")[-1].seq
        ),
        "Spark to have finished the newest batch",
    )
    assert beginning(directory).seq == stood
    deployed.assert_journal_lawful("window")
