"""Tests what browsing finds in edge nodes, and the columns that become of it."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline_runtime.connectors import sparkplug_browse
from pipeline_runtime.connectors.sparkplug import new_payload
from pipeline_runtime.connectors.sparkplug_browse import EdgeNodes
from pipeline_runtime.model.connectors import Found
from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.mqtt import MqttIn, MqttInParams
from pipeline_runtime.operators.ticked_metrics import Source, metric_at, source_at

PRESS = Source("plant", "press")
ROBOT = Source("plant", "press", "robot")


def birth(*metrics: dict[str, Any]) -> Any:
    payload = new_payload(timestamp=1, seq=0)
    for each in metrics:
        payload.metrics.add(**each)
    return payload


def browsed() -> EdgeNodes:
    nodes = EdgeNodes()
    born = birth(
        {"name": "bdSeq", "datatype": 4, "long_value": 1},
        {"name": "Node Control/Rebirth", "datatype": 11, "boolean_value": False},
        {"name": "Outputs/LED.green", "alias": 1, "datatype": 11, "boolean_value": True},
        {"name": "Speed", "alias": 2, "datatype": 9, "is_null": True},
        {"name": "At", "alias": 3, "datatype": 13, "long_value": 0},
        {"name": "List", "alias": 4, "datatype": 24, "bytes_value": b"\1\0\0\0"},
    )
    born.metrics[3].properties.keys.append("engUnit")
    born.metrics[3].properties.values.add(type=12, string_value="m/s")
    inner = born.metrics.add(name="Motor", datatype=19).template_value.metrics
    inner.add(name="rpm", datatype=3, int_value=5)
    assert nodes.take("spBv1.0/plant/NBIRTH/press", born.SerializeToString())
    data = birth({"alias": 2, "float_value": 1.5})
    assert nodes.take("spBv1.0/plant/NDATA/press", data.SerializeToString())
    device = birth({"name": "Speed", "datatype": 3, "int_value": 7})
    assert nodes.take("spBv1.0/plant/DBIRTH/press/robot", device.SerializeToString())
    return nodes


def test_births_tell_the_metrics_with_types_units_and_last_values() -> None:
    nodes = browsed()
    [press] = nodes.sources()
    assert (press.path, press.title, press.inner, press.usable) == (PRESS.path, "plant/press", True, False)
    device, *metrics = nodes.within(PRESS)
    assert (device.path, device.title, device.within) == (ROBOT.path, "robot", ("plant/press",))
    assert [(each.title, each.type, each.holds, each.unit, each.value) for each in metrics] == [
        ("At", "DateTime", FieldType.TIMESTAMP, "", "1970-01-01T00:00:00+00:00"),
        ("List", "Int32Array", FieldType.STRING, "", "[1]"),
        ("Motor/rpm", "Int32", FieldType.INTEGER, "", 5),
        ("Outputs/LED.green", "Boolean", FieldType.BOOLEAN, "", True),
        ("Speed", "Float", FieldType.NUMBER, "m/s", 1.5),
    ]
    assert [each.path for each in nodes.within(ROBOT)] == [f"{ROBOT.path}#Speed"]
    assert [each.path for each in nodes.named("SPEED")] == [f"{PRESS.path}#Speed", f"{ROBOT.path}#Speed"]
    assert [each.path for each in nodes.named("robot")] == [ROBOT.path]


def test_what_a_birth_does_not_explain_is_told_and_what_is_no_message_is_passed() -> None:
    nodes = EdgeNodes()
    assert nodes.take(
        "spBv1.0/plant/NDATA/press", birth({"alias": 2, "float_value": 1.5}).SerializeToString()
    )
    assert nodes.has_unknown(PRESS)
    assert nodes.within(PRESS) == []
    assert not nodes.take("spBv1.0/STATE/host", b"{}")
    assert not nodes.take("spBv1.0/plant/NDATA/other", b"\xff\xff")
    assert [each.path for each in nodes.sources()] == [PRESS.path]


def test_a_look_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparkplug_browse, "METRICS_FOUND_MAX", 2)
    monkeypatch.setattr(sparkplug_browse, "SOURCES_MAX", 3)
    nodes = browsed()
    assert nodes.is_cut
    assert len(nodes.within(PRESS)) == 1 + 2
    for name in ("a", "b", "c"):
        assert nodes.take(f"spBv1.0/plant/NBIRTH/{name}", birth().SerializeToString())
    assert len(nodes.sources()) == 2


def test_paths_say_whose_metric_it_is() -> None:
    assert metric_at(ROBOT.metric_path("a#b/c")) == (ROBOT, "a#b/c")
    assert source_at(PRESS.path) == PRESS
    for path in (
        "spBv1.0/plant/#",
        "spBv1.0/+/+/press",
        "spBv1.0/plant/NDATA/press",
        "a/b/+/c",
        PRESS.topics,
    ):
        assert source_at(path) is None
    assert metric_at("plant/a#b") is None


def taken(params: dict[str, Any], *ticked: Found) -> dict[str, Any]:
    made = MqttIn.taken({"connection": "b", **params}, ticked, ())
    assert MqttInParams.model_validate(made)
    return made


def found(source: Source, name: str, holds: FieldType = FieldType.NUMBER, unit: str = "") -> Found:
    return Found(path=source.metric_path(name), title=name, usable=True, holds=holds, unit=unit)


def test_ticked_metrics_become_columns_and_the_whole_edge_node_is_read() -> None:
    made = taken({}, found(PRESS, "Speed", unit="m/s"), found(PRESS, "Outputs/LED.green", FieldType.BOOLEAN))
    assert (made["payload"], made["topics"]) == ("sparkplug", ["spBv1.0/plant/+/press/#"])
    assert made["columns"] == [
        {"name": "Speed", "type": "number", "unit": "m/s"},
        {"name": "LED_green", "type": "boolean", "from": "Outputs/LED.green"},
    ]
    more = taken(made, found(ROBOT, "Speed"), found(ROBOT, "odd..name[", FieldType.STRING))
    assert more["topics"] == made["topics"]
    assert more["columns"][2:] == [
        {"name": "odd_name", "type": "string", "from": '["odd..name["]'},
        {"name": "device", "type": "string", "level": 5},
    ]
    assert MqttInParams.model_validate(more).metrics == {"Speed", "Outputs/LED.green", "odd..name["}
    other = taken(more, found(Source("plant", "mill"), "Speed"))
    assert other["topics"] == ["spBv1.0/plant/+/press/#", "spBv1.0/plant/+/mill/#"]
    assert other["columns"][-1] == {"name": "edge_node", "type": "string", "level": 4}
    assert taken(other, found(ROBOT, "Speed")) == other


def test_a_topic_that_has_the_edge_node_already_stays_alone() -> None:
    wide = {"topics": ["spBv1.0/plant/#"], "payload": "sparkplug"}
    made = taken(wide, found(PRESS, "Speed"))
    assert made["topics"] == ["spBv1.0/plant/#"]
    assert {"name": "edge_node", "type": "string", "level": 4} in made["columns"]
    part = {"topics": ["spBv1.0/plant/NDATA/press"], "payload": "sparkplug"}
    assert taken(part, found(PRESS, "Speed"))["topics"][1:] == [PRESS.topics]


def test_metrics_and_other_topics_do_not_go_together() -> None:
    topic = Found(path="plant/a", title="plant/a", usable=True, holds=FieldType.NUMBER)
    with pytest.raises(ValueError, match="not both"):
        taken({}, found(PRESS, "Speed"), topic)
    with pytest.raises(ValueError, match="empty its topics first"):
        taken({"topics": ["plant/a"]}, found(PRESS, "Speed"))
    with pytest.raises(ValueError, match="more than 400 letters"):
        taken({}, found(PRESS, "x" * 500))
