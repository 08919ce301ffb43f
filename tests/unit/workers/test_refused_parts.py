"""A part of the desired state that a node cannot take fails that part alone, and says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from pipeline_runtime.formats.schema_registry import no_registry
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.desired import ClaimOrder, DesiredReplica, NodeDesired, ReplicaStatus, Role
from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.ids import Epoch
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.plan import plan_groups
from pipeline_runtime.wire.tasks import NODE_SYNC
from tests.unit.workers.test_agent_checkpoints import Runtime
from tests.unit.workers.test_slot import ScriptedReplica
from tests.waiting import wait_until
from workers.node.agent import Agent
from workers.node.answers import Answers
from workers.node.asked_processes import AskedProcesses
from workers.node.commands import register_commands
from workers.node.connection_tests import ConnectionTests
from workers.node.desired_store import DesiredStore
from workers.node.previews import Previews
from workers.node.recent_log import RecentLog
from workers.node.runtime import NodeRuntime

DOCUMENT = """
apiVersion: fogline/v1
kind: Pipeline
metadata: {name: p}
spec:
  elements:
    - {id: readings, type: generator, params: {rate: 5}}
    - {id: archive, type: csv-sink, params: {file: out.csv}, inputs: {in: readings}}
    - {id: few, type: filter, params: {condition: "value > 0"}, inputs: {in: readings}}
"""
READINGS, ARCHIVE, FEW = "d.readings", "d.archive", "d.few"


class Node(Runtime):
    """One replica for each group."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.replicas: dict[str, ScriptedReplica] = {}

    def open_replica(self, spec: GroupSpec, _: Path) -> ScriptedReplica:
        made = self.replicas[spec.id] = ScriptedReplica()
        made.now = made.now.model_copy(update={"group": spec.id})
        return made

    def runtime(self) -> NodeRuntime:
        made = super().runtime()
        return NodeRuntime(**{**vars(made), "open_replica": self.open_replica})


def wanted(revision: int, order: str = "o1") -> dict[str, Any]:
    """A desired state as the control side makes it, from a document."""
    specs = plan_groups(parse_document(DOCUMENT), "d", default_registry(), {})
    replicas = tuple(
        DesiredReplica(spec=spec, role=Role.OWNER, order=ClaimOrder(id=order, over=Epoch(0)))
        for spec in specs
    )
    data = NodeDesired(node="edge-a", revision=revision, replicas=replicas).model_dump(mode="json")
    return json.loads(json.dumps(data))


def part_of(desired: dict[str, Any], group: str) -> dict[str, Any]:
    found: dict[str, Any] = next(p for p in desired["replicas"] if f"d.{p['spec']['group']}" == group)
    return found


def half_a_character(part: dict[str, Any]) -> None:
    part["spec"]["elements"][0]["params"]["delimiter"] = "\ud800"


def a_field_of_another_version(part: dict[str, Any]) -> None:
    part["spec"]["elements"][0]["colour"] = "hush"


def too_deep(part: dict[str, Any]) -> None:
    nested: Any = []
    for _ in range(500):
        nested = [nested]
    part["spec"]["elements"][0]["params"]["more"] = nested


NO_TESTS = ConnectionTests("", AskedProcesses(), lambda *_: None)
NO_PREVIEWS = Previews(
    KafkaSettings("127.0.0.1:1"), lambda _: {}, lambda _: {}, lambda _: no_registry, lambda *_: None
)
SPOILS = [half_a_character, a_field_of_another_version, too_deep]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], tuple[Node, Agent, Callable[[dict[str, Any]], None]]]]:
    agents: list[Agent] = []

    def make() -> tuple[Node, Agent, Callable[[dict[str, Any]], None]]:
        node = Node(tmp_path)
        agent = Agent("edge-a", node.runtime(), DesiredStore(tmp_path / "desired.json"), 3600.0)
        agent.start()
        agents.append(agent)
        app = Celery("node", set_as_current=False)
        register_commands(app, agent, Answers("redis://127.0.0.1:1"), NO_PREVIEWS, RecentLog(), NO_TESTS)

        def sync(desired: dict[str, Any]) -> None:
            app.tasks[NODE_SYNC](json.loads(json.dumps(desired)))  # as it comes over the wire

        return node, agent, sync

    yield make
    for agent in agents:
        agent.close(5)


