"""An imported table says what its file says, given how the file is read."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.operators.recording import facts_of
from tests.chosen import examples
from webapp.imports import convert_text
from webapp.imports.__main__ import main
from webapp.imports.convert import convert
from webapp.imports.faults import Cancelled, ImportFault
from webapp.imports.reading import ColumnReading, Reading, TimeReading


def column(source, name, type_, **more):
    return ColumnReading(source=source, name=name, type=type_, **more)


def numbers(*names, first=1):
    return tuple(column(first + n, name, "number") for n, name in enumerate(names))


class Imported:
    def __init__(self, directory, data, reading, cancelled=lambda: False):
        path, self.out = directory / "file", directory / "table"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        self.told = []
        self.report = convert(path, reading, self.out, lambda *told: self.told.append(told), cancelled)
        self.rows = pq.read_table(self.out).to_pylist()

    def values(self, name):
        return [row[name] for row in self.rows]

    def times(self, form="%d %H:%M:%S"):
        return [row["_time"].strftime(form) for row in self.rows]


@pytest.fixture
def imported(tmp_path):
    def make(data, columns, time=None, time_format="iso", cancelled=lambda: False, **more):
        reading = {"header_line": 1, "first_line": 2, "columns": columns, **more}
        if time is not None:
            said = {key: reading.pop(key) for key in list(reading) if key in TimeReading.model_fields}
            said["columns"] = columns_of_time = time if isinstance(time, tuple) else (time,)
            reading["columns"], reading["time"] = columns, TimeReading(format=time_format, **said)
            assert columns_of_time
        return Imported(tmp_path, data, Reading(**reading), cancelled)

    return make


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(convert_text, "PIECE_BYTES", 400)


def test_the_table_has_its_facts_and_its_rows_their_places(imported, tmp_path):
    found = imported("at,n\n2024-05-01,1\n2024-05-03,2\n2024-05-02,3\n", (column(1, "n", "integer"),), 0)
    facts = facts_of(found.out)
    assert (facts.rows, facts.time, facts.columns[0].name) == (3, True, "n")
    assert found.values("n") == [1, 2, 3]
    day = 86_400_000_000
    assert found.values("_due_us") == [0, 2 * day, 2 * day]
    assert found.times("%d") == ["01", "03", "02"]
    assert found.told[-1][0] == found.told[-1][1]


def test_midnight_may_be_the_hour_24(imported):
    text = "time;power\n01.05.2024 23:00;23,5\n01.05.2024 24:00;24,5\n02.05.2024 01:00;1,5\n"
    found = imported(text, numbers("power"), 0, "%d.%m.%Y %H:%M", delimiter=";", decimal=",")
    assert found.times() == ["01 23:00:00", "02 00:00:00", "02 01:00:00"]
    assert found.values("power") == [23.5, 24.5, 1.5]


@pytest.mark.parametrize("newest_first", [False, True])
def test_the_order_of_the_rows_tells_the_two_passes_of_an_hour_apart(imported, newest_first, monkeypatch):
    hours = ["01:30", "01:45", *["02:00", "02:15", "02:30", "02:45"] * 2, "03:00", "03:15"]
    lines = [f"27.10.2024 {hour};{n}" for n, hour in enumerate(hours)]
    text = "time;n\n" + "\n".join(reversed(lines) if newest_first else lines)
    found = imported(
        text,
        (column(0, "time", "timestamp"), column(1, "n", "integer")),
        0,
        "%d.%m.%Y %H:%M",
        delimiter=";",
        zone="Europe/Berlin",
        newest_first=newest_first,
    )
    begin = datetime(2024, 10, 26, 23, 30, tzinfo=UTC)
    assert found.values("_time") == [begin + n * timedelta(minutes=15) for n in range(12)]
    assert found.values("time") == found.values("_time")
    assert found.values("n") == list(range(12))


def test_an_hourly_series_has_the_repeated_hour_twice(imported):
    text = "time,n\n" + "".join(f"2024-10-27 {hour},1\n" for hour in ("01:00", "02:00", "02:00", "03:00"))
    found = imported(text, numbers("n"), 0, zone="Europe/Berlin")
    assert found.times("%d %H") == ["26 23", "27 00", "27 01", "27 02"]


def test_a_time_that_says_its_offset_needs_no_zone(imported):
    text = "time,n\n2024-05-01 02:00:00+02,1\n2024-05-01T00:30:00Z,2\n2024-05-01 03:00:00,3\n"
    found = imported(text, numbers("n"), 0, zone="Europe/Berlin")
    assert found.times() == ["01 00:00:00", "01 00:30:00", "01 01:00:00"]


def test_the_skipped_hour_is_read_by_the_clock_before_it(imported):
    text = "time,n\n2024-03-31 01:59,1\n2024-03-31 02:30,2\n2024-03-31 03:30,3\n"
    found = imported(text, numbers("n"), 0, zone="Europe/Berlin")
    assert found.times("%H:%M") == ["00:59", "01:30", "01:30"]


def test_an_interval_can_be_named_by_its_end(imported):
    text = "time,n\n2024-05-01 01:00,1\n2024-05-01 02:00,2\n2024-05-01 03:00,3\n"
    assert imported(text, numbers("n"), 0, marks="end").times("%H") == ["00", "01", "02"]


def test_date_and_time_may_stand_in_two_columns(imported):
    text = "Date,Time,v\n2024-05-01,23:30:00,1\n2024-05-02,00:00:00,2\n2024-05-02,00:30:00,3\n"
    found = imported(text, (column(2, "v", "integer"),), (0, 1), "%Y-%m-%d %H:%M:%S")
    assert found.times() == ["01 23:30:00", "02 00:00:00", "02 00:30:00"]
    text = "Date,s,v\n2024-05-01,1.5,1\n2024-05-01,86400,2\n"
    found = imported(text, (column(2, "v", "integer"),), (0, 1), "%Y-%m-%d seconds_of_day")
    assert found.times("%d %H:%M:%S.%f") == ["01 00:00:01.500000", "02 00:00:00.000000"]


@pytest.mark.parametrize(
    ("time_format", "texts"),
    [
        ("epoch_s", ["100", "100.5"]),
        ("epoch_ms", ["100000", "100500"]),
        ("epoch_us", ["100000000", "100500000"]),
        ("epoch_ns", ["100000000000", "100500000000"]),
        ("excel_days", ["25569.00115740741", "25569.00116319444"]),
        ("%d.%m.%y %H:%M:%S", ["01.01.70 00:01:40", "01.01.70 00:01:40.5"]),
        ("%b %d, %Y %I:%M:%S %p", ["Jan 1, 1970  12:01:40 AM", "Jan 1, 1970 12:01:40.5 AM"]),
        ("%d. %B %Y %H:%M:%S", ["1. Januar 1970 00:01:40", "1. Januar 1970 00:01:40.5"]),
        ("%Y-%m-%dT%H:%M:%S%z", ["1970-01-01T01:01:40+01:00", "1970-01-01T01:01:40.5+0100"]),
    ],
)
def test_times_are_read_in_other_formats(imported, time_format, texts):
    found = imported(
        "t;n\n" + "".join(f"{text};1\n" for text in texts), numbers("n"), 0, time_format, delimiter=";"
    )
    assert [round(time.timestamp(), 3) for time in found.values("_time")] == [100, 100.5]


def test_a_year_of_two_digits_is_not_read_as_one_of_four(imported):
    found = imported("t,n\n01.05.24,1\n", numbers("n"), 0, "%d.%m.%Y")
    assert found.report.dead == 1


def test_what_means_no_value_is_null_and_what_cannot_be_read_is_counted(imported):
    text = "time,a,b,c\n" + "".join(
        f"2024-05-01 00:00:0{n},{cells}\n"
        for n, cells in enumerate(["NaN,1.5,x", "2.5,-,", "-9999.0,oops,y", "3.5,,NaN"])
    )
    columns = (
        column(1, "a", "number", missing=("NaN", "-9999")),
        column(2, "b", "number", missing=("", "-")),
        column(3, "c", "string", missing=("NaN",)),
    )
    found = imported(text, columns, 0)
    assert found.values("a") == [None, 2.5, None, 3.5]
    assert found.values("b") == [1.5, None, None, None]
    assert found.values("c") == ["x", "", "y", None]
    counts = [
        (each.read, each.missing, each.unreadable, each.first_unreadable) for each in found.report.columns
    ]
    assert counts == [(2, 2, 0, None), (1, 2, 1, (4, "oops")), (3, 1, 0, None)]
    assert (found.report.rows, found.report.dead) == (4, 0)


def test_numbers_are_read_with_the_marks_of_their_column(imported):
    text = "Zeit;L;Z;W\n01.05.2024 00:00:00;0,6;998;1 234,5\n01.05.2024 00:00:01;0,7;1.008;1\u00a0000\n"
    text += "02.05.2024 00:00:01;0.7;1.08;1\n"
    columns = (
        column(1, "L", "number"),
        column(2, "Z", "integer", thousands="."),
        column(3, "W", "number", thousands=" "),
    )
    found = imported(text, columns, 0, "%d.%m.%Y %H:%M:%S", delimiter=";", decimal=",")
    assert found.values("L") == [0.6, 0.7, None]
    assert found.values("Z") == [998, 1008, None]
    assert found.values("W") == [1234.5, 1000, 1]


def test_a_whole_number_is_neither_rounded_nor_guessed(imported):
    cells = ["1.5", "0x1A", "1_000", "1e3", "9007199254740993", "9223372036854775808", " +7 ", "0071"]
    text = "n,x\n" + "".join(f"{cell},0\n" for cell in cells)
    found = imported(text, (column(0, "n", "integer"),))
    assert found.values("n") == [None, None, None, None, 9007199254740993, None, 7, 71]
    assert found.report.columns[0].first_unreadable == (2, "1.5")


def late(last, before=50):
    lines = [f"2024-05-01 00:00:{n:02},{n}\n" for n in range(before)]
    return "time,power\n" + "".join(lines) + f"2024-05-01 00:00:{before},{last}\n"


def test_decimals_that_come_late_are_read(imported):
    found = imported(late("20.1"), (column(1, "power", "integer"),), 0)
    assert found.values("power")[-2:] == [49.0, 20.1]
    assert (found.report.with_decimals, found.report.questions) == (("power",), ())
    assert facts_of(found.out).columns[0].type == "number"


def test_thousands_or_decimals_that_come_late_are_asked_about(imported):
    found = imported(late("1.234"), (column(1, "power", "integer"),), 0)
    (question,) = found.report.questions
    assert (question.id, found.report.with_decimals) == ("type.power", ())
    between = {"columns.0.thousands": ".", "columns.0.decimal": ","}
    assert between in [choice.changes for choice in question.choices]
    told = column(1, "power", "integer", thousands=".", decimal=",")
    assert imported(late("1.234"), (told,), 0).values("power")[-1] == 1234


def test_zeros_that_come_late_before_whole_numbers_are_asked_about(imported, monkeypatch):
    monkeypatch.setattr("webapp.imports.convert_report._LINES_SEEN", 40)
    found = imported(late("01067"), (column(1, "power", "integer"),), 0)
    (question,) = found.report.questions
    assert (question.line, found.values("power")[-1]) == (52, 1067)
    assert "begins with a zero, which a number loses, first '01067'" in question.text
    assert question.choices[0].changes == {"columns.0.type": "string"}
    assert found.report.columns[0].unreadable == 0
    assert imported(late("0"), (column(1, "power", "integer"),), 0).report.questions == ()


@pytest.mark.parametrize("last", ["n/a", "9007199254740993\n2024-05-01 00:01:00,0.5"])
def test_a_type_that_changes_late_is_asked_about(imported, last):
    found = imported(late(last), (column(1, "power", "integer"),), 0)
    (question,) = found.report.questions
    assert (question.id, found.report.with_decimals) == ("type.power", ())
    assert {choice.changes.get("columns.0.type") for choice in question.choices} > {None}


def test_a_row_is_a_dead_letter_only_when_its_time_or_its_form_is_wrong(imported):
    text = "time,a\n2024-05-01,1\nno,2\n2024-05-02,3,4\n2024-05-03\n2024-05-04,5\n"
    found = imported(text, numbers("a"), 0)
    assert [row["_reject"] for row in found.rows] == [
        None,
        'column "0" holds no time',
        "has more than 2 cells",
        None,
        None,
    ]
    assert [row["_raw"] for row in found.rows] == [None, "no,2", "2024-05-02,3,4", None, None]
    assert found.values("a")[-2:] == [None, 5]
    assert (found.report.dead, found.report.first_dead) == (2, (3, "no,2"))


def test_lines_around_the_table_are_no_rows(imported):
    text = "Serial,1\n\ntime,level\n,m\n2024-05-01,1.5\n\n2024-05-02,1.6\n,\n\nmade by a logger\nmean 1.55\n"
    found = imported(text, numbers("level"), 0, header_line=3, first_line=5)
    assert found.values("level") == [1.5, 1.6]
    assert (found.report.rows, found.report.dead, found.report.footer) == (2, 0, 2)


def test_comments_null_bytes_and_runs_of_spaces_are_taken_out(imported):
    text = "# logger\n  time    v\n# 2\n2024-05-01T00:00   1.5  \n\0\0\n2024-05-02T00:00\t 1.6\n"
    found = imported(text, numbers("v"), 0, header_line=2, first_line=3, comment="#", delimiter="whitespace")
    assert found.values("v") == [1.5, 1.6]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "cp1252", "utf-8-sig"])
def test_other_encodings_are_read(imported, encoding):
    text = "Zeit;Größe °C\r\n01.05.2024 00:00:00;ä\r\n"
    found = imported(
        text.encode(encoding),
        (column(1, "g", "string"),),
        0,
        "%d.%m.%Y %H:%M:%S",
        delimiter=";",
        encoding=encoding,
    )
    assert found.values("g") == ["ä"]


def test_packed_files_are_read_within_bounds(imported, monkeypatch):
    text = "time,n\n2024-05-01,1\n"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("readme.txt", "x")
        file.writestr("data.csv", text)
    assert imported(gzip.compress(text.encode()), numbers("n"), 0, compression="gzip").values("n") == [1]
    packed = {"compression": "zip", "member": "data.csv"}
    assert imported(archive.getvalue(), numbers("n"), 0, **packed).values("n") == [1]
    with pytest.raises(ImportFault, match="2 files"):
        imported(archive.getvalue(), numbers("n"), 0, compression="zip")
    with pytest.raises(ImportFault, match="cannot be unpacked"):
        imported(gzip.compress(text.encode())[:-12], numbers("n"), 0, compression="gzip")
    monkeypatch.setattr(convert_text, "UNPACKED_BYTES_FREE", 10_000)
    with pytest.raises(ImportFault, match="unpacks to more than"):
        imported(gzip.compress(b"n\n" + b"1\n" * 500_000), numbers("n", first=0), compression="gzip")


def test_quotes(imported, small_pieces):
    text = 'n,t\n1,"a, ""b"""\n2,"two\nlines"\n3,5" pipe\n4,"lost\n5,x\n' + "".join(
        f"{n},y\n" for n in range(6, 300)
    )
    found = imported(text, (column(0, "n", "integer"), column(1, "t", "string")))
    assert found.values("n") == list(range(1, 300))
    assert found.values("t")[:6] == ['a, "b"', "two\nlines", '5" pipe', '"lost', "x", "y"]


