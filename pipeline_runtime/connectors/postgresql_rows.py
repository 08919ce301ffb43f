"""The statements by which PostgresqlIngester reads, and where it stands. Pure.

up to where everything is final   ->   who may still write below that   ->   rows, when all of them ended
   (end_statement)                       (writers_statement)                   (page_statement)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from psycopg import sql

from pipeline_runtime.connectors.intake import RECORD_BYTES_MAX
from pipeline_runtime.connectors.postgresql import table_name
from pipeline_runtime.connectors.postgresql_tables import SqlColumn
from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.postgresql_in import TIME, PostgresqlInParams, TableColumn

PAGE_ROWS = 2000
PAGE_BYTES = 2 << 20
"""A page ends with the row that reaches it: all of it is one transaction of Kafka."""
_QUOTED = 500

_TIMES = ("timestamptz", "timestamp")
RISING = frozenset({"int2", "int4", "int8", "numeric", "text", "varchar", *_TIMES})
"""The types of a rising column, by their names in pg_type."""
_NUMBERS = frozenset({"int2", "int4", "int8", "numeric", "float4", "float8"})
READ_AS: Mapping[FieldType, frozenset[str]] = {
    FieldType.INTEGER: frozenset({"int2", "int4", "int8", "numeric"}),
    FieldType.NUMBER: _NUMBERS,
    FieldType.BOOLEAN: frozenset({"bool"}),
    FieldType.TIMESTAMP: frozenset({*_TIMES, "date"}),
}
"""The types of the database that may be read as a type of Fogline. Each can be read as text."""
_WITH_NAN = frozenset({"numeric", "float4", "float8"})


@dataclass(frozen=True)
class SqlSequence:
    """A sequence that gives a column its numbers."""

    oid: int
    cache: int
    step: int
    cycles: bool


@dataclass(frozen=True)
class Table:
    """What of a table decides how it is read."""

    oid: int
    kind: str  # as in pg_class.relkind
    columns: tuple[SqlColumn, ...]
    not_null: bool  # the rising column
    unique: bool  # the rising column alone
    sequences: tuple[SqlSequence, ...]  # of the rising column

    def column(self, name: str) -> SqlColumn | None:
        return next((each for each in self.columns if each.name == name), None)


@dataclass(frozen=True)
class At:
    """Where it stands. `of`: the table and the column. `key`: the last value that was read, as text. `seen`:
    of the rows with this value, how many were read, if there may be more of them; else 0."""

    of: str
    key: str | None = None
    seen: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def position_of(kept: Any, params: PostgresqlInParams) -> At | None:
    """Returns the position that was kept, or None if there is none of this table and column."""
    of = name_of(params)
    if not isinstance(kept, dict) or kept.get("of") != of:
        return None
    return At(of, kept["key"], kept["seen"])


def name_of(params: PostgresqlInParams) -> str:
    return f'"{params.namespace}"."{params.table}"."{params.rising}"'


# -- who may still write below what was read -----------------------------------------------------------

_OWN_DATABASE = "(SELECT oid FROM pg_database WHERE datname = current_database())"

_OF_TABLE = """
WITH RECURSIVE below(oid) AS (
  SELECT {table}::oid UNION SELECT i.inhrelid FROM pg_inherits i JOIN below b ON i.inhparent = b.oid
), above(oid) AS (
  SELECT {table}::oid UNION SELECT i.inhparent FROM pg_inherits i JOIN above a ON i.inhrelid = a.oid
)
SELECT DISTINCT l.virtualtransaction, l.pid FROM pg_locks l
WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock' AND l.granted
  AND l.pid IS DISTINCT FROM pg_backend_pid() AND l.database = {database}
  AND (l.relation IN (SELECT oid FROM below UNION ALL SELECT oid FROM above)
       OR l.relation = ANY ({sequences}))
"""

_OF_DATABASE = """
SELECT l.virtualtransaction, l.pid FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND l.granted
  AND l.pid <> pg_backend_pid() AND a.datid = {database} AND a.usesysid IS NOT NULL
