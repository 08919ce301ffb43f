"""JSON documents that hold a table in one array are read as JSON lines are, item by item."""

from __future__ import annotations

import gzip
import json
from datetime import date, time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.imports.kinds import TIMES, imported
from webapp.imports import json_document
from webapp.imports.answer import changed
from webapp.imports.convert import convert
from webapp.imports.detect import look
from webapp.imports.faults import ImportFault

ROWS = [{"time": time, "a": {"b": n + 0.5}, "s": f"x,{n}\n"} for n, time in enumerate(TIMES)]
PLAIN = [{"time": time, "v": n + 0.5} for n, time in enumerate(TIMES)]


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("at", ["", "data", "result.rows"])
@pytest.mark.parametrize("block", [7, 1 << 20])
def test_an_array_of_objects_anywhere_in_a_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indent: int | None, at: str, block: int
) -> None:
    monkeypatch.setattr(json_document, "_READ_AT_ONCE", block)
    document: object = ROWS
    for key in reversed(at.split(".") if at else []):
        document = {"status": "ok", "meta": {"count": [1, 2]}, key: document, "next": None}
    text = json.dumps(document, indent=indent)
    for data in (text.encode(), gzip.compress(text.encode())):
        found = imported(tmp_path / "file", data)
        assert found.reading.records == at
        assert found.column("a.b") == [n + 0.5 for n in range(30)]
        assert found.column("s")[1] == "x,1\n"
        assert found.report.dead == 0


@pytest.mark.parametrize(
    "document",
    [
        [["time", "v"], *([row["time"], row["v"]] for row in PLAIN)],
        {"columns": ["time", "v"], "data": [[row["time"], row["v"]] for row in PLAIN]},
        {"time": TIMES, "v": [row["v"] for row in PLAIN]},
        {"id": 7, "data": {"time": TIMES, "v": [row["v"] for row in PLAIN]}},
    ],
)
def test_rows_and_columns_as_arrays(tmp_path: Path, document: object) -> None:
    found = imported(tmp_path / "file", json.dumps(document))
    assert found.names == ["time", "v"]
    assert found.column("v") == [n + 0.5 for n in range(30)]
    assert "one JSON document" in found.notes


def test_a_document_that_is_cut_off_keeps_its_rows_and_says_so(tmp_path: Path) -> None:
    text = json.dumps(PLAIN)
    for end, rows in ((-1, 30), (-10, 29)):
        found = imported(tmp_path / "file", text[:end])
        assert [value for value in found.column("v") if value is not None] == [n + 0.5 for n in range(rows)]
        assert found.report.dead == 1


def test_a_large_document_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"time": 1_714_521_600 + n, "v": n, "n": float("nan")} for n in range(20_000)]
    found = imported(tmp_path / "file", json.dumps(rows))
    assert found.column("v") == list(range(20_000))
    assert set(found.column("n")) == {None}


def test_what_no_cell_holds_is_named(tmp_path: Path) -> None:
    deep: object = 1
    for _ in range(9):
        deep = {"d": deep}
    record = {"v": 1, "pairs": [[1, 2], [3, 4]], "many": [*range(12)], "deep": deep}
    found = imported(tmp_path / "file", "".join(json.dumps(record | {"v": n}) + "\n" for n in range(5)))
    named = ("lists in pairs", "many behind its item 8", "what is nested deeper in deep.d.d.d.d.d.d")
    assert [each for each in named if each not in found.notes] == []
    plain = imported(tmp_path / "file", "".join(json.dumps(row) + "\n" for row in ROWS))
    assert "Left out" not in plain.notes


@pytest.mark.parametrize("width", [10, 2_000])
def test_keys_that_come_late_are_columns_too(tmp_path: Path, width: int) -> None:
    late = [{"late": n / 4} if n >= 1_500 else {} for n in range(2_000)]
    rows = [{"time": 1_714_521_600 + n, "x": "x" * width} | late[n] for n in range(2_000)]
    (tmp_path / "file").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = look(tmp_path / "file", "file.jsonl").detection
    assert "Further down, lines have other keys as well: late." in found.notes
    convert(tmp_path / "file", found.reading, tmp_path / "out", lambda *_: None, lambda: False)
    values = pq.read_table(tmp_path / "out").column("late")
    assert (values[1_499].as_py(), values[1_999].as_py()) == (None, 1_999 / 4)


@pytest.mark.parametrize("data", ["[" * 5_000 + "]" * 5_000, '[{"a":' + "[" * 3_000, '{"a":' + "[" * 3_000])
def test_a_document_that_is_nested_too_deep_is_refused_with_the_reason(tmp_path: Path, data: str) -> None:
    (tmp_path / "file").write_text(data)
    with pytest.raises(ImportFault, match="nested too deep to be read"):
        look(tmp_path / "file", "file.json")