def test_a_row_without_end_is_refused(imported, monkeypatch):
    monkeypatch.setattr(convert_text, "PIECE_BYTES", 1000)
    monkeypatch.setattr(convert_text, "ROW_BYTES_MAX", 1000)
    with pytest.raises(ImportFault, match="A row is longer than 1,000 bytes") as refused:
        imported("n\n1\n" + "x" * 5000, numbers("n", first=0))
    assert refused.value.where == "it begins at line 3"


@pytest.mark.parametrize("jump", ["skip", "cut"])
@pytest.mark.parametrize("odd", [0, 10, 19])
def test_a_glitch_of_the_clock_delays_nothing(imported, jump, odd, small_pieces):
    times = [f"2024-05-01 00:00:{n:02}" for n in range(20)]
    times[odd] = "1970-01-01 00:00:00" if odd == 0 else "2165-02-25 00:00:10"
    text = "time,n\n" + "".join(f"{time},{n}\n" for n, time in enumerate(times))
    found = imported(text, (column(1, "n", "integer"),), 0, jump=jump, jump_s=60)
    assert found.values("_due_us")[-1] <= 150_000_000
    assert found.report.largest_jump.line == max(odd, 1) + 2
    kept = [n for n in range(20) if n != odd or jump == "cut"]
    assert (found.values("n"), found.report.skipped) == (kept, 20 - len(kept))


