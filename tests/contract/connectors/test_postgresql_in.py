"""PostgreSQL in beside a real server that is killed and hung, and with transactions that stay open."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from pipeline_runtime.connectors import postgresql, postgresql_in
from pipeline_runtime.connectors.config import ConnectorConfig, Order, name_of
from pipeline_runtime.connectors.postgresql_in import PostgresqlIngester
from pipeline_runtime.connectors.sdk import ConnectorError, Place
from pipeline_runtime.connectors.trial import MemoryOnceIntake, RunningTrial, trial_ingester
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.reading import committed_values
from pipeline_runtime.model.connectors import ConnectorStatus
from pipeline_runtime.model.ids import journal_topic
from pipeline_runtime.operators.postgresql import PostgresqlConnection
from pipeline_runtime.operators.postgresql_in import PostgresqlIn, PostgresqlInParams
from tests.databases import Database
from tests.groups import group_has_read
from tests.waiting import wait_until
from workers.node.connector_process import ConnectorProcess

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database() as running:
        yield running


def ingester(connection: PostgresqlConnection, table: str, **params: Any) -> PostgresqlIngester:
    given = {"connection": "d", "table": table, "rising": "id", "every_ms": 100, **params}
    given.setdefault("columns", [{"name": "id", "type": "integer"}])
    return PostgresqlIngester(
        Place("dep", table, PostgresqlInParams.model_validate(given), connection, "dep.g")
    )


def ids(running: RunningTrial) -> list[int]:
    return [row["id"] for row in running.taken.rows]


def waits_for(running: RunningTrial, pid: int) -> None:
    """Waits until it says that it waits for that process. No row has come in then."""
    wait_until(lambda: f"process {pid}" in running.status.why, lambda: f"{pid}: {running.status.why}")
    assert running.taken.records == []


@pytest.mark.parametrize("drawn", [False, True])
def test_a_row_below_another_one_whose_transaction_ends_later_is_waited_for(
    database: Database, monkeypatch: pytest.MonkeyPatch, drawn: bool
) -> None:
    """Its number is drawn by its row, or by a call before. Who only reads is not waited for."""
    monkeypatch.setattr(postgresql_in, "HELD_S", 0.1)
    table = f"late_{drawn}".lower()
    database.ask(f"CREATE TABLE {table} (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY)")
    with database.client(autocommit=False) as late, database.client(autocommit=False) as reader:
        reader.execute(f"SELECT * FROM {table}".encode())
        first = f"SELECT nextval('{table}_id_seq')" if drawn else f"INSERT INTO {table} DEFAULT VALUES"
        late.execute(first.encode())
        database.ask(f"INSERT INTO {table} DEFAULT VALUES")
        running = RunningTrial(ingester(database.connection(), table), rows=2)
        waits_for(running, late.info.backend_pid)
        if drawn:
            late.execute(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE VALUES (1)".encode())
        late.commit()
        assert running.intake.enough.wait(60)
        wait_until(lambda: running.status.state == "connected", "the end of the words")
        late.execute(f"INSERT INTO {table} DEFAULT VALUES".encode())
        database.ask(f"INSERT INTO {table} DEFAULT VALUES")
        late.rollback()
        wait_until(lambda: len(running.taken.records) == 3, "the row beside the one that was rolled back")
        running.stop()
    assert ids(running) == [1, 2, 4]


def test_a_time_waits_for_all_transactions_that_are_older(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for one that has written nothing yet: now() is the time at which it began."""
    monkeypatch.setattr(postgresql_in, "HELD_S", 0.1)
    database.ask("CREATE TABLE timed (id int PRIMARY KEY, at timestamptz NOT NULL)")
    with database.client(autocommit=False) as late:
        late.execute("SELECT now()")
        database.ask("INSERT INTO timed VALUES (2, now() - interval '1 h')")
        running = RunningTrial(ingester(database.connection(), "timed", rising="at", tie_column="id"), rows=2)
        waits_for(running, late.info.backend_pid)
        late.execute("INSERT INTO timed VALUES (1, now() - interval '2 h')")
        late.commit()
        assert running.intake.enough.wait(60)
        running.stop()
    assert ids(running) == [1, 2]