UNION ALL
SELECT '-1/' || transaction::text, NULL FROM pg_prepared_xacts WHERE database = current_database()
"""
_PREPARED = "-1/"

Writers = Mapping[str, int | None]
"""Open transactions: their names in pg_locks, and the processes that have them."""


def writers_statement(table: Table) -> sql.Composed:
    """Returns the statement for the open transactions that may write a row below one that is there.

    A number of a sequence is drawn in a statement that has locked the table, or by a call that has locked the
    sequence, until its transaction ends. A time or a number of another origin may be older than any lock of
    its transaction. Vacuum has no user, and writes no row.
    """
    database = sql.SQL(_OWN_DATABASE)
    if not table.sequences:
        return sql.SQL(_OF_DATABASE).format(database=database)
    oids = sql.Literal([each.oid for each in table.sequences])
    return sql.SQL(_OF_TABLE).format(
        table=sql.Literal(table.oid), database=database, sequences=sql.SQL("{}::oid[]").format(oids)
    )


def still_open(first: Writers, now: Writers) -> Writers:
    """Returns those of the first look that are open now. One that is prepared has another name than before,
    so each of those counts."""
    return {name: pid for name, pid in now.items() if name in first or name.startswith(_PREPARED)}


# -- up to where, and the rows --------------------------------------------------------------------------


def end_statement(params: PostgresqlInParams, table: Table) -> sql.Composed:
    """Returns the statement for the greatest value, or of a time for the latest moment, that is read when all
    transactions that are open then have ended."""
    column = table.column(params.rising)
    assert column is not None
    if column.base in _TIMES:
        local = sql.SQL(" AT TIME ZONE {}").format(sql.Literal(params.time_zone))
        return sql.SQL("SELECT ((clock_timestamp() - make_interval(secs => {})){})::text").format(
            sql.Literal(params.late_s), local if column.base == "timestamp" else sql.SQL("")
        )
    return sql.SQL("SELECT (SELECT t.{key}::text FROM {table} AS t ORDER BY t.{key} DESC LIMIT 1)").format(
        key=sql.Identifier(params.rising), table=table_name(params.namespace, params.table)
    )


Row = tuple[str, str, int]
"""The rising value as text, the record, and how many rows the page had before it was cut."""


def page_statement(params: PostgresqlInParams, table: Table, at: At, end: str, rows_max: int) -> sql.Composed:
    """Returns the statement for the next rows up to `end`, in order: at most so many, and about PAGE_BYTES.

    A record is {column: value}, with the event time under TIME.
    """
    column = table.column(params.rising)
    assert column is not None
    key, until = sql.SQL("t.{}").format(sql.Identifier(params.rising)), _value(end, column)
    parts = [sql.SQL("{} <= {}").format(key, until)]
    if at.key is not None:
        parts.append(
            sql.SQL("{} {} {}").format(key, sql.SQL("=" if at.seen else ">"), _value(at.key, column))
        )
    return sql.SQL(
        "SELECT k::text, record, of_page FROM ("
        " SELECT k, record, row_number() OVER w AS place, count(*) OVER () AS of_page,"
        "  sum(octet_length(record)) OVER (w ROWS UNBOUNDED PRECEDING) - octet_length(record) AS before"
        "  FROM (SELECT {key} AS k, {record} AS record FROM {table} AS t WHERE {where}"
        "   ORDER BY {order} LIMIT {limit} OFFSET {seen}) AS page"
        "  WINDOW w AS (ORDER BY k, record)) AS counted"
        " WHERE before < {bytes} ORDER BY place"
    ).format(
        key=key,
        record=_record(params, table),
        table=table_name(params.namespace, params.table),
        where=sql.SQL(" AND ").join(parts),
        # Rows of one time come in the order of their texts, which is the same in each page.
        order=sql.SQL("1") if table.unique else sql.SQL("1, 2"),
        limit=sql.Literal(rows_max),
        seen=sql.Literal(at.seen),
        bytes=sql.Literal(PAGE_BYTES),
    )


def after(at: At, rows: Sequence[Row], rows_max: int, *, unique: bool) -> tuple[At, bool]:
    """Returns where it stands after a page, and whether there may be more rows up to the same end."""
    if not rows:
        # No more rows with that value: the next page is of the values behind it.
        return replace(at, seen=0), at.seen > 0
    key = rows[-1][0]
    cut = len(rows) < rows[-1][2] or rows[-1][2] == rows_max
    if unique:
        return At(at.of, key), cut
    if not cut:
        return At(at.of, key), at.seen > 0
    same = sum(1 for each in rows if each[0] == key)
    return At(at.of, key, same + (at.seen if key == at.key else 0)), True


def _value(text: str, column: SqlColumn) -> sql.Composed:
    return sql.SQL("{}::{}").format(sql.Literal(text), sql.SQL(column.base))


def _record(params: PostgresqlInParams, table: Table) -> sql.Composed:
    parts = [
        sql.SQL("{} AS {}").format(_expression(each, table, params.time_zone), sql.Identifier(each.name))
        for each in params.columns
    ]
    if params.time_column is not None:
        column = table.column(params.time_column)
        assert column is not None
        parts.append(sql.SQL("{} AS {}").format(_time(column, params.time_zone), sql.Identifier(TIME)))
    return sql.SQL(
        "(SELECT CASE WHEN octet_length(j) <= {most} THEN j"
        " ELSE octet_length(j) || {words} || left(j, {quoted}) END"
        " FROM (SELECT row_to_json(o)::text AS j FROM (SELECT {parts}) AS o) AS made)"
    ).format(
        most=sql.Literal(RECORD_BYTES_MAX),
        words=sql.Literal(f" bytes are too many (at most {RECORD_BYTES_MAX}); it begins with: "),
        quoted=sql.Literal(_QUOTED),
        parts=sql.SQL(", ").join(parts),
    )


def _expression(wanted: TableColumn, table: Table, zone: str) -> sql.Composable:
    column = table.column(wanted.of_table)
    assert column is not None
    name = sql.SQL("t.{}").format(sql.Identifier(column.name))
    if wanted.type is FieldType.STRING:
        return sql.SQL("{}::text").format(name)
    if wanted.type is FieldType.TIMESTAMP:
        return _time(column, zone)
    return sql.SQL("nullif({}, 'NaN')").format(name) if column.base in _WITH_NAN else name


def _time(column: SqlColumn, zone: str) -> sql.Composed:
    name = sql.SQL("t.{}").format(sql.Identifier(column.name))
    if column.base == "timestamptz":
        return sql.SQL("{} AT TIME ZONE 'UTC'").format(name)
    return sql.SQL("{}::timestamp AT TIME ZONE {} AT TIME ZONE 'UTC'").format(name, sql.Literal(zone))


# -- what does not fit -----------------------------------------------------------------------------------

_KINDS = {"v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence"}


def faults(params: PostgresqlInParams, table: Table) -> list[str]:
    """Returns, in words, why the table cannot be read so."""
    named = f'"{params.namespace}"."{params.table}"'
    if table.kind not in ("r", "p"):
        kind = _KINDS.get(table.kind, "no table")
        return [f"{named} is {kind}, and nobody can see who writes to it. Name the table itself"]
    return [*_rising_faults(params, table, named), *_column_faults(params, table, named)]


def _rising_faults(params: PostgresqlInParams, table: Table, named: str) -> list[str]:
    column, name = table.column(params.rising), f'the column "{params.rising}" of {named}'
    if column is None:
        return [_missing(params.rising, table, named)]
    if column.base not in RISING:
        return [f"{name} is {column.type}: a rising column is a whole number, numeric, a text or a time"]
    found = []
    if not table.not_null:
        found.append(
            f"{name} may be empty, and a row without a value would not come in. Make it NOT NULL (ALTER "
            f'TABLE {named} ALTER COLUMN "{params.rising}" SET NOT NULL), or choose another column'
        )
    if column.base not in _TIMES and not table.unique:
        found.append(
            f"{name} has no unique index of its own, so a row could come with a value that was read. Make "
            f'one (CREATE UNIQUE INDEX ON {named} ("{params.rising}")), or choose another column'
        )
    for each in table.sequences:
        if each.cache != 1:
            found.append(
                f"the sequence of {name} gives each session {each.cache} numbers at a time, so they do not "
                "rise. Set CACHE 1 (ALTER SEQUENCE), or choose another column"
            )
        if each.step < 0 or each.cycles:
            found.append(f"the sequence of {name} falls or begins again, so its numbers do not rise")
    return found


def _column_faults(params: PostgresqlInParams, table: Table, named: str) -> list[str]:
    wanted: list[tuple[str, FieldType]] = [(each.of_table, each.type) for each in params.columns]
    if params.time_column is not None:
        wanted.append((params.time_column, FieldType.TIMESTAMP))
    found = []
    for name, type in wanted:
        column = table.column(name)
        if column is None:
            found.append(_missing(name, table, named))
        elif type is not FieldType.STRING and column.base not in READ_AS[type]:
            found.append(f'the column "{name}" of {named} is {column.type}, and is not read as {type.words}')
    return found


def _missing(name: str, table: Table, named: str) -> str:
    columns: Collection[str] = [each.name for each in table.columns]
    return f'the table {named} has no column "{name}" (it has {", ".join(columns)})'
