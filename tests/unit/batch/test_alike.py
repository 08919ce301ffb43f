"""Objects that are written alike, and few objects, become the same columns as by a parser that takes any, or
none at all."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.batch import alike
from pipeline_runtime.batch.alike import parse_alike
from pipeline_runtime.batch.decode import Reject, _by_halves, arrow_schema, decode
from pipeline_runtime.batch.few import ROWS_MAX, parse_few
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from tests.chosen import examples

SCHEMA = StreamSchema(
    fields=(
        Field(name="t", type=FieldType.STRING),
        Field(name="n", type=FieldType.INTEGER),
        Field(name="x", type=FieldType.NUMBER),
        Field(name="is", type=FieldType.BOOLEAN),
        Field(name="at", type=FieldType.TIMESTAMP),
    )
)
TARGET = arrow_schema(SCHEMA)
USUAL: dict[str, st.SearchStrategy[str]] = {
    "t": st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters='"\\'), max_size=5).map(
        lambda text: f'"{text}"'
    ),
    "n": st.integers(-(2**63), 2**63 - 1).map(str) | st.sampled_from(["0", "-0", "null"]),
    "x": st.floats(-1e6, 1e6).map(lambda x: f"{x:f}") | st.sampled_from(["0", "-0.50", "null", "7"]),
    "is": st.sampled_from(["true", "false", "null"]),
    "at": st.sampled_from(
        ["2026-11-28T12:00:00Z", "2026-11-28T12:00:00.25+02:00", "1969-12-31 01:02:03Z"]
    ).map(lambda text: f'"{text}"'),
    "other number": st.sampled_from(["0.1", "-7", "null"]),
    "other truth": st.sampled_from(["true", "false", "null"]),
}
NO_NUMBERS = "01 -01 1. .5 -.5 +1 0x1F NaN - --1 1e5 1E-2 1.2.3 1.-2 1-2 nul nulls True tru {} [1] 1} 1,1"
ODD_TEXTS = (
    *('"', '""', '"\\n"', '"\\u0041"', '"a\\"b"', '"a\nb"', '"a\tb"', '"a\0b"', '"7"', '"null"', '"}'),
    *('"2026-11-28"', '"2026-11-28T12:00:00"', '"2026-11-28T25:00:00Z"', '1,"n":2', '"a","n":"b"'),
)
ODD = [*NO_NUMBERS.split(), *ODD_TEXTS, "", " 1", "1 ", "9" * 30, "9" * 400, "2", "2.5"]
EXACT = st.sampled_from([b"", b" ", b"\n", b"{", b"x", b"\xff", b"}{"])


def _object(fields: Iterable[tuple[str, str]], comma: str, colon: str) -> bytes:
    return ("{" + comma.join(f'"{name}"{colon}{cell}' for name, cell in fields) + "}").encode()


@st.composite
def records(draw: st.DrawFn) -> list[bytes]:
    """Objects with the same fields, of which some values may be odd, and some bytes before or behind."""
    names = draw(st.lists(st.sampled_from([*USUAL]), min_size=1, max_size=7, unique=draw(st.booleans())))
    colon, comma = draw(st.sampled_from([":", ": ", " :"])), draw(st.sampled_from([",", ", ", " , "]))
    odd_at = draw(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 6)), max_size=2))
    found = []
    for row in range(draw(st.integers(1, 6))):
        cells = [
            draw(st.sampled_from(ODD) if (row, place) in odd_at else USUAL[name])
            for place, name in enumerate(names)
        ]
        found.append(_object(list(zip(names, cells, strict=True)), comma, colon))
    if draw(st.integers(0, 9)) == 0:
        place = draw(st.integers(0, len(found) - 1))
        found[place] = draw(EXACT) + found[place] + draw(EXACT)
    return found


@pytest.fixture(scope="module", autouse=True)
def of_few_rows() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alike, "ROWS_MIN", 1)
        yield


def _agrees(values: list[bytes]) -> None:
    """What was made of the values is what Arrow's parser makes of them, or nothing was."""
    for parse in (parse_alike, parse_few):
        found = parse(pa.array(values, pa.binary()), TARGET)
        if found is not None:
            rejects: list[Reject] = []
            table, kept = _by_halves(values, TARGET, rejects, None)
            assert (rejects, kept) == ([], list(range(len(values)))), values
            assert repr(found.to_pylist()) == repr(table.to_pylist()), "also the sign of a zero"
            assert found.schema == TARGET
            for column in found.columns:
                column.validate(full=True)


