"""Writes rows into a table of PostgreSQL, with the position in the same transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg import sql

from pipeline_runtime.connectors.postgresql import ALIVE_S, ANSWER_S, Row, Session, refusal, table_name
from pipeline_runtime.connectors.postgresql_tables import (
    HOLDS,
    POSITIONS,
    SqlColumn,
    columns_of,
    unique_keys,
)
from pipeline_runtime.connectors.sdk import CONNECT_S, Batch, ConnectorError, Deliverer, Place, Refused
from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.postgresql import PostgresqlConnection, PostgresqlOutParams

Target = Mapping[str, FieldType]
"""The columns that are written, with their types in Fogline."""

_MADE_AS = {
    FieldType.INTEGER: "bigint",
    FieldType.NUMBER: "double precision",
    FieldType.STRING: "text",
    FieldType.BOOLEAN: "boolean",
    FieldType.TIMESTAMP: "timestamptz",
}


ROWS_MAX = 2000
"""The most rows of a transaction. After an error there are fewer: each refused row takes statements to be
found, and a transaction has to be done in time."""


class PostgresqlDeliverer(Deliverer[PostgresqlOutParams, PostgresqlConnection]):
    """`deliver` leaves its transaction open, and `settle` commits it."""

    batch_rows = ROWS_MAX
    patience_s = CONNECT_S + ALIVE_S + 2 * ANSWER_S  # as `Session` allows, which ends what takes longer

    def __init__(self, place: Place[PostgresqlOutParams, PostgresqlConnection]) -> None:
        super().__init__(place)
        self._session: Session | None = None
        self._epoch = 0
        self._insert: sql.Composed | None = None
        params, rows = place.params, place.rows
        assert rows is not None
        self._target: dict[str, FieldType] = {each.name: each.type for each in rows.fields}
        if params.time_column is not None:
            self._target[params.time_column] = FieldType.TIMESTAMP
        self._positions = table_name(params.namespace, POSITIONS)
        self._stream = f"{place.deployment}.{place.element}"

    def open(self, epoch: int) -> None:
        place, params = self.place, self.place.params
        self._epoch = epoch
        self._session = Session(place.connection, place.name)
        with self._session.asking() as raw:
            if params.create:
                raw.execute(create_statement(params, self._target))
            columns = columns_of(raw, params.namespace, params.table)
            unique = unique_keys(raw, params.namespace, params.table)
            faults = table_faults(params, self._target, columns, unique)
            if faults:
                raise ConnectorError(f"{place.connection.where}: {'; '.join(faults)}.", lasting=True)
            self._make_positions(raw)
            self._claim(raw)
            raw.commit()
        self._insert = insert_statement(params, self._target, columns)

    def position(self) -> int:
        assert self._session is not None
        with self._session.asking(ALIVE_S) as raw:
            query = sql.SQL("SELECT position FROM {} WHERE stream = %s AND partition = 0")
            found = raw.execute(query.format(self._positions), [self._stream]).fetchone()
            raw.commit()
        return 0 if found is None else int(found[0])

    def deliver(self, batch: Batch) -> Sequence[Refused]:
        assert self._session is not None
        try:
            with self._session.asking() as raw:
                self._move(raw, batch)
                refused = self._write(raw, batch)
        except ConnectorError:
            self.batch_rows = max(1, self.batch_rows // 4)
            raise
        self.batch_rows = min(ROWS_MAX, 2 * self.batch_rows)
        return refused

    def settle(self) -> None:
        assert self._session is not None
        with self._session.asking() as raw:
            raw.commit()

    def idle(self) -> None:
        assert self._session is not None
        with self._session.asking(ALIVE_S) as raw:
            raw.execute("SELECT 1")
            raw.commit()

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    # -- the position ------------------------------------------------------------------------------------

    def _make_positions(self, raw: psycopg.Connection[Row]) -> None:
        if columns_of(raw, self.place.params.namespace, POSITIONS):
            return
        raw.execute(
            sql.SQL(
                "CREATE TABLE IF NOT EXISTS {} (stream text, partition integer, position bigint NOT NULL,"
                " epoch bigint NOT NULL, owners text NOT NULL, changed timestamptz NOT NULL DEFAULT now(),"
                " PRIMARY KEY (stream, partition))"
            ).format(self._positions)
        )
        raw.execute(
            sql.SQL("COMMENT ON TABLE {} IS {}").format(
                self._positions,
                sql.Literal(
                    "How far each element of Fogline has written. Back it up together with the tables that "
                    "they write."
                ),
            )
        )

    def _claim(self, raw: psycopg.Connection[Row]) -> None:
        """Notes the epoch. An earlier owner of the same group is refused from then on."""
        found = raw.execute(
            sql.SQL(
                "INSERT INTO {0} AS kept (stream, partition, position, epoch, owners)"
                " VALUES (%(stream)s, 0, 0, %(epoch)s, %(owners)s)"
                " ON CONFLICT (stream, partition) DO UPDATE"
                " SET epoch = excluded.epoch, owners = excluded.owners, changed = now()"
                " WHERE kept.owners <> excluded.owners OR kept.epoch <= excluded.epoch RETURNING 1"
            ).format(self._positions),
            {"stream": self._stream, "epoch": self._epoch, "owners": self.place.group},
        ).fetchone()
        if found is None:
            raise self._shut_out()

    def _move(self, raw: psycopg.Connection[Row], batch: Batch) -> None:
        """Moves the position from the batch's begin to its end, and keeps others out until the commit."""
        found = raw.execute(
            sql.SQL(
                "UPDATE {} SET position = %(end)s, changed = now() WHERE stream = %(stream)s AND"
                " partition = 0 AND epoch = %(epoch)s AND owners = %(owners)s AND position <= %(first)s"
                " RETURNING 1"
            ).format(self._positions),
            {
                "stream": self._stream,
                "epoch": self._epoch,
                "owners": self.place.group,
                "first": batch.first,
                "end": batch.end,
            },
        ).fetchone()
        if found is None:
            raise self._shut_out()

    def _shut_out(self) -> ConnectorError:
        return ConnectorError(
            f"{self.place.connection.where} has rows of a later owner of this element, so it takes none of "
            f"epoch {self._epoch}. Nothing is lost: the later owner goes on. If there is none, an "
            f"administrator of the database deletes the row of {self._stream} in {POSITIONS}; all rows that "
            "Fogline still has then come again.",
            lasting=True,
        )

    # -- the rows ----------------------------------------------------------------------------------------

    def _write(self, raw: psycopg.Connection[Row], batch: Batch) -> list[Refused]:
        refused: list[Refused] = []
        keys = self.place.params.keys
        rows = [self._row(row, time_ms) for row, time_ms in zip(batch.rows, batch.times_ms, strict=True)]
        places = []
        for place, row in enumerate(rows):
            empty = next((name for name in keys if row[name] is None), None)
            if empty is None:
                places.append(place)
            else:
                refused.append(Refused(place, f"its {empty} is empty, and it is a key of the table"))
        for place, reason in self._bisect(raw, rows, places):
            refused.append(Refused(place, reason))
        return refused

    def _row(self, row: Mapping[str, Any], time_ms: int) -> dict[str, Any]:
        found = {name: row.get(name) for name in self._target}
        if self.place.params.time_column is not None:
            found[self.place.params.time_column] = iso_of(time_ms)
        return found

    def _bisect(
        self, raw: psycopg.Connection[Row], rows: Sequence[Mapping[str, Any]], places: Sequence[int]
    ) -> Iterator[tuple[int, str]]:
        """Writes the rows at these places, in order, but those that the database refuses: it yields them."""
        if not places:
            return
        assert self._insert is not None
        newest = newest_of([rows[place] for place in places], self.place.params.keys)
        try:
            with raw.transaction():
                raw.execute(self._insert, arrays(newest, self._target))
                raw.execute("SET CONSTRAINTS ALL IMMEDIATE")
            return
        except (psycopg.Error, UnicodeError) as error:
            reason = refusal(error)
            if reason is None and not isinstance(error, psycopg.errors.CardinalityViolation):
                raise
            if len(places) == 1:
                yield places[0], reason or str(error)
                return
        half = len(places) // 2
        yield from self._bisect(raw, rows, places[:half])
        yield from self._bisect(raw, rows, places[half:])


