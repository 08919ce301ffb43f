"""Tests what a preview reads, how far it goes, and its message if it cannot go on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_runtime.model.preview import SAMPLE_ROWS_MAX, SHOWN_MAX, SampleRow
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.filter import Filter
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.operators.sdk import DataFrameOperator, Params
from pipeline_runtime.preview import run as module
from pipeline_runtime.preview.run import preview
from tests.unit.preview.previewing import (
    GENERATOR,
    NO_KAFKA,
    NOW_MS,
    TOPIC,
    draft,
    previewed,
    question,
    rows,
)

LATE = {"id": "late", "type": "filter", "inputs": {"in": "in"}, "params": {"condition": "n >= 3000"}}
RATIO = {
    "id": "ratio",
    "type": "derive",
    "inputs": {"in": "in"},
    "params": {"columns": [{"name": "ratio", "expression": "1000 / (n % 5)"}]},
}


def test_it_reads_on_until_enough_rows_come_out() -> None:
    answer = previewed(draft(GENERATOR, LATE), "late")
    assert [row["n"] for row in rows(answer)] == list(range(3000, 3000 + SHOWN_MAX))
    assert answer.read > 3000
    assert not answer.whole


def test_it_reads_no_more_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENOUGH_S", 600)
    never = {**LATE, "params": {"condition": "n < 0"}}
    answer = previewed(draft(GENERATOR, never), "late")
    assert module.ROWS_MAX <= answer.read < module.ROWS_MAX + 15_000
    assert rows(answer) == []


def test_what_a_window_keeps_back_comes_when_the_source_has_ended() -> None:
    source = {**GENERATOR, "params": {"rate": 1, "rows": 90, "signals": [{"name": "x"}]}}
    count = {"size_s": 60, "aggregates": [{"function": "count", "as": "rows"}], "align": "epoch"}
    count.pop("align")
    window = {"id": "w", "type": "window-aggregate", "inputs": {"in": "in"}, "params": count}
    answer = previewed(draft(source, window), "w")
    assert answer.whole
    assert sum(row["rows"] for row in rows(answer)) == 90


def test_rows_that_it_could_not_take_are_marked_with_the_reason() -> None:
    answer = previewed(draft(GENERATOR, RATIO), "ratio")
    assert answer.letters_count == 40
    marked = [place for place, row in enumerate(answer.inputs["in"].rows) if row.reason]
    assert marked == [0, 5, 10, 15]
    assert {row.reason for row in answer.inputs["in"].rows} == {None, answer.letters[0].reason}


def test_rows_that_were_lost_before_are_counted() -> None:
    after = {
        "id": "after",
        "type": "select",
        "inputs": {"in": "ratio"},
        "params": {"columns": [{"column": "n"}]},
    }
    answer = previewed(draft(GENERATOR, RATIO, after), "after")
    assert answer.lost == {"ratio": 40}
    assert (answer.letters, answer.letters_count) == ((), 0)


def test_an_operator_that_raises_is_named_and_what_came_to_it_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(self: Filter, ctx: object) -> Any:
        def fails(inputs: Mapping[str, pa.Table]) -> pa.Table:
            raise ValueError("no such luck")

        return fails

    monkeypatch.setattr(Filter, "arrow", broken)
    answer = previewed(draft(GENERATOR, LATE), "late")
    assert (answer.refused, answer.at, answer.why) == ("failed", "late", "ValueError: no such luck")
    assert len(answer.inputs["in"].rows) == SHOWN_MAX


class Sums(DataFrameOperator):
    type, title, summary, category, icon = "sums", "Sums", "A user's DataFrame", "transform", "sigma"
    Params = Params

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        return inputs["in"]

    def transform(self, inputs: Any, ctx: Any) -> Any:
        return inputs["in"]


def test_of_an_operator_that_is_written_for_spark_it_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(default_registry()._operators, "sums", Sums)
    sums = {"id": "sums", "type": "sums", "inputs": {"in": "in"}, "params": {}}
    after = {**LATE, "inputs": {"in": "sums"}}
    for element in ("sums", "late"):
        answer = previewed(draft(GENERATOR, sums, after), element)
        assert (answer.refused, answer.at) == ("spark", "sums")


def test_kafka_that_does_not_answer_is_told_at_the_element_that_reads_it() -> None:
    answer = previewed(draft(TOPIC), "in")
    assert (answer.refused, answer.at) == ("unreachable", "in")


def test_a_file_that_is_not_there_is_told_at_the_element_that_reads_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pipeline_runtime.operators.csv_replay import CsvReplay

    def gone(self: CsvReplay, ctx: object) -> Any:
        raise FileNotFoundError("the file upload:1 is not on this node")

    monkeypatch.setattr(CsvReplay, "open", gone)
    source = {"id": "in", "type": "csv-replay", "params": {"path": "demo:ecg"}}
    answer = previewed(draft(source), "in")
    assert (answer.refused, answer.at) == ("unreachable", "in")
    assert "upload:1" in answer.why


def test_long_texts_are_cut_and_large_whole_numbers_are_told_exactly() -> None:
    row = SampleRow(time_ms=0, values={"k": "k" * 5000, "n": 2**60 + 1})
    answer = previewed(draft(TOPIC), "in", given={"in.out": (row,)})
    [shown] = rows(answer)
    assert shown["n"] == str(2**60 + 1)
    assert len(shown["k"]) == 200
    assert shown["k"].endswith("…")


def test_two_sources_go_on_together_as_far_as_the_slower_one() -> None:
    slow = {"id": "slow", "type": "generator", "params": {"rate": 1, "signals": [{"name": "y"}]}}
    joined = {
        "id": "joined",
        "type": "join",
        "inputs": {"left": "in", "right": "slow"},
        "params": {"left_key": "key", "right_key": "key", "within_s": 1},
    }
    answer = previewed(draft(GENERATOR, slow, joined), "joined")
    left, right = (answer.inputs[port].count for port in ("left", "right"))
    assert 8 * right < left < 12 * right
    assert len(rows(answer)) == SHOWN_MAX


def test_an_alarm_of_silence_is_raised_by_the_clock_of_the_source() -> None:
    source = {
        "id": "in",
        "type": "generator",
        "params": {"rate": 0.01, "rows": 3, "signals": [{"name": "x"}]},
    }
    silence = {"id": "s", "type": "silence-alarm", "inputs": {"in": "in"}, "params": {"for_s": 30}}
    answer = previewed(draft(source, silence), "s")
    assert [row["alarm"] for row in rows(answer)] == ["raised", "cleared", "raised", "cleared"]


def test_a_sample_of_the_rows_that_come_gives_the_same_rows_again_without_what_is_before() -> None:
    tail = {**RATIO, "inputs": {"in": "late"}}
    document = draft(GENERATOR, LATE, tail)
    asked = question(document, "ratio", sample=True)
    answer = preview(asked, NO_KAFKA, {}, Path("/nonexistent"), NOW_MS, {})
    assert SHOWN_MAX <= len(answer.sample["in"]) <= SAMPLE_ROWS_MAX
    alone = tuple(spec for spec in asked.groups if spec.group == "ratio")
    given = {"late.out": answer.sample["in"]}
    again = preview(
        asked.model_copy(update={"groups": alone, "given": given, "sample": False}),
        NO_KAFKA,
        {},
        Path("/nonexistent"),
        NOW_MS,
        {},
    )
    assert (rows(again), again.sample) == (rows(answer), {})
