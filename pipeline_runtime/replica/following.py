"""Keeps a replica's view of its journal up to date, and remembers on disk how far it has read."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from pipeline_runtime.handover.protocol import JournalEnd
from pipeline_runtime.journal.reader import JournalTail, JournalTrimmed
from pipeline_runtime.journal.records import Claim, Record
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.reading import TopicEnd
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica import definitions
from pipeline_runtime.replica.errors import RewindUndone
from pipeline_runtime.replica.local_state import JournalMark, LocalStateDamaged, read_mark, write_mark
from pipeline_runtime.replica.state import ReplicaState

_TIMEOUT_S = 10.0
_MARK_EVERY_S = 2.0


class JournalFollower:
    """Reads into `state.view`. `failure` is what ended the reading, if anything did."""

    def __init__(self, spec: GroupSpec, kafka: KafkaSettings, directory: Path, state: ReplicaState) -> None:
        self._spec = spec
        self._kafka = kafka
        self._ends = TopicEnd(kafka, spec.journal)
        self._directory = directory
        self._state = state
        self._tail: JournalTail | None = None
        self._marked_at_s = 0.0

    def follow(self, local: Seq) -> dict[str, Any]:
        """Read the journal to its end, from where the local state stands, and go on reading.

        Returns where the sinks stood at `local`. Raises Doubtful, or LocalStateDamaged when the
        journal does not fit the local state.
        """
        mark = read_mark(self._directory, local)
        try:
            return self._follow_from(mark, local)
        except JournalTrimmed:
            if mark is None:
                raise
            # The mark is old, which a busy follower's may be; what follows `local` may still be there.
            return self._follow_from(None, local)

    def _follow_from(self, mark: JournalMark | None, local: Seq) -> dict[str, Any]:
        self.close()
        # The journal itself says it when it is read from before.
        marks = mark.view.marks if mark is not None and mark.view.last_seq == local else None
        with self._state.changed:
            view = self._state.view = mark.view if mark else JournalView()
            view.begin_at(local)
            self._state.journal_offset = mark.offset if mark else 0
            self._state.local = local
            self._state.granted = self._state.plan = None
        self._tail = JournalTail(
            self._kafka,
            self._spec.journal,
            mark.offset if mark else None,
            partial(self._apply_records, view),
        )
        self._tail.start()
        self.catch_up()
        if local > view.last_seq:
            # A broker that died between its answer to a commit and its marks hides that until it is back.
            self.catch_up(hidden=True)
        with self._state.changed:
            if local > view.last_seq:
                raise LocalStateDamaged(f"{self._spec.id}: at {local}, its journal ends at {view.last_seq}")
            self.check_not_rewound()
            if local in view.commits:
                marks = view.commits[local].marks
            if marks is None and local > 0:
                raise LocalStateDamaged(f"{self._spec.id}: the journal no longer has seq {local}")
            view.forget(local)
            first = min(view.commits, default=None)
            if first is not None and first > view.following(local):
                raise LocalStateDamaged(f"{self._spec.id}: at {local}, its journal begins at seq {first}")
        return marks or {}

    def catch_up(self, *, hidden: bool = False) -> None:
        """Until all that the journal holds now has been read (`hidden`: also what an open transaction
        hides); Doubtful when that makes no progress."""
        assert self._tail is not None
        self._tail.wait_until(self._ends.ask(hidden=hidden), _TIMEOUT_S)

    def check_not_rewound(self) -> None:
        """With `changed` held. Raises RewindUndone, LocalStateDamaged."""
        view, local, to = self._state.view, self._state.local, self._state.rewinds_to
        if to is not None and view.is_void(to):
            raise RewindUndone(f"{self._spec.id}: a rewind to {to}, which was rewound itself")
        if to is not None and any(to < seq for seq in view.anew):
            raise RewindUndone(
                f"{self._spec.id}: a rewind to {to}, but its state was begun anew since, at"
                f" {max(view.anew)}: with its present parameters it cannot go on from there"
            )
        if to is not None and any(to < seq for seq, _ in view.moves):
            raise RewindUndone(
                f"{self._spec.id}: a rewind to {to}, but since {max(seq for seq, _ in view.moves)} it reads"
                " other inputs, in which it has no place from before"
            )
        if view.is_void(local):
            raise LocalStateDamaged(f"{self._spec.id}: at {local}, which was rewound since")

    def read_for(self, order_id: str, whole: bool) -> JournalEnd:
        self.catch_up(hidden=whole)
        with self._state.changed:
            view = self._state.view
            return JournalEnd(view.granted, view.orders.get(order_id), view.retired)

    def remember(self, seq: Seq) -> None:
        """`seq` is in Spark's commit log: a restart need not read again what lies before it."""
        if monotonic() - self._marked_at_s < _MARK_EVERY_S:
            return
        self._marked_at_s = monotonic()
        with self._state.changed:
            view, offset = self._state.view, self._state.journal_offset
            if view.last_seq > seq or view.last_seq == 0:
                return
            mark = JournalMark(offset, JournalView.from_json(view.to_json()))
        write_mark(self._directory, mark)

    @property
    def failure(self) -> BaseException | None:
        return self._tail.failure if self._tail is not None else None

    def close(self) -> None:
        if self._tail is not None:
            self._tail.close()
        self._ends.close()

    def _apply_records(self, view: JournalView, records: list[tuple[int, int, Record]]) -> None:
        if self._state.view is not view:
            return  # read by a tail that was closed meanwhile
        # Before any mark goes past them, and not with `changed` held: a disk may be slow.
        for _, _, record in records:
            if isinstance(record, Claim) and record.definition != self._spec.version:
                definitions.keep_claimed(self._directory, record)
        with self._state.changed:
            if self._state.view is not view:
                return
            for offset, at_ms, record in records:
                view.apply(record, at_ms)
                self._state.journal_offset = offset + 1
            self._state.tell()
