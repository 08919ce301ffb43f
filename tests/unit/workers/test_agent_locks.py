"""A desired state that takes long to be written down holds up no group and no heartbeat; one for which the
machine has no threads is not taken for done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline_runtime.model.desired import NodeDesired, Role
from tests.shortages import no_more_threads
from tests.unit.workers.test_agent_checkpoints import Runtime
from tests.unit.workers.test_slot import owner
from tests.waiting import PATIENCE_S, wait_until
from workers.node.agent import Agent
from workers.node.desired_store import DesiredStore


class SlowDisk(DesiredStore):
    """Takes as long for each revision after the first as the test wants; so does `directed`."""

    def __init__(self, path: Path, slow: str) -> None:
        super().__init__(path)
        self._slow = slow
        self.busy = threading.Event()
        self.done = threading.Event()

    def save(self, desired: NodeDesired) -> None:
        self._wait("save", desired)
        super().save(desired)

    def directed(self, desired: NodeDesired) -> None:
        self._wait("directed", desired)

    def _wait(self, what: str, desired: NodeDesired) -> None:
        if what == self._slow and desired.revision > 1:
            self.busy.set()
            assert self.done.wait(PATIENCE_S)


@pytest.mark.parametrize("slow", ["save", "directed"])
def test_groups_and_heartbeat_do_not_wait_for_a_slow_disk(tmp_path: Path, slow: str) -> None:
    disk = SlowDisk(tmp_path / "desired.json", slow)
    agent = Agent("edge-a", Runtime(tmp_path).runtime(), disk, 3600.0, directed=disk.directed)
    agent.start()
    agent.apply(NodeDesired(node="edge-a", revision=1, replicas=(owner(),)))
    wait_until(lambda: agent.statuses() and agent.statuses()[0].role is Role.OWNER)
    needed: list[Callable[[], object]] = [agent.wake, agent.statuses, lambda: agent.revision]
    with ThreadPoolExecutor() as pool:
        applied = pool.submit(agent.apply, NodeDesired(node="edge-a", revision=2))
        assert disk.busy.wait(PATIENCE_S)
        try:
            for call in needed:
                pool.submit(call).result(PATIENCE_S / 3)
            assert agent.revision == 1, "what is not told yet is not said to be worked on"
        finally:
            disk.done.set()
        assert applied.result(PATIENCE_S)
    assert agent.revision == 2
    agent.close(5)


def test_a_desired_state_for_which_there_were_no_threads_is_worked_on_when_it_comes_again(
    tmp_path: Path,
) -> None:
    runtime = Runtime(tmp_path)
    agent = Agent("edge-a", runtime.runtime(), DesiredStore(tmp_path / "desired.json"), 3600.0)
    agent.start()
    agent.apply(NodeDesired(node="edge-a", revision=1, replicas=(owner(),)))
    wait_until(lambda: agent.statuses() and agent.statuses()[0].role is Role.OWNER)
    another = owner()
    another = another.model_copy(update={"spec": another.spec.model_copy(update={"group": "another"})})
    both = NodeDesired(node="edge-a", revision=2, replicas=(owner("o2"), another))
    with no_more_threads(), pytest.raises(RuntimeError, match="can't start new thread"):
        agent.apply(both)
    assert agent.revision == 1
    assert [status.group for status in agent.statuses()] == [owner().spec.id]
    wait_until(lambda: runtime.replica.orders == ["o1", "o2"], "what runs to be told all the same")

    assert agent.apply(both)
    assert agent.revision == 2
    wait_until(lambda: [status.role for status in agent.statuses()] == [Role.OWNER] * 2)
    agent.close(5)
