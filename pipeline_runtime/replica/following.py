"""Keeps a replica's view of its journal up to date, and remembers on disk how far it has read."""

from __future__ import annotations

import logging
from functools import partial
from itertools import dropwhile, pairwise
from pathlib import Path
from time import monotonic
from typing import Any

from pipeline_runtime.handover.protocol import JournalEnd
from pipeline_runtime.journal.reader import JournalTail
from pipeline_runtime.journal.records import Claim, Commit, Record, Release
from pipeline_runtime.journal.trailing import TrailingView
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.reading import TopicEnd
from pipeline_runtime.kafka.transactions import FAR_MS
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica import definitions
from pipeline_runtime.replica.errors import RewindUndone
from pipeline_runtime.replica.local_state import JournalMark, LocalStateDamaged, read_mark, write_mark
from pipeline_runtime.replica.state import ReplicaState

log = logging.getLogger(__name__)

_TIMEOUT_S = 10.0
_MARK_EVERY_S = 2.0
_LISTEN_S = 10.0
_OWNER_RESTS_S = 0.25
"""Each look at the journal is a poll of kafka-python, which costs a good part of what a small batch does."""


class JournalFollower:
    """Reads the journal into `state.view`. `failure` is what ended the reading, if anything did.

    A reader that has just got a COMMIT must ask the broker again before it gets what follows: up to a round
    trip later. Therefore an armed successor that is far also reads the topic GroupSpec.released. Nothing else
    is written there, so its request already waits at the broker. The owner writes its last COMMIT and the
    RELEASE there, in the same transaction as in the journal.

    As soon as all earlier records of the journal are read, these two count as its next records. No CLAIM lies
    in between, because a claim fences the owner before the CLAIM is written. Other records in between no
    longer matter: an ANNOUNCE, or the ARMED of another replica, to which this RELEASE does not go.
    """

    def __init__(self, spec: GroupSpec, kafka: KafkaSettings, directory: Path, state: ReplicaState) -> None:
        self._spec = spec
        self._kafka = kafka
        self._ends = TopicEnd(kafka, spec.journal)
        self._directory = directory
        self._state = state
        self._trailing = TrailingView(JournalView(), 0)  # what a restart goes on from
        self._tail: JournalTail | None = None
        self._released: JournalTail | None = None
        # The records of that topic that the journal has not had yet, each with the broker's time.
        self._told: list[tuple[int, Record]] = []
        self._ahead: list[Record] = []  # those of them that are in the view, and not yet read in the journal
        self._marked_at_s = 0.0

    def follow(self, local: Seq) -> dict[str, Any]:
        """Reads the journal to its end, from where the local state stands, and goes on reading it.

        Returns the sinks' marks at `local`. Raises Doubtful, JournalTrimmed, and LocalStateDamaged if the
        journal does not fit the local state.
        """
        mark = read_mark(self._directory, local) or JournalMark(0, JournalView())
        self._close_tail()
        # If the journal is read from further back, it says the marks itself.
        marks = mark.view.marks if mark.view.last_seq == local else None
        with self._state.changed:
            view = mark.view
            self._trailing = TrailingView(view.copy(), mark.offset)
            view.begin_at(local)
            self._state.begin_following(view, local)
            self._told, self._ahead = [], []
        self._tail = JournalTail(
            self._kafka,
            self._spec.journal,
            mark.offset,
            partial(self._apply_records, view),
            rest_s=self._rest_s,
        )
        self._tail.start()
        self.catch_up()
        if local > view.last_seq:
            # A broker that died after it had answered a commit, but before it marked the commit, hides it
            # until it is back.
            self.catch_up(hidden=True)
        with self._state.changed:
            if local > view.last_seq:
                raise LocalStateDamaged(
                    f"the state of {self._spec.id} is at {local}, but its journal ends at {view.last_seq}"
                )
            self.check_not_rewound()
            if local in view.commits:
                marks = view.commits[local].marks
            if marks is None and local > 0:
                raise LocalStateDamaged(
                    f"the journal of {self._spec.id} no longer has batch {local}, at which the state is"
                )
            view.forget(local)
            first = min(view.commits, default=None)
            if first is not None and first > view.following(local):
                raise LocalStateDamaged(
                    f"the state of {self._spec.id} is at {local}, but its journal begins at {first}"
                )
        return marks or {}

    def _rest_s(self) -> float:
        """Returns how long the reader rests, in s. An owner has itself written most of what it reads, so it
        reads its journal seldom. An owner that is to release reads on: the ARMED of its successor comes
        there."""
        with self._state.changed:
            rests = self._state.has_committed and self._state.directive.release is None
            return _OWNER_RESTS_S if rests else 0.0

    def catch_up(self, *, hidden: bool = False) -> None:
        """Waits until everything that the journal holds now has been read; with `hidden`, also what an open
        transaction hides. Raises Doubtful if there is no progress."""
        assert self._tail is not None
        self._tail.wait_until(self._ends.ask(hidden=hidden), _TIMEOUT_S)

    def check_not_rewound(self) -> None:
        """Checks that no rewind of another replica has undone the batch at which this replica stands, or to
        which it is to rewind.

        The caller holds `changed`. Raises RewindUndone and LocalStateDamaged.
        """
        view, local, to = self._state.view, self._state.local, self._state.rewinds_to
        if to is not None and view.is_void(to):
            raise RewindUndone(
                f"{self._spec.id} cannot go back to batch {to}, because another rewind has undone that batch"
            )
        if to is not None and any(to < seq for seq in view.fresh):
            raise RewindUndone(
                f"{self._spec.id} cannot go back to batch {to}, because its state was begun fresh at batch"
                f" {max(view.fresh)}, and its present parameters cannot go on from an older state"
            )
        if to is not None and any(to < seq for seq, _ in view.moves):
            raise RewindUndone(
                f"{self._spec.id} cannot go back to batch {to}, because it reads other inputs since batch"
                f" {max(seq for seq, _ in view.moves)}, and has no earlier position in these"
            )
        if view.is_void(local):
            raise LocalStateDamaged(
                f"the state of {self._spec.id} is at batch {local}, which a rewind has undone"
            )

    def read_for(self, order_id: str, whole: bool) -> JournalEnd:
        self.catch_up(hidden=whole)
        with self._state.changed:
            view = self._state.view
            return JournalEnd(view.granted, view.orders.get(order_id), view.retired)

    def remember(self, seq: Seq) -> None:
        """Says that the batch `seq` counts. From time to time, stores how far the journal has been read, so
        that a restart need not read what lies before."""
        if monotonic() - self._marked_at_s < _MARK_EVERY_S:
            return
        with self._state.changed:
            trailing = self._trailing
            trailing.come_to(seq)
            if trailing.view.last_seq == 0:
                return
            mark = JournalMark(trailing.offset, trailing.view.copy())
        self._marked_at_s = monotonic()
        write_mark(self._directory, mark)

    @property
    def failure(self) -> BaseException | None:
        return self._tail.failure if self._tail is not None else None

    # --- a release that is told

    def listen(self, round_trip_ms: float) -> bool:
        """Listens as ownership.JournalReader says. Returns False also if that topic cannot be read."""
        if round_trip_ms < FAR_MS:
            return False  # the journal tells it about as soon
        self.stop_listening()
        released = JournalTail(self._kafka, self._spec.released, None, self._hear)
        try:
            released.start()
            released.wait_until(0, _LISTEN_S)
        except Exception as error:  # whatever it is, the journal is enough
            log.warning("%s: it will learn of a release from its journal alone: %s", self._spec.id, error)
            released.close()
            return False
        self._released = released
        return True

    def stop_listening(self) -> None:
        released, self._released = self._released, None
        if released is not None:
            released.close()

    def _hear(self, records: list[tuple[int, int, Record]]) -> None:
        with self._state.changed:
            self._told += [(at_ms, record) for _, at_ms, record in records]
            if self._take_told():
                self._state.tell()

    def _take_told(self) -> bool:
        """Applies a release from the other topic to the view, if it is the journal's next record. The caller
        holds `changed`. Returns whether there was one."""
        view, taken = self._state.view, False
        for (commit_ms, commit), (release_ms, release) in pairwise(self._told):
            if not (isinstance(commit, Commit) and isinstance(release, Release)):
                continue
            if (release.epoch, commit.seq) == (view.granted, view.last_seq + 1):
                view.apply(commit, commit_ms)
                view.apply(release, release_ms)
                self._ahead += [commit, release]
                taken = True
        self._told = list(dropwhile(lambda told: not _is_commit_to_come(told[1], view), self._told))
        return taken

    def close(self) -> None:
        self.stop_listening()
        self._close_tail()

    def _close_tail(self) -> None:
        if self._tail is not None:
            self._tail.close()
        self._ends.close()

    def _apply_records(self, view: JournalView, records: list[tuple[int, int, Record]]) -> None:
        if self._state.view is not view:
            return  # a tail has read this that was closed meanwhile
        # Before any mark goes past them, and without holding `changed`, because a disk may be slow.
        for _, _, record in records:
            if isinstance(record, Claim) and record.definition != self._spec.version:
                definitions.keep_claimed(self._directory, record)
        with self._state.changed:
            if self._state.view is not view:
                return
            for offset, at_ms, record in records:
                if self._ahead[:1] == [record]:
                    del self._ahead[0]
                    view.date(record, at_ms)
                else:
                    view.apply(record, at_ms)
                self._trailing.read(offset, at_ms, record)
            self._take_told()
            self._state.tell()


def _is_commit_to_come(record: Record, view: JournalView) -> bool:
    return isinstance(record, Commit) and record.seq > view.last_seq
