"""OPC UA beside a real server that is killed, hung and started again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA1, SHA256

from pipeline_runtime.connectors.opcua import OpcUaIngester
from pipeline_runtime.connectors.opcua_browse import FOUND_MAX, probe, search
from pipeline_runtime.connectors.opcua_out import OpcUaDeliverer
from pipeline_runtime.connectors.sdk import Batch, ConnectorError, Place
from pipeline_runtime.connectors.trial import RunningTrial, trial_deliverer
from pipeline_runtime.model.connectors import Offer
from pipeline_runtime.operators.opcua import OpcUaConnection, OpcUaInParams, OpcUaOutParams
from tests.opcua_servers import NOTE, PRESS, OpcUaServer, certificate
from tests.ports import free_ports
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

BAD_SENSOR = 0x808C_0000
REFUSES = r"does not list its nodes: .*BadUserAccessDenied"


@pytest.fixture(scope="module")
def shared_server() -> Iterator[OpcUaServer]:
    with OpcUaServer() as server:
        yield server


def column(name: str, node: str = "") -> dict[str, Any]:
    return {"name": name.lower(), "node": node or f"{PRESS}.{name}"}


def ingester(connection: OpcUaConnection, *columns: dict[str, Any], **params: Any) -> OpcUaIngester:
    given = {
        "connection": "s",
        "publish_ms": 20,
        "columns": columns or (column("Temperature"),),
        **params,
    }
    return OpcUaIngester(Place("dep", "in", OpcUaInParams.model_validate(given), connection))


def values(running: RunningTrial, name: str) -> list[Any]:
    return [row["values"][name] for row in running.taken.rows if name in row["values"]]


def why(connection: OpcUaConnection) -> str:
    with pytest.raises(ConnectorError) as caught:
        probe(connection, "")
    return str(caught.value)


def _broken(*_: Any) -> bool:
    raise RuntimeError


def test_changes_come_as_rows_with_their_source_time_and_quality(shared_server: OpcUaServer) -> None:
    running = RunningTrial(
        ingester(
            shared_server.connection(), column("Temperature"), column("Strokes"), column("No", "ns=2;s=No")
        )
    )
    wait_until(
        lambda: {"temperature", "strokes"} <= {n for r in running.taken.rows for n in r["values"]}, "values"
    )
    time = datetime(2026, 3, 1, 6, 0, 0, 123456, tzinfo=UTC)
    shared_server.write("Temperature", 30.25, time=time)
    shared_server.write("Temperature", 99.0, status=BAD_SENSOR)
    wait_until(lambda: values(running, "temperature")[-1] is None, "the bad value")
    running.intake.put = _broken  # type: ignore[method-assign]
    shared_server.write("Temperature", 31.0)
    words = "could not be taken: RuntimeError"
    wait_until(lambda: any(words in each.why for each in running.taken.statuses), "the error to be told")
    taken = running.stop()
    good = next(row for row in taken.rows if row["values"].get("temperature") == 30.25)
    assert good == {
        "time": int(time.timestamp()) * 1_000_000 + 123456,
        "values": {"temperature": 30.25},
        "quality": "Good",
    }
    assert taken.rows[-1]["quality"] == "BadSensorFailure"
    assert any("does not give ns=2;s=No (no): BadNodeIdUnknown" in each.why for each in taken.statuses)


def test_what_is_wrong_is_said_in_words(shared_server: OpcUaServer) -> None:
    [free] = free_ports(1)
    right = shared_server.connection()
    assert "Nobody listens at the OPC UA server" in why(right.model_copy(update={"port": free}))
    assert "is not known here" in why(right.model_copy(update={"host": "nowhere.invalid"}))
    own, key = certificate("fogline")
    secure = right.model_copy(update={"security": "sign", "certificate": own, "private_key": key})
    assert "does not offer Basic256Sha256 with sign. It offers: none." in why(secure)


def test_a_probe_looks_into_the_tree(shared_server: OpcUaServer) -> None:
    top = {each.title: each for each in probe(shared_server.connection(), "").found}
    assert (top["Press"].path, top["Press"].inner) == (PRESS, True)
    probed = probe(shared_server.connection(), PRESS)
    assert [(each.path, each.title, each.type, each.unit, each.inner) for each in probed.found] == [
        (f"{PRESS}.Temperature", "Temperature", "Double", "°C", False),
        (f"{PRESS}.Strokes", "Strokes", "Int64", "", False),
        (f"{PRESS}.Running", "Running", "Boolean", "", False),
    ]
    assert probed.rows[2] == {"name": "Running", "value": True, "status": "Good"}
    assert [(each.usable, each.holds, each.value) for each in probed.found][2] == (True, "boolean", True)
    assert [each.holds for each in probed.found] == ["number", "integer", "boolean"]
    with pytest.raises(ConnectorError, match="BadNodeId"):
        probe(shared_server.connection(), "ns=2;s=Nothing")


def test_a_search_finds_values_by_their_name_and_by_what_they_lie_in(shared_server: OpcUaServer) -> None:
    [one] = search(shared_server.connection(), "TEMPER").found
    assert (one.path, one.within, one.unit) == (f"{PRESS}.Temperature", ("Press",), "°C")
    found = search(shared_server.connection(), "press").found
    assert {each.title for each in found} == {"Temperature", "Strokes", "Running"}
    probed = search(shared_server.connection(), "nothing of this name")
    assert (probed.found, probed.words[:8]) == ((), "0 values")


def test_what_a_server_refuses_to_tell_is_not_called_nothing() -> None:
    with OpcUaServer(refused=PRESS) as server:
        with pytest.raises(ConnectorError, match=REFUSES):
            probe(server.connection(), PRESS)
        found = search(server.connection(), "temper")
    assert found.found == ()
    assert "does not tell what lies below 1 of its nodes (BadUserAccessDenied)" in found.words


@pytest.mark.full
def test_a_server_that_refuses_everything_is_told_by_its_reason() -> None:
    with OpcUaServer(refused="i=85") as server:
        for ask in (lambda: probe(server.connection(), ""), lambda: search(server.connection(), "temper")):
            with pytest.raises(ConnectorError, match=REFUSES):
                ask()


def test_a_large_folder_is_cut_and_searched_as_a_whole() -> None:
    with OpcUaServer(many=FOUND_MAX + 200) as server:
        listed = probe(server.connection(), f"{PRESS}.Many")
        assert len(listed.found) == FOUND_MAX
        assert f"The first {FOUND_MAX} are shown" in listed.words
        [last] = search(server.connection(), f"Value {FOUND_MAX + 199}").found
        assert last.within == ("Press", "Many")


def deliverer(connection: OpcUaConnection, *columns: str) -> OpcUaDeliverer:
    nodes = [{"column": each.lower(), "node": f"{PRESS}.{each}"} for each in columns]
    params = OpcUaOutParams.model_validate({"connection": "s", "late_s": None, "nodes": nodes})
    return OpcUaDeliverer(Place("dep", "out", params, connection))


def test_rows_are_written_in_the_types_of_their_nodes(shared_server: OpcUaServer) -> None:
    rows: list[dict[str, Any]] = [
        {"temperature": 40, "strokes": 7.0, "running": True},
        {"temperature": None, "strokes": 7.5, "running": None},
    ]
    taken = trial_deliverer(deliverer(shared_server.connection(), "Temperature", "Strokes", "Running"), rows)
    assert [letter.reason for letter in taken.refused] == [
        "its strokes cannot be written: 7.5 is no whole number, and its node is a Int64"
    ]
    found = {row["name"]: row["value"] for row in probe(shared_server.connection(), PRESS).rows}
    assert found == {"Temperature": 40.0, "Strokes": 7, "Running": True}
    again = deliverer(shared_server.connection(), "Temperature")
    again.open(1)
    batch = Batch([{"temperature": 50}], [0], [0], 0, 1)
    again.deliver(batch)
    shared_server.write("Temperature", 60.0)
    again.deliver(batch)  # as after an error
    again.close()
    assert probe(shared_server.connection(), PRESS).rows[0]["value"] == 60.0
    unknown = trial_deliverer(deliverer(shared_server.connection(), "No"), [{"no": 1}], timeout_s=1)
    assert f"does not give {PRESS}.No (no): BadNodeIdUnknown" in unknown.why


@pytest.mark.full
def test_rows_wait_while_the_server_is_away_and_all_are_written() -> None:
    with OpcUaServer() as server:
        server.kill()
        late = threading.Timer(2.0, server.start)
        late.start()
        rows = [{"temperature": value} for value in range(5)]
        taken = trial_deliverer(deliverer(server.connection(), "Temperature"), rows, timeout_s=60)
        late.join()
        assert any("Nobody listens" in status.why for status in taken.statuses)
        assert probe(server.connection(), PRESS).rows[0]["value"] == 4.0


@pytest.mark.full
def test_a_certificate_that_has_expired_or_is_not_trusted_is_told_in_words(tmp_path: Path) -> None:
    own, key = certificate("fogline")
    known = certificate("server")[0]
    security = {"security": "sign and encrypt", "certificate": own, "private_key": key}
    security["server_certificate"] = known
    with OpcUaServer(tmp_path / "right", trusted=[own]) as server:
        assert probe(server.connection(**security), PRESS).words.startswith("Connected.")
        strange, its_key = certificate("stranger")
        said = why(server.connection(**security | {"certificate": strange, "private_key": its_key}))
        assert "does not accept the certificate of this connection (BadCertificateUntrusted)" in said
        old, its_key = certificate("old", 0)
        said = why(server.connection(**security | {"certificate": old, "private_key": its_key}))
        assert "The own certificate of the connection has expired" in said
    with OpcUaServer(tmp_path / "expired", own=certificate("expired", 0), trusted=[own]) as server:
        assert "has expired. Its administrator has to renew it" in why(server.connection(**security))


def test_a_server_that_nobody_has_accepted_is_told_no_secret_and_its_certificate_is_offered(
    tmp_path: Path,
) -> None:
    """Also one that shows another certificate than before."""
    own, key = certificate("fogline")
    security = {"security": "sign and encrypt", "certificate": own, "private_key": key}
    login = {"user": "ann", "password": "right"}
    with OpcUaServer(tmp_path, user="ann", trusted=[own]) as server:

        def refused(**fields: Any) -> tuple[str, Offer]:
            with pytest.raises(ConnectorError) as caught:
                probe(server.connection(**security, **login, **fields), "")
            assert caught.value.lasting
            assert caught.value.offer is not None
            return str(caught.value), caught.value.offer

        said, offer = refused()
        assert "is not verified yet, so Fogline does not log in" in said
        shown = certificate("server")[0]
        for by in (SHA1(), SHA256()):
            assert x509.load_pem_x509_certificate(shown.encode()).fingerprint(by).hex(":").upper() in said
        accepted = server.connection(**security, **login, **{offer.field: offer.value})
        assert probe(accepted, PRESS).words.startswith("Connected.")
        said, again = refused(server_certificate=certificate("other")[0])
        assert "shows another certificate than the one in the connection" in said
        assert again == offer


@pytest.mark.full
def test_certificates_users_and_passwords(tmp_path: Path) -> None:
    own, key = certificate("fogline")
    with OpcUaServer(tmp_path, user="ann", trusted=[own]) as server:
        for security in ("sign", "sign and encrypt"):
            fields = {"security": security, "certificate": own, "private_key": key, "user": "ann"}
            right = server.connection(**fields, password="right", server_certificate=certificate("server")[0])
            assert probe(right, PRESS).words.startswith("Connected.")
            refused = why(right.model_copy(update={"password": "wrong-secret"}))
            assert "does not let the user ann in" in refused
            assert "wrong-secret" not in refused
        assert "without signing" in why(server.connection(user="ann", password="right"))
        other = certificate("other")[0]
        assert "do not belong together" in why(right.model_copy(update={"certificate": other}))


@pytest.mark.full
def test_a_value_of_10_mb_comes_and_the_values_after_it_too(shared_server: OpcUaServer) -> None:
    """The intake makes a dead letter of it."""
    note = {"name": "note", "node": NOTE, "type": "string"}
    running = RunningTrial(ingester(shared_server.connection(), note, column("Strokes")))
    wait_until(lambda: running.status.state == "connected", "a connection")
    shared_server.write("Note", "x" * 10_000_000)
    wait_until(lambda: any(len(each) == 10_000_000 for each in values(running, "note")), "the value")
    shared_server.write("Strokes", 77)
    wait_until(lambda: values(running, "strokes")[-1] == 77, "the value after it")
    assert running.stop().why == ""


@pytest.mark.full
def test_a_server_that_does_not_answer_is_told_in_words(shared_server: OpcUaServer) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        assert "does not answer in time" in why(shared_server.connection().model_copy(update={"port": port}))


@pytest.mark.full
def test_the_subscription_comes_back_after_a_hang_and_a_kill_and_the_gaps_are_told() -> None:
    with OpcUaServer() as server:
        running = RunningTrial(ingester(server.connection()))
        wait_until(lambda: values(running, "temperature") == [21.5], "the first value")
        server.hang()
        wait_until(lambda: running.status.state == "failing", "the hang to be noticed", timeout_s=12)
        server.go_on()
        wait_until(lambda: running.status.state == "connected", "a new connection", timeout_s=40)
        assert running.status.gaps_total == 1
        server.kill()
        wait_until(lambda: "Nobody listens" in running.status.why, "the words", timeout_s=12)
        server.start()
        wait_until(lambda: running.status.state == "connected", "a new connection", timeout_s=40)
        server.write("Temperature", 30.0)
        wait_until(lambda: values(running, "temperature")[-1] == 30.0, "a value after the restart")
        taken = running.stop()
    assert running.status.gaps_total == 2
    assert all("The subscription was away for" in note for note in taken.notes)