def by_group(agent: Agent) -> dict[str, ReplicaStatus]:
    return {status.group: status for status in agent.statuses()}


def owned(agent: Agent) -> set[str]:
    return {group for group, status in by_group(agent).items() if status.role is Role.OWNER}


@pytest.mark.parametrize("spoil", SPOILS)
def test_the_other_groups_go_on_and_the_refused_one_says_why(start: Any, spoil: Any) -> None:
    node, agent, sync = start()
    desired = wanted(1)
    spoil(part_of(desired, ARCHIVE))
    sync(desired)
    assert agent.revision == 1, "else the control side would send it again and again"
    wait_until(lambda: owned(agent) == {READINGS, FEW})
    status = by_group(agent)[ARCHIVE]
    assert (status.role, status.phase) == (Role.STOPPED, "failed")
    assert status.error is not None
    assert "cannot take what is wanted of it" in status.error.message
    assert "spec.elements[0]" in status.error.message
    assert "hush" not in status.model_dump_json()
    assert ARCHIVE not in node.replicas

    sync({**desired, "revision": 2})
    again = by_group(agent)[ARCHIVE].error
    assert again == status.error, "the same refusal is not told as something new"

    sync(wanted(3))
    wait_until(lambda: owned(agent) == {READINGS, FEW, ARCHIVE})
    assert by_group(agent)[ARCHIVE].error is None


@pytest.mark.parametrize("spoil", SPOILS)
def test_what_runs_of_a_refused_group_goes_on_and_its_state_is_kept(
    start: Any, spoil: Any, tmp_path: Path
) -> None:
    node, agent, sync = start()
    sync(wanted(1))
    wait_until(lambda: owned(agent) == {READINGS, FEW, ARCHIVE})
    desired = wanted(2, "o2")
    spoil(part_of(desired, ARCHIVE))
    desired["replicas"].remove(part_of(desired, FEW))
    sync(desired)
    wait_until(lambda: node.replicas[READINGS].orders == ["o1", "o2"], "the others to be told")
    wait_until(lambda: owned(agent) == {READINGS, ARCHIVE}, "what is not wanted to stop")
    assert node.replicas[ARCHIVE].orders == ["o1"]
    assert by_group(agent)[ARCHIVE].error is not None
    assert (tmp_path / "replicas" / ARCHIVE).is_dir()


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_restarted_node_keeps_the_state_of_what_it_refused(start: Any, spoil: Any, tmp_path: Path) -> None:
    _, agent, sync = start()
    sync(wanted(1))
    wait_until(lambda: owned(agent) == {READINGS, FEW, ARCHIVE})
    desired = wanted(2)
    spoil(part_of(desired, ARCHIVE))
    sync(desired)
    agent.close(5)
    node, restarted, _ = start()
    wait_until(lambda: owned(restarted) == {READINGS, FEW})
    assert restarted.revision == 2
    error = by_group(restarted)[ARCHIVE].error
    assert error is not None
    assert ARCHIVE not in node.replicas
    assert (tmp_path / "replicas" / ARCHIVE).is_dir()


def test_a_part_whose_group_is_not_known_refuses_the_whole(start: Any) -> None:
    """Else what it is about would count as no longer wanted."""
    _, agent, sync = start()
    sync(wanted(1))
    wait_until(lambda: owned(agent) == {READINGS, FEW, ARCHIVE})
    desired = wanted(2)
    part_of(desired, ARCHIVE)["spec"]["group"] = "\ud800"
    sync(desired)
    assert agent.revision == 1
    assert owned(agent) == {READINGS, FEW, ARCHIVE}
