"""When the rows of a batch came, where a source inside the group makes them."""

from __future__ import annotations

from time import monotonic
from typing import Any

import pytest

from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.generator import GeneratorParams, GeneratorReader
from pipeline_runtime.replica.input_offsets import InputOffsets

T0 = 1_000_000


def offsets_of(**params: Any) -> InputOffsets:
    only = GroupInput(index=0, source="plant", schema=StreamSchema(fields=()))
    reader = GeneratorReader(GeneratorParams(**params))
    return InputOffsets(KafkaSettings("nowhere:1"), [only], {"plant": reader}, 1_000, lambda: None)


def waited_ms(offsets: InputOffsets, start: Any, now_ms: int) -> float:
    end = offsets.advance(start, now_ms)
    arrived_at_s = offsets.arrived_at_s(start, end, now_ms)
    assert arrived_at_s is not None
    return (monotonic() - arrived_at_s) * 1000


@pytest.mark.parametrize(
    ("rate", "row", "now_ms", "expected_ms"),
    [(1, 3, T0 + 3_400, 400), (0.1, 1, T0 + 10_000, 0), (100, 50, T0 + 700, 200)],
)
def test_a_row_of_a_source_has_waited_since_it_was_due(
    rate: float, row: int, now_ms: int, expected_ms: int
) -> None:
    start = {"plant": {"row": row, "t0": T0, "shifts": []}}
    assert waited_ms(offsets_of(rate=rate), start, now_ms) == pytest.approx(expected_ms, abs=50)


def test_rows_that_a_source_does_not_catch_up_were_not_due() -> None:
    start = {"plant": {"row": 100, "t0": T0, "shifts": []}}
    assert waited_ms(offsets_of(rate=100, catch_up=False), start, T0 + 61_000) == pytest.approx(0, abs=50)
    assert waited_ms(offsets_of(rate=100), start, T0 + 61_000) == pytest.approx(60_000, abs=50)


def test_a_source_says_when_its_next_row_is_due() -> None:
    at = {"plant": {"row": 3, "t0": T0, "shifts": [[2, 500]]}}
    assert offsets_of(rate=0.1).next_due_ms(at) == T0 + 30_500
    assert offsets_of(rate=0.1, rows=3).next_due_ms(at) is None, "it has ended"
    assert offsets_of(rate=0.1).next_due_ms({}) is None


def test_no_row_has_waited_where_none_is_due() -> None:
    offsets = offsets_of(rate=1)
    start = {"plant": {"row": 5, "t0": T0, "shifts": []}}
    assert offsets.arrived_at_s(start, offsets.advance(start, T0 + 4_500), T0 + 4_500) is None
