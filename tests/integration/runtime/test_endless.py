"""A batch that never ends: the status shows it, its time limit ends it, and it can be stopped."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from pipeline_runtime.model.desired import ClaimOrder, Role
from pipeline_runtime.model.ids import Epoch
from pipeline_runtime.replica import replica as replicas, stalls
from pipeline_runtime.replica.host import ReplicaHost
from tests.directing import tell
from tests.integration.runtime.documents import events
from tests.integration.runtime.engine import Deployed, Node, create_topic, owning, produce, wait_for_status
from tests.waiting import wait_until

pytestmark = pytest.mark.integration
NEVER_S = 3600.0


def in_it(directory: Path, before: set[int]) -> set[int]:
    """The processes that have come to be in an endless batch since then."""
    return {int(path.name) for path in directory.iterdir() if path.name.isdigit()} - before


def test_a_batch_that_never_ends_is_said_and_ended(
    kafka: str, host: ReplicaHost, node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, topic = tmp_path / "endless", create_topic(kafka)
    directory.mkdir()
    flag = directory / "flag"
    sums = {"id": "sums", "type": "endless", "inputs": {"in": "events"}, "params": {"flag": str(flag)}}
    deployed = Deployed(kafka, [events(topic), sums], {"all": ["events", "sums"]})
    spec = deployed.specs["all"]
    monkeypatch.setattr(stalls, "STALLED_S", 0.5)
    flag.touch()
    replica = node.own(spec)
    owning(replica)
    produce(kafka, topic, [{"k": "a", "v": 5}])

    said = wait_for_status(replica, lambda status: status.stalled is not None, "to say that it is stuck")
    assert said.stalled is not None
    assert f"{topic}, partition 0, offset 0" in said.stalled.why
    first = wait_until(lambda: in_it(directory, set()), "its process to be in the batch")
    assert host.batch_s > 60, "usual batches are far from it"
    monkeypatch.setattr(host, "batch_s", 1.0)
    failed = wait_for_status(replica, lambda status: status.error is not None, "to fail")
    assert failed.error is not None
    assert failed.error.code == "batch-too-long"
    assert failed.role is Role.STOPPED
    wait_until(lambda: not any(map(psutil.pid_exists, first)), "its process to end")

    monkeypatch.setattr(host, "batch_s", NEVER_S)
    monkeypatch.setattr(replicas, "STUCK_S", 1.0)
    replica = node.own(spec, over=1)
    second = wait_until(lambda: in_it(directory, first), "another process to be in the batch")
    replica.stop(NEVER_S)  # nobody waits for it
    assert replica.status().role is Role.STOPPED
    wait_until(lambda: not any(map(psutil.pid_exists, second)), "its process to end")

    # A person skips the row. What comes behind it is processed.
    flag.unlink()
    [way] = failed.error.ways
    assert way.title == "Skip 1 record"
    replica = node.start(spec)
    tell(replica, order=ClaimOrder(id="skips", over=Epoch(2)), accepts=(way.id,))
    produce(kafka, topic, [{"k": "a", "v": 7}])
    wait_until(lambda: deployed.records("sums") == [{"k": "a", "v": 7}], "the row behind it")
    deployed.assert_journal_lawful("all")