# -- pure ------------------------------------------------------------------------------------------------


def newest_of(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[Mapping[str, Any]]:
    """Returns the last row of each key: one statement must not write a row twice."""
    if not keys:
        return list(rows)
    found: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        found.pop(key, None)  # so that it stands where its last one stood
        found[key] = row
    return list(found.values())


def arrays(rows: Sequence[Mapping[str, Any]], target: Target) -> list[list[Any]]:
    """Returns one array for each column."""
    return [
        [_number(row[name]) for row in rows] if type is FieldType.NUMBER else [row[name] for row in rows]
        for name, type in target.items()
    ]


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


def iso_of(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat()


def insert_statement(
    params: PostgresqlOutParams, target: Target, columns: Sequence[SqlColumn]
) -> sql.Composed:
    """Returns the statement that writes one array for each column of the target, in its order."""
    by_name = {column.name: column for column in columns}
    names = [sql.Identifier(name) for name in target]
    given = [sql.Identifier(f"c{place}") for place in range(len(target))]
    values = [
        sql.SQL("{}::{}").format(part, sql.SQL(by_name[name].cast)) if by_name[name].needs_cast else part
        for part, name in zip(given, target, strict=True)
    ]
    parts = [
        sql.SQL("INSERT INTO {} ({}) SELECT {} FROM unnest({}) AS given ({})").format(
            table_name(params.namespace, params.table),
            sql.SQL(", ").join(names),
            sql.SQL(", ").join(values),
            sql.SQL(", ").join(sql.SQL(f"%s::{_MADE_AS[type]}[]") for type in target.values()),
            sql.SQL(", ").join(given),
        )
    ]
    if params.keys:
        others = [sql.Identifier(name) for name in target if name not in params.keys]
        action = sql.SQL("DO NOTHING")
        if others:
            changes = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(each) for each in others)
            action = sql.SQL("DO UPDATE SET ") + changes  # type: ignore[assignment]
        keys = sql.SQL(", ").join(sql.Identifier(name) for name in params.keys)
        parts.append(sql.SQL("ON CONFLICT ({}) {}").format(keys, action))
    return sql.SQL(" ").join(parts)


def create_statement(params: PostgresqlOutParams, target: Target) -> sql.Composed:
    parts: list[sql.Composable] = [
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(_MADE_AS[type]))
        for name, type in target.items()
    ]
    if params.keys:
        keys = sql.SQL(", ").join(sql.Identifier(name) for name in params.keys)
        parts.append(sql.SQL("PRIMARY KEY ({})").format(keys))
    return sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(
        table_name(params.namespace, params.table), sql.SQL(", ").join(parts)
    )


