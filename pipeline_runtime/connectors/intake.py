"""Writes an ingester's records to Kafka. While Kafka is away, it keeps them on the node's disk."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic, time

from pipeline_runtime.connectors.report import Report
from pipeline_runtime.connectors.sdk import Done, Record
from pipeline_runtime.connectors.spool import Spool

log = logging.getLogger(__name__)

RECORD_BYTES_MAX = 900_000
"""The longest record that a topic takes as Kafka makes it; docs/reference/limits.md."""
WAITING_BYTES_MAX = 16 << 20
"""How much waits in memory to become durable."""
SEND_BYTES = 1 << 20
AGAIN_S = 1.0
"""How often Kafka is tried while it is away."""
GAP_EVERY_S = 10.0
"""Records without a place are counted, and told of no more often than this."""
_QUOTED = 500
_AROUND_BYTES = 200
"""About what a record takes in memory beside its value and its key."""


class SendFailed(Exception):
    """Kafka has not confirmed all records in time. Some of them may be there."""


Send = Callable[[Sequence[Record]], None]
"""Returns when Kafka has all records. Raises SendFailed."""


@dataclass(frozen=True)
class _Item:
    records: tuple[Record, ...]
    done: Done | None
    bytes: int


class SpooledIntake:
    """The Intake of a running ingester: a thread from `start` to `close`."""

    def __init__(
        self, send: Send, spool: Spool, report: Report, opens: Callable[[bool], bool] = lambda own: True
    ) -> None:
        """`opens` returns whether rows may go to Kafka. If not, they go to the disk. True: rows that were put
        are among them. False: an earlier process has left all of them. It may raise OSError: then the disk
        does not take them either."""
        self._send = send
        self._opens = opens
        self._kept_own = False  # whether the disk has rows that were put
        self._spool = spool
        self._report = report
        self._changed = threading.Condition()
        self._waiting: deque[_Item] = deque()
        self._waiting_bytes = 0
        self._closing = False
        self._again_s = 0.0  # monotonic: when Kafka is tried next
        self._lost = 0
        self._lost_told_s = float("-inf")
        self._full = False
        self._said: str | None = None  # what the ingester said last: why it fails; empty: it is connected
        self._in_hand: list[_Item] = []
        self.is_idle = False
        """Whether the thread has found nothing to do: all is in Kafka."""
        self._thread = threading.Thread(target=self._run, name="intake", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, timeout_s: float) -> bool:
        """Sends what is left, for at most so long. What stays on the disk is sent by a later process. Returns
        whether the thread has ended: if not, it still uses the spool."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout_s)
        ended = not self._thread.is_alive()
        if not ended:
            self._tell_left()
        self._tell_lost()
        return ended

    # -- what an ingester calls --------------------------------------------------------------------

    def put(self, records: Sequence[Record], done: Done | None = None) -> bool:
        now_ms = int(time() * 1000)
        taken = tuple(_bounded(record, now_ms) for record in records)
        size = sum(len(record.value) + len(record.key or b"") + _AROUND_BYTES for record in taken)
        with self._changed:
            if self._waiting and self._waiting_bytes + size > WAITING_BYTES_MAX:
                if done is None:
                    self._lost += len(taken)
                return False
            self._waiting.append(_Item(taken, done, size))
            self._waiting_bytes += size
            self._changed.notify_all()
        return True

    def put_durably(self, records: Sequence[Record], timeout_s: float) -> bool:
        durable = threading.Event()
        return self.put(records, durable.set) and durable.wait(timeout_s)

    def connected(self) -> None:
        self._said = ""
        if not self._full:
            self._report.connected()

    def failing(self, why: str) -> None:
        self._said = why
        self._report.failing(why)

    def gap(self, why: str, rows: int | None = None) -> None:
        self._report.gap(why, rows)

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._loop()
        except Exception:
            # Without this thread nothing becomes durable. The node starts the process again, and what was
            # not acknowledged comes again.
            log.exception("the intake has failed")
            self._tell_left()
            self._tell_lost()
            _end_process()

    def _loop(self) -> None:
        self._tell_broken()
        while True:
            with self._changed:
                self.is_idle = not self._waiting and self._spool.is_empty
                if self.is_idle:
                    if self._closing:
                        return
                    self._changed.wait(1.0)
                items = self._in_hand = self._next_items()
            if items:
                self._handle(items)
                self._in_hand = []
            if not self._spool.is_empty:
                if self._closing and not self._waiting and not self._may_send_spooled():
                    return  # Kafka is away, and the disk keeps it
                self._send_spooled()
            if self._full or (not items and not self._spool.is_empty and not self._may_send_spooled()):
                with self._changed:
                    self._changed.wait(0.2)
            self._tell_lost(GAP_EVERY_S)

    def _next_items(self) -> list[_Item]:
        """Takes what waits, some of it. The caller holds `_changed`."""
        items: list[_Item] = []
        size = 0
        while self._waiting and (not items or size + self._waiting[0].bytes <= SEND_BYTES):
            items.append(self._waiting.popleft())
            size += items[-1].bytes
        self._waiting_bytes -= size
        return items

    def _handle(self, items: list[_Item]) -> None:
        records = [record for item in items for record in item.records]
        try:
            opens = self._opens(True)
        except OSError as error:
            log.error("the disk does not take records: %s", error)
            self._have_no_room(items)
            return
        # Behind what is on the disk, so that the order stays.
        if opens and self._spool.is_empty and monotonic() >= self._again_s:
            try:
                self._send(records)
            except SendFailed as error:
                log.warning("Kafka does not take records, so they go to the disk: %s", error)
                self._again_s = monotonic() + AGAIN_S
            else:
                self._settled(items, len(records))
                return
        self._keep(items)

    def _keep(self, items: list[_Item]) -> None:
        for place, item in enumerate(items):
            try:
                kept = self._spool.append(item.records)
            except OSError as error:
                log.error("the disk does not take records: %s", error)
                kept = False
            if not kept:
                self._have_no_room(items[place:])
                return
            self._kept_own = True
            self._settled([item], len(item.records))

    def _have_no_room(self, items: list[_Item]) -> None:
        self._set_full(True)
        back = [each for each in items if each.done is not None]
        with self._changed:
            self._lost += sum(len(each.records) for each in items if each.done is None)
            self._waiting.extendleft(reversed(back))
            self._waiting_bytes += sum(each.bytes for each in back)

    def _may_send_spooled(self) -> bool:
        return monotonic() >= self._again_s and self._opens(self._kept_own)

    def _send_spooled(self) -> None:
        if not self._may_send_spooled():
            return
        records, mark = self._spool.read(SEND_BYTES)
        try:
            if records:
                self._send(records)
        except SendFailed:
            self._again_s = monotonic() + AGAIN_S
            return
        self._spool.sent(mark)
        self._tell_broken()
        self._report.count(spool_bytes=self._spool.bytes)
        self._set_full(False)

    def _settled(self, items: list[_Item], rows: int) -> None:
        self._report.count(rows=rows, spool_bytes=self._spool.bytes)
        self._set_full(False)
        for item in items:
            if item.done is not None:
                try:
                    item.done()
                except Exception:  # the system then has its rows sent again
                    log.exception("the rows could not be acknowledged to the system")

    def _set_full(self, full: bool) -> None:
        if full == self._full:
            return
        self._full = full
        if full:
            self._report.failing(
                "Kafka does not answer, and the buffer on the node's disk is full: the system has to wait, "
                "and what cannot wait is lost and counted"
            )
        elif self._said:
            self._report.failing(self._said)
        else:
            self._report.connected()

    def _tell_broken(self) -> None:
        broken, self._spool.broken_bytes = self._spool.broken_bytes, 0
        if broken:
            self._report.gap(f"{broken} bytes in the buffer on the node's disk cannot be read")

    def _tell_left(self) -> None:
        """Counts the rows that will not become durable, and that no system sends again."""
        left = [*self._in_hand, *self._waiting]
        rows = sum(len(each.records) for each in left if each.done is None)
        if rows:
            self._report.gap("Its connector ended before Kafka or the node's disk had all rows", rows)

    def _tell_lost(self, every_s: float = 0.0) -> None:
        if not self._lost or monotonic() - self._lost_told_s < every_s:
            return
        with self._changed:
            lost, self._lost = self._lost, 0
        self._lost_told_s = monotonic()
        self._report.gap("Kafka did not take them in time, and the node had no more room for them", lost)


def _end_process() -> None:
    os._exit(1)


def _bounded(record: Record, now_ms: int) -> Record:
    """Returns the record with a time. One that no topic takes becomes a text that is no JSON, so it ends in
    the dead letters."""
    time_ms = now_ms if record.time_ms is None else record.time_ms
    if len(record.value) <= RECORD_BYTES_MAX:
        return Record(record.value, time_ms, record.key)
    begin = record.value[:_QUOTED].decode(errors="replace")
    text = f"{len(record.value)} bytes are too many (at most {RECORD_BYTES_MAX}); it begins with: {begin}"
    return Record(text.encode(), time_ms, record.key)
