"""Previews of connectors that are not deployed: a node reads from a real system for a moment, and the
elements run on these rows."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from pipeline_runtime.connectors.mqtt import MqttIngester
from pipeline_runtime.connectors.mqtt_session import Session
from pipeline_runtime.connectors.sample import sampled
from pipeline_runtime.connectors.sdk import Place
from pipeline_runtime.connectors.trial import RunningTrial
from pipeline_runtime.model.connectors import PURPOSE_SENT, SealedConnection
from pipeline_runtime.model.preview import PreviewAnswer
from pipeline_runtime.operators.connections import ConnectionFields
from pipeline_runtime.operators.mqtt import MqttInParams
from pipeline_runtime.preview.run import preview
from pipeline_runtime.sealing import seal
from tests.brokers import Broker
from tests.opcua_servers import PRESS, OpcUaServer
from tests.ports import free_ports
from tests.unit.preview.previewing import NO_KAFKA, NOW_MS, draft, question, rows
from tests.waiting import PATIENCE_S, wait_until
from workers.node import samples as module
from workers.node.asked_processes import AskedProcesses
from workers.node.samples import Arrived, Samples

pytestmark = pytest.mark.integration

KEY = "cluster"
PROCESSES = AskedProcesses()


@pytest.fixture(scope="module", autouse=True)
def _no_process_stays() -> Iterator[None]:
    yield
    PROCESSES.close()


def previewed(
    samples: Samples, connection: ConnectionFields, element: str, *elements: dict[str, Any]
) -> PreviewAnswer:
    sealed = seal(connection.model_dump_json(), KEY, PURPOSE_SENT)
    sent = SealedConnection(name="plant", kind=connection.kind, version=1, sealed=sealed)
    asked = question(draft(*elements), element, connections=(sent,))
    found = samples.arrived(asked)
    while isinstance(found, PreviewAnswer) and found.refused == "reading":
        found = samples.arrived(asked)  # as the dashboard does
    if isinstance(found, PreviewAnswer):
        return found
    return preview(asked, NO_KAFKA, {}, Path("/nonexistent"), NOW_MS, found)


def until_rows_come(connection: ConnectionFields, element: dict[str, Any]) -> tuple[Samples, PreviewAnswer]:
    """A busy machine may not read in the time that a preview has: then it is asked as a new one is."""
    found: list[tuple[Samples, PreviewAnswer]] = []

    def rows_come() -> bool:
        samples = Samples(KEY, PROCESSES)
        answer = previewed(samples, connection, "in", element)
        found.append((samples, answer))
        return answer.refused is None and bool(rows(answer))

    wait_until(rows_come, lambda: f"rows of a preview: {found[-1][1]}")
    return found[-1]


def opcua(*names: str) -> dict[str, Any]:
    columns = [{"name": name, "node": f"{PRESS}.{name}"} for name in names]
    return {"id": "in", "type": "opcua-in", "params": {"connection": "plant", "columns": columns}}


def test_values_of_a_machine_are_previewed_and_elements_run_on_them(monkeypatch: pytest.MonkeyPatch) -> None:
    derived = {
        "id": "double",
        "type": "derive",
        "inputs": {"in": "in"},
        "params": {"columns": [{"name": "twice", "expression": "Temperature * 2"}]},
    }
    with OpcUaServer() as server:
        monkeypatch.setattr(module, "KEPT_S", PATIENCE_S)
        samples, answer = until_rows_come(server.connection(), opcua("Temperature"))
        assert {row["Temperature"] for row in rows(answer)} == {21.5}
        assert (answer.newest, answer.whole) == (True, False)
        server.kill()
        # It is not asked again for a draft that only goes on.
        answer = previewed(samples, server.connection(), "double", opcua("Temperature"), derived)
        assert {row["twice"] for row in rows(answer)} == {43.0}
        answer = previewed(samples, server.connection(), "in", opcua("Strokes"))
        assert (answer.refused, answer.at) == ("unreachable", "in")
        assert "Nobody listens at the OPC UA server" in answer.why


def test_messages_are_previewed_and_the_broker_keeps_nothing_for_a_preview(tmp_path: Path) -> None:
    columns = [{"name": "t", "type": "number"}]
    params = {"connection": "plant", "topics": ["hall/#"], "columns": columns}
    element = {"id": "in", "type": "mqtt-in", "params": params}
    with Broker(tmp_path) as broker:
        client = broker.client()
        for topic, payload in (("hall/a", b'{"t": 1.5}'), ("hall/b", b"no JSON")):
            client.publish(topic, payload, 1, retain=True).wait_for_publish(10)
        client.disconnect()
        _, answer = until_rows_come(broker.connection(), element)
        assert rows(answer) == [{"t": 1.5}]
        assert [each.raw for each in answer.letters] == ["hall/b: no JSON"]
        session = Session(broker.connection(), f"fogline-preview-{'0' * 8}-in", fresh=False)
        session.connect()
        session.close()
        assert not session.session_present


def test_a_preview_takes_no_message_from_the_element_that_runs_and_asks_no_edge_node(tmp_path: Path) -> None:
    """The topic is shared: each message goes to one client of the group."""
    with Broker(tmp_path) as broker:
        connection = broker.connection(rebirths=True)
        columns = [{"name": "n", "type": "integer"}]
        params = MqttInParams.model_validate(
            {"connection": "plant", "topics": ["$share/group/hall/#"], "columns": columns}
        )
        deployed = RunningTrial(MqttIngester(Place("dep", "in", params, connection)))
        wait_until(lambda: deployed.status.state == "connected", "a connection")
        preview = MqttIngester(Place("preview", "in", params, connection))
        assert not preview.for_preview().place.connection.rebirths
        sent = 0
        with ThreadPoolExecutor(1) as pool:
            previewing = pool.submit(sampled, preview, monotonic())
            while not previewing.done():
                broker.publish("hall/a", b'{"n": %d}' % sent)
                sent += 1
        assert previewing.result().records
        wait_until(lambda: len(deployed.taken.records) >= sent, "all messages")
        assert {row["value"]["n"] for row in deployed.stop().rows} == set(range(sent))


def test_a_webhook_opens_no_port_for_a_preview() -> None:
    columns = [{"name": "t", "type": "number"}]
    params = {"connection": "plant", "port": free_ports(1)[0], "columns": columns}
    answer = Samples(KEY, PROCESSES).arrived(
        question(draft({"id": "in", "type": "http-in", "params": params}), "in")
    )
    assert isinstance(answer, PreviewAnswer)
    assert (answer.refused, answer.at) == ("unread", "in")
    assert "throw them away" in answer.why


def test_a_connection_that_is_not_there_is_told_at_the_element(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_S", PATIENCE_S)
    samples, asked = Samples(KEY, PROCESSES), question(draft(opcua("Temperature")), "in")
    wait_until(lambda: _refused(samples.arrived(asked)) != "reading", "the connector to have ended")
    answer = samples.arrived(asked)
    assert isinstance(answer, PreviewAnswer)
    assert answer.why.startswith('There is no connection "plant"')


def _refused(answer: Arrived | PreviewAnswer) -> str | None:
    return answer.refused if isinstance(answer, PreviewAnswer) else None