def test_a_pause_is_no_glitch(imported):
    days = [f"2024-05-{day:02} 00:00:{n:02}" for day in (1, 9) for n in range(10)]
    text = "time,n\n" + "".join(f"{day},{n}\n" for n, day in enumerate(days))
    found = imported(text, (column(1, "n", "integer"),), 0, jump="skip", jump_s=60)
    assert (found.report.rows, found.report.skipped) == (20, 0)


def test_a_jump_of_years_is_asked_about(imported):
    text = "time,n\n" + "".join(f"{y}-05-01,{y}\n" for y in (1970, 2024)) + "2024-05-02,1\n2024-05-03,2\n"
    (question,) = imported(text, numbers("n"), 0).report.questions
    assert (question.id, question.line) == ("time.jump", 3)
    said = "Time jumps ahead at line 3: from 1970-05-01 00:00:00 UTC to 2024-05-01 00:00:00 UTC."
    assert question.text == said


def test_the_same_file_gives_the_same_bytes(imported, small_pieces):
    text = "time,n,s\n" + "".join(f"2024-05-01 00:00:{n % 60:02},{n},{n % 7}\n" for n in range(500))
    columns = (column(1, "n", "number"), column(2, "s", "string"))
    first = imported(text, columns, 0).out.read_bytes()
    assert imported(text, columns, 0).out.read_bytes() == first


