"""The rules of ownership as a pure function: `decide(state, event) -> (state, actions)`.

A replica follows its group's journal until it owns the group: then it alone may commit. A replica becomes the
owner in one of two ways. A name below is a state, and a name on an arrow is an event. To initialise an id
means: the replica tells the broker that it uses this transactional id, and the broker shuts out everybody who
used the id before. Each epoch has an id of its own.

By release, if the owner cooperates. The successor is the replica that is to own next:

    successor   Following --ArmOrdered--> ReadingToArm --JournalEnd--> Arming --Initialised--> Announcing
                    ^                                                                             |
                    +--- Lost, Unsure, Disarmed, or another was granted --- Armed <--- Committed -+
                                                                              |
                                            JournalShows its token released:  +--> Owning
    owner       Owning --ReleaseOrdered, its successor is armed--> Releasing --Committed--> Following

By claim, whatever the owner does (h is the highest epoch that the journal has granted):

    Following --Ordered--> Reading --JournalEnd--> Fencing --Initialised--> Preparing
    (or Armed)                |                       ^                        | Initialised
                              | stale order           | h grew                 v
                              v                       +------------------- Rereading
                           Refused                                             | JournalEnd, h as before
                                                                               v
    Owning <----------------------------Committed-------------------------- Claiming
      |
      +--Lost--> Stopped            another replica owns: this one never comes back by itself
      +--Unsure--> Reading          it may claim again, but only while its own epoch is the newest
                                    (the same from Releasing: the journal says whether it has released)

The claim, step by step:
1. Reading: the replica reads the journal to its end, and so learns h. The order to claim names the epoch that
   the replica is to take over (`over`). If `over` is not h, the order is out of date, and is refused.
2. Fencing: the replica initialises the id of h. The broker aborts the open transaction of the owner at h, and
   lets this owner commit nothing more.
3. Preparing: the replica initialises the id of h+1.
4. Rereading: the replica reads the journal again, also behind records that an open transaction has hidden. If
   h has grown, somebody else was granted an epoch meanwhile: the replica goes back to 2 with the new h.
5. Claiming: the replica commits CLAIM{h+1}.
6. Owning: the replica follows the journal to its last seq, and then begins batches of its own.

The release, step by step:
1. The successor initialises the id of h+1, which shuts out nobody at h, and commits ARMED{h+1, token}.
2. The owner names this token in its RELEASE.
3. The successor that holds the token owns. If the successor has initialised the id again since ARMED, it
   holds another token, and must claim.

This module uses no I/O, no clock and no randomness. `tests/simulation` runs it over a journal in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline_runtime.model.desired import ArmOrder, ClaimOrder
from pipeline_runtime.model.ids import Epoch

# --- states


@dataclass(frozen=True, slots=True)
class Following:
    """The replica follows the journal and owns nothing."""


@dataclass(frozen=True, slots=True)
class ReadingToArm:
    """The replica reads the journal to its end, to learn which epoch is the next one."""

    order: ArmOrder


@dataclass(frozen=True, slots=True)
class Arming:
    """The replica initialises the id of `epoch`."""

    order: ArmOrder
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Announcing:
    """The replica has sent ARMED, and the broker has not confirmed it yet."""

    order: ArmOrder
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Armed:
    """The replica is ready to own `epoch`, as soon as a RELEASE in the journal names `order.token`."""

    order: ArmOrder
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Reading:
    """Step 1 of a claim."""

    order: ClaimOrder


@dataclass(frozen=True, slots=True)
class Fencing:
    """Step 2 of a claim. `granted` is the epoch that the replica shuts out."""

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
    """Step 5 of a claim: the replica has sent CLAIM, and the broker has not confirmed it yet."""

    order: ClaimOrder
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Owning:
    """The replica may commit at `epoch`."""

    order: ClaimOrder  # for a successor: the handover's id, over the epoch that was released
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Releasing:
    """The owner has sent RELEASE, and commits nothing after that."""

    order: ClaimOrder
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Refused:
    """The replica has not carried out the order, and was granted nothing. Its fence may have stopped an
    owner."""

    order: ClaimOrder
    reason: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The replica has lost its ownership to another one."""

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
    """Control orders the replica to own, by a claim."""

    order: ClaimOrder


@dataclass(frozen=True, slots=True)
class ArmOrdered:
    """Control orders the replica to get ready to own, by the owner's release."""

    order: ArmOrder


@dataclass(frozen=True, slots=True)
class Disarmed:
    """The handover was cancelled, or the replica starts again."""


@dataclass(frozen=True, slots=True)
class ReleaseOrdered:
    """Control orders the owner to release the group in `handover`. The fields `armed…` and `token` are those
    of the newest ARMED in the journal."""

    handover: str
    armed_for: str | None = None  # the handover
    armed_epoch: Epoch = Epoch(0)
    token: str = ""


@dataclass(frozen=True, slots=True)
class JournalEnd:
    """The replica has read the journal to its end, and found this."""

    granted: Epoch
    order_granted: Epoch | None = None  # the epoch that this order was granted
    retired: bool = False


@dataclass(frozen=True, slots=True)
class JournalShows:
    """An armed replica has read the journal so far, and found this."""

    granted: Epoch
    released_token: str | None = None  # in the newest RELEASE


@dataclass(frozen=True, slots=True)
class Initialised:
    """The broker has accepted the id that the last Initialise named."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The CLAIM, ARMED or RELEASE is in the journal."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The broker has shut out this replica: somebody else has initialised its id since."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unsure:
    """The broker did not answer. It may have done what the replica asked, or not."""

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
    """Initialises the transactional id of `epoch`, which shuts out whoever used it before. Initialised is the
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
    """Returns the next state, and the actions that lead on from it. An event that `state` does not expect
    changes nothing."""
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
