"""A worker process, which Spark uses for all groups, keeps nothing of those that have left the node."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline_runtime.batch import gate_client
from pipeline_runtime.batch.gate import GateServer
from pipeline_runtime.batch.gate_messages import GateKeeper, GroupDescription
from pipeline_runtime.model.document import parse_document
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.plan import plan_groups
from pipeline_runtime.spark import source
from tests.waiting import wait_until


class Keeper(GateKeeper):
    """What a replica says to a reader that comes to it."""

    def describe(self) -> GroupDescription:
        document = {
            "apiVersion": "fogline/v1",
            "kind": "Pipeline",
            "metadata": {"name": "readers"},
            "spec": {
                "elements": [{"id": "gen", "type": "generator", "params": {"signals": [{"name": "v"}]}}]
            },
        }
        [spec] = plan_groups(parse_document(document), "d1", default_registry(), {})
        kafka = {"bootstrap": "none:1", "security": {}}
        return GroupDescription(spec.model_dump(mode="json"), kafka, {}, "/nowhere")


class Partition:
    closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[GateServer]:
    monkeypatch.setattr(source, "_readers", {})
    monkeypatch.setattr(gate_client, "_clients", {})
    server = GateServer()
    yield server
    server.close()
    for client in gate_client._clients.values():
        client.close()
    gc.unfreeze()


def test_the_readers_of_departed_groups_are_closed_when_another_is_opened(gate: GateServer) -> None:
    moved, kept, deployed = (gate.open(group, Keeper()) for group in ("moved", "kept", "deployed"))
    leaving, staying = source._reader(moved), source._reader(kept)
    partition, other = Partition(), Partition()
    leaving._partitions["topic", 0], staying._partitions["topic", 0] = partition, other  # type: ignore[assignment]
    connection = gate_client.gate(moved)

    gate.shut(moved)
    source._reader(deployed)

    assert partition.closed
    assert connection._socket.fileno() == -1
    assert list(source._readers) == list(gate_client._clients) == [kept, deployed]
    assert source._reader(kept) is staying
    assert not other.closed


def test_a_group_that_starts_again_has_one_reader(gate: GateServer) -> None:
    former = gate.open("group", Keeper())
    source._reader(former)
    gate.shut(former)
    again = gate.open("group", Keeper())
    source._reader(again)
    assert list(source._readers) == list(gate_client._clients) == [again]


def test_a_group_that_left_before_its_reader_was_opened_leaves_no_connection(gate: GateServer) -> None:
    moved, kept = gate.open("moved", Keeper()), gate.open("kept", Keeper())
    gate.shut(moved)
    with pytest.raises(RuntimeError, match="not running"):
        source._reader(moved)
    wait_until(gate_client.gate(moved).hung_up)
    source._reader(kept)
    assert list(gate_client._clients) == [kept]


def test_what_was_kept_for_a_departed_group_is_collected_although_it_was_frozen(gate: GateServer) -> None:
    moved, kept = gate.open("moved", Keeper()), gate.open("kept", Keeper())
    leaving: Any = source._reader(moved)
    leaving.itself = leaving
    collected: list[bool] = []

    class Noticed:
        def __del__(self) -> None:
            collected.append(True)

    leaving.noticed = Noticed()
    gc.collect()
    gc.freeze()
    del leaving
    gate.shut(moved)
    source._reader(kept)
    assert collected
