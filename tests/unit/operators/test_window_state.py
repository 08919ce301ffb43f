"""Tests that the state of a window in the database of a replica stays small."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline_runtime.batch.batched import BatchWork
from pipeline_runtime.batch.gate_messages import KeepStates
from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.operators.sdk import OperatorContext
from pipeline_runtime.trial import StatesInMemory, port_table
from tests.unit.operators.conftest import dicts, schema_of

SCHEMA = schema_of(n="integer", k="string", x="number")
BATCH_S, ROWS = 5, 4
AGGREGATES = [
    {"function": "count", "as": "n"},
    {"function": "avg", "column": "x", "as": "mean"},
    {"function": "stddev", "column": "x", "as": "spread"},
]


class InDatabase(StatesInMemory):
    def __init__(self, state: KeyedState) -> None:
        super().__init__()
        self._state = state

    def states_of(self, keys: Sequence[str | None], task: int) -> list[bytes | None]:
        return self._state.get(keys)

    def states_between(self, first: str, end: str) -> list[tuple[str, bytes]]:
        return self._state.between(first, end)

    def keys_between(self, first: str, end: str, most: int) -> list[str]:
        return self._state.keys(first, end, most)

    def keep_states(self, kept: KeepStates) -> None:
        self._state.keep(kept.keys, kept.states, kept.sizes)


@pytest.mark.parametrize(("slide_s", "keys"), [(60, []), (10, []), (60, ["k"])])
def test_after_half_an_hour_the_state_is_as_large_as_after_five_minutes(operator, tmp_path, slide_s, keys):
    """With the same keys, whatever the rows are."""
    params = {"size_s": 60, "slide_s": slide_s, "keys": keys, "aggregates": AGGREGATES}
    window = operator("window-aggregate", params)
    context = OperatorContext("w", window.output_schema({"in": SCHEMA}), {"in": SCHEMA}, Path(), Path)
    work = BatchWork(window, [("in", SCHEMA)], context)
    KeyedState.create(tmp_path / "keyed")
    state = KeyedState(tmp_path / "keyed")
    largest: dict[int, int] = {}  # bytes by the minute
    for seq in range(30 * 60 // BATCH_S):
        second = seq * BATCH_S
        rows = [(second + i / ROWS, seq * ROWS + i, f"machine {i}", 0.1 * (seq % 7)) for i in range(ROWS)]
        state.begin()
        made = work.process({"in": port_table(dicts(rows, SCHEMA), SCHEMA, seq * ROWS)}, InDatabase(state))
        assert not made.letters
        state.seal()
        state.commit({"seq": seq + 1})
        minute = second // 60 + 1
        largest[minute] = max(largest.get(minute, 0), state.bytes)
    state.close()
    assert largest[5] > 0
    assert largest[30] == pytest.approx(largest[5], rel=0.05)
