"""Arrow and DuckDB read the same in a file without quotes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from tests.chosen import examples
from webapp.imports import convert_cells, convert_text
from webapp.imports.convert import convert
from webapp.imports.reading import ColumnReading, Reading, TimeReading

NUMBERS = (
    "1",
    "-2.5",
    "+3",
    ".5",
    "5.",
    "1e5",
    "1E-05",
    "1e999",
    "007",
    "9007199254740993",
    "-9999",
    "-9999.0",
)
ODD = (
    "",
    " ",
    "-",
    "NA",
    "nan",
    "inf",
    "-inf",
    "0x1A",
    "1_000",
    "1,5",
    "1.234",
    " 7",
    "7\t",
    "\u00a07",
    "x",
    "1;2",
)
TIMES = (
    "2024-05-01 12:00:00",
    "2024-05-01T12:00:00.123456",
    "2024-05-01 12:00",
    "2024-05-01",
    "2024-05-01 24:00:00",
    "2024-05-01 12",
    "2024-05-01T12:00:00Z",
    "2024-05-01T12:00:00+02:00",
    "2024-05-01 12:00+02",
    "2024-05-01T12+02:00",
    "2024-05-01 12:00:00,5",
    "2024-05-01 12:00:00.1234567",
    "2024-02-30 12:00:00",
    "0024-05-01 12:00:00",
    "",
)


def cells(usual, others):
    """Mostly cells of one kind, so that some files have no others."""
    return st.one_of(st.sampled_from(usual), st.sampled_from(usual), st.sampled_from([*usual, *others]))


ROWS = st.lists(
    st.tuples(
        cells(TIMES[:2], TIMES), cells(NUMBERS, ODD), cells(("1", "20"), ODD), cells(("a", "b c"), ODD)
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=examples(60), deadline=None)
@given(
    rows=ROWS,
    delimiter=st.sampled_from(["\t", "|"]),
    ends=st.sampled_from(["\n", "\r\n", "\n\n"]),
    decimal=st.sampled_from([".", ","]),
    missing=st.sampled_from([("", "-", "NA"), ("", "-9999"), ("nan",)]),
    zone=st.sampled_from(["UTC", "Europe/Berlin"]),
    ragged=st.sampled_from(["", "", "", "1", "|", "\t"]),
    piece=st.sampled_from([100, 1 << 20]),
)
def test_arrow_and_duckdb_read_the_same(
    tmp_path_factory, rows, delimiter, ends, decimal, missing, zone, ragged, piece
):
    directory = tmp_path_factory.mktemp("both")
    lines = [delimiter.join(row) for row in rows]
    lines[len(lines) // 2] += ragged
    (directory / "file").write_text(ends.join(["t a b c".replace(" ", delimiter), *lines, ""]), newline="")
    kinds = ("number", "integer", "string", "number")
    reading = Reading(
        delimiter=delimiter,
        decimal=decimal,
        missing=missing,
        header_line=1,
        first_line=2,
        columns=tuple(
            ColumnReading(source=source, name=f"c{n}", type=kind)
            for n, (source, kind) in enumerate(zip((1, 2, 3, 1), kinds, strict=True))
        ),
        time=TimeReading(columns=(0,), format="iso", zone=zone),
    )
    found = []
    for arrow in (True, False):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(convert_text, "PIECE_BYTES", piece)
            if not arrow:
                patched.setattr(convert_cells, "divided", lambda *_: None)
            out = directory / f"table-{arrow}"
            report = convert(directory / "file", reading, out, lambda *_: None, lambda: False)
            found.append((report, out.read_bytes()))
    assert found[0] == found[1]
