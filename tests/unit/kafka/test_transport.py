"""kafka-python's loop waits for sockets as it did, and describes none of them."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError
from kafka.net.inet import KafkaNetSocket, create_connection
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaTCPTransport

from pipeline_runtime.kafka.transport import (
    close_what_failed,
    make_no_unread_texts,
    read_at_once,
    write_at_once,
)


class Undescribed(socket.socket):
    def __repr__(self) -> str:
        raise AssertionError("nobody reads this text")


def test_a_loop_waits_for_a_socket_again_and_again_without_a_description() -> None:
    make_no_unread_texts()
    loop, read = NetworkSelector(), []
    ours, theirs = socket.socketpair()
    mine = Undescribed(fileno=ours.detach())

    async def reads() -> None:
        for _ in range(3):
            await loop.wait_write(mine)
            await loop.wait_read(mine)
            read.append(mine.recv(1))

    with mine, theirs:
        loop.call_soon(reads)
        for each in (b"a", b"b", b"c"):
            theirs.send(each)
        for _ in range(20):
            loop.poll(timeout_ms=10)
    assert read == [b"a", b"b", b"c"]


def test_two_may_not_wait_for_one_socket() -> None:
    make_no_unread_texts()
    loop = NetworkSelector()
    ours, theirs = socket.socketpair()
    failures: list[Any] = []

    async def waits() -> None:
        try:
            await loop.wait_read(ours)
        except RuntimeError as error:
            failures.append(error)

    with ours, theirs:
        loop.call_soon(waits)
        loop.call_soon(waits)
        for _ in range(10):
            loop.poll(timeout_ms=10)
    assert len(failures) == 1


def test_the_socket_of_a_connection_that_failed_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    close_what_failed()
    made: list[socket.socket] = []

    def make(*kind: Any) -> socket.socket:
        made.append(socket.socket(*kind))
        return made[-1]

    monkeypatch.setattr(KafkaNetSocket, "socket", staticmethod(make))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    loop = NetworkSelector()
    with pytest.raises(KafkaConnectionError):
        loop.run(create_connection, loop, "127.0.0.1", port)
    loop.close()
    assert [each.fileno() for each in made] == [-1]


class Answers:
    """Stands for the connection that a transport reads for."""

    _sensors = None

    def __init__(self) -> None:
        self.came = b""

    def data_received(self, data: bytes) -> None:
        self.came += data

    def connection_lost(self, error: object) -> None:
        self.came += b"lost"


def test_a_request_that_the_kernel_does_not_take_whole_is_written_to_its_end() -> None:
    write_at_once()
    loop, answers = NetworkSelector(), Answers()
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    ours.setblocking(False)
    request, read = b"x" * 1_000_000, bytearray()

    def serve() -> None:
        while len(read) < len(request):
            read.extend(theirs.recv(1 << 16))
        theirs.send(b"answer")

    server = threading.Thread(target=serve, daemon=True)
    transport = KafkaTCPTransport(loop, ours)
    transport.set_protocol(answers)
    with ours, theirs:
        transport.write(request)
        assert transport._writing, "the kernel took it whole, so this shows nothing"
        server.start()
        at_once = []
        while not answers.came:
            at_once.append(read_at_once(transport, [transport], loop, 30.0))
            if not at_once[-1]:
                loop.poll(timeout_ms=30_000)
        server.join()
    assert (bytes(read), answers.came) == (request, b"answer")
    assert at_once.count(True) == 1, "the answer alone is read without the loop"


def test_what_others_still_write_is_left_to_the_loop() -> None:
    loop = NetworkSelector()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    transport, other = KafkaTCPTransport(loop, ours), KafkaTCPTransport(loop, theirs)
    other._writing = True
    with ours, theirs:
        theirs.send(b"a")
        assert not read_at_once(transport, [transport, None, other], loop, 0.0)


def test_an_answer_of_which_nothing_can_be_made_ends_the_connection() -> None:
    loop, answers = NetworkSelector(), Answers()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    transport = KafkaTCPTransport(loop, ours)
    transport.set_protocol(answers)

    def refuse(_: bytes) -> None:
        raise UnicodeDecodeError("utf-8", b"", 0, 1, "no text")

    answers.data_received = refuse  # type: ignore[method-assign]
    with ours, theirs:
        theirs.send(b"a")
        assert read_at_once(transport, [transport], loop, 1.0)
    assert answers.came == b"lost"
