"""The SQL statements of PostgresqlIngester, and its position. Pure.

up to where everything is final   ->   who may still write below that   ->   rows, when all of them ended
   (end_statement)                       (writers_statement)                   (page_statement)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
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
_TEXTS = frozenset({"text", "varchar"})
_TIES = RISING | {"uuid"}
"""The types of a column that tells rows of one time apart."""


@dataclass(frozen=True)
class SqlSequence:
    """A sequence that gives a column its numbers."""

    oid: int
    cache: int
    step: int
    cycles: bool
    last: int | None = None  # the number that it gave last, if that is known


@dataclass(frozen=True)
class Table:
    """What of a table decides how it is read."""

    oid: int
    kind: str  # as in pg_class.relkind
    columns: tuple[SqlColumn, ...]
    not_null: frozenset[str]  # names of columns
    unique: tuple[frozenset[str], ...]  # the columns of each unique index
    sequences: tuple[SqlSequence, ...]  # of the rising column
    numbered: bool = False  # the rising column is GENERATED ALWAYS AS IDENTITY
    foreign: bool = False  # it, or a partition, is in another database
    inherited: bool = False  # other tables inherit from it that are no partitions
    subscribed: bool = False  # logical replication writes to it, or to a partition

    def column(self, name: str) -> SqlColumn | None:
        return next((each for each in self.columns if each.name == name), None)


@dataclass(frozen=True)
class At:
    """Where it stands. `of`: the names of the table and the columns. `oid`: of the table. `key`: the rising
    value of the last row that was read, as text. `tie`: its value in the tie column, if there is one."""

    of: str
    oid: int
    key: str | None = None
    tie: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def position_of(kept: Any, params: PostgresqlInParams) -> At | None:
    """Returns the position that was kept, or None if there is none of this table and these columns."""
    of = name_of(params)
    if not isinstance(kept, dict) or kept.get("of") != of:
        return None
    return At(of, kept["oid"], kept["key"], kept["tie"])


def name_of(params: PostgresqlInParams) -> str:
    parts = [params.namespace, params.table, params.rising]
    return ".".join(f'"{each}"' for each in parts + ([params.tie_column] if params.tie_column else []))


def lost_below(at: At, table: Table) -> str | None:
    """Returns, in words, why rows up to the position do not come in, or None if they came in."""
    if at.key is None:
        return None
    if at.oid != table.oid:
        return "The table was made again"
    lasts = [each.last for each in table.sequences if each.last is not None]
    if lasts and at.key.isdecimal() and max(lasts) < int(at.key):
        return f"The numbers of the table have begun again (the last one is {max(lasts)})"
    return None


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

    A number that is GENERATED ALWAYS is drawn in a statement that has locked the table, or by a call that has
    locked the sequence, until its transaction ends. A time or a number of another origin may be older than
    any lock of its transaction: a program may have made it. Vacuum has no user, and writes no row.
    """
    database = sql.SQL(_OWN_DATABASE)
    if not table.numbered:
        return sql.SQL(_OF_DATABASE).format(database=database)
    oids = sql.Literal([each.oid for each in table.sequences])
    return sql.SQL(_OF_TABLE).format(
        table=sql.Literal(table.oid), database=database, sequences=sql.SQL("{}::oid[]").format(oids)
    )


def still_open(first: Writers, waiting: Writers, now: Writers) -> Writers:
    """Returns whom to wait for after a look. `first`: who was open at the first look. `waiting`: of them, who
    was open at the look before.

    One of `waiting` that is open no more has ended, or was prepared and may have another name now. Then each
    transaction counts that was prepared after the first look.
    """
    vanished = any(name not in now and not name.startswith(_PREPARED) for name in waiting)
    return {
        name: pid
        for name, pid in now.items()
        if name in waiting or (vanished and name.startswith(_PREPARED) and name not in first)
    }


# -- up to where, and the rows --------------------------------------------------------------------------