def table_faults(
    params: PostgresqlOutParams,
    target: Target,
    columns: Sequence[SqlColumn],
    unique: Sequence[frozenset[str]],
) -> list[str]:
    """Returns, in words, why the rows do not fit the table."""
    table = f'"{params.namespace}"."{params.table}"'
    if not columns:
        return [
            f"there is no table {table}, or the user does not see it. Make it, or let the element make it "
            "(Make the table)"
        ]
    by_name = {column.name: column for column in columns}
    faults = []
    for name, type in target.items():
        column = by_name.get(name)
        if column is None:
            faults.append(f'the table {table} has no column "{name}" (the input has it as {type.words})')
        elif column.made:
            faults.append(f'the database itself fills the column "{name}" of {table}: leave it out')
        elif not column.holds(type):
            fitting = ", ".join(sorted(HOLDS[type]))
            faults.append(
                f'the column "{name}" of {table} is {column.type}, and the input has {type.words}: it needs '
                f"one of {fitting}"
            )
    for column in columns:
        if column.must_be_given and column.name not in target:
            faults.append(
                f'the column "{column.name}" of {table} ({column.type}) must have a value, and the input '
                "has no such column"
            )
    if params.keys and frozenset(params.keys) not in unique:
        keys = ", ".join(f'"{name}"' for name in params.keys)
        faults.append(
            f"the table {table} has no unique index on exactly the key columns: make one (CREATE UNIQUE "
            f"INDEX ON {table} ({keys}))"
        )
    return faults