def test_a_cancelled_import_leaves_nothing(imported, tmp_path):
    with pytest.raises(Cancelled):
        imported("n\n1\n", numbers("n", first=0), cancelled=lambda: True)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"columns": ()}, "has no columns"),
        ({"columns": (column(0, "n", "number"), column(1, "n", "number"))}, "Two columns are called 'n'"),
        ({"columns": (column(0, "_due_us", "number"),)}, "No column can be called '_due_us'"),
        ({"columns": (column("a", "n", "number"),)}, "'a' is no place of a column"),
        ({"columns": (column(0, "t", "timestamp", format="%q"),)}, "format cannot be read"),
        ({"delimiter": "\n"}, "cannot divide cells"),
        ({"delimiter": '"'}, "the same"),
        ({"encoding": "utf-99"}, "no encoding 'utf-99'"),
        ({"encoding": "zip"}, "no encoding 'zip'"),
        ({"time": TimeReading(columns=(0,), format="iso", zone="Berlin")}, "no time zone 'Berlin'"),
        ({"time": TimeReading(columns=(0,), format="%H:%M")}, "needs a year"),
    ],
)
def test_a_reading_that_cannot_be_carried_out_is_refused(tmp_path, changed, what):
    reading = Reading(columns=(column(0, "n", "number"),)).model_copy(update=changed)
    with pytest.raises(ImportFault, match=what):
        Imported(tmp_path, "1,2\n", reading)