def end_statement(params: PostgresqlInParams, table: Table) -> sql.Composed:
    """Returns the statement for the oid of the table, and for the greatest value, or of a time for the latest
    moment, that is read when all transactions that are open then have ended."""
    column = table.column(params.rising)
    assert column is not None
    if column.base in _TIMES:
        local = sql.SQL(" AT TIME ZONE {}").format(sql.Literal(params.time_zone))
        end = sql.SQL("((clock_timestamp() - make_interval(secs => {})){})::text").format(
            sql.Literal(params.late_s), local if column.base == "timestamp" else sql.SQL("")
        )
    else:
        end = sql.SQL("(SELECT t.{key}::text FROM {table} AS t ORDER BY t.{key} DESC LIMIT 1)").format(
            key=sql.Identifier(params.rising), table=table_name(params.namespace, params.table)
        )
    return sql.SQL("SELECT {}::bigint, {}").format(_oid_now(params), end)


def any_statement(params: PostgresqlInParams, table: Table, at: At, end: str) -> sql.Composed:
    """Returns the statement that says whether there is a row behind `at`, up to `end`."""
    return sql.SQL("SELECT EXISTS (SELECT FROM {table} AS t WHERE {where})").format(
        table=table_name(params.namespace, params.table), where=_behind(params, table, at, end)
    )


Row = tuple[str, str | None, str, int]
"""The rising value and that of the tie column as text, the record, and how many rows the page had before it
was cut."""


def page_statement(params: PostgresqlInParams, table: Table, at: At, end: str, rows_max: int) -> sql.Composed:
    """Returns the statement for the next rows up to `end`, in order: at most so many, and about PAGE_BYTES.

    A record is {column: value}, with the event time under TIME. There are none if the table's name means
    another table now.
    """
    return sql.SQL(
        "SELECT k::text, tie::text, record, of_page FROM ("
        " SELECT k, tie, record, row_number() OVER w AS place, count(*) OVER () AS of_page,"
        "  sum(octet_length(record)) OVER (w ROWS UNBOUNDED PRECEDING) - octet_length(record) AS before"
        "  FROM (SELECT t.{key} AS k, {tie} AS tie, {record} AS record FROM {table} AS t"
        " WHERE {where} AND {now} = {oid} ORDER BY {order} LIMIT {limit}) AS page"
        "  WINDOW w AS (ORDER BY k, tie)) AS counted"
        " WHERE before < {bytes} ORDER BY place"
    ).format(
        key=sql.Identifier(params.rising),
        tie=_tie(params, table) or sql.SQL("NULL::text"),
        record=_record(params, table),
        table=table_name(params.namespace, params.table),
        where=_behind(params, table, at, end),
        now=_oid_now(params),
        oid=sql.Literal(table.oid),
        order=sql.SQL("1, 2" if params.tie_column else "1"),
        limit=sql.Literal(rows_max),
        bytes=sql.Literal(PAGE_BYTES),
    )


def after(at: At, rows: Sequence[Row], rows_max: int) -> tuple[At, bool]:
    """Returns where it stands after a page, and whether there may be more rows up to the same end."""
    if not rows:
        return at, False
    key, tie, _, of_page = rows[-1]
    return At(at.of, at.oid, key, tie), len(rows) < of_page or of_page == rows_max


def _oid_now(params: PostgresqlInParams) -> sql.Composed:
    name = table_name(params.namespace, params.table).as_string()
    return sql.SQL("(SELECT to_regclass({})::oid)").format(sql.Literal(name))


def _behind(params: PostgresqlInParams, table: Table, at: At, end: str) -> sql.Composed:
    column = table.column(params.rising)
    assert column is not None
    key = sql.SQL("t.{}").format(sql.Identifier(params.rising))
    until = sql.SQL("{} <= {}").format(key, _value(end, column))
    if at.key is None:
        return until
    last, tie = _value(at.key, column), _tie(params, table)
    if tie is None or at.tie is None:
        return sql.SQL("{} AND {} > {}").format(until, key, last)
    of_tie = table.column(params.tie_column or "")
    assert of_tie is not None
    return sql.SQL("{} AND {} >= {} AND ({}, {}) > ({}, {})").format(
        until, key, last, key, tie, last, _value(at.tie, of_tie)
    )


