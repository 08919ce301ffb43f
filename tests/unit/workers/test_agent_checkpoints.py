"""The agent's checkpoints by count of batches: noticed when a replica changes, with no timer near."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline_runtime.checkpoint.errors import StateDatabaseUnavailable
from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.model.desired import CheckpointSource, NodeDesired, ReplicaStatus, Role
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import GroupSpec
from tests.unit.workers.test_slot import ScriptedReplica, owner
from tests.waiting import PATIENCE_S, wait_until
from workers.node.agent import Agent
from workers.node.desired_store import DesiredStore
from workers.node.java_ends import JavaEnds
from workers.node.runtime import NodeRuntime, Taken


class Runtime:
    """Counts the checkpoints that are taken of its one replica."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.replica = ScriptedReplica()
        self.taken: list[int] = []
        self.full = False
        self.asked = threading.Event()

    def runtime(self) -> NodeRuntime:
        return NodeRuntime(
            directory=self.directory,
            open_replica=lambda *_: self.replica,
            checkpoints=self,
            fetch_files=lambda _: None,
            now_ms=lambda: 1_000_000,
            changed=lambda: None,
            java_ends=JavaEnds(self.directory / "java-ends.json", "edge-a"),
        )

    def take(
        self, spec: GroupSpec, epoch: Epoch, directory: Path, growing: GrowingFiles | None
    ) -> Taken | None:
        self.asked.set()
        if self.full:
            raise StateDatabaseUnavailable("full", "-", "-")
        self.taken.append(self.replica.now.seq)
        return Taken(self.replica.now.seq, epoch, 1_000_000, 100)

    def fetch(
        self, group: str, source: CheckpointSource, directory: Path, note: Callable[[str], None]
    ) -> int:
        raise AssertionError("nothing is fetched here")

    def where(self, group: str, seq: Seq) -> tuple[str, ...]:
        return ("here",)

    def forget(self, group: str) -> None:
        pass


@pytest.fixture
def node(tmp_path: Path) -> Runtime:
    return Runtime(tmp_path)


@pytest.fixture
def agent(node: Runtime, tmp_path: Path) -> Iterator[Agent]:
    made = Agent("edge-a", node.runtime(), DesiredStore(tmp_path / "desired.json"), 3600.0, 10)
    made.start()
    made.apply(NodeDesired(node="edge-a", revision=1, replicas=(owner(),)))
    wait_until(lambda: made.statuses() and made.statuses()[0].role is Role.OWNER)
    yield made
    made.close(5)


def commit_up_to(node: Runtime, agent: Agent, seq: int) -> None:
    node.replica.now = ReplicaStatus.model_validate({**node.replica.now.model_dump(), "seq": seq})
    agent.wake()


def test_a_checkpoint_is_taken_each_time_that_so_many_batches_are_committed(
    node: Runtime, agent: Agent
) -> None:
    agent.wake()
    wait_until(lambda: node.taken == [7])
    commit_up_to(node, agent, 16)
    commit_up_to(node, agent, 17)
    wait_until(lambda: node.taken == [7, 17])
    commit_up_to(node, agent, 40)
    wait_until(lambda: node.taken == [7, 17, 40])


def test_one_that_failed_is_tried_again_after_as_many_batches(node: Runtime, agent: Agent) -> None:
    node.full = True
    agent.wake()
    assert node.asked.wait(PATIENCE_S)
    node.full = False
    commit_up_to(node, agent, 16)
    commit_up_to(node, agent, 18)
    wait_until(lambda: node.taken == [18])
