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

from pipeline_runtime.connectors import postgresql_in
from pipeline_runtime.connectors.config import ConnectorConfig, Order, name_of
from pipeline_runtime.connectors.postgresql_in import PostgresqlIngester
from pipeline_runtime.connectors.sdk import ConnectorError, Place
from pipeline_runtime.connectors.trial import RunningTrial, trial_ingester
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.peek import peek
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
    database.ask(f"CREATE TABLE {table} (id serial PRIMARY KEY)")
    with database.client(autocommit=False) as late, database.client(autocommit=False) as reader:
        reader.execute(f"SELECT * FROM {table}".encode())
        first = f"SELECT nextval('{table}_id_seq')" if drawn else f"INSERT INTO {table} DEFAULT VALUES"
        late.execute(first.encode())
        database.ask(f"INSERT INTO {table} DEFAULT VALUES")
        running = RunningTrial(ingester(database.connection(), table), rows=2)
        waits_for(running, late.info.backend_pid)
        if drawn:
            late.execute(f"INSERT INTO {table} VALUES (1)".encode())
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
    database.ask("CREATE TABLE timed (id int, at timestamptz NOT NULL)")
    with database.client(autocommit=False) as late:
        late.execute("SELECT now()")
        database.ask("INSERT INTO timed VALUES (2, now() - interval '1 h')")
        running = RunningTrial(ingester(database.connection(), "timed", rising="at"), rows=2)
        waits_for(running, late.info.backend_pid)
        late.execute("INSERT INTO timed VALUES (1, now() - interval '2 h')")
        late.commit()
        assert running.intake.enough.wait(60)
        running.stop()
    assert ids(running) == [1, 2]


def test_rows_of_one_time_come_once_each_over_pages_and_errors(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are alike, too, and a row of the same time that comes later stays behind the others."""
    monkeypatch.setattr(postgresql_in, "PAGE_ROWS", 7)
    database.ask(
        "CREATE TABLE ties (id int, at timestamp NOT NULL); INSERT INTO ties"
        " SELECT n / 3, date_trunc('minute', now() AT TIME ZONE 'UTC') - (n / 40) * interval '1 min'"
        " - interval '1 h' FROM generate_series(1, 100) AS n"
    )
    running = RunningTrial(ingester(database.connection(), "ties", rising="at"), rows=101)
    running.intake.refuse += [ConnectorError("Kafka does not answer")]
    wait_until(lambda: len(running.taken.records) > 7, "more than a page")
    running.intake.refuse += [ConnectorError("Kafka does not answer")]
    wait_until(lambda: len(running.taken.records) == 100, "the rows that were there")
    database.ask("INSERT INTO ties VALUES (1000, (now() AT TIME ZONE 'UTC') - interval '10 min')")
    assert running.intake.enough.wait(60)
    position = running.intake.position
    running.stop()
    assert sorted(ids(running)) == [*sorted(n // 3 for n in range(1, 101)), 1000]
    assert position["seen"] == 0
    again = RunningTrial(ingester(database.connection(), "ties", rising="at"), position=position)
    database.ask("INSERT INTO ties VALUES (1001, (now() AT TIME ZONE 'UTC') - interval '5 min')")
    assert again.intake.enough.wait(60)
    assert ids(again) == [1001]
    again.stop()


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
        " INSERT INTO typed (id) VALUES ('b'), ('c');"
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
        " CREATE SEQUENCE wide CACHE 20; CREATE TABLE cached (id int PRIMARY KEY DEFAULT nextval('wide'))"
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
        return [json.loads(record.value)["id"] for record in peek(KafkaSettings(kafka), asked.topic, 5000)]

    stop = threading.Event()

    def write() -> None:
        while not stop.wait(0.01):
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
        connection=database.connection().model_dump(mode="json"),
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
