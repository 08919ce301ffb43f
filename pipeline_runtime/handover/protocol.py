"""The rules of ownership as a pure function: `decide(state, event) -> (state, actions)`.

A replica follows its group's journal until it owns. There are two ways to own.

By release, when the owner cooperates:

    successor   Following --ArmOrdered--> ReadingToArm --JournalEnd--> Arming --Initialised--> Announcing
                    ^                                                                             |
                    +--- Lost, Unsure, Disarmed, or another was granted --- Armed <--- Committed -+
                                                                              |
                                            JournalShows its token released:  +--> Owning
    owner       Owning --ReleaseOrdered, its successor is armed--> Releasing --Committed--> Following

By claim, whatever the owner does (h is the highest epoch that the journal grants):

    Following --Ordered--> Reading --JournalEnd--> Fencing --Initialised--> Preparing
    (or Armed)                |                       ^                        | Initialised
                              | stale order           | h grew                 v
                              v                       +------------------- Rereading
                           Refused                                             | JournalEnd, h as before
                                                                               v
    Owning <----------------------------Committed-------------------------- Claiming
      |
      +--Lost--> Stopped            another replica was granted: this one never comes back by itself
      +--Unsure--> Reading          it may claim again, but only while its own epoch is the newest
                                    (the same from Releasing: the journal says whether it has released)

The claim, step by step:
1. Reading: reads the journal to its end. That gives h. An order names the epoch that it takes over (`over`).
   If h is another one, the order is out of date and is refused.
2. Fencing: initialises the id of h. That aborts the open transaction of its owner, which cannot commit again.
3. Preparing: initialises the id of h+1.
4. Rereading: reads again, past anything that an open transaction hides. If h has grown, somebody else was
   granted meanwhile: back to 2 with the new h.
5. Claiming: commits CLAIM{h+1}.
6. Owning: the replica follows to the last seq, then grants its own batches.

The release: the successor initialises the id of h+1, which fences nobody at h, and commits ARMED{h+1, token}.
The owner names that token in its RELEASE. Only the successor that holds the token owns by it. A successor
that has initialised again since then holds another token, and must claim.

No I/O, no clock, no randomness. `tests/simulation` runs it over a journal in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline_runtime.model.desired import ArmOrder, ClaimOrder
from pipeline_runtime.model.ids import Epoch

# --- states


@dataclass(frozen=True, slots=True)
class Following:
    """Follows the journal and owns nothing."""


@dataclass(frozen=True, slots=True)
class ReadingToArm:
    """Reads the journal to its end: which epoch is the next one?"""

    order: ArmOrder


@dataclass(frozen=True, slots=True)
class Arming:
    """Initialises the id of `epoch`."""

    order: ArmOrder
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Announcing:
    """Its ARMED is on the way."""

    order: ArmOrder
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Armed:
    """Ready to own `epoch` as soon as the journal releases it to `order.token`."""

    order: ArmOrder
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Reading:
    """Step 1 of a claim."""

    order: ClaimOrder


@dataclass(frozen=True, slots=True)
class Fencing:
    """Step 2 of a claim. `granted` is the epoch that it shuts out."""

    order: ClaimOrder
    granted: Epoch


@dataclass(frozen=True, slots=True)
class Preparing:
    """Step 3 of a claim."""

    order: ClaimOrder
    granted: Epoch


@dataclass(frozen=True, slots=True)
class Rereading:
    """Step 4 of a claim."""

    order: ClaimOrder
    granted: Epoch


@dataclass(frozen=True, slots=True)
class Claiming:
    """Step 5 of a claim: its CLAIM is on the way."""

    order: ClaimOrder
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Owning:
    """It may commit at `epoch`."""

    order: ClaimOrder  # for a successor: the handover's id, over the epoch that was released
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Releasing:
    """Its RELEASE is on the way. It commits nothing after that."""

    order: ClaimOrder
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Refused:
    """The order was not carried out. It was granted nothing, but its fence may have stopped an owner."""

    order: ClaimOrder
    reason: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """Ownership was lost to another replica."""

    order: ClaimOrder
    reason: str


State = (
    Following
    | ReadingToArm
    | Arming
    | Announcing
    | Armed
    | Reading
    | Fencing
    | Preparing
    | Rereading
    | Claiming
    | Owning
    | Releasing
    | Refused
    | Stopped
)

# --- events


@dataclass(frozen=True, slots=True)
class Ordered:
    """The replica is ordered to own, by a claim."""

    order: ClaimOrder


@dataclass(frozen=True, slots=True)
class ArmOrdered:
    """The replica is ordered to own by release."""

    order: ArmOrder


@dataclass(frozen=True, slots=True)
class Disarmed:
    """The handover was cancelled, or the replica starts again."""


@dataclass(frozen=True, slots=True)
class ReleaseOrdered:
    """The owner is ordered to release the group in `handover`. `armed...` is the journal's newest ARMED."""

    handover: str
    armed_for: str | None = None  # the handover
    armed_epoch: Epoch = Epoch(0)
    token: str = ""


@dataclass(frozen=True, slots=True)
class JournalEnd:
    """What the journal said when it was read to its end."""

    granted: Epoch
    order_granted: Epoch | None = None  # the epoch that this order was granted
    retired: bool = False


@dataclass(frozen=True, slots=True)
class JournalShows:
    """What an armed replica has read so far."""

    granted: Epoch
    released_token: str | None = None  # in the newest RELEASE


