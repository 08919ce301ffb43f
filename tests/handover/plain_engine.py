"""Runs a keyed group's batches in plain Python: what Spark does between the gate and the sink, and no more.

Gate, sink, journal, transactions, state and crash points are the node's real ones, and so are the reader of
the slices and what a keyed operator does with its rows. What Spark writes down of such a group's batches is
of no use to anybody behind the end of the query, so this writes nothing.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.sdk import KeyedProcessor
from pipeline_runtime.replica.engine import OnBatch
from pipeline_runtime.spark.columns import column
from pipeline_runtime.spark.frame import GroupFrame
from pipeline_runtime.spark.gate_client import GateClient, Slice
from pipeline_runtime.spark.inputs import operator_of
from pipeline_runtime.spark.keyed import Arrived, KeyedWork
from pipeline_runtime.spark.slices import GroupReader

log = logging.getLogger(__name__)

_POLLING_DELAY_S = 0.001
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PlainEngine:
    """Implements replica.engine.Engine for groups of one keyed element that reads topics."""

    def start(self, sockets: Path) -> None:
        """There is nothing to start."""

    def start_query(
        self, frame: GroupFrame, name: str, gate_address: str, directory: Path, on_batch: OnBatch
    ) -> PlainQuery:
        return PlainQuery(frame, name, gate_address, on_batch)

    def former_states(self, directory: Path) -> NoReturn:
        raise NotImplementedError("it has never kept states")

    def close(self) -> None:
        """There is nothing to stop."""


class PlainQuery:
    """Implements replica.engine.Query, in a thread of its own."""

    def __init__(self, frame: GroupFrame, name: str, gate_address: str, on_batch: OnBatch) -> None:
        self._work = OneElement(frame.spec, frame)
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
        start, batch = self._asker.ask("initial"), 0
        while not self._stopping.is_set():
            end = self._asker.ask("latest", start=start)
            if end == start and batch > 0:
                self._stopping.wait(_POLLING_DELAY_S)
                continue
            parts = self._asker.ask("plan", start=start, end=end)
            self._on_batch(PlainRows(self, reader, parts), batch)
            start, batch = end, batch + 1

    def compute(self, reader: GroupReader, parts: list[dict[str, Any]]) -> pa.Table:
        slices = [Slice(**item) for part in parts for item in self._reading.ask("rows", **part)]
        return self._work.process((record for part in slices for record in reader.read(part)), self._reading)


class PlainRows:
    """Implements replica.engine.BatchRows."""

    def __init__(self, query: PlainQuery, reader: GroupReader, parts: list[dict[str, Any]]) -> None:
        self._query = query
        self._reader = reader
        self._parts = parts

    def toArrow(self) -> pa.Table:
        return self._query.compute(self._reader, self._parts)

    @property
    def sparkSession(self) -> NoReturn:
        raise NotImplementedError("elements behind the keyed one are run by Spark")


class OneElement:
    """The group's keyed element on what the gate has granted."""

    def __init__(self, spec: GroupSpec, frame: GroupFrame) -> None:
        read = [item.element for item in frame.inputs if item.topic is not None]
        if frame.keyed is None or {frame.keyed, *read} < {item.id for item in spec.elements}:
            raise NotImplementedError(f"{spec.id}: the plain engine runs one keyed element that reads topics")
        operator = operator_of(spec, frame.keyed)
        assert isinstance(operator, KeyedProcessor)
        self._key_field = operator.key_field()
        self._inputs = frame.inputs
        self._work = KeyedWork.of(spec, frame.keyed)

    def process(self, records: Iterator[pa.RecordBatch], gate: GateClient) -> pa.Table:
        """The tagged rows; the state behind them is the gate's."""
        rows = [row for batch in records for row in batch.to_pylist()]
        rows.sort(key=lambda row: (row["_input"], row["_partition"], row["_offset"]))
        keys: dict[str, list[Arrived]] = {}
        for row in rows:
            names = self._inputs[row["_input"]].schema.names
            data = {name: row[column(row["_input"], name)] for name in names}
            key = str(data[self._key_field]) if self._key_field is not None else row["_key"]
            time_us = (row["_time"] - _EPOCH) // timedelta(microseconds=1)
            keys.setdefault(key, []).append(Arrived(data, time_us))
        return pa.Table.from_batches([self._work.process(keys, gate)])


class _Asker(GateClient):
    def interrupt(self) -> None:
        """A question that is waiting for its answer ends with GateClosed."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError as error:
            log.debug("the gate has hung up before: %s", error)
