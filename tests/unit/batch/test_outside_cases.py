"""Tests records as other programs write them, one case in each line.

Each record becomes the right row, or a dead letter with the reason. Arrow and Python both read each case,
beside good and bad records.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.batch.outside import (
    DEPTH_MAX,
    RAW_CHARACTERS_MAX,
    ROWS_TOLD_MAX,
    VALUES_MAX,
    Read,
    not_far_ahead,
    read_outside,
)
from pipeline_runtime.operators.kafka_in import KafkaIn, KafkaInParams

NOW_MS = 1_790_000_000_000
ROW = {"n": None, "v": None, "k": None, "b": None, "t": None}
COLUMNS: list[dict[str, Any]] = [
    {"name": "n", "type": "integer"},
    {"name": "v", "type": "number"},
    {"name": "k", "type": "string"},
    {"name": "b", "type": "boolean"},
    {"name": "t", "type": "timestamp"},
]
BY_PATH = {
    "name": "deep",
    "type": "string",
    "from": "nowhere.deep",
}  # no record has it, and Python has to read
GOOD, BAD = b'{"n":7,"k":"good"}', b'{"n":"bad","v":"bad","k":1,"b":1,"t":1}'


def read(values: list[bytes | None], columns: list[dict[str, Any]], **params: Any) -> Read:
    given = KafkaInParams.model_validate({"topic": "t", "columns": columns, **params})
    schema = KafkaIn(given).output_schema({})
    found = read_outside(pa.array(values, pa.binary()), np.full(len(values), NOW_MS), schema, given.reading())
    return not_far_ahead(found, given.reading(), NOW_MS)


def read_in_all_ways(value: bytes | None, columns: list[dict[str, Any]]) -> list[tuple[Any, str]]:
    """The row, or None, and the reason, in each of the ways."""
    found = []
    for more in ([], [BY_PATH]):
        for around in ([], [GOOD], [BAD]):
            result = read([*around, value, *around], [*columns, *more])
            place = len(around)
            rows = dict(zip(result.places.tolist(), result.columns.to_pylist(), strict=True))
            row = rows.get(place)
            if row is not None:
                row.pop("deep", None)
            found.append((row, next((r.reason for r in result.rejects if r.index == place), "")))
    return found


ROWS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "a whole number with a point": (b'{"n":1.0}', {"n": 1}),
    "a whole number with an exponent": (b'{"n":1e3}', {"n": 1000}),
    "minus zero": (b'{"n":-0,"v":-0}', {"n": 0, "v": 0.0}),
    "the largest integer": (b'{"n":9223372036854775807}', {"n": 2**63 - 1}),
    "the smallest integer": (b'{"n":-9223372036854775808}', {"n": -(2**63)}),
    "a large whole number for a number": (b'{"v":18446744073709551616}', {"v": float(2**64)}),
    "5,000 digits in a field that nobody reads": (b'{"n":1,"x":' + b"9" * 5000 + b"}", {"n": 1}),
    "a field that nobody reads twice": (b'{"n":1,"x":2,"x":3}', {"n": 1}),
    "the same in an object that nobody reads": (b'{"n":1,"x":{"y":2,"y":3}}', {"n": 1}),
    "a null": (b'{"n":null,"k":null,"b":null,"t":null}', {}),
    "NaN": (b'{"v":NaN,"n":NaN,"k":"a"}', {"k": "a"}),
    "Infinity in a field that nobody reads": (b'{"n":1,"x":Infinity}', {"n": 1}),
    "-NaN": (b'{"v":-NaN,"n":-NaN,"k":"-NaN Inf"}', {"k": "-NaN Inf"}),
    "-NaN in a field that nobody reads": (b'{"n":1,"x":-NaN,"y":[Inf,-Inf]}', {"n": 1}),
    "more decimals than a number keeps": (b'{"v":1.00000000000000001}', {"v": 1.0}),
    "a whole number with zeros behind it and an exponent": (b'{"n":1500.000000000000000e-2}', {"n": 15}),
    "no field at all": (b"{}", {}),
    "an empty name": (b'{"":1,"n":2}', {"n": 2}),
    "an escaped name": (b'{"\\u006e":2}', {"n": 2}),
    "a pair of surrogates": (b'{"k":"\\ud83d\\ude00"}', {"k": "\U0001f600"}),
    "half a pair in a field that nobody reads": (b'{"k":"a","x":"\\ud800"}', {"k": "a"}),
    "a zero character": (b'{"k":"a\\u0000b"}', {"k": "a\0b"}),
    "an escaped line break": (b'{"k":"a\\nb"}', {"k": "a\nb"}),
    "a record of several lines": (b'{\r\n  "n": 1,\r\n  "k": "a"\r\n}\r\n', {"n": 1, "k": "a"}),
    "a line break before it": (b'\n{"n":1}', {"n": 1}),
    "499 arrays in each other": (b'{"n":1,"x":' + b"[" * 499 + b"]" * 499 + b"}", {"n": 1}),
    "brackets in texts": (b'{"n":1,"k":"\\\\","x":"' + b'[\\"{' * 999 + b'"}', {"n": 1, "k": "\\"}),
    "very many arrays beside each other": (b'{"n":1,"x":[' + b"[]," * 999 + b"{}]}", {"n": 1}),
    "10,000 fields": (json.dumps({"n": 1} | {f"x{i}": i for i in range(10_000)}).encode(), {"n": 1}),
    "a text of 3 MB": (b'{"k":"' + b"a" * 3_000_000 + b'"}', {"k": "a" * 3_000_000}),
}


@pytest.mark.parametrize("case", list(ROWS))
def test_a_record_is_a_row(case: str) -> None:
    value, expected = ROWS[case]
    for row, reason in read_in_all_ways(value, COLUMNS):
        assert (row, reason) == (ROW | expected, "")


TIMES = {
    "2026-03-01T06:00:00Z": "06:00:00",
    "2026-03-01T06:00:00z": "06:00:00",
    "2026-03-01T06:00:00": "06:00:00",
    "2026-03-01 06:00:00 UTC": "06:00:00",
    "2026-03-01T06:00:00 Z": "06:00:00",
    " 2026-03-01T06:00:00Z ": "06:00:00",
    "2026-03-01T08:00:00+02:00": "06:00:00",
    "2026-03-01T08:00:00+02": "06:00:00",
    "2026-03-01T00:30:00-0530": "06:00:00",
    "2026-03-01T06:00Z": "06:00:00",
    "2026-03-01T06:00:00.123456789Z": "06:00:00.123456",
    "2026-03-01T06:00:00,5Z": "06:00:00.500000",
    "2026-03-01": "00:00:00",
    "20260301T060000Z": "06:00:00",
    "2026-02-28T24:00:00Z": "00:00:00",
    "2026-03-01T01:00:00.5 +0100": "00:00:00.500000",
    "2026-03-01T05:59:60Z": "06:00:00",
    "2026-02-28T23:59:60.25Z": "00:00:00.250000",
}


@pytest.mark.parametrize("text", list(TIMES))
def test_a_time_may_be_written_in_these_ways(text: str) -> None:
    for row, reason in read_in_all_ways(json.dumps({"t": text}).encode(), COLUMNS):
        assert reason == ""
        assert f"2026-03-01 {TIMES[text]}+00:00" == str(row["t"])


@pytest.mark.parametrize(
    "text",
    [
        "1764100512345",  # milliseconds since 1970: no day in 1764
        "2026030112345",
        "2026-03-01+02:00",  # a day with a zone: not two o'clock
        "2026-03-01-06:00",
        "2026-03-01Z",
        "2026-03-01x06:00",
        "2026-03-01T06.5",  # half an hour for ISO 8601, half a second for Python
        "2026-03-01T24:00:01Z",
        "2026-03-01T06:00:61Z",
        "2026-03-01T06:30:60Z",
        "2026-03-01T06:00:00+24:00",
        "2026-03-01T06:00:00 CET",
    ],
)
def test_what_can_be_read_as_another_time_is_none(text: str) -> None:
    for row, reason in read_in_all_ways(json.dumps({"t": text}).encode(), COLUMNS):
        assert row is None
        assert f"no time: {text}" in reason


REFUSED: dict[str, tuple[bytes | None, str]] = {
    "2 to the power of 63": (b'{"n":9223372036854775808}', "a number that no row can hold"),
    "a large integer with a point": (b'{"n":9007199254740993.0}', "a number that no row can hold"),
    "decimals": (b'{"n":1.5}', "a number with decimals"),
    "decimals that round to a whole number": (b'{"n":1.00000000000000001}', "a number with decimals"),
    "three decimals of a large number": (b'{"n":4503599627370496.125}', "a number with decimals"),
    "decimals that round to zero": (b'{"n":1e-400}', "a number with decimals"),
    "Infinity": (b'{"v":Infinity}', "a number that no row can hold"),
    "400 digits": (b'{"v":' + b"9" * 400 + b"}", "a number that no row can hold"),
    "5,000 digits": (b'{"n":' + b"9" * 5000 + b"}", "a number that no row can hold"),
    "more digits than a float has": (b'{"n":' + b"9" * 400 + b"}", "a number that no row can hold"),
    "1e400": (b'{"v":1e400}', "a number that no row can hold"),
    "a number as text": (b'{"n":"7"}', 'is the text "7", but a whole number is needed. Tick that it may'),
    "a word for a number": (b'{"v":"warm"}', 'is the text "warm", but a number is needed'),
    "true for a number": (b'{"n":true}', "is true or false, but a whole number is needed"),
    "1 for true": (b'{"b":1}', "is a number, but true or false is needed"),
    "a number for text": (b'{"k":1}', "is a number, but text is needed"),
    "an object for text": (b'{"k":{}}', "is an object, but text is needed"),
    "a number for a time": (b'{"t":1772344800}', "is a number, but a time is needed"),
    "a day that is none": (b'{"t":"2026-02-30T00:00:00Z"}', "no time"),
    "a time before the year 1": (b'{"t":"0001-01-01T00:00:00+01:00"}', "no time"),
    "a time after the year 9999": (b'{"t":"9999-12-31T23:59:59-01:00"}', "no time"),
    "the year 0": (b'{"t":"0000-01-01T00:00:00Z"}', "no time"),
    "a field twice": (b'{"n":1,"n":2}', 'the field "n" twice'),
    "half a pair of surrogates": (b'{"k":"\\ud800"}', "half of a character"),
    "the other half": (b'{"k":"\\udc00"}', "half of a character"),
    "a line break within a text": (b'{"k":"a\nb"}', "not JSON: Invalid control character at character 7"),
    "a tab within a text": (b'{"k":"a\tb"}', "not JSON: Invalid control character at character 7"),
    "nan": (b'{"v":nan}', "not JSON"),
    "a leading zero": (b'{"n":007}', "not JSON"),
    "a hexadecimal number": (b'{"n":0x1F}', "not JSON"),
    "a comma at the end": (b'{"n":1,}', "not JSON"),
    "single quotes": (b"{'n':1}", "not JSON"),
    "Python's None": (b'{"n":None}', "not JSON"),
    "a comment": (b'{"n":1/**/}', "not JSON"),
    "two objects": (b'{"n":1}{"n":2}', "more than one JSON value"),
    "two lines": (b'{"n":1}\n{"n":2}', "more than one JSON value"),
    "Latin-1": ('{"k":"Fräse"}'.encode("latin-1"), "not UTF-8 text"),
    "surrogates as UTF-8": (b'{"k":"\xed\xa0\xbd\xed\xb8\x80"}', "not UTF-8 text"),
    "a tombstone": (None, "tombstone"),
    "nothing": (b"", "empty"),
    "spaces": (b" \r\n", "empty"),
    "a byte order mark": ('{"n":1}'.encode("utf-8-sig"), "byte order mark (UTF-8)"),
    "a byte order mark and an array": ('[{"n":1}]'.encode("utf-8-sig"), "byte order mark (UTF-8)"),
    "UTF-16 with a mark": ('{"n":1}'.encode("utf-16"), "byte order mark (UTF-16)"),
    "UTF-32 with a mark": ('{"n":1}'.encode("utf-32"), "byte order mark (UTF-32)"),
    "UTF-16, little end first": ('{"n":1}'.encode("utf-16-le"), "JSON in UTF-16"),
    "UTF-16, big end first": ('{"n":1}'.encode("utf-16-be"), "JSON in UTF-16"),
    "UTF-32, little end first": ('{"n":1}'.encode("utf-32-le"), "JSON in UTF-32"),
    "UTF-32, big end first": ('{"n":1}'.encode("utf-32-be"), "JSON in UTF-32"),
    "a registry's JSON": (b'\0\0\0\0\x01{"n":1}', "registry's prefix (schema 1)"),
    "a registry's Avro": (b"\0\0\0\x7b\x01\x02\x06abc", "registry's prefix (schema 31489)"),
    "a registry's empty message": (b"\0\0\0\0\x05", "registry's prefix (schema 5)"),
    "a Glue registry's record": (b"\x03\x00" + bytes(range(16)) + b"\x02", "registry's prefix (AWS Glue)"),
    "Avro without a prefix": (b"\x02\x06abc", "not a JSON object: it is no text in UTF-8"),
    "Protobuf": (b"\x0a\x05hello\x10\x01", "not a JSON object: it is no text in UTF-8"),
    "MessagePack": (b"\x81\xa1n\x01", "not a JSON object: it is no text in UTF-8"),
    "an Avro file": (b"Obj\x01\x04\x14avro.codec", "an Avro file"),
    "a gzip file": (gzip.compress(b'{"n":1}'), "packed by its writer (gzip)"),
    "XML": (b"<n>1</n>", "XML or HTML"),
    "a line of CSV": (b"a,b,1", "it begins with a,b,1"),
    "a text in Chinese that is cut": (("温度" * 40).encode(), "it begins with 温度"),
    "a number": (b"42", "it begins with 42"),
    "null": (b"null", "it begins with null"),
    "JSON in JSON": (json.dumps('{"n":1}').encode(), "writes its JSON twice"),
    "an array": (b'[{"n":1}]', "it is an array"),
    "half a record": (b'{"n":1,"k":"a', "it may be cut off"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_a_record_is_a_dead_letter_that_says_why(case: str) -> None:
    value, expected = REFUSED[case]
    for row, reason in read_in_all_ways(value, COLUMNS):
        assert row is None
        assert expected in reason


@pytest.mark.parametrize("written", [b"-0", b"-0.0", b"-0e0"])
def test_a_number_keeps_the_sign_of_a_zero_however_it_is_read(written: bytes) -> None:
    for row, _ in read_in_all_ways(b'{"v":' + written + b', "n":-0}', COLUMNS):
        assert (str(row["v"]), row["n"]) == ("-0.0", 0)
    quoted = [{**COLUMNS[1], "quoted": True}]
    assert str(read([b'{"v":"' + written + b'"}'], quoted).columns["v"][0].as_py()) == "-0.0"


PATHS: dict[str, tuple[dict[str, Any], str | None]] = {
    "a.b": ({"a.b": 9, "a": {"b": 1}}, "a.b"),
    "a.b in quotes": ({"a.b": 1, "a": {"b": 9}}, '["a.b"]'),
    "brackets": ({"a[0]": 9, "a": [1]}, "a[0]"),
    "brackets in quotes": ({"a[0]": 1, "a": [9]}, '["a[0]"]'),
    "a quote": ({'a"b': 1}, '["a\\"b"]'),
    "a backslash": ({"a\\b": 1}, "a\\b"),
    "a backslash in quotes": ({"a\\b": 1}, '["a\\\\b"]'),
    "no name": ({"": 1}, '[""]'),
    "no name further inside": ({"a": {"": 1}}, 'a[""]'),
    "the whole record": ({"$": {"a": 9}, "a": 1}, "$.a"),
    "a field $": ({"$": {"a": 1}, "a": 9}, '["$"].a'),
    "a field $ alone": ({"$": 1}, '["$"]'),
    "the column's name": ({"x": 1}, None),
    "another case": ({"X": 9, "x": 1}, None),
}


@pytest.mark.parametrize("case", list(PATHS))
def test_a_path_finds_its_field(case: str) -> None:
    record, path = PATHS[case]
    column = {"name": "x", "type": "integer"} | ({} if path is None else {"from": path})
    for row, reason in read_in_all_ways(json.dumps(record).encode(), [column]):
        assert (row, reason) == ({"x": 1}, "")


def test_an_array_of_rows_may_lie_in_a_field_dollar() -> None:
    found = read([b'{"$":[{"n":1}]}'], COLUMNS[:1], rows='["$"]')
    assert found.columns.to_pylist() == [{"n": 1}]


QUOTED: dict[str, tuple[int | None, float | None]] = {
    "7": (7, 7.0),
    " +7 ": (7, 7.0),
    "1e3": (1000, 1000.0),
    "1.0": (1, 1.0),
    "": (None, None),
    "NaN": (None, None),
    "null": (None, None),
}


@pytest.mark.parametrize("text", list(QUOTED))
def test_numbers_may_be_written_as_text_in_these_ways(text: str) -> None:
    columns = [{**each, "quoted": True} for each in COLUMNS[:2]]
    found = read([json.dumps({"n": text, "v": text}).encode()], columns)
    integer, number = QUOTED[text]
    assert found.columns.to_pylist() == [{"n": integer, "v": number}]


@pytest.mark.parametrize(
    "text",
    ["1,5", "1.000,5", "1 000", "1_000", "0x10", "\uff11\uff12", "Infinity", "1e400", "--", "7 kg", "."],
)
def test_a_text_that_is_no_number_is_told_as_it_is_written(text: str) -> None:
    for column in COLUMNS[:2]:
        found = read([json.dumps({column["name"]: text}).encode()], [{**column, "quoted": True}])
        [reject] = found.rejects
        assert f'the text "{text}"' in reject.reason or "no row can hold" in reject.reason


COUNTED_S = 1_772_344_800


@pytest.mark.parametrize("is_text", [False, True])
@pytest.mark.parametrize(
    ("format", "number", "expected_us"),
    [
        ("s", "1772344800", COUNTED_S * 10**6),
        ("s", "1772344800.25", COUNTED_S * 10**6 + 250_000),
        ("ms", "1772344800123", COUNTED_S * 10**6 + 123_000),
        ("us", "1772344800123456", COUNTED_S * 10**6 + 123_456),
        ("ns", "1772344800123456789", COUNTED_S * 10**6 + 123_456),
        ("ns", "0", 0),
    ],
)
def test_an_event_time_is_counted_exactly(format: str, number: str, expected_us: int, is_text: bool) -> None:
    value = f'{{"at":"{number}"}}' if is_text else f'{{"at":{number}}}'
    found = read([value.encode()], [COLUMNS[2]], time={"from": "at", "format": format})
    assert found.times_us.tolist() == [expected_us]


@pytest.mark.parametrize("format", ["iso", "s", "ms", "us", "ns"])
@pytest.mark.parametrize(
    "written",
    [
        "9" * 400,
        "9" * 5000,
        "1e308",
        "1e400",
        "-1",
        "NaN",
        "Infinity",
        "-Infinity",
        "[]",
        "{}",
        "null",
        "true",
        '"1772344800,25"',
        '"1_772_344_800"',
        '"0001-01-01T00:00:00+01:00"',
        '"9999-12-31T23:59:59-01:00"',
        '""',
    ],
)
def test_no_event_time_stops_an_element(written: str, format: str) -> None:
    value = f'{{"k":"a","at":{written}}}'.encode()
    found = read([value], [COLUMNS[2]], time={"from": "at", "format": format})
    assert found.columns.num_rows == 0
    [reject] = found.rejects
    assert "time" in reject.reason


def test_a_record_without_a_timestamp_takes_the_time_of_its_arrival() -> None:
    given = KafkaInParams.model_validate({"topic": "t", "columns": [COLUMNS[0]]})
    schema, times_ms = KafkaIn(given).output_schema({}), np.array([-1, NOW_MS - 5, -86_400_000])
    found = read_outside(pa.array([b'{"n":1}'] * 3, pa.binary()), times_ms, schema, given.reading())
    times_us = not_far_ahead(found, given.reading(), NOW_MS).times_us
    assert times_us.tolist() == [NOW_MS * 1000, (NOW_MS - 5) * 1000, NOW_MS * 1000]


def test_each_of_a_million_refused_rows_is_counted_and_the_first_are_told() -> None:
    """A dead letter for each, with all of the record, would take a node's memory."""
    count = 300_000
    record = b"[" + b",".join([b"1"] * count) + b"]"
    found = read([GOOD, record, b'[{"n":1},{"n":"x"}]'], [COLUMNS[0]], rows="$")
    assert found.columns.to_pylist() == [{"n": 1}]
    [first, *told, rest, last] = [reject for reject in found.rejects if reject.index]
    assert first.reason.startswith("row 1: ")
    assert len(told) == ROWS_TOLD_MAX - 1
    assert f"{count - ROWS_TOLD_MAX:,} more rows" in rest.reason
    assert (last.index, last.raw) == (2, '{"n": "x"}')


