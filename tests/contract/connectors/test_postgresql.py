"""PostgreSQL out beside a real server that is killed, hung and started again."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline_runtime.connectors import pulse
from pipeline_runtime.connectors.postgresql_out import ROWS_MAX, PostgresqlDeliverer
from pipeline_runtime.connectors.postgresql_tables import probe, search
from pipeline_runtime.connectors.sdk import Batch, ConnectorError, Place
from pipeline_runtime.connectors.trial import RunningDelivery, trial_deliverer
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.postgresql import PostgresqlConnection, PostgresqlOut, PostgresqlOutParams
from tests.databases import Database
from tests.opcua_servers import certificate
from tests.ports import free_ports
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.integration

ROWS = StreamSchema(
    fields=(
        Field(name="line", type=FieldType.STRING),
        Field(name="n", type=FieldType.INTEGER),
        Field(name="kW", type=FieldType.NUMBER),
        Field(name="on", type=FieldType.BOOLEAN),
        Field(name="at", type=FieldType.TIMESTAMP),
    )
)
AT = "2026-03-01T06:00:00.123456+00:00"


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database() as running:
        yield running


def deliverer(
    connection: PostgresqlConnection, table: str, *, rows: StreamSchema = ROWS, **params: Any
) -> PostgresqlDeliverer:
    given = PostgresqlOutParams.model_validate({"connection": "d", "table": table, **params})
    return PostgresqlDeliverer(Place("dep", table, given, connection, "dep.g", rows))


def row(n: int, line: str | None = "a", **fields: Any) -> dict[str, Any]:
    return {"line": line, "n": n, "kW": 0.5, "on": True, "at": AT, **fields}


def batch(rows: Sequence[Mapping[str, Any]], first: int) -> Batch:
    numbers = list(range(first, first + len(rows)))
    return Batch(rows, [0] * len(rows), numbers, first, first + len(rows))


def test_rows_replace_those_of_the_same_key_and_keep_their_values(database: Database) -> None:
    """Also with names that have to be quoted, and with two rows of one key in a batch."""
    table = 'po"wer; DROP TABLE x'
    params = {"create": True, "keys": ["line"], "time_column": "Event time"}
    given = [row(1), row(2), row(3, "b", kW=0.1, on=None, at=None), row(-(2**63), "c", kW=1e300), row(9)]
    taken = trial_deliverer(deliverer(database.connection(), table, **params), given)
    assert taken.refused == []
    quoted = table.replace('"', '""')
    found = database.ask(f'SELECT line, n, "kW", "on", "at"::text FROM "{quoted}" ORDER BY line')
    assert found == [
        ("a", 9, 0.5, True, "2026-03-01 06:00:00.123456+00"),
        ("b", 3, 0.1, None, None),
        ("c", -(2**63), 1e300, True, "2026-03-01 06:00:00.123456+00"),
    ]
    again = trial_deliverer(deliverer(database.connection(), table, **params), given)
    assert again.why == ""
    assert database.ask(f'SELECT count(*) FROM "{quoted}"') == [(3,)]


def test_rows_that_the_database_refuses_become_dead_letters_and_the_others_go_on(
    database: Database,
) -> None:
    database.ask(
        'CREATE TABLE strict (line varchar(3), n smallint CHECK (n <> 5), "kW" numeric, "on" bool,'
        " at timestamp, doc text, UNIQUE (line, n))"
    )
    bad = [row(40_000), row(5), row(6, "long"), row(7, None), row(8, "a\0"), row(9, "\ud800")]
    given = [row(n) for n in range(4)] + bad + [row(n) for n in range(10, 14)]
    taken = trial_deliverer(
        deliverer(database.connection(), "strict", keys=["line", "n"]), given, batch_rows=7
    )
    assert [letter.row["n"] for letter in taken.refused if letter.row["n"] != 7] == [40_000, 5, 6, 8, 9]
    reasons = {letter.row["n"]: letter.reason for letter in taken.refused}
    assert "smallint out of range" in reasons[40_000]
    assert "violates check constraint" in reasons[5]
    assert "value too long" in reasons[6]
    assert reasons[7] == "its line is empty, and it is a key of the table"
    assert database.ask("SELECT array_agg(n ORDER BY n) FROM strict") == [([0, 1, 2, 3, 10, 11, 12, 13],)]


def test_each_row_is_written_once_over_a_kill_and_an_earlier_owner_is_refused(database: Database) -> None:
    """Killed with the rows written and nothing committed, and again when all is committed and nothing of it
    is known."""
    rows = [row(n) for n in range(4)]
    first = deliverer(database.connection(), "once", create=True)
    first.open(1)
    first.deliver(batch(rows[:2], 0))
    database.kill()
    with pytest.raises(ConnectorError, match="was lost"):
        first.settle()
    first.close()
    database.start()
    first.open(1)
    assert first.position() == 0
    first.deliver(batch(rows[:2], 0))
    first.settle()
    later = deliverer(database.connection(), "once")
    later.open(2)
    assert later.position() == 2
    with pytest.raises(ConnectorError, match="later owner") as caught:
        first.deliver(batch(rows[2:], 2))
    assert caught.value.lasting
    assert first.batch_rows == ROWS_MAX // 4
    first.close()
    with pytest.raises(ConnectorError, match="later owner"):
        first.open(1)
    first.close()
    with pytest.raises(ConnectorError, match="later owner"):
        later.deliver(batch(rows, 0))
    later.close()
    later.open(2)
    later.deliver(batch(rows[2:], 2))
    later.settle()
    later.close()
    assert database.ask("SELECT n FROM once ORDER BY n") == [(0,), (1,), (2,), (3,)]


def test_a_row_of_10_mb_is_written(database: Database) -> None:
    wide = StreamSchema(fields=(Field(name="text", type=FieldType.STRING),))
    rows = [{"text": "x" * 10_000_000}, {"text": "y"}]
    taken = trial_deliverer(deliverer(database.connection(), "wide", rows=wide, create=True), rows)
    assert (taken.why, taken.refused) == ("", [])
    assert database.ask("SELECT length(text) FROM wide ORDER BY 1") == [(1,), (10_000_000,)]


def test_what_is_wrong_is_said_in_words(database: Database) -> None:
    def why(connection: PostgresqlConnection) -> str:
        with pytest.raises(ConnectorError) as caught:
            probe(connection, "")
        return str(caught.value)

    [free] = free_ports(1)
    right = database.connection()
    assert "Nobody listens at" in why(right.model_copy(update={"port": free}))
    assert "is not known here" in why(right.model_copy(update={"host": "nowhere.invalid"}))
    refused = why(right.model_copy(update={"password": "wrong-secret"}))
    assert "does not let the user ann in" in refused
    assert "wrong-secret" not in refused
    assert 'database "none" does not exist' in why(right.model_copy(update={"database": "none"}))
    assert "Check TLS" in why(right.model_copy(update={"tls": True}))


def test_a_table_that_does_not_fit_is_told_with_its_columns_and_types(database: Database) -> None:
    def faults(table: str, **params: Any) -> str:
        with pytest.raises(ConnectorError) as caught:
            deliverer(database.connection(), table, **params).open(1)
        assert caught.value.lasting
        return str(caught.value)

    assert 'there is no table "public"."none"' in faults("none")
    database.ask('CREATE TABLE misfit (line text, n text, "kW" float8, at timestamptz, must int NOT NULL)')
    said = faults("misfit", keys=["line"])
    assert 'has no column "on" (the input has it as true or false)' in said
    assert 'the column "n" of "public"."misfit" is text, and the input has a whole number' in said
    assert 'the column "must" of "public"."misfit" (integer) must have a value' in said
    assert "has no unique index on exactly the key columns" in said


def test_a_probe_lists_tables_columns_types_and_first_rows(database: Database) -> None:
    database.ask("CREATE TABLE seen (line varchar(3), v numeric(5,2)); INSERT INTO seen VALUES ('a', 1.50)")
    assert ("public.seen", "seen", True) in [
        (each.path, each.title, each.inner) for each in probe(database.connection(), "").found
    ]
    probed = probe(database.connection(), "public.seen")
    assert [(each.title, each.type) for each in probed.found] == [
        ("line", "character varying(3)"),
        ("v", "numeric(5,2)"),
    ]
    assert json.dumps(probed.rows) == '[{"line": "a", "v": "1.50"}]'
    with pytest.raises(ConnectorError, match='no table "none"'):
        probe(database.connection(), "public.none")


def test_a_search_finds_tables_with_their_columns_and_keys(database: Database) -> None:
    database.ask("CREATE SCHEMA hall; CREATE TABLE hall.found_it (line text, at timestamptz, n int)")
    database.ask("ALTER TABLE hall.found_it ADD PRIMARY KEY (line, at)")
    [table] = search(database.connection(), "HALL.FOUND").found
    assert (table.path, table.usable) == ("hall.found_it", True)
    assert [(each.name, each.type, each.key) for each in table.parts] == [
        ("line", "string", True),
        ("at", "timestamp", True),
        ("n", "integer", False),
    ]
    assert search(database.connection(), "100%_nothing").found == ()
    database.ask('CREATE SCHEMA "hall.1"; CREATE TABLE "hall.1"."far.out" (line text)')
    [far] = search(database.connection(), "far.out").found
    assert [each.title for each in probe(database.connection(), far.path).found] == ["line"]
    taken = PostgresqlOut.taken({}, [far], ())
    assert (taken["namespace"], taken["table"]) == ("hall.1", "far.out")


@pytest.mark.full
def test_texts_become_the_types_of_the_table(database: Database) -> None:
    database.ask(
        "CREATE TYPE colour AS ENUM ('red'); CREATE DOMAIN short AS varchar(2);"
        " CREATE TABLE typed (id uuid, doc jsonb, colour colour, short short)"
    )
    texts = tuple(Field(name=name, type=FieldType.STRING) for name in ("id", "doc", "colour", "short"))
    id = "123e4567-e89b-12d3-a456-426614174000"
    good = {"id": id, "doc": '{"a": [1]}', "colour": "red", "short": "ab"}
    given = [good, {**good, "id": "x"}, {**good, "doc": "{"}, {**good, "colour": "blue"}]
    given.append({**good, "short": "abc"})
    taken = trial_deliverer(
        deliverer(database.connection(), "typed", rows=StreamSchema(fields=texts)), given, batch_rows=5
    )
    assert len(taken.refused) == 4
    assert database.ask("SELECT id::text, doc, colour::text, short FROM typed") == [
        (id, {"a": [1]}, "red", "ab")
    ]


@pytest.mark.full
def test_the_system_says_whose_certificates_are_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own, key = certificate("database")
    authority = tmp_path / "authorities.pem"
    authority.write_text(own)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.setenv(name, "")  # so that it is as before after the test
        monkeypatch.delenv(name)
    with Database() as database:
        database.speak_tls(own, key)
        connection = database.connection(host="localhost", tls=True)
        with pytest.raises(ConnectorError, match="is signed by an unknown authority"):
            probe(connection, "")
        for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
            monkeypatch.delenv(name, raising=False)
        known = ssl.get_default_verify_paths()._replace(cafile=str(authority))
        monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: known)
        assert probe(connection, "").words.startswith("Connected.")


def test_a_server_that_hangs_in_the_middle_of_a_batch_is_told_of_long_before_its_time_is_over(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulse, "TELL_S", 0.3)
    rows = [row(n) for n in range(600)]
    database.ask('CREATE TABLE hangs (line text, n int, "kW" float8, "on" bool, at timestamptz)')
    running = RunningDelivery(deliverer(database.connection(), "hangs"), rows)
    wait_until(lambda: database.ask("SELECT count(*) FROM hangs") != [(0,)], "rows to flow")
    database.hang()
    try:
        wait_until(lambda: "waited for an answer of its system" in running.status.why, "the words")
    finally:
        database.go_on()
    assert running.taken_within(PATIENCE_S).statuses[-1].state == "connected"
    assert database.ask("SELECT array_agg(n) FROM hangs") == [([*range(600)],)]


@pytest.mark.full
def test_a_server_that_hangs_is_told_in_words(database: Database) -> None:
    open_one = deliverer(database.connection(), "hung", create=True)
    open_one.open(1)
    database.hang()
    try:
        with pytest.raises(ConnectorError, match="does not answer within"):
            open_one.idle()
        with pytest.raises(ConnectorError, match=r"does not answer\. Is it PostgreSQL"):
            probe(database.connection(), "")
        open_one.close()
    finally:
        database.go_on()
    assert probe(database.connection(), "").words.startswith("Connected.")
