"""Makes the archive of Java classes from which each node's Java starts, at install:

    python -m pipeline_runtime.spark.class_archive

Near half of the CPU of a cold start goes into reading and checking the same classes as the last time. Java
can keep them as they lie in memory (application class-data sharing, JEP 310 and 350). So three small groups
run once, one for each way in which elements run (without state, with Spark's state, with a processor),
and what they have loaded is kept. Java itself looks whether an archive was made by the same Java of the same
jars, and does without it where not.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from pipeline_runtime.batch.gate import GateServer
from pipeline_runtime.batch.tasks import Tasks
from pipeline_runtime.checkpoint.spark_state import TOKEN
from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.plan import plan_groups
from pipeline_runtime.spark.engine import SparkEngine
from pipeline_runtime.spark.frame import GroupFrame
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
    {"id": "high", "type": "filter", "params": {"condition": "ln(value) > 1"}, **_STREAM},
    {"id": "statistics", "type": "running-statistics", "params": {"column": "value"}, **_STREAM},
]


class _Rows:
    """Keeper of the gate of one group: a few rows for each batch, and no topic behind them."""

    def __init__(self, spec: GroupSpec, directory: Path, *, stays: bool) -> None:
        self._tasks = Tasks(1, stay=stays)
        self._read = 0  # the token of the batch that was read last
        self._hello = {
            "spec": spec.model_dump(mode="json"),
            "kafka": {"bootstrap": "localhost:0", "security": {}},
            "files": {},
            "directory": str(directory),
        }

    def answer(self, op: str, arguments: dict[str, Any]) -> Any:
        match op:
            case "hello":
                return self._hello
            case "initial":
                return {TOKEN: 0}
            case "latest":
                done: int = arguments["start"][TOKEN]
                if done == BATCHES:
                    time.sleep(_EVERY_S)  # the query is stopped while it waits here
                    return {TOKEN: done}
                return {TOKEN: done + 1}
            case "plan":
                return self._tasks.planned(arguments["end"][TOKEN])
            case "rows":
                seq = arguments["token"]
                if seq == self._read:  # a resident task asks for more: each of its batches ends the task here
                    return None
                self._read = seq
                rows = [[seq, seq * 1000, "a", f'{{"sensor": "a", "value": {seq}}}', []]]
                return [{"input": 0, "batch_time_ms": seq * 1000, "records": rows}]
            case "states":
                return [None for _ in arguments["keys"]]
            case _:
                return None


def make(archive: Path) -> None:
    """Replaces `archive`. Raises OSError where it cannot be written, TimeoutError when no query runs."""
    archive.unlink(missing_ok=True)  # Java would start from it, and keeps only what it has loaded itself
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
    """Until Java has ended by itself: what it has loaded it writes as the last thing."""
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

    def on_batch(rows: DataFrame, number: int) -> None:
        nonlocal done
        rows.toArrow()
        done = number + 1

    frame = GroupFrame(spec, {}, directory)
    address = gate.open(spec.group, _Rows(spec, directory, stays=frame.resident))
    query = engine.start_query(frame, spec.group, address, directory / "spark", on_batch)
    begun = time.monotonic()
    while done < BATCHES:
        if query.exception() is not None or time.monotonic() - begun > _PATIENCE_S:
            raise TimeoutError(f"the query of {spec.group} did not run: {query.exception()}")
        time.sleep(_EVERY_S)
    query.stop()
    gate.shut(address)


if __name__ == "__main__":
    make(CLASS_ARCHIVE)
