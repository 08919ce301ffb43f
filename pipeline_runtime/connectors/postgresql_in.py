"""Reads the rows that are added to a table of PostgreSQL, never past the oldest open transaction."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from time import monotonic

import psycopg

from pipeline_runtime.connectors.postgresql import (
    ALIVE_S,
    ANSWER_S,
    Row as SqlRow,
    Session,
    table_name,
)
from pipeline_runtime.connectors.postgresql_rows import (
    PAGE_ROWS,
    At,
    Row,
    SqlSequence,
    Table,
    Writers,
    after,
    end_statement,
    faults,
    name_of,
    page_statement,
    position_of,
    still_open,
    writers_statement,
)
from pipeline_runtime.connectors.postgresql_tables import columns_of, unique_keys
from pipeline_runtime.connectors.sdk import CONNECT_S, ConnectorError, OnceIngester, OnceIntake, Record
from pipeline_runtime.operators.postgresql import PostgresqlConnection
from pipeline_runtime.operators.postgresql_in import PostgresqlInParams

LOOK_S = 7.0
"""How long a look for new rows may take, so that a database that hangs is told within 10 s."""
AGAIN_S = 0.1
"""How often it is asked whether transactions have ended."""
HELD_S = 10.0
"""A transaction that keeps rows waiting for longer is told."""
ROOM_S = 0.5
_NAMED_MAX = 3

_TABLE = """
SELECT c.oid::bigint, c.relkind::text, coalesce((SELECT a.attnotnull FROM pg_attribute a
       WHERE a.attrelid = c.oid AND a.attname = %(column)s AND a.attnum > 0), false)
FROM pg_class c WHERE c.oid = to_regclass(%(table)s)
"""

_SEQUENCES = """
SELECT s.seqrelid::bigint, s.seqcache, s.seqincrement, s.seqcycle FROM pg_sequence s
JOIN pg_attribute a ON a.attrelid = %(table)s::oid AND a.attname = %(column)s AND a.attnum > 0
WHERE s.seqrelid IN (
  SELECT d.objid FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
    AND d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum
  UNION ALL
  SELECT d.refobjid FROM pg_attrdef f JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass
    AND d.objid = f.oid AND d.refclassid = 'pg_class'::regclass
    WHERE f.adrelid = a.attrelid AND f.adnum = a.attnum)
"""


class PostgresqlIngester(OnceIngester[PostgresqlInParams, PostgresqlConnection]):
    """Its position is `postgresql_rows.At` as JSON."""

    patience_s = CONNECT_S + ALIVE_S + 2 * ANSWER_S  # as `Session` allows, which ends what takes longer

    def run(self, intake: OnceIntake, stop: threading.Event) -> None:
        place, params = self.place, self.place.params
        session = Session(place.connection, place.name, autocommit=True)
        try:
            table = self._examined(session)
            intake.connected()
            at = position_of(intake.position, params)
            while not stop.is_set():
                end = self._final(session, table, intake, stop)
                if stop.is_set():
                    return
                if at is None:
                    at = At(name_of(params), key=end if params.start == "new" else None)
                    if not self._commit(intake, [], at, stop):
                        return
                if end is not None:
                    at = self._read(session, table, intake, at, end, stop)
                stop.wait(params.every_ms / 1000)
        finally:
            session.close()

    def _examined(self, session: Session) -> Table:
        """Returns the table. Raises ConnectorError if it cannot be read so."""
        params, where = self.place.params, self.place.connection.where
        with session.asking(LOOK_S) as raw:
            [(standby,)] = raw.execute("SELECT pg_is_in_recovery()").fetchall()
            table = _table_of(raw, params)
        if standby:
            raise ConnectorError(
                f"{where} is a standby. It does not know which transactions are open, so rows could be "
                "missed. Make the connection to the primary.",
                lasting=True,
            )
        if table is None:
            raise ConnectorError(
                f'{where}: there is no table "{params.namespace}"."{params.table}", or the user does not see '
                "it. Check how it is written; capital letters count.",
                lasting=True,
            )
        found = faults(params, table)
        if found:
            raise ConnectorError(f"{where}: {'; '.join(found)}.", lasting=True)
        return table

    def _final(self, session: Session, table: Table, intake: OnceIntake, stop: threading.Event) -> str | None:
        """Returns up to where no row can appear any more, or None if there is no row. Waits for the
        transactions that may still write below it."""
        with session.asking(LOOK_S) as raw:
            # In this order: who has drawn a number below the last one is still open now, or has ended.
            [(end,)] = raw.execute(end_statement(self.place.params, table)).fetchall()
        if end is None:
            return None
        first = waiting = self._writers(session, table)
        began_s, told = monotonic(), False
        while waiting and not stop.wait(AGAIN_S):
            waiting = still_open(first, self._writers(session, table))
            if waiting and monotonic() - began_s > HELD_S:
                intake.failing(self._of_held(waiting, monotonic() - began_s))
                told = True
        if told:
            intake.connected()
        return str(end)

    def _writers(self, session: Session, table: Table) -> Writers:
        with session.asking(LOOK_S) as raw:
            return dict(raw.execute(writers_statement(table)).fetchall())

    def _of_held(self, waiting: Writers, seconds: float) -> str:
        pids = [str(pid) if pid is not None else "a prepared one" for pid in waiting.values()]
        more = f" and {len(pids) - _NAMED_MAX} more" if len(pids) > _NAMED_MAX else ""
        return (
            f"{self.place.connection.where} has transactions that are open for more than "
            f"{seconds // HELD_S * HELD_S:.0f} s and may still write earlier rows (process "
            f"{', '.join(pids[:_NAMED_MAX])}{more}; pg_stat_activity says whose). Newer rows come in when "
            "they have ended. Nothing is lost."
        )

    def _read(
        self, session: Session, table: Table, intake: OnceIntake, at: At, end: str, stop: threading.Event
    ) -> At:
        """Reads all rows up to `end`. Returns where it then stands."""
        more = True
        while more and not stop.is_set():
            with session.asking() as raw:
                statement = page_statement(self.place.params, table, at, end, PAGE_ROWS)
                rows: Sequence[Row] = raw.execute(statement).fetchall()
            behind, more = after(at, rows, PAGE_ROWS, unique=table.unique)
            records = [Record(record.encode()) for _, record, _ in rows]
            if records and not self._commit(intake, records, behind, stop):
                return at
            at = behind
        return at

    def _commit(self, intake: OnceIntake, records: list[Record], at: At, stop: threading.Event) -> bool:
        """Returns False if it is stopped before there is room."""
        while not intake.commit(records, at.to_json()):
            if stop.wait(ROOM_S):
                return False
        return True


def _table_of(raw: psycopg.Connection[SqlRow], params: PostgresqlInParams) -> Table | None:
    name = table_name(params.namespace, params.table).as_string(raw)
    found = raw.execute(_TABLE, {"table": name, "column": params.rising}).fetchone()
    if found is None:
        return None
    oid, kind, not_null = found
    sequences = raw.execute(_SEQUENCES, {"table": oid, "column": params.rising}).fetchall()
    return Table(
        oid=oid,
        kind=kind,
        columns=columns_of(raw, params.namespace, params.table),
        not_null=not_null,
        unique=frozenset({params.rising}) in unique_keys(raw, params.namespace, params.table),
        sequences=tuple(SqlSequence(*each) for each in sequences),
    )
