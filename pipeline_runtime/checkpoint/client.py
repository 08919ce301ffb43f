"""The client of a chunk service."""

from __future__ import annotations

import random
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import httpx

from pipeline_runtime.checkpoint import access, chunks
from pipeline_runtime.checkpoint.errors import (
    AccessDenied,
    CheckpointDamaged,
    CheckpointMissing,
    ChunksMissing,
    ServiceUnavailable,
)
from pipeline_runtime.checkpoint.files import Progress
from pipeline_runtime.checkpoint.manifest import CheckpointSummary, Manifest
from pipeline_runtime.model.ids import Epoch, Seq

T = TypeVar("T")
Token = str | Callable[[str], str]
"""A bearer token, or a function that takes the scope that is needed and returns one."""

_BACKOFF_S_FIRST = 0.1
_BACKOFF_S_MAX = 5.0
_RETRIED = frozenset({502, 503, 504})


class _Again(Exception):
    """The service answered, but cannot serve now."""


@cache
def _authorities() -> ssl.SSLContext:
    """Read once for the process, since that takes 30 ms of CPU."""
    return httpx.create_ssl_context(trust_env=False)


class ChunkClient:
    """Thread-safe. Retries connection errors with back-off for `retry_s`, then raises ServiceUnavailable.

    Other errors: AccessDenied, CheckpointMissing, ChunksMissing, CheckpointDamaged.
    """

    def __init__(
        self,
        url: str,
        token: Token,
        *,
        retry_s: float = 30.0,
        timeout_s: float = 15.0,
    ) -> None:
        self.url = url.rstrip("/")
        self.retry_s = retry_s
        self._token = token
        self._closed = threading.Event()
        # No proxy from the environment: nodes speak to each other directly.
        self._http = httpx.Client(
            base_url=self.url,
            timeout=httpx.Timeout(timeout_s, connect=min(5.0, timeout_s)),
            trust_env=False,
            verify=_authorities(),
        )

    def close(self) -> None:
        """Ends running retries with ServiceUnavailable."""
        self._closed.set()
        self._http.close()

    # checkpoints

    def checkpoints(self, group: str) -> tuple[CheckpointSummary, ...]:
        """Returns the checkpoints, newest first."""
        body = self._call("GET", f"/groups/{group}/checkpoints", access.group_read(group)).json()
        return tuple(CheckpointSummary.model_validate(entry) for entry in body)

    def manifest(self, group: str, seq: Seq) -> Manifest:
        path = f"/groups/{group}/checkpoints/{seq}"
        return Manifest.from_bytes(self._call("GET", path, access.group_read(group)).content)

    def put_manifest(self, manifest: Manifest) -> None:
        """Raises ChunksMissing when some chunks have to be sent first, perhaps again."""
        path = f"/groups/{manifest.group}/checkpoints/{manifest.seq}"
        self._call("PUT", path, access.group_write(manifest.group), content=manifest.to_bytes())

    def void(self, group: str, after: Seq, up_to: Epoch) -> None:
        """See StateDatabase.void."""
        path = f"/groups/{group}/checkpoints?after={after}&up_to={up_to}"
        self._call("DELETE", path, access.group_write(group))

    # chunks

    def missing(self, group: str, shas: Iterable[str]) -> tuple[str, ...]:
        """Returns those of `shas` that the service lacks."""
        body = {"chunks": list(shas)}
        answer = self._call("POST", f"/groups/{group}/missing", access.group_read(group), json=body)
        return tuple(answer.json()["missing"])

    def put_chunks(self, group: str, encoded: Sequence[tuple[str, bytes]]) -> None:
        """Sends chunks of at most service.FRAMES_BYTES_MAX in all."""
        body = b"".join(chunks.frames(encoded))
        self._call("PUT", f"/groups/{group}/chunks", access.group_write(group), content=body)

    def fetch_chunks(self, group: str, shas: Sequence[str], keep: Callable[[str, bytes], None]) -> None:
        """Passes each (address, encoded chunk) to `keep` as it arrives. Chunks that the service lacks are
        left out. After a break only chunks that have not arrived are asked for again."""
        left = dict.fromkeys(shas)

        def fetch() -> None:
            unframer = chunks.Unframer()
            with self._stream(
                "POST", f"/groups/{group}/fetch", access.group_read(group), json={"chunks": list(left)}
            ) as answer:
                for piece in answer.iter_raw():
                    for sha, encoded in unframer.feed(piece):
                        keep(sha, encoded)
                        left.pop(sha, None)

        self._retry(fetch)

    # files

    def get_file(self, sha: str, write: Callable[[bytes], None], progress: Progress | None = None) -> None:
        """Streams an uploaded file. After a break it goes on where it stopped. The file is not verified
        here."""
        done = 0

        def fetch() -> None:
            nonlocal done
            headers = {"Range": f"bytes={done}-"} if done else {}
            with self._stream("GET", f"/files/{sha}", access.FILES_READ, headers=headers) as answer:
                if done and answer.status_code != 206:
                    raise _unavailable(self.url, "it does not continue a broken download")
                total = done + int(answer.headers.get("content-length", 0))
                for piece in answer.iter_raw():
                    write(piece)
                    done += len(piece)
                    if progress:
                        progress(done, total)

        self._retry(fetch)

    def put_file(self, sha: str, path: Path) -> None:
        def pieces() -> Iterator[bytes]:
            with open(path, "rb") as stream:
                while piece := stream.read(chunks.CHUNK_BYTES):
                    yield piece

        self._retry(lambda: self._once("PUT", f"/files/{sha}", access.FILES_WRITE, content=pieces()))

    # requests

    def _call(self, method: str, path: str, scope: str, **body: Any) -> httpx.Response:
        return self._retry(lambda: self._once(method, path, scope, **body))

    def _once(self, method: str, path: str, scope: str, **body: Any) -> httpx.Response:
        answer = self._http.request(method, path, headers=self._headers(scope), **body)
        if not answer.is_success:
            _refused(self.url, answer)
        return answer

    def _stream(
        self, method: str, path: str, scope: str, headers: dict[str, str] | None = None, **body: Any
    ) -> _Streamed:
        request = self._http.build_request(
            method, path, headers={**self._headers(scope), **(headers or {})}, **body
        )
        return _Streamed(self._http, request, self.url)

    def _headers(self, scope: str) -> dict[str, str]:
        token = self._token if isinstance(self._token, str) else self._token(scope)
        # Chunks are compressed already, and iter_raw would return the bytes as a proxy compressed them again.
        return {"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"}

    def _retry(self, do: Callable[[], T]) -> T:
        deadline = time.monotonic() + self.retry_s
        pause_s = _BACKOFF_S_FIRST
        while True:
            try:
                return do()
            except (httpx.TransportError, _Again) as error:
                left_s = deadline - time.monotonic()
                # Jitter, so that nodes that lost the same service do not all come back at once.
                wait_s = min(pause_s * random.uniform(0.5, 1.5), max(left_s, 0.0))
                if left_s <= 0 or self._closed.wait(wait_s):
                    reason = str(error) or type(error).__name__
                    raise _unavailable(self.url, f"it does not answer ({reason})") from error
                pause_s = min(2 * pause_s, _BACKOFF_S_MAX)
            except RuntimeError as error:  # httpx raises it for a client that was closed meanwhile
                if not self._closed.is_set():
                    raise
                raise _unavailable(self.url, "the connection was closed on this side") from error


