"""Reads the rows that are added to a table of PostgreSQL, exactly once.

It reads no row before all transactions have ended that may still write an earlier row.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
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
    any_statement,
    end_statement,
    faults,
    lost_below,
    name_of,
    page_statement,
    position_of,
    still_open,
    writers_statement,
)
from pipeline_runtime.connectors.postgresql_tables import columns_of, unique_keys
from pipeline_runtime.connectors.sdk import (
    CONNECT_S,
    ConnectorError,
    OnceIngester,
    OnceIntake,
    Place,
    Record,
)
from pipeline_runtime.operators.postgresql import PostgresqlConnection
from pipeline_runtime.operators.postgresql_in import PostgresqlInParams

LOOK_S = 7.0
"""The longest time in s that a look for new rows may take. It is short enough that the element shows within
10 s that the database hangs."""
AGAIN_S = 0.1
AGAIN_S_MAX = 2.0
"""The first and the longest pause in s between two questions whether transactions have ended. The pauses
grow."""
EXAMINE_S = 60.0
"""The time in s between two checks whether the table can still be read exactly once."""
HELD_S = 10.0
"""After this time in s, the element shows that a transaction keeps rows waiting."""
_NAMED_MAX = 3

_TABLE = """
WITH RECURSIVE below(oid) AS (
  SELECT to_regclass(%(table)s)::oid
  UNION SELECT i.inhrelid FROM pg_inherits i JOIN below b ON i.inhparent = b.oid
), above(oid) AS (
  SELECT to_regclass(%(table)s)::oid
  UNION SELECT i.inhparent FROM pg_inherits i JOIN above a ON i.inhrelid = a.oid
), parts AS (
  SELECT p.* FROM pg_class p JOIN below b ON b.oid = p.oid
)
SELECT c.oid::bigint, c.relkind::text,
  ARRAY(SELECT a.attname::text FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnotnull AND a.attnum > 0),
  EXISTS (SELECT FROM pg_attribute a
          WHERE a.attrelid = c.oid AND a.attname = %(column)s AND a.attidentity = 'a'),
  EXISTS (SELECT FROM parts WHERE relkind = 'f'),
  EXISTS (SELECT FROM parts p JOIN pg_namespace n ON n.oid = p.relnamespace
          WHERE p.oid <> c.oid AND NOT p.relispartition AND n.nspname NOT LIKE '\\_timescaledb%%'),
  EXISTS (SELECT FROM pg_subscription_rel
          WHERE srrelid IN (SELECT oid FROM below UNION ALL SELECT oid FROM above))
FROM pg_class c WHERE c.oid = to_regclass(%(table)s)
"""

_SEQUENCES = """
SELECT s.seqrelid::bigint, s.seqcache, s.seqincrement, s.seqcycle,
  CASE WHEN has_sequence_privilege(s.seqrelid, 'SELECT, USAGE') THEN pg_sequence_last_value(s.seqrelid) END