def _tie(params: PostgresqlInParams, table: Table) -> sql.Composed | None:
    """Returns the tie column, in an order that is the same on each machine."""
    if params.tie_column is None:
        return None
    column = table.column(params.tie_column)
    assert column is not None
    collate = sql.SQL(' COLLATE "C"' if column.base in _TEXTS else "")
    return sql.SQL("t.{}{}").format(sql.Identifier(column.name), collate)


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
    if column.base not in _WITH_NAN:
        return name
    # No JSON holds these. As texts: an older database has no numeric that is infinite.
    return sql.SQL(
        "CASE WHEN {name}::text IN ('NaN', 'Infinity', '-Infinity') THEN NULL ELSE {name} END"
    ).format(name=name)


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
        return [f"{named} is {kind}, and Fogline cannot see who writes to it. Name the table itself"]
    found = []
    if table.foreign:
        found.append(f"{named} has a partition in another database, and Fogline cannot see who writes to it")
    if table.inherited:
        found.append(
            f"other tables inherit from {named}, and no unique index holds for all of them. Read each of "
            "them by an element of its own"
        )
    if table.subscribed:
        found.append(
            f"{named} is filled by logical replication, which writes rows in another order than they were "
            "numbered. Read it in the database that it is copied from"
        )
    return [*found, *_rising_faults(params, table, named), *_column_faults(params, table, named)]


def _rising_faults(params: PostgresqlInParams, table: Table, named: str) -> list[str]:
    column, name = table.column(params.rising), f'the column "{params.rising}" of {named}'
    if column is None:
        return [_missing(params.rising, table, named)]
    if column.base not in RISING:
        return [f"{name} is {column.type}: a rising column is a whole number, numeric, a text or a time"]
    found = _empty_faults(params.rising, table, named)
    unique = frozenset({params.rising}) in table.unique
    if column.base not in _TIMES:
        if params.tie_column is not None:
            found.append(f"{name} is no time, so it has no column that tells rows of one time apart")
        if not unique:
            found.append(
                f"{name} has no unique index of its own, so a row could come with a value that was read. "
                f'Make one (CREATE UNIQUE INDEX ON {named} ("{params.rising}")), or choose another column'
            )
    elif params.tie_column is not None:
        found += _tie_faults(params.tie_column, params.rising, table, named)
    elif not unique:
        found.append(
            f"several rows may have one time in {name}. Name a column that tells them apart, such as the "
            "primary key"
        )
    for each in table.sequences:
        if each.cache != 1:
            found.append(
                f"the sequence of {name} gives each session {each.cache} numbers at a time, so they do not "
                "rise. Set CACHE 1 (ALTER SEQUENCE), or choose another column"
            )
        if each.step < 0 or each.cycles:
            found.append(f"the sequence of {name} falls or begins again, so its numbers do not rise")
        elif each.step != 1:
            found.append(
                f"the sequence of {name} rises by {each.step}: programs take its numbers in blocks, and use "
                "them later. Choose another column"
            )
    return found


def _tie_faults(tie: str, rising: str, table: Table, named: str) -> list[str]:
    column = table.column(tie)
    if column is None:
        return [_missing(tie, table, named)]
    if column.base not in _TIES:
        return [
            f'the column "{tie}" of {named} is {column.type}: a column that tells rows of one time apart is '
            "a whole number, numeric, a text, a time or a uuid"
        ]
    found = _empty_faults(tie, table, named)
    if not {frozenset({tie}), frozenset({tie, rising})} & {*table.unique}:
        found.append(
            f'rows of one time may have the same value in the column "{tie}" of {named}. Make a unique index '
            f'(CREATE UNIQUE INDEX ON {named} ("{rising}", "{tie}")), or choose another column'
        )
    return found


def _empty_faults(name: str, table: Table, named: str) -> list[str]:
    if name in table.not_null:
        return []
    return [
        f'the column "{name}" of {named} may be empty, and a row without a value would not come in. Make it '
        f'NOT NULL (ALTER TABLE {named} ALTER COLUMN "{name}" SET NOT NULL), or choose another column'
    ]


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
