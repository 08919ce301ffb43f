"""Finds where each input of a group ends now. An owner's next batch may end there at the latest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf
from time import monotonic
from typing import Any

from pipeline_runtime.batch.gate_messages import FLUSH, TICK, Slice
from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.journal.records import END_STAGE, TOPIC_IDS, Ends
from pipeline_runtime.kafka.clients import KafkaSettings, TopicPartition, close_spent, open_consumer
from pipeline_runtime.kafka.prefetcher import AHEAD_ROWS_MAX, Prefetcher
from pipeline_runtime.kafka.topics import Seen, TopicMissing
from pipeline_runtime.operators.sdk import SourceReader

_AHEAD_WAIT_S = 1.0
_ASKED_EVERY_S = 0.25
"""The pause between two questions to the broker where the topics end, while a full batch of rows waits."""
MORE_RATIO = 64
"""A batch may exceed its limit by one 64th if no row is left then. This number was chosen, not measured."""
BATCH_BYTES_MAX = 64 * 1024 * 1024
"""The greatest size that the values of a batch's records should have together."""


def slices_between(
    inputs: Sequence[GroupInput],
    start: Ends,
    end: Ends,
    batch_time_ms: int,
    *,
    flushes: bool,
    ticks: bool = False,
) -> list[Slice]:
    """Returns the slices that the tasks read for a batch. Pure.

    There is one slice for each partition with new records. There is a flush if the inputs have reached the
    next stage of their end. There is a tick if an operator has to see each batch (`ticks`).
    """
    ids = start.get(TOPIC_IDS, {})
    parts = [
        Slice(
            group_input.index,
            batch_time_ms,
            partition,
            start[key],
            end[key],
            topic_id=ids.get(group_input.topic, ""),
        )
        for group_input in inputs
        for partition, key in enumerate(group_input.end_keys())
        if end.get(key) != start.get(key)
    ]
    if flushes and end.get(END_STAGE, 0) != start.get(END_STAGE, 0):
        parts.append(Slice(FLUSH, batch_time_ms))
    if ticks:
        parts.append(Slice(TICK, batch_time_ms))
    return parts


class InputTopicDiffers(RuntimeError):
    """A user's own topic differs from what the element's parameters say."""


