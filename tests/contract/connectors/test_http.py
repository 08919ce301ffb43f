"""HTTP in and out beside real servers and clients."""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from pipeline_runtime.connectors import http_in, pulse
from pipeline_runtime.connectors.http_browse import probe
from pipeline_runtime.connectors.http_in import HttpIngester
from pipeline_runtime.connectors.http_out import HttpDeliverer, Server
from pipeline_runtime.connectors.sdk import Batch, ConnectorError, Place
from pipeline_runtime.connectors.trial import RunningDelivery, RunningTrial, trial_deliverer
from pipeline_runtime.operators.http import HttpConnection, HttpInParams, HttpOutParams, WebhookConnection
from tests.ports import free_ports
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.integration

TOKEN = "0123456789abcdef"


class Receiver:
    """A server that answers with `answers`, one after the other, then with 200."""

    def __init__(self, port: int) -> None:
        self.got: list[tuple[Any, str]] = []  # the body, the idempotency key
        self.tokens: set[str | None] = set()
        self.answers: list[tuple[int, dict[str, str], str]] = []
        self.refuses = ""  # a request with this text gets 422
        self.goes_on = threading.Event()  # while it is not set, the server takes requests and does not answer
        self.goes_on.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                receiver.goes_on.wait()
                receiver.tokens.add(self.headers["Authorization"])
                receiver.got.append((json.loads(body), self.headers["Idempotency-Key"]))
                status, headers, text = receiver.answers.pop(0) if receiver.answers else (200, {}, "")
                if receiver.refuses and receiver.refuses in body:
                    status, text = 422, "no such thing"
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'[{"a": 1}]')

            def log_message(self, *_: Any) -> None:
                return None

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@contextmanager
def receiving(port: int) -> Iterator[Receiver]:
    receiver = Receiver(port)
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        receiver.server.server_close()


def connection(port: int, **fields: Any) -> HttpConnection:
    given = {"host": "127.0.0.1", "port": port, "tls": False, "token": TOKEN, **fields}
    return HttpConnection.model_validate(given)


def deliverer(port: int, **params: Any) -> HttpDeliverer:
    given = HttpOutParams.model_validate({"connection": "h", **params})
    return HttpDeliverer(Place("dep", "out", given, connection(port)))


def test_rows_are_sent_until_the_server_has_them_each_with_its_own_key() -> None:
    """Also when nobody listens at first, and after 503 in the middle of a batch."""
    [port] = free_ports(1)
    with receiving(port) as receiver:
        receiver.answers = [
            (200, {}, ""),
            (503, {}, "soon"),
            (200, {}, ""),
            (422, {}, "bad row"),
            (200, {}, ""),
        ]
        taken = trial_deliverer(deliverer(port), [{"n": n} for n in range(4)], batch_rows=4)
        assert [(body["n"], key) for body, key in receiver.got] == [
            (n, f"dep.out.0.{n}") for n in (0, 1, 1, 2, 3)
        ]
        assert receiver.tokens == {f"Bearer {TOKEN}"}
    assert any("answers 503" in status.why and "soon" in status.why for status in taken.statuses)
    assert [(letter.row["n"], letter.reason) for letter in taken.refused] == [
        (2, "the server answers 422: bad row")
    ]


def test_of_an_array_only_the_rows_that_the_server_refuses_are_left_out() -> None:
    [port] = free_ports(1)
    with receiving(port) as receiver:
        receiver.refuses = '"n": 5'
        rows = [{"n": n} for n in range(8)]
        taken = trial_deliverer(deliverer(port, body="rows", id_field="id"), rows, batch_rows=8)
        accepted = [body for body, _ in receiver.got if all(row["n"] != 5 for row in body)]
    assert [row["n"] for body in accepted for row in body] == [0, 1, 2, 3, 4, 6, 7]
    assert all(row["id"] == row["n"] for body in accepted for row in body)
    assert [letter.row["n"] for letter in taken.refused] == [5]