@dataclass(frozen=True, slots=True)
class Initialised:
    """The broker has taken the id that the last Initialise named."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The CLAIM, ARMED or RELEASE is in the journal."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The broker has fenced the id: somebody else has initialised it since."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unsure:
    """The broker did not answer. What was asked of it may have happened or not."""

    reason: str


Event = (
    Ordered
    | ArmOrdered
    | Disarmed
    | ReleaseOrdered
    | JournalEnd
    | JournalShows
    | Initialised
    | Committed
    | Lost
    | Unsure
)

# --- actions


@dataclass(frozen=True, slots=True)
class ReadJournal:
    """Reads the journal to its present end. JournalEnd is the answer."""


@dataclass(frozen=True, slots=True)
class Initialise:
    """Initialises the transactional id of `epoch`, which fences the owner before. Initialised is the
    answer."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class CommitClaim:
    """Writes CLAIM to the journal. Committed is the answer."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class CommitArmed:
    """Writes ARMED to the journal. Committed is the answer."""

    epoch: Epoch
    token: str


@dataclass(frozen=True, slots=True)
class CommitRelease:
    """Writes RELEASE to the journal, with the owner's last batch if there is one. Committed is the answer."""

    epoch: Epoch
    token: str


@dataclass(frozen=True, slots=True)
class Own:
    """Makes the permit to commit at `epoch`."""

    epoch: Epoch


Action = ReadJournal | Initialise | CommitClaim | CommitArmed | CommitRelease | Own
Decision = tuple[State, tuple[Action, ...]]


def decide(state: State, event: Event) -> Decision:
    """Takes one step. An event that a state does not expect changes nothing."""
    match state:
        case Following() | Refused() | Stopped():
            return _idle(state, event)
        case ReadingToArm() | Arming() | Announcing() | Armed():
            return _succeed(state, event)
        case Reading() | Fencing() | Preparing() | Rereading() | Claiming():
            return _claim(state, event)
        case Owning() | Releasing():
            return _own(state, event)


def _idle(state: State, event: Event) -> Decision:
    match event:
        case Ordered(order):
            return Reading(order), (ReadJournal(),)
        case ArmOrdered(arm_order):
            return ReadingToArm(arm_order), (ReadJournal(),)
    return state, ()


def _succeed(state: ReadingToArm | Arming | Announcing | Armed, event: Event) -> Decision:
    match state, event:
        case _, Ordered(order):
            return Reading(order), (ReadJournal(),)
        case _, (Disarmed() | Lost() | Unsure()):
            # It gives up what it has initialised. The next try has another nonce.
            return Following(), ()
        case ReadingToArm(arm_order), JournalEnd():
            if event.retired or event.granted == 0:
                return Following(), ()  # there is no owner to succeed
            epoch = Epoch(event.granted + 1)
            return Arming(arm_order, epoch), (Initialise(epoch),)
        case Arming(arm_order, epoch), Initialised():
            return Announcing(arm_order, epoch), (CommitArmed(epoch, arm_order.token),)
        case Announcing(arm_order, epoch), Committed():
            return Armed(arm_order, epoch), ()
        case Armed(arm_order, epoch), JournalShows():
            if event.granted == epoch and event.released_token == arm_order.token:
                over = Epoch(epoch - 1)
                return Owning(ClaimOrder(id=arm_order.id, over=over), epoch), (Own(epoch),)
            if event.granted >= epoch:
                return Following(), ()  # somebody else was granted
    return state, ()


def _claim(state: Reading | Fencing | Preparing | Rereading | Claiming, event: Event) -> Decision:
    match state, event:
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
        case Claiming(order, epoch), Committed():
            return Owning(order, epoch), (Own(epoch),)
        case ((Fencing(order) | Preparing(order) | Claiming(order)), Lost(reason)):
            return Refused(order, f"another replica claimed at the same time ({reason})"), ()
        case _, Unsure():
            # The order still counts. It begins again at Reading, which trusts only the journal.
            return Reading(state.order), (ReadJournal(),)
    return state, ()


def _after_reading(order: ClaimOrder, end: JournalEnd) -> Decision:
    if end.retired:
        return Refused(order, "the group was undeployed: its journal is retired"), ()
    if end.order_granted is not None and end.order_granted != end.granted:
        reason = (
            f"it owned as epoch {end.order_granted}, but epoch {end.granted} was granted to another since"
        )
        return Refused(order, reason), ()
    if end.order_granted is None and end.granted != order.over:
        reason = f"the order takes over epoch {order.over}, but the journal grants {end.granted}"
        return Refused(order, reason), ()
    return Fencing(order, end.granted), (Initialise(end.granted),)


def _own(state: Owning | Releasing, event: Event) -> Decision:
    order, epoch = state.order, state.epoch
    match state, event:
        case Owning(), ReleaseOrdered():
            if event.armed_for == event.handover and event.armed_epoch == epoch + 1:
                return Releasing(order, epoch), (CommitRelease(epoch, event.token),)
        case Releasing(), Committed():
            return Following(), ()
        case _, Lost(reason):
            return Stopped(order, f"epoch {epoch} was fenced: another replica took over ({reason})"), ()
        case _, Unsure():
            return Reading(ClaimOrder(id=order.id, over=epoch)), (ReadJournal(),)
    return state, ()
