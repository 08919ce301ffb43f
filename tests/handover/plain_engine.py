"""Runs a keyed group's batches in plain Python: what Spark does between the gate and the sink, and no more.

Gate, sink, journal, transactions and crash points are the node's real ones, and so are the reader of the
slices and what a keyed operator does with a row. As with Spark, in this order for each batch:

    offsets/N    written, once the gate has told of it
    state/N+1    written by `toArrow`, in the sink, once the gate has granted what to read
    commits/N    written when the sink has returned

so that a process that is killed anywhere in between leaves what Spark would leave.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.sdk import KeyedProcessor
from pipeline_runtime.replica.engine import OnBatch
from pipeline_runtime.replica.local_state import replace_text
from pipeline_runtime.spark.columns import column
from pipeline_runtime.spark.frame import GroupFrame
from pipeline_runtime.spark.gate_client import GateClient, Slice
from pipeline_runtime.spark.inputs import operator_of
from pipeline_runtime.spark.keyed import KeyState, process_row
from pipeline_runtime.spark.slices import GroupReader

log = logging.getLogger(__name__)

KEPT_BATCHES = 4  # Spark's minBatchesToRetain
_POLLING_DELAY_S = 0.001
_VERSION_LINE = "v1"
_METADATA_LINE = "{}"
_TAGGED = pa.schema(
    [("_out", pa.string()), ("_key", pa.string()), ("_time_ms", pa.int64()), ("_value", pa.string())]
)

State = dict[str, str]
"""Of each key: spark.keyed.KeyState's text."""


class PlainEngine:
    """Implements replica.engine.Engine for groups of one keyed element that reads topics."""

    def start(self, sockets: Path) -> None:
        """There is nothing to start."""

    def start_query(
        self, frame: GroupFrame, name: str, gate_address: str, directory: Path, on_batch: OnBatch
    ) -> PlainQuery:
        return PlainQuery(frame, name, gate_address, directory, on_batch)

    def close(self) -> None:
        """There is nothing to stop."""


class PlainQuery:
    """Implements replica.engine.Query, in a thread of its own."""

    def __init__(
        self, frame: GroupFrame, name: str, gate_address: str, directory: Path, on_batch: OnBatch
    ) -> None:
        self._log = BatchLog(directory)
        self._work = KeyedWork(frame.spec, frame)
        self._address = gate_address
        self._on_batch = on_batch
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        # As Spark has one process that asks for offsets and others that read.
        self._asker, self._reading = _Asker(gate_address), _Asker(gate_address)
        self._thread = threading.Thread(target=self._run, name=f"query {name}", daemon=True)
        self._thread.start()

    @property
    def isActive(self) -> bool:
        return self._thread.is_alive()

    def exception(self) -> BaseException | None:
        return self._failure

    def stop(self) -> None:
        self._stopping.set()
        self._asker.interrupt()
        self._thread.join()

    def _run(self) -> None:
        reader: GroupReader | None = None
        try:
            reader = GroupReader(self._reading)
            self._run_batches(reader)
        except BaseException as error:
            if not self._stopping.is_set():
                log.info("the query ends: %s", error)
                self._failure = error
        finally:
            if reader is not None:
                reader.close()
            self._asker.close()
            self._reading.close()

    def _run_batches(self, reader: GroupReader) -> None:
        last = self._log.newest()
        start = self._log.offset(last) if last is not None else self._asker.ask("initial")
        batch = 0 if last is None else last + 1
        self._work.restore(self._log.state(batch))
        while not self._stopping.is_set():
            end = self._asker.ask("latest", start=start)
            if end == start and batch > 0:
                self._stopping.wait(_POLLING_DELAY_S)
                continue
            self._log.begin(batch, end)
            parts = self._asker.ask("plan", start=start, end=end)
            self._on_batch(PlainRows(self, reader, parts, batch), batch)
            self._log.finish(batch)
            start, batch = end, batch + 1

    def compute(self, reader: GroupReader, parts: list[dict[str, Any]], batch: int) -> pa.Table:
        slices = [Slice(**item) for part in parts for item in self._reading.ask("rows", **part)]
        table, state = self._work.process(record for part in slices for record in reader.read(part))
        self._log.write_state(batch + 1, state)
        return table


