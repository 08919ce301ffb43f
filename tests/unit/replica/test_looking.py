"""A look at what a processor keeps: page by page, by key, and cut where it is long."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_runtime.batch.kept import Kept, encoded
from pipeline_runtime.batch.key_rows import KeyTimers
from pipeline_runtime.batch.keyed import KeyState
from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.model.kept import KeptAnswer, KeptQuestion
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators import keyed_aggregate, window_aggregate
from pipeline_runtime.operators.event_time import sortable
from pipeline_runtime.operators.sdk import KeyedProcessor, OutputRow, Params, Processor, Row, Timers
from pipeline_runtime.replica import looking
from pipeline_runtime.replica.looking import KEY_MAX, STATE_MAX, Looking

END_US = 1_700_000_040_000_000  # 22:14:00
PANE = END_US // 60_000_000
COUNT = {"function": "count", "as": "n"}
SCHEMA = StreamSchema(
    fields=(
        Field(name="machine", type=FieldType.STRING),
        Field(name="part", type=FieldType.NUMBER),
        Field(name="at", type=FieldType.TIMESTAMP),
    )
)


class Remembering(KeyedProcessor):
    type, title, summary, category, icon = "remembering", "Remembering", "", "state", "sigma"
    Params = Params

    def key_field(self) -> str | None:
        return None

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        return inputs["in"]

    def process(self, key: str, row: Row, state: dict[str, Any], timers: Timers) -> Iterable[OutputRow]:
        return ()


class Unreadable(Remembering):
    def readable_key(self, key: str) -> str:
        raise RuntimeError("it cannot")

    def readable_state(self, state: Any, inputs: Mapping[str, StreamSchema]) -> Any:
        return {"of": set(state)}  # no JSON


def windows(*aggregates: dict[str, str]) -> Processor:
    params = {"size_s": 60, "keys": ["machine"], "aggregates": aggregates or [COUNT]}
    return window_aggregate.WindowAggregate(window_aggregate.WindowAggregateParams.model_validate(params))


def aggregate() -> Processor:
    params = {"keys": ["machine", "part"], "aggregates": [COUNT]}
    return keyed_aggregate.KeyedAggregate(keyed_aggregate.KeyedAggregateParams.model_validate(params))


class Keeper:
    def __init__(self, path: Path, processor: Processor) -> None:
        KeyedState.create(path)
        self.state = KeyedState(path)
        self.looking = Looking("it", processor, {"in": SCHEMA}, self.state)

    def keep(self, states: Mapping[str | None, bytes]) -> None:
        self.state.begin()
        self.state.keep(list(states), list(states.values()), [None] * len(states))
        self.state.seal()
        self.state.commit({"seq": 1, "ends": {}, "batch_time": 0})

    def look(self, search: str = "", after: str | None = None, limit: int = 20) -> KeptAnswer:
        question = {"id": "0" * 32, "group": "d.g", "element": "it", "limit": limit}
        asked = KeptQuestion.model_validate({**question, "search": search, "after": after})
        return self.looking.answer(asked)

    def all_keys(self, search: str = "", limit: int = 2) -> list[str]:
        """Page by page."""
        found, after = [], None
        while True:
            page = self.look(search, after, limit)
            assert len(page.entries) <= limit
            found += [entry.key for entry in page.entries]
            after = page.next
            if after is None:
                return found


def pane_key(machine: str | None) -> str:
    return sortable(PANE) + json.dumps([machine])


def kept(value: Any) -> bytes:
    return encoded(Kept(value))


@pytest.fixture
def keyed(tmp_path: Path) -> Keeper:
    return Keeper(tmp_path / "keyed", Remembering(Params()))


def test_a_key_is_told_with_its_state_and_its_timers(keyed: Keeper) -> None:
    state = KeyState(None, version=3)
    state.save({"sum": 1.5, "name": "ü"}, KeyTimers([2000, 1000]))
    keyed.keep({"a": state.data, None: kept("the element's own")})
    page = keyed.look()
    (entry,) = page.entries
    assert (page.keys, page.next, page.looked, page.refused) == (1, None, None, None)
    assert (entry.key, entry.timers_ms) == ("a", (1000, 2000))
    assert json.loads(entry.state) == {"sum": 1.5, "name": "ü"}
    assert not entry.key_cut
    assert not entry.state_cut


def test_pages_have_each_key_once_in_order_whatever_is_in_it(keyed: Keeper) -> None:
    keys = sorted(["", "a", "a\0", "a\0b", "aa", "b", "\U0010ffff", "ü", "z" * KEY_MAX, "{}"])
    keyed.keep({key: kept(1) for key in keys})
    for limit in (1, 2, 3, 100):
        assert keyed.all_keys(limit=limit) == keys
    assert keyed.all_keys("a") == ["a", "a\0", "a\0b", "aa"]
    assert keyed.all_keys("a\0") == ["a\0", "a\0b"]
    assert keyed.all_keys("none") == []
    assert keyed.look("none").keys == len(keys)


def test_a_search_goes_straight_to_keys_that_are_read_as_they_are(
    keyed: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "LOOKED_MAX", 100)
    keyed.keep({f"{number:05d}": kept(number) for number in range(1000)})
    page = keyed.look("0099", limit=3)
    assert [entry.key for entry in page.entries] == ["00990", "00991", "00992"]
    assert (page.next, page.looked) == ("00992", None)


def test_keys_of_windows_are_read_as_times_and_searched_by_what_is_in_them(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path / "keyed", windows())
    keeper.keep({pane_key(machine): kept([1]) for machine in ("Press 1", "Press 2", None)})
    minute = "2023-11-14 22:13:00 to 2023-11-14 22:14:00 UTC"
    assert keeper.all_keys() == [f"{minute}, Press 1", f"{minute}, Press 2", f"{minute}, null"]
    assert keeper.all_keys("press 2") == [f"{minute}, Press 2"]
    assert keeper.all_keys("22:14") == keeper.all_keys()


def test_of_a_window_the_aggregates_so_far_are_told(tmp_path: Path) -> None:
    asked = {"avg": "part", "stddev": "part", "last": "at"}
    processor = windows(COUNT, *({"function": name, "column": column} for name, column in asked.items()))
    keeper = Keeper(tmp_path / "keyed", processor)
    rows = pa.table(
        {
            "_end": [END_US] * 2,
            "machine": ["Press 1"] * 2,
            "part": [1.0, 4.0],
            "at": pa.array([END_US - 2, END_US - 1], pa.timestamp("us", "UTC")),
            "_time": pa.array([END_US - 2, END_US - 1], pa.timestamp("us", "UTC")),
            "_partition": pa.array([0, 0], pa.int32()),
            "_offset": [0, 1],
        }
    )
    assert isinstance(processor, window_aggregate.WindowAggregate)
    accumulation = processor.accumulation(SCHEMA)
    [state] = accumulation.states(accumulation.of(rows, ["_end", "machine"]).kept)
    keeper.keep({pane_key("Press 1"): kept(state)})
    told = json.loads(keeper.look().entries[0].state)
    assert told.pop("part_stddev") == pytest.approx(math.sqrt(4.5))
    assert told == {"n": 2, "part_avg": 2.5, "at_last": "2023-11-14 22:13:59.999999+00:00"}


def test_keys_of_an_aggregate_are_read_as_their_values(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path / "keyed", aggregate())
    keeper.keep({keyed_aggregate.state_key(("ü", part)): kept([1]) for part in (1, 2.5, True)})
    assert keeper.all_keys() == ["ü, 1", "ü, 2.5", "ü, true"]
    assert keeper.all_keys("Ü, 2") == ["ü, 2.5"]


def test_one_question_looks_through_so_many_keys_and_the_next_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "LOOKED_MAX", 200)
    keeper = Keeper(tmp_path / "keyed", aggregate())
    keeper.keep({keyed_aggregate.state_key((f"{number:05d}", "x")): kept(number) for number in range(1000)})
    page = keeper.look("00999")
    assert (page.entries, page.looked) == ((), 200)
    assert page.next is not None
    assert keeper.all_keys("00999") == ["00999, x"]
    assert keeper.look("", limit=100).looked is None


def test_what_is_long_is_cut_and_says_so(keyed: Keeper) -> None:
    long_key = "ü" * (KEY_MAX + 1)
    keyed.keep({long_key: kept("ü" * STATE_MAX), "z": kept(1)})
    whole, cut = keyed.look().entries
    assert (cut.key, cut.key_cut, cut.state_cut, cut.timers_ms) == ("ü" * KEY_MAX, True, True, ())
    assert cut.state.startswith('"\\u00fc\\u00fc')
    assert len(cut.state) <= STATE_MAX
    assert (whole.key, whole.state) == ("z", "1")


def test_of_what_is_too_large_to_be_read_in_between_the_size_is_told(
    keyed: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "READ_MAX", 2_000)
    keyed.keep({"a": kept("x" * 1_990), "b": kept("x" * 2_000)})
    whole, large = keyed.look().entries
    assert (len(whole.state), whole.state_cut) == (1_992, False)
    assert (large.state, large.state_cut) == ("2,006 bytes: ", True)


def test_what_json_does_not_have_is_told_as_python_says_it(keyed: Keeper) -> None:
    keyed.keep({"a": kept({"at": datetime(2024, 5, 1, tzinfo=UTC)})})
    assert "datetime.datetime(2024, 5, 1" in keyed.look().entries[0].state


def test_long_keys_that_begin_alike_are_passed_over_and_nothing_else(keyed: Keeper) -> None:
    alike = ["k" * KEY_MAX + str(number) for number in range(5)]
    keyed.keep({key: kept(1) for key in ["a", *alike, "l"]})
    assert keyed.all_keys(limit=1) == ["a", "k" * KEY_MAX, "l"]


def test_numbers_that_json_does_not_have_are_told_as_they_are_kept(keyed: Keeper) -> None:
    keyed.keep({"a": kept(float("nan"))})
    assert keyed.look().entries[0].state == "NaN"


def test_what_its_operator_cannot_make_readable_is_told_as_it_is(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path / "keyed", Unreadable(Params()))
    keeper.keep({"a": kept([1])})
    assert keeper.all_keys() == keeper.all_keys("a") == ["a"]
    assert keeper.look().entries[0].state == "[1]"


def test_where_nothing_can_be_looked_at_the_answer_says_why(
    keyed: Keeper, caplog: pytest.LogCaptureFixture
) -> None:
    keyed.keep({"a": b"a secret that is no state"})
    assert keyed.look().refused == "failed"
    assert "secret" not in caplog.text
    elsewhere = KeptQuestion(id="0" * 32, group="d.g", element="other", limit=1)
    assert keyed.looking.answer(elsewhere).refused == "elsewhere"
    keyed.state.close()
    assert keyed.look().refused == "away"
