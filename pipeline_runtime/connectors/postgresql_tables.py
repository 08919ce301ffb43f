"""Lists the tables of a database, and their columns with types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from pipeline_runtime.connectors.postgresql import ALIVE_S, Row, Session, table_name
from pipeline_runtime.connectors.sdk import ConnectorError, Probed, shown_value
from pipeline_runtime.model.connectors import PARTS_MAX, ROWS_SHOWN, Found, FoundPart
from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.postgresql import PostgresqlConnection
from pipeline_runtime.operators.ticked import table_at, table_path

FOUND_MAX = 200
POSITIONS = "fogline_positions"

_TEXTS = frozenset({"text", "varchar", "bpchar", "citext"})
_AS_TEXT = frozenset({"uuid", "json", "jsonb", "inet", "cidr", "macaddr"})
HOLDS: Mapping[FieldType, frozenset[str]] = {
    FieldType.INTEGER: frozenset({"int2", "int4", "int8", "numeric"}),
    FieldType.NUMBER: frozenset({"float8", "float4", "numeric"}),
    FieldType.STRING: _TEXTS | _AS_TEXT,
    FieldType.BOOLEAN: frozenset({"bool"}),
    FieldType.TIMESTAMP: frozenset({"timestamptz", "timestamp"}),
}
"""The types of the database that hold all values of a type of Fogline, by their names in pg_type."""

GIVES: Mapping[str, FieldType] = {
    **dict.fromkeys(("int2", "int4", "int8"), FieldType.INTEGER),
    **dict.fromkeys(("float4", "float8", "numeric"), FieldType.NUMBER),
    **dict.fromkeys(sorted(_TEXTS | _AS_TEXT), FieldType.STRING),
    "name": FieldType.STRING,  # it cuts texts, so none is written to it
    "bool": FieldType.BOOLEAN,
    **dict.fromkeys(("timestamptz", "timestamp", "date"), FieldType.TIMESTAMP),
}
"""The type of Fogline that a column is offered as."""


@dataclass(frozen=True)
class SqlColumn:
    """A column of a table."""

    name: str
    type: str  # as people write it, with its length: "character varying(20)"
    base: str  # its name in pg_type, of a domain that of its base
    cast: str  # the type without its length, quoted where needed, as a part of a statement
    enum: bool
    must_be_given: bool  # not null, and without a default
    made: bool  # by the database, so nobody may write it

    def holds(self, type: FieldType) -> bool:
        return self.base in HOLDS[type] or (self.enum and type is FieldType.STRING)

    @property
    def needs_cast(self) -> bool:
        """Returns whether a text does not become such a value by itself."""
        return self.enum or self.base in _AS_TEXT

    @property
    def gives(self) -> FieldType | None:
        """Returns the type of Fogline that it may be read as, or None."""
        return FieldType.STRING if self.enum else GIVES.get(self.base)


_ENUM = sql.SQL("coalesce(b.typtype, t.typtype) = 'e'")
_BASE = sql.SQL("coalesce(b.typname, t.typname)")
_OF_COLUMNS = sql.SQL("""
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type b ON t.typtype = 'd' AND b.oid = t.typbasetype
WHERE a.attrelid = {table} AND a.attnum > 0 AND NOT a.attisdropped
""")
"""Where the columns of a table come from; `table` is its oid."""

_KEYS = sql.SQL("""
SELECT array_agg(a.attname::text) FROM pg_index i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
WHERE i.indrelid = {table} AND i.indisunique AND i.indimmediate AND i.indisvalid
  AND i.indpred IS NULL AND i.indexprs IS NULL
