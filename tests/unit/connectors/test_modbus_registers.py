"""Registers as values, and as requests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from pipeline_runtime.connectors.late import late
from pipeline_runtime.connectors.modbus import Refusal, following_of
from pipeline_runtime.connectors.modbus_out import writes_of
from pipeline_runtime.connectors.polls import TOLD_EVERY_S, Polls, missed_in
from pipeline_runtime.operators.modbus import (
    ADDRESS_MAX,
    ModbusIn,
    ModbusInParams,
    ModbusOutParams,
    ModbusRegister,
    Request,
    request_of,
    requests_of,
)


def register(**fields: Any) -> ModbusRegister:
    return ModbusRegister.model_validate({"name": "v", "address": 0, **fields})


def params(*registers: dict[str, Any], **fields: Any) -> ModbusInParams:
    named = [{"name": f"v{place}", **each} for place, each in enumerate(registers)]
    return ModbusInParams.model_validate({"connection": "d", "registers": named, **fields})


@pytest.mark.parametrize(
    ("type_", "order", "words", "value"),
    [
        ("int16", "ABCD", [0xFFFE], -2),
        ("int16", "BADC", [0xFEFF], -2),
        ("uint16", "ABCD", [0xFFFE], 65_534),
        ("uint32", "ABCD", [0x0102, 0x0304], 0x01020304),
        ("uint32", "CDAB", [0x0304, 0x0102], 0x01020304),
        ("uint32", "BADC", [0x0201, 0x0403], 0x01020304),
        ("uint32", "DCBA", [0x0403, 0x0201], 0x01020304),
        ("int32", "ABCD", [0xFFFF, 0xFFFF], -1),
        ("int64", "CDAB", [4, 3, 2, 1], 0x0001_0002_0003_0004),
        ("uint64", "ABCD", [0xFFFF] * 4, 2**64 - 1),
        ("float32", "ABCD", [0x41AC, 0x0000], 21.5),
        ("float64", "ABCD", [0x4035, 0x8000, 0, 0], 21.5),
        ("float32", "ABCD", [0x7FC0, 0], None),
        ("float32", "ABCD", [0x7F80, 0], None),
    ],
)
def test_registers_are_read_in_their_type_and_order(
    type_: str, order: str, words: list[int], value: float | None
) -> None:
    assert register(type=type_, order=order).value(words) == value


def test_a_value_is_scaled_and_then_moved() -> None:
    assert register(type="int16", scale=0.5, offset=-40).value([90]) == 5.0


def test_integers_stay_integers_where_nothing_is_scaled() -> None:
    types = {
        each.name: each.type.value
        for each in ModbusIn(
            params(
                {"address": 0, "type": "uint32"},
                {"address": 2, "scale": 0.1},
                {"address": 4, "type": "float32"},
                {"address": 0, "kind": "coil"},
            )
        )
        .output_schema({})
        .fields
    }
    assert types == {"v0": "integer", "v1": "number", "v2": "number", "v3": "boolean"}


def test_neighbours_are_read_by_one_request_within_the_bounds_of_the_protocol() -> None:
    given = params(*[{"address": at} for at in range(300)], {"address": 400}, {"address": 9, "unit_id": 2})
    assert [(each.unit_id, each.first, each.count) for each in requests_of(given)] == [
        (1, 0, 125),
        (1, 125, 125),
        (1, 250, 50),
        (1, 400, 1),
        (2, 9, 1),
    ]


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "address": st.integers(1, 300),
                "kind": st.sampled_from(["holding", "coil"]),
                "unit_id": st.integers(1, 2),
            }
        ),
        min_size=1,
        max_size=200,
    )
)
def test_each_register_lies_in_one_request_and_nothing_else_is_read(registers: list[dict[str, Any]]) -> None:
    all_of = params(*registers, first_address=1)
    requests = requests_of(all_of)
    assert sorted(place for each in requests for place in each.registers) == list(range(len(registers)))
    asked = {
        (each.unit_id, each.kind, at)
        for each in requests
        for at in range(each.first, each.first + each.count)
    }
    assert asked == {(each["unit_id"], each["kind"], each["address"] - 1) for each in registers}
    assert all(each.count <= (125 if each.kind == "holding" else 2000) for each in requests)


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": 0, "kind": "coil", "type": "int16"},
        {"address": 0, "kind": "coil", "scale": 2},
        {"address": 0, "scale": 0},
        {"address": ADDRESS_MAX, "type": "int32"},
        {"address": ADDRESS_MAX + 1},
        {"address": -1},
        {"address": 0, "unit_id": 256},
    ],
)
def test_a_register_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        params(wrong)


def test_the_first_address_may_be_1() -> None:
    assert request_of(params({"address": ADDRESS_MAX + 1}, first_address=1), 0).first == ADDRESS_MAX
    with pytest.raises(ValidationError):
        params({"address": 0}, first_address=1)


def test_what_is_refused_is_read_alone_from_then_on() -> None:
    whole = requests_of(params(*[{"address": at} for at in range(4)]))[0]
    alone = [Request(1, "holding", at, 1, (at,)) for at in range(4)]
    parts = [(each, Refusal(2) if each.first == 1 else [0]) for each in alone]
    assert following_of(whole, parts) == [alone[0], Request(1, "holding", 2, 2, (2, 3)), alone[1]]
    assert following_of(whole, [(each, [0]) for each in alone]) == alone
    assert following_of(whole, [(whole, Refusal(6))]) == [whole]


def test_polls_that_were_due_meanwhile_are_missed_and_told_together() -> None:
    polls = Polls(1.0)
    assert polls.wait_s(100.0) == 0.0
    polls.begun(100.0)
    assert polls.wait_s(100.25) == 0.75
    assert polls.worked(100.3) == 0
    polls.begun(103.5)  # those of 101 and 102 were not made
    polls.failed()
    assert polls.left() == 0  # the next process would tell them
    polls.begun(104.0)
    assert polls.worked(104.0) == 3
    polls.begun(105.0)
    polls.failed()
    polls.begun(106.0)
    assert polls.worked(106.0) == 0
    assert polls.worked(104.0 + TOLD_EVERY_S) == 1
    polls.begun(125.0)
    polls.failed()
    polls.begun(126.0)
    assert polls.worked(126.0) == 18 + 1  # those of 107 to 124, too
    assert polls.left() == 0


def test_what_is_left_to_tell_at_the_end_was_missed_before_the_last_poll_that_worked() -> None:
    polls = Polls(1.0)
    for second, works in enumerate((True, False, True, False, True, False)):
        polls.begun(100.0 + second)
        if works:
            polls.worked(100.0 + second)
        else:
            polls.failed()
    assert polls.left() == 1
    assert polls.left() == 0


def test_polls_between_two_processes_are_counted_from_the_last_row_to_the_first_answer() -> None:
    assert [missed_in(pause_s, 1.0) for pause_s in (0.3, 1.0, 1.1, 2.1, 3.9)] == [0, 0, 0, 1, 2]


@given(
    type_=st.sampled_from(["int16", "uint16", "int32", "uint32", "int64", "uint64"]),
    order=st.sampled_from(["ABCD", "CDAB", "BADC", "DCBA"]),
    value=st.integers(-(2**63), 2**64 - 1),
)
def test_what_is_written_is_read_as_the_same_or_refused(type_: str, order: str, value: int) -> None:
    place = register(type=type_, order=order)
    bits = int(type_.removeprefix("u").removeprefix("int"))
    first = 0 if type_.startswith("u") else -(2 ** (bits - 1))
    if first <= value < first + 2**bits:
        assert place.value(place.words_of(value)) == value
    else:
        with pytest.raises(ValueError, match="does not fit"):
            place.words_of(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_not_written(value: float) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        register().words_of(value)


def test_only_values_that_are_there_are_written() -> None:
    out = ModbusOutParams.model_validate(
        {
            "connection": "d",
            "first_address": 1,
            "registers": [
                {"column": "a", "address": 10, "scale": 0.1, "offset": 1},
                {"column": "b", "address": 1, "kind": "coil", "unit_id": 2},
            ],
        }
    )
    assert writes_of(out, {"a": 3.0, "b": True}) == [(1, "holding", 9, [20]), (2, "coil", 0, [1])]
    assert writes_of(out, {"a": None, "b": False}) == [(2, "coil", 0, [0])]


def test_a_row_that_is_too_old_is_not_written() -> None:
    assert late(40_000, 60.0, 100.0) is None
    assert late(39_000, 60.0, 100.0) == "it is 61 s old, and is not written after 60 s"
    assert late(0, None, 1e9) is None