@settings(max_examples=examples(100), deadline=None)
@given(records())
def test_objects_become_the_columns_that_arrow_makes_of_them_or_none(values: list[bytes]) -> None:
    _agrees(values)


@pytest.mark.parametrize("name", USUAL)
@pytest.mark.parametrize("odd", ODD)
def test_an_odd_value_is_what_arrow_makes_of_it_or_left_to_arrow(name: str, odd: str) -> None:
    usual = "1" if name in ("n", "x", "other number") else "true" if name in ("is", "other truth") else '"a"'
    usual = '"2026-11-28T12:00:00Z"' if name == "at" else usual
    for number in range(3):  # also the first one, which says what all have in common
        cells = [usual] * 3
        cells[number] = odd
        _agrees([_object([(name, cell), ("last", "1")], ",", ":") for cell in cells])


@settings(max_examples=30, deadline=None)
@given(st.data(), st.permutations([*USUAL]), st.integers(1, 5), st.sampled_from([(",", ":"), (", ", ": ")]))
def test_usual_objects_are_all_taken(
    data: st.DataObject, names: list[str], count: int, between: tuple[str, str]
) -> None:
    comma, colon = between
    rows = [{name: data.draw(USUAL[name]) for name in names} for _ in range(count)]
    if any(value == "null" for value in rows[0].values()):
        return  # the first object says which of them are texts
    values = [_object(row.items(), comma, colon) for row in rows]
    found = parse_alike(pa.array(values, pa.binary()), TARGET)
    assert found is not None
    assert found.select(["t", "n", "x", "is"]).to_pylist() == [
        {name: json.loads(row[name]) for name in ("t", "n", "x", "is")} for row in rows
    ]


@settings(max_examples=30, deadline=None)
@given(st.data(), st.integers(1, 6), st.sampled_from([(",", ":"), (", ", ": ")]))
def test_few_usual_objects_are_all_taken_although_they_differ(
    data: st.DataObject, count: int, between: tuple[str, str]
) -> None:
    names = st.lists(st.sampled_from([*USUAL]), max_size=7, unique=True)
    cells = {**USUAL, "n": USUAL["n"].filter(lambda cell: cell != "-0")}
    rows = [{name: data.draw(cells[name]) for name in data.draw(names)} for _ in range(count)]
    values = [_object(row.items(), *between) for row in rows]
    assert parse_few(pa.array(values, pa.binary()), TARGET) is not None
    _agrees(values)


def test_a_part_of_an_array_is_parsed_and_what_lies_around_it_is_not() -> None:
    values = pa.array([b"x", b'{"n":1}', b'{"n":22}', b"\xff"], pa.binary()).slice(1, 2)
    found = parse_alike(values, TARGET.remove(0))
    assert found is not None
    assert found["n"].to_pylist() == [1, 22]
    assert found["x"].null_count == 2


def test_many_objects_are_not_parsed_as_few() -> None:
    assert parse_few(pa.array([b"{}"] * (ROWS_MAX - 1), pa.binary()), TARGET) is not None
    assert parse_few(pa.array([b"{}"] * ROWS_MAX, pa.binary()), TARGET) is None


@pytest.mark.parametrize(
    "values",
    [[], [None], [b""], [b"", b""], [b"{}"], [b"7"], [b'{"n":1}', None], [b'{"n":1}', b'{"n":1,"x":2}']],
)
def test_what_is_not_alike_is_left_to_a_parser(values: list[bytes | None]) -> None:
    assert parse_alike(pa.array(values, pa.binary()), TARGET) is None


def test_a_record_among_many_that_is_not_like_them_is_rejected_alone() -> None:
    values = [f'{{"t":"a","n":{n}}}'.encode() for n in range(500)]
    values[250] = b'{"t":"a","n":0x1}'
    decoded = decode(pa.array(values, pa.binary()), SCHEMA)
    assert [reject.index for reject in decoded.rejects] == [250]
    assert decoded.columns["n"].to_pylist() == [n for n in range(500) if n != 250]
