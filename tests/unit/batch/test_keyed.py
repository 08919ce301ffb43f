"""A keyed processor's rows: in order, with timers, and undone when they fail."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from pipeline_runtime.batch.gate_messages import KeepStates
from pipeline_runtime.batch.kept import Kept, decoded
from pipeline_runtime.batch.key_rows import KeyTimers
from pipeline_runtime.batch.keyed import KeyedWork, KeyState
from pipeline_runtime.batch.rows import Letter, Processed, port_schema
from pipeline_runtime.kafka.json_rows import json_texts
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.sdk import KeyedProcessor, OutputRow, Params, Port, Row, Timers
from pipeline_runtime.trial import StatesInMemory

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

    def process(self, key: str, row: Row, state: dict[str, Any], timers: Timers) -> Iterable[OutputRow]:
        self.processed += 1
        state["sum"] = state.get("sum", 0) + row["v"]
        timers.set(row.time_ms + 1000)
        yield {"v": state["sum"]}
        if row["v"] < 0:
            raise ValueError("negative")

    def on_timer(self, key: str, time_ms: int, state: dict[str, Any], timers: Timers) -> Iterable[OutputRow]:
        state["fired"] = [*state.get("fired", []), time_ms - START_MS]
        if time_ms - START_MS == 5000:
            timers.set(time_ms + 100)
        return [{"v": -1}]


class Stored(StatesInMemory):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[set[str | None]] = []

    def keep_states(self, kept: KeepStates) -> None:
        self.told.append(set(kept.keys))
        super().keep_states(kept)


def run(
    values: list[tuple[int, int, int]], stored: Stored | None = None, processor: Summing | None = None
) -> tuple[Processed, Kept]:
    """(partition, offset, v) one second apart by offset -> what comes of them, and the key's state."""
    stored = stored or Stored()
    work = KeyedWork(processor or Summing(), [("in", SCHEMA)], SCHEMA)
    rows = [
        {"v": v, "_key": "key", "_partition": partition, "_offset": offset, "_time": time_of(offset)}
        for partition, offset, v in values
    ]
    made = work.process({"in": pa.Table.from_pylist(rows, port_schema(SCHEMA))}, stored)
    return made, decoded(stored.kept["key"])


def time_of(offset: int) -> datetime:
    return START + timedelta(seconds=offset)


def sums(found: Processed) -> list[int]:
    return [v for v in found.rows["v"].to_pylist() if v != -1]


def test_rows_are_taken_in_the_order_of_their_offsets() -> None:
    found, _ = run([(1, 0, 100), (0, 2, 3), (0, 0, 1), (0, 1, 2)])
    assert sums(found) == [1, 3, 6, 106]


def test_a_row_that_fails_is_as_if_it_never_was() -> None:
    found, kept = run([(0, 0, 1), (0, 1, -5), (0, 2, 2)])
    without, expected = run([(0, 0, 1), (0, 2, 2)])
    assert kept == expected
    assert found.rows == without.rows
    assert found.letters == [Letter("ValueError: negative", '{"v":-5}', 0, 1, "key", START_MS + 1000)]


def test_what_earlier_batches_left_is_kept_when_the_first_row_fails() -> None:
    stored = Stored()
    run([(0, 0, 7)], stored)
    found, kept = run([(0, 1, -1), (0, 2, 1)], stored)
    assert kept.state["sum"] == 8
    assert sums(found) == [8]


def test_many_failures_cost_no_more_than_one_run_each() -> None:
    processor = Summing()
    run([(0, n, -1 if n % 2 else 1) for n in range(400)], processor=processor)
    assert processor.processed <= 3 * 400


def test_timers_fire_in_order_before_the_row_that_reaches_them() -> None:
    # The row at second 0 sets a timer for second 1, and so on. The one that fires at second 5 sets another,
    # which is reached by the same row.
    found, kept = run([(0, 0, 1), (0, 2, 1), (0, 4, 1), (0, 9, 1)])
    assert kept.state["fired"] == [1000, 3000, 5000, 5100]
    assert kept.timers == [START_MS + 10_000]
    times = [(time - START).total_seconds() for time in found.rows["_time"].to_pylist()]
    expected = [(0.0, 1), (1.0, -1), (2.0, 2), (3.0, -1), (4.0, 3), (5.0, -1), (5.1, -1), (9.0, 4)]
    assert list(zip(times, found.rows["v"].to_pylist(), strict=True)) == expected


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


def test_a_state_is_kept_as_it_is_and_what_none_can_hold_is_refused() -> None:
    kept = KeyState(None)
    state, timers = kept.load()
    assert (state, timers.times) == ({}, [])
    kept.save({"a": [1]}, KeyTimers([2, 1]))
    state, timers = KeyState(kept.data).load()
    assert (state, timers.times) == ({"a": [1]}, [1, 2])
    with pytest.raises(TypeError):
        kept.save({"a": object()}, KeyTimers([]))


class Renamed(Summing):
    """Keeps what `Summing` calls sum as total."""

    state_version = 2

    def process(self, key: str, row: Row, state: dict[str, Any], timers: Timers) -> Iterable[OutputRow]:
        state["total"] = state.get("total", 0) + row["v"]
        yield {"v": state["total"]}
        if row["v"] < 0:
            raise ValueError("negative")

    def migrate(self, state: dict[str, Any], version: int) -> dict[str, Any]:
        assert version == 1
        return {"total": state["sum"]}


