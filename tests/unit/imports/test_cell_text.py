"""DuckDB and Python say the same of a cell's text and of a time's."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings, strategies as st

from pipeline_runtime.model.schema import FieldType
from tests.chosen import examples
from webapp.imports.cell_text import read_cell, sql_of
from webapp.imports.convert_sql import fast_time, is_our_time
from webapp.imports.time_text import time_reader

MARKS = [(".", ""), (".", ","), (".", "'"), (".", " "), (",", ""), (",", "."), (",", " ")]
NUMBERS = st.from_regex(r"[ +-]?[0-9]{0,4}([., '_][0-9]{0,4}){0,3}(e[+-]?[0-9]{1,3})? ?", fullmatch=True)
WORDS = st.sampled_from(
    [
        "nan",
        "inf",
        "-Infinity",
        "0x1F",
        "1_000",
        "yes",
        "FALSE",
        "Ja",
        "1d",
        "1f",
        "",
        " ",
        "9" * 19,
        "1e999",
        "\u00a01",
    ]
)
TYPES = [FieldType.INTEGER, FieldType.NUMBER, FieldType.BOOLEAN]


@pytest.fixture(scope="module")
def connection():
    made = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    made.execute("SET TimeZone = 'UTC'")
    yield made
    made.close()


def asked(connection, texts, sql):
    connection.register("cells", pa.table({"c": pa.array(texts, pa.string())}))
    return [value for (value,) in connection.execute(f"SELECT {sql} FROM cells").fetchall()]


@settings(max_examples=examples(40), deadline=None)
@given(texts=st.lists(st.one_of(NUMBERS, WORDS), min_size=1, max_size=30), type_=st.sampled_from(TYPES))
def test_a_cell_is_the_same(connection, texts, type_):
    for decimal, thousands in MARKS:
        found = asked(connection, texts, sql_of("c", type_, decimal, thousands))
        assert found == [read_cell(text, type_, decimal, thousands) for text in texts], (decimal, thousands)


BESIDES = ["°C", "%", "$", "-", "()", "\u2212", "m³/h"]


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_what_stands_beside_a_number_is_the_same(connection, data):
    beside = data.draw(st.sampled_from(BESIDES))
    around = st.sampled_from(["", " ", "\u00a0", "-", "(", ")", *BESIDES])
    texts = data.draw(st.lists(st.tuples(around, around, NUMBERS, around, around).map("".join), min_size=1))
    for type_, (decimal, thousands) in ((FieldType.NUMBER, (".", ",")), (FieldType.INTEGER, (",", ""))):
        found = asked(connection, texts, sql_of("c", type_, decimal, thousands, beside))
        assert found == [read_cell(text, type_, decimal, thousands, beside) for text in texts]


CLOCKS = st.from_regex(r"([ T]{1,2}[0-2]?[0-9]:[0-5][0-9](:[0-5][0-9]([.,][0-9]{1,7})?)?)?", fullmatch=True)
OFFSETS = st.sampled_from(["", "", "Z", "+02", "-0330", "+05:30", " UTC", " +01:00", "z", " Europe/Berlin"])
DATES = st.sampled_from(
    ["2024-05-01", "2024-13-01", "0099-01-01", "2024-02-30", "24-05-01", "epoch", "infinity", "1999-12-31"]
)
GERMAN = st.from_regex(
    r"[0-3]?[0-9]\.[01]?[0-9]\.(20)?[0-9]{2} [0-2]?[0-9]:[0-9]{1,2}(:[0-6][0-9])?( [AP]M)?", fullmatch=True
)


def _micros(form):
    found = fast_time("c", form)
    return f"CASE WHEN {is_our_time(found, form)} THEN {found} END"


@settings(max_examples=examples(100), deadline=None)
@given(text=st.builds(lambda *parts: "".join(parts), DATES, CLOCKS, OFFSETS))
@example(text="2024-05-01 24:00:00")
def test_what_duckdb_reads_as_iso_is_what_it_says(connection, text):
    """It may leave a text to Python, but it never reads one otherwise."""
    (micros,) = asked(connection, [text], _micros("iso"))
    said = time_reader("iso")(text)
    assert micros is None or (said is not None and micros == said[0])


@settings(max_examples=examples(100), deadline=None)
@given(
    text=GERMAN,
    form=st.sampled_from(
        ["%d.%m.%Y %H:%M", "%d.%m.%y %H:%M:%S", "%d.%m.%Y %I:%M %p", "%d.%m.%y %H:%M:%S.%f"]
    ),
)
def test_what_duckdb_reads_by_a_pattern_is_what_it_says(connection, text, form):
    (micros,) = asked(connection, [text], _micros(form))
    said = time_reader(form)(text)
    assert micros is None or (said is not None and micros == said[0])


@settings(max_examples=examples(100), deadline=None)
@given(text=st.one_of(NUMBERS, WORDS), form=st.sampled_from(["epoch_s", "epoch_ms", "epoch_us"]))
def test_what_duckdb_counts_is_what_it_says(connection, text, form):
    (micros,) = asked(connection, [text], _micros(form))
    said = time_reader(form)(text)
    assert micros is None or (said is not None and micros == said[0])
