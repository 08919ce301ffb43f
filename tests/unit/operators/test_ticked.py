"""Tests the parameters that an operator makes of what a user ticks in a system."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.model.connectors import Found, FoundPart
from pipeline_runtime.model.schema import Field, FieldType
from pipeline_runtime.operators.connected import ConnectedOperator
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.operators.ticked import AVRO, column_name

NUMBER, TEXT, TIME = FieldType.NUMBER, FieldType.STRING, FieldType.TIMESTAMP
CONNECTION = {"connection": "plant"}


def taken(type_: str, params: dict[str, Any], *ticked: Found, columns: tuple[Field, ...] = ()) -> Any:
    made = asking(type_, params, *ticked, columns=columns)
    default_registry().get(type_).Params.model_validate(made)
    return made


def asking(type_: str, params: dict[str, Any], *ticked: Found, columns: tuple[Field, ...] = ()) -> Any:
    """Parameters in which the form may ask for something."""
    operator: Any = default_registry().get(type_)
    assert issubclass(operator, ConnectedOperator)
    return operator.taken({**CONNECTION, **params}, ticked, columns)


def node(name: str, *within: str, holds: FieldType = NUMBER, unit: str = "") -> Found:
    path = f"ns=2;s={'.'.join((*within, name))}"
    return Found(path=path, title=name, within=within, holds=holds, unit=unit, usable=True)


def topic(path: str, *parts: tuple[str, FieldType], holds: FieldType | None = None) -> Found:
    made = tuple(FoundPart(name=name, type=type_) for name, type_ in parts)
    return Found(path=path, title=path, holds=holds, parts=made, usable=True)


def test_a_topic_of_kafka_gives_its_format_and_the_fields_of_its_newest_record() -> None:
    before = {"topic": "old", "columns": [{"name": "gone", "type": "string"}], "start": "latest"}
    read = taken("other-kafka-in", before, topic("climate", ("line", TEXT), ("air.temperature", NUMBER)))
    assert (read["topic"], read["format"], read["start"]) == ("climate", "json", "latest")
    assert read["columns"] == [
        {"name": "line", "type": "string"},
        {"name": "temperature", "type": "number", "from": "air.temperature"},
    ]
    plain = taken("other-kafka-in", {}, topic("lines", holds=TEXT))
    assert (plain["format"], plain["columns"]) == ("text", [{"name": "value", "type": "string"}])
    coded = Found(path="coded", title="coded", type=AVRO, usable=True)
    asked = asking("other-kafka-in", before, coded)
    assert asked == {**CONNECTION, **before, "topic": "coded", "format": "avro"}
    unknown = asking("other-kafka-in", before, topic("empty"))
    assert unknown == {**CONNECTION, **before, "topic": "empty"}
    assert taken("other-kafka-out", {}, topic("climate", ("line", TEXT)))["topic"] == "climate"


def test_nodes_become_columns_with_their_types_and_units_beside_those_that_are_there() -> None:
    half_filled = {"name": "", "type": "number", "node": ""}
    there = {"name": "Speed", "type": "number", "node": "ns=2;s=Press.Speed"}
    params = taken(
        "opcua-in",
        {"columns": [half_filled, there], "publish_ms": 20},
        node("Speed", "Press"),
        node("Oil level", "Press", unit="mm"),
        node("On", "Press", holds=FieldType.BOOLEAN),
        node("On", "Pump", holds=FieldType.BOOLEAN),
    )
    assert params["publish_ms"] == 20
    assert params["columns"] == [
        there,
        {"name": "Oil_level", "type": "number", "unit": "mm", "node": "ns=2;s=Press.Oil level"},
        {"name": "On", "type": "boolean", "node": "ns=2;s=Press.On"},
        {"name": "Pump_On", "type": "boolean", "node": "ns=2;s=Pump.On"},
    ]


def test_a_node_to_write_gets_the_column_of_its_name_alone() -> None:
    columns = (Field(name="a", type=NUMBER), Field(name="setpoint", type=NUMBER))
    params = asking("opcua-out", {}, node("Setpoint", "Press"), node("Other", "Press"), columns=columns)
    assert [each["column"] for each in params["nodes"]] == ["setpoint", ""]


def test_fields_of_the_messages_become_columns_and_several_topics_a_column_for_the_topic() -> None:
    one = topic("plant/a", ("t", NUMBER), ("at.time", TIME), ('["a b"]', TEXT))
    params = taken("mqtt-in", {}, one)
    assert (params["topics"], params["payload"]) == (["plant/a"], "json")
    assert params["columns"] == [
        {"name": "t", "type": "number"},
        {"name": "time", "type": "timestamp", "from": "at.time"},
        {"name": "a_b", "type": "string", "from": '["a b"]'},
    ]
    more = taken("mqtt-in", params, topic("plant/b", ("t", TEXT), ("u", NUMBER)))
    assert more["topics"] == ["plant/a", "plant/b"]
    assert more["columns"][3:] == [
        {"name": "topic", "type": "string", "level": 0},
        {"name": "u", "type": "number"},
    ]
    assert taken("mqtt-in", more, one) == more


def test_plain_values_become_one_column_and_do_not_go_together_with_objects() -> None:
    params = taken("mqtt-in", {}, topic("plant/line 1/speed", holds=NUMBER))
    assert (params["payload"], params["columns"]) == ("plain", [{"name": "speed", "type": "number"}])
    mixed = taken("mqtt-in", {}, topic("plant/a", holds=NUMBER), topic("plant/b", holds=TEXT))
    assert mixed["columns"] == [
        {"name": "topic", "type": "string", "level": 0},
        {"name": "value", "type": "string"},
    ]
    with pytest.raises(ValueError, match="plant/b has objects, plant/a has plain values"):
        taken("mqtt-in", {}, topic("plant/a", holds=NUMBER), topic("plant/b", ("t", NUMBER)))
    with pytest.raises(ValueError, match="plant/b has objects, plant/a has plain values"):
        taken("mqtt-in", {}, topic("plant/a", holds=NUMBER), topic("plant/b"))  # such as {"a": [1]}
    with pytest.raises(ValueError, match="empty its topics first"):
        taken("mqtt-in", params, topic("plant/b", ("t", NUMBER)))


def test_a_table_is_taken_with_its_keys_and_the_column_that_waits_for_the_time() -> None:
    parts = (("line", TEXT, True), ("at", TIME, True), ("kW", NUMBER, False), ("seen", TIME, False))
    table = Found(
        path="plant.power",
        title="plant.power",
        parts=tuple(FoundPart(name=name, type=type_, key=key) for name, type_, key in parts),
    )
    columns = (Field(name="line", type=TEXT), Field(name="kW", type=NUMBER))
    params = taken("postgresql-out", {}, table, columns=columns)
    assert {name: params[name] for name in ("namespace", "table", "keys", "time_column")} == {
        "namespace": "plant",
        "table": "power",
        "keys": ["line", "at"],
        "time_column": "at",
    }
    assert taken("postgresql-out", {}, table, columns=columns[1:])["keys"] == []
    assert taken("mqtt-out", {}, topic("alarms/line-1"))["topic"] == "alarms/line-1"
    read = asking("postgresql-in", {}, table)
    assert (read["table"], read["rising"], [each["name"] for each in read["columns"]]) == (
        "power",
        "",
        ["line", "at", "kW", "seen"],
    )


@pytest.mark.parametrize(("type_", "rising"), [(FieldType.INTEGER, "id"), (TEXT, ""), (TIME, "")])
def test_only_a_key_that_is_a_whole_number_is_taken_for_a_rising_column(
    type_: FieldType, rising: str
) -> None:
    parts = (FoundPart(name="id", type=type_, key=True), FoundPart(name="at", type=TIME))
    table = Found(path="plant.orders", title="orders", parts=parts)
    assert asking("postgresql-in", {}, table)["rising"] == rising


def test_registers_are_counted_as_the_element_counts() -> None:
    found = [
        Found(path="1/holding/100", title="holding register 100"),
        Found(path="2/coil/7", title="coil 7"),
        Found(path="1/input/3", title="input register 3"),
    ]
    params = taken("modbus-in", {"first_address": 1}, *found)
    assert params["registers"] == [
        {"name": "holding_register_100", "kind": "holding", "address": 101},
        {"name": "coil_7", "kind": "coil", "address": 8, "unit_id": 2},
        {"name": "input_register_3", "kind": "input", "address": 4},
    ]
    assert taken("modbus-in", params, *found) == params
    columns = tuple(Field(name=name, type=NUMBER) for name in "ab")
    written = asking("modbus-out", {}, *found, columns=columns)["registers"]
    assert [(each["column"], each["address"]) for each in written] == [("", 100), ("", 7)]


def test_capital_letters_make_no_other_name() -> None:
    made = taken("opcua-in", {}, node("Temp", "Press"), node("temp", "Pump"))["columns"]
    assert [each["name"] for each in made] == ["Temp", "Pump_temp"]


@given(st.lists(st.text(max_size=200), max_size=5), st.sets(st.text(max_size=6), max_size=20))
def test_the_name_of_a_column_is_new_and_may_be_one(titles: list[str], names: set[str]) -> None:
    made = column_name(titles, names | {"value"})
    assert made not in names
    assert made != "value"
    Field(name=made, type=NUMBER)
    assert 1 <= len(made) <= 120
    assert not made.startswith(("_", "."))