FROM pg_sequence s
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
    """Reads a table. Its position is `postgresql_rows.At` as JSON."""

    patience_s = CONNECT_S + ALIVE_S + 2 * ANSWER_S  # `Session` ends whatever takes longer

    def __init__(self, place: Place[PostgresqlInParams, PostgresqlConnection]) -> None:
        super().__init__(place)
        self._rows_max = PAGE_ROWS
        self._told: str | None = None
        """The value of the rising column up to which lost rows were reported last."""

    def run(self, intake: OnceIntake, stop: threading.Event) -> None:
        place, params = self.place, self.place.params
        session = Session(place.connection, place.name, autocommit=True)
        try:
            at, examine_s = position_of(intake.position, params), float("-inf")
            while not stop.is_set():
                if monotonic() > examine_s:
                    table, examine_s = self._examined(session), monotonic() + EXAMINE_S
                    intake.connected()
                    at = self._compared(at, table, intake)
                with session.asking(LOOK_S) as raw:
                    # The end has to be read before the writers. Each transaction that got a number below the
                    # end is then seen among the writers, or has ended.
                    [(oid, end)] = raw.execute(end_statement(params, table)).fetchall()
                if oid != table.oid:
                    examine_s = float("-inf")
                    continue
                self._require_final(end)
                due = end is not None and (at is None or self._any(session, table, at, end))
                if due and not self._others_ended(session, table, intake, stop):
                    return
                if at is None:
                    at = At(name_of(params), table.oid, key=end if params.start == "new" else None)
                    if not self.commit(intake, [], at.to_json(), stop):
                        return
                if due:
                    at = self._read(session, table, intake, at, end, stop)
                stop.wait(params.every_ms / 1000)
        finally:
            session.close()

    def _compared(self, at: At | None, table: Table, intake: OnceIntake) -> At | None:
        """Returns the position in this table. Reports a gap if rows up to there are lost."""
        if at is None:
            return None
        why = lost_below(at, table)
        if why is not None and self._told != at.key:
            self._told = at.key
            intake.gap(
                f"{why}. Rows whose {self.place.params.rising} is at most {at.key}, the last one that was "
                "read, do not come in"
            )
        return replace(at, oid=table.oid)

    def _require_final(self, end: str | None) -> None:
        """Raises ConnectorError if no row can come after this value. NaN and infinity are such values."""
        if end in ("NaN", "Infinity"):
            params = self.place.params
            raise ConnectorError(
                f'{self.place.connection.where}: a row of "{params.namespace}"."{params.table}" has {end} in '
                f'the column "{params.rising}", and no row would come in behind it. Change that row.',
                lasting=True,
            )

    def _any(self, session: Session, table: Table, at: At, end: str) -> bool:
        with session.asking() as raw:
            [(found,)] = raw.execute(any_statement(self.place.params, table, at, end)).fetchall()
        return bool(found)

    def _examined(self, session: Session) -> Table:
        """Returns the table. Raises ConnectorError if it cannot be read exactly once."""
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

    def _others_ended(
        self, session: Session, table: Table, intake: OnceIntake, stop: threading.Event
    ) -> bool:
        """Waits until all transactions have ended that may still write rows before the end. Returns False if
        `stop` is set before."""
        first = waiting = self._writers(session, table)
        began_s, told, again_s = monotonic(), False, AGAIN_S
        while waiting and not stop.wait(again_s):
            again_s = min(AGAIN_S_MAX, again_s * 1.2)
            waiting = still_open(first, waiting, self._writers(session, table))
            if waiting and monotonic() - began_s > HELD_S:
                intake.failing(self._of_held(waiting, monotonic() - began_s))
                told = True
        if told:
            intake.connected()
        return not stop.is_set()

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
        """Reads and commits all rows after `at` up to `end`, page by page. Returns the new position."""
        more = True
        while more and not stop.is_set():
            rows_max = min(PAGE_ROWS, self._rows_max)
            # After an error the next page is smaller. Rows may be so large that a full page takes too long.
            self._rows_max = max(1, rows_max // 4)
            with session.asking() as raw:
                statement = page_statement(self.place.params, table, at, end, rows_max)
                rows: Sequence[Row] = raw.execute(statement).fetchall()
            self._rows_max = min(PAGE_ROWS, rows_max * 2)
            behind, more = after(at, rows, rows_max)
            records = [Record(record.encode()) for _, _, record, _ in rows]
            if records and not self.commit(intake, records, behind.to_json(), stop):
                return at
            at = behind
        return at


def _table_of(raw: psycopg.Connection[SqlRow], params: PostgresqlInParams) -> Table | None:
    name = table_name(params.namespace, params.table).as_string(raw)
    found = raw.execute(_TABLE, {"table": name, "column": params.rising}).fetchone()
    if found is None:
        return None
    oid, kind, not_null, numbered, foreign, inherited, subscribed = found
    sequences = raw.execute(_SEQUENCES, {"table": oid, "column": params.rising}).fetchall()
    return Table(
        oid=oid,
        kind=kind,
        columns=columns_of(raw, params.namespace, params.table),
        not_null=frozenset(not_null),
        unique=tuple(unique_keys(raw, params.namespace, params.table)),
        sequences=tuple(SqlSequence(*each) for each in sequences),
        numbered=numbered,
        foreign=foreign,
        inherited=inherited,
        subscribed=subscribed,
    )
