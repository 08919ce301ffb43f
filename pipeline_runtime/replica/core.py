"""Decides the next act of a replica from the facts that the replica knows.

Others gather the `Facts`, ask one of these questions, and carry out the answer:

    next_batch                  before a batch: what does it process?
    at_sink                     when it has been processed: may this replica commit it?
    is_taken_over               as the owner: has another replica been granted since?
    needs_another_definition    must the running query give way to one of another definition?

The functions are pure: no I/O, no clock, no randomness. `tests/simulation` runs them over an in-memory
journal.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline_runtime.journal.records import END_STAGE, Arm, Boundary, Commit
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.desired import Directive
from pipeline_runtime.model.ids import Epoch, Seq

LOCKSTEP_BATCHES = 3
"""How many batches an owner announces before the last one. The follower is one batch behind. It need not wait
for the COMMIT of an announced batch, and so gains a part of the pause between two batches with each."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a replica knows when it decides."""

    view: JournalView  # an answer holds until more of the journal is read into it
    local: Seq = Seq(0)  # the newest batch that this replica has processed
    state_begins: Seq = Seq(0)  # the batch behind which its present state begins
    directive: Directive = field(default_factory=Directive)
    permit: Epoch | None = None  # the epoch in which it may commit; None if it does not own
    armed: bool = False  # the owner may release to it
    claiming: bool = False
    paused: bool = False
    stops: bool = False  # it begins no further batch
    running_definition: str = ""  # the version of the one that its query runs
    wanted_definition: str = ""  # the version of the one that it is to run
    coalesced: bool = False  # it may follow several batches at once
    rows_max: int = 0  # the most rows that a batch may have
    rewinds_to: Seq | None = None  # it is ordered to go on from there, and follows nothing behind it
    leaves_state: bool = False  # it is ordered to take over without the state of the definition before
    quiet: bool = False  # nothing has come for so long that a follower has processed all there was
    announced: int = 0  # how many batches it has announced in the release under way
    batch_ms: float = 0.0  # how long a batch usually takes here; 0 if that is not known
    committing: bool = False  # the batch before the next one is not committed yet
    waits: bool = False  # as the owner: a schema registry has to answer before the next batch

    def has_former_state(self, seq: Seq) -> bool:
        return has_former_state(self.view, self.state_begins, seq)


def has_former_state(view: JournalView, state_begins: Seq, seq: Seq) -> bool:
    """Returns whether the journal says that the group leaves its state behind at `seq`, because a fresh one
    begins. A state that itself begins at `seq` is that fresh one."""
    return seq != state_begins and view.begins_fresh(seq)


# -- the next batch ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Follow:
    """Process a batch that the owner has committed or announced, up to its boundary."""

    boundary: Boundary


@dataclass(frozen=True, slots=True)
class Own:
    """As the owner, process what has arrived."""

    seq: Seq


@dataclass(frozen=True, slots=True)
class Announce:
    """As the owner, tell the successor where the batch ends, then process what has arrived up to there. With
    the `last` such batch, release."""

    seq: Seq
    last: bool


@dataclass(frozen=True, slots=True)
class OwnLast:
    """As the owner, process what has arrived, and release with this batch. It is not announced, because the
    successor is far."""

    seq: Seq
    round_trip_ms: float  # the successor's; for that long before the batch nothing else is committed


@dataclass(frozen=True, slots=True)
class ReleaseAlone:
    """Release the group without a batch: nothing has come, or nothing can be processed here."""


@dataclass(frozen=True, slots=True)
class Wait:
    """There is nothing to do, or it is not this replica's turn."""


def next_batch(
    facts: Facts, start: Seq, *, fits: bool = True
) -> Follow | Own | Announce | OwnLast | ReleaseAlone | Wait:
    """Returns what this replica does next, if `start` is the last batch that it has processed. `fits`: the
    boundary `start` says where the inputs of the replica's definition stand."""
    if facts.stops:
        return Wait()
    followed = followed_from(facts, start)
    if facts.committing and (followed is not None or not may_run_ahead(facts)):
        return Wait()
    if followed is not None:
        return Follow(followed)
    if not (fits and may_own(facts, start)):
        return Wait()
    armed = successor(facts.view, facts.directive.release, facts.permit)
    if armed is not None and (facts.quiet or facts.waits):
        return ReleaseAlone()  # another node may reach the registry
    if facts.paused or facts.waits:
        return Wait()
    seq = facts.view.following(start)
    if armed is None:
        return Own(seq)
    if is_far(armed, facts.batch_ms):
        return OwnLast(seq, armed.round_trip_ms)
    return Announce(seq, facts.announced >= LOCKSTEP_BATCHES)


def may_run_ahead(facts: Facts) -> bool:
    """Returns whether this replica may begin a batch of its own while the batch before it is committed.

    Everything that such a batch makes is tentative. So it must be one of an owner's usual batches. An
    ANNOUNCE and a RELEASE say where the group stands, so they wait until all earlier batches are committed.
    """
    return (
        facts.permit is not None and facts.directive.release is None and not facts.paused and not facts.stops
    )


def may_own(facts: Facts, start: Seq) -> bool:
    """Returns whether this replica decides, as the owner, what the batch after `start` processes."""
    view = facts.view
    return (
        facts.permit is not None
        and view.following(start) > view.last_seq
        and view.definition in ("", facts.running_definition)
        and not view.is_void(start)  # a claim may stand behind somebody's rewind
        and not facts.has_former_state(start)
    )


