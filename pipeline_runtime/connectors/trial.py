"""Runs a connector without Kafka, for its tests.

trial_ingester(MqttIngester(place), rows=3)                     # what it has put, as JSON
trial_deliverer(MqttDeliverer(place), [{"value": 1.0}])         # the rows that the system did not take
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pipeline_runtime.connectors.delivery import Gap, Letter, deliver, ingest, ingest_once
from pipeline_runtime.connectors.report import Report, Telling
from pipeline_runtime.connectors.sdk import Batch, Deliverer, Done, Ingester, Noted, OnceIngester, Record
from pipeline_runtime.model.connectors import ConnectorStatus

_NONE = Noted()
IDLE_S = 0.5
"""How long rows are waited for when none is left."""


@dataclass
class Taken:
    """What came of a trial."""

    records: list[Record] = field(default_factory=list)
    statuses: list[ConnectorStatus] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    refused: list[Letter] = field(default_factory=list)

    @property
    def rows(self) -> list[Any]:
        """Returns the records as JSON. Raises ValueError at one that is none."""
        return [json.loads(record.value) for record in self.records]

    @property
    def why(self) -> str:
        """Returns the words of the newest failure, or an empty text."""
        return next((each.why for each in reversed(self.statuses) if each.state == "failing"), "")

    def told(self, status: ConnectorStatus, note: str) -> None:
        self.statuses.append(status)
        if note:
            self.notes.append(note)


class MemoryIntake(Telling):
    """An Intake that keeps everything. `enough` is set after so many records."""

    def __init__(self, taken: Taken, report: Report, records: int) -> None:
        super().__init__(report)
        self._taken, self._records = taken, records
        self._lock = threading.Lock()
        self.enough = threading.Event()

    def put(self, records: Sequence[Record], done: Done | None = None) -> bool:
        with self._lock:
            self._taken.records += records
            if len(self._taken.records) >= self._records:
                self.enough.set()
        if done is not None:
            done()
        return True

    def put_durably(self, records: Sequence[Record], timeout_s: float) -> bool:
        return self.put(records)


class MemoryOnceIntake(MemoryIntake):
    """A OnceIntake that keeps everything. `refuse` has errors for the next commits."""

    def __init__(self, taken: Taken, report: Report, records: int, position: Any) -> None:
        super().__init__(taken, report, records)
        self.position = position
        self.refuse: list[Exception] = []

    def begin(self) -> None:
        return None

    def commit(self, records: Sequence[Record], position: Any) -> bool:
        if self.refuse:
            raise self.refuse.pop(0)
        self.position = position
        return self.put(records)

    def close(self) -> None:
        return None


class RunningTrial:
    """An ingester that runs until `stop`, for a test that changes something meanwhile. `position`: where a
    OnceIngester begins."""

    def __init__(
        self,
        ingester: Ingester[Any, Any] | OnceIngester[Any, Any],
        rows: int = 1,
        position: Any = None,
    ) -> None:
        self.taken = Taken()
        self._report = Report(ingester.place.element, self.taken.told)
        self.intake = MemoryOnceIntake(self.taken, self._report, rows, position)
        self._stop = threading.Event()
        run: Callable[..., None] = ingest_once if isinstance(ingester, OnceIngester) else ingest
        self.hung = threading.Event()
        """Set when a node would end the process, since the ingester hangs."""
        self._thread = threading.Thread(
            target=run,
            args=(ingester, self.intake, self._report, self._stop, self.hung.set),
            daemon=True,
        )
        self._thread.start()

    @property
    def status(self) -> ConnectorStatus:
        return self._report.status

    def stop(self, timeout_s: float = 5.0) -> Taken:
        """Raises AssertionError if it does not end in time."""
        self._stop.set()
        self._thread.join(timeout_s)
        assert not self._thread.is_alive(), "run did not return when it was told to stop"
        return self.taken


def trial_ingester(
    ingester: Ingester[Any, Any] | OnceIngester[Any, Any], rows: int, timeout_s: float = 10.0
) -> Taken:
    """Returns what it has put until there are so many records, or the time is over."""
    running = RunningTrial(ingester, rows)
    running.intake.enough.wait(timeout_s)
    return running.stop()


def trial_deliverer(
    deliverer: Deliverer[Any, Any],
    rows: Sequence[Mapping[str, Any]],
    *,
    batch_rows: int = 2,
    noted: Noted | None = _NONE,
    timeout_s: float = 10.0,
) -> Taken:
    """Delivers the rows in batches, again after each error, until all are delivered or the time is over.
    `noted`: how far they were delivered before, by Fogline's own record, or None without one."""
    return RunningDelivery(deliverer, rows, batch_rows=batch_rows, noted=noted).taken_within(timeout_s)


class RunningDelivery:
    """A deliverer that runs until all rows are delivered, for a test that changes something meanwhile. The
    parameters are those of `trial_deliverer`. With `ends` False it goes on without rows."""

    def __init__(
        self,
        deliverer: Deliverer[Any, Any],
        rows: Sequence[Mapping[str, Any]],
        *,
        batch_rows: int = 2,
        noted: Noted | None = _NONE,
        ends: bool = True,
    ) -> None:
        self.taken, self._stop = Taken(), threading.Event()
        done = self._stop.set if ends else partial(self._stop.wait, IDLE_S)
        given = _GivenRows(rows, batch_rows, self.taken, done, noted)
        self._report = Report(deliverer.place.element, self.taken.told)
        # A node ends the process of a deliverer that hangs.
        args = (deliverer, given, self._report, self._stop, 1, self._stop.set)
        self._thread = threading.Thread(target=deliver, args=args, daemon=True)
        self._thread.start()

    @property
    def status(self) -> ConnectorStatus:
        return self._report.status

    def taken_within(self, timeout_s: float) -> Taken:
        """Raises AssertionError if it does not end when the time is over."""
        self._stop.wait(timeout_s)
        self._stop.set()
        self._thread.join(5.0)
        assert not self._thread.is_alive(), "the deliverer did not end"
        return self.taken


class MemoryNotes:
    """Fogline's own record of how far rows were delivered, for a deliverer that a test opens itself."""

    def __init__(self, noted: Noted | None = _NONE) -> None:
        self._noted = noted

    def noted(self) -> Noted | None:
        return self._noted

    def note(self, noted: Noted) -> None:
        self._noted = noted

    def change(self, changed: Callable[[Noted], Noted]) -> None:
        self._noted = changed(self._noted or _NONE)


class _GivenRows(MemoryNotes):
    """Rows of a test, and how far they were delivered."""

    gaps: tuple[Gap, ...] = ()

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        batch_rows: int,
        taken: Taken,
        done: Callable[[], object],
        noted: Noted | None,
    ) -> None:
        """`done` is called when no row is left."""
        self._rows, self._batch_rows, self._taken, self._done = rows, batch_rows, taken, done
        super().__init__(noted)
        self._at = self._stored = 0

    def begin(self, position: int | None) -> None:
        self._at = self._stored if position is None else position

    def next(self, rows_max: int) -> Batch | None:
        first = self._at
        found = self._rows[first : first + min(rows_max, self._batch_rows)]
        if not found:
            self._done()
            return None
        self._at = first + len(found)
        return Batch(found, [0] * len(found), list(range(first, self._at)), first, self._at)

    def store(self, end: int) -> None:
        self._stored = end

    def tell(self, end: int) -> None:
        return None

    def renew(self) -> None:
        return None

    def put_letters(self, letters: Sequence[Letter]) -> None:
        self._taken.refused += letters

    def close(self) -> None:
        return None