def test_the_process_tells_its_progress_and_its_result(tmp_path):
    (tmp_path / "file").write_text("time,n\n2024-05-01,1\nno,2\n")
    reading = Reading(
        header_line=1,
        first_line=2,
        columns=numbers("n"),
        time=TimeReading(columns=(0,), format="iso"),
    )
    arguments = ["convert", "--path", str(tmp_path / "file"), "--out", str(tmp_path / "table")]
    said = []
    assert main(arguments, lambda: reading.model_dump_json().encode(), said.append) == 0
    assert said[0]["progress"] == {"bytes_done": 25, "bytes_total": 25, "rows": 2}
    assert said[-1]["result"]["report"]["dead"] == 1
    assert said[-1]["result"]["facts"]["rows"] == 2
    assert main(arguments, lambda: b"{}", said.append) == 1
    assert said[-1]["error"]["what"] == "The reading has no columns."
    assert main(arguments, lambda: b"oops", said.append) == 1
    assert said[-1]["error"]["what"].startswith("The reading is not valid")


# --- against Python's own csv and datetime ---------------------------------------------------------------
CELLS = st.one_of(
    st.integers(-(10**6), 10**6).map(str),
    st.floats(-1e6, 1e6).map(repr),
    st.sampled_from(["", "-", "NA", "x", "1,5", "nan", "inf", "1e999", " 2 ", "1_0", ".5", "3.", "true"]),
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8)
ROWS = st.lists(
    st.tuples(
        st.integers(0, 10**9), CELLS, CELLS, st.one_of(TEXTS, st.just('say "a, b"'), st.just("two\nlines"))
    ),
    min_size=1,
    max_size=40,
)
FORMATS = {
    "iso": lambda moment: moment.isoformat(sep=" "),
    "%d.%m.%Y %H:%M:%S": lambda moment: moment.strftime("%d.%m.%Y %H:%M:%S"),
    "%m/%d/%y %I:%M:%S %p": lambda moment: moment.strftime("%m/%d/%y %I:%M:%S %p"),
    "epoch_s": lambda moment: str(int(moment.replace(tzinfo=UTC).timestamp())),
}