def test_rows_of_one_time_come_once_each_while_others_of_them_change_and_go(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over pages, errors and restarts."""
    monkeypatch.setattr(postgresql_in, "PAGE_ROWS", 7)
    database.ask(
        "CREATE TABLE ties (id int, at timestamp NOT NULL, name text, UNIQUE (at, id));"
        " ALTER TABLE ties ALTER id SET NOT NULL;"
        " INSERT INTO ties SELECT n, date_trunc('hour', now() AT TIME ZONE 'UTC') - interval '1 day'"
        " FROM generate_series(1, 40) AS n"
    )

    def begun(position: Any = None, rows: int = 40) -> RunningTrial:
        asked = ingester(database.connection(), "ties", rising="at", tie_column="id")
        return RunningTrial(asked, rows, position)

    commit = MemoryOnceIntake.commit
    with monkeypatch.context() as full:
        full.setattr(
            MemoryOnceIntake, "commit", lambda self, *given: not self.enough.is_set() and commit(self, *given)
        )
        first = begun(rows=7)
        first.intake.refuse += [ConnectorError("Kafka does not answer")]
        assert first.intake.enough.wait(60)
        first.stop()
    read = ids(first)
    database.ask(f"DELETE FROM ties WHERE id < 4; UPDATE ties SET name = 'z' WHERE id <= {max(read)}")
    second = begun(first.intake.position)
    wait_until(lambda: 40 in ids(second), "the last of them")
    second.stop()
    assert read + ids(second) == list(range(1, 41))


def test_a_time_that_lies_in_kafka_is_read_the_same_way_whatever_the_user_has_set(database: Database) -> None:
    database.ask(
        "CREATE TABLE styled (id int PRIMARY KEY, at timestamptz NOT NULL, f float8);"
        " INSERT INTO styled VALUES (1, '2026-01-03', 0.1::float8 + 0.2), (2, '2026-02-03', 0);"
        " ALTER ROLE ann SET DateStyle = 'SQL, DMY'; ALTER ROLE ann SET extra_float_digits = 0"
    )
    columns = [{"name": "id", "type": "integer"}, {"name": "f", "type": "number"}]
    try:
        asked = ingester(database.connection(), "styled", rising="at", tie_column="id", columns=columns)
        running = RunningTrial(asked, 2)
        assert running.intake.enough.wait(60)
        running.stop()
    finally:
        database.ask("ALTER ROLE ann RESET ALL")
    assert running.taken.rows[0] == {"id": 1, "f": 0.1 + 0.2}
    assert running.intake.position["key"] == "2026-02-03 00:00:00+00"


def test_a_table_that_was_made_again_is_told_and_its_open_transactions_are_waited_for(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_in, "HELD_S", 0.1)
    numbered = "(id int GENERATED ALWAYS AS IDENTITY (START {}) PRIMARY KEY)"
    database.ask(f"CREATE TABLE swapped {numbered.format(10)}; INSERT INTO swapped DEFAULT VALUES")
    running = RunningTrial(ingester(database.connection(), "swapped"), rows=3)
    wait_until(lambda: ids(running) == [10], "the first row")
    database.ask(
        f"BEGIN; ALTER TABLE swapped RENAME TO former; CREATE TABLE swapped {numbered.format(11)}; COMMIT"
    )
    wait_until(lambda: running.taken.notes, "the words")
    assert "made again. Rows whose id is at most 10" in running.taken.notes[0]
    with database.client(autocommit=False) as late:
        late.execute("INSERT INTO swapped DEFAULT VALUES")
        database.ask("INSERT INTO swapped DEFAULT VALUES")
        pid = late.info.backend_pid
        wait_until(lambda: f"process {pid}" in running.status.why, lambda: running.status.why)
        late.commit()
    assert running.intake.enough.wait(60)
    running.stop()
    assert ids(running) == [10, 11, 12]


def test_numbers_that_begin_again_are_told(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql_in, "EXAMINE_S", 0.1)
    database.ask(
        "CREATE TABLE emptied (id serial PRIMARY KEY); INSERT INTO emptied VALUES (DEFAULT), (DEFAULT)"
    )
    running = RunningTrial(ingester(database.connection(), "emptied"))
    wait_until(lambda: ids(running) == [1, 2], "the rows")
    database.ask("TRUNCATE emptied RESTART IDENTITY; INSERT INTO emptied DEFAULT VALUES")
    wait_until(lambda: running.taken.notes, "the words")
    running.stop()
    assert "have begun again (the last one is 1). Rows whose id is at most 2" in running.taken.notes[0]


def test_a_number_of_a_program_beside_a_sequence_and_a_prepared_one_are_waited_for(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction has locked nothing yet when a row above its number is there."""
    monkeypatch.setattr(postgresql_in, "HELD_S", 0.1)
    database.ask("CREATE TABLE mixed (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY)")
    with database.client(autocommit=False) as late:
        late.execute("SELECT now()")
        database.ask("INSERT INTO mixed VALUES (8)")
        running = RunningTrial(ingester(database.connection(), "mixed"), rows=2)
        waits_for(running, late.info.backend_pid)
        late.execute("INSERT INTO mixed VALUES (7)")
        late.execute("PREPARE TRANSACTION 'seven'")
        wait_until(lambda: "a prepared one" in running.status.why, lambda: running.status.why)
        assert running.taken.records == []
    database.ask("COMMIT PREPARED 'seven'")
    assert running.intake.enough.wait(60)
    running.stop()
    assert ids(running) == [7, 8]


def test_nobody_is_waited_for_if_there_is_nothing_to_read(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, end_statement = list[int](), postgresql_in.end_statement
    monkeypatch.setattr(postgresql_in, "end_statement", lambda *a: looks.append(1) or end_statement(*a))
    database.ask("CREATE TABLE quiet (id serial PRIMARY KEY); INSERT INTO quiet DEFAULT VALUES")
    running = RunningTrial(ingester(database.connection(), "quiet"))
    assert running.intake.enough.wait(60)
    with database.client(autocommit=False) as reader:
        reader.execute("SELECT now()")
        monkeypatch.setattr(postgresql_in, "HELD_S", 0.0)
        before = len(looks)
        wait_until(lambda: len(looks) > before + 3, "more looks")
        assert running.stop().why == ""


def test_a_page_that_fails_is_asked_for_again_with_fewer_rows(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are so slow that the database does not give all of them in time."""
    monkeypatch.setattr(postgresql, "ANSWER_S", 1.0)
    monkeypatch.setattr(postgresql_in, "PAGE_ROWS", 4)
    database.ask(
        "CREATE TABLE slow (id serial PRIMARY KEY); INSERT INTO slow SELECT FROM generate_series(1, 3);"
        " CREATE ROLE slow LOGIN PASSWORD 'slow-secret'; GRANT SELECT ON slow TO slow;"
        " ALTER TABLE slow ENABLE ROW LEVEL SECURITY;"
        " CREATE POLICY slow ON slow USING (pg_sleep(0.4) IS NOT NULL)"
    )
    asked = ingester(database.connection(user="slow", password="slow-secret"), "slow")
    running = RunningTrial(asked, rows=3)
    assert running.intake.enough.wait(120)
    assert "has not done it within 1 s" in running.stop().why
    assert ids(running) == [1, 2, 3]


def test_values_are_what_the_database_has(database: Database) -> None:
    names = {"n": "number", "f": "number", "b": "boolean", "at": "timestamp", "day": "timestamp"}
    columns = [{"name": name, "type": type} for name, type in names.items()]
    columns += [{"name": name} for name in ("many", "doc", "whole")]
    columns += [{"name": 'odd "%s', "from": 'o"%s', "type": "timestamp"}]
    database.ask(
        "CREATE TABLE typed (id text PRIMARY KEY, n numeric, f float8, b bool, at timestamptz, day date,"
        ' many int[], doc jsonb, whole numeric, "o""%s" timestamp);'
        " INSERT INTO typed VALUES ('a', 1.50, 'NaN', true, '2026-03-01 07:00:00.5+01', '2026-03-01',"
        " '{1,2}', '{\"a\": [1]}', 3, '2026-07-01 12:00');"
        " INSERT INTO typed (id, f) VALUES ('b', '-Infinity'), ('c', 1);"
        " UPDATE typed SET doc = to_jsonb(repeat('x', 1000000)) WHERE id = 'c'"
    )
    asked = ingester(
        database.connection(), "typed", columns=columns, time_column="at", time_zone="Europe/Berlin"
    )
    first, second, third = trial_ingester(asked, 3, 60).records
    assert json.loads(first.value) == {
        "n": 1.5,
        "f": None,
        "b": True,
        "at": "2026-03-01T06:00:00.5",
        "day": "2026-02-28T23:00:00",
        "many": "{1,2}",
        "doc": '{"a": [1]}',
        "whole": "3",
        'odd "%s': "2026-07-01T10:00:00",
        "_time": "2026-03-01T06:00:00.5",
    }
    assert set(json.loads(second.value).values()) == {None}
    assert re.match(rb"10\d{5} bytes are too many", third.value)


def test_only_new_rows_come_in_if_that_is_chosen(database: Database) -> None:
    database.ask("CREATE TABLE fresh (id bigint GENERATED ALWAYS AS IDENTITY UNIQUE)")
    database.ask("INSERT INTO fresh SELECT FROM generate_series(1, 5)")
    running = RunningTrial(ingester(database.connection(), "fresh", start="new"))
    wait_until(lambda: running.intake.position, "the place where it begins")
    database.ask("INSERT INTO fresh DEFAULT VALUES")
    assert running.intake.enough.wait(60)
    running.stop()
    assert ids(running) == [6]


def test_what_is_wrong_is_said_in_words(database: Database) -> None:
    database.ask(
        "CREATE TABLE misfit (id int, v real NOT NULL); CREATE VIEW seen_only AS SELECT * FROM misfit;"
        " CREATE SEQUENCE wide CACHE 20; CREATE TABLE cached (id int PRIMARY KEY DEFAULT nextval('wide'));"
        " CREATE TABLE copied (id serial PRIMARY KEY); CREATE TABLE parent (id serial PRIMARY KEY);"
        " CREATE TABLE child () INHERITS (parent); CREATE TABLE odd (id numeric PRIMARY KEY);"
        " INSERT INTO odd VALUES ('NaN');"
        " CREATE SUBSCRIPTION copy CONNECTION 'dbname=none' PUBLICATION none"
        "  WITH (connect = false, slot_name = NONE)"
    )
    database.ask(
        "SET allow_system_table_mods = on; INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate)"
        " SELECT oid, 'copied'::regclass, 'r' FROM pg_subscription"
    )
    right = database.connection()

    def why(connection: PostgresqlConnection, table: str, **params: Any) -> str:
        running = RunningTrial(ingester(connection, table, **params))
        wait_until(lambda: running.status.state == "failing", "the words", 30)
        return running.stop().why

    assert 'there is no table "public"."none"' in why(right, "none")
    said = why(right, "misfit")
    assert "may be empty" in said
    assert "has no unique index of its own" in said
    assert "is real: a rising column is" in why(right, "misfit", rising="v")
    assert "is a view" in why(right, "seen_only")
    assert "gives each session 20 numbers" in why(right, "cached")
    assert "is filled by logical replication" in why(right, "copied")
    assert "other tables inherit from" in why(right, "parent")
    assert "has NaN in the column" in why(right, "odd")
    wrong = why(database.connection(password="wrong-secret"), "misfit")
    assert "does not let the user ann in" in wrong
    assert "wrong-secret" not in wrong


def test_each_row_comes_once_into_kafka_over_kills_of_the_process_and_of_the_database(
    kafka: str, database: Database, tmp_path: Path
) -> None:
    database.ask("CREATE TABLE once (id serial PRIMARY KEY)")
    asked = _config(kafka, database, "once", tmp_path)
    epochs, said = iter(range(1, 10)), list[ConnectorStatus]()

    def started() -> ConnectorProcess:
        process = ConnectorProcess(
            asked.model_dump_json(), lambda status, _: said.append(status), lambda: None
        )
        process.say(Order(do="run", epoch=next(epochs)).model_dump_json())
        return process

    def values() -> list[int]:
        found = committed_values(KafkaSettings(kafka), asked.topic, hidden=True)
        return [json.loads(value)["id"] for value in found]

    stop = threading.Event()

    def write() -> None:
        while not stop.wait(0.1):
            with database.client(autocommit=False) as client:
                client.execute("INSERT INTO once SELECT FROM generate_series(1, 5)")
                client.rollback() if client.info.backend_pid % 3 == 0 else client.commit()

    writers = [threading.Thread(target=write) for _ in range(3)]
    for each in writers:
        each.start()
    process = started()
    for _ in range(2):
        before = len(values())
        wait_until(lambda before=before: len(values()) > before + 20, "more rows")
        process.kill()
        process = started()
    stop.set()
    for each in writers:
        each.join()
    database.kill()
    wait_until(lambda: said[-1].state == "failing", "the words")
    database.start()
    database.ask("INSERT INTO once DEFAULT VALUES")
    [(last,)] = database.ask("SELECT max(id) FROM once")
    wait_until(lambda: last in values(), "the last row")
    process.say(Order(do="stop").model_dump_json())
    wait_until(lambda: not process.alive, "its end")
    process.kill()
    assert values() == [id for (id,) in database.ask("SELECT id FROM once ORDER BY id")]


def _config(kafka: str, database: Database, table: str, directory: Path) -> ConnectorConfig:
    deployment = uuid4().hex[:8]
    made = ConnectorConfig(
        kind="in",
        deployment=deployment,
        element="e",
        topic=f"fl.{deployment}.e.intake",
        connector=PostgresqlIn.connector,
        operator=name_of(PostgresqlIn),
        params={
            "connection": "d",
            "table": table,
            "rising": "id",
            "every_ms": 100,
            "columns": [{"name": "id", "type": "integer"}],
        },
        connections={"connection": database.connection().model_dump(mode="json")},
        group=f"{deployment}.g",
        kafka_bootstrap=kafka,
        spool=str(directory / "spool"),
    )
    ensure_topics(
        KafkaSettings(kafka),
        [
            Topic(made.topic),
            Topic(f"fl.{deployment}.e.position", "position"),
            Topic(journal_topic(deployment, "g"), "journal"),
        ],
    )
    group_has_read(kafka, made.group, made.topic, 1_000_000)
    return made


@pytest.mark.full
def test_a_server_that_hangs_is_told_in_words(database: Database) -> None:
    database.ask("CREATE TABLE hung (id serial PRIMARY KEY)")
    running = RunningTrial(ingester(database.connection(), "hung"))
    wait_until(lambda: running.status.state == "connected", "a connection")
    database.hang()
    try:
        wait_until(lambda: "does not answer within 7 s" in running.status.why, "the words", 30)
    finally:
        database.go_on()
    database.ask("INSERT INTO hung DEFAULT VALUES")
    assert running.intake.enough.wait(60)
    running.stop()


@pytest.mark.full
def test_partitions_and_what_writes_to_them_are_seen(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_in, "HELD_S", 0.1)
    database.ask(
        "CREATE TABLE parted (id bigserial PRIMARY KEY) PARTITION BY RANGE (id);"
        " CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (1) TO (1000)"
    )
    with database.client(autocommit=False) as late:
        late.execute("INSERT INTO parted_1 VALUES (1)")
        database.ask("SELECT setval('parted_id_seq', 1)")
        database.ask("INSERT INTO parted DEFAULT VALUES")
        running = RunningTrial(ingester(database.connection(), "parted"), rows=2)
        waits_for(running, late.info.backend_pid)
        late.commit()
        assert running.intake.enough.wait(60)
        running.stop()
    assert ids(running) == [1, 2]
