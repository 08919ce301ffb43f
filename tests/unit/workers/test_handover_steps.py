"""A handover's next step: phase x what nodes report -> one step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline_runtime.model.desired import ReplicaError, ReplicaStatus, Role
from pipeline_runtime.model.ids import Epoch, Seq
from workers.control.handover_steps import (
    CLAIM_MS_MAX,
    GAP_MS_MAX,
    ORDERS_MAX,
    STALLED_MS_MAX,
    STOP_MS_MAX,
    Done,
    Enter,
    Fail,
    GiveBack,
    Observed,
    Phase,
    Progress,
    Reorder,
    Step,
    Wait,
    next_step,
)

T0 = 1_000_000
BASE = ReplicaStatus(group="d.g", role=Role.OWNER, phase="owning", epoch=Epoch(3), seq=Seq(40))


def status(**update: object) -> ReplicaStatus:
    return BASE.model_copy(update=update)


OWNING = status(last_output_at_ms=T0 - 50)
STOPPED = status(role=Role.STOPPED, phase="stopped", checkpoint_seq=Seq(40), last_output_at_ms=T0)
STOPPED_EARLIER_CUT = STOPPED.model_copy(update={"checkpoint_seq": Seq(39)})
FETCHING = status(role=Role.STOPPED, phase="fetching", epoch=Epoch(0), seq=Seq(0))
BEHIND = status(role=Role.STANDBY, phase="following", seq=Seq(39))
FOLLOWING = status(role=Role.STANDBY, phase="following")
BROKEN = FETCHING.model_copy(update={"error": ReplicaError(message="disk full", safe="-", next="-")})
OWNS = status(epoch=Epoch(4), order_id="o1", first_output_at_ms=T0 + 900)
REFUSED = FOLLOWING.model_copy(
    update={"order_id": "o1", "order_refused": "epoch 5 was granted", "epoch": Epoch(5)}
)

MOVE = Progress(restoration=False, phase=Phase.PENDING, cancel_requested=False, phase_since_ms=T0)
CLAIMING = replace(MOVE, phase=Phase.CLAIM, order_id="o1", order_over=Epoch(3), orders=1)
RESTORE = replace(MOVE, restoration=True)
SEEN = Observed(now_ms=T0 + 100, origin=OWNING, origin_up=True, target=None, target_up=True)
GONE = replace(SEEN, origin_up=False)


def at(phase: Phase, progress: Progress = MOVE) -> Progress:
    return replace(progress, phase=phase)


def later(seen: Observed, ms: int) -> Observed:
    return replace(seen, now_ms=T0 + ms + 1)


STOP_SEEN = replace(SEEN, origin=STOPPED)
ROWS: list[tuple[str, Progress, Observed, type[Step] | Step]] = [
    ("a migration stops the origin first", MOVE, SEEN, Enter(Phase.STOP)),
    ("a restoration copies at once", RESTORE, GONE, Enter(Phase.COPY)),
    ("a silent origin cannot migrate", MOVE, GONE, GiveBack),
    ("a silent target takes nothing", MOVE, replace(SEEN, target_up=False), GiveBack),
    ("the origin still owns", at(Phase.STOP), SEEN, Wait()),
    (
        "stopped, but its checkpoint is older",
        at(Phase.STOP),
        replace(SEEN, origin=STOPPED_EARLIER_CUT),
        Wait(),
    ),
    ("stopped at its checkpoint", at(Phase.STOP), STOP_SEEN, Enter(Phase.COPY)),
    ("the origin does not stop", at(Phase.STOP), later(SEEN, STOP_MS_MAX), GiveBack),
    ("the origin dies while stopping", at(Phase.STOP), GONE, GiveBack),
    ("no copy yet", at(Phase.COPY), STOP_SEEN, Wait()),
    ("fetching", at(Phase.COPY), replace(STOP_SEEN, target=FETCHING), Wait()),
    ("the copy is behind", at(Phase.COPY), replace(STOP_SEEN, target=BEHIND), Wait()),
    ("the copy is there", at(Phase.COPY), replace(STOP_SEEN, target=FOLLOWING), Enter(Phase.CLAIM)),
    (
        "a restored copy is behind: claim",
        at(Phase.COPY, RESTORE),
        replace(GONE, target=BEHIND),
        Enter(Phase.CLAIM),
    ),
    ("the copy fails", at(Phase.COPY), replace(STOP_SEEN, target=BROKEN), GiveBack),
    ("the target dies before the claim", at(Phase.COPY), replace(STOP_SEEN, target_up=False), GiveBack),
    ("the copy stands still", at(Phase.COPY), later(STOP_SEEN, STALLED_MS_MAX), GiveBack),
    (
        "a slow copy that moves is left alone",
        at(Phase.COPY),
        replace(later(STOP_SEEN, STALLED_MS_MAX), target=FETCHING, target_moved_at_ms=T0 + STALLED_MS_MAX),
        Wait(),
    ),
    ("the order is under way", CLAIMING, replace(STOP_SEEN, target=FOLLOWING), Wait()),
    ("the target owns", CLAIMING, replace(STOP_SEEN, target=OWNS), Enter(Phase.FINISH)),
    (
        "another order's owner does not count",
        replace(CLAIMING, order_id="o2"),
        replace(STOP_SEEN, target=OWNS),
        Wait(),
    ),
    (
        "refused: order over what the journal has",
        CLAIMING,
        replace(STOP_SEEN, target=REFUSED),
        Reorder(Epoch(5)),
    ),
    ("refused too often", replace(CLAIMING, orders=ORDERS_MAX), replace(STOP_SEEN, target=REFUSED), Fail),
    (
        "refused with nothing newer",
        replace(CLAIMING, order_over=Epoch(5)),
        replace(STOP_SEEN, target=REFUSED),
        Fail,
    ),
    ("the target dies while claiming: it may own", CLAIMING, replace(STOP_SEEN, target_up=False), Wait()),
    ("the claim takes too long", CLAIMING, later(STOP_SEEN, CLAIM_MS_MAX), Fail),
    ("a cancel after the claim is too late", replace(CLAIMING, cancel_requested=True), STOP_SEEN, Wait()),
    ("the gap is measured", at(Phase.FINISH), replace(STOP_SEEN, target=OWNS), Done(900)),
    (
        "no output yet",
        at(Phase.FINISH),
        replace(STOP_SEEN, target=OWNS.model_copy(update={"first_output_at_ms": None})),
        Wait(),
    ),
    (
        "an origin that never had output has no gap",
        at(Phase.FINISH),
        replace(STOP_SEEN, origin=STOPPED.model_copy(update={"last_output_at_ms": None})),
        Done(None),
    ),
    ("a quiet stream has no gap", at(Phase.FINISH), later(STOP_SEEN, GAP_MS_MAX), Done(None)),
]


@pytest.mark.parametrize(("law", "progress", "seen", "step"), ROWS, ids=[row[0] for row in ROWS])
def test_next_step(law: str, progress: Progress, seen: Observed, step: type[Step] | Step) -> None:
    decided = next_step(progress, seen)
    if isinstance(step, type):
        assert isinstance(decided, step)
    else:
        assert decided == step


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.STOP, Phase.COPY])
@pytest.mark.parametrize("restoration", [False, True])
def test_a_cancel_before_the_claim_gives_back(phase: Phase, restoration: bool) -> None:
    progress = replace(MOVE, phase=phase, restoration=restoration, cancel_requested=True)
    decided = next_step(progress, SEEN)
    assert isinstance(decided, GiveBack)
    assert decided.cancelled


@pytest.mark.parametrize("phase", [Phase.CLAIM, Phase.FINISH])
def test_nothing_is_given_back_after_the_claim_was_ordered(phase: Phase) -> None:
    progress = replace(CLAIMING, phase=phase, cancel_requested=True)
    for target in (None, FETCHING, FOLLOWING, BROKEN, OWNS, REFUSED):
        for target_up in (False, True):
            for ms in (0, CLAIM_MS_MAX):
                seen = replace(later(STOP_SEEN, ms), target=target, target_up=target_up, undeploying=True)
                assert not isinstance(next_step(progress, seen), GiveBack)
