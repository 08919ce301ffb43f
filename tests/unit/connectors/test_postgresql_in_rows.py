"""Where a reader of a table stands, whom it waits for, and what does not fit."""

from __future__ import annotations

import random
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


def params(**fields: Any) -> PostgresqlInParams:
    given = {"connection": "d", "table": "t", "rising": "id", "columns": [{"name": "v"}], **fields}
    return PostgresqlInParams.model_validate(given)


def table(**fields: Any) -> Table:
    columns = (column("id", "int8"), column("v", "float8"), column("at", "timestamptz"), column("d", "date"))
    given = {"oid": 1, "kind": "r", "columns": columns, "not_null": True, "unique": True, "sequences": ()}
    return Table(**{**given, **fields})


@pytest.mark.parametrize("seed", range(30))
def test_pages_of_any_size_give_each_row_once_also_of_one_time(seed: int) -> None:
    """A database that gives the rows of a page, cut anywhere, beside the rows as a list."""
    chance = random.Random(seed)
    rows = sorted((f"{chance.randrange(4)}", f"{n % 5}") for n in range(chance.randrange(40)))
    limit, at, more, got = chance.randrange(1, 8), At("t"), True, list[str]()
    while more:
        if at.seen:
            wanted = [each for each in rows if each[0] == at.key][at.seen :]
        else:
            wanted = [each for each in rows if at.key is None or each[0] > at.key]
        of_page = wanted[:limit]
        cut = of_page[: chance.randrange(1, limit + 1)]
        page: list[Row] = [(key, record, len(of_page)) for key, record in cut]
        at, more = after(at, page, limit, unique=False)
        got += [record for _, record, _ in page]
    assert got == [record for _, record in rows]
    assert at.seen == 0


def test_a_position_counts_for_its_own_table_and_column() -> None:
    at = At(name_of(params()), "7", 0)
    assert position_of(at.to_json(), params()) == at
    assert position_of(at.to_json(), params(rising="other")) is None
    assert position_of(at.to_json(), params(namespace="other")) is None
    assert position_of(None, params()) is None


def test_who_began_later_is_not_waited_for_but_what_is_prepared_is() -> None:
    first = {"3/1": 10, "4/7": 11}
    assert still_open(first, {"4/7": 11, "5/1": 12}) == {"4/7": 11}
    assert still_open(first, {"-1/900": None, "5/1": 12}) == {"-1/900": None}
    assert still_open(first, {"5/1": 12}) == {}


def test_names_and_values_are_quoted() -> None:
    odd = params(table='t"x', columns=[{"name": 'v"; DROP', "from": "v", "type": "number"}])
    said = page_statement(odd, table(), At("t", "5'; DROP"), "9", 10).as_string()
    assert 'nullif(t."v", \'NaN\') AS "v""; DROP"' in said
    assert 'FROM "public"."t""x" AS t WHERE t."id" <= \'9\'::int8 AND t."id" > \'5\'\'; DROP\'::int8' in said
    assert said.endswith("ORDER BY place")


def test_a_time_ends_so_long_ago_in_its_zone_and_waits_for_all_transactions() -> None:
    plain = (column("id", "timestamp"), column("v", "float8"))
    asked = params(late_s=60, time_zone="Europe/Berlin")
    said = end_statement(asked, table(columns=plain, unique=False)).as_string()
    assert said == (
        "SELECT ((clock_timestamp() - make_interval(secs => 60.0)) AT TIME ZONE 'Europe/Berlin')::text"
    )
    assert "virtualxid" in writers_statement(table()).as_string()
    numbered = table(sequences=(SqlSequence(5, 1, 1, False),))
    assert "RowExclusiveLock" in writers_statement(numbered).as_string()


def test_what_does_not_fit_is_said_in_words() -> None:
    def said(found: Table, **fields: Any) -> str:
        return "; ".join(faults(params(**fields), found))

    assert said(table()) == ""
    assert said(table(unique=False), rising="at") == ""
    assert 'has no column "x" (it has id, v, at, d)' in said(table(), rising="x")
    assert 'has no column "x"' in said(table(), columns=[{"name": "x"}])
    assert "a rising column is a whole number" in said(table(), rising="v")
    assert "a rising column is a whole number" in said(table(), rising="d")
    assert "may be empty" in said(table(not_null=False))
    assert "no unique index of its own" in said(table(unique=False))
    assert "gives each session 20 numbers" in said(table(sequences=(SqlSequence(5, 20, 1, False),)))
    assert "falls or begins again" in said(table(sequences=(SqlSequence(5, 1, -1, False),)))
    assert "falls or begins again" in said(table(sequences=(SqlSequence(5, 1, 1, True),)))
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
