"""Tables that Python's csv and datetime write are read as they were meant, or something is asked."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import HealthCheck, given, settings, strategies as st

from tests.chosen import examples
from webapp.imports.detect import look, preview

ROWS_MAX = 40
FORMATS = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%f",
    "%d.%m.%Y %H:%M:%S",
    "%m/%d/%Y %I:%M:%S %p",
    "%d/%m/%Y %H:%M",
    "%Y%m%dT%H%M%S",
    "%d-%b-%Y %H:%M:%S",
    "%a, %d %b %Y %H:%M:%S +0000",
    "%A, %d. %B %Y %H:%M",
    "%y-%m-%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%Y-%j %H:%M",
)
ENCODINGS = ("utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le", "utf-16-be")
MISSING = ("", "-", "---", "NaN", "NA", "N/A", "null", "#N/A")
_SENTINEL_LIKE = (32767, -32767, -32768, 65535)
WORDS = st.text("abcdefghij äöüß,;.'\"|\n", min_size=1, max_size=12).map(str.strip).filter(bool)


@dataclass(frozen=True)
class Written:
    data: bytes
    times: list[datetime]
    columns: list[list[object]]
    sure: bool  # nothing in it can be read in two ways


@st.composite
def written(draw: st.DrawFn) -> Written:
    rows = draw(st.integers(8, ROWS_MAX))
    pattern = draw(st.sampled_from(FORMATS))
    # From the 13th on, a date says what its day is.
    begin = datetime(draw(st.integers(2014, 2030)), draw(st.integers(1, 12)), 13, 8, tzinfo=UTC)
    step = timedelta(minutes=draw(st.sampled_from((1, 10, 15, 60))))
    times = [begin + step * row for row in range(rows)]
    delimiter, decimal = draw(
        st.sampled_from(((",", "."), (";", ","), (";", "."), ("\t", "."), ("\t", ","), ("|", ".")))
    )
    missing = draw(st.sampled_from(MISSING))
    columns: list[list[object]] = []
    texts = [[time.strftime(pattern) for time in times]]
    names = [draw(st.sampled_from(("time", "Zeit", "Timestamp", "Datum/Uhrzeit")))]
    for at in range(draw(st.integers(1, 5))):
        values, cells = draw(_column(rows, decimal, missing))
        columns.append(values)
        texts.append(cells)
        names.append(draw(st.sampled_from(("Temperatur", "Flow rate", "x", "Größe"))) + str(at))
    out = io.StringIO()
    quoting = draw(st.sampled_from((csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)))
    end = draw(st.sampled_from(("\n", "\r\n")))
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=end)
    writer.writerow(names)
    writer.writerows(zip(*texts, strict=True))
    text, encoding = out.getvalue(), draw(st.sampled_from(ENCODINGS))
    # A single odd letter does not tell which encoding of one byte it is in.
    sure = text.isascii() or encoding != "cp1252"
    sure = sure and "%y" not in pattern and all(_sure(cells, decimal) for cells in texts[1:])
    return Written(text.encode(encoding), times, columns, sure)


@st.composite
def _column(draw: st.DrawFn, rows: int, decimal: str, missing: str) -> tuple[list[object], list[str]]:
    kind = draw(st.sampled_from(("number", "number", "integer", "words", "truth")))
    if kind == "words":
        words = draw(st.lists(WORDS.map(lambda word: "w" + word), min_size=rows, max_size=rows))
        return list(words), words
    if kind == "truth":
        flags = [True, False, *draw(st.lists(st.booleans(), min_size=rows - 2, max_size=rows - 2))]
        return list(flags), ["true" if flag else "false" for flag in flags]
    digits = 0 if kind == "integer" else draw(st.integers(1, 4))
    whole = st.integers(-900_000, 900_000)  # 999999 among zeros means no value
    values: list[object] = []
    cells = []
    gaps = draw(st.booleans())
    for row in range(rows):
        if gaps and row % 5 == 3:
            values.append(None)
            cells.append(missing)
            continue
        number = draw(whole.filter(lambda each: "99" not in str(each) and each not in _SENTINEL_LIKE))
        text = f"{number / 10**digits:.{digits}f}"
        values.append(float(text))
        cells.append(text.replace(".", decimal))
    return values, cells


def _sure(cells: list[str], decimal: str) -> bool:
    """Whether a cell shows what its mark is: 1.008 does not."""
    numbers = [cell.partition(decimal) for cell in cells]
    return any(mark and len(digits) != 3 for _, mark, digits in numbers) or not any(
        mark and len(digits) == 3 for _, mark, digits in numbers
    )


@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(table=written())
def test_a_table_is_read_as_it_was_written_or_asked(tmp_path: Path, table: Written) -> None:
    path = tmp_path / "file"
    path.write_bytes(table.data)
    found = look(path, "file.csv")
    if found.detection.questions:
        assert not table.sure, [question.text for question in found.detection.questions]
        return
    shown = preview(found.head, found.detection.reading)
    assert [row.time for row in shown.rows] == [time.isoformat() for time in table.times]
    for at, values in enumerate(table.columns, 1):
        assert [row.values[at] for row in shown.rows] == values
        kinds = {isinstance(row.values[at], bool) for row in shown.rows if row.values[at] is not None}
        assert kinds == {isinstance(value, bool) for value in values if value is not None}
