"""Another replica takes over from a copy of the state that is older than the journal."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from pipeline_runtime.checkpoint.cut import cut
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.store import materialize, store
from pipeline_runtime.model.desired import ClaimOrder, Role
from pipeline_runtime.model.ids import Epoch
from pipeline_runtime.model.spec import GroupSpec
from tests.integration.runtime.documents import Stream, by_key, events, file, lines, out, running_sums, sums
from tests.integration.runtime.engine import (
    Deployed,
    Element,
    Node,
    create_topic,
    owning,
    produce,
    values,
    wait_for_status,
    wait_until,
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

WINDOWS: Element = {
    "id": "sums",
    "type": "window-aggregate",
    "inputs": {"in": "events"},
    "params": {
        "size_s": 1,
        "keys": ["k"],
        "aggregates": [{"function": "sum", "column": "v", "as": "v"}, {"function": "count", "as": "n"}],
    },
}


def copy_state(spec: GroupSpec, origin: Node, target: Node, tmp_path: Path) -> int:
    """As a node does it: cut, chunks and manifest, and files again; the seq that was cut."""
    database = StateDatabase(tmp_path / "database")
    try:
        with cut(origin.replica_directory(spec), tmp_path / "work") as taken:
            manifest = store(
                taken, database, group=spec.id, epoch=Epoch(1), version=spec.version, node="a", now_ms=0
            )
        directory = target.replica_directory(spec)
        directory.parent.mkdir(parents=True)
        materialize(manifest, lambda sha: database.get_chunk(spec.id, sha), directory)
        _rename_query(directory / "spark")
        return manifest.seq
    finally:
        database.close()


def _rename_query(spark: Path) -> None:
    """Both nodes of this test share one Spark session, and a session runs a query of one id only once."""
    (spark / "metadata").write_text(json.dumps({"id": str(uuid4())}))
    (spark / ".metadata.crc").unlink(missing_ok=True)


@pytest.mark.parametrize("stateful", [sums(), WINDOWS], ids=["coalesced", "exact"])
def test_a_standby_from_an_older_copy_follows_without_emitting_and_then_owns(
    kafka: str, node: Node, other_node: Node, tmp_path: Path, stateful: Element
) -> None:
    source, target = create_topic(kafka), create_topic(kafka)
    members = ["events", "sums", "file", "out"]
    deployed = Deployed(kafka, [events(source), stateful, file(), out(target)], {"all": members})
    spec = deployed.specs["all"]
    stream = Stream(kafka, source)
    stream.start()
    old = node.own(spec)
    wait_for_status(old, lambda status: status.seq >= 5, "to reach seq 5")
    copied = copy_state(spec, node, other_node, tmp_path)
    behind = copied + 5
    wait_for_status(old, lambda status: status.seq >= behind, f"to reach seq {behind}")

    # It follows the journal to its end, and beyond, and emits nothing.
    new = other_node.start(spec)
    wait_for_status(new, lambda status: status.seq >= behind, "to follow")
    ahead = old.status().seq
    wait_for_status(new, lambda status: status.seq >= ahead, "to catch up")
    assert new.status().role is Role.STANDBY
    assert {commit.node for commit in deployed.commits("all")} == {"a"}

    new.own(ClaimOrder(id="takeover", over=Epoch(1)))
    assert owning(new).epoch == 2
    status = wait_for_status(old, lambda status: status.role is Role.STOPPED, "to give way")
    assert status.phase == "fenced"
    assert status.error is not None
    assert "another" in status.error.message

    rows = stream.finish()
    if stateful is WINDOWS:
        assert_windows(deployed, kafka, source, target, rows)
        expected = by_key(values(kafka, target))
    else:
        expected = running_sums(rows)
        count = sum(len(made) for made in expected.values())
        wait_until(lambda: len(values(kafka, target)) >= count, "all rows", 90)
    assert by_key(values(kafka, target)) == expected
    path = other_node.replica_directory(spec) / "elements" / "file" / "out.csv"
    wait_until(lambda: by_key(lines(path)) == expected, "the whole file", 30)
    deployed.assert_journal_lawful("all")
    assert {commit.node for commit in deployed.commits("all") if commit.epoch == 2} == {"b"}


def assert_windows(deployed: Deployed, kafka: str, source: str, target: str, rows: list[dict]) -> None:
    """Every row is in exactly one window, and every window was given once."""

    def all_closed() -> bool:
        # A window closes with the batch behind the one that moved the watermark.
        produce(kafka, source, [{"k": "end", "v": 1}], time_ms=lambda _: in_ten_minutes)
        return sum(row["n"] for row in values(kafka, target)) >= len(rows)

    in_ten_minutes = wait_until(lambda: deployed.commits("all")[-1].boundary.batch_time_ms, "") + 600_000
    wait_until(all_closed, "all windows", 90)
    found = values(kafka, target)
    assert sum(row["n"] for row in found) == len(rows)
    assert sum(row["v"] for row in found) == sum(row["v"] for row in rows)
    windows = [(row["window_start"], row["k"]) for row in found]
    assert len(windows) == len(set(windows))
