"""What a replica may do next, by what it knows.

The gate, the sink and the replica's thread gather `Facts` and carry out what is answered:

    next_batch                  the gate: what Spark is to run next
    at_sink                     at its end: whether it is this replica's to commit
    is_taken_over               the owner: whether somebody else has been granted since
    needs_another_definition    whether its query has come to where it must give way to another one

No I/O, no clock, no randomness. `tests/simulation` runs it over an in-memory journal.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline_runtime.journal.records import END_STAGE, Arm, Boundary, Commit
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.desired import Directive
from pipeline_runtime.model.ids import Epoch, Seq

LOCKSTEP_BATCHES = 3
"""How many batches an owner announces before the last: a follower is one batch behind, and gains a part of
the pause between two with each that it need not wait for."""


@dataclass(frozen=True, slots=True)
class Facts:
    view: JournalView  # as it is now: an answer holds as long as nobody reads on
    local: Seq = Seq(0)  # the newest batch that this replica has processed
    begins: Seq = Seq(0)  # where its state was begun anew
    directive: Directive = field(default_factory=Directive)
    permit: Epoch | None = None  # at which it may commit
    armed: bool = False  # the owner may release to it
    claiming: bool = False
    paused: bool = False
    stops: bool = False  # it begins nothing more
    running: str = ""  # the version of the definition that its query is of
    wanted: str = ""  # that it shall be of
    coalesced: bool = False  # it may follow several batches at once
    rows_max: int = 0  # in a batch
    rewinds_to: Seq | None = None  # ordered to go on from there: what lies behind it is not followed
    leaves_state: bool = False  # ordered to take over without the state of the definition before
    quiet: bool = False  # nothing has come for so long that a follower has processed all there was
    announced: int = 0  # batches of its own, one after another, in the release that is on
    batch_ms: float = 0.0  # what one usually takes here; 0: not known

    def has_former_state(self, seq: Seq) -> bool:
        return has_former_state(self.view, self.begins, seq)


def has_former_state(view: JournalView, begins: Seq, seq: Seq) -> bool:
    """The state at `seq` is what the journal says is left behind there; one that was begun anew at `begins`
    is not."""
    return seq != begins and view.begins_fresh(seq)


# -- the next batch ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Follow:
    """Process what the owner has committed, or announced."""

    boundary: Boundary


@dataclass(frozen=True, slots=True)
class Own:
    """Process what has arrived."""

    seq: Seq


@dataclass(frozen=True, slots=True)
class Announce:
    """Likewise, once the successor has been told where the batch ends; with the `last` one, release."""

    seq: Seq
    last: bool


@dataclass(frozen=True, slots=True)
class OwnLast:
    """Likewise, and release with it, without a word before: the successor is far."""

    seq: Seq
    round_trip_ms: float  # the successor's: so long before it nothing else is committed


@dataclass(frozen=True, slots=True)
class ReleaseAlone:
    """Give the group away without a batch."""


@dataclass(frozen=True, slots=True)
class Wait:
    """There is nothing to do, or it is not this replica's turn."""


def next_batch(
    facts: Facts, start: Seq, *, fits: bool = True
) -> Follow | Own | Announce | OwnLast | ReleaseAlone | Wait:
    """What comes behind the batch `start`. `fits`: it is known where this definition's inputs stand there."""
    if facts.stops:
        return Wait()
    followed = followed_from(facts, start)
    if followed is not None:
        return Follow(followed)
    if not (fits and may_own(facts, start)):
        return Wait()
    armed = successor(facts.view, facts.directive.release, facts.permit)
    if armed is not None and facts.quiet:
        return ReleaseAlone()
    if facts.paused:
        return Wait()
    seq = facts.view.following(start)
    if armed is None:
        return Own(seq)
    if is_far(armed, facts.batch_ms):
        return OwnLast(seq, armed.round_trip_ms)
    return Announce(seq, facts.announced >= LOCKSTEP_BATCHES)


def may_own(facts: Facts, start: Seq) -> bool:
    """Whether the batch behind `start` is its own to decide."""
    view = facts.view
    return (
        facts.permit is not None
        and view.following(start) > view.last_seq
        and view.definition in ("", facts.running)
        and not view.is_void(start)  # a claim may stand behind somebody's rewind
        and not facts.has_former_state(start)
    )


def successor(view: JournalView, handover: str | None, permit: Epoch | None) -> Arm | None:
    """To whom an owner is to release in that handover, once it is armed."""
    armed = view.armed
    if permit is None or handover is None or armed is None:
        return None
    return armed if armed.order == handover and armed.epoch == permit + 1 else None


def is_far(armed: Arm, batch_ms: float) -> bool:
    """Whether an announcement would only delay it. What comes behind one, its node is sent when it has asked
    again, a round trip later: for a COMMIT that comes sooner, more is lost than the time of the batch that it
    need not process any more."""
    return 0 < 2 * batch_ms < armed.round_trip_ms


