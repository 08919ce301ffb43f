"""Rows on their way to a system that fails now and then."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pipeline_runtime.connectors import backoff
from pipeline_runtime.connectors.delivery import Gap, deliver
from pipeline_runtime.connectors.kafka_ends import Beginning, MadeAgain, beginning
from pipeline_runtime.connectors.report import Report
from pipeline_runtime.connectors.sdk import Batch, ConnectorError, Deliverer, Noted, Place, Refused
from pipeline_runtime.connectors.trial import trial_deliverer

PLACE = Place("d", "e", None, None)
ROWS = [{"value": number} for number in range(20)]


class Faulty(Deliverer[None, None]):
    """Fails at random before and after it has taken rows. With `keeps` it stores the position with them."""

    def __init__(self, seed: int, *, keeps: bool) -> None:
        super().__init__(PLACE)
        self.values: list[int] = []
        self._chance, self._keeps, self._at, self._open = random.Random(seed), keeps, 0, False

    def open(self, epoch: int) -> None:
        assert not self._open
        self._maybe("no answer")
        self._open = True

    def position(self) -> int | None:
        return self._at if self._keeps else None

    def deliver(self, batch: Batch) -> Sequence[Refused]:
        assert self._open
        self._maybe("before")
        if self._keeps:
            assert batch.first == self._at
        self._at = batch.end
        self.values += [row["value"] for row in batch.rows]
        self._maybe("after")
        return []

    def close(self) -> None:
        self._open = False

    def _maybe(self, what: str) -> None:
        if self._chance.random() < 0.3:
            raise ConnectorError(what)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_S", 0.000_001)


@pytest.mark.parametrize("seed", range(5))
def test_every_row_is_delivered_at_least_once_and_in_order(seed: int) -> None:
    system = Faulty(seed, keeps=False)
    trial_deliverer(system, ROWS)
    assert list(dict.fromkeys(system.values)) == list(range(20))


@pytest.mark.parametrize("seed", range(5))
def test_a_system_that_keeps_the_position_has_every_row_once(seed: int) -> None:
    system = Faulty(seed, keeps=True)
    trial_deliverer(system, ROWS)
    assert system.values == list(range(20))


class Choosy(Deliverer[None, None]):
    def open(self, epoch: int) -> None:
        return None

    def deliver(self, batch: Batch) -> Sequence[Refused]:
        return [Refused(place, "odd") for place, row in enumerate(batch.rows) if row["value"] % 2]


def test_a_row_that_the_system_never_takes_is_a_dead_letter_and_the_others_go_on() -> None:
    taken = trial_deliverer(Choosy(PLACE), ROWS[:5])
    assert [(letter.row, letter.reason) for letter in taken.refused] == [
        ({"value": 1}, "odd"),
        ({"value": 3}, "odd"),
    ]


class Broken(Deliverer[Any, Any]):
    def open(self, epoch: int) -> None:
        raise KeyError("bug")

    def deliver(self, batch: Batch) -> Sequence[Refused]:
        return []


def test_an_error_of_the_connector_itself_is_told_and_tried_again() -> None:
    taken = trial_deliverer(Broken(PLACE), ROWS, timeout_s=0.1)
    failing = [each.why for each in taken.statuses if each.state == "failing"]
    assert failing[0] == "Its connector has failed: KeyError: 'bug'. It is tried again within 5 s."


DELETED = "Kafka had deleted rows before they were delivered"


@pytest.mark.parametrize(
    ("stored", "first", "begins"),
    [
        (None, 0, Beginning(0)),
        (7, 5, Beginning(7)),
        (10, 5, Beginning(10)),
        (2, 5, Beginning(5, ((DELETED, 3),))),
        (None, 5, Beginning(5, ((DELETED, 5),))),  # none was ever delivered
    ],
)
def test_rows_that_kafka_has_deleted_are_counted(stored: int | None, first: int, begins: Beginning) -> None:
    assert beginning(stored, first, 10, kept_outside=False) == begins


def test_rows_that_were_told_as_deleted_are_not_counted_again() -> None:
    assert beginning(2, 5, 10, kept_outside=True, told_to=5) == Beginning(5)
    assert beginning(2, 8, 10, kept_outside=True, told_to=5) == Beginning(8, ((DELETED, 3),))


class Refusing(Deliverer[Any, Any]):
    """Is away at first."""

    def __init__(self) -> None:
        super().__init__(PLACE)
        self.failures = 3

    def open(self, epoch: int) -> None:
        return None

    def deliver(self, batch: Batch) -> Sequence[Refused]:
        self.failures -= 1
        if self.failures >= 0:
            raise ConnectorError("away")
        return []


class GapRows:
    """A stream whose first rows are gone; it tells so until a position behind them is stored."""

    gaps: tuple[Gap, ...] = ()

    def __init__(self, delivered: threading.Event) -> None:
        self._stored, self._delivered = 0, delivered

    def begin(self, position: int | None) -> None:
        if self._stored < 5:
            self.gaps = ((DELETED, 5),)

    def next(self, rows_max: int) -> Batch | None:
        return Batch([{}], [0], [5], 5, 6)

    def store(self, end: int) -> None:
        self._stored = end
        self._delivered.set()

    def tell(self, end: int) -> None:
        return None

    def renew(self) -> None:
        self._stored = 5

    def noted(self) -> Noted:
        return Noted()

    def note(self, noted: Noted) -> None:
        return None

    def change(self, changed: Callable[[Noted], Noted]) -> None:
        return None

    def put_letters(self, letters: object) -> None:
        return None

    def close(self) -> None:
        return None


def test_a_gap_is_counted_once_however_often_the_delivery_behind_it_fails() -> None:
    delivered, report = threading.Event(), Report("e", lambda status, note: None)
    args = (Refusing(), GapRows(delivered), report, delivered, 1, lambda: None)
    thread = threading.Thread(target=deliver, args=args, daemon=True)
    thread.start()
    assert delivered.wait(60)
    thread.join(60)
    assert (report.status.gaps_total, report.status.gap_rows_total) == (1, 5)


def test_a_system_that_fails_counts_as_connected_again_when_it_has_taken_rows() -> None:
    """One whose `open` works without the system would else count as connected before each failure."""
    taken = trial_deliverer(Refusing(), ROWS[:2], timeout_s=60)
    assert [each.state for each in taken.statuses] == ["connected", "failing", "connected"]


def test_a_stream_that_was_made_again_is_read_from_its_begin_or_not_at_all() -> None:
    begins = beginning(50, 0, 10, kept_outside=False)
    assert (begins.at, len(begins.gaps)) == (0, 1)
    with pytest.raises(MadeAgain):
        beginning(50, 0, 10, kept_outside=True)
