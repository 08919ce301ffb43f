"""WhiteNoise under ASGI.

In the place of NAME it sends NAME.br or NAME.gz, which the build laid beside it, to browsers that take those.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware


async def in_thread(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The parts of a blocking iterator, without blocking the event loop.

    Under ASGI, Django would otherwise read a synchronous iterator to its end before it sends anything.
    """
    reader, loop = ThreadPoolExecutor(max_workers=1), asyncio.get_running_loop()
    try:
        while (part := await loop.run_in_executor(reader, next, parts, None)) is not None:
            yield part
    finally:
        # Behind a read that is under way: a client that goes away ends the request, but no read.
        close = getattr(parts, "close", None)
        if close is not None:
            reader.submit(close)
        reader.shutdown(wait=False)


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponseBase:
        found = static_file.get_response(request.method, request.META)
        body = iter(lambda: found.file.read(64 * 1024), b"") if found.file is not None else iter(())
        response = StreamingHttpResponse(in_thread(_closing(body, found.file)), status=int(found.status))
        del response["content-type"]
        for key, value in found.headers:
            response[key] = value
        return response


def _closing(parts: Iterator[bytes], file: Any) -> Iterator[bytes]:
    try:
        yield from parts
    finally:
        if file is not None:
            file.close()
