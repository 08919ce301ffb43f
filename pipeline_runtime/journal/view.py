"""The state that follows from a journal's records. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pipeline_runtime.journal.records import (
    Announce,
    Arm,
    Boundary,
    Claim,
    Commit,
    Digests,
    Ends,
    Record,
    Release,
    Totals,
)
from pipeline_runtime.journal.waits import noted, usual_ms
from pipeline_runtime.model.desired import Takeover
from pipeline_runtime.model.ids import Epoch, Seq

_ORDERS_KEPT = 20


class JournalBroken(RuntimeError):
    """A seq is missing or stands twice. The guarantees do not hold, and nothing may go on."""


@dataclass(slots=True)
class JournalView:
    """The fold of all records read so far.

    `commits` holds only batches after those that were forgotten: the ones that a follower has still to
    replay.
    """

    granted: Epoch = Epoch(0)  # the highest epoch that the journal grants
    last_seq: Seq = Seq(0)
    last_ends: Ends = field(default_factory=dict)
    start: Ends | None = None
    orders: dict[str, Epoch] = field(default_factory=dict)  # order to own -> the epoch that it was granted
    holder: str = ""  # the node that holds the newest grant
    definition: str = ""  # of the owner, as it said last
    armed: Arm | None = None  # the newest
    released: Release | None = None  # the newest
    retired: bool = False
    ended: dict[str, Seq] = field(default_factory=dict)  # input -> the batch that read its end
    marks: dict[str, Any] = field(default_factory=dict)  # of the sinks, at last_seq
    rewinds: list[tuple[Seq, Seq]] = field(default_factory=list)  # (to, from): see `_rewind`
    fresh: list[Seq] = field(default_factory=list)  # the last seq whenever a CLAIM began with an empty state
    moves: list[tuple[Seq, Ends]] = field(default_factory=list)  # (the last seq then, CLAIM.moves)
    takeover: Takeover | None = None
    last_commit_at_ms: int | None = None  # by the broker's clock
    waits_ms: tuple[int, ...] = ()  # Commit.wait_ms of the newest commits, as far as it is known
    last_row_at_ms: int | None = None  # of the newest commit of a batch with rows, by the broker's clock
    # the same by element, in a group of several, of those whose rows Python saw
    rows_at_ms: dict[str, int] = field(default_factory=dict)
    totals: Totals = field(default_factory=Totals)
    schemas: Digests = field(default_factory=dict)  # Commit.schemas of the newest commit
    commits: dict[Seq, Commit] = field(default_factory=dict)
    announced: Boundary | None = None  # the batch after last_seq, if its owner has begun it
    _forgotten: Seq = Seq(0)

    def apply(self, record: Record, at_ms: int = 0) -> None:
        """Takes in one record. `at_ms` is when the broker took it."""
        match record:
            case Claim():
                self._grant(record.epoch, "claim", record.order, record.node, at_ms)
                self.definition = record.definition
                if self.start is None:
                    self.start = record.start
                if record.rewind is not None:
                    self._rewind(record.rewind)
                if record.fresh and self.last_seq not in self.fresh:
                    self.fresh.append(self.last_seq)
                for key in record.ended:
                    self.ended.setdefault(key, self.last_seq)
                if record.moves is not None:
                    before = [(seq, ends) for seq, ends in self.moves if seq != self.last_seq]
                    self.moves = [*before, (self.last_seq, record.moves)]
            case Release():
                if self.following(record.seq) <= self.last_seq:
                    raise JournalBroken(
                        f"the journal has a release at seq {record.seq}, but goes up to seq {self.last_seq}"
                    )
                self.released = record
                self._grant(Epoch(record.epoch + 1), "release", record.order, record.node, at_ms)
            case Arm():
                self.armed = record
            case Announce(epoch, boundary):
                if epoch == self.granted and boundary.seq == self.last_seq + 1:
                    self.announced = boundary
            case Commit():
                self._apply_commit(record, at_ms)
            case _:
                self.retired = True

    def _grant(self, epoch: Epoch, by: Any, order: str, node: str, at_ms: int) -> None:
        self.orders[order] = epoch
        if epoch > self.granted:
            self.granted, self.holder, self.announced = epoch, node, None
            self.takeover = Takeover(
                epoch=epoch,
                by=by,
                order=order,
                node=node,
                at_ms=at_ms,
                last_commit_at_ms=self.last_commit_at_ms,
                usual_wait_ms=usual_ms(self.waits_ms),
            )

    def _apply_commit(self, commit: Commit, at_ms: int) -> None:
        if self.last_seq and commit.seq != self.last_seq + 1:
            raise JournalBroken(f"in the journal, seq {commit.seq} follows {self.last_seq}")
        self.granted = max(self.granted, commit.epoch)
        self.last_seq = commit.seq
        self.last_ends = commit.boundary.ends
        self.definition = commit.definition
        self.marks = commit.marks
        self.schemas = commit.schemas
        for key in commit.ended:
            self.ended.setdefault(key, commit.seq)
        self.announced = None
        self._note_commit(commit, at_ms)
        if commit.seq > self._forgotten:
            self.commits[commit.seq] = commit

    def _rewind(self, to: Seq) -> None:
        """Makes batches after `to` void. Their numbers are not used again."""
        if self.is_void(to):
            raise JournalBroken(
                f"the journal has a rewind to seq {to}, which an earlier rewind had made void"
            )
        self.rewinds.append((to, self.last_seq))
        self.commits = {seq: commit for seq, commit in self.commits.items() if seq <= to}
        self.ended = {key: seq for key, seq in self.ended.items() if seq <= to}

    def following(self, seq: Seq) -> Seq:
        """Returns the seq of the batch after `seq`."""
        return Seq(max((up_to for to, up_to in self.rewinds if to == seq), default=seq) + 1)

    def next_commit(self, seq: Seq) -> Commit | None:
        """Returns the batch after `seq`, if it was committed and is still to be followed."""
        return self.commits.get(self.following(seq))

    def begins_fresh(self, seq: Seq) -> bool:
        """Returns whether the batch after `seq` is processed with an empty state."""
        return seq in self.fresh or self.following(seq) - 1 in self.fresh

    def begins_elsewhere(self, seq: Seq) -> bool:
        """Returns whether the batch after `seq` does not begin where the batch `seq` has ended."""
        return any(at in (seq, self.following(seq) - 1) for at, _ in self.moves)

    def moved(self, boundary: Boundary) -> Boundary:
        """Returns the boundary as the next batch begins there. The inputs differ if that batch's definition
        reads others."""
        last = self.following(boundary.seq) - 1
        ends = next((ends for seq, ends in self.moves if seq in (boundary.seq, last)), None)
        return boundary if ends is None else replace(boundary, ends=ends)

    def is_void(self, seq: Seq) -> bool:
        """Returns whether a local state at `seq` holds batches that were rewound."""
        return any(to < seq <= up_to for to, up_to in self.rewinds)

    def _note_commit(self, commit: Commit, at_ms: int) -> None:
        # What a commit says itself also counts the batches before it that were not read here.
        counted = self.totals.plus(commit.rows_in, commit.rows_out, commit.dead_letters, {})
        totals = counted.most(commit.totals)
        # If the journal's begin is trimmed, nobody knows which elements had rows in the first commit.
        risen = self.totals.risen_in(totals) if self.last_commit_at_ms is not None or commit.seq == 1 else ()
        self._date_last_commit(commit, at_ms, risen)
        self.totals = totals
        if commit.wait_ms is not None:
            self.waits_ms = noted(self.waits_ms, commit.wait_ms)
        if self.takeover is not None and self.takeover.first_commit_at_ms is None:
            first = {"first_commit_at_ms": at_ms, "first_wait_ms": commit.wait_ms}
            self.takeover = self.takeover.model_copy(update=first)

    def _date_last_commit(self, commit: Commit, at_ms: int, elements: Iterable[str]) -> None:
        """`elements`: those that had rows in it."""
        self.last_commit_at_ms = at_ms
        if commit.rows_in:
            self.last_row_at_ms = at_ms
        self.rows_at_ms.update(dict.fromkeys(elements, at_ms))  # a clock may have made their rows

    def date(self, record: Record, at_ms: int) -> None:
        """Sets the time at which the broker stored a record that another topic had told, and that was applied
        before the journal was read up to it. The other topic has a time of its own."""
        takeover = self.takeover
        if takeover is None or takeover.by != "release":
            return
        if isinstance(record, Commit) and record.seq == self.last_seq:
            had_rows = [id for id, at in self.rows_at_ms.items() if at == self.last_commit_at_ms]
            self._date_last_commit(record, at_ms, had_rows)
            self.takeover = takeover.model_copy(update={"last_commit_at_ms": at_ms})
        elif isinstance(record, Release) and record == self.released:
            self.takeover = takeover.model_copy(update={"at_ms": at_ms})

    def forget(self, seq: Seq) -> None:
        """Drops the commits up to `seq`, which this replica has processed."""
        while self._forgotten < seq:
            self._forgotten = Seq(self._forgotten + 1)
            self.commits.pop(self._forgotten, None)

    def begin_at(self, local: Seq) -> None:
        """Says where the local state stands. Call it before anything is read. Nobody will ask for commits
        before `local`, so the view does not keep them."""
        self._forgotten = Seq(max(self._forgotten, local - 1))

    def to_json(self) -> dict[str, Any]:
        """Returns everything but the commits, for `from_json` to go on from."""
        newest_orders = dict(list(self.orders.items())[-_ORDERS_KEPT:])
        return {
            "granted": self.granted,
            "last_seq": self.last_seq,
            "last_ends": self.last_ends,
            "start": self.start,
            "orders": newest_orders,
            "holder": self.holder,
            "definition": self.definition,
            "armed": asdict(self.armed) if self.armed else None,
            "released": asdict(self.released) if self.released else None,
            "retired": self.retired,
            "ended": dict(sorted(self.ended.items())),
            "marks": self.marks,
            "rewinds": self.rewinds,
            "fresh": self.fresh,
            "moves": self.moves,
            "takeover": self.takeover.model_dump() if self.takeover else None,
            "last_commit_at_ms": self.last_commit_at_ms,
            "waits_ms": self.waits_ms,
            "last_row_at_ms": self.last_row_at_ms,
            "rows_at_ms": dict(self.rows_at_ms),
            "totals": asdict(self.totals),
            "schemas": self.schemas,
        }

    def copy(self) -> JournalView:
        """Returns this view without the commits, as `from_json` makes it of `to_json`."""
        return JournalView.from_json(self.to_json())

    @staticmethod
    def from_json(data: dict[str, Any]) -> JournalView:
        view = JournalView(
            **{
                **data,
                "armed": Arm(**data["armed"]) if data["armed"] else None,
                "released": Release(**data["released"]) if data["released"] else None,
                "takeover": Takeover.model_validate(data["takeover"]) if data["takeover"] else None,
                "rewinds": [(to, up_to) for to, up_to in data["rewinds"]],
                "moves": [(Seq(seq), ends) for seq, ends in data["moves"]],
                "ended": dict(data["ended"]),
                "rows_at_ms": dict(data["rows_at_ms"]),
                "waits_ms": tuple(data["waits_ms"]),
                "totals": Totals.from_json(data["totals"]),
            }
        )
        view._forgotten = view.last_seq
        return view