def test_numbers_keep_their_digits(tmp_path: Path) -> None:
    data = '[{"t": 1714521600, "id": 9007199254740993}, {"t": 1714521601, "id": 89490200001234567890}]'
    assert imported(tmp_path / "file", data).column("id") == ["9007199254740993", "89490200001234567890"]


def test_a_document_of_columns_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_document, "COLUMNS_BYTES_MAX", 100)
    with pytest.raises(ImportFault, match="more than 100 bytes"):
        imported(tmp_path / "file", json.dumps({"time": TIMES, "v": [1] * 30}))


def test_deep_nesting_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(ImportFault):
        imported(tmp_path / "file", "[" * 100_000)


def test_an_item_that_is_broken_ends_the_table_and_is_counted(tmp_path: Path) -> None:
    text = json.dumps(PLAIN).replace('"v": 20.5', '"v": oops')
    found = imported(tmp_path / "file", text)
    assert len(found.rows) == 21
    assert found.report.first_dead is not None
    assert "oops" in found.report.first_dead[1]


def test_times_in_json_are_asked_about_as_in_tables(tmp_path: Path) -> None:
    data = "".join(f'{{"time": "03/04/2024 00:{n:02d}", "v": {n}}}\n' for n in range(30))
    assert imported(tmp_path / "file", data, {"time.order": 1}).times[0] == "2024-03-04T00:00:00+00:00"


