"""Delivers the rows of a stream to an outside system. It tries again until the system has them."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pipeline_runtime.connectors.backoff import Backoff
from pipeline_runtime.connectors.name_servers import look_up
from pipeline_runtime.connectors.pulse import Pulse
from pipeline_runtime.connectors.report import Report
from pipeline_runtime.connectors.sdk import (
    Batch,
    ConnectorError,
    Deliverer,
    Ingester,
    Intake,
    Noted,
    OnceIngester,
    OnceIntake,
    Record,
)
from pipeline_runtime.model.connectors import AGAIN
from pipeline_runtime.model.names import sentence

log = logging.getLogger(__name__)

TELL_LEFT_S = 1.0


@dataclass(frozen=True)
class Letter:
    """A row that the system does not take."""

    row: Mapping[str, Any]
    time_ms: int
    reason: str


Gap = tuple[str, int | None]
"""Why rows were lost, and how many, if that is known."""


class Rows(Protocol):
    """Rows to deliver, and how far they were: kafka_ends.StreamRows. Each method raises ConnectorError."""

    gaps: tuple[Gap, ...]

    def begin(self, position: int | None) -> None: ...
    def next(self, rows_max: int) -> Batch | None: ...
    def store(self, end: int) -> None: ...
    def tell(self, end: int) -> None: ...
    def renew(self) -> None: ...
    def noted(self) -> Noted | None: ...
    def note(self, noted: Noted) -> None: ...
    def change(self, changed: Callable[[Noted], Noted]) -> None: ...
    def put_letters(self, letters: Sequence[Letter]) -> None: ...
    def close(self) -> None: ...


def ingest(
    ingester: Ingester[Any, Any],
    intake: Intake,
    report: Report,
    stop: threading.Event,
    hung: Callable[[], None],
) -> None:
    """Runs an ingester until `stop`, and again after each error. `hung` is called when it hangs, which only
    the end of the process ends."""

    def hangs() -> None:
        _tell_left(ingester, intake)
        hung()

    with Pulse(report, ingester, hangs) as pulse:
        looked_at = pulse.stop_of(stop)

        def run() -> None:
            look_up(ingester.place.connection, stop)
            with pulse.asking():
                ingester.run(intake, looked_at)

        _again_and_again(run, report, stop)
    _tell_left(ingester, intake)


def _tell_left(ingester: Ingester[Any, Any], intake: Intake) -> None:
    """Lets it tell, for at most TELL_LEFT_S: the process ends whether it raises, or waits for what hangs."""

    def tell() -> None:
        try:
            ingester.tell_left(intake)
        except Exception:
            log.exception("a connector cannot tell the gaps that it has counted")

    thread = threading.Thread(target=tell, name="gaps that are left", daemon=True)
    thread.start()
    thread.join(TELL_LEFT_S)


class OpenedIntake(OnceIntake, Protocol):
    """A OnceIntake that is opened before each run: once.KeptIntake. Each method raises ConnectorError."""

    def begin(self) -> None: ...
    def close(self) -> None: ...


class _PatientIntake:
    """A OnceIntake whose commits are no time in which the system is waited for."""

    def __init__(self, intake: OnceIntake, pulse: Pulse) -> None:
        self._intake, self._pulse = intake, pulse
        self.connected, self.failing, self.gap = intake.connected, intake.failing, intake.gap

    @property
    def position(self) -> Any:
        return self._intake.position

    def commit(self, records: Sequence[Record], position: Any) -> bool:
        with self._pulse.asking(False):
            return self._intake.commit(records, position)


def ingest_once(
    ingester: OnceIngester[Any, Any],
    intake: OpenedIntake,
    report: Report,
    stop: threading.Event,
    hung: Callable[[], None],
) -> None:
    """Runs an ingester until `stop`. After each error it goes on at the position that was committed last.
    `hung`: as of `ingest`."""
    with Pulse(report, ingester, hung) as pulse:
        looked_at = pulse.stop_of(stop)

        def run() -> None:
            look_up(ingester.place.connection, stop)
            try:
                intake.begin()
                with pulse.asking():
                    ingester.run(_PatientIntake(intake, pulse), looked_at)
            finally:
                intake.close()

        _again_and_again(run, report, stop)


class _PatientNotes:
    """Notes whose writing and reading is no time in which the system is waited for."""

    def __init__(self, rows: Rows, pulse: Pulse) -> None:
        self._rows, self._pulse = rows, pulse

    def noted(self) -> Noted | None:
        with self._pulse.asking(False):
            return self._rows.noted()

    def note(self, noted: Noted) -> None:
        with self._pulse.asking(False):
            self._rows.note(noted)

    def change(self, changed: Callable[[Noted], Noted]) -> None:
        with self._pulse.asking(False):
            self._rows.change(changed)


def deliver(
    deliverer: Deliverer[Any, Any],
    rows: Rows,
    report: Report,
    stop: threading.Event,
    epoch: int,
    hung: Callable[[], None],
) -> None:
    """Runs a deliverer until `stop`. After each error it goes on behind what was stored last. `hung` is
    called when it hangs, which only the end of the process ends."""
    with Pulse(report, deliverer, hung) as pulse:
        deliverer.goes_on, deliverer.notes = pulse.goes_on, _PatientNotes(rows, pulse)

        def run() -> None:
            look_up(deliverer.place.connection, stop)
            try:
                with pulse.asking():
                    deliverer.open(epoch)
                    kept = deliverer.position()
                rows.begin(kept)
                if report.status.state == "starting":  # after an error, only an answer shows that it is over
                    report.connected()
                while not stop.is_set():
                    _deliver_next(deliverer, rows, report, pulse, keeps_position=kept is not None)
            finally:
                with pulse.asking():
                    deliverer.close()
                rows.close()

        _again_and_again(run, report, stop)


def _deliver_next(
    deliverer: Deliverer[Any, Any], rows: Rows, report: Report, pulse: Pulse, *, keeps_position: bool
) -> None:
    for why, count in rows.gaps:
        report.gap(why, count)
    if rows.gaps:
        rows.gaps = ()
        rows.renew()  # whatever fails behind it, they are not found again
    batch = rows.next(deliverer.batch_rows)
    if batch is None:
        with pulse.asking():
            deliverer.idle()
        rows.renew()
        report.connected()
        return
    with pulse.asking():
        refused = deliverer.deliver(batch)
    if refused:
        letters = [Letter(batch.rows[each.row], batch.times_ms[each.row], each.reason) for each in refused]
        rows.put_letters(letters)
    with pulse.asking():
        deliverer.settle()
    if keeps_position:
        rows.note(Noted(batch.end, deliverer.mark))
        rows.tell(batch.end)
    else:
        rows.store(batch.end)
    report.connected()
    report.count(rows=len(batch.rows) - len(refused), refused=len(refused))


def _again_and_again(run: Callable[[], None], report: Report, stop: threading.Event) -> None:
    backoff = Backoff()
    while not stop.is_set():
        try:
            run()
            if stop.is_set():
                return
            error: Exception = ConnectorError("It has ended by itself.")
        except ConnectorError as known:
            error = known
        except Exception as unknown:
            log.exception("a connector has failed")
            error = ConnectorError(f"Its connector has failed: {type(unknown).__name__}: {unknown}")
        connected_s = report.connected_for_s()
        lasting, asked_s = getattr(error, "lasting", False), getattr(error, "wait_s", 0.0)
        backoff, wait_s = backoff.failed(connected_s, lasting=lasting, chance=random.random())
        within_s = max(backoff.within_s(lasting=lasting), asked_s)
        report.failing(f"{sentence(str(error))}{AGAIN}{within_s:.0f} s.")
        stop.wait(max(wait_s, asked_s))