@pytest.mark.parametrize("entry", [1, "text", None, True, [1], []])
def test_an_entry_that_can_have_no_field_is_no_row_without_values(entry: Any) -> None:
    found = read([json.dumps([entry, {}]).encode()], [COLUMNS[0]], rows="$")
    assert found.columns.to_pylist() == [{"n": None}]
    [reject] = found.rejects
    assert reject.reason.startswith("row 1: it is ")


def test_entries_may_be_arrays_themselves() -> None:
    columns = [
        {"name": "n", "type": "integer", "from": "[0]"},
        {"name": "v", "type": "number", "from": "[1]"},
    ]
    found = read([b"[[1, 2.5], [3], []]"], columns, rows="$")
    values = [(row["n"], row["v"]) for row in found.columns.to_pylist()]
    assert values == [(1, 2.5), (3, None), (None, None)]


def test_a_refused_row_shows_itself_and_not_all_of_its_record() -> None:
    found = read([json.dumps([{"n": "x" * 5000}]).encode()], [COLUMNS[0]], rows="$")
    [reject] = found.rejects
    assert reject.raw is not None
    assert reject.raw.startswith('{"n": "xxx')
    assert len(reject.raw) == RAW_CHARACTERS_MAX


def test_rows_of_one_record_that_are_all_far_ahead_are_counted_too() -> None:
    record = json.dumps([{"k": "a", "at": NOW_MS + 10 * 86_400_000}] * 1000).encode()
    time = {"from": "at", "format": "ms"}
    found = read([record], [COLUMNS[2]], rows="$", time=time)
    assert len(found.rejects) == ROWS_TOLD_MAX + 1
    assert found.rejects[0].raw == '{"k": "a"}'
    assert "900 more rows" in found.rejects[-1].reason


