"""A StateDatabase and a FileStore over HTTP.

| method, path | scope | |
|---|---|---|
| GET /health | none | `{"status": "ok"}` |
| GET /probe | probe | 1 MiB of random bytes, by which a node measures how fast this one sends |
| GET /groups/{g}/checkpoints | group read | summaries, newest first |
| DELETE /groups/{g}/checkpoints?after=&up_to= | group write | `StateDatabase.void` -> `{"voided": [seq]}` |
| GET, PUT /groups/{g}/checkpoints/{seq} | group read, write | a manifest; 409 `{missing}` when chunks lack |
| POST /groups/{g}/missing | group read | `{"chunks": [sha]}` -> `{"missing": [sha]}` |
| GET, PUT /groups/{g}/chunks/{sha} | group read, write | one encoded chunk |
| POST /groups/{g}/fetch | group read | `{"chunks": [sha]}` -> frames of those that are here, in order |
| PUT /groups/{g}/chunks | group write | frames |
| GET, PUT /files/{sha} | files read, write | an uploaded file |

Errors are problem documents; those of checkpoints have `safe` and `next`. Every body has a size limit.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pipeline_runtime.checkpoint import access, chunks
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.errors import (
    AccessDenied,
    CheckpointDamaged,
    CheckpointError,
    CheckpointMissing,
    ChunkMissing,
    ChunksMissing,
    ServiceUnavailable,
    StateDatabaseUnavailable,
)
from pipeline_runtime.checkpoint.files import FileStore, FileWriter
from pipeline_runtime.checkpoint.manifest import GROUP, SHA256, Manifest
from pipeline_runtime.model.ids import Epoch, Seq

FRAMES_BYTES_MAX = 16 << 20
MANIFEST_BYTES_MAX = 64 << 20
FILE_BYTES_MAX = 4 << 30
CHUNKS_PER_REQUEST_MAX = 100_000
PROBE_BYTES = 1 << 20
FRAMES_TYPE = "application/x-fogline-chunks"


class _BadRequest(Exception):
    def __init__(self, status: int, title: str, detail: str, next: str) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title
        self.detail = detail
        self.next = next


_STATUS: dict[type[CheckpointError], tuple[int, str]] = {
    AccessDenied: (403, "Not allowed"),
    CheckpointMissing: (404, "No such checkpoint"),
    ChunkMissing: (404, "No such chunk"),
    ChunksMissing: (409, "Chunks are missing"),
    CheckpointDamaged: (422, "Damaged"),
    StateDatabaseUnavailable: (503, "State database unavailable"),
}


def chunk_service(database: StateDatabase, cluster_key: str, files: FileStore | None = None) -> Starlette:
    """Returns the ASGI app. It accepts tokens that `access.mint` made with the same cluster key."""
    service = _Service(database, cluster_key, files)
    routes = [
        Route("/health", _health),
        Route("/probe", service.probe, methods=["GET"]),
        Route("/groups/{group}/checkpoints", service.checkpoints, methods=["GET"]),
        Route("/groups/{group}/checkpoints", service.void, methods=["DELETE"]),
        Route("/groups/{group}/checkpoints/{seq:int}", service.get_manifest, methods=["GET"]),
        Route("/groups/{group}/checkpoints/{seq:int}", service.put_manifest, methods=["PUT"]),
        Route("/groups/{group}/missing", service.missing, methods=["POST"]),
        Route("/groups/{group}/fetch", service.fetch, methods=["POST"]),
        Route("/groups/{group}/chunks", service.put_chunks, methods=["PUT"]),
        Route("/groups/{group}/chunks/{sha}", service.get_chunk, methods=["GET"]),
        Route("/groups/{group}/chunks/{sha}", service.put_chunk, methods=["PUT"]),
    ]
    if files is not None:
        routes += [
            Route("/files/{sha}", service.get_file, methods=["GET"]),
            Route("/files/{sha}", service.put_file, methods=["PUT"]),
        ]
    return Starlette(
        routes=routes,
        exception_handlers={CheckpointError: _on_checkpoint_error, _BadRequest: _on_bad_request},
    )


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


class _Service:
    def __init__(self, database: StateDatabase, cluster_key: str, files: FileStore | None) -> None:
        self.database = database
        self.cluster_key = cluster_key
        self.files = files

    async def probe(self, request: Request) -> Response:
        self._allow(request, access.PROBE)
        # Random, so that nothing on the way can compress them.
        body = await run_in_threadpool(os.urandom, PROBE_BYTES)
        return Response(body, media_type="application/octet-stream")

    # groups

    async def checkpoints(self, request: Request) -> Response:
        group = self._group(request, access.group_read)
        found = await run_in_threadpool(self.database.manifests, group)
        return JSONResponse([manifest.summary().model_dump(mode="json") for manifest in found])

    async def void(self, request: Request) -> Response:
        group = self._group(request, access.group_write)
        after, up_to = (request.query_params.get(name, "") for name in ("after", "up_to"))
        if not after.isdecimal() or not up_to.isdecimal():
            raise _BadRequest(
                400,
                "Bad query",
                "`after` or `up_to` is missing, or is no number.",
                "Send a seq as `after` and an epoch as `up_to`.",
            )
        seqs = await run_in_threadpool(self.database.void, group, Seq(int(after)), Epoch(int(up_to)))
        return JSONResponse({"voided": list(seqs)})

    async def get_manifest(self, request: Request) -> Response:
        group = self._group(request, access.group_read)
        seq = Seq(request.path_params["seq"])
        manifest = await run_in_threadpool(self.database.manifest, group, seq)
        return Response(manifest.to_bytes(), media_type="application/json")

    async def put_manifest(self, request: Request) -> Response:
        group = self._group(request, access.group_write)
        manifest = Manifest.from_bytes(await _body(request, MANIFEST_BYTES_MAX))
        if manifest.group != group or manifest.seq != request.path_params["seq"]:
            raise _BadRequest(
                400,
                "Wrong address",
                "The manifest is of another group or seq than the address.",
                "Send it to the address of its group and seq.",
            )
        await run_in_threadpool(self.database.put_manifest, manifest)
        return Response(status_code=204)

    async def missing(self, request: Request) -> Response:
        group = self._group(request, access.group_read)
        absent = await run_in_threadpool(self.database.missing, group, await _shas(request))
        return JSONResponse({"missing": list(absent)})

    async def get_chunk(self, request: Request) -> Response:
        group = self._group(request, access.group_read)
        encoded = await run_in_threadpool(self.database.get_encoded, group, _sha(request))
        return Response(encoded, media_type="application/octet-stream")

    async def put_chunk(self, request: Request) -> Response:
        group = self._group(request, access.group_write)
        sha = _sha(request)
        encoded = await _body(request, chunks.ENCODED_BYTES_MAX)
        await run_in_threadpool(self.database.put_encoded, group, sha, encoded)
        return Response(status_code=204)

    async def fetch(self, request: Request) -> Response:
        """Leaves out chunks that are missing or damaged here. The client notices their absence."""
        group = self._group(request, access.group_read)
        shas = await _shas(request)

        def present() -> Iterator[tuple[str, bytes]]:
            for sha in shas:
                try:
                    yield sha, self.database.get_encoded(group, sha)
                except (ChunkMissing, CheckpointDamaged):
                    continue

        # A sync iterator: starlette drives it in a thread, with one chunk in memory at a time.
        return StreamingResponse(chunks.frames(present()), media_type=FRAMES_TYPE)

    async def put_chunks(self, request: Request) -> Response:
        group = self._group(request, access.group_write)
        body = await _body(request, FRAMES_BYTES_MAX)

        def put() -> int:
            count = 0
            for sha, encoded in chunks.Unframer().feed(body):
                self.database.put_encoded(group, sha, encoded)
                count += 1
            return count

        return JSONResponse({"stored": await run_in_threadpool(put)})

    # files

    async def get_file(self, request: Request) -> Response:
        self._allow(request, access.FILES_READ)
        assert self.files is not None
        try:
            return FileResponse(self.files.path(_sha(request)), media_type="application/octet-stream")
        except FileNotFoundError as error:
            raise _BadRequest(
                404, "No such file", str(error), "Upload it again, or choose another file."
            ) from error

    async def put_file(self, request: Request) -> Response:
        self._allow(request, access.FILES_WRITE)
        assert self.files is not None
        sha = _sha(request)
        with FileWriter(self.files) as writer:
            async for piece in _limited(request, FILE_BYTES_MAX):
                await run_in_threadpool(writer.write, piece)
            await run_in_threadpool(writer.commit, sha)
        return Response(status_code=204)

    # permission

    def _group(self, request: Request, scope: Callable[[str], str]) -> str:
        group: str = request.path_params["group"]
        if not GROUP.fullmatch(group):
            raise _BadRequest(
                400, "Bad group", f"{group!r} is not a group id.", "Name a group as <deployment>.<group>."
            )
        self._allow(request, scope(group))
        return group

    def _allow(self, request: Request, needed: str) -> None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise _BadRequest(
                401, "No token", "The request has no token.", "Send `Authorization: Bearer <token>`."
            )
        access.check(self.cluster_key, token.strip(), needed)


def _sha(request: Request) -> str:
    sha: str = request.path_params["sha"]
    if not SHA256.fullmatch(sha):
        raise _BadRequest(
            400, "Bad address", f"{sha!r} is not a sha256.", "Name it by 64 small hexadecimal digits."
        )
    return sha


async def _shas(request: Request) -> list[str]:
    try:
        found = json.loads(await _body(request, MANIFEST_BYTES_MAX))["chunks"]
        if len(found) <= CHUNKS_PER_REQUEST_MAX and all(SHA256.fullmatch(sha) for sha in found):
            return list(found)
    except (ValueError, TypeError, KeyError):
        pass
    raise _BadRequest(
        400,
        "Bad body",
        "The body is no list of chunks.",
        f'Send {{"chunks": [<sha256>, …]}}, with at most {CHUNKS_PER_REQUEST_MAX:,} of them.',
    )


async def _body(request: Request, bytes_max: int) -> bytes:
    return b"".join([piece async for piece in _limited(request, bytes_max)])


async def _limited(request: Request, bytes_max: int) -> AsyncIterator[bytes]:
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > bytes_max:
            raise _BadRequest(
                413, "Too large", f"The body has more than {bytes_max:,} bytes.", "Send less at a time."
            )
        yield piece


async def _on_checkpoint_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, CheckpointError)
    status, title = _STATUS.get(type(error), (500, "Failed"))
    extra = {"missing": list(error.shas)} if isinstance(error, ChunksMissing) else {}
    return problem(status, title, error.message, safe=error.safe, next=error.next, **extra)


async def _on_bad_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, _BadRequest)
    return problem(error.status, error.title, error.detail, safe="Nothing was changed.", next=error.next)


def problem(status: int, title: str, detail: str, *, safe: str, next: str, **more: object) -> Response:
    """Returns a refusal: what is wrong, what is as it was, and what to do."""
    told = {"title": title, "status": status, "detail": detail, "safe": safe, "next": next}
    return JSONResponse(
        {"type": "about:blank", **told, **more},
        status_code=status,
        media_type="application/problem+json",
    )


@dataclass(frozen=True)
class Server:
    """A running service. `close()` ends it within seconds."""

    url: str
    port: int
    _server: uvicorn.Server
    _thread: threading.Thread

    def close(self, timeout_s: float = 5.0) -> None:
        self._server.should_exit = True
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._server.force_exit = True
            self._thread.join(timeout_s)


def serve(app: Starlette, host: str, port: int, start_timeout_s: float = 10.0) -> Server:
    """Serves in a daemon thread. Port 0 takes a free port. Raises ServiceUnavailable when the port is
    taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise ServiceUnavailable(
            f"The chunk service cannot listen on {host}:{port}: {error.strerror}.",
            "Nothing was started.",
            "Stop whoever uses that port, or choose another one (FOGLINE_CHUNK_PORT, FOGLINE_NODE_PORT).",
        ) from error
    port = listener.getsockname()[1]
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", ws="none", timeout_graceful_shutdown=2
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=_run, args=(server, listener), name=f"chunk-service-{port}", daemon=True)
    thread.start()
    deadline = time.monotonic() + start_timeout_s
    while not server.started and thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.005)
    if not server.started:
        server.should_exit = True
        raise ServiceUnavailable(
            f"The chunk service on {host}:{port} did not start.", "Nothing was changed.", "See the log."
        )
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return Server(f"http://{shown}:{port}", port, server, thread)


def _run(server: uvicorn.Server, listener: socket.socket) -> None:
    """The thread's target is this project's and not uvicorn's, so that an error that ends the thread ends the
    process."""
    server.run(sockets=[listener])
