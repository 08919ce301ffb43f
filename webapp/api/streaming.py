"""Answers whose parts are read while they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor


async def in_thread(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yields the parts of a blocking iterator without blocking the event loop.

    Under ASGI, Django would otherwise read a synchronous iterator to its end before it sends anything.
    """
    reader, loop = ThreadPoolExecutor(max_workers=1), asyncio.get_running_loop()
    try:
        while (part := await loop.run_in_executor(reader, next, parts, None)) is not None:
            yield part
    finally:
        # Waits for a running read: a client that goes away ends the request, but no read.
        close = getattr(parts, "close", None)
        if close is not None:
            reader.submit(close)
        reader.shutdown(wait=False)
