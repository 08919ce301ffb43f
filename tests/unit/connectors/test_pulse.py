"""A connector that hangs is reported, and its process is ended. A connector that waits on purpose is not."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from time import time

import pytest

from pipeline_runtime.connectors import pulse
from pipeline_runtime.connectors.delivery import deliver
from pipeline_runtime.connectors.kept import Gaps, KeptGaps
from pipeline_runtime.connectors.pulse import Silence
from pipeline_runtime.connectors.report import Report
from pipeline_runtime.connectors.sdk import (
    Batch,
    ConnectorError,
    Deliverer,
    Ingester,
    Intake,
    Place,
    Record,
    Refused,
)
from pipeline_runtime.connectors.trial import RunningTrial
from tests.waiting import wait_until

PLACE = Place("d", "e", None, None)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "LOOK_S", 0.01)
    monkeypatch.setattr(pulse, "STEP_S_MAX", 0.02)  # a machine that is busy takes the time of all
    monkeypatch.setattr(pulse, "PATIENCE_S", 0.1)
    monkeypatch.setattr(pulse, "TELL_S", 0.1)


def test_silence_is_counted_while_it_asks_and_a_process_that_stood_still_did_not_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pulse, "STEP_S_MAX", 0.6)
    silence = Silence().next(1, 0.5, asking=True)
    assert silence == Silence(1, 0.0)
    silence = silence.next(1, 0.5, asking=True).next(1, 3600, asking=True)
    assert silence == Silence(1, 0.5 + 0.6)
    assert silence.next(1, 0.5, asking=False) == Silence(1, 0.0)
    assert silence.next(2, 0.5, asking=True) == Silence(2, 0.0)


class Hanging(Ingester[None, None]):
    """Its library returns when it is let go. Then it looks at `stop`."""

    def __init__(self, patience_s: float) -> None:
        super().__init__(PLACE)
        self.patience_s = patience_s
        self.let_go = threading.Event()

    def run(self, intake: Intake, stop: threading.Event) -> None:
        intake.connected()
        self.let_go.wait()
        while not stop.wait(0.01):
            intake.put([Record(b"{}")])


def test_a_library_that_does_not_return_is_told_of_and_ends_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pulse, "END_AFTER_S", 0.1)
    ingester = Hanging(0.2)
    running = RunningTrial(ingester)
    assert running.hung.wait(60)
    whys = [each.why for each in running.taken.statuses if each.state == "failing"]
    assert "Its connector has waited for an answer of its system" in whys[0]
    assert "Its connector hangs" in whys[-1]
    ingester.let_go.set()
    running.stop()


class NotTelling(Hanging):
    """Cannot tell its gaps: it raises, or waits for a lock that `run` holds."""

    def __init__(self, *, waits: bool) -> None:
        super().__init__(0.2)
        self._waits = waits

    def tell_left(self, intake: Intake) -> None:
        if self._waits:
            self.let_go.wait()
        raise KeyError("bug")


@pytest.mark.parametrize("waits", [False, True])
def test_one_that_hangs_ends_even_if_it_cannot_tell_its_gaps(
    monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    monkeypatch.setattr(pulse, "END_AFTER_S", 0.1)
    ingester = NotTelling(waits=waits)
    running = RunningTrial(ingester)
    assert running.hung.wait(60)
    ingester.let_go.set()
    running.stop()


def test_one_that_goes_on_is_connected_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "END_AFTER_S", 3600)
    ingester = Hanging(0.1)
    running = RunningTrial(ingester, rows=1)
    wait_until(lambda: running.status.state == "failing", "the words")
    ingester.let_go.set()
    wait_until(lambda: running.status.state == "connected", "the end of the words")
    assert running.intake.enough.wait(60)
    assert not running.hung.is_set()
    running.stop()


class Waiting(Ingester[None, None]):
    """Waits for its next poll, for longer than anybody would wait for a system."""

    patience_s = 0.1

    def run(self, intake: Intake, stop: threading.Event) -> None:
        intake.connected()
        stop.wait(1.0)
        intake.put([Record(b"{}")])
        stop.wait()


def test_one_that_waits_on_purpose_does_not_hang() -> None:
    running = RunningTrial(Waiting(PLACE))
    assert running.intake.enough.wait(60)
    assert {each.state for each in running.stop().statuses} == {"connected"}


def test_one_whose_answer_may_take_long_is_told_of_and_does_not_end() -> None:
    """Its node shows it at once, since it has waited for longer than what passes by itself."""
    ingester = Hanging(patience_s=3600)
    running = RunningTrial(ingester, rows=1)
    waits = wait_until(lambda: status if (status := running.status).why else None, "the words")
    assert waits.why.endswith("If it waits for 3604 s, its process is ended and started again")
    assert running.taken.statuses[0].since_ms <= waits.since_ms <= time() * 1000 - 100
    ingester.let_go.set()
    assert running.intake.enough.wait(60)
    wait_until(lambda: running.status.state == "connected", "the words to be taken back")
    running.stop()
    assert not running.hung.is_set()


class Raising(Hanging):
    """Its call takes long, and then fails. The next one takes long, too."""

    def __init__(self) -> None:
        super().__init__(0.1)
        self.again = threading.Event()
        self._runs = 0

    def run(self, intake: Intake, stop: threading.Event) -> None:
        self._runs += 1
        if self._runs == 2:
            self.again.set()
            stop.wait()
            return
        intake.connected()
        self.let_go.wait()
        raise ConnectorError("It does not answer")


def test_one_that_fails_after_it_has_waited_is_not_shown_as_connected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pulse, "END_AFTER_S", 3600)
    ingester = Raising()
    running = RunningTrial(ingester)
    wait_until(lambda: "has waited" in running.status.why, "the words of the wait")
    ingester.let_go.set()
    assert ingester.again.wait(60)
    wait_until(lambda: running.status.why.startswith("It does not answer"), "the words of the error")
    states = [each.state for each in running.stop().statuses]
    assert states == ["connected", *["failing"] * (len(states) - 1)]


class Complaining(Hanging):
    def run(self, intake: Intake, stop: threading.Event) -> None:
        intake.failing("A column is empty")
        self.let_go.wait()
        stop.wait()


def test_what_the_connector_says_itself_is_shown_again_when_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pulse, "END_AFTER_S", 3600)
    ingester = Complaining(0.1)
    running = RunningTrial(ingester)
    wait_until(lambda: "has waited" in running.status.why, "the words of the wait")
    ingester.let_go.set()
    wait_until(lambda: running.status.why == "A column is empty", "its own words")
    running.stop()


class Threaded(Waiting):
    """A thread of its library beats, or stands still."""

    def __init__(self, *, stands_still: bool) -> None:
        super().__init__(PLACE)
        self._beats, self._stands_still = 1, stands_still

    def beats(self) -> int | None:
        self._beats += not self._stands_still
        return self._beats


def test_a_thread_of_a_library_that_stands_still_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "END_AFTER_S", 0.1)
    still = RunningTrial(Threaded(stands_still=True))
    assert still.hung.wait(60)
    assert "Its connector hangs" in still.stop().why
    beating = RunningTrial(Threaded(stands_still=False))
    assert beating.intake.enough.wait(60)
    assert {each.state for each in beating.stop().statuses} == {"connected"}
    assert not beating.hung.is_set()


class Slow(Deliverer[None, None]):
    """Takes long for a batch, and hangs in the second one."""

    patience_s = 0.2

    def __init__(self) -> None:
        super().__init__(PLACE)
        self.delivered: list[int] = []
        self.let_go = threading.Event()

    def open(self, epoch: int) -> None:
        return None

    def deliver(self, batch: Batch) -> Sequence[Refused]:
        if batch.first:
            self.let_go.wait()
        for offset in batch.offsets:
            self.goes_on()
            threading.Event().wait(0.05)
            self.delivered.append(offset)
        return []


class TwoBatches:
    """Twenty rows, then two."""

    gaps = ()

    def __init__(self) -> None:
        self._next = [
            Batch([{}] * 20, [0] * 20, range(20), 0, 20),
            Batch([{}] * 2, [0] * 2, [20, 21], 20, 22),
        ]

    def begin(self, position: int | None) -> None:
        return None

    def next(self, rows_max: int) -> Batch | None:
        return self._next.pop(0) if self._next else None

    def store(self, end: int) -> None:
        return None

    def tell(self, end: int) -> None:
        return None

    def renew(self) -> None:
        return None

    def noted(self) -> int:
        return 0

    def note(self, end: int) -> None:
        return None

    def put_letters(self, letters: object) -> None:
        return None

    def close(self) -> None:
        return None


def test_a_deliverer_that_says_that_it_goes_on_may_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "END_AFTER_S", 0.3)
    hung, stop, deliverer = threading.Event(), threading.Event(), Slow()
    report = Report("e", lambda status, note: None)
    thread = threading.Thread(
        target=deliver, args=(deliverer, TwoBatches(), report, stop, 1, hung.set), daemon=True
    )
    thread.start()
    assert hung.wait(60)
    assert deliverer.delivered == [*range(20)]
    assert "hangs" in report.status.why
    stop.set()
    deliverer.let_go.set()
    thread.join(60)
    assert not thread.is_alive()


def test_gaps_are_counted_over_restarts(tmp_path: Path) -> None:
    path = tmp_path / "group" / "element" / "gaps.json"

    notes: list[str] = []

    def started() -> Report:
        return Report("e", lambda status, note: notes.append(note), kept=KeptGaps(path))

    first = started()
    first.gap("the broker was away", 3)
    first.gap("nobody knows how many")
    again = started()
    assert (again.status.gaps_total, again.status.gap_rows_total) == (2, 3)
    again.gap("once more", 4)
    assert notes == ["the broker was away (3 rows)", "nobody knows how many", "once more (4 rows)"]
    counter = first.status.gaps_counter
    assert counter
    assert KeptGaps(path).read() == Gaps(3, 7, counter)
    path.write_text("odd")
    # A counter that begins again has another name: control adds what it counts.
    fresh = started().status
    assert fresh.gaps_total == 0
    assert fresh.gaps_counter not in ("", counter)
    KeptGaps(path).forget()
    assert not path.exists()
    # A disk that refuses keeps no row from being counted.
    path.parent.rmdir()
    path.parent.write_text("in the way")
    last = started()
    last.gap("the disk is odd", 1)
    assert last.status.gap_rows_total == 1