def followed_from(facts: Facts, start: Seq) -> Boundary | None:
    if facts.view.is_void(start) or facts.has_former_state(start):
        return None
    return next_followed(
        facts.view,
        start,
        definition=facts.running,
        coalesced=facts.coalesced,
        rows_max=facts.rows_max,
        ahead=facts.armed,
        up_to=facts.rewinds_to,
    )


def next_followed(
    view: JournalView,
    start: Seq,
    *,
    definition: str,
    coalesced: bool,
    rows_max: int,
    ahead: bool = False,
    up_to: Seq | None = None,
) -> Boundary | None:
    """The next boundary that the journal has for a follower at `start`.

    `exact` takes the owner's batches one by one; `coalesced` as many of them at once as fit into
    `rows_max`, since its state does not depend on where the input is cut. `ahead`: also the batch that
    the owner has announced; the sink then waits for its COMMIT. Nothing that another `definition` has
    processed, nothing behind where the state is begun anew, and nothing behind `up_to`.
    """
    last = view.last_seq + 1 if up_to is None else up_to
    announced = view.announced if ahead else None
    if announced is not None and announced.seq > last:
        announced = None
    commit = view.next_commit(start)
    if commit is None:
        return announced if announced is not None and announced.seq == view.following(start) else None
    if commit.seq > last or commit.definition != definition:
        return None
    if not coalesced:
        return commit.boundary
    rows, stage = commit.rows_in, commit.boundary.ends.get(END_STAGE)
    while (following := view.next_commit(commit.seq)) is not None and not view.begins_fresh(commit.seq):
        rows += following.rows_in
        alike = following.boundary.ends.get(END_STAGE) == stage and following.definition == commit.definition
        if rows > rows_max or following.seq > last or not alike:
            return commit.boundary
        commit = following
    if (
        announced is not None
        and announced.seq == view.following(commit.seq)
        and announced.ends.get(END_STAGE) == stage
        and not view.begins_fresh(commit.seq)
    ):
        return announced
    return commit.boundary


# -- its end -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Granted:
    """The batch that runs."""

    boundary: Boundary
    ahead: bool  # the journal did not have it when it was granted: it was announced, or is its own
    epoch: Epoch  # the newest grant that was known when its end was reached


@dataclass(frozen=True, slots=True)
class Emit:
    """It is this replica's to commit."""


@dataclass(frozen=True, slots=True)
class Check:
    """The journal has it: it must say the same, and nothing is put out."""

    commit: Commit


@dataclass(frozen=True, slots=True)
class Await:
    """It was announced, or this replica may be about to own: the journal has still to say."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """It never was committed; what has been processed is processed again from where the state was."""

    why: str
    fenced: bool = False  # by the commit of whoever owns since


def at_sink(facts: Facts, granted: Granted) -> Emit | Check | Await | Abandon:
    view, seq = facts.view, granted.boundary.seq
    if view.is_void(facts.local):
        return Abandon(f"seq {facts.local} was rewound, and {seq} with it")
    commit = view.commits.get(seq)
    if commit is not None:
        as_granted = commit.boundary == granted.boundary and commit.definition == facts.running
        if not granted.ahead or as_granted:
            return Check(commit)
        if facts.permit is not None and commit.epoch > facts.permit:
            # It was frozen in the middle of its batch, say: its commit would be told the same.
            return Abandon(f"seq {seq} was committed by its new owner", fenced=True)
        return Abandon(f"seq {seq} was committed otherwise than announced")
    if facts.permit is not None:
        return Emit()
    is_announced = view.announced == granted.boundary and view.granted == granted.epoch
    claims_it = facts.claiming and view.following(facts.local) == seq
    if facts.stops or not (is_announced or claims_it):
        return Abandon(f"seq {seq} was announced, but not committed")
    return Await()


# -- its own place -----------------------------------------------------------------------------------


def is_taken_over(view: JournalView, permit: Epoch) -> bool:
    """An idle owner hears of it nowhere else than in its journal."""
    return view.granted > permit


def needs_another_definition(facts: Facts) -> bool:
    """Whether its query has come to where it has to give way to one of another definition, or to one with a
    state that is begun anew."""
    view = facts.view
    # Where another is granted, the owner gives way anyhow.
    granted = facts.permit is None or view.granted == facts.permit
    if facts.has_former_state(facts.local):
        return granted
    commit = to_follow(view, facts.local, facts.rewinds_to)
    if facts.permit is not None:
        # Before its CLAIM was committed, the owner before it may have committed something more.
        may_commit = facts.running == facts.wanted and view.definition in ("", facts.running)
        return granted and not (may_commit and (commit is None or commit.definition == facts.running))
    if commit is not None:
        return commit.definition != facts.running
    comes_to_it = view.definition == facts.wanted or facts.local == facts.rewinds_to
    return not facts.leaves_state and facts.running != facts.wanted and comes_to_it


def to_follow(view: JournalView, local: Seq, rewinds_to: Seq | None) -> Commit | None:
    return None if local == rewinds_to else view.next_commit(local)
