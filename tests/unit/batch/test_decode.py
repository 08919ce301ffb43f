"""Records become rows one to one, and what cannot be read is told apart from its neighbours."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import example, given, settings, strategies as st

from pipeline_runtime.batch.decode import Decoded, decode
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema

SCHEMA = StreamSchema(
    fields=(Field(name="a", type=FieldType.INTEGER), Field(name="t", type=FieldType.STRING))
)


def decoded_of(values: list[bytes | None], schema: StreamSchema) -> Decoded:
    return decode(pa.array(values, pa.binary()), schema)


GOOD = st.builds(
    lambda a, t: json.dumps({"a": a, "t": t}).encode(),
    st.integers(-(2**63), 2**63 - 1),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=5),
)
# Pieces of JSON that could be read together with their neighbours.
PIECES = st.lists(
    st.sampled_from([b"{", b"}", b'"a":', b"1", b",", b'"', b"[", b"]", b" ", b"\n", b"\xff", b'{"a":2}']),
    max_size=6,
).map(b"".join)


def is_row(value: bytes) -> bool:
    """The oracle: Python's own parser, each value for itself."""
    try:
        data = json.loads(value.replace(b"\n", b" "), object_pairs_hook=lambda pairs: pairs)
    except ValueError:
        return False
    names = [name for name, _ in data] if value.strip().startswith(b"{") else None
    return names is not None and all(names.count(name) == 1 for name in names)


@given(st.lists(st.one_of(GOOD, PIECES), max_size=8))
def test_each_record_is_one_row_or_one_reject_whatever_its_neighbours_are(values: list[bytes]) -> None:
    decoded = decoded_of(values, SCHEMA)
    kept = decoded.kept if decoded.kept is not None else list(range(len(values)))
    rejected = [reject.index for reject in decoded.rejects]
    assert sorted([*kept, *rejected]) == list(range(len(values)))
    assert decoded.columns.num_rows == len(kept)
    for row, index in zip(decoded.columns.to_pylist(), kept, strict=True):
        assert is_row(values[index]), values[index]
        data = json.loads(values[index])
        assert row == {"a": data.get("a"), "t": data.get("t")}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([0, 10, 100_000, 262_100, 262_144, 300_000, 600_000, 3_000_000]), max_size=6))
@example([600_000])
@example([10, 600_000, 10])
def test_a_record_may_be_larger_than_what_one_thread_parses_at_a_time(sizes: list[int]) -> None:
    values = [json.dumps({"a": place, "t": "x" * size}).encode() for place, size in enumerate(sizes)]
    for more in ([], [b"no"]):  # also where each value has to be looked at
        decoded = decoded_of([*values, *more], SCHEMA)
        assert [reject.index for reject in decoded.rejects] == [len(values)] * len(more)
        assert decoded.columns["a"].to_pylist() == list(range(len(values)))
        assert [len(text) for text in decoded.columns["t"].to_pylist()] == sizes


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "tombstone"),
        (b"", "empty"),
        (b" \n", "empty"),
        (b"abc", "not a JSON object"),
        (b"[1]", "not a JSON object"),
        (b"1", "not a JSON object"),
        (b'{"a":1', "not a JSON object"),
        (b'{"a":1} x', "not a JSON object"),
        (b'{"a":1}{"a":2}', "more than one JSON value"),
        (b'{"a":1} {"a":2}', "more than one JSON value"),
        (b'{"a":"x"}', "Column(/a) changed from number to string"),
        (b'{"a":1.5}', "schema"),
        (b'{"a":99999999999999999999}', "schema"),
        (b'{"a":1,"a":2}', "twice"),
        (b'{"t":5}', "schema"),
        (b'{"t":"\xff"}', "UTF-8"),
    ],
)
def test_a_record_that_cannot_be_read_says_why(value: bytes | None, reason: str) -> None:
    good = b'{"a":7,"t":"x"}'
    decoded = decoded_of([good, value, good], SCHEMA)
    assert decoded.kept == [0, 2]
    assert decoded.columns.to_pylist() == [{"a": 7, "t": "x"}] * 2
    [reject] = decoded.rejects
    assert reject.index == 1
    assert reason in reject.reason


NUMBERS = StreamSchema(
    fields=(Field(name="x", type=FieldType.NUMBER), Field(name="y", type=FieldType.NUMBER))
)


@pytest.mark.parametrize("number", [b"NaN", b"-NaN", b"Infinity", b"-Infinity", b"Inf", b"9" * 400])
def test_a_number_that_no_json_can_hold_is_rejected_alone(number: bytes) -> None:
    bad = b'{"x":1,"y":' + number + b"}"
    decoded = decoded_of([b'{"x":1.5}', b"", bad, b'{"y":-2}', bad], NUMBERS)
    assert decoded.kept == [0, 3]
    assert decoded.columns.to_pylist() == [{"x": 1.5, "y": None}, {"x": None, "y": -2.0}]
    assert [reject.index for reject in decoded.rejects] == [1, 2, 4]
    assert 'its field "y" is a number that no row can hold' in decoded.rejects[1].reason


def test_a_row_of_two_such_numbers_is_one_reject() -> None:
    decoded = decoded_of([b'{"x":NaN,"y":Infinity}'], NUMBERS)
    assert (decoded.kept, decoded.columns.num_rows, len(decoded.rejects)) == ([], 0, 1)


def test_the_words_are_read_where_they_are_text_or_not_of_the_schema() -> None:
    values = [b'{"a":1,"t":"NaN"}', b'{"a":2,"t":"Infinity","z":NaN}']
    decoded = decoded_of(values, SCHEMA)
    assert decoded.kept is None
    assert decoded.columns.to_pylist() == [{"a": 1, "t": "NaN"}, {"a": 2, "t": "Infinity"}]


def test_pieces_of_json_do_not_make_up_for_each_other() -> None:
    decoded = decoded_of([b'{"z":', b'{"q":1}}', b'{"a":1}{"a":2}'], SCHEMA)
    assert decoded.columns.num_rows == 0
    assert [reject.index for reject in decoded.rejects] == [0, 1, 2]


def test_unknown_fields_are_dropped_and_missing_ones_are_null() -> None:
    assert decoded_of([b'{"x":[[1]],"a":1}'], SCHEMA).columns.to_pylist() == [{"a": 1, "t": None}]
