"""kafka-python's loop waits for sockets as it did, and describes none of them."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError
from kafka.net.inet import KafkaNetSocket, create_connection
from kafka.net.selector import NetworkSelector

from pipeline_runtime.kafka.transport import close_what_failed, make_no_unread_texts


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
