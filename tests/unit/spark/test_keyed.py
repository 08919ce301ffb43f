"""A keyed processor's rows: in order, with timers, and undone when they fail."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pytest

from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.sdk import KeyedProcessor, Params, Timers
from pipeline_runtime.spark.keyed import KeyState, KeyTimers, _AllKeys, process_row

START = datetime(2024, 1, 1, tzinfo=UTC)
START_MS = int(START.timestamp() * 1000)
SCHEMA = StreamSchema(fields=(Field(name="v", type=FieldType.INTEGER),))


class Summing(KeyedProcessor):
    """Sums; a negative value fails after it has changed state and timers."""

    type, title, summary, category, icon = "summing", "Summing", "", "state", "sigma"
    Params = Params

    def __init__(self) -> None:
        super().__init__(Params())
        self.processed = 0

    def key_field(self) -> str | None:
        return None

    def output_schema(self, inputs: Any) -> StreamSchema:
        return SCHEMA

    def process(
        self, key: str, row: dict[str, Any], state: dict[str, Any], timers: Timers
    ) -> Iterable[dict[str, Any]]:
        self.processed += 1
        state["sum"] = state.get("sum", 0) + row["v"]
        timers.set(int((row["_time"] - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1)) + 1000)
        yield {"v": state["sum"]}
        if row["v"] < 0:
            raise ValueError("negative")

    def on_timer(
        self, key: str, time_ms: int, state: dict[str, Any], timers: Timers
    ) -> Iterable[dict[str, Any]]:
        state["fired"] = [*state.get("fired", []), time_ms - START_MS]
        if time_ms - START_MS == 5000:
            timers.set(time_ms + 100)
        return [{"v": -1}]


class Stored:
    """As TextMap, for one key."""

    def __init__(self) -> None:
        self.value: str | None = None

    def get(self, keys: Iterable[str]) -> Iterator[tuple[str, str | None]]:
        assert list(keys) == ["key"]
        yield "key", self.value

    def put(self, texts: Iterable[tuple[str, str]]) -> None:
        [(key, self.value)] = texts
        assert key == "key"


def run(
    values: list[tuple[int, int, int]], stored: Stored | None = None, processor: Summing | None = None
) -> tuple[list[tuple[str, Any]], dict[str, Any]]:
    """(partition, offset, v) one second apart by offset -> tagged output values, state."""
    stored = stored or Stored()
    all_keys = _AllKeys(processor or Summing(), "sum", [("in", SCHEMA)], SCHEMA)
    all_keys._states = stored  # type: ignore[assignment]
    rows = [
        (0, "key", 0, partition, offset, (START_MS + offset * 1000) * 1000, json.dumps({"v": v}))
        for partition, offset, v in values
    ]
    frame = pd.DataFrame(rows, columns=["all", "key", "port", "partition", "offset", "time_us", "data"])
    out: Iterator[pd.DataFrame] = all_keys.handleInputRows((0,), iter([frame]), None)
    found = [
        (tag, json.loads(value))
        for part in out
        for tag, value in zip(part["_out"], part["_value"], strict=True)
    ]
    assert stored.value is not None
    return found, json.loads(stored.value)


def sums(found: list[tuple[str, Any]]) -> list[int]:
    return [value["v"] for tag, value in found if tag == "sum.out" and value["v"] != -1]


def test_rows_are_taken_in_the_order_of_their_offsets() -> None:
    found, _ = run([(1, 0, 100), (0, 2, 3), (0, 0, 1), (0, 1, 2)])
    assert sums(found) == [1, 3, 6, 106]


def test_a_row_that_fails_is_as_if_it_never_was() -> None:
    found, kept = run([(0, 0, 1), (0, 1, -5), (0, 2, 2)])
    without, expected = run([(0, 0, 1), (0, 2, 2)])
    assert kept == expected
    assert [item for item in found if item[0] == "sum.out"] == without
    [letter] = [value for tag, value in found if tag == "sum.dead"]
    assert letter == {"reason": "ValueError: negative", "raw": '{"v": -5}'}


def test_what_earlier_batches_left_is_kept_when_the_first_row_fails() -> None:
    stored = Stored()
    run([(0, 0, 7)], stored)
    found, kept = run([(0, 1, -1), (0, 2, 1)], stored)
    assert kept["state"]["sum"] == 8
    assert sums(found) == [8]


def test_many_failures_cost_no_more_than_one_run_each() -> None:
    processor = Summing()
    run([(0, n, -1 if n % 2 else 1) for n in range(400)], processor=processor)
    assert processor.processed <= 3 * 400


def test_timers_fire_in_order_before_the_row_that_reaches_them() -> None:
    processor, state = Summing(), dict[str, Any]()
    timers = KeyTimers([START_MS + 3000, START_MS + 1000, START_MS + 9000, START_MS + 5000])
    row = {"v": 1, "_time": START + timedelta(milliseconds=5100)}
    made = process_row(processor, "k", row, state, timers, START_MS + 5100)
    assert state["fired"] == [1000, 3000, 5000, 5100]  # the last was set by the one before
    assert [item["v"] for item in made] == [-1, -1, -1, -1, 1]
    assert made[0]["_time"] == START + timedelta(seconds=1)
    assert timers.times == [START_MS + 6100, START_MS + 9000]


def test_a_timer_is_set_once_and_can_be_cancelled() -> None:
    timers = KeyTimers([5])
    timers.set(3)
    timers.set(5)
    timers.cancel(4)
    assert timers.times == [3, 5]
    timers.cancel(3)
    assert timers.due(4) is None
    assert timers.due(5) == 5
    assert timers.due(5) is None


def test_a_state_is_kept_as_json() -> None:
    kept = KeyState(None)
    state, timers = kept.load()
    assert (state, timers.times) == ({}, [])
    kept.save({"a": [1]}, KeyTimers([2, 1]))
    state, timers = KeyState(kept.text).load()
    assert (state, timers.times) == ({"a": [1]}, [1, 2])
    with pytest.raises(TypeError):
        kept.save({"a": START}, KeyTimers([]))


class Renamed(Summing):
    """Keeps what `Summing` calls sum as total."""

    state_version = 2

    def process(
        self, key: str, row: dict[str, Any], state: dict[str, Any], timers: Timers
    ) -> Iterable[dict[str, Any]]:
        state["total"] = state.get("total", 0) + row["v"]
        yield {"v": state["total"]}
        if row["v"] < 0:
            raise ValueError("negative")

    def migrate(self, state: dict[str, Any], version: int) -> dict[str, Any]:
        assert version == 1
        return {"total": state["sum"]}


def test_a_state_of_an_earlier_version_is_migrated_once_also_when_the_first_row_fails() -> None:
    stored = Stored()
    run([(0, 0, 7)], stored)
    found, kept = run([(0, 1, -1), (0, 2, 1)], stored, Renamed())
    assert sums(found) == [8]
    assert (kept["state"]["total"], kept["version"]) == (8, 2)
    assert "sum" not in kept["state"]
    found, _ = run([(0, 3, 1)], stored, Renamed())
    assert sums(found) == [9]


def test_a_state_that_nobody_can_read_stops_the_element_and_stays() -> None:
    stored = Stored()
    run([(0, 0, 7)], stored)
    before = stored.value

    class Forgetful(Summing):
        state_version = 2

    with pytest.raises(NotImplementedError, match="no state of version 1 can be read by version 2"):
        run([(0, 1, 1)], stored, Forgetful())
    assert stored.value == before
    run([(0, 1, 1)], stored, Renamed())
    with pytest.raises(
        ValueError, match="version 2 of the operator, and this is version 1: install the later"
    ):
        run([(0, 2, 1)], stored)
