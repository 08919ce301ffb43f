"""Keeps the histories of what the charts of walls show: an hour by seconds, a day by 10 s, a month by 5 min.

One thread reads the streams of those charts, at most `ROWS_MAX` rows a second of all of them. Every `FLUSH_S`
it stores what has changed and how far it has read, in one transaction. So a restart reads on where the stored
history ends, and no row counts twice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from math import isfinite
from time import monotonic
from typing import Any

from django.db import transaction
from django.utils import timezone

from pipeline_runtime.kafka.clients import TopicPartition
from pipeline_runtime.kafka.follower import Follower
from pipeline_runtime.kafka.peek import PeekedRecord
from webapp.monitoring.streams import fields_of
from webapp.problems import Problem
from webapp.walls.history import Block, History, Place, Point, packed, unpacked
from webapp.walls.kept import SERIES_MAX, part_of, places_of, series_id, wanted_series
from webapp.walls.models import KeptBlock, KeptSeries
from webapp.walls.sources import Sources
from webapp.walls.tiles import Series
from workers.control.context import ControlContext
from workers.control.periodic import Periodic

EACH_S = 1.0
FLUSH_S = 10.0
ROWS_MAX = 5_000
"""How many rows one look reads, of all streams together."""
BACK_ROWS = 30_000
"""How many of a stream's newest offsets a new history begins with."""
BEHIND_MAX = 100_000
"""A stream that runs so many offsets ahead of its history is read on from BACK_ROWS before its end."""
UNUSED_KEPT = timedelta(days=1)
"""How long a history stays that no chart shows any more."""


@dataclass
class _Kept:
    """A series with its history, as far as it is in memory."""

    row: KeptSeries
    series: Series
    history: History
    positions: dict[int, int] = field(default_factory=dict)  # by partition
    changed: bool = False

    def take(self, record: PeekedRecord, value: Mapping[str, Any]) -> None:
        """Adds a record that comes for the first time."""
        if record.offset < self.positions.get(record.partition, 0):
            return
        self.positions[record.partition] = record.offset + 1
        self.changed = True
        number, by = value.get(self.series.column), self.series.by
        if self.series.key is not None and record.key != self.series.key:
            return
        if isinstance(number, bool) or not isinstance(number, int | float) or not _fits(number):
            return
        part = part_of(value.get(by, record.key or "")) if by else ""
        self.history.add(part, Point(float(number), record.timestamp_ms, record.partition, record.offset))
        self.row.newest_ms = max(self.row.newest_ms or 0, record.timestamp_ms)


def _fits(number: float) -> bool:
    try:
        return isfinite(float(number))
    except OverflowError:
        return False


class WallHistories(Periodic):
    """If it fails, what was not stored is read again."""

    name, failure = "walls", "the histories of walls were not kept this time"

    def __init__(self, context: ControlContext) -> None:
        super().__init__(context, EACH_S)
        self._follower: Follower | None = None
        self._kept: dict[str, _Kept] = {}
        self._flush_at_s = 0.0

    def let_go(self) -> None:
        self._kept = {}
        self._flush_at_s = 0.0
        if self._follower is not None:
            with suppress(Exception):
                self._follower.close()
            self._follower = None

    def look(self) -> None:
        """Reads once. Before, when it is time, stores what has changed and finds out what is wanted."""
        if monotonic() >= self._flush_at_s:
            self.flush()
            self._find_wanted()
            self._flush_at_s = monotonic() + FLUSH_S
        if not self._kept or self._follower is None:
            return
        by_topic: dict[str, list[_Kept]] = {}
        for kept in self._kept.values():
            by_topic.setdefault(kept.row.topic, []).append(kept)
        for tp, record in self._follower.read(ROWS_MAX, EACH_S):
            value = fields_of(record)
            for kept in by_topic.get(tp.topic, ()):
                kept.take(record, value)

    def flush(self) -> None:
        """Stores what has changed since, with how far it was read."""
        changed = [kept for kept in self._kept.values() if kept.changed]
        if not changed:
            return  # a transaction would make others wait for SQLite's lock
        with transaction.atomic():
            for kept in changed:
                _store(kept)
        for kept in changed:
            kept.history.flushed()
            kept.changed = False

    def _find_wanted(self) -> None:
        wanted = _wanted()
        _forget_unused(wanted)
        if not wanted:
            self.let_go()
            return
        if self._follower is None:
            self._follower = Follower(self._context.kafka)
        for id in self._kept.keys() - wanted.keys():
            del self._kept[id]
        for id in wanted.keys() - self._kept.keys():
            self._kept[id] = _loaded(id, *wanted[id])
        self._follow(self._follower)

    def _follow(self, follower: Follower) -> None:
        """Reads each partition on from where the history that has read least of it ends."""
        positions: dict[TopicPartition, int] = {}
        for topic in {kept.row.topic for kept in self._kept.values()}:
            of_topic = [kept for kept in self._kept.values() if kept.row.topic == topic]
            for tp, (first, end) in follower.bounds(follower.partitions(topic)).items():
                for kept in of_topic:
                    _place(kept, tp.partition, first, end)
                positions[tp] = min(kept.positions[tp.partition] for kept in of_topic)
        follower.follow(positions)


