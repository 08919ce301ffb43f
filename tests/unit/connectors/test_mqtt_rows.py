"""Messages as records, and rows as topics."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from pipeline_runtime.connectors.mqtt import matcher_of, record_of
from pipeline_runtime.connectors.mqtt_out import packet_bytes
from pipeline_runtime.operators.mqtt import MqttIn, MqttInParams, MqttOutParams, topic_of


def test_a_json_message_is_a_record_with_its_topic() -> None:
    record = record_of("plant/l1/climate", '{"t": 21.5, "n": "ü"}'.encode(), "json")
    assert json.loads(record.value) == {
        "topic": "plant/l1/climate",
        "levels": ["plant", "l1", "climate"],
        "value": {"t": 21.5, "n": "ü"},
    }


@pytest.mark.parametrize(
    "payload",
    [b"21.5", b"{", b"", b"\xff\xfe", b"[1]", b'"text"', b"null", pytest.param(b"[" * 100_000, id="nested")],
)
def test_what_is_no_json_object_becomes_a_dead_letter_with_its_topic(payload: bytes) -> None:
    value = record_of("a/b", payload, "json").value
    assert value == b"a/b: " + payload
    with pytest.raises(ValueError):
        json.loads(value)


@pytest.mark.parametrize(
    ("filters", "topic", "wanted"),
    [
        (["a/+", "b/#"], "a/1", True),
        (["a/+", "b/#"], "b", True),
        (["a/+", "b/#"], "a/1/2", False),
        (["a"], "b", False),
        (["$share/g/a/+"], "a/1", True),
        (["$share/g/a/+"], "b/1", False),
        (["$queue/a"], "a", True),
        (["$SYS/#"], "$SYS/x", True),
        (["#"], "$SYS/x", False),
    ],
)
def test_messages_of_topics_that_the_element_has_no_more_are_left_out(
    filters: list[str], topic: str, wanted: bool
) -> None:
    assert any(matcher_of(filters).iter_match(topic)) is wanted


@pytest.mark.parametrize(
    ("payload", "whole"), [(0, 6), (123, 129), (124, 131), (16_379, 16_386), (16_380, 16_388)]
)
def test_a_packet_is_as_long_as_its_parts_and_its_length(payload: int, whole: int) -> None:
    assert packet_bytes("a", bytes(payload), None, 0) == whole
    assert packet_bytes("a", bytes(payload), None, 1) >= whole + 2


def test_a_plain_value_is_a_text() -> None:
    assert json.loads(record_of("a", b"21.5", "plain").value)["value"] == "21.5"
    assert record_of("a", b"\xff", "plain").value == b"a: \xff"


def test_columns_lie_in_the_payload_or_in_the_topic() -> None:
    params = MqttInParams.model_validate(
        {
            "connection": "b",
            "topics": ["plant/+/#"],
            "columns": [
                {"name": "line", "level": 2},
                {"name": "all", "level": 0},
                {"name": "t"},
                {"name": "p", "from": "a[0].b"},
            ],
        }
    )
    reading = MqttIn(params).reading()
    assert [column.path for column in reading.columns] == [
        ("levels", 1),
        ("topic",),
        ("value", "t"),
        ("value", "a", 0, "b"),
    ]


@pytest.mark.parametrize("topic", ["a/#/b", "a#", "a/b+", "x\0", "#/a"])
def test_a_filter_that_no_broker_takes_is_refused(topic: str) -> None:
    with pytest.raises(ValidationError):
        MqttInParams.model_validate({"connection": "b", "topics": [topic], "columns": [{"name": "a"}]})


def test_a_topic_is_made_of_the_row_or_the_row_is_refused() -> None:
    assert topic_of("p/{line}/{n}", {"line": "l1", "n": 3}) == "p/l1/3"
    assert topic_of("p/{on}", {"on": True}) == "p/true"
    for row in ({"line": None}, {"line": ""}, {"line": "a#b"}, {}):
        with pytest.raises(ValueError):
            topic_of("p/{line}", row)


def test_a_topic_to_write_to_has_no_wildcards() -> None:
    with pytest.raises(ValidationError):
        MqttOutParams.model_validate({"connection": "b", "topic": "a/+"})
