"""A batch's rows as the records of one transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from string import ascii_letters
from typing import Any

import pyarrow as pa
import pytest

from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.batch.output import LETTERS, RECORDS, BatchOutput
from pipeline_runtime.batch.written import HEADERS, WRITTEN
from pipeline_runtime.kafka.limits import TopicLimits, limits_of
from pipeline_runtime.kafka.transactions import END_HEADER, OutgoingRecord, OutgoingRows
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import ElementSpec, GroupSpec, InputStream, OutputStream
from pipeline_runtime.replica.outputs import (
    KEY_CHARACTERS_MAX,
    RAW_CHARACTERS_MAX,
    BatchRecords,
    RejectedRecord,
    element_rows,
    outgoing,
)

SCHEMA = StreamSchema(fields=())
SPEC = GroupSpec(
    deployment="d",
    pipeline="p",
    group="g",
    elements=(ElementSpec(id="x", type="filter"), ElementSpec(id="y", type="kafka-out")),
    outputs=(
        OutputStream(source="x.out", topic="fl.d.x.out", partitions=2, data_schema=SCHEMA),
        OutputStream(source="y.out", topic="users", data_schema=SCHEMA, external=True),
    ),
)


def made(
    records: dict[str, list[tuple[str | None, int, str]]] | None = None,
    letters: list[tuple[Any, ...]] | None = None,
) -> BatchOutput:
    streams = {
        output.source: table((records or {}).get(output.source, []), RECORDS) for output in SPEC.outputs
    }
    return BatchOutput(streams, {}, table(letters or [], LETTERS), {})


def table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def records_of(out: BatchRecords) -> list[OutgoingRecord]:
    found: list[OutgoingRecord] = []
    for each in out.records:
        found += each.records() if isinstance(each, OutgoingRows) else [each]
    return found


def rejected(raw: str = "abc") -> RejectedRecord:
    return RejectedRecord("x", "in.out", 3, 17, raw, "because", "k" * 2000, 1000)


def test_rows_go_to_the_topics_of_their_streams_in_their_order() -> None:
    rows = {"x.out": [("k", 1, "{1}"), (None, 3, "{3}")], "y.out": [(None, 2, "{2}")]}
    out = outgoing(SPEC, made(rows), [], ending=False)
    assert [(r.topic, r.key, r.timestamp_ms, r.value) for r in records_of(out)] == [
        ("fl.d.x.out", b"k", 1, b"{1}"),
        ("fl.d.x.out", None, 3, b"{3}"),
        ("users", None, 2, b"{2}"),
    ]
    assert (out.rows_out, out.dead_letters) == (3, {})
    assert out.stream_bytes == {"x.out": 7, "y.out": 3}


def test_dead_letters_say_whose_they_are_and_why() -> None:
    out = outgoing(SPEC, made(letters=[("x", "r", "raw", 1, 5, None, 7)]), [rejected()], ending=False)
    assert (out.rows_out, out.dead_letters) == (0, {"x": 2})
    assert [(r.topic, json.loads(r.value)) for r in records_of(out)] == [
        ("fl.d.x.dead", {"reason": "r", "raw": "raw", "element": "x", "time_ms": 7}),
        (
            "fl.d.x.dead",
            {
                "reason": "because",
                "raw": "abc",
                "element": "x",
                "input": "in.out partition 3 offset 17",
                "key": "k" * KEY_CHARACTERS_MAX,
                "time_ms": 1000,
            },
        ),
    ]


def test_a_letter_says_in_which_stream_its_row_lies_if_its_element_reads_it_from_outside() -> None:
    reads = tuple(
        InputStream(source=f"{id}.out", topic=f"fl.d.{id}.out", data_schema=SCHEMA, consumer="x")
        for id in ("in", "other")
    )
    pair = ElementSpec(id="x", type="join", inputs={"left": "in.out", "right": "other.out"})
    behind = ElementSpec(id="y", type="filter", inputs={"in": "x.out"})
    half = ElementSpec(id="y", type="join", inputs={"left": "x.out", "right": "other.out"})

    def place(elements: tuple[ElementSpec, ...], of: str, number: int) -> str | None:
        spec = SPEC.model_copy(update={"elements": elements, "inputs": reads})
        [letter] = records_of(
            outgoing(spec, made(letters=[(of, "r", "raw", number, 5, "k", 7)]), [], ending=False)
        )
        told: str | None = json.loads(letter.value).get("input")
        return told

    numbers = [GroupInput(index, "any.out", SCHEMA).number_of(3) for index in (0, 1)]
    assert place((pair, behind), "x", numbers[0]) == "in.out partition 3 offset 5"
    assert place((pair, behind), "x", numbers[1]) == "other.out partition 3 offset 5"
    assert place((pair, behind), "x", -1) is None  # it lies in no topic
    assert place((pair, behind), "y", numbers[0]) is None  # it reads what x gives it
    assert place((pair, half), "y", numbers[1]) is None  # x may have passed the row on


def test_a_dead_letter_fits_into_a_record_whatever_it_quotes() -> None:
    huge = "\N{REPLACEMENT CHARACTER}" * 3_000_000
    out = outgoing(
        SPEC, made(letters=[("x", "r", huge, None, None, None, None)]), [rejected(huge)], ending=False
    )
    for record in records_of(out):
        assert len(record.value) < 4 * RAW_CHARACTERS_MAX
        assert json.loads(record.value)["raw"].endswith("... (3000000 characters)")


def test_an_end_is_told_in_every_partition_of_fogline_s_own_streams() -> None:
    out = outgoing(SPEC, made(), [], ending=True)
    assert [(r.topic, r.partition, r.headers) for r in records_of(out)] == [
        ("fl.d.x.out", 0, (END_HEADER,)),
        ("fl.d.x.out", 1, (END_HEADER,)),
    ]
    assert (out.rows_out, out.dead_letters) == (0, {})


def test_each_element_of_a_group_counts_its_own_rows() -> None:
    spec = SPEC.model_copy(
        update={
            "elements": (
                ElementSpec(id="keep", type="filter", inputs={"in": "before.out"}),
                ElementSpec(id="x", type="window-aggregate", inputs={"in": "keep.out"}),
                ElementSpec(id="file", type="csv-sink", inputs={"in": "x.out"}),
            ),
            "outputs": (OutputStream(source="x.out", topic="fl.d.x.out", data_schema=SCHEMA),),
        }
    )
    assert element_rows(spec, {"x.out": 2}, 7, {"keep": 3}) == {
        "keep": (7, None, 3),  # what it passes on stays inside Spark
        "x": (None, 2, 0),
        "file": (2, None, 0),
    }


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ({"in": "before.out"}, {"in": "before.out"}, (7, 7)),  # one stream, read by both
        ({"in": "before.out"}, {"in": "other.out"}, (None, None)),
        ({"in": "before.out"}, {"left": "before.out", "right": "a.out"}, (7, None)),
        ({}, {}, (None, None)),  # two sources
    ],
)
def test_what_an_element_read_is_told_only_where_it_is_known(
    left: dict[str, str], right: dict[str, str], expected: tuple[int | None, int | None]
) -> None:
    elements = (
        ElementSpec(id="a", type="filter", inputs=left),
        ElementSpec(id="b", type="filter", inputs=right),
    )
    found = element_rows(SPEC.model_copy(update={"elements": elements}), {}, 7, {})
    assert (found["a"][0], found["b"][0]) == expected


def test_what_could_not_be_read_counts_for_the_source_alone() -> None:
    elements = (
        ElementSpec(id="source", type="kafka-in"),
        ElementSpec(id="keep", type="filter", inputs={"in": "source.out"}),
    )
    spec = SPEC.model_copy(update={"elements": elements})
    found = element_rows(spec, {"source.out": 5, "keep.out": 2}, 7, {})
    assert found == {"source": (7, 5, 0), "keep": (5, 2, 0)}


def test_an_element_of_its_own_is_counted_as_its_group() -> None:
    spec = SPEC.model_copy(update={"elements": SPEC.elements[:1]})
    assert element_rows(spec, {}, 7, {}) == {}


NOW_MS = 1_000_000_000


@pytest.mark.parametrize(
    ("limits", "row", "reason"),
    [
        (TopicLimits(), ("k", NOW_MS, '"' + "x" * 5 * 1024 * 1024 + '"'), "at most 4,194,304 are sent"),
        (TopicLimits(after_ms=3_600_000), ("k", NOW_MS + 3_600_001, "{}"), "more than 60 minutes ahead"),
        (TopicLimits(before_ms=86_400_000), ("k", NOW_MS - 86_400_001, "{}"), "more than 24 hours ago"),
        (TopicLimits(needs_key=True), (None, NOW_MS, "{}"), "has no key"),
    ],
)
def test_a_record_that_kafka_would_refuse_is_a_dead_letter_and_the_others_go_on(
    limits: TopicLimits, row: tuple[str | None, int, str], reason: str
) -> None:
    rows = {"y.out": [("a", NOW_MS, "{1}"), row, ("b", NOW_MS, "{2}")]}
    out = outgoing(SPEC, made(rows), [], ending=False, limits=lambda _: limits, now_ms=NOW_MS)
    assert [record.value for record in records_of(out)[:2]] == [b"{1}", b"{2}"]
    assert (out.rows_out, out.dead_letters) == (2, {"y": 1})
    letter = json.loads(records_of(out)[2].value)
    assert records_of(out)[2].topic == SPEC.dead_letters("y")
    assert reason in letter["reason"]
    assert len(letter["raw"]) <= RAW_CHARACTERS_MAX + 100


def test_a_record_over_a_topics_limit_is_taken_if_it_is_small_enough_compressed() -> None:
    noise = "".join(Random(1).choices(ascii_letters, k=3000))
    rows = {"y.out": [(None, NOW_MS, "x" * 3000), (None, NOW_MS, noise)]}
    limits = TopicLimits(batch_bytes=1000)
    out = outgoing(SPEC, made(rows), [], ending=False, limits=lambda _: limits, now_ms=NOW_MS)
    assert (out.rows_out, out.dead_letters) == (1, {"y": 1})
    assert "the topic takes 1,000" in json.loads(records_of(out)[1].value)["reason"]


def test_what_a_topic_accepts_is_read_from_its_configuration() -> None:
    config = {
        "max.message.bytes": "1048588",
        "message.timestamp.type": "CreateTime",
        "message.timestamp.before.max.ms": "9223372036854775807",
        "message.timestamp.after.max.ms": "3600000",
        "cleanup.policy": "compact,delete",
    }
    assert limits_of(config) == TopicLimits(1048588, 2**63 - 1, 3_600_000, needs_key=True)
    assert limits_of({**config, "message.timestamp.type": "LogAppendTime"}).after_ms == 2**63 - 1


def test_headers_count_when_a_topic_would_refuse_a_record() -> None:
    rows = [
        {"key": b"k", "time_ms": NOW_MS, "value": b"small", HEADERS: [("h", bytes(count))]}
        for count in (10, 5 * 1024 * 1024)
    ]
    output = BatchOutput({"y.out": pa.Table.from_pylist(rows, WRITTEN)}, {}, LETTERS.empty_table(), {})
    out = outgoing(SPEC, output, [], ending=False, now_ms=NOW_MS)
    taken, letter = records_of(out)
    assert (taken.topic, taken.headers) == ("users", (("h", bytes(10)),))
    assert "at most 4,194,304 are sent" in json.loads(letter.value)["reason"]
    assert out.stream_bytes["y.out"] < 1000


def test_headers_that_make_a_record_too_long_for_its_topic_are_not_compressed_away() -> None:
    limits = TopicLimits(batch_bytes=1000)
    assert limits.refusal(None, b"x", NOW_MS, NOW_MS, (("h", bytes(700)),)) is None
    assert "the topic takes 1,000" in str(limits.refusal(None, b"x", NOW_MS, NOW_MS, (("h", bytes(900)),)))
