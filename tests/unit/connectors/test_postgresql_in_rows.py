"""Where a reader of a table stands, whom it waits for, and what does not fit."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pipeline_runtime.connectors.postgresql_rows import (
    At,
    Row,
    SqlSequence,
    Table,
    after,
    end_statement,
    faults,
    lost_below,
    name_of,
    page_statement,
    position_of,
    still_open,
    writers_statement,
)
from pipeline_runtime.connectors.postgresql_tables import SqlColumn
from pipeline_runtime.operators.postgresql_in import PostgresqlIn, PostgresqlInParams
from pipeline_runtime.operators.sdk import SchemaMismatch


def column(name: str, base: str) -> SqlColumn:
    return SqlColumn(name=name, type=base, base=base, cast=base, enum=False, must_be_given=False, made=False)


def sequence(**fields: Any) -> SqlSequence:
    return SqlSequence(**{"oid": 5, "cache": 1, "step": 1, "cycles": False, **fields})


def params(**fields: Any) -> PostgresqlInParams:
    given = {"connection": "d", "table": "t", "rising": "id", "columns": [{"name": "v"}], **fields}
    return PostgresqlInParams.model_validate(given)


def table(**fields: Any) -> Table:
    columns = (column("id", "int8"), column("v", "float8"), column("at", "timestamptz"), column("d", "date"))
    unique = (frozenset({"id"}), frozenset({"at", "id"}))
    given = {"oid": 1, "kind": "r", "columns": columns, "unique": unique, "sequences": ()}
    return Table(**{**given, "not_null": frozenset({"id", "at"}), **fields})


def test_a_page_ends_at_its_last_row_and_says_whether_there_may_be_more() -> None:
    at = At("t", 1, "5", "a")
    assert after(at, [], 3) == (at, False)
    whole: list[Row] = [("6", "b", "{}", 2), ("6", "c", "{}", 2)]
    assert after(at, whole, 3) == (At("t", 1, "6", "c"), False)
    assert after(at, whole, 2) == (At("t", 1, "6", "c"), True)
    assert after(at, whole[:1], 3) == (At("t", 1, "6", "b"), True)


def test_a_position_counts_for_its_own_table_and_columns() -> None:
    at = At(name_of(params()), 1, "7")
    assert position_of(at.to_json(), params()) == at
    assert position_of(at.to_json(), params(rising="other")) is None
    assert position_of(at.to_json(), params(namespace="other")) is None
    assert position_of(at.to_json(), params(tie_column="v")) is None
    assert position_of(None, params()) is None


def test_rows_below_the_position_are_lost_if_the_table_or_its_numbers_begin_again() -> None:
    at = At("t", 1, "7")
    assert lost_below(at, table()) is None
    assert "made again" in (lost_below(at, table(oid=2)) or "")
    assert lost_below(At("t", 1), table(oid=2)) is None
    assert "begun again (the last one is 3)" in (lost_below(at, table(sequences=(sequence(last=3),))) or "")
    assert lost_below(at, table(sequences=(sequence(last=7),))) is None
    assert lost_below(at, table(sequences=(sequence(),))) is None


def test_who_began_later_is_not_waited_for_also_if_such_are_prepared_all_the_time() -> None:
    first = {"3/1": 10, "4/7": 11, "-1/800": None}
    assert still_open(first, first, {"4/7": 11, "5/1": 12, "3/1": 10}) == {"4/7": 11, "3/1": 10}
    assert still_open(first, {"4/7": 11}, {"4/7": 11, "-1/900": None}) == {"4/7": 11}
    assert still_open(first, {"4/7": 11}, {"-1/900": None, "5/1": 12}) == {"-1/900": None}
    assert still_open(first, {"-1/900": None}, {"-1/901": None}) == {}
    assert still_open(first, {"4/7": 11}, {"-1/800": None}) == {}


def test_names_and_values_are_quoted() -> None:
    odd = params(table='t"x', columns=[{"name": 'v"; DROP', "from": "v", "type": "number"}])
    said = page_statement(odd, table(), At("t", 1, "5'; DROP"), "9", 10).as_string()
    assert 'ELSE t."v" END AS "v""; DROP"' in said
    assert (
        'FROM "public"."t""x" AS t WHERE t."id" <= \'9\'::int8 AND t."id" > \'5\'\'; DROP\'::int8 AND (SELECT'
        in said
    )
    assert said.endswith("ORDER BY place")


def test_a_time_ends_so_long_ago_in_its_zone_and_waits_for_all_transactions() -> None:
    plain = (column("id", "timestamp"), column("v", "float8"))
    asked = params(late_s=60, time_zone="Europe/Berlin")
    said = end_statement(asked, table(columns=plain)).as_string()
    assert said.endswith(
        "((clock_timestamp() - make_interval(secs => 60.0)) AT TIME ZONE 'Europe/Berlin')::text"
    )
    assert "virtualxid" in writers_statement(table()).as_string()
    # A program may have made a number of its own, or have drawn it before.
    assert "virtualxid" in writers_statement(table(sequences=(sequence(),))).as_string()
    numbered = table(sequences=(sequence(),), numbered=True)
    assert "RowExclusiveLock" in writers_statement(numbered).as_string()


def test_what_does_not_fit_is_said_in_words() -> None:
    def said(found: Table, **fields: Any) -> str:
        return "; ".join(faults(params(**fields), found))

    assert said(table()) == ""
    assert said(table(), rising="at", tie_column="id") == ""
    assert said(table(unique=(frozenset({"at"}),)), rising="at") == ""
    assert "several rows may have one time" in said(table(), rising="at")
    assert 'has no column "x"' in said(table(), rising="at", tie_column="x")
    assert "is float8: a column that tells" in said(table(), rising="at", tie_column="v")
    assert "may have the same value" in said(table(unique=()), rising="at", tie_column="id")
    assert "may be empty" in said(table(not_null=frozenset({"at"})), rising="at", tie_column="id")
    assert "is no time" in said(table(), tie_column="at")
    assert 'has no column "x" (it has id, v, at, d)' in said(table(), rising="x")
    assert 'has no column "x"' in said(table(), columns=[{"name": "x"}])
    assert "a rising column is a whole number" in said(table(), rising="v")
    assert "a rising column is a whole number" in said(table(), rising="d")
    assert "may be empty" in said(table(not_null=frozenset()))
    assert "no unique index of its own" in said(table(unique=()))
    assert "gives each session 20 numbers" in said(table(sequences=(sequence(cache=20),)))
    assert "falls or begins again" in said(table(sequences=(sequence(step=-1),)))
    assert "falls or begins again" in said(table(sequences=(sequence(cycles=True),)))
    assert "rises by 50" in said(table(sequences=(sequence(step=50),)))
    assert "in another database" in said(table(foreign=True))
    assert "other tables inherit" in said(table(inherited=True))
    assert "logical replication" in said(table(subscribed=True))
    assert "is a view" in said(table(kind="v"))
    assert "is not read as a whole number" in said(table(), columns=[{"name": "v", "type": "integer"}])
    assert "is not read as a time" in said(table(), time_column="v")
    assert said(table(), time_column="d") == ""


def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(ValidationError, match="is no time zone"):
        params(time_zone="Mars/Base")
    with pytest.raises(ValidationError, match="late_s"):
        params(late_s=0)
    twice = PostgresqlIn(params(columns=[{"name": "v"}, {"name": "v"}], key="x"))
    with pytest.raises(SchemaMismatch) as caught:
        twice.output_schema({})
    assert len([caught.value, *caught.value.more]) == 2