class _Streamed:
    """A streamed answer that was checked for errors."""

    def __init__(self, http: httpx.Client, request: httpx.Request, url: str) -> None:
        self._http = http
        self._request = request
        self._url = url

    def __enter__(self) -> httpx.Response:
        self._answer = self._http.send(self._request, stream=True)
        if not self._answer.is_success:
            try:
                self._answer.read()
                _refused(self._url, self._answer)
            finally:
                self._answer.close()
        return self._answer

    def __exit__(self, *_: object) -> None:
        self._answer.close()


def _refused(url: str, answer: httpx.Response) -> NoReturn:
    """Raises the error that the service's problem document describes."""
    try:
        problem = answer.json()
        detail = str(problem.get("detail") or problem.get("title"))
    except (ValueError, AttributeError):
        problem, detail = {}, f"status {answer.status_code}"
    safe = str(problem.get("safe") or "Nothing was changed.")
    after = str(problem.get("next") or "Check the address and the version of the other side.")
    if answer.status_code in _RETRIED:
        raise _Again(detail)
    if answer.status_code in (401, 403):
        raise AccessDenied(detail, safe, "Ask the control side for a new token.")
    if answer.status_code == 404:
        raise CheckpointMissing(detail, safe, after)
    if answer.status_code == 409 and "missing" in problem:
        raise ChunksMissing(problem["missing"])
    if answer.status_code == 422:
        raise CheckpointDamaged(detail, safe, after)
    raise _unavailable(url, f"it refused: {detail}")


def _unavailable(url: str, what: str) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"The chunk service {url}: {what}.",
        "What was transferred before is kept, and local checkpoints are not affected.",
        "Check that its process runs and can be reached; transfers go on where they stopped.",
    )
