"""The protocol's transition table, walked completely: every state with every event."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline_runtime.handover.protocol import (
    Announcing,
    Armed,
    Arming,
    ArmOrdered,
    Claiming,
    CommitArmed,
    CommitClaim,
    CommitRelease,
    Committed,
    Disarmed,
    Event,
    Fencing,
    Following,
    Initialise,
    Initialised,
    JournalEnd,
    JournalShows,
    Lost,
    Ordered,
    Own,
    Owning,
    Preparing,
    Reading,
    ReadingToArm,
    ReadJournal,
    Refused,
    ReleaseOrdered,
    Releasing,
    Rereading,
    State,
    Stopped,
    Unsure,
    decide,
)
from pipeline_runtime.model.desired import ArmOrder, ClaimOrder
from pipeline_runtime.model.ids import Epoch

ORDER = ClaimOrder(id="o", over=Epoch(3))
NEXT = ClaimOrder(id="next", over=Epoch(4))
THREE, FOUR, FIVE = Epoch(3), Epoch(4), Epoch(5)

ARM = ArmOrder(id="h", nonce="n")

STATES: dict[str, State] = {
    "following": Following(),
    "reading": Reading(ORDER),
    "fencing": Fencing(ORDER, THREE),
    "preparing": Preparing(ORDER, THREE),
    "rereading": Rereading(ORDER, THREE),
    "claiming": Claiming(ORDER, FOUR),
    "owning": Owning(ORDER, FOUR),
    "releasing": Releasing(ORDER, FOUR),
    "reading to arm": ReadingToArm(ARM),
    "arming": Arming(ARM, FOUR),
    "announcing": Announcing(ARM, FOUR),
    "armed": Armed(ARM, FOUR),
    "refused": Refused(ORDER, "late"),
    "stopped": Stopped(ORDER, "fenced"),
}
EVENTS: dict[str, Event] = {
    "ordered": Ordered(NEXT),
    "end as ordered": JournalEnd(THREE),
    "end grown": JournalEnd(FIVE),
    "end with own claim": JournalEnd(FOUR, order_granted=FOUR),
    "end with own claim superseded": JournalEnd(FIVE, order_granted=FOUR),
    "end retired": JournalEnd(THREE, retired=True),
    "initialised": Initialised(),
    "committed": Committed(),
    "told to arm": ArmOrdered(ARM),
    "disarmed": Disarmed(),
    "told to release": ReleaseOrdered("h", "h", FIVE, "h/n"),
    "told to release, nobody armed": ReleaseOrdered("h"),
    "told to release, another armed": ReleaseOrdered("h", "other", FIVE, "other/n"),
    "told to release, armed for another epoch": ReleaseOrdered("h", "h", FOUR, "h/n"),
    "released to it": JournalShows(FOUR, "h/n"),
    "released to an earlier arming": JournalShows(FOUR, "h/before"),
    "granted beyond": JournalShows(FIVE, "h/n"),
    "nothing yet": JournalShows(THREE, None),
    "lost": Lost("why"),
    "unsure": Unsure("why"),
}
FROM_THE_TOP = (Reading(ORDER), (ReadJournal(),))

# What is not here changes nothing.
TABLE: dict[tuple[str, str], tuple[State | type[State], tuple[Any, ...]]] = {
    ("following", "ordered"): (Reading(NEXT), (ReadJournal(),)),
    ("refused", "ordered"): (Reading(NEXT), (ReadJournal(),)),
    ("stopped", "ordered"): (Reading(NEXT), (ReadJournal(),)),
    ("reading", "end as ordered"): (Fencing(ORDER, THREE), (Initialise(THREE),)),
    ("reading", "end grown"): (Refused, ()),
    ("reading", "end with own claim"): (Fencing(ORDER, FOUR), (Initialise(FOUR),)),
    ("reading", "end with own claim superseded"): (Refused, ()),
    ("reading", "end retired"): (Refused, ()),
    ("reading", "unsure"): FROM_THE_TOP,
    ("fencing", "initialised"): (Preparing(ORDER, THREE), (Initialise(FOUR),)),
    ("fencing", "lost"): (Refused, ()),
    ("fencing", "unsure"): FROM_THE_TOP,
    ("preparing", "initialised"): (Rereading(ORDER, THREE), (ReadJournal(),)),
    ("preparing", "lost"): (Refused, ()),
    ("preparing", "unsure"): FROM_THE_TOP,
    ("rereading", "end as ordered"): (Claiming(ORDER, FOUR), (CommitClaim(FOUR),)),
    ("rereading", "end grown"): (Fencing(ORDER, FIVE), (Initialise(FIVE),)),
    ("rereading", "end with own claim"): (Fencing(ORDER, FOUR), (Initialise(FOUR),)),
    ("rereading", "end with own claim superseded"): (Fencing(ORDER, FIVE), (Initialise(FIVE),)),
    ("rereading", "end retired"): (Refused, ()),
    ("rereading", "unsure"): FROM_THE_TOP,
    ("claiming", "committed"): (Owning(ORDER, FOUR), (Own(FOUR),)),
    ("claiming", "lost"): (Refused, ()),
    ("claiming", "unsure"): FROM_THE_TOP,
    ("owning", "told to release"): (Releasing(ORDER, FOUR), (CommitRelease(FOUR, "h/n"),)),
    ("releasing", "committed"): (Following(), ()),
    ("releasing", "lost"): (Stopped, ()),
    ("releasing", "unsure"): (Reading(ClaimOrder(id="o", over=FOUR)), (ReadJournal(),)),
    ("following", "told to arm"): (ReadingToArm(ARM), (ReadJournal(),)),
    ("refused", "told to arm"): (ReadingToArm(ARM), (ReadJournal(),)),
    ("stopped", "told to arm"): (ReadingToArm(ARM), (ReadJournal(),)),
    ("reading to arm", "end as ordered"): (Arming(ARM, FOUR), (Initialise(FOUR),)),
    ("reading to arm", "end grown"): (Arming(ARM, Epoch(6)), (Initialise(Epoch(6)),)),
    ("reading to arm", "end with own claim"): (Arming(ARM, FIVE), (Initialise(FIVE),)),
    ("reading to arm", "end with own claim superseded"): (Arming(ARM, Epoch(6)), (Initialise(Epoch(6)),)),
    ("reading to arm", "end retired"): (Following(), ()),
    ("arming", "initialised"): (Announcing(ARM, FOUR), (CommitArmed(FOUR, "h/n"),)),
    ("announcing", "committed"): (Armed(ARM, FOUR), ()),
    ("armed", "released to it"): (Owning(ClaimOrder(id="h", over=THREE), FOUR), (Own(FOUR),)),
    ("armed", "released to an earlier arming"): (Following(), ()),
    ("armed", "granted beyond"): (Following(), ()),
    **{
        (state, event): after
        for state in ("reading to arm", "arming", "announcing", "armed")
        for event, after in {
            "ordered": (Reading(NEXT), (ReadJournal(),)),
            "disarmed": (Following(), ()),
            "lost": (Following(), ()),
            "unsure": (Following(), ()),
        }.items()
    },
    ("owning", "lost"): (Stopped, ()),
    ("owning", "unsure"): (Reading(ClaimOrder(id="o", over=FOUR)), (ReadJournal(),)),
}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", STATES)
def test_every_state_with_every_event(state: str, event: str) -> None:
    got, actions = decide(STATES[state], EVENTS[event])
    expected, expected_actions = TABLE.get((state, event), (STATES[state], ()))
    assert actions == expected_actions
    if isinstance(expected, type):
        assert isinstance(got, expected)
        assert got.order == ORDER  # type: ignore[union-attr]
        assert got.reason  # type: ignore[union-attr]
    else:
        assert got == expected


def test_the_refusal_of_a_late_order_names_both_epochs() -> None:
    state, _ = decide(Reading(ORDER), JournalEnd(FIVE))
    assert isinstance(state, Refused)
    assert state.reason == "the order takes over epoch 3, but the journal grants 5"


def test_ownership_is_reached_by_one_path_only() -> None:
    state: State = Following()
    seen = []
    for event in (
        Ordered(ORDER),
        JournalEnd(THREE),
        Initialised(),
        Initialised(),
        JournalEnd(THREE),
        Committed(),
    ):
        state, actions = decide(state, event)
        seen += actions
    assert state == Owning(ORDER, FOUR)
    assert seen == [
        ReadJournal(),
        Initialise(THREE),
        Initialise(FOUR),
        ReadJournal(),
        CommitClaim(FOUR),
        Own(FOUR),
    ]