def _place(kept: _Kept, partition: int, first: int, end: int) -> None:
    """Sets where a history reads a partition on, if it is new, or was overtaken."""
    at = kept.positions.get(partition)
    if at is None:
        kept.positions[partition] = max(first, end - BACK_ROWS)
    elif end - at > BEHIND_MAX or at < first:
        kept.positions[partition] = max(first, end - BACK_ROWS)
        kept.row.left_out += kept.positions[partition] - at
        kept.changed = True
    elif at > end:
        kept.positions[partition] = first  # the topic was created again


def _wanted() -> dict[str, tuple[str, Series]]:
    """Returns topic and series by the id of the history, of what is deployed: at most SERIES_MAX."""
    all_series = list(wanted_series())
    sources = Sources(series.pipeline for series in all_series)
    found: dict[str, tuple[str, Series]] = {}
    for series in all_series:
        try:
            _, topic = sources.stream(series)
        except Problem:
            continue  # the tile says so
        if len(found) < SERIES_MAX:
            found.setdefault(series_id(topic, series), (topic, series))
    return found


def _forget_unused(wanted: Collection[str]) -> None:
    """Deletes histories that no chart has shown for UNUSED_KEPT. Writes only where something changes."""
    now = timezone.now()
    since = dict(KeptSeries.objects.values_list("pk", "unused_since"))
    left = [id for id, at in since.items() if at is None and id not in wanted]
    again = [id for id, at in since.items() if at is not None and id in wanted]
    gone = [id for id, at in since.items() if at is not None and id not in wanted and at < now - UNUSED_KEPT]
    if left:
        KeptSeries.objects.filter(pk__in=left).update(unused_since=now)
    if again:
        KeptSeries.objects.filter(pk__in=again).update(unused_since=None)
    if gone:
        KeptSeries.objects.filter(pk__in=gone).delete()


def _loaded(id: str, topic: str, series: Series) -> _Kept:
    row, _ = KeptSeries.objects.get_or_create(pk=id, defaults={"topic": topic})

    def load(place: Place) -> Block | None:
        stored = row.blocks.filter(part=place.part, step_ms=place.step_ms, start_ms=place.start_ms).first()
        return unpacked(stored.cells) if stored is not None else None

    positions = {int(partition): end for partition, end in row.positions.items()}
    return _Kept(row, series, History(load, places_of(row)), positions)


def _store(kept: _Kept) -> None:
    row, history = kept.row, kept.history
    row.positions = {str(partition): end for partition, end in sorted(kept.positions.items())}
    row.save(update_fields=["positions", "newest_ms", "left_out"])
    KeptBlock.objects.bulk_create(
        [
            KeptBlock(
                series=row,
                part=place.part,
                step_ms=place.step_ms,
                start_ms=place.start_ms,
                cells=packed(block),
            )
            for place, block in history.changed().items()
        ],
        update_conflicts=True,
        unique_fields=["series", "part", "step_ms", "start_ms"],
        update_fields=["cells"],
    )
    for place in history.dropped:
        row.blocks.filter(part=place.part, step_ms=place.step_ms, start_ms=place.start_ms).delete()
