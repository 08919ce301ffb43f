"""A record's text is JSON that reads as what it was made of."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from hypothesis import given, strategies as st

from pipeline_runtime.batch.decode import arrow_schema, decode
from pipeline_runtime.kafka.json_rows import finite_rows, json_texts
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema

SCHEMA = StreamSchema(
    fields=(
        Field(name='te"xt', type=FieldType.STRING),
        Field(name="whole", type=FieldType.INTEGER),
        Field(name="number", type=FieldType.NUMBER),
        Field(name="true", type=FieldType.BOOLEAN),
        Field(name="time", type=FieldType.TIMESTAMP),
    )
)
ROWS = st.lists(
    st.tuples(
        st.text(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        st.integers(-(10**16), 10**16).map(
            lambda us: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)
        ),
    ).flatmap(lambda row: st.tuples(*(st.sampled_from([each, None]) for each in row))),
    max_size=20,
)


def table_of(rows: list[tuple[object, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in SCHEMA.fields]
    return pa.Table.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, arrow_schema(SCHEMA), strict=True)],
        schema=arrow_schema(SCHEMA),
    )


@given(ROWS)
def test_what_is_written_reads_as_it_was(rows: list[tuple[object, ...]]) -> None:
    table = table_of(rows)
    texts = json_texts(table, SCHEMA).to_pylist()
    again = decode(pa.array(texts, pa.binary()), SCHEMA)
    assert again.rejects == ()
    assert again.columns.to_pylist() == table.to_pylist()
    for text, row in zip(texts, table.to_pylist(), strict=True):
        number = json.loads(text)["number"]
        assert type(number) is type(row["number"]), "1.0 is not written as 1"


def test_rows_with_a_number_that_json_does_not_have_are_told() -> None:
    table = table_of([("a", 1, value, True, None) for value in (1.5, float("nan"), float("inf"), None)])
    finite = finite_rows(table, SCHEMA)
    assert finite is not None
    assert finite.to_pylist() == [True, False, False, True]
    assert finite_rows(table.slice(0, 1), SCHEMA) is None


def test_rows_without_columns_are_empty_objects() -> None:
    table = pa.table({"_key": ["a", "b"]})
    assert json_texts(table, StreamSchema(fields=())).to_pylist() == ["{}", "{}"]
