"""GET /groups/{group}/output/{element}: what a file sink has written and committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pipeline_runtime.checkpoint import access
from pipeline_runtime.checkpoint.errors import AccessDenied

PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class CommittedFile:
    path: Path
    size: int  # bytes that are committed; what follows may be rolled back


class OutputMissing(LookupError):
    """No such group or element here, or it has written nothing; the message says which."""


def add_output_route(
    app: Starlette, cluster_key: str, committed: Callable[[str, str], CommittedFile]
) -> None:
    """`committed(group, element)` finds the file; it raises OutputMissing."""

    async def output(request: Request) -> Response:
        group, element = request.path_params["group"], request.path_params["element"]
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            access.check(
                cluster_key, token.strip() if scheme.lower() == "bearer" else "", access.group_read(group)
            )
            found = await run_in_threadpool(committed, group, element)
        except AccessDenied as error:
            return _problem(403, "Not allowed", str(error))
        except OutputMissing as error:
            return _problem(404, "No output", str(error))
        return StreamingResponse(
            _prefix(found),
            media_type="text/csv" if found.path.suffix == ".csv" else "application/octet-stream",
            headers={
                "Content-Length": str(found.size),
                "Content-Disposition": f'attachment; filename="{element}{found.path.suffix}"',
            },
        )

    app.router.routes.append(Route("/groups/{group}/output/{element}", output, methods=["GET"]))


def _prefix(file: CommittedFile) -> Iterator[bytes]:
    left = file.size
    with open(file.path, "rb") as stream:
        while left and (piece := stream.read(min(PIECE_BYTES, left))):
            left -= len(piece)
            yield piece


def _problem(status: int, title: str, detail: str) -> Response:
    return JSONResponse(
        {"type": "about:blank", "title": title, "status": status, "detail": detail},
        status_code=status,
        media_type="application/problem+json",
    )
