"""Serves the committed output of a file sink: GET /groups/{group}/output/{element}."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from pipeline_runtime.checkpoint import access
from pipeline_runtime.checkpoint.errors import AccessDenied
from pipeline_runtime.checkpoint.manifest import GROUP
from pipeline_runtime.checkpoint.service import problem
from pipeline_runtime.journal.records import Commit, Record, decode
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.peek import PeekedRecord, peek
from pipeline_runtime.model.ids import journal_topic
from workers.node.runtime import LocalState

PIECE_BYTES = 1 << 20
JOURNAL_TAIL = 50
"""Records of the journal's end among which the newest COMMIT is looked for: claims may follow it."""


@dataclass(frozen=True)
class CommittedFile:
    path: Path
    size: int  # bytes that are committed; what follows may be rolled back


class OutputMissing(LookupError):
    """No such group or element here, or it has written nothing. The message says which, and `next` what to
    do."""

    def __init__(self, message: str, next: str) -> None:
        super().__init__(message)
        self.next = next


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
            return problem(403, "Not allowed", error.message, safe=error.safe, next=error.next)
        except OutputMissing as error:
            return problem(404, "No output", str(error), safe="Nothing was changed.", next=error.next)
        return StreamingResponse(
            _prefix(found),
            media_type="text/csv" if found.path.suffix == ".csv" else "application/octet-stream",
            headers={
                "Content-Length": str(found.size),
                "Content-Disposition": f'attachment; filename="{element}{found.path.suffix}"',
            },
        )

    app.router.routes.append(Route("/groups/{group}/output/{element}", output, methods=["GET"]))


def committed_output(node_directory: Path, kafka: KafkaSettings, group: str, element: str) -> CommittedFile:
    """A sink's file, as far as the journal's newest COMMIT says. Raises OutputMissing."""
    if not GROUP.fullmatch(group) or not GROUP.fullmatch(element):
        raise OutputMissing(f"{group}/{element} names no element.", "Name a group and an element of it.")
    local = LocalState(node_directory, group)
    generation = local.generation()
    if generation is None:
        raise OutputMissing("This node has no copy of the element.", "Ask the node that runs it.")
    directory = local.at(generation) / "elements" / element
    files = [path for path in directory.rglob("*") if path.is_file()] if directory.is_dir() else []
    mark = _newest_marks(kafka, group).get(element)
    if not files or not isinstance(mark, dict) or "length" not in mark:
        raise OutputMissing("The element has written no file yet.", "Try again when rows have come to it.")
    file = max(files, key=lambda path: path.stat().st_size)
    # A copy that is behind the journal has less than what was committed.
    return CommittedFile(file, min(file.stat().st_size, int(mark["length"])))


def _newest_marks(kafka: KafkaSettings, group: str) -> dict[str, Any]:
    deployment, _, name = group.partition(".")
    records = peek(kafka, journal_topic(deployment, name), limit=JOURNAL_TAIL)
    commits = [record for record in map(_decoded, records) if isinstance(record, Commit)]
    return commits[-1].marks if commits else {}


def _decoded(record: PeekedRecord) -> Record:
    return decode(record.value.encode())


def _prefix(file: CommittedFile) -> Iterator[bytes]:
    left = file.size
    with open(file.path, "rb") as stream:
        while left and (piece := stream.read(min(PIECE_BYTES, left))):
            left -= len(piece)
            yield piece