def test_a_row_far_ahead_is_numbered_as_it_lies_in_its_array() -> None:
    rows = [{"n": "x"}, {"n": 1, "at": NOW_MS}, {"n": 2, "at": NOW_MS + 2 * 86_400_000}]
    found = read([json.dumps(rows).encode()], COLUMNS[:1], rows="$", time={"from": "at", "format": "ms"})
    assert [reject.reason[:7] for reject in found.rejects] == ["row 1: ", "row 3: "]


@pytest.mark.parametrize("column", COLUMNS)
def test_half_a_character_is_told_in_whole_ones(column: dict[str, Any]) -> None:
    """A reason with half of one could not be written, and the element would stop."""
    half = json.dumps({column["name"]: "\ud800", "at": "2026-03-01"}).encode()
    for value, time in ((half, None), (half.replace(b"2026-03-01", b"\\udc00"), {"from": "at"})):
        for quoted in ({}, {"quoted": True}):
            found = read([value], [{**column, **quoted}], **({"time": time} if time else {}))
            assert found.rejects[0].reason.encode()


def test_a_text_beside_an_array_does_not_make_gigabytes_of_a_small_record() -> None:
    columns = [{"name": "k", "type": "string", "from": "$.k"}]
    large = json.dumps({"k": "x" * 100_000, "rows": [{}] * 20_000}).encode()
    usual = json.dumps({"k": "machine 7", "rows": [{}] * 20_000}).encode()
    found = read([large, usual], columns, rows="rows")
    assert found.places.tolist() == [1] * 20_000
    assert "would take 2,000,000,000 characters" in found.rejects[0].reason