def test_a_row_of_10_mb_is_sent_or_is_a_dead_letter_where_it_is_too_large() -> None:
    [port] = free_ports(1)
    with receiving(port) as receiver:
        receiver.answers = [(200, {}, ""), (413, {}, "too large"), (200, {}, "")]
        rows = [{"n": "x" * 10_000_000}, {"n": "x" * 10_000_000}, {"n": 3}]
        taken = trial_deliverer(deliverer(port), rows, timeout_s=PATIENCE_S)
    assert [len(str(body["n"])) for body, _ in receiver.got] == [10_000_000, 10_000_000, 1]
    assert [letter.reason for letter in taken.refused] == ["the server answers 413: too large"]


def test_what_is_wrong_with_the_server_is_said_in_words_and_rows_wait() -> None:
    [port] = free_ports(1)
    with pytest.raises(ConnectorError, match="Nobody listens at the HTTP server"):
        probe(connection(port), "")
    with receiving(port) as receiver:
        with pytest.raises(ConnectorError, match="speaks no TLS"):
            probe(connection(port, tls=True), "")
        looked = probe(connection(port), "/")
        assert (looked.rows, [each.title for each in looked.found]) == (({"a": 1},), ["The answer"])
        assert [each.title for each in probe(connection(port), looked.found[0].path).found] == ["a"]
        with pytest.raises(ConnectorError, match="characters that no header can have") as caught:
            probe(connection(port).model_copy(update={"token": f"{TOKEN} "}), "/")
        assert TOKEN not in str(caught.value)
        receiver.answers = [(401, {}, "who are you"), (302, {"Location": "http://evil.example/"}, "")]
        for words in ("answers 401. Check the token", "Fogline does not follow"):
            sink = deliverer(port)
            sink.open(1)
            with pytest.raises(ConnectorError, match=words) as caught:
                trial_batch(sink)
            assert caught.value.lasting
            assert TOKEN not in str(caught.value)
            sink.close()


def trial_batch(sink: HttpDeliverer) -> list[int]:
    """Returns the offsets of the rows that were refused."""
    rows = [{"n": n} for n in range(3)]
    return [each.row for each in sink.deliver(Batch(rows, [0] * 3, [0, 1, 2], 0, 3))]


def test_a_refused_row_is_told_until_it_is_settled_and_no_row_is_sent_again() -> None:
    [port] = free_ports(1)
    with receiving(port) as receiver:
        receiver.answers = [(200, {}, ""), (422, {}, "bad row"), (500, {}, "")]
        sink = deliverer(port)
        sink.open(1)
        with pytest.raises(ConnectorError, match="answers 500"):
            trial_batch(sink)
        assert trial_batch(sink) == [1]
        assert trial_batch(sink) == [1]
        sink.settle()
        assert trial_batch(sink) == []
        sink.close()
        assert [body["n"] for body, _ in receiver.got] == [0, 1, 2, 2]


def test_of_an_answer_that_never_ends_only_the_first_seconds_are_read() -> None:
    with socket.create_server(("127.0.0.1", free_ports(1)[0])) as listening:

        def drip() -> None:
            client, _ = listening.accept()
            with client, suppress(OSError):
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                client.recv(65_536)
                while not select.select([client], [], [], 0.02)[0]:  # until it hangs up
                    client.sendall(b"x")

        threading.Thread(target=drip, daemon=True).start()
        server = Server(connection(listening.getsockname()[1]), timeout_s=0.2)
        assert server.ask("GET", "/").text.startswith("xxx")
        server.close()


def webhook(port: int) -> HttpIngester:
    params = {
        "connection": "w",
        "port": port,
        "address": "127.0.0.1",
        "path": "/rows",
        "columns": [{"name": "n"}],
    }
    known = WebhookConnection.model_validate({"token": TOKEN})
    return HttpIngester(Place("dep", "in", HttpInParams.model_validate(params), known))


