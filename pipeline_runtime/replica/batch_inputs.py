"""Knows what the batches of one definition read: where they may begin and end, and the slices of each
batch."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from math import inf

from pipeline_runtime.batch.gate_messages import Slice, SliceRead
from pipeline_runtime.batch.inputs import GroupInput, position_keys
from pipeline_runtime.journal.records import END_STAGE, Boundary, Ends
from pipeline_runtime.kafka.ahead import pack
from pipeline_runtime.model.names import listed_and
from pipeline_runtime.replica.fields_seen import ROWS_LOOKED_AT, FieldsSeen
from pipeline_runtime.replica.input_offsets import InputOffsets, slices_between
from pipeline_runtime.replica.outputs import RejectedRecord
from pipeline_runtime.replica.times_seen import TimesSeen


class BatchInputs:
    """A group's inputs. `offsets` says how far each of them reaches now."""

    def __init__(
        self,
        inputs: Sequence[GroupInput],
        offsets: InputOffsets,
        *,
        flushes: bool,
        tick_ms: int | None = None,
        oldest: Callable[[Ends], Mapping[str, int]] | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`flushes`: the group keeps rows back, and a flush at the end of its inputs brings them out.
        `tick_ms`: how often the group has a batch although no row comes. `oldest`: the oldest offsets that
        are left in the users' topics, if nothing depends on earlier rows that were committed already. `note`
        is called with remarks for people about what was read."""
        self._note = note
        self._fields = {
            group_input.index: FieldsSeen(group_input.schema.names)
            for group_input in inputs
            if group_input.reading is not None
        }
        self._times = {
            group_input.index: TimesSeen(
                str(group_input.topic), is_field=group_input.reading.time is not None
            )
            for group_input in inputs
            if group_input.reading is not None
        }
        self._tick_ms = tick_ms
        self._oldest = oldest
        self.offsets = offsets
        self._inputs = inputs
        self._flushes = flushes
        self._keys = {key for group_input in inputs for key in group_input.end_keys()}
        self._passed: Ends | None = None

    def fits(self, boundary: Boundary) -> bool:
        """Returns whether the boundary says where each of these inputs stands. If it does not, the replica
        still has to follow another definition."""
        return self._keys <= boundary.ends.keys()

    def misfits(self, boundary: Boundary) -> bool:
        """Returns whether a user's own topic has other partitions at the boundary than these inputs."""
        return any(
            group_input.partitions != len(keys)
            for group_input in self._inputs
            if group_input.topic is not None
            and group_input.external
            and (keys := position_keys(boundary.ends, group_input.topic))
        )

    def passed(self, start: Boundary) -> None:
        """Notes that everything before `start` has been processed, so that nobody has to prefetch it any
        more."""
        if self.fits(start) and self._passed is not start.ends:
            self._passed = start.ends
            self.offsets.passed(start.ends)

    def fill(self, rows: int, rows_max: int) -> bool:
        """Returns whether a batch of so many rows was as full as a batch may be."""
        # Each input has a share of the rows, and the shares are rounded down.
        return rows > rows_max - len(self._keys) - 1

    # --- the end of the inputs

    @property
    def _last_stage(self) -> int:
        return 2 if self._flushes else 1

    def has_ended(self, ends: Ends) -> bool:
        """Returns whether a batch that ends there is the last one of the group."""
        return bool(ends.get(END_STAGE, 0) == self._last_stage)

    def next_stage(self, ends: Ends, ended: Container[str]) -> Ends:
        """Returns the next stage of the group's end, if all inputs have ended at `ends`, or else `ends`.

        `ended`: the positions of topics after which nothing follows. Two flushes close the windows of a group
        that has windows: the first flush moves the watermark, and the second emits. The last stage tells the
        readers of the group's outputs.
        """
        if not self._inputs:
            return ends
        topics = (group_input for group_input in self._inputs if group_input.topic is not None)
        topics_ended = all(key in ended for group_input in topics for key in group_input.end_keys())
        stage = ends.get(END_STAGE, 0)
        if topics_ended and self.offsets.sources_ended(ends) and stage < self._last_stage:
            return {**ends, END_STAGE: stage + 1}
        return ends

    def tick_in_s(self, ends: Ends, since_s: float) -> float:
        """Returns how soon a batch is to run although no row has come, in s, if the last batch began
        `since_s` ago and ended at `ends`. 0 means now."""
        if self._tick_ms is None or self.has_ended(ends):
            return inf
        return max(0.0, self._tick_ms / 1000 - since_s)

    # --- a batch's slices

    def slices(self, start: Boundary, end: Boundary, *, followed: bool = False) -> list[Slice]:
        """Returns what the tasks of the batch from `start` to `end` read. `followed`: the batch was committed
        before."""
        slices = slices_between(
            self._inputs,
            start.ends,
            end.ends,
            end.batch_time_ms,
            flushes=self._flushes,
            ticks=self._tick_ms is not None,
        )
        if followed and self._oldest is not None:
            slices = self._still_there(slices, self._oldest(start.ends))
        parts = [self._with_records(part) for part in slices]
        return [replace(part, followed=True) for part in parts] if followed else parts

    def _still_there(self, slices: Sequence[Slice], oldest: Mapping[str, int]) -> list[Slice]:
        slices_left = []
        for part in slices:
            group_input = self._inputs[part.input] if part.input >= 0 else None
            if group_input is not None and group_input.external:
                first = oldest.get(group_input.end_keys()[part.partition], 0)
                if first >= part.end:
                    continue
                part = replace(part, start=max(first, part.start))
            slices_left.append(part)
        return slices_left

    def _with_records(self, part: Slice) -> Slice:
        """Returns the slice, with its rows if they are prefetched."""
        group_input = self._inputs[part.input] if part.input >= 0 else None
        if group_input is None or group_input.topic is None:
            return part
        records = self.offsets.records(group_input.end_keys()[part.partition], part.start, part.end)
        return part if records is None else replace(part, records=[pack(record) for record in records])

    def noted(self, read: SliceRead) -> None:
        """Notes columns for which no record has a value, and times that are probably wrong."""
        fields, group_input = self._fields.get(read.input), self._inputs[read.input]
        times = self._times.get(read.input)
        if times is not None and read.newest_ms is not None:
            told = times.add(read.newest_ms, read.arrived_ms)
            if told is not None:
                self._note(told)
        missing = fields.add(read.rows, read.seen) if fields is not None else ()
        if missing:
            names = listed_and([f'"{name}"' for name in missing])
            self._note(
                f"None of the first {ROWS_LOOKED_AT:,} records of {group_input.topic} has a value for"
                f" {names}: are the fields named so?"
            )

    def rejected(self, read: SliceRead) -> list[RejectedRecord]:
        """Returns the records of a slice that could not be read, with their places."""
        group_input = self._inputs[read.input]
        return [
            RejectedRecord(
                group_input.consumer,
                group_input.source,
                read.partition,
                each.offset,
                each.raw,
                each.reason,
                each.key,
                each.time_ms,
            )
            for each in read.rejects
        ]

    def position(self, read: SliceRead) -> str:
        """Returns the key of the slice's partition in a boundary's `ends`."""
        return self._inputs[read.input].end_keys()[read.partition]
