"""Reading what is sent to a client that may go away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress

from webapp.api.streaming import in_thread


async def test_all_parts_come_and_it_is_closed() -> None:
    closed = threading.Event()

    def parts() -> Iterator[bytes]:
        try:
            yield from (b"one", b"two")
        finally:
            closed.set()

    assert [part async for part in in_thread(parts())] == [b"one", b"two"]
    assert await asyncio.to_thread(closed.wait, 10)


async def test_when_the_client_goes_away_it_is_closed_behind_the_read_that_is_under_way() -> None:
    reading, more, closed = threading.Event(), threading.Event(), threading.Event()

    def parts() -> Iterator[bytes]:
        try:
            reading.set()
            more.wait(10)
            yield b"late"
        finally:
            closed.set()

    async def read() -> None:
        async for _ in in_thread(parts()):
            pass

    request = asyncio.create_task(read())
    await asyncio.to_thread(reading.wait, 10)
    request.cancel()
    with suppress(asyncio.CancelledError):
        await request
    assert not closed.is_set()
    more.set()
    assert await asyncio.to_thread(closed.wait, 10)