def successor(view: JournalView, handover: str | None, permit: Epoch | None) -> Arm | None:
    """Returns the armed successor to whom the owner with that permit is to release, or None if there is no
    handover or its successor is not armed yet."""
    armed = view.armed
    if permit is None or handover is None or armed is None:
        return None
    return armed if armed.order == handover and armed.epoch == permit + 1 else None


def is_far(armed: Arm, batch_ms: float) -> bool:
    """Returns whether an announcement would only delay the successor.

    After an announcement, the successor's node has to ask the broker again before it gets what follows: this
    takes a round trip. If the COMMIT comes sooner than that, the successor loses more time than it gains by
    processing the batch in advance.
    """
    return 0 < 2 * batch_ms < armed.round_trip_ms


def followed_from(facts: Facts, start: Seq) -> Boundary | None:
    """Returns the boundary up to which this replica follows from `start`, or None if it follows nothing."""
    if facts.view.is_void(start) or facts.has_former_state(start):
        return None
    return next_followed(
        facts.view,
        start,
        definition=facts.running_definition,
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
    """Returns the next boundary that the journal has for a follower at `start`, or None if it has none.

    A follower takes the owner's batches one by one. If it is `coalesced`, its state does not depend on the
    cuts of the input, and it takes as many batches at once as fit into `rows_max`. With `ahead`, it also
    takes the batch that the owner has announced, and then waits at the end of the batch for the COMMIT. It
    takes nothing that another `definition` has processed, nothing after a place where the state begins fresh,
    and nothing after `up_to`.
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
    while (following := view.next_commit(commit.seq)) is not None and not _is_cut(view, commit.seq):
        rows += following.rows_in
        alike = following.boundary.ends.get(END_STAGE) == stage and following.definition == commit.definition
        if rows > rows_max or following.seq > last or not alike:
            return commit.boundary
        commit = following
    if (
        announced is not None
        and announced.seq == view.following(commit.seq)
        and announced.ends.get(END_STAGE) == stage
        and not _is_cut(view, commit.seq)
    ):
        return announced
    return commit.boundary


def _is_cut(view: JournalView, seq: Seq) -> bool:
    """Returns whether the batch after `seq` begins with another state, or at another place in its inputs."""
    return view.begins_fresh(seq) or view.begins_elsewhere(seq)


# -- its end -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Granted:
    """The batch that runs."""

    boundary: Boundary
    ahead: bool  # the journal did not have it when it was granted: it was announced, or is the replica's own
    epoch: Epoch  # the newest grant in the journal when the end of the batch was reached


@dataclass(frozen=True, slots=True)
class Emit:
    """Commit the batch: this replica owns it."""


@dataclass(frozen=True, slots=True)
class Check:
    """The journal has the batch already. Check that it says the same, and put nothing out."""

    commit: Commit


@dataclass(frozen=True, slots=True)
class Await:
    """Wait for the journal to say: the batch was announced, or this replica may be about to own."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """Drop the batch: it was never committed. Its rows are processed again, from the state before it."""

    why: str
    fenced: bool = False  # another replica owns, and has committed there


def at_sink(facts: Facts, granted: Granted) -> Emit | Check | Await | Abandon:
    """Returns what becomes of the running batch, now that it has been processed."""
    view, seq = facts.view, granted.boundary.seq
    if view.is_void(facts.local):
        return Abandon(f"seq {facts.local} was rewound, and {seq} with it")
    commit = view.commits.get(seq)
    if commit is not None:
        as_granted = commit.boundary == granted.boundary and commit.definition == facts.running_definition
        if not granted.ahead or as_granted:
            return Check(commit)
        if facts.permit is not None and commit.epoch > facts.permit:
            # The replica was frozen in the middle of its batch, say. Its own commit would be refused as well.
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
    """Returns whether another replica was granted after this permit. An idle owner can learn that only from
    its journal."""
    return view.granted > permit


def needs_another_definition(facts: Facts) -> bool:
    """Returns whether the running query must give way to a query of another definition, or to one whose state
    begins fresh."""
    view = facts.view
    # If another replica is granted, the owner gives way anyway.
    granted = facts.permit is None or view.granted == facts.permit
    if facts.has_former_state(facts.local):
        return granted
    commit = to_follow(view, facts.local, facts.rewinds_to)
    if facts.permit is not None:
        # The owner before it may have committed one more batch before this replica's CLAIM was written.
        may_commit = facts.running_definition == facts.wanted_definition and view.definition in (
            "",
            facts.running_definition,
        )
        return granted and not (
            may_commit and (commit is None or commit.definition == facts.running_definition)
        )
    if commit is not None:
        return commit.definition != facts.running_definition
    comes_to_it = view.definition == facts.wanted_definition or facts.local == facts.rewinds_to
    return not facts.leaves_state and facts.running_definition != facts.wanted_definition and comes_to_it


def to_follow(view: JournalView, local: Seq, rewinds_to: Seq | None) -> Commit | None:
    """Returns the next commit that a replica at `local` has to follow, or None if there is none."""
    return None if local == rewinds_to else view.next_commit(local)