def test_a_webhook_takes_rows_and_says_in_words_what_it_does_not_take() -> None:
    [port] = free_ports(1)
    running = RunningTrial(webhook(port))
    wait_until(lambda: running.status.state == "connected", "the webhook to listen")
    url = f"http://127.0.0.1:{port}/rows"
    with httpx.Client(headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False) as client:

        def send(
            content: Any, kind: str = "application/json", to: str = url, **headers: str
        ) -> tuple[int, str]:
            answer = client.post(to, content=content, headers={"Content-Type": kind, **headers})
            return answer.status_code, answer.json().get("error", "")

        assert send(b'{"n": 1}')[0] == 202
        assert send(b'[{"n": 2}, {"n": 3}]')[0] == 202
        assert send(b'{"n": 4}\n\n{"n": 5}\n', "application/x-ndjson; charset=utf-8")[0] == 202
        assert send(b"[{}, 7]") == (400, "Row 2 is no JSON object.")
        assert send(b'{"n": NaN}')[0] == send(b"[" * 100_000)[0] == send(b"")[0] == 400
        assert send(b'{"n": 6}\n{', "application/x-ndjson")[1].startswith("Line 2 is no JSON")
        assert send(b'{"n": 6}', Authorization="Bearer wrong")[0] == 401
        assert send(b'{"n": 6}', to=f"{url}/other")[0] == 404
        assert client.get(url).status_code == 405
        assert send(b" " * 6_000_000)[0] == send(iter([b" " * 3_000_000] * 2))[0] == 413
        assert send(json.dumps([{}] * 5_001))[0] == send(json.dumps({"n": "x" * 900_000}))[0] == 413
        running.intake.put_durably = lambda records, timeout_s: False  # type: ignore[method-assign]
        status, words = send(b'{"n": 7}')
        assert (status, "Send them again" in words) == (503, True)
    assert [row["n"] for row in running.stop().rows] == [1, 2, 3, 4, 5]
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, trust_env=False)


def test_silent_connections_are_closed_and_many_senders_wait_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_in, "HEAD_S", 0.2)
    [port] = free_ports(1)
    running = RunningTrial(webhook(port))
    wait_until(lambda: running.status.state == "connected", "the webhook to listen")
    silent = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(100)]
    silent[0].sendall(b"POST /rows HTTP/1.1\r\n")
    assert {each.recv(1) for each in silent} == {b""}
    for each in silent:
        each.close()
    senders = 20
    all_wait = threading.Barrier(senders, timeout=5)
    running.intake.put_durably = lambda *_: all_wait.wait() >= 0  # type: ignore[method-assign]

    def send(_: int) -> int:
        client = HTTPConnection("127.0.0.1", port, timeout=8)
        client.request("POST", "/rows", b"{}", {"Authorization": f"Bearer {TOKEN}"})
        status = client.getresponse().status
        client.close()
        return status

    with ThreadPoolExecutor(senders) as pool:
        assert set(pool.map(send, range(senders))) == {202}
    running.stop()


def test_a_connection_has_the_options_by_which_the_system_ends_one_whose_sender_is_gone() -> None:
    """It asks a silent sender whether it is still there. The first question after 11 s without an answer ends
    the connection."""
    [port] = free_ports(1)
    with (
        http_in._listening("127.0.0.1", port) as listening,
        socket.create_connection(("127.0.0.1", port), 5),
        listening.accept()[0] as taken,
    ):
        assert taken.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_USER_TIMEOUT)
        assert [taken.getsockopt(socket.IPPROTO_TCP, each) for each in options] == [5, 2, 11_000]


