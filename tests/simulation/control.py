"""The control side: what it wants of each replica, decided from their reports.

It works like workers/control/handovers/steps.py. `next_book` is a pure decision from what is stored (the
book) and what was reported since control started; after a restart the reports are forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.ids import Epoch
from tests.simulation.memory import Desired, Status

SILENT_STEPS = 30
PATIENCE_STEPS = 120
"""How long an owner may not own, or a handover stand still, before something is done about it."""


@dataclass(frozen=True, slots=True)
class Handover:
    id: str
    target: str
    cut: bool
    since: int


@dataclass(frozen=True, slots=True)
class Book:
    """Control's database. Each change of it is one transaction."""

    owner: str
    order: ClaimOrder
    revision: int = 1
    handover: Handover | None = None

    def desired_of(self, name: str) -> Desired:
        handover = self.handover
        if name == self.owner:
            release = handover.id if handover is not None and handover.cut else None
            return Desired(self.revision, order=self.order, release=release)
        if handover is not None and name == handover.target:
            return Desired(self.revision, succeed=handover.id)
        return Desired(self.revision)


@dataclass(frozen=True, slots=True)
class Seen:
    now: int
    reports: Mapping[str, Status]
    well_at: int  # when the owner was last seen to own as wanted, or was ordered to, or control started

    def alive(self, name: str) -> bool:
        return name in self.reports and self.now - self.reports[name].at <= SILENT_STEPS

    @property
    def known(self) -> Epoch:
        return Epoch(max((report.epoch for report in self.reports.values()), default=0))


def owns(book: Book, seen: Seen) -> bool:
    report = seen.reports.get(book.owner)
    return seen.alive(book.owner) and report is not None and report.owner and report.order == book.order.id


def next_book(book: Book, seen: Seen, random: Random) -> Book:
    """Returns the book as it should be now, or the same one if there is nothing to do."""
    handover = book.handover
    if handover is None:
        return _watch(book, seen, random)
    target = seen.reports.get(handover.target)
    stuck = seen.now - handover.since > PATIENCE_STEPS
    broken = stuck or not seen.alive(handover.target) or not seen.alive(book.owner)
    if not handover.cut:
        if broken:
            return _changed(book, handover=None)
        if target is not None and target.armed == handover.id:
            return _changed(book, handover=replace(handover, cut=True, since=seen.now))
        return book
    if target is not None and target.owner and target.order == handover.id:
        order = ClaimOrder(id=handover.id, over=Epoch(target.epoch - 1))
        return _changed(book, owner=handover.target, order=order, handover=None)
    return restored(book, seen, handover.target) if broken else book


def _watch(book: Book, seen: Seen, random: Random) -> Book:
    report = seen.reports.get(book.owner)
    given_up = report is not None and report.order == book.order.id and (report.refused or report.lost)
    if owns(book, seen) or not (given_up or seen.now - seen.well_at > PATIENCE_STEPS):
        return book
    alive = [name for name in seen.reports if seen.alive(name)]
    return restored(book, seen, random.choice(alive)) if alive else book


def restored(book: Book, seen: Seen, target: str) -> Book:
    order = ClaimOrder(id=f"r{book.revision}", over=seen.known)
    return _changed(book, owner=target, order=order, handover=None)


def begun(book: Book, seen: Seen, target: str) -> Book:
    handover = Handover(f"h{book.revision}", target, cut=False, since=seen.now)
    return _changed(book, handover=handover)


def _changed(book: Book, **changes: object) -> Book:
    return replace(book, revision=book.revision + 1, **changes)  # type: ignore[arg-type]


class ControlActor:
    """Control's process: reports come in, orders go out, again and again."""

    def __init__(self, names: Sequence[str], random: Random) -> None:
        self.names = names
        self.book = Book(names[0], ClaimOrder(id="r0", over=Epoch(0)))
        self.up = True
        self.wants_handovers = True
        self._random = random
        self._reports: dict[str, Status] = {}
        self._well_at = 0

    def restart(self, now: int) -> None:
        self.up = True
        self._reports.clear()
        self._well_at = now

    def hear(self, name: str, status: Status) -> None:
        known = self._reports.get(name)
        if self.up and (known is None or status.at > known.at):
            self._reports[name] = status

    def act(self, now: int) -> None:
        seen = Seen(now, self._reports, self._well_at)
        before = self.book
        if owns(before, seen):
            self._well_at = now
            if self.wants_handovers and before.handover is None and self._random.random() < 0.2:
                self.book = begun(before, seen, self._random.choice(self._others()))
                return
        self.book = next_book(before, seen, self._random)
        if self.book.order != before.order:
            self._well_at = now

    def _others(self) -> list[str]:
        return [name for name in self.names if name != self.book.owner]
