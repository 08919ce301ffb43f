"""HTTP poll beside a real server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pipeline_runtime.connectors import http_poll
from pipeline_runtime.connectors.delivery import ingest
from pipeline_runtime.connectors.http_browse import probe
from pipeline_runtime.connectors.http_poll import HttpPollIngester
from pipeline_runtime.connectors.intake import SpooledIntake
from pipeline_runtime.connectors.report import Report
from pipeline_runtime.connectors.sdk import ConnectorError, Place, Record
from pipeline_runtime.connectors.spool import Spool
from pipeline_runtime.connectors.trial import MemoryIntake, RunningTrial, Taken, trial_ingester
from pipeline_runtime.operators.http import HttpConnection
from pipeline_runtime.operators.http_poll import HttpPollParams
from tests.ports import free_ports
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

TOKEN = "0123456789abcdef"

Said = tuple[int, dict[str, str], bytes]
"""The status, the headers and the body of an answer."""


class Asked:
    """A server that answers what `answer(path, headers)` returns, and what it was asked."""

    def __init__(self, port: int) -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.answer: Callable[[str, dict[str, str]], Said] = lambda path, headers: (200, {}, b"[]")
        asked = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked.requests.append((self.path, headers))
                status, more, body = asked.answer(self.path, headers)
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                if status != 304:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                return None

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@contextmanager
def serving(port: int) -> Iterator[Asked]:
    asked = Asked(port)
    try:
        yield asked
    finally:
        asked.server.shutdown()
        asked.server.server_close()


def ingester(port: int, **params: Any) -> HttpPollIngester:
    given = {"connection": "h", "path": "/rows", "every_s": 0.1, "columns": [{"name": "v"}], **params}
    fields = {"host": "127.0.0.1", "port": port, "tls": False, "token": TOKEN}
    return HttpPollIngester(
        Place("dep", "e", HttpPollParams.model_validate(given), HttpConnection.model_validate(fields))
    )


def rows(*ids: int) -> Said:
    return 200, {}, json.dumps({"data": [{"id": id} for id in ids]}).encode()


def test_rows_of_the_last_answer_are_left_out_and_others_come_in() -> None:
    [port] = free_ports(1)
    with serving(port) as server:
        answers = [(204, {}, b""), rows(1, 2), rows(2, 3), (503, {}, b"busy"), rows(3, 4)]
        server.answer = lambda path, headers: answers.pop(0) if answers else rows(4)
        headers = [{"name": "Accept-Language", "value": "de"}]
        taken = trial_ingester(ingester(port, rows="data", id_field="id", headers=headers), 4, 60)
    assert [row["id"] for row in taken.rows] == [1, 2, 3, 4]
    assert any("answers 503 to GET /rows. It says: busy" in each.why for each in taken.statuses)
    assert any("gave no usable answer" in note for note in taken.notes)
    assert len([each for each in taken.statuses if each.state == "failing"]) == 1
    path, sent = server.requests[0]
    assert path == "/rows"
    assert (sent["authorization"], sent["accept-language"]) == (f"Bearer {TOKEN}", "de")


def test_a_server_says_that_nothing_has_changed_once_the_rows_are_durable() -> None:
    [port] = free_ports(1)
    with serving(port) as server:
        replaced = threading.Event()

        def answer(path: str, headers: dict[str, str]) -> Said:
            replaced.wait(30)
            if headers.get("if-none-match") == '"a"':
                return 304, {}, b""
            return 200, {"ETag": '"a"'}, b'[{"v": 1}]'

        server.answer = answer
        running = RunningTrial(ingester(port))
        whole, running.intake.put = running.intake.put, lambda *_: False  # type: ignore[method-assign]
        replaced.set()
        wait_until(lambda: len(server.requests) > 2, "requests whose rows find no room")
        assert all("if-none-match" not in headers for _, headers in server.requests)
        running.intake.put = whole  # type: ignore[method-assign]
        assert running.intake.enough.wait(60)
        before = len(server.requests)
        wait_until(lambda: len(server.requests) > before + 3, "more requests")
        assert running.stop().rows == [{"v": 1}]
    assert server.requests[-1][1]["if-none-match"] == '"a"'


def test_rows_that_become_durable_late_come_once(tmp_path: Path) -> None:
    [port] = free_ports(1)
    sent: list[bytes] = []
    asked_again = threading.Event()
    came_early: list[bool] = []
    report = Report("e", lambda status, note: None)
    spool = Spool(tmp_path, 1 << 20)

    def opens(own: bool) -> bool:
        if not came_early:
            came_early.append(asked_again.wait(3))
        return True

    def send(records: Sequence[Record]) -> None:
        sent.extend(record.value for record in records)

    intake = SpooledIntake(send, spool, report, opens)
    intake.start()
    with serving(port) as server:

        def answer(path: str, headers: dict[str, str]) -> Said:
            if len(server.requests) > 1:
                asked_again.set()
            if headers.get("if-none-match") == '"a"':
                return 304, {}, b""
            return 200, {"ETag": '"a"'}, b'[{"v": 1}]'

        server.answer = answer
        stop = threading.Event()
        args = (ingester(port), intake, report, stop, stop.set)
        thread = threading.Thread(target=ingest, args=args, daemon=True)
        thread.start()
        wait_until(lambda: len(server.requests) > 2, "polls behind the durable row")
        stop.set()
        thread.join(60)
    assert came_early == [False]
    assert intake.close(60)
    spool.close()
    assert sent == [b'{"v": 1}']


def test_a_stop_ends_the_wait_for_rows_to_become_durable() -> None:
    [port] = free_ports(1)
    with serving(port) as server:
        server.answer = lambda path, headers: (200, {}, b'[{"v": 1}]')
        running = RunningTrial(ingester(port))
        put = threading.Event()

        def never_durable(*_: Any) -> bool:
            put.set()
            return True

        running.intake.put = never_durable  # type: ignore[method-assign]
        assert put.wait(60)
        running.stop(30)


def test_a_poll_that_ends_by_an_unknown_error_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    [port] = free_ports(1)
    told: list[str] = []
    intake = MemoryIntake(Taken(), Report("e", lambda status, note: told.append(note)), 1)
    with serving(port) as server, monkeypatch.context() as broken:
        server.answer = lambda path, headers: (200, {}, b'[{"v": 1}]')
        polls, stop = ingester(port, every_s=0.5), threading.Event()
        broken.setattr(http_poll, "rows_of", lambda *_: {}["bug"])
        with pytest.raises(KeyError):
            polls.run(intake, stop)
        broken.undo()
        thread = threading.Thread(target=polls.run, args=(intake, stop), daemon=True)
        thread.start()
        wait_until(lambda: any("gave no usable answer" in note for note in told), "the gap")
        stop.set()
        thread.join(60)


def test_a_redirection_is_followed_here_and_the_token_goes_nowhere_else() -> None:
    [port, other] = free_ports(2)
    with serving(port) as server, serving(other) as elsewhere:
        server.answer = lambda path, headers: (
            (302, {"Location": "/new"}, b"") if path == "/rows" else (200, {}, b'{"v": 1}')
        )
        reads = ingester(port)
        connection = reads.place.connection
        assert trial_ingester(reads, 1, 60).rows[0] == {"v": 1}
        assert probe(connection, "/rows").rows == ({"v": 1},)
        server.answer = lambda path, headers: (302, {"Location": f"http://127.0.0.1:{other}/"}, b"")
        assert probe(connection, "").words == "Connected. The server answers 302 to GET /."
        with pytest.raises(ConnectorError, match="does not follow to another place"):
            probe(connection, "/rows")
        running = RunningTrial(ingester(port))
        wait_until(lambda: "does not follow to another place" in running.status.why, "the words")
        running.stop()
        server.answer = lambda path, headers: (302, {"Location": path}, b"")
        running = RunningTrial(ingester(port))
        wait_until(lambda: "to other places again and again" in running.status.why, "the words")
        running.stop()
        assert elsewhere.requests == []


def test_what_is_wrong_is_said_in_words() -> None:
    [port] = free_ports(1)

    def why(timeout_s: float = 1.0) -> str:
        running = RunningTrial(ingester(port, timeout_s=timeout_s))
        wait_until(lambda: running.status.state == "failing", "the words", 30)
        return running.stop().why

    assert "Nobody listens" in why()
    with serving(port) as server:
        go_on = threading.Event()
        server.answer = lambda path, headers: (200, {}, b"[]") if go_on.wait(30) else (500, {}, b"")
        assert "does not answer within 1 s" in why()
        go_on.set()
        for said, words in (
            ((401, {}, b""), "Check the token"),
            ((200, {}, b"<html>"), "is no JSON"),
            ((200, {}, b"[" + b"1," * 3_000_000 + b"1]"), "more than 5 MiB"),
        ):
            server.answer = lambda path, headers, said=said: said  # type: ignore[misc]
            assert words in why(10.0)
