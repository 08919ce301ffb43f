"""A handover's next step: phase x what nodes report -> one step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline_runtime.handover.phases import NEXT, Phase, Strategy
from pipeline_runtime.model.desired import ReplicaError, ReplicaStatus, Role, Takeover
from pipeline_runtime.model.ids import Epoch, Seq
from workers.control.handovers.steps import (
    CLAIM_MS_MAX,
    COMMIT_MS_MAX,
    CUT_MS_MAX,
    FRESH_MS,
    FRESH_WAIT_MS,
    GAP_MS_MAX,
    ORDERS_MAX,
    ORIGIN_IS_BACK,
    RELEASED_MS_MAX,
    STALLED_MS_MAX,
    STOP_MS_MAX,
    ClaimBack,
    CopyFromCentral,
    Done,
    Enter,
    Fail,
    GiveBack,
    Observed,
    OrderCopy,
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


TAKEOVER = Takeover(
    epoch=Epoch(4),
    by="claim",
    order="o1",
    node="b",
    at_ms=T0,
    last_commit_at_ms=T0,
    first_commit_at_ms=T0 + 900,
)
OWNING = status(last_output_at_ms=T0 - 50, checkpoint_at_ms=T0 - 100, checkpoint_seq=Seq(38))
STOPPED = status(role=Role.STOPPED, phase="stopped", checkpoint_seq=Seq(40), last_output_at_ms=T0)
STOPPED_EARLIER_CUT = STOPPED.model_copy(update={"checkpoint_seq": Seq(39)})
FETCHING = status(role=Role.STOPPED, phase="fetching", epoch=Epoch(0), seq=Seq(0))
BEHIND = status(role=Role.STANDBY, phase="following", seq=Seq(39))
FOLLOWING = status(role=Role.STANDBY, phase="following")
BROKEN = FETCHING.model_copy(update={"error": ReplicaError(message="disk full", safe="-", next="-")})
OWNS = status(epoch=Epoch(4), order_id="o1", takeover=TAKEOVER)
ARMED = FOLLOWING.model_copy(update={"armed": "h1", "phase": "armed"})
RELEASED = FOLLOWING.model_copy(update={"released": "h1", "order_id": "o0", "epoch": Epoch(4)})
RELEASE_TAKEOVER = TAKEOVER.model_copy(update={"by": "release", "order": "h1", "round_trips": 3})
SUCCEEDED = OWNS.model_copy(update={"order_id": "h1", "takeover": RELEASE_TAKEOVER})
OWNS_AGAIN = status(epoch=Epoch(5), order_id="o1", released="h1")
REFUSED = FOLLOWING.model_copy(
    update={"order_id": "o1", "order_refused": "epoch 5 was granted", "epoch": Epoch(5)}
)
BEATEN = FOLLOWING.model_copy(
    update={"order_id": "o1", "order_refused": "another replica claimed at the same time (fenced)"}
)
RETIRED = BEATEN.model_copy(
    update={"order_refused": "the group was undeployed meanwhile", "phase": "refused", "retired": True}
)

MOVE = Progress(
    id="h1",
    strategy=Strategy.STOP_AND_COPY,
    phase=Phase.PENDING,
    cancel_requested=False,
    phase_since_ms=T0,
)
LIVE = replace(MOVE, strategy=Strategy.STANDBY)
COPYING = replace(LIVE, phase=Phase.PREPARE, copy_ordered=True)
WARMING = replace(COPYING, phase=Phase.WARM)
CUTTING = replace(COPYING, phase=Phase.CUT)
CLAIMING = replace(MOVE, phase=Phase.CLAIM, order_id="o1", order_over=Epoch(3), orders=1)
BACK = replace(CLAIMING, strategy=Strategy.STANDBY, back=True)
RESTORE = replace(MOVE, strategy=Strategy.CHECKPOINT)
HOT = replace(MOVE, strategy=Strategy.HOT_STANDBY)
REWIND = replace(MOVE, strategy=Strategy.REWIND, phase=Phase.COPY)
AUTOMATIC = replace(RESTORE, automatic=True)
SEEN = Observed(now_ms=T0 + 100, origin=OWNING, origin_up=True, target=None, target_up=True)
GONE = replace(SEEN, origin_up=False)


def at(phase: Phase, progress: Progress = MOVE) -> Progress:
    return replace(progress, phase=phase)


def later(seen: Observed, ms: int) -> Observed:
    return replace(seen, now_ms=T0 + ms + 1)


STOP_SEEN = replace(SEEN, origin=STOPPED)
FINISHING = replace(CLAIMING, phase=Phase.FINISH)
NO_COMMIT_YET = TAKEOVER.model_copy(update={"first_commit_at_ms": None})
OLD_TAKEOVER = TAKEOVER.model_copy(update={"order": "o0"})
IDLE = OWNS.model_copy(update={"takeover": NO_COMMIT_YET})
LOADED = IDLE.model_copy(update={"lag_rows": 100})
FETCHED = FETCHING.model_copy(update={"phase": "fetched"})
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
        "another claimed at the same time, and its epoch is not read yet",
        CLAIMING,
        replace(STOP_SEEN, target=BEATEN),
        Reorder(Epoch(3)),
    ),
    (
        "beaten too often",
        replace(CLAIMING, orders=ORDERS_MAX),
        replace(STOP_SEEN, target=BEATEN),
        Fail,
    ),
    ("beaten for too long", CLAIMING, later(replace(STOP_SEEN, target=BEATEN), CLAIM_MS_MAX), Fail),
    (
        "a newer epoch is ordered over however long it took to hear of it",
        CLAIMING,
        later(replace(STOP_SEEN, target=REFUSED), CLAIM_MS_MAX),
        Reorder(Epoch(5)),
    ),
    (
        "what reads less of the journal than was known is not ordered over that",
        replace(CLAIMING, order_over=Epoch(6)),
        replace(STOP_SEEN, target=REFUSED),
        Reorder(Epoch(6)),
    ),
    ("refused for good: its journal is retired", CLAIMING, replace(STOP_SEEN, target=RETIRED), Fail),
    (
        "refused for good, and somebody owned meanwhile",
        CLAIMING,
        replace(STOP_SEEN, target=RETIRED.model_copy(update={"epoch": Epoch(5)})),
        Fail,
    ),
    ("the target dies while claiming: it may own", CLAIMING, replace(STOP_SEEN, target_up=False), Wait()),
    ("the claim takes too long", CLAIMING, later(STOP_SEEN, CLAIM_MS_MAX), Fail),
    (
        "a claimant that goes on following is waited for",
        CLAIMING,
        replace(later(STOP_SEEN, CLAIM_MS_MAX), target=BEHIND, target_moved_at_ms=T0 + CLAIM_MS_MAX),
        Wait,
    ),
    (
        "one that fails again and again is not",
        CLAIMING,
        replace(later(STOP_SEEN, CLAIM_MS_MAX), target=BROKEN, target_moved_at_ms=T0 + CLAIM_MS_MAX),
        Fail,
    ),
    ("a cancel after the claim is too late", replace(CLAIMING, cancel_requested=True), STOP_SEEN, Wait()),
    *(
        (
            f"a restoration's cancel ends the wait for a claimant that {law}, and for no other",
            replace(CLAIMING, cancel_requested=True, strategy=Strategy.CHECKPOINT),
            replace(STOP_SEEN, target=target, target_up=up),
            step,
        )
        for law, target, up, step in (
            ("has failed", BROKEN, True, Fail),
            ("is silent", FOLLOWING, False, Fail),
            ("follows", FOLLOWING, True, Wait),
            ("owns", OWNS, True, Enter(Phase.FINISH)),
        )
    ),
    ("the gap is measured", FINISHING, replace(STOP_SEEN, target=OWNS), Done(TAKEOVER)),
    (
        "the gap of a release, with its round trips",
        FINISHING,
        replace(SEEN, target=SUCCEEDED),
        Done(RELEASE_TAKEOVER),
    ),
    (
        "an earlier change of owner is not measured",
        FINISHING,
        replace(SEEN, target=OWNS.model_copy(update={"takeover": OLD_TAKEOVER})),
        Wait(),
    ),
    (
        "its first commit is waited for",
        at(Phase.FINISH),
        replace(STOP_SEEN, target=IDLE),
        Wait(),
    ),
    (
        "but not for long: nothing may come",
        FINISHING,
        replace(later(STOP_SEEN, COMMIT_MS_MAX), target=IDLE),
        Done(NO_COMMIT_YET),
    ),
    (
        "while rows wait it is waited for longer",
        FINISHING,
        replace(later(STOP_SEEN, COMMIT_MS_MAX), target=LOADED),
        Wait(),
    ),
    (
        "though not for ever, and what is known is kept",
        FINISHING,
        replace(later(STOP_SEEN, GAP_MS_MAX), target=LOADED),
        Done(NO_COMMIT_YET),
    ),
    (
        "a target that says nothing of it is not waited for",
        FINISHING,
        later(STOP_SEEN, GAP_MS_MAX),
        Done(None),
    ),
]

OLD = OWNING.model_copy(update={"checkpoint_at_ms": T0 - FRESH_MS - 1})
STANDBY_ROWS: list[tuple[str, Progress, Observed, type[Step] | Step]] = [
    ("a live migration prepares first", LIVE, SEEN, Enter(Phase.PREPARE)),
    ("its origin is down: restore", LIVE, GONE, GiveBack),
    ("a fresh checkpoint is fetched at once", at(Phase.PREPARE, LIVE), SEEN, OrderCopy()),
    ("an old one is taken again", at(Phase.PREPARE, LIVE), replace(SEEN, origin=OLD), Wait()),
    (
        "for which nobody waits long",
        at(Phase.PREPARE, LIVE),
        later(replace(SEEN, origin=OLD), FRESH_WAIT_MS),
        OrderCopy(),
    ),
    ("fetching", COPYING, replace(SEEN, target=FETCHING), Wait()),
    (
        "the origin gives none: from the central store",
        replace(COPYING, fallback_left=True),
        replace(SEEN, target=BROKEN),
        CopyFromCentral("disk full"),
    ),
    ("the copy fails", COPYING, replace(SEEN, target=BROKEN), GiveBack),
    ("the copy follows: warm up", COPYING, replace(SEEN, target=BEHIND), Enter(Phase.WARM)),
    ("a hot standby is there already", COPYING, replace(SEEN, target=FOLLOWING), Enter(Phase.WARM)),
    ("the origin dies while copying", COPYING, GONE, GiveBack),
    ("not armed yet", WARMING, replace(SEEN, target=BEHIND), Wait()),
    ("armed: cut", WARMING, replace(SEEN, target=ARMED), Enter(Phase.CUT)),
    (
        "armed for another handover",
        WARMING,
        replace(SEEN, target=ARMED.model_copy(update={"armed": "h0"})),
        Wait(),
    ),
    (
        "armed, but the origin restarts",
        WARMING,
        replace(SEEN, target=ARMED, origin=FETCHING),
        Wait(),
    ),
    (
        "armed, but the origin claims again, since it waits for a schema registry",
        WARMING,
        replace(SEEN, target=ARMED, origin=FOLLOWING.model_copy(update={"error": BROKEN.error})),
        Wait(),
    ),
    (
        "armed, but the origin has failed",
        WARMING,
        replace(SEEN, target=ARMED, origin=BROKEN),
        GiveBack,
    ),
    ("the origin dies while warming up", WARMING, replace(GONE, target=ARMED), GiveBack),
    ("it never arms", WARMING, later(replace(SEEN, target=FOLLOWING), STALLED_MS_MAX), GiveBack),
    (
        "a long way to follow is given its time",
        WARMING,
        replace(
            later(SEEN, STALLED_MS_MAX),
            target=BEHIND.model_copy(update={"behind": 5000}),
            target_moved_at_ms=T0 + STALLED_MS_MAX,
        ),
        Wait(),
    ),
    ("the release is under way", CUTTING, replace(SEEN, target=ARMED), Wait()),
    ("the target owns by the release", CUTTING, replace(SEEN, target=SUCCEEDED), Enter(Phase.FINISH)),
    (
        "it owns, whatever the origin says",
        CUTTING,
        replace(GONE, target=SUCCEEDED),
        Enter(Phase.FINISH),
    ),
    (
        "the origin dies in the cut: the target claims",
        CUTTING,
        replace(GONE, target=ARMED),
        Enter(Phase.CLAIM, "the origin fell silent while it handed over: the target is ordered to take over"),
    ),
    (
        "the target dies after the release: the origin claims back",
        CUTTING,
        replace(SEEN, origin=RELEASED, target=ARMED, target_up=False),
        ClaimBack("the target fell silent after the release: the origin takes the element back"),
    ),
    (
        "the target dies before the release: it may still come",
        CUTTING,
        replace(SEEN, target=ARMED, target_up=False),
        Wait(),
    ),
    (
        "the target stays away without a release",
        CUTTING,
        later(replace(SEEN, target=ARMED, target_up=False), CUT_MS_MAX),
        ClaimBack("the target fell silent while it took over: the origin takes the element back"),
    ),
    ("both are away: wait", CUTTING, replace(GONE, target_up=False), Wait()),
    (
        "the target was restarted after the release",
        CUTTING,
        replace(SEEN, origin=RELEASED, target=FOLLOWING, released_for_ms=RELEASED_MS_MAX + 1),
        Enter(Phase.CLAIM, "the target did not take over by the release: it is ordered to take over"),
    ),
    (
        "a release that came late",
        CUTTING,
        later(replace(SEEN, origin=RELEASED, target=ARMED), RELEASED_MS_MAX),
        Wait(),
    ),
    (
        "no release though all are up",
        CUTTING,
        later(replace(SEEN, target=ARMED), CUT_MS_MAX),
        Enter(Phase.CLAIM, "nothing was handed over within 60 s: the target is ordered to take over"),
    ),
    (
        "a claim is over when the release was seen after all",
        CLAIMING,
        replace(SEEN, target=SUCCEEDED),
        Enter(Phase.FINISH),
    ),
    ("the origin claims back", BACK, replace(SEEN, origin=RELEASED, target_up=False), Wait()),
    ("the origin owns again", BACK, replace(SEEN, origin=OWNS_AGAIN, target_up=False), Fail),
    (
        "the origin is refused: order over what the journal has",
        BACK,
        replace(SEEN, origin=REFUSED.model_copy(update={"released": "h1"}), target_up=False),
        Reorder(Epoch(5)),
    ),
    (
        "the origin is beaten by another that claims",
        BACK,
        replace(SEEN, origin=BEATEN.model_copy(update={"released": "h1"}), target_up=False),
        Reorder(Epoch(3)),
    ),
    ("the origin never released", BACK, later(replace(SEEN, target_up=False), RELEASED_MS_MAX), Fail),
    ("a hot standby claims at once", HOT, replace(GONE, target=FOLLOWING), Enter(Phase.CLAIM)),
    ("a hot standby that is gone", HOT, GONE, GiveBack),
    ("an automatic restoration goes on while its origin is silent", AUTOMATIC, GONE, Enter(Phase.COPY)),
    (
        "and ends when the origin is back",
        AUTOMATIC,
        SEEN,
        GiveBack(ORIGIN_IS_BACK, cancelled=True),
    ),
    (
        "but not when it has to start again",
        AUTOMATIC,
        replace(SEEN, origin=FETCHING),
        Enter(Phase.COPY),
    ),
    ("a rewound copy is fetched, not started", REWIND, replace(GONE, target=FETCHED), Enter(Phase.CLAIM)),
    (
        "a rewind waits for all others to stop",
        REWIND,
        replace(SEEN, target=FETCHED, others_stopped=False),
        Wait(),
    ),
]
ROWS += STANDBY_ROWS


@pytest.mark.parametrize(("law", "progress", "seen", "step"), ROWS, ids=[row[0] for row in ROWS])
def test_next_step(law: str, progress: Progress, seen: Observed, step: type[Step] | Step) -> None:
    decided = next_step(progress, seen)
    if isinstance(step, type):
        assert isinstance(decided, step)
    else:
        assert decided == step


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.PREPARE, Phase.WARM, Phase.STOP, Phase.COPY])
@pytest.mark.parametrize("strategy", list(Strategy))
def test_a_cancel_before_the_cut_gives_back(phase: Phase, strategy: Strategy) -> None:
    progress = replace(MOVE, phase=phase, strategy=strategy, cancel_requested=True)
    decided = next_step(progress, SEEN)
    assert isinstance(decided, GiveBack)
    assert decided.cancelled


@pytest.mark.parametrize("phase", [Phase.CUT, Phase.CLAIM, Phase.FINISH])
@pytest.mark.parametrize("back", [False, True])
def test_nothing_is_given_back_after_the_cut_was_ordered(phase: Phase, back: bool) -> None:
    progress = replace(CLAIMING, phase=phase, cancel_requested=True, back=back, strategy=Strategy.STANDBY)
    for target in (None, FETCHING, FOLLOWING, BROKEN, ARMED, OWNS, SUCCEEDED, REFUSED):
        for origin in (None, OWNING, RELEASED, STOPPED, OWNS_AGAIN):
            for target_up, origin_up in ((False, False), (False, True), (True, False), (True, True)):
                for ms in (0, CLAIM_MS_MAX):
                    seen = replace(
                        later(SEEN, ms),
                        origin=origin,
                        target=target,
                        target_up=target_up,
                        origin_up=origin_up,
                        undeploying=True,
                    )
                    assert not isinstance(next_step(progress, seen), GiveBack)


def test_each_phase_is_entered_where_the_table_says_and_everywhere_it_says() -> None:
    """The rows above lead to each pair of phases in the table, and to no other."""
    entered = set()
    for _, progress, seen, _ in ROWS:
        match next_step(progress, seen):
            case Enter(phase):
                entered.add((progress.strategy, progress.phase, phase))
            case Reorder() | ClaimBack():
                entered.add((progress.strategy, progress.phase, Phase.CLAIM))
    table = {
        (strategy, before, after)
        for strategy, ways in NEXT.items()
        for before, following in ways.items()
        for after in following
    }
    assert entered <= table
    assert {pair[1:] for pair in entered} == {pair[1:] for pair in table}