def test_a_record_of_very_many_values_is_not_made_objects_of() -> None:
    found = read([b'{"k":"a","x":[' + b"0," * VALUES_MAX + b"0]}"], [COLUMNS[2], BY_PATH])
    assert f"more than {VALUES_MAX:,} values" in found.rejects[0].reason
    found = read([b'{"k":"a","x":[' + b"0," * VALUES_MAX + b"0]}"], [COLUMNS[2]])
    assert found.columns.to_pylist() == [{"k": "a"}]


def test_what_is_nested_more_deeply_than_python_reads_is_read_beside_a_bad_record_too() -> None:
    deep = b'{"n":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for around in ([], [GOOD], [BAD]):
        found = read([*around, deep], COLUMNS[:1])
        assert found.columns.to_pylist()[-1] == {"n": 1}


def test_how_deeply_a_record_may_be_nested_does_not_depend_on_the_stack() -> None:
    """Another thread reads ahead, and a follower reads again."""

    def read_under(frames: int, arrays: int) -> Read:
        if frames:
            return read_under(frames - 1, arrays)
        return read([b'{"n":1,"x":' + b"[" * arrays + b"]" * arrays + b"}"], [COLUMNS[0], BY_PATH])

    for frames in (0, 200):
        assert read_under(frames, DEPTH_MAX - 1).columns.num_rows == 1
        [reject] = read_under(frames, DEPTH_MAX).rejects
        assert reject.reason == f"the record is nested more than {DEPTH_MAX} deep"


