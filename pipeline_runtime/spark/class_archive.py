"""Makes the archive of Java classes from which each node's Java starts, at install:

    python -m pipeline_runtime.spark.class_archive

Nearly half of the CPU of a cold start goes into reading and checking the same classes as the last time. Java
can keep them as they lie in memory (application class-data sharing, JEP 310 and 350). So three small groups
run once, one for each way in which elements run (without state, with Spark's state, with a processor),
and what they have loaded is kept. Java itself checks whether an archive was made by the same Java from the
same jars, and does without it if not.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline_runtime.batch.facts import GroupFacts
from pipeline_runtime.batch.gate import GateServer
from pipeline_runtime.batch.gate_messages import (
    GroupDescription,
    KeepStates,
    Payload,
    RecordWaits,
    Slice,
    SliceRead,
    TaskPart,
)
from pipeline_runtime.batch.tasks import Tasks
from pipeline_runtime.formats.schema_registry import Registry, no_registry
from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.plan import plan_groups
from pipeline_runtime.spark.engine import SparkEngine, SparkRows
from pipeline_runtime.spark.session import CLASS_ARCHIVE, SMALL_MACHINE_JAVA_OPTIONS, java_process

BATCHES = 4
_PATIENCE_S = 600
_EVERY_S = 0.05
_STREAM = {"inputs": {"in": "events"}}
_ELEMENTS: list[dict[str, Any]] = [
    {
        "id": "events",
        "type": "kafka-in",
        "params": {
            "topic": "events",
            "key": "sensor",
            "columns": [{"name": "sensor"}, {"name": "value", "type": "number"}],
        },
    },
    {"id": "high", "type": "filter", "params": {"condition": "value > 1"}, **_STREAM},
    {"id": "statistics", "type": "running-statistics", "params": {"column": "value"}, **_STREAM},
]


class _Rows:
    """Implements gate_messages.GateKeeper for one group: a few rows for each batch, and no topic behind
    them."""

    def __init__(self, spec: GroupSpec, directory: Path, *, planned: bool) -> None:
        self._tasks = Tasks(1, planned=planned)
        self._read = 0  # the token of the batch that was read last
        kafka = {"bootstrap": "localhost:0", "security": {}}
        self._description = GroupDescription(spec.model_dump(mode="json"), kafka, {}, str(directory))

    def describe(self) -> GroupDescription:
        return self._description

    def first_token(self) -> int:
        return 0

    def next_token(self, done: int) -> int:
        if done == BATCHES:
            time.sleep(_EVERY_S)  # the query is stopped while it waits here
            return done
        return done + 1

    def tasks_of(self, token: int) -> list[TaskPart]:
        return self._tasks.planned(token)

    def slices_of(self, token: int, task: int) -> list[Slice] | None:
        if token == self._read:  # a resident task asks for more: each of its batches ends the task here
            return None
        self._read = token
        rows = [[token, token * 1000, b"a", b'{"sensor": "a", "value": %d}' % token, []]]
        return [Slice(0, token * 1000, 0, token, token + 1, rows)]

    def slice_read(self, read: SliceRead) -> None: ...

    def part_processed(self, task: int, payload: Payload) -> None: ...

    def states_of(self, keys: Sequence[str | None], task: int) -> list[bytes | None]:
        return [None for _ in keys]

    def states_between(self, first: str, end: str) -> list[tuple[str, bytes]]:
        return []

    def keys_between(self, first: str, end: str, most: int) -> list[str]:
        return []

    def keep_states(self, kept: KeepStates) -> None: ...

    def registry(self, name: str) -> Registry:
        return no_registry(name)

    def record_waits(self, waits: RecordWaits) -> None: ...


def make(archive: Path) -> None:
    """Replace `archive`. Raises OSError if it cannot be written, and TimeoutError if a query does not run."""
    # Otherwise Java would start from it, and keep only what it has loaded itself.
    archive.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".classes-") as directory:
        work = Path(directory)
        fresh = work / archive.name
        os.environ["FOGLINE_JAVA_OPTIONS"] = (
            f'{SMALL_MACHINE_JAVA_OPTIONS} "-XX:ArchiveClassesAtExit={fresh}"'
            " -Xlog:disable -Xlog:all=error:stderr"
        )
        with _engine(work) as (engine, gate):
            for spec in _groups():
                _run(engine, gate, spec, work / spec.group)
        fresh.rename(archive)


def _groups() -> Iterator[GroupSpec]:
    document = {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "classes"},
        "spec": {"elements": _ELEMENTS},
    }
    for spec in plan_groups(parse_document(document), "classes", default_registry(), {}):
        if spec.group != "events":
            yield spec


@contextmanager
def _engine(work: Path) -> Iterator[tuple[SparkEngine, GateServer]]:
    """An engine and a gate. It ends when Java has ended by itself, which writes what it has loaded at the
    very end."""
    gate = GateServer()
    engine = SparkEngine("classes", work / "scratch", cores=1, memory_mib=512)
    try:
        engine.start(gate.directory)
        java = java_process()
        assert java is not None
        assert java.stdin is not None
        yield engine, gate
        engine.close()
        java.stdin.close()
        java.wait(_PATIENCE_S)
    finally:
        gate.close()


def _run(engine: SparkEngine, gate: GateServer, spec: GroupSpec, directory: Path) -> None:
    done = 0

    def on_batch(rows: SparkRows, number: int) -> None:
        nonlocal done
        rows.toArrow()
        done = number + 1

    group = GroupFacts(spec, {}, directory)
    address = gate.open(spec.group, _Rows(spec, directory, planned=group.is_planned))
    query = engine.start_query(group, spec.group, address, directory / "spark", on_batch)
    begun = time.monotonic()
    while done < BATCHES:
        if query.exception() is not None or time.monotonic() - begun > _PATIENCE_S:
            raise TimeoutError(f"the query of {spec.group} did not run: {query.exception()}")
        time.sleep(_EVERY_S)
    query.stop()
    gate.shut(address)


if __name__ == "__main__":
    make(CLASS_ARCHIVE)