def shares(waiting: Mapping[str, int], rows_max: int) -> dict[str, int]:
    """Returns how many of its waiting offsets each input gives to a batch of at most `rows_max` rows. Pure.

    The ends of transactions have offsets, too. So a full batch of another group has more offsets than a full
    batch here may have. A batch may therefore exceed `rows_max` by one MORE_RATIO-th if nothing is left then.
    Otherwise the last few rows would need a batch of their own.

    The shares are in proportion to the waiting offsets, so that all inputs reach the present together. If one
    input ran ahead, it would move the watermark past the rows of the other inputs. Each input with waiting
    offsets gives at least one.
    """
    total = sum(waiting.values())
    if total <= rows_max + rows_max // MORE_RATIO:
        return dict(waiting)
    taken = {key: max(1, rows * rows_max // total) if rows else 0 for key, rows in waiting.items()}
    excess = sum(taken.values()) - rows_max
    for key in sorted(taken, key=lambda key: -taken[key]):
        given_back = max(0, min(excess, taken[key] - 1))
        taken[key] -= given_back
        excess -= given_back
    return taken


def fitting_rows(rows_max: int, row_bytes: float) -> int:
    """Returns how many rows of `row_bytes` bytes a batch may have: at least 1, at most `rows_max`. Pure."""
    return max(1, min(rows_max, int(BATCH_BYTES_MAX / max(1.0, row_bytes))))


class InputOffsets:
    """Asks Kafka and the group's source operators where they end. One thread at a time may use it."""

    def __init__(
        self,
        kafka: KafkaSettings,
        inputs: Sequence[GroupInput],
        sources: Mapping[str, SourceReader],
        rows_max: int,
        arrived: Callable[[], None],
    ) -> None:
        """`arrived` is called, from another thread, when a topic has new records."""
        self._topics = [group_input for group_input in inputs if group_input.topic is not None]
        self._keys = {key for group_input in inputs for key in group_input.end_keys()}
        self._sources = dict(sources)
        self._rows_max = rows_max
        self._partitions = {
            key: TopicPartition(group_input.topic, partition)
            for group_input in self._topics
            for partition, key in enumerate(group_input.end_keys())
        }
        self._kafka = kafka
        self._consumer: Any = None
        self._prefetcher = Prefetcher(kafka, self._partitions, arrived)
        self._bulk = False  # so many records wait that the tasks read them without the prefetcher
        self._known: dict[str, int] = {}  # where the partitions end, as the broker said
        self._asked_at_s = 0.0  # when the broker last said so (monotonic clock)
        self._rows_per_offset: dict[str, float] = {}  # the newest ratio, by partition
        self._row_bytes = 0.0  # the average size of the rows that were read last

    def beginning(self, now_ms: int, seen: Seen) -> Ends:
        """Returns where a group starts that has processed nothing. `seen`: the users' topics as they are now.
        Raises KafkaError, TopicMissing and InputTopicDiffers."""
        ends: Ends = {id: source.initial(now_ms) for id, source in self._sources.items()}
        if self._partitions:
            consumer = self._open()
            for group_input in self._topics:
                if group_input.external:
                    ends |= self._outside(group_input, seen, ends)
                    continue
                partitions = [self._partitions[key] for key in group_input.end_keys()]
                ask = consumer.end_offsets if group_input.start == "latest" else consumer.beginning_offsets
                found = ask(partitions)
                ends |= {key: found[self._partitions[key]] for key in group_input.end_keys()}
        return ends

    def newest(self, keys: Collection[str]) -> dict[str, int]:
        """Returns the offsets at which these partitions end now. Raises KafkaError."""
        if not keys:
            return {}
        partitions = {key: self._partitions[key] for key in keys}
        found = self._open().end_offsets(list(partitions.values()))
        return {key: found[partition] for key, partition in partitions.items()}

    def _outside(self, group_input: GroupInput, seen: Seen, ends: Ends) -> Ends:
        """Returns where an element begins in a user's topic, together with the topic's id."""
        assert group_input.topic is not None
        topic = seen.get(group_input.topic)
        if topic is None:
            raise TopicMissing(group_input.topic)
        if len(topic.first) < group_input.partitions:
            raise InputTopicDiffers(
                f"the topic {group_input.topic} has {len(topic.first)} partitions,"
                f" but {group_input.consumer} reads {group_input.partitions}:"
                f" set its parameter partitions to {len(topic.first)}"
            )
        offsets = topic.end if group_input.start == "latest" else topic.first
        found: Ends = dict(zip(group_input.end_keys(), offsets, strict=False))
        if topic.id:
            found[TOPIC_IDS] = {**ends.get(TOPIC_IDS, {}), group_input.topic: topic.id}
        return found

    def moved(self, ends: Ends, starts: Mapping[str, Any], seen: Seen) -> Ends | None:
        """Returns where a batch begins after the group's inputs have changed. The batch before it ended at
        `ends`.

        Inputs that stay continue from `ends`. A new input begins where `starts` says, or else at the end of
        its topic. New partitions of a user's topic begin at their first record. Returns None if the inputs
        are the same as before. Raises KafkaError, TopicMissing and InputTopicDiffers.
        """
        keys = self._keys
        positions = {key for key in ends if not key.startswith("#")}
        if positions == keys:
            return None
        new: Ends = {}
        for group_input in self._topics:
            if group_input.external and not keys.isdisjoint(missing := {*group_input.end_keys()} - positions):
                found = self._outside(group_input, seen, ends)
                new |= {key: at for key, at in found.items() if key in missing or key == TOPIC_IDS}
        inside = keys - positions - new.keys()
        new |= {key: starts.get(key, end) for key, end in self.newest(inside).items()}
        new |= {key: starts[key] for key in new if key in starts}
        # END_STAGE is left out: a group whose inputs had all ended may go on with a new one.
        kept = keys | {key for key in ends if key.startswith("#") and key != END_STAGE}
        return {key: end for key, end in ends.items() if key in kept} | new

    def passed(self, ends: Ends) -> None:
        """Notes that the group has processed all records before `ends`, so nobody has to prefetch them."""
        if not self._partitions or not ends:
            return
        if self._prefetcher.following:
            self._prefetcher.passed(ends, ends.get(TOPIC_IDS, {}))
        else:
            self._prefetcher.follow(ends, ends.get(TOPIC_IDS, {}))

    def measured(self, rows: int, size: int) -> None:
        """Notes how many rows and bytes a slice had."""
        if rows:
            self._row_bytes = size / rows

    def advance(self, start: Ends, now_ms: int, *, by_s: float = inf, as_one: int = 1) -> Ends:
        """Returns the furthest position that a batch from `start` may reach. This is `start` itself if no row
        waits. The batch may be as large as `as_one` usual batches.

        From topics, the batch takes only records that had come by `by_s` (monotonic clock). But it always
        takes the oldest record. Raises KafkaError.
        """
        rows_max = self._rows_max * as_one
        known = self._topic_ends(start, rows_max) if self._partitions else {}
        if by_s != inf and (oldest_at_s := self.oldest_at_s) is not None:
            known = self._prefetcher.ends(max(by_s, oldest_at_s))
        waiting = {key: max(0, known[key] - start[key]) for key in self._partitions}
        reach = {id: s.advance(start[id], now_ms, rows_max) for id, s in self._sources.items()}
        waiting |= {id: self._sources[id].rows_between(start[id], end) for id, end in reach.items()}
        row_bytes = max(self._row_bytes, self._prefetcher.row_bytes())
        steps = shares(waiting, fitting_rows(rows_max, row_bytes))
        end = dict(start)
        for key in self._partitions:
            end[key] = start[key] + steps[key]
        for id, source in self._sources.items():
            fits = steps[id] == waiting[id]
            end[id] = reach[id] if fits else source.advance(start[id], now_ms, steps[id])
        return end

    def records(self, key: str, start: int, end: int) -> list[Any] | None:
        """Returns the prefetched records of a slice, or None. Waits up to _AHEAD_WAIT_S for them.

        A follower may learn of a batch before it has the batch's rows. The prefetcher is already fetching
        them. On a slow line, a task that began a request of its own would wait longer.
        """
        return self._prefetcher.records(key, start, end, _AHEAD_WAIT_S)

    @property
    def gather_s(self) -> float:
        """How long records may wait at the broker, so that one request fetches more of them."""
        return self._prefetcher.gather_s

    @gather_s.setter
    def gather_s(self, gather_s: float) -> None:
        self._prefetcher.gather_s = gather_s

    def rest_until(self, at_s: float) -> None:
        """Stops the prefetcher until `at_s` (monotonic clock)."""
        self._prefetcher.rest_until(at_s)

    @property
    def oldest_at_s(self) -> float | None:
        """Returns when the oldest waiting record came (monotonic clock), or None if that is not known."""
        return None if self._bulk else self._prefetcher.oldest_at_s()

    def arrived_at_s(self, start: Ends, end: Ends, now_ms: int) -> float | None:
        """Returns when the oldest row of the batch from `start` to `end` came, or was due (monotonic clock).
        `now_ms` is the present time. Returns None if no such time is known."""
        found: list[float] = []
        if any(end[key] != start[key] for key in self._partitions):
            came = None if self._bulk else self._prefetcher.arrived_at_s()
            if came is None:
                return None
            found.append(came - self.gather_s)
        for id, source in self._sources.items():
            if source.rows_between(start[id], end[id]):
                due_ms = source.due_ms(start[id], end[id])
                if due_ms is None:
                    return None
                found.append(monotonic() - max(0.0, now_ms - due_ms) / 1000)
        return min(found, default=None)

    def full(self, ends: Ends) -> bool:
        """Returns whether more records wait after `ends` than the prefetcher can hold. Then a batch gains
        nothing if it waits for more."""
        return self._prefetcher.full or (self._bulk and self.lag_rows(ends) > 0)

    @property
    def waiting(self) -> bool:
        """Returns whether records wait that no batch has taken yet."""
        return self._bulk or self._prefetcher.oldest_at_s() is not None

    def lag_rows(self, ends: Ends) -> int:
        """Returns how many unread offsets after `ends` are known. Commit markers count as well."""
        return sum(max(0, self._known.get(key, 0) - ends.get(key, 0)) for key in self._partitions)

    def look(self, start: Ends) -> None:
        """Finds where the topics end, for `waiting_rows`, although no batch may begin. Raises KafkaError."""
        if self._partitions:
            self._topic_ends(start, self._rows_max)

    def waiting_rows(self, ends: Ends) -> int | None:
        """Returns how many rows wait after `ends` in topics, or None until the broker has said where the
        topics end.

        The rows that are not prefetched are estimated, because commit markers have offsets, too. The estimate
        uses the ratio of rows to offsets among the prefetched records.
        """
        if self._partitions and not (self._known and (self._bulk or self._prefetcher.has_looked)):
            return None
        held = self._prefetcher.held(ends)
        total = 0.0
        for key in self._partitions:
            rows, from_offset, to_offset = held.get(key, (0, 0, ends.get(key, 0)))
            if to_offset > from_offset and rows:
                self._rows_per_offset[key] = rows / (to_offset - from_offset)
            more = max(0, self._known.get(key, 0) - to_offset)
            total += rows + more * self._rows_per_offset.get(key, 1.0)
        return round(total)

    def next_due_ms(self, ends: Ends) -> int | None:
        """Returns when the next row of the group's sources is due (ms since 1970), or None if no source knows
        it."""
        dues = [source.due_ms(ends[id], ends[id]) for id, source in self._sources.items() if id in ends]
        return round(min(due for due in dues if due is not None)) if any(dues) else None

    @property
    def has_sources(self) -> bool:
        return bool(self._sources)

    def sources_ended(self, ends: Ends) -> bool:
        return all(source.ended(ends[id]) for id, source in self._sources.items())

    def source_shifted(self, ends: Ends, paused_ms: int) -> Ends:
        """Returns the position `ends` after a pause of `paused_ms`. The clocks of replayed recordings stood
        still in the pause."""
        return {
            key: self._sources[key].pause_shift(value, paused_ms) if key in self._sources else value
            for key, value in ends.items()
        }

    def close(self) -> None:
        self._prefetcher.close()
        self.disconnect()

    def disconnect(self) -> None:
        if self._consumer is not None:
            close_spent(self._consumer)
            self._consumer = None

    def _topic_ends(self, start: Ends, rows_max: int) -> dict[str, int]:
        """Returns where the topics end. Asks the broker only if the prefetcher does not hold all waiting
        records, and if the known ones do not fill a batch of `rows_max` rows."""
        if not self._bulk and not self._prefetcher.full:
            self._known = self._prefetcher.ends()
            return self._known
        was_asked = self._bulk and monotonic() < self._asked_at_s + _ASKED_EVERY_S
        if was_asked and self.lag_rows(start) >= rows_max:
            return self._known
        found = self._open().end_offsets(list(self._partitions.values()))
        self._asked_at_s = monotonic()
        self._known = {key: found[tp] for key, tp in self._partitions.items()}
        self._bulk = self.lag_rows(start) > AHEAD_ROWS_MAX
        self._prefetcher.hold(self._bulk)
        return self._known

    def _open(self) -> Any:
        if self._consumer is None:
            self._consumer = open_consumer(self._kafka)
            self._consumer.assign(list(self._partitions.values()))
        return self._consumer