def test_what_a_batch_does_not_change_is_not_kept_again() -> None:
    stored = Stored()
    run([(0, 0, 7)], stored)
    run([(0, 1, -1)], stored)
    assert stored.told == [{"key"}]


def test_the_rows_of_several_inputs_are_told_apart() -> None:
    work = KeyedWork(Both(), [("in", SCHEMA), ("other", SCHEMA)], SCHEMA)
    ports = {
        "in": given({"v": 1, "_key": "a", "_offset": 9}),
        "other": given({"v": 2, "_key": "a", "_offset": 5}, {"v": 3, "_key": "b", "_offset": 6}),
    }
    made = work.process(ports, Stored()).rows
    assert list(zip(made["_key"].to_pylist(), made["v"].to_pylist(), strict=True)) == [
        ("a", 1),
        ("a", -2),
        ("b", -3),
    ]


def given(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(
        [{"_partition": 0, "_time": START, **row} for row in rows], port_schema(SCHEMA)
    )


class Naming(Summing):
    """Gives a field of each type that may be a key, as the state's JSON has it or as Python has it."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def process(self, key: str, row: Row, state: dict[str, Any], timers: Timers) -> Iterable[OutputRow]:
        yield {"k": self.value}


@pytest.mark.parametrize(
    ("type_", "value", "key"),
    [
        (FieldType.BOOLEAN, True, "true"),
        (FieldType.TIMESTAMP, START, "2024-01-01T00:00:00.000000Z"),
        (FieldType.TIMESTAMP, START.isoformat(), "2024-01-01T00:00:00.000000Z"),
        (FieldType.NUMBER, 2, "2.0"),
        (FieldType.NUMBER, 0.1, "0.1"),
        (FieldType.INTEGER, 2, "2"),
        (FieldType.STRING, "a b", "a b"),
        (FieldType.STRING, None, None),
    ],
)
def test_the_record_key_is_the_fields_text_as_json_has_it(
    type_: FieldType, value: Any, key: str | None
) -> None:
    outputs = StreamSchema(fields=(Field(name="k", type=type_),), key="k")
    work = KeyedWork(Naming(value), [("in", SCHEMA)], outputs)
    rows = work.process({"in": given({"v": 1, "_key": "a", "_offset": 0})}, Stored()).rows
    assert rows["_key"].to_pylist() == [key]
    [text] = json_texts(rows, outputs).to_pylist()
    assert text == f'{{"k":{json.dumps(key) if isinstance(value, str | datetime) else key or "null"}}}'


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (FieldType.INTEGER, 2.5),
        (FieldType.INTEGER, True),
        (FieldType.INTEGER, 2**63),
        (FieldType.NUMBER, "2"),
        (FieldType.NUMBER, float("nan")),
        (FieldType.STRING, 2),
        (FieldType.BOOLEAN, 1),
        (FieldType.TIMESTAMP, "yesterday"),
        (FieldType.TIMESTAMP, datetime(2024, 1, 1)),  # noqa: DTZ001 - that it has no zone is the point
    ],
)
def test_a_value_that_does_not_fit_its_field_makes_a_dead_letter_of_the_row(
    type_: FieldType, value: Any
) -> None:
    outputs = StreamSchema(fields=(Field(name="k", type=type_),))
    work = KeyedWork(Naming(value), [("in", SCHEMA)], outputs)
    made = work.process({"in": given({"v": 1, "_key": "a", "_offset": 0})}, Stored())
    assert made.rows.num_rows == 0
    [letter] = made.letters
    assert letter.reason.partition(":")[0] in ("TypeError", "ValueError")
    assert letter.raw == '{"v":1}'


class Both(Summing):
    inputs = (Port("in"), Port("other"))

    def process(self, key: str, row: Row, state: dict[str, Any], timers: Timers) -> Any:
        return [{"v": row["v"]}]

    def process_other(self, port: str, key: str, row: Row, state: dict[str, Any], timers: Timers) -> Any:
        assert port == "other"
        return [{"v": -row["v"]}]


def test_a_state_of_an_earlier_version_is_migrated_once_also_when_the_first_row_fails() -> None:
    stored = Stored()
    run([(0, 0, 7)], stored)
    found, kept = run([(0, 1, -1), (0, 2, 1)], stored, Renamed())
    assert sums(found) == [8]
    assert (kept.state["total"], kept.version) == (8, 2)
    assert "sum" not in kept.state
    found, _ = run([(0, 3, 1)], stored, Renamed())
    assert sums(found) == [9]


def test_a_state_that_nobody_can_read_stops_the_element_and_stays() -> None:
    stored = Stored()
    run([(0, 0, 7)], stored)
    before = dict(stored.kept)

    class Forgetful(Summing):
        state_version = 2

    with pytest.raises(NotImplementedError, match="no state of version 1 can be read by version 2"):
        run([(0, 1, 1)], stored, Forgetful())
    assert stored.kept == before
    run([(0, 1, 1)], stored, Renamed())
    with pytest.raises(
        ValueError, match="version 2 of the operator, and this is version 1: install the later"
    ):
        run([(0, 2, 1)], stored)