def as_number(cell):
    text = cell.strip()
    if "_" in text or text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) != float("inf") else None


def as_whole(cell):
    text = cell.strip()
    return int(text) if text.lstrip("+-").isdecimal() and text.isascii() else None


@settings(max_examples=examples(60), deadline=None)
@given(
    rows=ROWS,
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    encoding=st.sampled_from(["utf-8", "utf-16", "utf-8-sig"]),
    ends=st.sampled_from(["\n", "\r\n"]),
    time_format=st.sampled_from(list(FORMATS)),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    piece=st.sampled_from([100, 1000, 1 << 20]),
)
def test_python_reads_the_same(
    tmp_path_factory, rows, delimiter, encoding, ends, time_format, quoting, piece
):
    rows = [*rows, (0, "1", "no number", "x")]  # so that no column of whole numbers is read with decimals
    begin = datetime(2000, 1, 1)  # noqa: DTZ001  files have no zone
    moments = [begin + timedelta(seconds=second) for second, *_ in rows]
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=ends, quoting=quoting)
    writer.writerow(["time", "a", "b", "c"])
    for moment, (_, *cells) in zip(moments, rows, strict=True):
        writer.writerow([FORMATS[time_format](moment), *cells])
    reading = Reading(
        encoding=encoding,
        delimiter=delimiter,
        header_line=1,
        first_line=2,
        missing=("", "-", "NA"),
        columns=(column(1, "a", "number"), column(2, "b", "integer"), column(3, "c", "string")),
        time=TimeReading(columns=(0,), format=time_format),
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(convert_text, "PIECE_BYTES", piece)
        found = Imported(tmp_path_factory.mktemp("table"), text.getvalue().encode(encoding), reading)
    assert found.values("_reject") == [None] * len(rows)
    assert found.values("_time") == [moment.replace(tzinfo=UTC) for moment in moments]
    assert found.values("a") == [as_number(a) for _, a, _, _ in rows]
    assert found.values("b") == [as_whole(b) for _, _, b, _ in rows]
    assert found.values("c") == [None if c.strip(" ") in ("", "-", "NA") else c for *_, c in rows]
    unread = [
        sum(f(cell) is None and cell.strip() not in ("", "-", "NA") for cell in cells)
        for f, cells in ((as_number, [row[1] for row in rows]), (as_whole, [row[2] for row in rows]))
    ]
    assert [each.unreadable for each in found.report.columns] == [*unread, 0]
