"""Tests how a node runs its groups' connectors: their configurations and epochs."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from pipeline_runtime.connectors import (
    kafka_ends,
    mqtt_alive,
    mqtt_session,
    name_servers,
    opcua_session,
    other_kafka_in,
    other_kafka_out,
    postgresql,
    pulse,
    sdk,
)
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.connectors import PURPOSE_SENT, SealedConnection
from pipeline_runtime.model.desired import ClaimOrder, DesiredReplica, ReplicaStatus, Role
from pipeline_runtime.model.ids import Epoch
from pipeline_runtime.model.spec import ElementSpec, GroupSpec
from pipeline_runtime.sealing import seal
from workers.node import connectors as module
from workers.node.connecting import Wanted
from workers.node.connectors import Connectors
from workers.node.identity import Identity

KEY = "cluster-key"
IN = ElementSpec(
    id="in",
    type="mqtt-in",
    params={"connection": "b", "topics": ["a"], "columns": [{"name": "v", "type": "number"}]},
)
ONCE = ElementSpec(
    id="once",
    type="postgresql-in",
    params={"connection": "b", "table": "t", "rising": "id", "columns": [{"name": "v"}]},
)
OUT = ElementSpec(id="out", type="mqtt-out", params={"connection": "b", "topic": "a"})
SPEC = GroupSpec(deployment="d", pipeline="p", group="g", elements=(IN, ONCE, OUT))


def sealed(host: str, version: int = 1) -> SealedConnection:
    text = seal(json.dumps({"host": host}), KEY, PURPOSE_SENT)
    return SealedConnection(name="b", kind="mqtt", version=version, sealed=text)


class Node:
    """Looks once at a time, and starts no process."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wanted: dict[str, Wanted] = {}
        self.status = ReplicaStatus(group=SPEC.id, role=Role.STOPPED)
        self.closing = False
        self.connections: tuple[SealedConnection, ...] = (sealed("first"),)
        self.connectors = Connectors(
            KafkaSettings("k"), directory, KEY, lambda _: (self._replicas(), self.connections), lambda: None
        )
        monkeypatch.setattr(self.connectors, "_tend", self._tended)

    def look(self) -> dict[str, Wanted]:
        self.wanted = {}
        self.connectors._look()
        return self.wanted

    def host(self, element: str) -> str:
        return str(json.loads(self.look()[element].config)["connections"]["connection"]["host"])

    def _replicas(self) -> list[tuple[DesiredReplica, ReplicaStatus | None]]:
        order = ClaimOrder(id="o", over=Epoch(0))
        wanted = DesiredReplica(spec=SPEC, role=Role.OWNER, order=order, closing=self.closing)
        return [(wanted, self.status)]

    def _tended(self, each: Any, want: Wanted | None) -> bool:
        if want is not None:
            self.wanted[each.key[1]] = want
        return True


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


def test_after_a_restart_of_its_node_who_is_exactly_once_waits_until_its_replica_owns(node: Node) -> None:
    before = node.look()
    assert (before["in"].run, before["in"].epoch) == (True, 0)
    assert before["out"].epoch is before["once"].epoch is None
    node.status = ReplicaStatus(group=SPEC.id, role=Role.OWNER, epoch=Epoch(2))
    after = node.look()
    for id in ("out", "once"):
        assert (after[id].run, after[id].epoch) == (True, 2)
    assert after["in"] == before["in"], "another ingester needs no epoch, and goes on"


def test_an_ingester_is_told_of_until_kafka_has_all_that_it_has_left(node: Node, tmp_path: Path) -> None:
    """Also before anything is looked at, and while the one process has ended and the other has not begun."""
    left = tmp_path / SPEC.id / "in" / "spool" / "00000001.spool"
    left.parent.mkdir(parents=True)
    left.touch()

    def told() -> list[str]:
        [status] = node.connectors.with_connectors((node.status,))
        return [each.element for each in status.connectors]

    assert told() == ["in"]
    node.closing = True
    drains = node.look()["in"]
    assert (drains.run, drains.drains, drains.forever) == (True, True, True)
    assert told() == ["in"]
    left.unlink()
    assert not node.look()["in"].run
    assert told() == []


def test_a_connection_of_the_same_version_that_was_sealed_anew_is_read_anew(node: Node) -> None:
    assert node.host("in") == "first"
    node.connections = (sealed("second"),)
    assert node.host("in") == "second"
    node.connections = (sealed("second").model_copy(update={"sealed": ""}),)
    assert "cannot be opened" in json.loads(node.look()["in"].config)["missing"]


def test_what_goes_wrong_with_one_keeps_no_other_from_being_looked_after(
    node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def tended(each: Any, want: Wanted | None) -> bool:
        if each.key[1] == "in":
            raise OSError("no more processes")
        return node._tended(each, want)

    monkeypatch.setattr(node.connectors, "_tend", tended)
    for _ in range(2):
        assert sorted(node.look()) == ["once", "out"]
    assert {key[1] for key in node.connectors._held} == {"in", "once", "out"}, (
        "what may have a process is held"
    )
    assert len([each for each in caplog.records if each.levelno == logging.ERROR]) == 1


def test_a_step_of_the_wall_clock_ends_no_connector(monkeypatch: pytest.MonkeyPatch) -> None:
    before = module._clock_ms()
    monkeypatch.setattr(module, "time", lambda: 2e12)
    assert module._clock_ms() - before < 60_000
    assert module._wall_ms() == 2e15


def test_whatever_waits_is_told_of_within_10_s() -> None:
    """The longest way of each kind, from the hang of its system to the element's words at the node."""
    at_node_s = module.LOOK_S + Identity.heartbeat_s
    passes_s = module.FAILING_MS / 1000
    signs_s = {
        "a call": 0,
        "Kafka in": other_kafka_in.POLL_MS / 1000 + other_kafka_in.LOOK_S,
        "Kafka out": kafka_ends._POLL_MS / 1000 + other_kafka_out.ALIVE_S,
    }
    told_s = {name: sign_s + sdk.TELL_S + pulse.LOOK_S for name, sign_s in signs_s.items()}
    hangs_s = mqtt_alive.ASK_S + mqtt_alive.ANSWER_S + 2 * mqtt_session.THREAD_LOOKS_S
    told_s["MQTT"] = hangs_s + mqtt_session.LOOK_S + passes_s
    told_s["OPC UA"] = opcua_session.WATCH_S + opcua_session.ANSWER_S + passes_s
    told_s["PostgreSQL out"] = 1 + postgresql.ALIVE_S + passes_s
    told_s["a name server"] = name_servers.LOOK_UP_S + passes_s
    assert {name: seconds for name, seconds in told_s.items() if seconds + at_node_s > 10} == {}