def test_json_from_new_to_old_is_turned_round(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", json.dumps(PLAIN[::-1]))
    assert found.column("v") == [n + 0.5 for n in range(30)]


def test_json_in_utf_16(tmp_path: Path) -> None:
    data = "".join(json.dumps({"time": time, "s": "Größe"}, ensure_ascii=False) + "\n" for time in TIMES)
    assert imported(tmp_path / "file", data.encode("utf-16")).column("s")[0] == "Größe"


@pytest.mark.parametrize("form", ["lines", "document", "columns"])
def test_numbers_in_quotes_are_read_as_numbers_and_said(tmp_path: Path, form: str) -> None:
    rows = [
        {"t": f"2024-05-01T00:{n:02d}:00Z", "v": f"{n},5", "n": str(n), "k": f"0{n:02d}", "m": f"1,{n:03d}.5"}
        for n in range(30)
    ]
    data = {
        "lines": "\n".join(map(json.dumps, rows)),
        "document": json.dumps({"data": rows}),
        "columns": json.dumps({key: [row[key] for row in rows] for key in rows[0]}),
    }[form]
    found = imported(tmp_path / "file", data)
    assert found.column("v") == [n + 0.5 for n in range(30)]
    assert found.column("n") == [*range(30)]
    assert found.column("k")[0] == "000"
    assert found.column("m")[1] == 1001.5
    assert "The numbers of v are in quotes, such as '0,5'." in found.notes


def test_numbers_in_quotes_that_can_be_read_in_two_ways_stay_text_and_can_be_read(tmp_path: Path) -> None:
    data = "\n".join(json.dumps({"t": f"2024-05-01T00:{n:02d}:00Z", "v": f"1,{n + 100}"}) for n in range(30))
    found = imported(tmp_path / "file", data)
    assert "v stays text: its numbers are texts, such as '1,100'." in found.notes
    reading = changed(found.reading, {"columns.1.type": "number", "columns.1.decimal": ","})
    report = convert(tmp_path / "file", reading, tmp_path / "out", lambda *_: None, lambda: False)
    assert [each.unreadable for each in report.columns] == [0, 0]


def test_lines_of_json_among_which_some_are_no_objects_are_still_such(tmp_path: Path) -> None:
    data = "null\n" + "".join(f'{{"t": "2024-05-01T00:{n:02d}:00Z", "v": {n}}}\n' for n in range(30))
    found = imported(tmp_path / "file", data)
    assert (found.names, found.report.rows, found.report.first_dead) == (["t", "v"], 31, (1, "null"))


@pytest.mark.parametrize(
    ("line", "said"),
    [('{"n": 1},', "each followed by a comma"), ('{"a":' * 50_000 + "1" + "}" * 50_000, "too deep")],
)
def test_what_is_nearly_json_lines_is_refused_with_the_reason(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "a.jsonl").write_text((line + "\n") * 5)
    with pytest.raises(ImportFault, match=said):
        look(tmp_path / "a.jsonl", "a.jsonl")


def test_times_of_day_and_large_numbers_of_parquet_are_kept_and_lists_are_named(tmp_path: Path) -> None:
    columns = {
        "day": pa.array([date(2024, 5, 1)] * 3, pa.date32()),
        "count": pa.array([(1 << 63) + n for n in range(3)], pa.uint64()),
        "clock": pa.array([time(8, n) for n in range(3)], pa.time64("us")),
        "list": pa.array([[1]] * 3),
    }
    pq.write_table(pa.table(columns), tmp_path / "table")
    found = look(tmp_path / "table", "table")
    types = {column.name: column.type.value for column in found.detection.reading.columns}
    assert types == {"day": "timestamp", "count": "string", "clock": "string"}
    assert "Left out, since no value of theirs is one cell: list." in found.detection.notes


@pytest.mark.parametrize("day", [pa.date32(), pa.date64(), pa.timestamp("us"), pa.timestamp("ns")])
@pytest.mark.parametrize("clock", [pa.time32("s"), pa.time64("ns"), pa.string()])
def test_a_date_and_a_time_of_day_of_parquet_are_one_time(
    tmp_path: Path, day: pa.DataType, clock: pa.DataType
) -> None:
    clocks = [time(8, n) for n in range(30)]
    columns = {
        "date": pa.array([date(2024, 5, 1 + n // 10) for n in range(30)], pa.date32()).cast(day),
        "v": list(range(30)),
        "time": pa.array(map(str, clocks) if clock == pa.string() else clocks, clock),
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    found = imported(tmp_path / "table.pq", sink.getvalue().to_pybytes())
    assert [found.times[n] for n in (0, 9, 10, 29)] == [
        *("2024-05-01T08:00:00+00:00", "2024-05-01T08:09:00+00:00"),
        *("2024-05-02T08:10:00+00:00", "2024-05-03T08:29:00+00:00"),
    ]
    assert found.column("date")[10] == "2024-05-02T00:00:00+00:00"


def test_a_date_of_parquet_stays_alone_beside_what_is_no_time_of_day(tmp_path: Path) -> None:
    columns = {"date": [date(2024, 5, 1 + n) for n in range(30)], "v": [f"{n} of 30" for n in range(30)]}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    assert (
        imported(tmp_path / "table.pq", sink.getvalue().to_pybytes()).times[1] == "2024-05-02T00:00:00+00:00"
    )


@pytest.mark.parametrize("kind", ["matrix", "vector"])
def test_an_answer_of_prometheus_has_a_row_for_each_value(tmp_path: Path, kind: str) -> None:
    series: list[dict[str, Any]] = [
        {"metric": {"__name__": "up", "job": job}, **values}
        for job, values in (
            ("a", {"values": [[1714521600, "1"], [1714521660.5, "NaN"]]}),
            ("b", {"values": [[1714521600, "2.5"]]}),
        )
    ]
    if kind == "vector":
        series = [{"metric": each["metric"], "value": each["values"][0]} for each in series]
    document: dict[str, object] = {"status": "success", "data": {"resultType": kind, "result": series}}
    found = imported(tmp_path / "file", json.dumps(document))
    rows = [(row["job"], row["value"]) for row in found.rows]
    assert rows == ([("a", 1.0), ("a", None), ("b", 2.5)] if kind == "matrix" else [("a", 1.0), ("b", 2.5)])
    assert found.times[0] == "2024-05-01T00:00:00+00:00"
    assert "answer of Prometheus" in found.notes


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (
            '{"data": {"2024-05-01T00:00": {"t": 1}, "2024-05-01T01:00": {"t": 2}}}',
            "keys of an object are times",
        ),
        ("room,site=a t=20.5,on=t 1714521600000000000\n" * 3, "line protocol of InfluxDB"),
        ('room t=20.5,state="it is, on" 1714521600\n' * 3, "line protocol of InfluxDB"),
    ],
)
def test_what_holds_rows_in_no_table_is_refused_with_the_reason(tmp_path: Path, data: str, what: str) -> None:
    (tmp_path / "file").write_text(data)
    with pytest.raises(ImportFault, match=what):
        look(tmp_path / "file", "file")


@pytest.mark.parametrize(("answer", "read"), [(0, [0.5, None, None, 3]), (1, ["0.5", None, "off", "3"])])
def test_texts_among_numbers_of_json_are_asked(tmp_path: Path, answer: int, read: list[object]) -> None:
    values = [0.5, "NaN", "off", *range(3, 30)]
    data = "".join(json.dumps({"time": time, "v": v}) + "\n" for time, v in zip(TIMES, values, strict=True))
    found = imported(tmp_path / "file", data, {"type.v": answer})
    assert found.column("v")[:4] == read


def test_a_text_for_no_value_among_numbers_of_json_is_none(tmp_path: Path) -> None:
    values = [0.5, "NaN", "n/a", *range(3, 30)]
    data = "".join(json.dumps({"time": time, "v": v}) + "\n" for time, v in zip(TIMES, values, strict=True))
    found = imported(tmp_path / "file", data)
    assert found.column("v")[:4] == [0.5, None, None, 3.0]
    assert found.report.columns[1].missing == 2
