"""Only the node itself asks a schema registry. Tasks ask the node by their gate."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline_runtime.batch.asked_registries import AskedRegistries
from pipeline_runtime.batch.gate import GateServer
from pipeline_runtime.batch.gate_client import GateClient
from pipeline_runtime.batch.gate_messages import NextToken
from pipeline_runtime.connectors.schema_registry import SchemaRegistry
from pipeline_runtime.formats.schema_registry import Registries, SchemaRegistryError
from pipeline_runtime.model.connectors import PURPOSE_SENT, SealedConnection
from pipeline_runtime.sealing import seal
from tests.schema_registry import RegistryServer
from workers.node import registries
from workers.node.registries import NodeRegistries

KEY = "cluster-key"
SECRET = "hunter2-is-secret"


def sealed(server: RegistryServer, kind: str = "schema-registry", key: str = KEY) -> SealedConnection:
    text = seal(json.dumps(server.fields), key, PURPOSE_SENT)
    return SealedConnection(name="plant", kind=kind, version=1, sealed=text)


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with RegistryServer(login=("ann", SECRET)) as server:
        yield server


class Keeper:
    """The part of a replica's keeper that tasks ask for registries and batches."""

    def __init__(self, registries: Registries) -> None:
        self.registry = registries
        self.go_on = threading.Event()

    def next_token(self, done: int) -> int:
        self.go_on.wait(60)
        return done


def test_a_task_gets_a_schema_by_its_gate_also_while_it_waits_for_its_next_batch(
    registry: RegistryServer,
) -> None:
    number = registry.register("t-value", '"string"')
    connections = [sealed(registry)]
    keeper: Any = Keeper(NodeRegistries(KEY).among(lambda: connections))
    gate = GateServer()
    address = gate.open("g", keeper)
    client, asked = GateClient(address), AskedRegistries(address)
    waiting = threading.Thread(target=client.ask, args=(NextToken(1),))
    waiting.start()
    try:
        found = asked("plant").schema(number)
        assert (found.kind, found.text, found.refers) == ("AVRO", '"string"', False)
        assert asked("plant").number("u-value", '"long"') == registry.subjects["u-value"]
        with pytest.raises(SchemaRegistryError, match="has no schema 6"):
            asked("plant").schema(6)
        with pytest.raises(SchemaRegistryError, match='There is no connection "other"'):
            asked("other").number("u-value", '"long"')
    finally:
        keeper.go_on.set()
        waiting.join(60)
        asked.close()
        client.close()
        gate.close()


def test_a_registry_is_asked_once_for_a_number_also_if_its_connection_is_sealed_anew(
    registry: RegistryServer,
) -> None:
    number = registry.register("t-value", '"string"')
    asked = NodeRegistries(KEY).among(lambda: [sealed(registry)])
    for _ in range(3):
        assert asked("plant").schema(number).text == '"string"'
        assert asked("plant").number("t-value", '"string"') == number
    assert registry.asked == 2


def test_another_registry_under_the_name_is_asked_anew(registry: RegistryServer) -> None:
    with RegistryServer() as other:
        other.register("t-value", '"long"')
        number = registry.register("t-value", '"string"')
        connections = [sealed(registry)]
        asked = NodeRegistries(KEY).among(lambda: connections)
        assert asked("plant").schema(number).text == '"string"'
        connections[:] = [sealed(other)]
        assert asked("plant").schema(number).text == '"long"'


def test_a_preview_does_not_drop_the_registry_of_another_one(registry: RegistryServer) -> None:
    with RegistryServer() as other:
        other.register("t-value", '"long"')
        number = registry.register("t-value", '"string"')
        previewed = NodeRegistries(KEY)
        first = previewed.among(lambda: [sealed(registry)])
        second = previewed.among(lambda: [sealed(other)])
        for _ in range(3):
            assert first("plant").schema(number).text == '"string"'
            assert second("plant").schema(number).text == '"long"'
        assert (registry.asked, other.asked) == (1, 1)


def test_a_registry_that_no_connection_leads_to_any_more_is_closed(
    registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[SchemaRegistry] = []
    monkeypatch.setattr(SchemaRegistry, "close", lambda self: closed.append(self))
    monkeypatch.setattr(registries, "UNUSED_S", -1.0)  # at once
    with RegistryServer() as other:
        connections = [sealed(registry)]
        found = NodeRegistries(KEY).among(lambda: connections)
        first = found("plant")
        assert found("plant") is first
        assert closed == [], "a connection leads to it"
        connections[:] = [sealed(other)]
        assert found("plant") is not first
        assert closed == [first]


def test_a_connection_that_is_of_no_use_is_told_in_words_without_its_secret(registry: RegistryServer) -> None:
    lost = sealed(registry).model_copy(update={"sealed": ""})
    for given, words in (
        ([], 'There is no connection "plant". An admin makes it'),
        ([sealed(registry, kind="http")], "is of another kind"),
        ([lost], "An admin enters them again"),
        ([sealed(registry, key="another")], "this node has another cluster key"),
    ):
        with pytest.raises(SchemaRegistryError, match=words) as refused:
            NodeRegistries(KEY).among(lambda given=given: given)("plant")
        assert SECRET not in str(refused.value)
