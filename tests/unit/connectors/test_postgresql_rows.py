"""Rows as statements of PostgreSQL, and what does not fit a table."""

from __future__ import annotations

import os
import random
import ssl
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import ValidationError

from pipeline_runtime.connectors.postgresql import options_of, refusal
from pipeline_runtime.connectors.postgresql_out import arrays, insert_statement, newest_of, table_faults
from pipeline_runtime.connectors.postgresql_tables import SqlColumn
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.postgresql import PostgresqlConnection, PostgresqlOut, PostgresqlOutParams
from pipeline_runtime.operators.sdk import SchemaMismatch


def column(name: str, base: str, **fields: Any) -> SqlColumn:
    given = {"type": base, "cast": base, "enum": False, "must_be_given": False, "made": False, **fields}
    return SqlColumn(name=name, base=base, **given)


def params(**fields: Any) -> PostgresqlOutParams:
    return PostgresqlOutParams.model_validate({"connection": "d", "table": "t", **fields})


@pytest.mark.parametrize("seed", range(20))
def test_the_last_row_of_each_key_is_what_one_after_the_other_would_leave(seed: int) -> None:
    chance = random.Random(seed)
    rows = [{"k": chance.randrange(5), "j": chance.choice("ab"), "v": n} for n in range(30)]
    table: dict[Any, Any] = {}
    for row in rows:
        table[row["k"], row["j"]] = row
    found = newest_of(rows, ["k", "j"])
    assert {(row["k"], row["j"]): row for row in found} == table
    assert len(found) == len(table)
    assert newest_of(rows, []) == rows


def test_names_are_quoted_and_never_a_part_of_the_statement() -> None:
    target = {'a"; DROP': FieldType.INTEGER, "b": FieldType.STRING}
    columns = [column('a"; DROP', "int8"), column("b", "jsonb")]
    said = insert_statement(params(table='t"x', keys=['a"; DROP']), target, columns).as_string()
    assert said == (
        'INSERT INTO "public"."t""x" ("a""; DROP", "b") SELECT "c0", "c1"::jsonb'
        ' FROM unnest(%s::bigint[], %s::text[]) AS given ("c0", "c1")'
        ' ON CONFLICT ("a""; DROP") DO UPDATE SET "b" = excluded."b"'
    )


def test_whole_numbers_in_a_column_of_numbers_are_numbers() -> None:
    [values] = arrays([{"v": 1}, {"v": 0.5}, {"v": None}], {"v": FieldType.NUMBER})
    assert [type(value) for value in values] == [float, float, type(None)]


def test_a_table_that_fits_has_no_faults() -> None:
    target = {"n": FieldType.INTEGER, "at": FieldType.TIMESTAMP}
    columns = [column("n", "int4"), column("at", "timestamptz"), column("id", "int8", made=True)]
    assert table_faults(params(keys=["n"]), target, columns, [frozenset({"n"})]) == []
    assert table_faults(params(), target, columns, []) == []
    assert "fills the column" in table_faults(params(), {"id": FieldType.INTEGER}, columns, [])[0]


def test_names_that_postgresql_would_cut_are_refused() -> None:
    with pytest.raises(ValidationError, match="63 bytes"):
        params(table="ü" * 32)
    schema = StreamSchema(fields=(Field(name="ü" * 32, type=FieldType.STRING),))
    with pytest.raises(SchemaMismatch, match="63 bytes"):
        PostgresqlOut(params()).output_schema({"in": schema})


@pytest.mark.parametrize(
    ("state", "about_the_row"),
    [
        *[(state, True) for state in ("22003", "23505", "54000", "54001", "P0001", "P0004")],
        *[(state, False) for state in ("57014", "42P01", "53100")],
    ],
)
def test_an_error_about_a_row_makes_a_dead_letter_and_another_one_lets_it_wait(
    state: str, about_the_row: bool
) -> None:
    error = psycopg.errors.lookup(state)("no")
    assert refusal(error) == ("the database refuses it: no" if about_the_row else None)


def test_a_column_that_cuts_texts_does_not_hold_them() -> None:
    [fault] = table_faults(params(), {"n": FieldType.STRING}, [column("n", "name")], [])
    assert 'the column "n" of "public"."t" is name' in fault


def test_the_authorities_of_the_system_are_those_that_python_finds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.setenv(name, "")  # so that it is as before after the test
        monkeypatch.delenv(name)
    known = ssl.get_default_verify_paths()
    given = {"host": "h", "database": "d", "user": "u", "tls": True}
    assert options_of(PostgresqlConnection.model_validate(given), "e", tmp_path)["sslrootcert"] == "system"
    assert os.environ.get("SSL_CERT_FILE") == known.cafile
    assert os.environ.get("SSL_CERT_DIR") == known.capath
    assert known.cafile or known.capath
