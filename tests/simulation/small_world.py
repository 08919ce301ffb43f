"""The ownership protocol in a small world, in which every interleaving can be tried.

Up to three replicas run `decide` over a journal. The broker is reduced to the effect of its rules:

- Only an id's last initialiser can commit with it. So each replica has a handle (the epoch of the id that it
  has initialised), which becomes invalid when another replica initialises that id.
- A commit is one step: it is in the journal or not, and the committer may not learn which.

A follower may have read any part of the journal. So an owner that has to release may know of any ARMED, and
an armed successor may act on any beginning of the journal. `tries` limits each replica's claims, doubts and
restarts. `retires` says whether it may be told to end the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from pipeline_runtime.handover.protocol import (
    Action,
    Armed,
    ArmOrdered,
    CommitArmed,
    CommitClaim,
    CommitRelease,
    Committed,
    Event,
    Following,
    Initialise,
    Initialised,
    JournalEnd,
    JournalShows,
    Lost,
    Ordered,
    Own,
    Owning,
    Reading,
    ReadingToArm,
    ReadJournal,
    Refused,
    ReleaseOrdered,
    State,
    Stopped,
    Unsure,
)
from pipeline_runtime.model.desired import ArmOrder, ClaimOrder
from pipeline_runtime.model.ids import Epoch
from tests.simulation.mutants import Decide

Told = Callable[[State, Event], tuple[State, Action | None]]


class Line(NamedTuple):
    """A record of the journal."""

    kind: str  # COMMIT, CLAIM, ARMED, RELEASE, RETIRE
    epoch: int
    seq: int = 0
    token: str = ""
    order: str = ""


Journal = tuple[Line, ...]


class Actor(NamedTuple):
    name: str
    state: State = Following()
    action: Action | None = None
    handle: int = 0  # the epoch whose id it initialised last; 0 when there is none, or it is fenced
    seq: int = 0  # as an owner, the newest seq that it knows of
    tries: int = 1  # claims, doubts and restarts that are left
    arms: int = 0  # how often it may still arm itself
    retires: bool = False


# --- what a journal says (the project's JournalView, without what is not needed here)


@cache
def granted(journal: Journal) -> Epoch:
    epochs = [line.epoch + (line.kind == "RELEASE") for line in journal if line.kind != "ARMED"]
    return Epoch(max(epochs, default=0))


@cache
def last_seq(journal: Journal) -> int:
    return max((line.seq for line in journal), default=0)


@cache
def retired(journal: Journal) -> bool:
    return any(line.kind == "RETIRE" for line in journal)


@cache
def order_granted(journal: Journal, order: str) -> Epoch | None:
    for line in reversed(journal):
        if line.order == order and line.kind in ("CLAIM", "RELEASE"):
            return Epoch(line.epoch + (line.kind == "RELEASE"))
    return None


@cache
def shown(journal: Journal) -> tuple[tuple[JournalShows, int], ...]:
    """Returns what a follower may have read at any time, and the last seq that it then knows of."""
    seen: dict[tuple[JournalShows, int], None] = {}
    token = None
    for length, line in enumerate(journal, start=1):
        token = line.token if line.kind == "RELEASE" else token
        read = journal[:length]
        seen[JournalShows(granted(read), token), last_seq(read)] = None
    return tuple(seen)


@cache
def length(journal: Journal) -> int:
    return sum(line.kind != "ARMED" for line in journal)


# --- what one actor may do


def cached(decide: Decide) -> Told:
    """`decide` is pure, and the same few states and events come up again and again."""

    @cache
    def told(state: State, event: Event) -> tuple[State, Action | None]:
        after, actions = decide(state, event)
        if isinstance(after, Refused | Stopped):
            after = Following()  # it answers to the same orders
        return after, actions[0] if actions else None

    return told


class Outcome(NamedTuple):
    label: str
    actor: Actor
    journal: Journal
    initialised: int = 0  # any other handle to this id is fenced


def outcomes(journal: Journal, actor: Actor, told: Told, length_max: int) -> Iterator[Outcome]:
    """Yields everything that may happen next to `actor`. `length_max` limits commits and grants."""
    if actor.action is not None:
        yield from _perform(journal, actor, told, length_max)
    elif isinstance(actor.state, Owning):
        yield from _own(journal, actor, told, length_max)
    elif isinstance(actor.state, Armed):
        for shows, seq in shown(journal):
            after = _tell(actor, shows, told)
            if after.state != actor.state:
                # What it has read ends with the release. Its own state is at that seq.
                yield Outcome(f"sees {shows}", after._replace(seq=seq, action=None), journal)
    elif actor.arms and isinstance(actor.state, Following):
        order = ArmOrder(id=f"to {actor.name}", nonce=str(actor.arms))
        yield Outcome(
            "is to arm", _tell(actor._replace(arms=actor.arms - 1), ArmOrdered(order), told), journal
        )
    if actor.tries:
        yield from _tried(journal, actor._replace(tries=actor.tries - 1), told)


def _tried(journal: Journal, actor: Actor, told: Told) -> Iterator[Outcome]:
    """It restarts, or is ordered to claim."""
    if not isinstance(actor.state, Following):
        yield Outcome("restarts", _restarted(actor, told), journal)
    if actor.action is None and not isinstance(actor.state, Owning):
        order = ClaimOrder(id=f"{actor.name}{actor.tries}", over=granted(journal))
        yield Outcome(f"is ordered over {order.over}", _tell(actor, Ordered(order), told), journal)


def _restarted(actor: Actor, told: Told) -> Actor:
    """Its handle and its token are gone. An order to own is on its disk, and is carried out again."""
    after = actor._replace(state=Following(), action=None, handle=0, seq=0)
    order = getattr(actor.state, "order", None)
    return _tell(after, Ordered(order), told) if isinstance(order, ClaimOrder) else after


def _tell(actor: Actor, event: Event, told: Told) -> Actor:
    state, action = told(actor.state, event)
    given_up = isinstance(state, Following | Reading | ReadingToArm)
    handle, seq = (0, 0) if given_up else (actor.handle, actor.seq)
    return actor._replace(state=state, action=action, handle=handle, seq=seq)


def _perform(journal: Journal, actor: Actor, told: Told, length_max: int) -> Iterator[Outcome]:
    order: str = actor.state.order.id  # type: ignore[union-attr]
    match actor.action:
        case ReadJournal():
            end = JournalEnd(granted(journal), order_granted(journal, order), retired(journal))
            yield Outcome(f"reads grant {end.granted}", _tell(actor, end, told), journal)
        case Initialise(epoch):
            ready = _tell(actor._replace(handle=epoch), Initialised(), told)
            yield Outcome(f"initialises {epoch}", ready, journal, epoch)
        case CommitClaim(epoch):
            yield from _commit(journal, actor, (Line("CLAIM", epoch, order=order),), told, length_max)
        case CommitArmed(epoch, token):
            armed = Line("ARMED", epoch, token=token, order=order)
            yield from _commit(journal, actor, (armed,), told, length_max)
        case CommitRelease(epoch, token):
            release = Line("RELEASE", epoch, token=token, order=token.partition("/")[0])
            batch = Line("COMMIT", epoch, actor.seq + 1)
            yield from _commit(journal, actor, (release,), told, length_max)
            yield from _commit(journal, actor, (batch, release), told, length_max)
        case Own():
            yield Outcome("owns", actor._replace(action=None, seq=last_seq(journal)), journal)


def _own(journal: Journal, actor: Actor, told: Told, length_max: int) -> Iterator[Outcome]:
    assert isinstance(actor.state, Owning)
    batch = Line("COMMIT", actor.state.epoch, actor.seq + 1)
    went_on = actor._replace(seq=actor.seq + 1)
    yield from _commit(journal, actor, (batch,), told, length_max, went_on)
    if actor.retires:
        retire = Line("RETIRE", actor.state.epoch)
        gone = actor._replace(state=Following(), handle=0, seq=0)
        yield from _commit(journal, actor, (retire,), told, length_max, gone)
    for line in journal:
        if line.kind == "ARMED":
            event = ReleaseOrdered(line.order, line.order, Epoch(line.epoch), line.token)
            releasing = _tell(actor, event, told)
            if releasing.state != actor.state:
                yield Outcome(f"is to release to {line.token}", releasing, journal)


def _commit(
    journal: Journal, actor: Actor, lines: Journal, told: Told, length_max: int, after: Actor | None = None
) -> Iterator[Outcome]:
    """`after` is the actor when the commit succeeded, if that is no event of the protocol."""
    if not actor.handle:
        yield Outcome("is fenced", _tell(actor, Lost("fenced"), told), journal)
        return
    written = (*journal, *lines)
    if length(written) > length_max:
        return
    label = "commits " + " and ".join(f"{line.kind} of {line.epoch}" for line in lines)
    yield Outcome(label, after or _tell(actor, Committed(), told), written)
    if actor.tries:
        doubtful = _tell(actor._replace(tries=actor.tries - 1), Unsure(""), told)
        yield Outcome(f"{label}, unanswered", doubtful, written)
        yield Outcome(f"{label} in vain, unanswered", doubtful, journal)
