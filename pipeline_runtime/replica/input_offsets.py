"""How far each input of a group reaches now, and so where an owner's next batch may end."""

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
"""How often the broker is asked where the topics end, while more is known to wait than a batch takes."""
MORE_RATIO = 64
"""A batch may have this part of its rows more if nothing is left then. Chosen, not measured."""
BATCH_BYTES_MAX = 64 * 1024 * 1024
"""How large the values of a batch's records should be at most, together."""


def slices_between(
    inputs: Sequence[GroupInput],
    start: Ends,
    end: Ends,
    batch_time_ms: int,
    *,
    flushes: bool,
    ticks: bool = False,
) -> list[Slice]:
    """What tasks read for a batch: one slice for each partition that has moved, a flush if the inputs have
    come a stage nearer to their end, and a tick if an operator has to know of each batch. Pure."""
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
    """How many of each input's waiting offsets a batch of at most `rows_max` rows takes. Pure.

    The ends of transactions have offsets, too. What one full batch of another group has written is therefore
    more than a full batch here. So that no single row is left for a batch of its own, a batch takes up to a
    MORE_RATIO-th more if nothing is left then.

    The shares are in proportion to what waits, so that all inputs reach the present together. An input that
    ran ahead would move the watermark past the rows of the others. Each input that has rows gets at least
    one.
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
    """How many rows a batch may have if each takes so many bytes: never none. Pure."""
    return max(1, min(rows_max, int(BATCH_BYTES_MAX / max(1.0, row_bytes))))


class InputOffsets:
    """Asks Kafka and the group's source operators. Used by one thread at a time."""

    def __init__(
        self,
        kafka: KafkaSettings,
        inputs: Sequence[GroupInput],
        sources: Mapping[str, SourceReader],
        rows_max: int,
        arrived: Callable[[], None],
    ) -> None:
        """`arrived`: called from another thread when a topic has new records."""
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
        self._bulk = False  # so much waits that the tasks read it themselves
        self._known: dict[str, int] = {}
        self._asked_at_s = 0.0  # when the broker has said that (monotonic clock)
        self._rows_per_offset: dict[str, float] = {}  # as it was found last, by partition
        self._row_bytes = 0.0  # of the rows read last, on average

    def beginning(self, now_ms: int, seen: Seen) -> Ends:
        """Where a group starts that has processed nothing. `seen`: the users' own topics, as they are now.
        Raises KafkaError and InputTopicDiffers."""
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
        """The positions at which these partitions end now. Raises KafkaError."""
        if not keys:
            return {}
        partitions = {key: self._partitions[key] for key in keys}
        found = self._open().end_offsets(list(partitions.values()))
        return {key: found[partition] for key, partition in partitions.items()}

    def _outside(self, group_input: GroupInput, seen: Seen, ends: Ends) -> Ends:
        """Where an element begins in a user's own topic, and which topic that is."""
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
        """Where the first batch of these inputs begins, if the last one, of other inputs, has ended at
        `ends`.

        Inputs that stay go on from `ends`. New ones begin where `starts` says, or at their newest record.
        More partitions of a user's own topic begin at their first record. Returns None if no input is new.
        Raises KafkaError and InputTopicDiffers.
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
        """The group has processed all before `ends`, which need not be read ahead any more."""
        if not self._partitions or not ends:
            return
        if self._prefetcher.following:
            self._prefetcher.passed(ends, ends.get(TOPIC_IDS, {}))
        else:
            self._prefetcher.follow(ends, ends.get(TOPIC_IDS, {}))

    def measured(self, rows: int, size: int) -> None:
        """A slice was read, which had so many rows and bytes."""
        if rows:
            self._row_bytes = size / rows

    def advance(self, start: Ends, now_ms: int, *, by_s: float = inf, as_one: int = 1) -> Ends:
        """The furthest that a batch from `start` may reach; `start` itself if nothing has come. `as_one`: it
        may have as many rows as so many batches.

        Of what waits in topics, it takes only what had come by `by_s` (monotonic clock), but always the
        oldest record. Raises KafkaError.
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
        """The records of a slice, if they have been read ahead or are about to be. Returns None otherwise.

        A follower may learn of a batch before it has its rows. On a slow line a task that asked for them
        itself would wait longer.
        """
        return self._prefetcher.records(key, start, end, _AHEAD_WAIT_S)

    @property
    def gather_s(self) -> float:
        """How long records may lie at the broker, so that more of them are fetched at once."""
        return self._prefetcher.gather_s

    @gather_s.setter
    def gather_s(self, gather_s: float) -> None:
        self._prefetcher.gather_s = gather_s

    def rest_until(self, at_s: float) -> None:
        """Nothing is read ahead before then (monotonic clock)."""
        self._prefetcher.rest_until(at_s)

    @property
    def oldest_at_s(self) -> float | None:
        """When the oldest waiting record came (monotonic clock). Returns None if that is not known."""
        return None if self._bulk else self._prefetcher.oldest_at_s()

    def arrived_at_s(self, start: Ends, end: Ends, now_ms: int) -> float | None:
        """When the oldest row of the batch from `start` to `end` came, or was due (monotonic clock).
        `now_ms` is the time now. Returns None if that is not known."""
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
        """Whether more waits behind `ends` than is read ahead. To wait for still more would gain nothing."""
        return self._prefetcher.full or (self._bulk and self.lag_rows(ends) > 0)

    @property
    def waiting(self) -> bool:
        """Whether records have come that no batch has taken yet."""
        return self._bulk or self._prefetcher.oldest_at_s() is not None

    def lag_rows(self, ends: Ends) -> int:
        """How many offsets behind `ends` are known to be unread. Commit markers count as well."""
        return sum(max(0, self._known.get(key, 0) - ends.get(key, 0)) for key in self._partitions)

    def look(self, start: Ends) -> None:
        """Finds where the topics end, for `waiting_rows`, although no batch may begin. Raises KafkaError."""
        if self._partitions:
            self._topic_ends(start, self._rows_max)

    def waiting_rows(self, ends: Ends) -> int | None:
        """How many rows wait behind `ends` in topics. Returns None until the broker has said where they end.

        Those that are not here are estimated by the share of records among the offsets that are, since
        commit markers have offsets too.
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
        """When the next row of the group's sources is due, in ms since 1970. Returns None if no source
        knows."""
        dues = [source.due_ms(ends[id], ends[id]) for id, source in self._sources.items() if id in ends]
        return round(min(due for due in dues if due is not None)) if any(dues) else None

    @property
    def has_sources(self) -> bool:
        return bool(self._sources)

    def sources_ended(self, ends: Ends) -> bool:
        return all(source.ended(ends[id]) for id, source in self._sources.items())

    def source_shifted(self, ends: Ends, paused_ms: int) -> Ends:
        """The same position after a pause, in which the clocks of replayed recordings stood still."""
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
        """Where the topics end. Asks the broker only if not all that waits has been read ahead, and a batch
        of `rows_max` rows would not be full without its answer."""
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