GROUP BY i.indexrelid, i.indisprimary
""")
"""The sets of columns by which each row of a table is found."""

_NAMED = sql.SQL("to_regclass(%s)")
_COLUMNS = sql.SQL("""
SELECT a.attname, format_type(a.atttypid, a.atttypmod), {base}, format_type(a.atttypid, NULL), {enum},
       a.attnotnull AND NOT a.atthasdef AND a.attidentity = '', a.attgenerated <> '' OR a.attidentity = 'a'
{columns} ORDER BY a.attnum
""").format(base=_BASE, enum=_ENUM, columns=_OF_COLUMNS.format(table=_NAMED))
_UNIQUE = _KEYS.format(table=_NAMED)


def columns_of(raw: psycopg.Connection[Row], namespace: str, table: str) -> tuple[SqlColumn, ...]:
    """Returns the columns, or none if there is no such table."""
    found = raw.execute(_COLUMNS, [table_name(namespace, table).as_string(raw)]).fetchall()
    return tuple(SqlColumn(*row) for row in found)


def unique_keys(raw: psycopg.Connection[Row], namespace: str, table: str) -> list[frozenset[str]]:
    """Returns the sets of columns by which each row of the table is found."""
    found = raw.execute(_UNIQUE, [table_name(namespace, table).as_string(raw)]).fetchall()
    return [frozenset(names) for (names,) in found]


# -- test connection -------------------------------------------------------------------------------------

_LISTED = sql.SQL("c.oid")
_TABLES = sql.SQL("""
SELECT n.nspname, c.relname,
  (SELECT json_agg(json_build_array(a.attname, {base}, {enum}) ORDER BY a.attnum) {columns}),
  ({keys} ORDER BY i.indisprimary DESC, count(*) LIMIT 1)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT LIKE 'pg\\_%%'
  AND n.nspname NOT IN ('information_schema') AND n.nspname NOT LIKE '\\_timescaledb%%' AND c.relname <> %s
  AND has_schema_privilege(n.oid, 'USAGE') AND NOT c.relispartition
  AND position(lower(%s) IN lower(n.nspname || '.' || c.relname)) > 0
ORDER BY n.nspname = 'public' DESC, n.nspname, c.relname LIMIT %s
""").format(
    base=_BASE,
    enum=_ENUM,
    columns=_OF_COLUMNS.format(table=_LISTED),
    keys=_KEYS.format(table=_LISTED),
)


def probe(connection: PostgresqlConnection, path: str) -> Probed:
    """Lists the tables, or of `path`, a table as schema.table, the columns and the first rows."""
    return _asked(connection, lambda raw: _table(raw, path) if path else _tables(raw, ""))


def search(connection: PostgresqlConnection, find: str) -> Probed:
    """Lists the tables whose name, with the schema, has `find` in it."""
    return _asked(connection, lambda raw: _tables(raw, find))


def _asked(connection: PostgresqlConnection, ask: Callable[[psycopg.Connection[Row]], Probed]) -> Probed:
    session = Session(connection, "fogline-test", autocommit=True)
    try:
        with session.asking(ALIVE_S) as raw:
            return ask(raw)
    finally:
        session.close()


def _tables(raw: psycopg.Connection[Row], find: str) -> Probed:
    rows = raw.execute(_TABLES, [POSITIONS, find, FOUND_MAX + 1]).fetchall()
    found = tuple(
        Found(
            path=table_path(space, name),
            title=name if space == "public" else f"{space}.{name}",
            inner=True,
            usable=True,
            parts=_parts(columns or (), keys or ()),
        )
        for space, name, columns, keys in rows[:FOUND_MAX]
    )
    whose = f"with “{find}” in their name" if find else "and views that this user sees"
    words = f"Connected. The database has {len(found)} tables {whose}."
    if len(rows) > FOUND_MAX:
        words = f"Connected. The first {FOUND_MAX} tables {whose} are shown: search for the others."
    return Probed(words, (), found)


def _parts(columns: Sequence[tuple[str, str, bool]], keys: Collection[str]) -> tuple[FoundPart, ...]:
    """Returns the columns of a table: each with its name, its type in pg_type, and whether it is an enum."""
    return tuple(
        FoundPart(name=name, type=FieldType.STRING if enum else GIVES.get(base), key=name in keys)
        for name, base, enum in columns[:PARTS_MAX]
    )


def _table(raw: psycopg.Connection[Row], path: str) -> Probed:
    namespace, table = table_at(path)
    columns = columns_of(raw, namespace, table)
    if not columns:
        raise ConnectorError(
            f'There is no table "{table}" in the schema "{namespace}", or this user does not see it.'
        )
    query = sql.SQL("SELECT * FROM {} LIMIT {}").format(table_name(namespace, table), sql.Literal(ROWS_SHOWN))
    rows = [_shown(columns, row) for row in raw.execute(query).fetchall()]
    found = tuple(Found(path=f"{path}.{each.name}", title=each.name, type=each.type) for each in columns)
    return Probed(f"Connected. {path} has {len(columns)} columns.", tuple(rows), found)


def _shown(columns: Sequence[SqlColumn], row: Row) -> dict[str, str | int | float | bool | None]:
    return {column.name: shown_value(value) for column, value in zip(columns, row, strict=True)}