def test_a_field_that_comes_very_often_is_found_at_once() -> None:
    """Counting each name by looking at all others took hours."""
    record = b'{"n":1,' + b",".join(b'"x%d":0' % n for n in range(200_000)) + b',"x199999":1}'
    assert read([record], [COLUMNS[0], BY_PATH]).columns.num_rows == 1


_TEXTS = st.sampled_from(
    [
        *[b"1", b"1.0", b"-0", b"NaN", b"1e999", b"9" * 400, b"null", b"true", b"["],
        *[b'"x"', b'"2026-03-01"', b'"2026-03-01+02:00"', b'"\\ud800"', b'"\n"'],
    ]
)
_RECORDS = st.builds(
    lambda name, text: b'{"%s":%s}' % (name, text), st.sampled_from([b"n", b"v", b"k", b"t", b"x"]), _TEXTS
)


@given(st.lists(_RECORDS, min_size=1, max_size=200))
def test_what_a_record_becomes_does_not_depend_on_the_others(records: list[bytes]) -> None:
    """A replica may read a batch again beside other records."""
    together = read(list(records), COLUMNS)
    by_path = read(list(records), [*COLUMNS, BY_PATH])
    apart = [read([record], COLUMNS) for record in records]
    rows = [str(row) for each in apart for row in each.columns.to_pylist()]  # since -0.0 is equal to 0.0
    for found in (together, by_path):
        assert [str(row) for row in found.columns.select(list(ROW)).to_pylist()] == rows
    reasons = [reject.reason for each in apart for reject in each.rejects]
    assert [reject.reason for reject in together.rejects] == reasons
    assert [reject.index for reject in by_path.rejects] == [reject.index for reject in together.rejects]
