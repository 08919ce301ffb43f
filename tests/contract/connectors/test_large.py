"""A row of 10 MB goes out, or becomes a dead letter, and the row behind it goes out as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline_runtime.connectors.mqtt_out import MqttDeliverer
from pipeline_runtime.connectors.opcua_browse import probe
from pipeline_runtime.connectors.opcua_out import OpcUaDeliverer
from pipeline_runtime.connectors.sdk import Place
from pipeline_runtime.connectors.trial import Taken, trial_deliverer
from pipeline_runtime.operators.mqtt import MqttOutParams
from pipeline_runtime.operators.opcua import OpcUaOutParams
from tests.brokers import Broker
from tests.opcua_servers import NOTE, OpcUaServer
from tests.waiting import PATIENCE_S, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.full]

ROWS = [{"text": "x" * 10_000_000}, {"text": "y"}]


def delivered(deliverer: Any) -> Taken:
    return trial_deliverer(deliverer, ROWS, timeout_s=PATIENCE_S)


@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_mqtt_out(version: str, tmp_path: Path) -> None:
    got: list[int] = []
    with Broker(tmp_path) as broker:
        client = broker.client(lambda _, payload: got.append(len(payload)), "large")
        params = MqttOutParams.model_validate({"connection": "c", "topic": "large", "value": "text"})
        connection = broker.connection(version=version)
        taken = delivered(MqttDeliverer(Place("d", "e", params, connection)))
        wait_until(lambda: len(got) == 2, "both messages")
        client.disconnect()
    assert (got, taken.refused, taken.why) == ([10_000_000, 1], [], "")


def test_opcua_out() -> None:
    nodes = [{"column": "text", "node": NOTE}]
    params = OpcUaOutParams.model_validate({"connection": "c", "nodes": nodes, "late_s": None})
    with OpcUaServer() as server:
        taken = delivered(OpcUaDeliverer(Place("d", "e", params, server.connection())))
        values = {row["name"]: row["value"] for row in probe(server.connection(), "").rows}
    assert (values["Note"], taken.refused, taken.why) == ("y", [], "")
