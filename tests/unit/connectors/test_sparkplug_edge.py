"""The messages of an edge node that sends rows."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline_runtime.connectors import sparkplug_edge
from pipeline_runtime.connectors.sparkplug import Births, new_payload, parsed, rebirth_command
from pipeline_runtime.connectors.sparkplug_edge import EdgeNode, Message, wants_rebirth
from pipeline_runtime.connectors.sparkplug_host import PrimaryHost, state
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.sdk import SchemaMismatch
from pipeline_runtime.operators.sparkplug import SparkplugOut, SparkplugOutParams

SCHEMA = StreamSchema(
    fields=(
        Field(name="count", type=FieldType.INTEGER),
        Field(name="temperature", type=FieldType.NUMBER, unit="°C"),
        Field(name="text", type=FieldType.STRING),
        Field(name="on", type=FieldType.BOOLEAN),
        Field(name="at", type=FieldType.TIMESTAMP),
    )
)
ROW = {"count": -5, "temperature": 21.5, "text": "ü", "on": True, "at": "2026-03-01T06:00:00.500000+00:00"}
NOW_MS = 1_764_000_000_000
# Read by another implementation, pysparkplug 0.6.1, as ROW with the number 7 of its connection.
NBIRTH = bytes.fromhex(
    "0889d0dfb4ab33121d0a05636f756e74100118fbcfdfb4ab33200458fbffffffffffffffff0112350a0b74656d70657261"
    "74757265100218fbcfdfb4ab33200a4a120a07656e67556e69741207080c4203c2b04369000000000080354012150a0474"
    "657874100318fbcfdfb4ab33200c7a02c3bc12110a026f6e100418fbcfdfb4ab33200b700112160a026174100518fbcfdf"
    "b4ab33200d58f4e9edbfca3312120a0562645365711889d0dfb4ab332004580712210a144e6f646520436f6e74726f6c2f"
    "526562697274681889d0dfb4ab33200b70001800"
)
NDATA = bytes.fromhex(
    "0880d0dfb4ab331214100118fbcfdfb4ab3358fbffffffffffffffff011212100218fbcfdfb4ab33690000000000803540"
    "120d100318fbcfdfb4ab337a02c3bc120b100418fbcfdfb4ab3370011210100518fbcfdfb4ab3358f4e9edbfca331801"
)


def params(**fields: Any) -> SparkplugOutParams:
    given = {"connection": "b", "group": "plant", "node": "line 1", **fields}
    return SparkplugOutParams.model_validate(given)


def edge_node(**fields: Any) -> EdgeNode:
    made = params(**fields)
    return EdgeNode(made.group, made.node, made.metrics_of(SCHEMA), made.device)


def birth(node: EdgeNode, now_ms: int = NOW_MS) -> bytes:
    [message] = node.births(now_ms)
    return message.payload


def values(births: Births, payload: bytes) -> dict[str, Any]:
    return {name: value for row, _ in births.rows(parsed(payload), 0) for name, value in row.values.items()}


def test_a_birth_says_all_metrics_and_a_row_is_read_by_their_aliases() -> None:
    node = edge_node()
    assert node.topic("NBIRTH") == "spBv1.0/plant/NBIRTH/line 1"
    death = parsed(node.begin(7, NOW_MS))
    assert [(each.name, each.datatype, each.long_value) for each in death.metrics] == [("bdSeq", 4, 7)]
    assert not death.HasField("seq")
    first = parsed(birth(node))
    assert first.seq == 0
    assert [(each.name, each.HasField("alias") and each.alias, each.datatype) for each in first.metrics] == [
        *(("count", 1, 4), ("temperature", 2, 10), ("text", 3, 12), ("on", 4, 11), ("at", 5, 13)),
        *(("bdSeq", False, 4), ("Node Control/Rebirth", False, 11)),
    ]
    assert all(each.is_null for each in first.metrics[:5])
    unit = first.metrics[1].properties
    assert (list(unit.keys), [each.string_value for each in unit.values]) == (["engUnit"], ["°C"])
    births = Births()
    births.note(first.metrics)
    data = node.data(ROW, NOW_MS - 5, NOW_MS).payload
    payload = parsed(data)
    assert payload.seq == 1
    assert not any(each.HasField("name") or each.HasField("datatype") for each in payload.metrics)
    [(row, historical)] = births.rows(payload, 0)
    assert (row.time_us, row.values, historical) == ((NOW_MS - 5) * 1000, ROW, False)
    node.sent(ROW, NOW_MS - 5)
    again = values(births, birth(node, NOW_MS + 9))
    assert {name: again[name] for name in ROW} == ROW
    assert (again["bdSeq"], again["Node Control/Rebirth"]) == (7, False)


def test_another_implementation_reads_births_and_data() -> None:
    node = edge_node()
    node.begin(7, NOW_MS)
    birth(node)
    assert node.data(ROW, NOW_MS - 5, NOW_MS).payload == NDATA
    node.sent(ROW, NOW_MS - 5)
    assert birth(node, NOW_MS + 9) == NBIRTH


def test_messages_are_numbered_from_the_birth_on_and_a_row_that_is_not_sent_takes_no_number() -> None:
    node = edge_node()
    node.begin(0, NOW_MS)
    birth(node)
    numbers = []
    for number in range(300):
        node.data(ROW, NOW_MS, NOW_MS)  # it is too large, say
        numbers.append(parsed(node.data(ROW, NOW_MS + number, NOW_MS).payload).seq)
        node.sent(ROW, NOW_MS + number)
    assert numbers == [number % 256 for number in range(1, 301)]
    birth(node)
    assert parsed(node.data(ROW, NOW_MS + 300, NOW_MS).payload).seq == 1


def test_a_row_before_another_one_is_historical_and_no_current_value() -> None:
    node = edge_node()
    node.begin(0, NOW_MS)
    births = Births()
    births.note(parsed(birth(node)).metrics)
    node.sent(ROW, NOW_MS)
    late = {"count": 1, "temperature": None}
    [(row, historical)] = births.rows(parsed(node.data(late, NOW_MS - 1, NOW_MS).payload), 0)
    assert (row.values["count"], row.values["temperature"], historical) == (1, None, True)
    node.sent(late, NOW_MS - 1)
    assert values(births, birth(node))["count"] == -5


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"at": "1969-12-31T23:59:59+00:00"}, "its at cannot be sent: Sparkplug B has no time before 1970"),
        ({"text": "\ud800"}, "its text holds a character"),
    ],
)
def test_what_sparkplug_cannot_say_is_refused(row: dict[str, Any], words: str) -> None:
    node = edge_node()
    node.begin(0, NOW_MS)
    with pytest.raises(ValueError, match=words):
        node.data(row, NOW_MS, NOW_MS)


def seq_of(message: Message) -> int:
    return int(parsed(message.payload).seq)


def test_each_device_is_born_before_its_first_row_and_has_aliases_of_its_own() -> None:
    node = edge_node(device="text")
    assert node.own_topics == [
        "spBv1.0/plant/NBIRTH/line 1",
        *(f"spBv1.0/plant/{kind}/line 1/+" for kind in ("DBIRTH", "DDATA")),
    ]
    node.begin(7, NOW_MS)
    [itself] = node.births(NOW_MS)
    assert [each.name for each in parsed(itself.payload).metrics] == ["bdSeq", "Node Control/Rebirth"]
    rows = [{**ROW, "text": name} for name in ("saw", "mill", "saw")]
    sent, births = [], Births()
    for number, row in enumerate(rows):
        born = node.birth_before(row, NOW_MS)
        if born is not None:
            sent.append(born)
            births.note(parsed(born.payload).metrics)
        sent.append(node.data(row, NOW_MS + number, NOW_MS))
        node.sent(row, NOW_MS + number, now_s=number)
    assert [each.topic.removeprefix("spBv1.0/plant/") for each in sent] == [
        *("DBIRTH/line 1/saw", "DDATA/line 1/saw", "DBIRTH/line 1/mill", "DDATA/line 1/mill"),
        "DDATA/line 1/saw",
    ]
    assert [seq_of(each) for each in sent] == [1, 2, 3, 4, 5]
    assert sorted(births.names) == list(range(1, 9))
    assert values(births, sent[3].payload) == {
        name: ROW[name] for name in ("count", "temperature", "on", "at")
    }
    # A host asks for the births.
    again = list(node.births(NOW_MS))
    assert [(each.topic.split("/")[2], seq_of(each)) for each in again] == [
        *(("NBIRTH", 0), ("DBIRTH", 1), ("DBIRTH", 2)),
    ]
    assert node.birth_before(rows[0], NOW_MS) is None
    # The mill is silent.
    [death] = node.silent(2, NOW_MS)
    assert (death.topic, seq_of(death)) == ("spBv1.0/plant/DDEATH/line 1/mill", 3)
    assert list(node.silent(2, NOW_MS)) == []
    assert [each.topic.split("/")[4:] for each in node.births(NOW_MS)] == [[], ["saw"]]
    assert node.birth_before(rows[1], NOW_MS) is not None


def test_a_device_is_kept_from_its_birth_on_and_is_not_silent_then() -> None:
    node = edge_node(device="text")
    node.begin(0, NOW_MS)
    list(node.births(NOW_MS))
    with pytest.raises(ValueError, match="before 1970"):
        node.data({**ROW, "text": "bad", "at": "1969-12-31T23:59:59+00:00"}, NOW_MS, NOW_MS)
    node.data({**ROW, "text": "too large"}, NOW_MS, NOW_MS)
    assert len(list(node.births(NOW_MS))) == 1
    first = node.data({**ROW, "text": "saw"}, NOW_MS, NOW_MS)
    assert node.birth_before({**ROW, "text": "saw"}, NOW_MS, now_s=5) is not None
    again = node.data({**ROW, "text": "saw"}, NOW_MS, NOW_MS)
    assert (seq_of(first), seq_of(again)) == (1, 2)
    assert [each.alias for each in parsed(again.payload).metrics] == [1, 2, 3, 4]
    assert list(node.silent(5, NOW_MS)) == []
    # Its rows may wait while there is no connection.
    node.begin(1, NOW_MS, now_s=50)
    assert list(node.silent(50, NOW_MS)) == []
    assert len(list(node.silent(51, NOW_MS))) == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [(None, "1 to 200"), ("a/b", "no +"), ("\ud800", "no text can have"), ("x" * 201, "1 to 200")],
)
def test_a_row_that_names_no_device_is_refused(name: str | None, words: str) -> None:
    with pytest.raises(ValueError, match=f"its text names no device: .*{re.escape(words)}"):
        edge_node(device="text").birth_before({**ROW, "text": name}, NOW_MS)


def test_the_devices_of_an_edge_node_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparkplug_edge, "DEVICES_MAX", 1)
    node = edge_node(device="text")
    assert node.birth_before({**ROW, "text": "a"}, NOW_MS) is not None
    with pytest.raises(ValueError, match="has 1 devices already"):
        node.birth_before({**ROW, "text": "b"}, NOW_MS)


def test_a_command_may_ask_for_the_births() -> None:
    assert wants_rebirth(rebirth_command(NOW_MS))
    other = new_payload()
    other.metrics.add(name="Node Control/Rebirth", datatype=11, boolean_value=False)
    other.metrics.add(name="Node Control/Reboot", datatype=11, boolean_value=True)
    assert not wants_rebirth(other.SerializeToString())
    assert not wants_rebirth(b"\xff\xff")


def test_the_state_of_a_host_with_an_earlier_time_counts_no_more() -> None:
    host = PrimaryHost("h")
    for online, at_ms, now in ((True, 5, True), (False, 4, True), (False, 5, False), (True, 4, False)):
        host.take(state(online=online, at_ms=at_ms))
        assert host.online.is_set() is now
    host.take(b"ONLINE")
    assert not host.online.is_set()
    host.forget()
    host.take(state(online=True, at_ms=1))
    assert host.online.is_set()


def test_columns_may_be_chosen_and_named() -> None:
    chosen = [{"column": "temperature", "metric": "Motor/Temperature"}, {"column": "on"}]
    metrics = params(metrics=chosen).metrics_of(SCHEMA)
    assert [(each.column, each.name) for each in metrics] == [
        ("temperature", "Motor/Temperature"),
        ("on", "on"),
    ]
    assert SparkplugOut(params(metrics=chosen)).output_schema({"in": SCHEMA}) == SCHEMA


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ([{"column": "gone"}], "gone"),
        ([{"column": "on", "metric": "A"}, {"column": "at", "metric": "a"}], "one name for many hosts"),
        ([{"column": "on", "metric": "bdSeq"}], "keeps for itself"),
        ([{"column": "on", "metric": "Node Control/Rebirth"}], "keeps for itself"),
    ],
)
def test_metrics_that_hosts_would_confuse_are_refused(metrics: list[dict[str, str]], words: str) -> None:
    with pytest.raises(SchemaMismatch, match=words):
        SparkplugOut(params(metrics=metrics)).output_schema({"in": SCHEMA})


@pytest.mark.parametrize(
    "wrong", [{"group": "a/b"}, {"node": "a+"}, {"node": ""}, {"host_id": "#"}, {"silent_s": 5}]
)
def test_what_is_no_id_or_has_no_device_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        params(**wrong)
