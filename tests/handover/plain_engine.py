"""Runs a group's task without Spark, in a thread of the node's own process.

Gate, sink, journal, transactions, state and crash points are the node's real ones, and so is the task. What
Spark writes down about a group's batches is of no use after the query has ended, so this engine writes
nothing.
"""

from __future__ import annotations

import logging
import socket
import threading
from pathlib import Path
from typing import NoReturn

import pyarrow as pa

from pipeline_runtime.batch.facts import GroupFacts
from pipeline_runtime.batch.gate_client import GateClient
from pipeline_runtime.batch.gate_messages import FirstToken, NextToken, TasksOf
from pipeline_runtime.batch.group import GroupWork, run_batches
from pipeline_runtime.batch.reader import GroupReader
from pipeline_runtime.replica.engine import OnBatch

log = logging.getLogger(__name__)

_POLLING_DELAY_S = 0.001

KILLED_S = 15.0
"""After so long nobody waits for a task that waits for ever. Spark would kill its process at once."""


class PlainEngine:
    """Implements replica.engine.Engine for groups of Fogline's own operators."""

    def start(self, sockets: Path) -> None:
        """There is nothing to start."""

    def start_query(
        self, group: GroupFacts, name: str, gate_address: str, directory: Path, on_batch: OnBatch
    ) -> PlainQuery:
        return PlainQuery(group, name, gate_address, on_batch)

    def close(self) -> None:
        """There is nothing to stop."""


class PlainQuery:
    """Implements replica.engine.Query, in a thread of its own."""

    def __init__(self, group: GroupFacts, name: str, gate_address: str, on_batch: OnBatch) -> None:
        if group.is_planned:
            raise NotImplementedError(f"{group.spec.id}: the plain engine runs no DataFrames")
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
        self._thread.join(KILLED_S)

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
        work = GroupWork(self._reading, reader)
        start, batch = self._asker.ask(FirstToken()), 0
        while not self._stopping.is_set():
            end = self._asker.ask(NextToken(start))
            if end == start and batch > 0:
                self._stopping.wait(_POLLING_DELAY_S)
                continue
            [part] = self._asker.ask(TasksOf(end))
            self._on_batch(PlainRows(self._reading, work, part.token), batch)
            start, batch = end, batch + 1


class PlainRows:
    """Implements replica.engine.BatchRows."""

    def __init__(self, gate: GateClient, work: GroupWork, token: int) -> None:
        self._gate = gate
        self._work = work
        self._token = token

    def toArrow(self) -> pa.Table:
        run_batches(self._gate, self._work, self._token, 0)
        return pa.table({})

    def output(self, rows: pa.Table, batch_time_ms: int) -> NoReturn:
        raise NotImplementedError("its tasks hand over what they make")


class _Asker(GateClient):
    def interrupt(self) -> None:
        """Ends a question that waits for its answer with GateClosed."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError as error:
            log.debug("the gate has hung up before: %s", error)
