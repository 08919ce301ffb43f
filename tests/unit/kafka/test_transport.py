"""kafka-python's loop waits for sockets as it did, and describes none of them."""

from __future__ import annotations

import socket
from typing import Any

from kafka.net.selector import NetworkSelector

from pipeline_runtime.kafka.transport import make_no_unread_texts


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
