"""Forms of files: those that are read all the same, and those that are refused with what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.imports.kinds import TIMES, imported, lines
from webapp.imports.detect import look
from webapp.imports.faults import ImportFault

MS = [1714521600000 + 1000 * n for n in range(4)]
FIELDS = [{"name": "time", "type": "time"}, {"name": "v", "type": "number"}]
FRAMES = {"results": {"A": {"frames": [{"schema": {"fields": FIELDS}, "data": {"values": [MS, MS]}}]}}}
PANEL = [{"name": "A", "fields": [{"name": "Time", "type": "time", "values": MS}]}]
SERIES = {"results": [{"series": [{"name": "cpu", "columns": ["time", "v"], "values": [[1, 2]]}]}]}


@pytest.mark.parametrize("document", [FRAMES, PANEL, SERIES])
def test_an_answer_of_a_database_is_refused_with_what_to_do(tmp_path: Path, document: object) -> None:
    assert "Download CSV" in _refused(tmp_path, json.dumps(document))


@pytest.mark.parametrize(
    ("data", "next_step"),
    [
        (lines('"time;a;b"', '"{time};{n},5;1"'), "without these quotes"),
        (lines('"time,a,b"', '"{time},""x, y"",{n}"'), "without these quotes"),
        (lines("", 'ts={time} level=info msg="pump started" flow={n}'), "JSON lines"),
        (lines("", "INSERT INTO log VALUES ('{time}', {n});"), "Export the table as CSV"),
    ],
)
def test_lines_that_are_no_rows_are_refused_with_what_to_do(
    tmp_path: Path, data: str, next_step: str
) -> None:
    assert next_step in _refused(tmp_path, data)


RECORDS = [{"t": f"2024-05-01T00:{n:02d}:00Z", "v": n} for n in range(30)]
SENML = [{"bn": "urn:dev:1:", "bt": 1714521600, "u": "Cel", "v": 20.5}, {"t": 1, "v": 21}]


@pytest.mark.parametrize(
    ("data", "next_step"),
    [
        ("\n".join(json.dumps(record, indent=1) for record in RECORDS), "line of its own"),
        ("\n".join(json.dumps({"rows": [record]}, indent=1) for record in RECORDS), "line of its own"),
        ("\n".join(json.dumps([record, record]) for record in RECORDS), "line of its own"),
        ("".join(map(json.dumps, RECORDS)), "line of its own"),
        ("".join(f"\x1e{json.dumps(record)}\n" for record in RECORDS), "line of its own"),
        (json.dumps(SENML), "RFC 8428"),
    ],
)
def test_documents_that_would_be_read_in_part_are_refused_with_what_to_do(
    tmp_path: Path, data: str, next_step: str
) -> None:
    assert next_step in _refused(tmp_path, data)


def test_a_document_behind_a_long_one_is_a_dead_letter(tmp_path: Path) -> None:
    records = [{"t": 1714521600 + n, "v": n, "note": "x" * 200} for n in range(9_000)]
    found = imported(tmp_path / "file", json.dumps(records, indent=1) + "\n" + json.dumps(records[:9]))
    assert len(found.rows) == 9_001
    assert found.rows[-1]["_reject"] is not None


@pytest.mark.parametrize("kinds", ["{a,b}", "string"])
def test_the_lines_of_attributes_name_the_columns_of_arff(tmp_path: Path, kinds: str) -> None:
    names = "@attribute time date \"yyyy-MM-dd\"\n@attribute 'flow in' numeric\n@ATTRIBUTE kind " + kinds
    data = f"% Pumps\n@relation pumps\n\n{names}\n\n@DATA\n" + lines("", "'{time}',{n}.5,a")
    found = imported(tmp_path / "file", data.replace(",7.5,", ",?,"))
    assert found.names == ["time", "flow in", "kind"]
    assert found.column("flow in")[6:9] == [6.5, None, 8.5]
    assert found.times[1] == "2024-05-01T00:01:00+00:00"
    assert "Lines above the rows name the columns." in found.notes


def test_a_column_of_texts_in_quotes_is_no_column_of_rows(tmp_path: Path) -> None:
    data = lines('"remark, of whom"', '"calm, says Anna"')
    assert imported(tmp_path / "file", data).column("remark, of whom")[0] == "calm, says Anna"


def test_names_before_the_values_are_the_names_of_the_columns(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("", "time={time},T={n}.5,state=ok"))
    assert found.names == ["time", "T", "state"]
    assert found.column("T") == [n + 0.5 for n in range(30)]
    assert found.times[1] == "2024-05-01T00:01:00+00:00"


def test_hours_that_a_clock_has_twice_may_have_letters(tmp_path: Path) -> None:
    hours = ["1", "2A", "2B", "3"]
    data = "Datum;Stunde;v\n" + "".join(f"27.10.2024;{hour};1\n" for hour in hours)
    found = imported(tmp_path / "file", data, {"time.zone": 0})
    assert found.reading.time is not None
    assert found.reading.time.zone == "Europe/Berlin"
    assert [time[:13] for time in found.times] == [
        "2024-10-26T23",
        "2024-10-27T00",
        "2024-10-27T01",
        "2024-10-27T02",
    ]


@pytest.mark.parametrize(
    "time", ["2024:05:01 00:{m:02d}:00", "2024.05.01D00:{m:02d}:00.000", "DT#2024-05-01-00:{m:02d}:00"]
)
def test_times_of_cameras_databases_and_plcs(tmp_path: Path, time: str) -> None:
    found = imported(tmp_path / "file", lines("time,v", time + ",{n}"))
    assert found.times[:2] == ["2024-05-01T00:00:00+00:00", "2024-05-01T00:01:00+00:00"]


def test_the_time_of_a_web_server_stands_in_brackets(tmp_path: Path) -> None:
    found = imported(
        tmp_path / "file", lines("", '10.0.0.1 - - [01/May/2024:00:{m:02d}:00 +0000] "GET /" 200')
    )
    assert found.times[1] == "2024-05-01T00:01:00+00:00"


def test_a_count_in_brackets_is_text(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("", "[1714521600.000000] 64 bytes: time={n}.5"))
    assert "_time" not in found.rows[0]


def test_a_zone_may_be_the_name_of_the_column(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines('"Timezone : Europe/Berlin";T', "{time};{n}.5"))
    assert found.times[0] == "2024-04-30T22:00:00+00:00"


def test_an_article_number_beside_a_date_is_no_time_of_day(tmp_path: Path) -> None:
    data = "Datum;Artikelnr.;v\n" + "".join(f"{day:02d}.05.24;1000-{day};1\n" for day in range(1, 5))
    found = imported(tmp_path / "file", data)
    assert found.times[:2] == ["2024-05-01T00:00:00+00:00", "2024-05-02T00:00:00+00:00"]


def test_digits_in_groups_of_india(tmp_path: Path) -> None:
    cells = ["50,000", "1,00,000", "12,34,567.25", "-10,00,00,000"]
    data = "time;v\n" + "".join(f"{time};{cell}\n" for time, cell in zip(TIMES, cells, strict=False))
    assert imported(tmp_path / "file", data).column("v") == [50000, 100000, 1234567.25, -100000000]


def test_a_lone_99_among_counts_is_a_count(tmp_path: Path) -> None:
    data = "time,count\n" + "".join(f"{time},{99 if at == 7 else at % 3}\n" for at, time in enumerate(TIMES))
    assert imported(tmp_path / "file", data).column("count")[7] == 99


@pytest.mark.parametrize("cell", ["--", "nan", "\\N", "NULL"])
def test_a_column_of_nothing_has_no_values(tmp_path: Path, cell: str) -> None:
    assert imported(tmp_path / "file", lines("time,v,w", "{time},{n}," + cell)).column("w") == [None] * 30


def test_a_column_of_one_state_keeps_it(tmp_path: Path) -> None:
    assert imported(tmp_path / "file", lines("time,v,w", "{time},{n},fault")).column("w") == ["fault"] * 30


@pytest.mark.parametrize("count", ["(30 rows affected)", "30 rows selected.", "30 rows in set (0.01 sec)"])
def test_a_count_of_rows_behind_them_is_the_footer(tmp_path: Path, count: str) -> None:
    found = imported(tmp_path / "file", lines("time,v", "{time},{n}") + "\n" + count + "\n")
    assert (len(found.rows), found.report.dead) == (30, 0)


def _refused(tmp_path: Path, data: str) -> str:
    path = tmp_path / "file"
    path.write_text(data)
    with pytest.raises(ImportFault) as refused:
        look(path, path.name)
    return str(refused.value.next)