class PlainRows:
    """Implements replica.engine.BatchRows."""

    def __init__(
        self, query: PlainQuery, reader: GroupReader, parts: list[dict[str, Any]], batch: int
    ) -> None:
        self._query = query
        self._reader = reader
        self._parts = parts
        self._batch = batch

    def toArrow(self) -> pa.Table:
        return self._query.compute(self._reader, self._parts, self._batch)

    @property
    def sparkSession(self) -> NoReturn:
        raise NotImplementedError("elements behind the keyed one are run by Spark")


class KeyedWork:
    """The group's one element, and the state of all its keys after the newest batch."""

    def __init__(self, spec: GroupSpec, frame: GroupFrame) -> None:
        keyed = [item.id for item in spec.elements if isinstance(operator_of(spec, item.id), KeyedProcessor)]
        read = [item.element for item in frame.inputs if item.topic is not None]
        if len(keyed) != 1 or {*keyed, *read} < {item.id for item in spec.elements}:
            raise NotImplementedError(f"{spec.id}: the plain engine runs one keyed element that reads topics")
        [self._element] = keyed
        operator = operator_of(spec, self._element)
        assert isinstance(operator, KeyedProcessor)
        self._operator = operator
        self._names = spec.schemas[f"{self._element}.out"].names
        self._inputs = frame.inputs
        self._state: State = {}

    def restore(self, state: State) -> None:
        self._state = state

    def process(self, records: Iterator[pa.RecordBatch]) -> tuple[pa.Table, State]:
        """The tagged rows, and the state behind them."""
        rows = [row for batch in records for row in batch.to_pylist()]
        rows.sort(key=lambda row: (row["_input"], row["_partition"], row["_offset"]))
        made: list[dict[str, Any]] = []
        for row in rows:
            made += self._process_row(row)
        return pa.Table.from_pylist(made, schema=_TAGGED), self._state

    def _process_row(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        names = self._inputs[row["_input"]].schema.names
        data = {name: row[column(row["_input"], name)] for name in names}
        field = self._operator.key_field()
        key = str(data[field]) if field is not None else row["_key"]
        now_ms = int(row["_time"].astimezone(UTC).timestamp() * 1000)
        kept = KeyState(self._state.get(key))
        state, timers = kept.load()
        made = process_row(self._operator, key, {**data, "_time": row["_time"]}, state, timers, now_ms)
        kept.save(state, timers)
        self._state[key] = kept.text
        return [
            {
                "_out": f"{self._element}.out",
                "_key": key,
                "_time_ms": now_ms,
                "_value": json.dumps({name: item.get(name) for name in self._names}),
            }
            for item in made
        ]


class BatchLog:
    """What a query keeps on disk, in the places and the format of Spark's checkpoint."""

    def __init__(self, directory: Path) -> None:
        self._offsets, self._commits = directory / "offsets", directory / "commits"
        self._states = directory / "state"
        for path in (self._offsets, self._commits, self._states):
            path.mkdir(parents=True, exist_ok=True)

    def newest(self) -> int | None:
        """The newest batch that was finished."""
        return max((int(path.name) for path in self._commits.iterdir() if path.name.isdigit()), default=None)

    def offset(self, batch: int) -> Any:
        return json.loads((self._offsets / str(batch)).read_text().splitlines()[2])

    def begin(self, batch: int, end: Any) -> None:
        text = "\n".join([_VERSION_LINE, _METADATA_LINE, json.dumps(end)])
        replace_text(self._offsets / str(batch), text)

    def finish(self, batch: int) -> None:
        replace_text(self._commits / str(batch), "\n".join([_VERSION_LINE, _METADATA_LINE]))
        old = batch - KEPT_BATCHES
        for path in (self._offsets / str(old), self._commits / str(old), self._states / f"{old}.json"):
            path.unlink(missing_ok=True)

    def state(self, version: int) -> State:
        """Before batch `version`; empty before the first."""
        if version == 0:
            return {}
        found: State = json.loads((self._states / f"{version}.json").read_text())
        return found

    def write_state(self, version: int, state: State) -> None:
        replace_text(self._states / f"{version}.json", json.dumps(state))


class _Asker(GateClient):
    def interrupt(self) -> None:
        """A question that is waiting for its answer ends with GateClosed."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError as error:
            log.debug("the gate has hung up before: %s", error)