def test_a_webhook_whose_loop_stands_still_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    [port] = free_ports(1)
    running, let_go = RunningTrial(webhook(port)), threading.Event()
    wait_until(lambda: running.status.state == "connected", "the webhook to listen")
    monkeypatch.setattr(http_in.Webhook, "_is_known", lambda *_: let_go.wait())
    monkeypatch.setattr(pulse, "PATIENCE_S", 1.5)
    monkeypatch.setattr(pulse, "END_AFTER_S", 0.5)
    with socket.create_connection(("127.0.0.1", port), 5) as sender:
        sender.sendall(b"POST /rows HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
        assert running.hung.wait(60)
        assert "Its connector hangs" in running.status.why
        let_go.set()
    running.stop(30)


def test_a_port_that_is_taken_is_told_and_taken_when_it_is_free() -> None:
    [port] = free_ports(1)
    with receiving(port):
        running = RunningTrial(webhook(port))
        wait_until(lambda: f"Port {port} of this node is taken" in running.status.why, "the words")
    wait_until(lambda: running.status.state == "connected", "the webhook to listen")
    running.stop()


def test_rows_that_flow_while_the_server_ends_and_begins_again_all_arrive() -> None:
    [port] = free_ports(1)
    first = Receiver(port)
    first.answers = [(200, {}, "")] * 20 + [(503, {}, "soon")] * 1000
    again: list[Receiver] = []

    def restart() -> None:
        wait_until(lambda: len(first.got) >= 20, "the first rows", look_every_s=0.02)
        first.server.shutdown()
        first.server.server_close()
        again.append(Receiver(port))

    restarting = threading.Thread(target=restart)
    restarting.start()
    taken = trial_deliverer(deliverer(port), [{"n": n} for n in range(400)], timeout_s=60)
    restarting.join()
    [second] = again
    second.server.shutdown()
    second.server.server_close()
    assert taken.refused == []
    keys = {key: body["n"] for body, key in (*first.got, *second.got)}
    assert keys == {f"dep.out.0.{n}": n for n in range(400)}
    assert second.got


def test_rows_wait_for_a_server_that_hangs_and_the_element_says_so_before_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pulse, "TELL_S", 0.3)
    [port] = free_ports(1)
    with receiving(port) as receiver:
        receiver.goes_on.clear()
        rows = [{"n": n} for n in range(4)]
        running = RunningDelivery(deliverer(port, timeout_s=60), rows, ends=False)
        wait_until(lambda: "waited for an answer of its system" in running.status.why, "the words")
        receiver.goes_on.set()
        wait_until(lambda: running.status.state == "connected", "it to go on")
        wait_until(lambda: len(receiver.got) >= len(rows), "all rows")
        running.taken_within(0)
        assert [body["n"] for body, _ in receiver.got] == [*range(4)], "a late answer is an answer"


def test_a_server_that_hangs_for_too_long_is_asked_again_and_counts_as_away_meanwhile() -> None:
    [port] = free_ports(1)
    with receiving(port) as receiver:
        receiver.goes_on.clear()
        running = RunningDelivery(deliverer(port, timeout_s=1), [{"n": 1}])
        words = "does not answer within 1 s"
        wait_until(lambda: words in running.status.why, "the words")
        receiver.goes_on.set()
        taken = running.taken_within(PATIENCE_S)
        assert {(body["n"], key) for body, key in receiver.got} == {(1, "dep.out.0.0")}
    assert [each.state for each in taken.statuses] == ["connected", "failing", "connected"]


@pytest.mark.full
def test_rows_wait_for_a_server_that_is_away() -> None:
    [port] = free_ports(1)
    late: list[Receiver] = []
    start = threading.Timer(2.0, lambda: late.append(Receiver(port)))
    start.start()
    taken = trial_deliverer(deliverer(port), [{"n": n} for n in range(5)], timeout_s=20)
    start.join()
    assert any("Nobody listens" in status.why for status in taken.statuses)
    assert [body["n"] for body, _ in late[0].got] == list(range(5))
    late[0].server.shutdown()
    late[0].server.server_close()
