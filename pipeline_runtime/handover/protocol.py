"""The rules of ownership as a pure function: `decide(state, event) -> (state, actions)`.

A replica follows its group's journal until it is ordered to own, then claims (design, section 4):

    Following --Ordered--> Reading --JournalEnd--> Fencing --Initialised--> Preparing
                              |                       ^                        | Initialised
                              | stale order           | h grew                 v
                              v                       +------------------- Rereading
                           Refused                                             | JournalEnd, h as before
                                                                               v
    Owning <-----------------------------Claimed--------------------------- Claiming
      |
      +--Lost--> Stopped            another replica was granted: this one never comes back by itself
      +--Unsure--> Reading          it may claim again, but only while its own epoch is the newest

1. Reading: the journal to its end gives h, the highest epoch granted. An order names the epoch
   that it takes over (`over`): when h is another one, the order is out of date and is refused.
2. Fencing: initialise the id of h: its owner's open transaction is aborted, and it cannot commit again.
3. Preparing: initialise the id of h+1.
4. Rereading: when h grew meanwhile, somebody else was granted: back to 2 with the new h.
5. Claiming: commit CLAIM{h+1}.
6. Owning: the replica follows to the last seq, then grants its own batches.

No I/O, no clock, no randomness. `tests/simulation` runs it over an in-memory journal.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.ids import Epoch

# --- states


@dataclass(frozen=True, slots=True)
class Following:
    """Follows the journal; owns nothing."""


@dataclass(frozen=True, slots=True)
class Reading:
    order: ClaimOrder


@dataclass(frozen=True, slots=True)
class Fencing:
    order: ClaimOrder
    granted: Epoch


@dataclass(frozen=True, slots=True)
class Preparing:
    order: ClaimOrder
    granted: Epoch


@dataclass(frozen=True, slots=True)
class Rereading:
    order: ClaimOrder
    granted: Epoch


@dataclass(frozen=True, slots=True)
class Claiming:
    order: ClaimOrder
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Owning:
    order: ClaimOrder
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Refused:
    """The order was not carried out; nothing was changed."""

    order: ClaimOrder
    reason: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """Ownership was lost to another replica."""

    order: ClaimOrder
    reason: str


State = Following | Reading | Fencing | Preparing | Rereading | Claiming | Owning | Refused | Stopped

# --- events


@dataclass(frozen=True, slots=True)
class Ordered:
    order: ClaimOrder


@dataclass(frozen=True, slots=True)
class JournalEnd:
    """What the journal said when it was read to its end."""

    granted: Epoch
    order_granted: Epoch | None = None  # the epoch that a claim of this very order was granted
    retired: bool = False


@dataclass(frozen=True, slots=True)
class Initialised:
    """The broker took the id that the last Initialise named."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """The CLAIM is committed."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The broker fenced the id: somebody else has initialised it since."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unsure:
    """The broker did not answer: what was asked of it may have happened or not."""

    reason: str


Event = Ordered | JournalEnd | Initialised | Claimed | Lost | Unsure

# --- actions


@dataclass(frozen=True, slots=True)
class ReadJournal:
    """Read the journal to its end as of now, and answer with JournalEnd."""


@dataclass(frozen=True, slots=True)
class Initialise:
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class CommitClaim:
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Own:
    epoch: Epoch


Action = ReadJournal | Initialise | CommitClaim | Own


def decide(state: State, event: Event) -> tuple[State, tuple[Action, ...]]:
    """One step. An event that a state does not expect changes nothing."""
    match state, event:
        case ((Following() | Refused() | Stopped()), Ordered(order)):
            return Reading(order), (ReadJournal(),)
        case Reading(order), JournalEnd():
            return _after_reading(order, event)
        case Fencing(order, granted), Initialised():
            return Preparing(order, granted), (Initialise(Epoch(granted + 1)),)
        case Preparing(order, granted), Initialised():
            return Rereading(order, granted), (ReadJournal(),)
        case Rereading(order, granted), JournalEnd():
            if event.retired:
                return Refused(order, "the group was undeployed meanwhile"), ()
            if event.granted > granted:
                return Fencing(order, event.granted), (Initialise(event.granted),)
            epoch = Epoch(granted + 1)
            return Claiming(order, epoch), (CommitClaim(epoch),)
        case Claiming(order, epoch), Claimed():
            return Owning(order, epoch), (Own(epoch),)
        case ((Fencing(order) | Preparing(order) | Claiming(order)), Lost(reason)):
            return Refused(order, f"another replica claimed at the same time ({reason})"), ()
        case (
            (Reading(order) | Fencing(order) | Preparing(order) | Rereading(order) | Claiming(order)),
            Unsure(),
        ):
            # The order is still what is wanted: from the top, which trusts nothing but the journal.
            return Reading(order), (ReadJournal(),)
        case Owning(order, epoch), Lost(reason):
            return Stopped(order, f"epoch {epoch} was fenced: another replica took over ({reason})"), ()
        case Owning(order, epoch), Unsure():
            return Reading(ClaimOrder(id=order.id, over=epoch)), (ReadJournal(),)
    return state, ()


def _after_reading(order: ClaimOrder, end: JournalEnd) -> tuple[State, tuple[Action, ...]]:
    if end.retired:
        return Refused(order, "the group was undeployed: its journal is retired"), ()
    if end.order_granted is not None and end.order_granted != end.granted:
        reason = f"it owned as epoch {end.order_granted}, epoch {end.granted} was granted to another since"
        return Refused(order, reason), ()
    if end.order_granted is None and end.granted != order.over:
        reason = f"the order takes over epoch {order.over}, but the journal grants {end.granted}"
        return Refused(order, reason), ()
    return Fencing(order, end.granted), (Initialise(end.granted),)
