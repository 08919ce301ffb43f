"""Tests lines whose cells are not divided by one plain character: backslashes, commas with two meanings, and
fixed places.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.imports.kinds import TIMES, imported, lines
from webapp.imports.convert import convert
from webapp.imports.detect import look, preview, redetect


@pytest.mark.parametrize("row", ["{time},a\\, b,{n}.5", "{time},say \\, b \\\\ c,{n}.5"])
def test_a_delimiter_behind_a_backslash_is_a_part_of_its_cell(tmp_path: Path, row: str) -> None:
    found = imported(tmp_path / "file", lines("time,text,v", row))
    assert found.column("text")[0] in ("a, b", "say , b \\ c")
    assert found.column("v")[:2] == [0.5, 1.5]
    assert "A backslash comes before" in found.notes


def test_a_path_that_ends_with_a_backslash_ends_its_cell(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("time;path;v", "{time};C:\\data\\;{n}.5"))
    assert found.column("path")[0] == "C:\\data\\"


def test_commas_before_decimals_without_quotes_are_asked(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("time,t,p,state", "{time},21,{d},-3,0{d},ok"), {"names": 0})
    assert (found.column("t")[:2], found.column("p")[:2]) == ([21.0, 21.1], [-3.0, -3.01])
    assert set(found.column("state")) == {"ok"}


def test_each_way_to_place_the_decimals_is_offered(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(lines("time,t,p", "{time},21,{d},3"))
    [question] = look(path, "file").detection.questions
    assert [choice.example for choice in question.choices[:2]] == [
        f"time is {TIMES[0]}, t is 21.0, p is 3",
        f"time is {TIMES[0]}, t is 21, p is 0.3",
    ]


def test_a_row_with_other_commas_stays_as_it_is_or_is_a_dead_letter(tmp_path: Path) -> None:
    data = lines("time,t,state", "{time},21,{d},ok") + f"{TIMES[0]},22,ok\n" + f"{TIMES[0]},2,2,1,ok\n"
    found = imported(tmp_path / "file", data, {"names": 0})
    assert found.column("t")[-2] == 22.0
    assert found.report.first_dead == (33, f"{TIMES[0]},2,2,1,ok")


def test_texts_with_spaces_below_their_names_are_cells(tmp_path: Path) -> None:
    rows = [f"{time}  {'pump on' if n % 2 else 'idle   '}{n + 0.5:7.1f}" for n, time in enumerate(TIMES)]
    found = imported(tmp_path / "file", "\n".join(["Date       Time      State    Temp", *rows, ""]))
    assert found.names == ["Date", "Time", "State", "Temp"]
    assert (found.column("State")[:2], found.column("Temp")[-1]) == (["idle", "pump on"], 29.5)


def test_places_that_a_person_names_divide_what_has_nothing_between(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("".join(f"20240501{n:02d}00{n * 10:05d}{n:03d}\n" for n in range(24)))
    found = redetect(look(path, "file").head, {"delimiter": "places", "cuts": [12, 17], "time.columns": [0]})
    assert found.reading.time is not None
    report = convert(path, found.reading, tmp_path / "out", lambda *_: None, lambda: False)
    assert (report.rows, report.dead, report.begins) == (24, 0, "2024-05-01T00:00:00+00:00")
    [*_, last] = preview(look(path, "file").head, found.reading).rows
    assert last.values[1:] == ("00230", "023")


def test_what_stands_behind_the_last_row_that_a_person_names_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(lines("time;v", "{time};{n}.5") + "x;y\n" * 30)
    found = redetect(look(path, "file").head, {"last_line": 31})
    assert found.reading.columns[1].type == "number"
    assert convert(path, found.reading, tmp_path / "out", lambda *_: None, lambda: False).rows == 30


@pytest.mark.parametrize(("end", "dead"), [("2024-05-01 01:00:00;2", 1), ("2024-05-01 01:00:00;2\n", 0)])
def test_a_row_within_which_the_file_ends_is_a_dead_letter(tmp_path: Path, end: str, dead: int) -> None:
    found = imported(tmp_path / "file", lines("time;v;w", "{time};{n}.25;{n}") + end)
    assert (found.report.rows, found.report.dead) == (31, dead)
    assert [row["_reject"] for row in found.rows[-2:]] == [
        None,
        "the file ends within this row" if dead else None,
    ]


def test_a_whole_row_needs_no_end_of_its_line(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("time;v;w", "{time};{n}.25;{n}").rstrip())
    assert (found.report.rows, found.report.dead) == (30, 0)
